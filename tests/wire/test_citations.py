"""Citations in answers: the API refuses one whose source is missing, so it goes with its source."""

from typing import Any

import orjson
import pytest

from gateway.standin import messages as strict
from gateway.wire import citations
from gateway.wire.format import Edits
from gateway.wire.messages import MESSAGES
from tests.wire.folding import folded, read

Block = dict[str, Any]
DOCUMENT: Block = {
    "type": "document",
    "title": "Report",
    "source": {"type": "text", "media_type": "text/plain", "data": "The bridge was closed in May. " * 40},
    "citations": {"enabled": True},
}
FOUND: Block = {
    "type": "search_result",
    "source": "https://example.com/bridges",
    "title": "Bridges",
    "content": [{"type": "text", "text": "The bridge was built in 1911. " * 40}],
    "citations": {"enabled": True},
}
PAGE = {"title": "News", "url": "https://example.com/news"}
SEARCH: list[Block] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "bridge"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", **PAGE, "encrypted_content": "QUJD" * 400}],
    },
]
FETCH: list[Block] = [
    {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_fetch", "input": {"url": PAGE["url"]}},
    {
        "type": "web_fetch_tool_result",
        "tool_use_id": "srvtoolu_2",
        "content": {"type": "web_fetch_result", "url": PAGE["url"], "content": DOCUMENT},
    },
]
TOOL: list[Block] = [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]
RESULT: Block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [FOUND]}

IN_DOCUMENT = {
    "type": "char_location",
    "document_index": 0,
    "start_char_index": 900,
    "end_char_index": 929,
    "cited_text": "x",
}
ON_PAGE = {
    "type": "page_location",
    "document_index": 0,
    "start_page_number": 1,
    "end_page_number": 2,
    "cited_text": "x",
}
IN_RESULT = {"type": "search_result_location", "search_result_index": 0, "source": FOUND["source"], "cited_text": "x"}
OF_SEARCH = {"type": "web_search_result_location", **PAGE, "encrypted_index": "QUJD", "cited_text": "x"}

SOURCES = [
    pytest.param([{"role": "user", "content": [DOCUMENT]}], IN_DOCUMENT, id="text"),
    pytest.param([{"role": "user", "content": [DOCUMENT]}], ON_PAGE, id="page"),
    pytest.param([{"role": "user", "content": [FOUND]}], IN_RESULT, id="search_result"),
    pytest.param(
        [{"role": "user", "content": "?"}, {"role": "assistant", "content": SEARCH}], OF_SEARCH, id="web_search"
    ),
    pytest.param(
        [{"role": "user", "content": "?"}, {"role": "assistant", "content": FETCH}], IN_DOCUMENT, id="web_fetch"
    ),
    pytest.param(
        [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": TOOL},
            {"role": "user", "content": [RESULT]},
        ],
        IN_RESULT,
        id="tool_result",
    ),
]


def conversation(source: list[Block], citation: Block) -> Block:
    """The source in the first turn, talk, and an answer that cites the source in the turn before the question."""
    talk: list[Block] = []
    for n in range(12):
        talk += [
            {"role": "assistant", "content": [{"type": "text", "text": f"Bridge {n} is 40 metres long. " * 12}]},
            {"role": "user", "content": f"And bridge {n + 1}? " * 12},
        ]
    if source[-1]["role"] == "assistant":
        talk = [source[-1] | {"content": source[-1]["content"] + talk[0]["content"]}, *talk[1:]]
        source = source[:-1]
    answer: Block = {"type": "text", "text": "It was closed in May.", "citations": [citation]}
    rows = [*source, *talk, {"role": "assistant", "content": [answer]}, {"role": "user", "content": "Why?"}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": rows}


def cited(body: Block) -> Any:
    """The citations of the last answer."""
    return body["messages"][-2]["content"][0]["citations"]


@pytest.mark.parametrize("rung", [1, 2])
@pytest.mark.parametrize(("source", "citation"), SOURCES)
def test_a_citation_goes_with_its_source_and_its_answer_stays(source: list[Block], citation: Block, rung: int) -> None:
    body = conversation(source, citation)
    assert strict.violations(body) == []

    sent = orjson.loads(folded(MESSAGES, body, 0.3, rung))

    assert strict.violations(sent) == []
    assert sent["messages"][-2]["content"][0] == {"type": "text", "text": "It was closed in May.", "citations": None}


@pytest.mark.parametrize(("source", "citation"), SOURCES)
def test_a_citation_stays_while_its_source_stands(source: list[Block], citation: Block) -> None:
    body = conversation(
        [{"role": "user", "content": "Hello. " * 600}, {"role": "assistant", "content": "Hi."}, *source], citation
    )
    request = read(MESSAGES, body)

    sent = orjson.loads(MESSAGES.encode(request, Edits(messages=request.messages[2:])))

    assert strict.violations(sent) == []
    assert cited(sent) == [citation]


def test_of_two_documents_a_folded_one_takes_the_citations_of_both() -> None:
    """The other one has another number now, and answers to folded requests already count it so."""
    second = {**DOCUMENT, "title": "Second"}
    body = conversation([{"role": "user", "content": [DOCUMENT]}], {**IN_DOCUMENT, "document_index": 1})
    body["messages"][-3] = {"role": "user", "content": [second, {"type": "text", "text": "And this?"}]}
    assert strict.violations(body) == []

    sent = orjson.loads(folded(MESSAGES, body, 0.3))

    assert second in sent["messages"][-3]["content"]
    assert cited(sent) is None


def test_a_search_that_stands_keeps_its_citations_when_another_is_folded() -> None:
    again = {**PAGE, "url": "https://example.com/again"}
    body = conversation([{"role": "user", "content": "?"}, {"role": "assistant", "content": SEARCH}], OF_SEARCH)
    found = [{"type": "web_search_result", **again, "encrypted_content": "QUJD"}]
    search = [{**SEARCH[0], "id": "srvtoolu_9"}, {**SEARCH[1], "tool_use_id": "srvtoolu_9", "content": found}]
    answer = {"type": "text", "text": "Both say so.", "citations": [OF_SEARCH, {**OF_SEARCH, **again}]}
    body["messages"][-2] = {"role": "assistant", "content": [*search, answer]}
    assert strict.violations(body) == []

    sent = orjson.loads(folded(MESSAGES, body, 0.3))

    assert sent["messages"][-2]["content"][-1]["citations"] == [{**OF_SEARCH, **again}]
    assert strict.violations(sent) == []


@pytest.mark.parametrize("url", [None, ["https://example.com"], {"a": 1}, 7])
def test_a_citation_of_an_address_that_is_no_text_is_left_to_the_upstream(url: Any) -> None:
    cited = [{"type": "web_search_result_location", "url": url}]
    nothing = citations.sources([])

    assert citations.valid(cited, nothing, nothing) == cited
