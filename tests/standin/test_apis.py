"""The stand-in's Messages and Responses APIs: what they refuse, in whose words, and what a good answer looks like."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from gateway.standin import StandIn, messages, ollama, responses
from gateway.standin.messages import sign
from providers.sse import Events
from tests.running import client

USER = {"role": "user", "content": "go"}
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "found"}
TEXT = {"type": "text", "text": "hi"}
MARKED = {**TEXT, "cache_control": {"type": "ephemeral"}}


def said(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def told(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
BROKEN_MESSAGES = [
    ("first_role", [said(TEXT), USER]),
    ("content", [told({"type": "text", "text": " "})]),
    ("call", [USER, said({**USE, "input": "x"}), told(RESULT)]),
    ("unanswered", [USER, said(USE), USER]),
    ("orphan", [told(RESULT)]),
    ("orphan", [USER, said(USE), told(RESULT), USER, told(RESULT)]),
    ("duplicate", [USER, said(USE), told(RESULT, RESULT)]),
    ("results_first", [USER, said(USE), told(TEXT, RESULT)]),
    ("marks", [told(MARKED, MARKED, MARKED, MARKED, MARKED)]),
    ("marks", [told(MARKED, {**TEXT, "cache_control": {"type": "ephemeral", "ttl": "1h"}})]),
    ("signature", [USER, said({**THOUGHT, "thinking": "hm!"}, TEXT), USER]),
    ("server_tool", [USER, said({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}), USER]),
    ("server_tool", [USER, said({"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}), USER]),
    (
        "server_tool",
        [USER, said({**USE, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}}), told(RESULT)],
    ),
    (
        "citation",
        [USER, said({**TEXT, "citations": [{"type": "web_search_result_location", "url": "https://x.org"}]}), USER],
    ),
    ("citation", [USER, said({**TEXT, "citations": [{"type": "page_location", "document_index": 0}]}), USER]),
    (
        "citation",
        [USER, said({**TEXT, "citations": [{"type": "search_result_location", "search_result_index": 0}]}), USER],
    ),
    (
        "citation",
        [
            told({"type": "document", "source": {"type": "text", "data": "tea"}}),
            said({**TEXT, "citations": [{"type": "char_location", "document_index": 0, "start_char_index": 4}]}),
            USER,
        ],
    ),
    ("shape", [{"role": "tool", "content": "x"}]),
]


@pytest.mark.parametrize(("rule", "rows"), BROKEN_MESSAGES)
def test_a_conversation_that_breaks_a_rule_of_messages_is_told_which(rule: str, rows: list[dict[str, Any]]) -> None:
    assert rule in [found.rule for found in messages.violations({"max_tokens": 9, "messages": rows})]


def test_a_servers_tool_may_call_the_clients_tools_before_its_result() -> None:
    code = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}}
    calls = said(code, {**USE, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}})
    result = {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}

    for rows in ([USER, calls, told(RESULT)], [USER, calls, told(RESULT), said(result, TEXT), USER]):
        assert messages.violations({"max_tokens": 9, "messages": rows}) == []


def test_a_whole_messages_conversation_breaks_no_rule() -> None:
    rows = [USER, said(THOUGHT, TEXT, USE), told(RESULT, MARKED), said(TEXT), USER]

    assert (
        messages.violations(
            {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": rows}
        )
        == []
    )


def test_thinking_must_open_the_running_tool_loop() -> None:
    body = {
        "max_tokens": 2000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [USER, said(USE), told(RESULT)],
    }

    assert [found.rule for found in messages.violations(body)] == ["thinking_first"]


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "x"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
BROKEN_RESPONSES = [
    ("shape", [{"content": "x"}]),
    ("content", [{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
    ("content", [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]),
    ("call", [USER, {**CALL, "arguments": "{"}, OUTPUT]),
    ("unanswered", [USER, CALL]),
    ("orphan", [USER, OUTPUT]),
    ("orphan", [OUTPUT, CALL]),
    ("duplicate", [USER, CALL, OUTPUT, OUTPUT]),
    ("duplicate", [USER, CALL, OUTPUT, CALL, OUTPUT]),
    ("follower", [USER, REASONING, USER]),
    ("follower", [USER, REASONING]),
    ("summary", [USER, {"type": "reasoning", "id": "rs_1"}, CALL, OUTPUT]),
]


@pytest.mark.parametrize(("rule", "items"), BROKEN_RESPONSES)
def test_the_rules_of_responses(rule: str, items: list[dict[str, Any]]) -> None:
    assert rule in [found.rule for found in responses.violations({"input": items})]


def test_what_a_proxy_may_not_do_to_reasoning() -> None:
    client_body = {"input": [USER, REASONING, CALL, OUTPUT]}

    lost = responses.added(client_body, {"input": [USER, CALL, OUTPUT]})
    altered = responses.added(client_body, {"input": [USER, {**REASONING, "summary": [1]}, CALL, OUTPUT]})

    assert [found.rule for found in lost] == ["reasoning"]
    assert [found.rule for found in altered] == ["encrypted"]


async def post(standin: StandIn, path: str, body: Mapping[str, Any], **headers: str) -> tuple[int, bytes]:
    async with (
        client() as session,
        session.post(standin.base_url.removesuffix("/v1") + path, json=body, headers=headers) as response,
    ):
        return response.status, await response.read()


async def test_too_long_is_said_in_the_words_of_each_api() -> None:
    async with StandIn(window=20) as standin:
        long = "word " * 50
        _, first = await post(
            standin, "/v1/messages", {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": long}]}
        )
        _, second = await post(standin, "/v1/responses", {"model": "m", "input": long})

    assert orjson.loads(first)["error"]["message"] == "prompt is too long: 57 tokens > 20 maximum"
    assert orjson.loads(second)["error"]["code"] == "context_length_exceeded"


STREAMS = [
    ("/v1/messages", {"max_tokens": 5, "messages": [USER]}, ["message_start", "ping", "content_block_start"], "message_stop"),
    ("/v1/responses", {"input": "go"}, ["response.created", "response.in_progress", "response.output_item.added"], "response.completed"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "opening", "end"), STREAMS)
async def test_a_stream_has_the_events_of_its_api(
    path: str, body: dict[str, Any], opening: list[str], end: str
) -> None:
    async with StandIn() as standin:
        _, answer = await post(standin, path, {"model": "m", "stream": True, **body})

    names = [event.event for event in Events().feed(answer)]
    assert names[:3] == opening
    assert names[-1] == end


async def test_the_key_may_come_in_either_header() -> None:
    async with StandIn(key="k") as standin:
        body = {"model": "m", "max_tokens": 5, "messages": [USER]}
        answers = [
            (await post(standin, "/v1/messages", body, **headers))[0]
            for headers in ({"x-api-key": "k"}, {"authorization": "Bearer k"}, {})
        ]

    assert answers == [200, 200, 401]


async def test_an_api_that_is_not_there_is_not_found() -> None:
    async with StandIn(apis=["chat"]) as standin:
        statuses = [
            (await post(standin, path, {"model": "m", "max_tokens": 1, "messages": [USER], "input": "x"}))[0]
            for path in ("/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/responses/compact")
        ]

    assert statuses == [404, 404, 404, 404]


OLLAMAS_CALL = {"function": {"name": "look", "arguments": {}}}
BROKEN_OLLAMA: list[tuple[str, list[dict[str, Any]]]] = [
    ("type", [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
    ("type", [{"role": "user", "content": "hi", "images": ["no base64!"]}]),
    ("type", [USER, {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}]),
    ("type", [USER, {"role": "assistant", "tool_calls": [{**OLLAMAS_CALL, "turnfold.view": 1}]}]),
    ("content", [{"role": "user", "content": " "}]),
    ("unanswered", [USER, {"role": "assistant", "tool_calls": [OLLAMAS_CALL]}, USER]),
    ("orphan", [USER, {"role": "tool", "content": "found"}]),
    (
        "orphan",
        [USER, {"role": "assistant", "tool_calls": [OLLAMAS_CALL]}, *[{"role": "tool", "content": "found"}] * 2],
    ),
]


@pytest.mark.parametrize(("rule", "rows"), BROKEN_OLLAMA)
def test_a_conversation_that_breaks_a_rule_of_ollama_is_told_which(rule: str, rows: list[dict[str, Any]]) -> None:
    assert rule in [found.rule for found in ollama.violations({"messages": rows})]


async def test_ollama_refuses_what_is_over_its_num_ctx_and_streams_lines() -> None:
    long = {"model": "m", "messages": [{"role": "user", "content": "word " * 3000}]}
    async with StandIn(apis=("ollama",)) as standin, client() as session:
        url = f"{standin.base_url.removesuffix('/v1')}/api/chat"
        for options, status in (({"num_ctx": 2048}, 400), ({}, 200)):
            async with session.post(url, json={**long, "options": options}) as response:
                raw = await response.read()
                assert response.status == status
        assert [orjson.loads(line)["done"] for line in raw.splitlines()] == [False, False, False, True]
