"""Bodies that are made to be expensive: the work grows as the body does, off the event loop, and none of it becomes an error of ours."""

import gzip
import re
import threading
from typing import Any

import orjson
import pytest

from gateway.context.life.refusal_numbers import is_echo
from gateway.standin import StandIn
from gateway.wire import chat, messages_edits, piecewise, responses_edits
from gateway.wire.chat import CHAT
from gateway.wire.format import Edits, Format
from gateway.wire.formats import FORMATS
from gateway.wire.message import OPENING_CHARACTERS
from gateway.wire.splice import splice
from tests.fakes import words
from tests.hostile.test_fair import calls
from tests.hostile.test_long_text import steps
from turnfold.library import fold

COUNTED = {"/messages/count_tokens": "messages", "/responses/input_tokens": "input"}


def one_step(format: Format, count: int) -> dict[str, Any]:
    """A conversation whose only step calls so many tools at once."""
    names = [f"call_{number}" for number in range(count)]
    question = {"role": "user", "content": "Look all of them up."}
    if format.name == "messages":
        asked = [{"type": "tool_use", "id": name, "name": "lookup", "input": {}} for name in names]
        told = [{"type": "tool_result", "tool_use_id": name, "content": "found"} for name in names]
        rows = [question, {"role": "assistant", "content": asked}, {"role": "user", "content": told}]
        return {"model": "m", "max_tokens": 100, "messages": rows}
    if format.name == "responses":
        items = [{"type": "function_call", "call_id": name, "name": "lookup", "arguments": "{}"} for name in names]
        items += [{"type": "function_call_output", "call_id": name, "output": "found"} for name in names]
        return {"model": "m", "input": [question, *items]}
    if format.name == "ollama":
        called = [{"function": {"name": "lookup", "arguments": {}}} for _ in names]
        found = [{"role": "tool", "tool_name": "lookup", "content": "found"} for _ in names]
        return {"model": "m", "messages": [question, {"role": "assistant", "tool_calls": called}, *found]}
    made = [{"id": name, "type": "function", "function": {"name": "lookup", "arguments": "{}"}} for name in names]
    results = [{"role": "tool", "tool_call_id": name, "content": "found"} for name in names]
    return {"model": "m", "messages": [question, {"role": "assistant", "content": None, "tool_calls": made}, *results]}


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_a_step_of_twice_the_calls_takes_twice_the_steps_to_read_and_write(format: Format) -> None:
    """Ten thousand calls at once kept the only thread for large work busy for minutes, and everybody else's long request waiting."""

    def work(count: int) -> None:
        asked = format.parse(orjson.dumps(one_step(format, count)), None)
        assert asked is not None
        shorter = tuple(dict(m, content="cut") if m["role"] == "tool" else m for m in asked.messages)
        format.encode(asked, Edits(messages=shorter))

    few, many = (steps(lambda count=count: work(count)) for count in (200, 800))

    assert many < 5 * few


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_an_old_step_of_four_times_the_calls_takes_four_times_the_steps_to_fold(format: Format) -> None:
    """Four thousand calls at once took half a minute: the message of the calls was read again for each result, and each of its arguments was
    shortened again and again."""

    def work(count: int) -> None:
        body = orjson.dumps(one_step(format, count)).replace(rb'"{}"', rb'"{\"number\":\"%s\"}"' % (b"word " * 12))
        body = re.sub(rb'"(input|arguments)":\{\}', rb'"\1":{"number":"%s"}' % (b"word " * 12), body)
        member = "input" if format.name == "responses" else "messages"
        asked = orjson.loads(body)
        asked[member] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
        assert fold(asked, window=4000, format=format.name).changed

    few, many = (steps(lambda count=count: work(count)) for count in (500, 2000))

    assert many < 5 * few


@pytest.mark.parametrize("place", [*range(9), 999_991])
@pytest.mark.parametrize(
    "quoted", ["the quick brown Fox jumps", "le garçon où l'été brûle", "上下文长度超过限制最大令牌数请缩短您的消息"]
)
def test_a_quotation_is_found_wherever_it_stands_in_a_large_body(quoted: str, place: int) -> None:
    said = f"{quoted}: maximum context length is 2048 tokens".encode()
    for text, echo in ((quoted, True), (" ".join(f"x{word}" for word in quoted[::-1]), False)):
        content = "z" * place + text + "z" * (1_000_000 - place)
        asked = CHAT.parse(orjson.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}), None)
        assert asked is not None
        assert is_echo(said, asked, 2048) is echo


@pytest.mark.parametrize("path", COUNTED)
async def test_a_request_is_counted_off_the_event_loop_and_within_the_limits(gateway, path: str) -> None:
    async with StandIn(apis=("chat", "messages", "responses")) as upstream:
        proxy = await gateway(upstream, {"server": {"max_messages": 5000}})
        for count, status in ((4000, 200), (6000, 400)):
            rows = [
                {"role": ("user", "assistant")[number % 2], "content": "0123456789" * 30} for number in range(count)
            ]
            body = orjson.dumps({"model": "m", COUNTED[path]: rows})
            with calls() as found:
                answer = await proxy.ask("POST", path, body, {"content-type": "application/json"})
            assert answer.status == status
            assert found.total() < count, found.most_common(8)


@pytest.mark.parametrize("path", ["/chat/completions", "/messages", "/responses", "/embeddings"])
async def test_a_body_nested_too_deep_for_its_alias_to_be_written_is_no_fault_of_ours(gateway, path: str) -> None:
    async with StandIn() as first, StandIn(rules=()) as second:
        upstreams = {
            name: {"provider": "openai", "base_url": each.base_url} for name, each in (("a", first), ("b", second))
        }
        models = {"alias": {"upstream": "b", "name": "real"}}
        proxy = await gateway(first, {"upstreams": upstreams, "default_upstream": "a", "models": models})
        body = b'{"model":"alias","note":"\\u0065","deep":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
        answer = await proxy.ask("POST", path, body, {"content-type": "application/json"})
        assert answer.status != 500
        assert first.requests == []
        assert [seen.body for seen in second.requests] == [body]


DEEP_CALLS = {
    "/chat/completions": '{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":%s}}]}',
    "/messages": '{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":%s}]}',
    "/responses": '{"type":"local_shell_call","id":"c","call_id":"c","action":%s}',
}
DEEP_RESULTS = {
    "/chat/completions": '{"role":"tool","tool_call_id":"c","content":"done"}',
    "/messages": '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"done"}]}',
    "/responses": '{"type":"local_shell_call_output","id":"o","call_id":"c","output":"done"}',
}


@pytest.mark.parametrize("levels", [300, 900])
@pytest.mark.parametrize("path", DEEP_CALLS)
async def test_a_conversation_with_a_deep_call_is_folded(gateway, path: str, levels: int) -> None:
    """Such a call could not be written as text in two formats, so the conversation was sent as it came."""
    async with StandIn(rules=()) as upstream:
        proxy = await gateway(upstream, {"models": {"m": {"context_window": 2000}}})
        deep = '{"a":[' * (levels // 2) + '"word"' + "]}" * (levels // 2)
        call = DEEP_CALLS[path] % (orjson.dumps(deep).decode() if path == "/chat/completions" else deep)
        rows = [f'{{"role":"{role}","content":"{words(60, n)}"}}' for n in range(20) for role in ("user", "assistant")]
        rows[1:1] = [call, DEEP_RESULTS[path]]
        member = "input" if path == "/responses" else "messages"
        body = f'{{"model":"m","{member}":[{",".join(rows)},{{"role":"user","content":"Hi"}}]}}'.encode()
        answer = await proxy.ask("POST", path, body, {"content-type": "application/json"})
        assert answer.action == "fold"
        assert answer.tokens[1] < 2000


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("path", ["/chat/completions", "/messages", "/responses"])
async def test_a_body_longer_than_is_folded_travels_on_as_it_came(gateway, path: str, packed: bool) -> None:
    async with StandIn(apis=("chat", "messages", "responses"), rules=()) as upstream:
        models = {"m": {"context_window": 2000}}
        proxy = await gateway(upstream, {"server": {"max_folded": "64KiB"}, "models": models})
        for size, folded in ((60_000, True), (80_000, False)):
            rows = [{"role": ("user", "assistant")[n % 2], "content": "word " * (size // 55)} for n in range(11)]
            member = "input" if path == "/responses" else "messages"
            body = orjson.dumps(
                {"model": "m", "max_tokens": 50, member: [*rows[:-1], {"role": "user", "content": "Hi"}]}
            )
            sent = gzip.compress(body) if packed else body
            headers = {"content-type": "application/json", **({"content-encoding": "gzip"} if packed else {})}
            answer = await proxy.ask("POST", path, sent, headers)
            assert answer.action == ("fold" if folded else "none")
            assert (upstream.requests[-1].body == sent) is not folded


def test_a_conversation_is_named_by_the_beginning_of_a_giant_text_alone(monkeypatch) -> None:
    """The name is made on the event loop: of a body that fits, the whole first message was parsed there."""
    said = "é😀\n" * 500_000
    longest = 0
    loads = orjson.loads

    def watched(raw: bytes) -> Any:
        nonlocal longest
        longest = max(longest, len(raw))
        return loads(raw)

    for content in (b'"%b"', b'[{"type":"text","text":"%b"},{"type":"text","text":"b"}]'):
        text = orjson.dumps(said)[1:-1]
        raw = b'{"model":"m","messages":[{"role":"user","content":%b}]}' % (content % text)
        monkeypatch.setattr(piecewise.orjson, "loads", watched)
        asked = CHAT.skim(raw, None)
        assert asked is not None
        opening = asked.opening
        monkeypatch.undo()
        assert opening == said[: len(opening)]
        assert len(opening) == OPENING_CHARACTERS
        assert longest <= piecewise.PIECE_BYTES + 2 + piecewise.LONGEST_ESCAPE


async def test_a_body_with_a_text_that_is_too_large_to_read_travels_on_as_it_came(gateway) -> None:
    """A single emoji makes each of eleven million letters take four bytes. Nothing is counted, so that nothing is learned from its bill."""
    async with StandIn(rules=()) as upstream:
        proxy = await gateway(upstream, {"models": {"m": {"context_window": 2000}}})
        said = "a" * (11 * 2**20) + "😀"
        body = orjson.dumps(
            {"model": "m", "messages": [{"role": "user", "content": said}, {"role": "user", "content": "Hi"}]}
        )
        answer = await proxy.chat(body)
        assert answer.action == "none"
        assert "x-turnfold-tokens-before" not in answer.headers
        assert upstream.requests[-1].body == body


@pytest.mark.parametrize(
    ("path", "member"), [("/chat/completions", "messages"), ("/messages", "messages"), ("/responses", "input")]
)
async def test_the_name_of_a_model_is_written_into_a_large_body_beside_the_event_loop(
    gateway, monkeypatch: pytest.MonkeyPatch, path: str, member: str
) -> None:
    """Of a body that fits, this was done on the event loop: five passes over 30 MB."""
    threads = []

    def watched(raw: bytes, changes: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return splice(raw, changes)

    for module in (chat, messages_edits, responses_edits):
        monkeypatch.setattr(module, "splice", watched)
    async with StandIn(apis=("chat", "messages", "responses"), rules=()) as upstream:
        models = {"alias": {"upstream": "standin", "name": "real", "context_window": 10_000_000}}
        proxy = await gateway(upstream, {"models": models})
        body = orjson.dumps(
            {"model": "alias", "max_tokens": 50, member: [{"role": "user", "content": "word " * 120_000}]}
        )
        await proxy.ask("POST", path, body, {"content-type": "application/json"})
        assert upstream.requests[-1].body == body.replace(b"alias", b"real")
    assert threads and all(name.startswith("work-") for name in threads)
