"""Every request leaves one record that says what became of it, and an operator finds it."""

import asyncio
import random
import sqlite3
from pathlib import Path

import orjson
import pytest

from gateway.serve.answers.tail import STREAM_TAIL
from gateway.standin import Raw, StandIn
from gateway.standin.answers import EVENTS, JSON
from tests import fakes, raw
from tests.compressed import PACK
from tests.running import Gateway, configured, in_process

SMALL = {"models": {"m": {"context_window": 2000, "tokenizer": "o200k"}}}
SECRET = "sk-this-key-must-appear-nowhere"


async def asked(gateway: Gateway, path: str, status: int = 200):
    """Ask the admin port."""
    async with gateway.session.get(gateway.admin_url + path) as answer:
        body = await answer.read()
        assert answer.status == status, body
        return orjson.loads(body)


def body(messages, **more) -> bytes:
    return orjson.dumps({"model": "m", "messages": messages, **more})


HI = [{"role": "user", "content": "Hello there"}]
KINDS = [
    ("POST", "/chat/completions", body(HI), 200, "proven", "none"),
    ("POST", "/chat/completions", body(fakes.chat(60, 50)), 200, "folded", "fold"),
    ("POST", "/chat/completions", body(HI, max_tokens=5000), 200, "lowered", "fold"),
    ("POST", "/chat/completions", b"{no json", 400, "not_json", "none"),
    ("POST", "/chat/completions", b'{"messages": 3}', 400, "not_understood", "none"),
    ("POST", "/responses", orjson.dumps({"model": "m", "input": "Hello"}), 200, "proven", "none"),
    ("POST", "/messages", body(HI, max_tokens=100), 200, "proven", "none"),
    ("POST", "/embeddings", orjson.dumps({"model": "m", "input": "x"}), 200, "not_chat", "none"),
    ("GET", "/files/f/content", b"", 200, "not_chat", "none"),
    ("GET", "/nothing/of/the/kind", b"", 404, "unknown_endpoint", "none"),
    ("GET", "/../etc", b"", 400, "rejected", "error"),
]


async def test_the_record_of_a_request_that_no_upstream_answers_says_what_was_sent(standin: StandIn, gateway):
    running = await gateway(
        standin, {**SMALL, "upstreams": {"standin": {"provider": "openai", "base_url": "http://127.0.0.1:9/v1"}}}
    )
    answer = await running.chat(body(fakes.chat(60, 50)))
    (record,) = await asked(running, "/api/exchanges")
    assert (answer.status, record["error"], record["status"]) == (502, "upstream_unreachable", 502)
    assert (record["window"], answer.headers["x-turnfold-window"]) == (2000, "2000")
    assert (record["action"], record["why"], record["turns_folded"] > 0) == ("error", "folded", True)
    assert record["tokens_after"] < 2000 < record["tokens_before"]


@pytest.mark.parametrize(
    ("method", "path", "raw", "status", "why", "action"), KINDS, ids=[f"{one[4]} {one[1]}" for one in KINDS]
)
async def test_a_request_of_any_kind_leaves_one_record_with_its_reason(
    standin: StandIn, gateway, method, path, raw, status, why, action
):
    running = await gateway(standin, SMALL)
    answer = await running.ask(
        method, path, raw, {"content-type": "application/json", "authorization": f"Bearer {SECRET}"}
    )
    (record,) = await asked(running, "/api/exchanges")

    assert (record["why"], record["action"]) == (why, action)
    assert record["status"] == answer.status
    assert record["request_id"] == answer.headers["x-turnfold-request-id"]
    assert (record["client"], record["method"], record["path"]) == ("127.0.0.1", method, f"/v1{path}")
    assert (record["body_bytes"], record["answer_bytes"]) == (len(raw), len(answer.body))
    assert record["time"].endswith("Z")
    assert SECRET not in str(record)
    assert (await asked(running, f"/api/exchanges/{record['request_id']}"))["why"] == why


async def test_the_answers_header_gives_the_reason(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    assert (await running.chat(body(HI))).headers["x-turnfold-why"] == "proven"
    assert (await running.chat(body(fakes.chat(60, 50)))).headers["x-turnfold-why"] == "folded"
    assert (await running.ask("GET", "/models")).headers["x-turnfold-why"] == "not_chat"
    assert (await running.chat(b"{")).headers["x-turnfold-why"] == "not_json"


async def test_what_was_lost_and_what_fills_the_window_is_told_in_numbers(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    await running.chat(body(fakes.chat(60, 50)))
    (record,) = await asked(running, "/api/exchanges")
    parts, lost = record["parts"], record["lost"]

    assert lost["turns"] == record["turns_folded"] > 10
    assert lost["lines"] > 0
    assert sum(value for name, value in parts.items() if name != "reserve") == record["tokens_after"]
    assert min(parts[name] for name in ("system", "digest", "quotes", "history", "question")) > 0
    assert record["tokens_after"] + parts["reserve"] <= record["window"]


async def test_lost_images_and_cut_questions_are_counted(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
    first = {"role": "user", "content": [{"type": "text", "text": "Look"}, image, image]}
    await running.chat(body([first, *fakes.chat(40, 50)[1:]]))
    (record,) = await asked(running, "/api/exchanges")
    assert record["lost"]["images"] == 2

    long = fakes.words(4000)
    answer = await running.chat(body([fakes.user(long)]))
    record = (await asked(running, "/api/exchanges"))[0]
    assert 0 < record["lost"]["question_characters"] < len(long)
    assert answer.headers["x-turnfold-warning"].startswith("question-cut")


async def test_every_call_is_told_with_its_sign_and_limit(standin: StandIn, gateway):
    running = await gateway(standin, {"models": {"m": {"context_window": 9000, "tokenizer": "o200k"}}})
    standin.script.extend([fakes.refuse("openai", limit=3000, prompt=4000), fakes.reply()])
    await running.chat(body(fakes.chat(60, 50)))
    (record,) = await asked(running, "/api/exchanges")
    refused, good = record["calls"]

    assert (refused["status"], refused["limit"], good["status"], good["sign"]) == (400, 3000, 200, "")
    assert refused["sign"] == record["refusals"][0]
    assert refused["tokens"] > good["tokens"] > 0


async def test_a_conversation_keeps_its_name_while_it_grows(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    whole = fakes.chat(60, 50)
    for length in (2, 6, 60, len(whole)):
        await running.chat(body(whole[:length]), {"authorization": "Bearer one"})
    await running.chat(body(whole[:2]), {"authorization": "Bearer another"})
    records = await asked(running, "/api/exchanges")
    names = [record["conversation"] for record in records]

    assert len(set(names[1:])) == 1
    assert names[0] != names[1], "two callers never share a conversation"
    found = await asked(running, f"/api/conversations/{names[1]}")
    assert found["requests"] == 4
    assert [one["at"] for one in found["exchanges"]] == sorted(one["at"] for one in found["exchanges"])
    assert found["folded"] >= 1
    await asked(running, "/api/conversations/0123", 404)


async def test_a_new_beginning_is_a_new_name_and_the_session_finds_both(standin: StandIn, gateway):
    """A client's own compaction replaces the first message: nothing of the text says that it is the same conversation."""
    running = await gateway(standin, SMALL)
    session = {"x-session-id": "desk-7"}
    whole = fakes.chat(20, 20)
    compacted = [whole[0], fakes.user("Summary of what was said so far."), *whole[-3:]]
    await running.chat(body(whole), session)
    await running.chat(body(compacted), session)
    await running.chat(body(whole), {"x-session-id": "desk-8"})
    records = await asked(running, "/api/exchanges?session=desk-7")

    assert len(records) == 2
    assert records[0]["conversation"] != records[1]["conversation"]
    assert len(await asked(running, f"/api/exchanges?conversation={records[1]['conversation']}")) == 2, (
        "alike beginnings share a name"
    )


async def test_records_are_found_by_key_model_time_and_number(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    for model in ("a", "b", "a"):
        await running.chat({"model": model, "messages": HI})
    newest = (await asked(running, "/api/exchanges?limit=1"))[0]

    assert len(await asked(running, "/api/exchanges?model=a")) == 2
    assert len(await asked(running, "/api/exchanges?since=1h")) == 3
    assert len(await asked(running, f"/api/exchanges?until={newest['at']}")) == 2
    assert await asked(running, "/api/exchanges?key=nobody") == []
    for wrong in ("limit=x", "since=soon", "colour=red"):
        told = await asked(running, f"/api/exchanges?{wrong}", 400)
        assert wrong.partition("=")[0] in told["error"]["message"]


def events(*data: bytes) -> tuple[bytes, ...]:
    return tuple(b"data: " + each + b"\n\n" for each in data)


STREAMS = {
    "/chat/completions": events(
        b'{"choices":[{"index":0,"delta":{"content":"Hi"}}]}',
        b'{"choices":[],"usage":{"prompt_tokens":21,"completion_tokens":3}}',
        b"[DONE]",
    ),
    "/responses": events(
        b'{"type":"response.output_text.delta","delta":"Hi"}',
        b'{"type":"response.completed","response":{"usage":{"input_tokens":21,"output_tokens":3}}}',
    ),
    "/completions": events(
        b'{"choices":[{"index":0,"text":"Hi"}]}',
        b'{"choices":[],"usage":{"prompt_tokens":21,"completion_tokens":3}}',
        b"[DONE]",
    ),
    "/messages": events(
        b'{"type":"message_start","message":{"usage":{"input_tokens":21,"output_tokens":1}}}',
        b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}',
        b'{"type":"message_delta","usage":{"output_tokens":3}}',
        b'{"type":"message_stop"}',
    ),
}


async def left_after(running: Gateway, path: str, last: bytes):
    """Ask for a stream, close the connection once these bytes have come, and return the record."""
    asked_with = orjson.dumps({"model": "m", "messages": HI, "input": "Hello", "max_tokens": 50, "stream": True})
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(raw.request(f"/v1{path}", "POST", asked_with, content_type="application/json"))
    await reader.readuntil(last)
    writer.close()
    async with asyncio.timeout(10):
        while not (records := await asked(running, "/api/exchanges")):  # noqa: ASYNC110  # it has no event to wait for
            await asyncio.sleep(0)
    return records[0]


@pytest.mark.parametrize("path", STREAMS)
async def test_a_client_that_closes_after_the_last_event_has_its_answer_and_its_bill(standin: StandIn, gateway, path):
    """Codex does: it reads no further than `response.completed`."""
    standin.script.append(Raw(200, STREAMS[path], {"content-type": EVENTS}, end="silence"))
    record = await left_after(await gateway(standin, SMALL), path, STREAMS[path][-1])

    assert (record["status"], record["error"]) == (200, "")
    assert (record["prompt_tokens"], record["completion_tokens"]) == (21, 3)


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("kind", [EVENTS, JSON])
async def test_the_bill_at_the_end_of_a_long_compressed_answer_is_read(standin: StandIn, gateway, kind, encoding):
    said = b'{"choices":[{"index":0,"delta":{"content":"%b"}}]' % random.Random(7).randbytes(60_000).hex().encode()
    usage = b'"usage":{"prompt_tokens":21,"completion_tokens":3}}'
    whole = (
        b"".join(events(said + b"}", b'{"choices":[],' + usage, b"[DONE]")) if kind == EVENTS else said + b"," + usage
    )
    packed = PACK[encoding](whole)
    chunks = tuple(packed[at : at + 4000] for at in range(0, len(packed), 4000))
    standin.script.append(Raw(200, chunks, {"content-type": kind, "content-encoding": encoding}))
    running = await gateway(standin, SMALL)
    answer = await running.ask(
        "POST", "/chat/completions", body(HI, stream=kind == EVENTS), {"accept-encoding": encoding}
    )
    (record,) = await asked(running, "/api/exchanges")

    assert answer.body == packed
    assert len(packed) > STREAM_TAIL
    assert (record["prompt_tokens"], record["completion_tokens"]) == (21, 3)


async def test_the_bill_behind_a_generated_image_is_read(standin: StandIn, gateway):
    image = {"type": "image_generation_call", "result": "iVBORw0K" * 250_000}
    whole = orjson.dumps({"output": [image], "usage": {"input_tokens": 21, "output_tokens": 3}})
    standin.script.append(Raw(200, (whole[:50_000], whole[50_000:])))
    running = await gateway(standin, SMALL)
    await running.ask("POST", "/responses", orjson.dumps({"model": "m", "input": "Draw."}))
    (record,) = await asked(running, "/api/exchanges")

    assert (record["prompt_tokens"], record["completion_tokens"]) == (21, 3)


async def test_a_client_that_leaves_in_the_middle_is_gone_with_the_bill_that_has_come(standin: StandIn, gateway):
    standin.script.append(Raw(200, STREAMS["/messages"][:2], {"content-type": EVENTS}, end="silence"))
    record = await left_after(await gateway(standin, SMALL), "/messages", STREAMS["/messages"][1])

    assert (record["status"], record["error"], record["prompt_tokens"]) == (200, "client_gone", 21)


FAULTS = {
    "/chat/completions": b'{"error":{"message":"out of memory","code":500}}',
    "/responses": b'{"type":"response.failed","response":{"error":{"code":"server_error"}}}',
    "/messages": b'{"type":"error","error":{"type":"overloaded_error"}}',
}


@pytest.mark.parametrize("path", FAULTS)
@pytest.mark.parametrize("done", [(), events(b"[DONE]")], ids=["alone", "before the mark of the end"])
async def test_a_fault_at_the_end_of_a_stream_is_in_its_record(standin: StandIn, gateway, path, done):
    """The status was sent before, so only the record can tell it."""
    said = STREAMS[path][:-1] if path != "/chat/completions" else STREAMS[path][:1]
    standin.script.append(Raw(200, (*said, *events(FAULTS[path]), *done), {"content-type": EVENTS}))
    running = await gateway(standin, SMALL)
    asked_with = orjson.dumps({"model": "m", "messages": HI, "input": "Hello", "max_tokens": 50, "stream": True})
    await running.ask("POST", path, asked_with)
    (record,) = await asked(running, "/api/exchanges")

    assert (record["status"], record["error"]) == (200, "response_failed")


async def test_records_outlive_a_restart_and_a_caller_can_be_forgotten(standin: StandIn, tmp_path: Path):
    config = {**SMALL, "store": {"url": f"sqlite:///{tmp_path}/turnfold.db"}}
    async with in_process(configured(standin, config)) as first:
        await first.chat(body(HI), {"authorization": "Bearer one"})
        await first.chat(body(HI), {"authorization": "Bearer two"})
    async with in_process(configured(standin, config)) as second:
        records = await asked(second, "/api/exchanges")

        assert len(records) == 2
        async with second.session.post(
            f"{second.admin_url}/api/forget", json={"key_hash": records[0]["caller"]}
        ) as answer:
            assert answer.status == 200
        assert [one["caller"] for one in await asked(second, "/api/exchanges")] == [records[1]["caller"]]


async def test_records_in_the_file_are_bounded_and_hold_no_text(standin: StandIn, tmp_path: Path):
    store = {"store": {"url": f"sqlite:///{tmp_path}/turnfold.db"}, "observe": {"max_records": 3}}
    async with in_process(configured(standin, {**SMALL, **store})) as running:
        for _ in range(5):
            await running.chat(body(fakes.chat(60, 50)))
    async with in_process(configured(standin, {**SMALL, **store})) as again:
        await again.chat(body(HI))
    file = tmp_path / "turnfold-records.db"
    with sqlite3.connect(file) as connection:
        (count,) = connection.execute("SELECT count(*) FROM exchanges").fetchone()
    connection.close()

    assert count == 4, "three were left, and one is new"
    assert b"Question 1" not in file.read_bytes()


STORED = {**SMALL, "observe": {"text": True}}
LONG = body(fakes.chat(60, 50), max_tokens=0)


@pytest.mark.parametrize(
    ("asked_with", "header"),
    [
        (LONG.replace(b":0", b":%d" % 10**40), b""),
        (LONG, b"x-session-id: caf\xe9\r\n"),  # ISO 8859-1
        (LONG.replace(b'"m"', b'"m\\ud83e"'), b""),
        (LONG.replace(b"Question 3", b"\\ud83e\\ud83e"), b""),
    ],
    ids=[
        "a number beyond 64 bits",
        "a header that is no UTF-8",
        "half an emoji in the model",
        "half an emoji in a text",
    ],
)
async def test_no_number_and_no_text_keeps_records_from_being_written_and_read(
    standin: StandIn, tmp_path: Path, asked_with: bytes, header: bytes
):
    config = configured(standin, {**STORED, "store": {"url": f"sqlite:///{tmp_path}/turnfold.db"}})
    async with in_process(config) as running:
        plain = raw.request("/v1/chat/completions", "POST", asked_with, content_type="application/json")
        await raw.ask(running.port, plain.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n", 1))
        await running.settled()
        first = (await asked(running, "/api/exchanges"))[0]["request_id"]
        assert (await asked(running, f"/api/exchanges/{first}"))["text"]
        await asked(running, "/api/sums")
        await running.chat(body(HI))
        async with running.session.get(running.admin_url + "/metrics") as metrics:
            assert "turnfold_degraded_total{" not in await metrics.text()
    async with in_process(config) as again:
        assert len(await asked(again, "/api/exchanges")) == 2


async def test_nothing_is_stored_when_that_is_off(standin: StandIn, tmp_path: Path):
    store = {"store": {"url": f"sqlite:///{tmp_path}/turnfold.db"}, "observe": {"keep": "0"}}
    async with in_process(configured(standin, {**SMALL, **store})) as running:
        await running.chat(body(HI))
        assert len(await asked(running, "/api/exchanges")) == 1
    assert not (tmp_path / "turnfold-records.db").exists()


async def test_text_is_kept_only_where_it_is_switched_on(standin: StandIn, gateway):
    quiet = await gateway(standin, SMALL)
    talking = await gateway(standin, {**SMALL, "observe": {"text": True}})
    for running in (quiet, talking):
        await running.chat(body(fakes.chat(60, 50)))
        await running.settled()
    (silent,), (record,) = [await asked(one, "/api/exchanges") for one in (quiet, talking)]
    told = await asked(talking, f"/api/exchanges/{record['request_id']}")

    assert "text" not in record
    assert (await asked(quiet, f"/api/exchanges/{silent['request_id']}"))["text"] is None
    assert {line["kept"] for line in told["text"]} == {True, False}
    assert all(line["why"] for line in told["text"])
    assert any("Question 1" in line["text"] for line in told["text"])


async def test_the_status_tells_the_parts_and_no_secret(standin: StandIn, gateway):
    running = await gateway(
        standin, {"upstreams": {"standin": {"provider": "openai", "base_url": standin.base_url, "api_key": SECRET}}}
    )
    status = await asked(running, "/api/status")

    assert status["upstreams"] == [{"name": "standin", "provider": "openai", "default": True, "resting": False}]
    assert status["store"] == {"kind": "memory", "resting": []}
    assert status["requests_open"] == 0
    assert SECRET not in str(status)


async def test_a_client_that_leaves_while_nothing_is_decided_has_left_and_nothing_has_failed(gateway):
    """In the middle of its body, or while the upstream is asked for the model's window and does not answer."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked_upstream.set()
        await reader.read()
        writer.close()

    asked_upstream = asyncio.Event()
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        running = await gateway(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        whole = raw.request("/v1/chat/completions", "POST", body([fakes.user("x" * 20_000)]), content_type=JSON)
        for sent, waits in ((whole[:1000], False), (whole, True)):
            _reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(sent)
            await writer.drain()
            if waits:
                await asked_upstream.wait()
            writer.close()
        async with asyncio.timeout(10):
            while len(records := await asked(running, "/api/exchanges")) < 2:  # noqa: ASYNC110  # it has no event to wait for
                await asyncio.sleep(0)

    assert [(each["status"], each["error"], each["why"]) for each in records] == [(499, "client_gone", "left")] * 2
