"""Citations in answers of the Messages format, and their sources elsewhere in the request.

A citation names its source by position among all documents, or all search results, of the request; one of a web search
names a page of a result. The API refuses a citation whose source is missing or shorter
(https://platform.claude.com/docs/en/build-with-claude/citations), so the citations of folded sources are removed. The cited
words stay, because they are in the answer's text. Positions are not counted anew: answers to a folded request were
already counted in that request, and nothing in them says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

CITATIONS: Final = "citations"
_DOCUMENT: Final = "document"
_SEARCH_RESULT: Final = "search_result"
_PAGE: Final = "web_search_result"
_SOURCES: Final = frozenset({_DOCUMENT, _SEARCH_RESULT, _PAGE})
_PAGE_CITATION: Final = "web_search_result_location"
_SEARCH_CITATION: Final = "search_result_location"
_DEEPEST: Final = 4
"""Levels of content that are searched for sources: a fetched page has two inside its block."""


class Sources(msgspec.Struct, frozen=True):
    """Everything in a request that answers may cite, in order."""

    documents: list[Any]
    search_results: list[Any]
    pages: frozenset[Any]
    """Addresses of the pages that web searches found."""


def sources(blocks: Iterable[Mapping[str, Any]]) -> Sources:
    """Return the sources in content blocks, also those in results of tools."""
    found = [source for block in blocks for source in _in(block, 0)]
    return Sources(
        [source for source in found if source["type"] == _DOCUMENT],
        [source for source in found if source["type"] == _SEARCH_RESULT],
        frozenset(url for source in found if source["type"] == _PAGE and isinstance(url := source.get("url"), str)),
    )


def _in(block: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str) or depth > _DEEPEST:
        return
    if kind in _SOURCES:
        yield block
        return
    content = block.get("content")
    for inner in content if isinstance(content, list) else (content,):
        yield from _in(inner, depth + 1)


def cites(block: Mapping[str, Any]) -> bool:
    """Return whether a block is a text with citations."""
    return block.get("type") == "text" and isinstance(block.get(CITATIONS), list) and bool(block[CITATIONS])


def valid(citations: list[Any], given: Sources, sent: Sources) -> list[Any]:
    """Return the citations whose sources stand as they did; ``given`` are the sources of the client's request."""
    documents_stand = given.documents == sent.documents
    results_stand = given.search_results == sent.search_results

    def stands(citation: Any) -> bool:
        kind = citation.get("type") if isinstance(citation, dict) else None
        if kind == _PAGE_CITATION:
            url = citation.get("url")
            return not isinstance(url, str) or url in sent.pages or url not in given.pages
        return results_stand if kind == _SEARCH_CITATION else documents_stand

    return [citation for citation in citations if stands(citation)]
