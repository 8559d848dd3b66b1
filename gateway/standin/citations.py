"""How the Claude API checks citations in answers: each must have its source in the request, and be inside it.

The messages are the API's own, as in public reports; that of a missing document is composed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_NESTED: Final = (
    "tool_result",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "web_fetch_result",
    "mcp_tool_result",
)


def lost(blocks: Iterable[tuple[int, int, Mapping[str, Any]]]) -> Iterator[tuple[int, str]]:
    """Return the message and the error of each citation without a source; ``blocks`` have the message's number and their own."""
    given = list(blocks)
    sources = [source for _, _, block in given for source in _sources(block)]
    documents = [source for source in sources if source.get("type") == "document"]
    results = [source for source in sources if source.get("type") == "search_result"]
    pages = {source.get("url") for source in sources if source.get("type") == "web_search_result"}
    for at, n, block in given:
        citations = block.get("citations") if block.get("type") == "text" else None
        for number, citation in enumerate(citations if isinstance(citations, list) else ()):
            if error := _error(citation, documents, results, pages):
                yield at, f"messages.{at}.content.{n}.citations.{number}: {error}"


def _sources(block: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(block, dict):
        return
    yield block
    if block.get("type") in _NESTED:
        content = block.get("content")
        for inner in content if isinstance(content, list) else [content]:
            yield from _sources(inner)


def _error(
    citation: Mapping[str, Any],
    documents: list[Mapping[str, Any]],
    results: list[Mapping[str, Any]],
    pages: set[Any],
) -> str:
    kind = citation.get("type")
    if kind == "web_search_result_location":
        return "" if citation.get("url") in pages else "Could not find search result for citation index"
    if kind == "search_result_location":
        return "" if citation["search_result_index"] < len(results) else "Could not find the search result"
    if citation["document_index"] >= len(documents):
        return "Could not find the document"
    source = documents[citation["document_index"]]["source"]
    if kind == "char_location" and citation["start_char_index"] > len(source.get("data", "")):
        return f"Start index {citation['start_char_index']} is beyond document length {len(source.get('data', ''))}"
    return ""
