"""Compaction on any backend: the upstream's own where there is one, else our digest, which comes back opened."""

import gzip
from typing import Any

import orjson
import pytest

from gateway.standin import Completion, Raw, StandIn, responses
from gateway.standin.completion import error
from gateway.wire.compaction import SEAL
from providers.sse import Events
from tests.e2e.native import MODEL, RESPONSES

WINDOW = 4000
CONFIG = {"models": {MODEL: {"context_window": WINDOW, "tokenizer": "o200k"}}}
JSON = {"content-type": "application/json"}


def without(*missing: str) -> StandIn:
    return StandIn(window=WINDOW, apis={"chat", "messages", "responses", "counts", "compact"} - set(missing))


async def compact(running: Any, body: dict[str, Any]) -> Any:
    return await running.ask("POST", "/responses/compact", orjson.dumps(body), JSON)


async def test_an_upstream_that_compacts_is_asked(gateway):
    async with without() as standin:
        running = await gateway(standin, CONFIG)
        answer = await compact(running, RESPONSES.body(10))

    assert answer.json["output"] == [{"type": "compaction", "id": "cmp_standin", "encrypted_content": "c2VhbGVk"}]
    assert standin.requests[0].path == "/v1/responses/compact"


async def test_our_digest_comes_back_opened(gateway):
    async with without("compact") as standin:
        running = await gateway(standin, CONFIG)
        body = RESPONSES.body(60)
        body["input"][0]["content"] += " Remember: the invoice is number 88-1234."
        first, second = await compact(running, body), await compact(running, body)
        (item,) = first.json["output"]
        answer = await running.ask(
            "POST", "/responses", orjson.dumps({**body, "input": [item, *body["input"][-1:]]}), JSON
        )

    assert first.status == answer.status == 200
    assert first.json["object"] == "response.compaction"
    assert item["type"] == "compaction"
    assert item["encrypted_content"].startswith(SEAL)
    assert second.json["output"] == [item]
    sent = standin.requests[-1]
    assert responses.violations(sent.json) == []
    assert SEAL.encode() not in sent.body
    assert b"88-1234" in sent.body
    assert "Question 59." in sent.json["input"][0]["content"][1]["text"]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_trigger_is_answered_with_one_compaction_item(stream, gateway):
    async with without("compact") as standin:
        running = await gateway(
            standin,
            {
                **CONFIG,
                "upstreams": {"standin": {"provider": "openai", "base_url": standin.base_url, "compact": "ours"}},
            },
        )
        body = RESPONSES.body(20, stream=stream)
        body["input"].append({"type": "compaction_trigger"})
        answer = await running.ask("POST", "/responses", orjson.dumps(body), JSON)

    assert standin.requests == []
    if stream:
        events = [orjson.loads(event.data) for event in Events().feed(answer.body)]
        assert [event["type"] for event in events] == [
            "response.created", "response.output_item.added", "response.output_item.done", "response.completed",
        ]  # fmt: skip
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    else:
        items = answer.json["output"]
    assert [item["type"] for item in items] == ["compaction"]


async def test_a_trigger_that_the_upstream_does_not_know_is_answered_by_us(gateway):
    async with without("compact") as standin:
        running = await gateway(standin, CONFIG)
        wording = "Invalid value: 'compaction_trigger'. Supported values are: 'message', 'reasoning'."
        standin.script.append(error(400, wording))
        body = RESPONSES.body(20)
        body["input"].append({"type": "compaction_trigger"})
        answer = await running.ask("POST", "/responses", orjson.dumps(body), JSON)

    assert answer.status == 200
    assert [item["type"] for item in answer.json["output"]] == ["compaction"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_trigger_that_the_upstream_passes_over_is_answered_by_us(stream, gateway):
    """Codex ends its session at an answer without a compaction item."""
    async with without("compact") as standin:
        running = await gateway(standin, CONFIG)
        standin.script.append(Completion('I see no "type": "compaction" here.'))
        body = RESPONSES.body(20, stream=stream)
        body["input"].append({"type": "compaction_trigger"})
        answer = await running.ask("POST", "/responses", orjson.dumps(body), JSON)

    assert (answer.status, len(standin.requests)) == (200, 1)
    assert answer.body.count(b'"type":"compaction"') == (3 if stream else 1)
    assert b"I see no" not in answer.body


async def test_a_compaction_of_the_upstream_after_a_trigger_is_forwarded(gateway):
    item = b'{"output":[{"type": "compaction","id":"cmp_1","encrypted_content":"c2VhbGVk"}]}'
    async with without("compact") as standin:
        running = await gateway(standin, CONFIG)
        standin.script.append(Raw(200, (item[:30], item[30:]), JSON))
        body = RESPONSES.body(20)
        body["input"].append({"type": "compaction_trigger"})
        answer = await running.ask("POST", "/responses", orjson.dumps(body), JSON)

    assert answer.body == item


async def test_a_compaction_in_a_compressed_answer_is_found_however_its_bytes_arrive(gateway):
    packed = gzip.compress(b'{"output":[{"type":"compaction","id":"cmp_1","encrypted_content":"c2VhbGVk"}]}')
    async with without("compact") as standin:
        running = await gateway(standin, CONFIG)
        pieces = tuple(packed[at : at + 7] for at in range(0, len(packed), 7))
        standin.script.append(Raw(200, pieces, {**JSON, "content-encoding": "gzip"}))
        body = RESPONSES.body(20)
        body["input"].append({"type": "compaction_trigger"})
        answer = await running.ask("POST", "/responses", orjson.dumps(body), JSON)

    assert answer.body == packed


async def test_a_refused_trigger_whose_answer_breaks_off_is_a_fault_of_the_upstream(gateway):
    async with without() as standin:
        running = await gateway(standin, CONFIG)
        standin.script.append(Raw(400, (b'{"error":',), {**JSON, "content-length": "4096"}, end="reset"))
        body = RESPONSES.body(10)
        body["input"].append({"type": "compaction_trigger"})
        answer = await running.ask("POST", "/responses", orjson.dumps(body), JSON)
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")


STORED = [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"prompt": {"id": "pmpt_1"}}]


@pytest.mark.parametrize("compact_by", ["upstream", "ours"])
@pytest.mark.parametrize("more", [*STORED, {"input": [{"type": "item_reference", "id": "msg_1"}]}])
async def test_a_conversation_that_only_the_upstream_has_is_not_compacted_without_it(more, compact_by, gateway):
    async with without("compact") as standin:
        upstream = {"provider": "openai", "base_url": standin.base_url, "compact": compact_by}
        running = await gateway(standin, {**CONFIG, "upstreams": {"standin": upstream}})
        answer = await compact(running, {**RESPONSES.body(10), **more})

    assert answer.status == standin.requests[0].status == 404
    assert answer.action == "none"


async def test_an_unknown_model_is_not_compacted(gateway):
    async with StandIn(models=("other",)) as standin:
        running = await gateway(standin, CONFIG)
        answer = await compact(running, RESPONSES.body(10))

    assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found")


async def test_a_trigger_after_a_stored_response_gets_the_upstreams_refusal(gateway):
    async with without("compact") as standin:
        running = await gateway(standin, CONFIG)
        standin.script.append(error(400, "Invalid value: 'compaction_trigger'."))
        body = {**RESPONSES.body(2), "previous_response_id": "resp_1"}
        body["input"].append({"type": "compaction_trigger"})
        answer = await running.ask("POST", "/responses", orjson.dumps(body), JSON)

    assert answer.status == 400
