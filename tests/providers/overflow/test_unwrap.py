"""A refusal reads the same however many proxies wrapped it, and no field that repeats somebody's words is read."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from providers.overflow.signs import read_refusal
from providers.overflow.unwrap import LARGEST_BODY, unwrap

INNER = '{"error":{"message":"prompt is too long: 201000 tokens > 200000 maximum","type":"invalid_request_error"}}'


def j(value: Any) -> str:
    return orjson.dumps(value).decode()


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "a string in a message": lambda body: j({"error": {"message": body, "code": "bad_response_status_code"}}),
    "a string in a string": lambda body: j({"error": j({"error": {"message": body}})}),
    "raw metadata": lambda body: j({"error": {"message": "Provider returned error", "metadata": {"raw": body}}}),
    "in the middle of a text": lambda body: j({"detail": f"litellm.BadRequestError: 400 - {body}\nFallbacks=None"}),
    "a Python repr": lambda body: j({"error": {"message": f"APIError({body!r})"}}),
    "a repr of bytes": lambda body: j({"error": {"message": f"error: {body.encode()!r}"}}),
    "a list": lambda body: j([{"error": {"message": body}}]),
    "plain text": lambda body: f"502: upstream error: {body}",
    "an event": lambda body: "event: error\ndata: " + j({"error": {"message": body}}) + "\n\n",
    "an event without data": lambda body: f"error: {j(orjson.loads(body))}\n\n" if body[:1] == "{" else body,
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_wrapping_hides_nothing(name: str) -> None:
    assert "prompt is too long: 201000 tokens > 200000 maximum" in unwrap(WRAPPINGS[name](INNER).encode()).statements


def _recorded() -> list[dict[str, Any]]:
    files = sorted((Path(__file__).resolve().parents[2] / "bodies").glob("*/recorded.json"))
    records = [record for file in files for record in orjson.loads(file.read_bytes())]
    return [record for record in records if record["where"] == "http" and record["body"] and record["status"] >= 400]


@pytest.mark.parametrize("record", _recorded(), ids=lambda record: record["id"])
def test_recorded_answers_read_the_same_in_any_wrapping(record: dict[str, Any]) -> None:
    bare = read_refusal(record["status"], record["body"].encode())
    for name, wrap in WRAPPINGS.items():
        wrapped = read_refusal(record["status"], wrap(record["body"]).encode())
        assert (wrapped and replace(wrapped, sign="")) == (bare and replace(bare, sign="")), name


ECHO = "prompt is too long: 9000 tokens > 8192 maximum"


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"role": "assistant", "content": ECHO}}]},
        {"choices": [{"delta": {"content": ECHO}}], "error": None},
        {"error": {"message": "no", "failed_generation": ECHO}},
        {"error": {"message": "no", "metadata": {"flagged_input": ECHO}}},
        {"error": {"message": "no"}, "request": {"messages": [{"content": ECHO}]}},
        {"detail": [{"msg": "Input should be a valid string", "input": {"text": ECHO}, "loc": ["body"]}]},
        {"error": {"message": "{'guard': 'x', 'prompt_messages': [{'role': 'user', 'content': \"" + ECHO + '"}]}'}},
        {"error": {"message": "allowed: ['" + ECHO + "', 'b']"}},
        {"error": {"message": "{'prompt_messages': [" + "[]," * 2000 + "'" + ECHO + "']}"}},
        {"type": "response.created", "response": {"error": None, "instructions": ECHO, "input": [ECHO]}},
    ],
)
def test_what_repeats_other_peoples_words_is_not_read(body: Any) -> None:
    assert not any("too long" in statement for statement in unwrap(orjson.dumps(body)).statements)


def test_numbers_in_fields_of_their_own_are_kept() -> None:
    body = b'{"error":{"code":400,"message":"too long","n_prompt_tokens":14429,"n_ctx":8192}}'
    assert unwrap(body).counts == {"n_prompt_tokens": 14429, "n_ctx": 8192}


def test_a_page_of_html_says_nothing() -> None:
    assert unwrap(b"<html><title>413 Request Entity Too Large</title></html>").statements == []


def test_what_stands_beyond_the_bound_is_not_looked_at() -> None:
    assert unwrap(b" " * LARGEST_BODY + INNER.encode()).statements == []


@given(st.binary(max_size=300) | st.text(alphabet="{}[]\"'\\,:ax1 \n", max_size=300).map(str.encode))
def test_nothing_an_upstream_sends_breaks_the_reading(body: bytes) -> None:
    unwrap(body)
    read_refusal(400, body)
    read_refusal(200, body)


REPEATED = ["[", "[{", '{"a":', "[[],", "{},", '[{"a":', '["a",', '{\\"a\\":', "[\\'", "x_y ", '{"a":1},', "ﷺ", "9,"]
"""What a client may have a server repeat in its errors."""


@pytest.mark.parametrize("text", REPEATED)
@pytest.mark.parametrize("wrapped", ["plain", "a message", "messages"])
def test_any_amount_of_repeated_text_is_read_in_a_bounded_time(text: str, wrapped: str) -> None:
    """The event loop reads refusals. Sixty-four thousand brackets and braces once took it two minutes."""
    many = (text * LARGEST_BODY)[: LARGEST_BODY // 4]
    pieces = [f"{number} {many[number * 1000 : number * 1000 + 1000]}" * 3 for number in range(16)]
    bodies = {"plain": many.encode(), "a message": j({"error": {"message": many}}).encode()}
    body = bodies.get(wrapped) or j({"error": [{"message": piece} for piece in pieces]}).encode()
    read_refusal(400, b"maximum context length is 4096 tokens")  # compiles the patterns
    before = time.thread_time()
    read_refusal(400, body)

    assert time.thread_time() - before < 0.4


def test_a_reason_behind_many_values_and_one_among_braces_is_still_read() -> None:
    allowed = [f"model-{number}" for number in range(400)]
    error = {"error": {"allowed": allowed, "message": "maximum context length is 4096 tokens, got [{[{[{ 5000"}}

    assert read_refusal(400, j(error).encode()) is not None
