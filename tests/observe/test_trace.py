"""Traces: a collector on a real socket gets a span for each request and each call, in the client's own trace."""

from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gateway.standin import StandIn
from tests import fakes
from tests.running import configured, in_process

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
CONTEXT = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=opaque"}
SECRET = "sk-this-key-must-appear-nowhere"
SMALL = {"models": {"m": {"context_window": 9000, "tokenizer": "o200k"}}}


class Collector:
    """What a collector of traces received."""

    def __init__(self) -> None:
        self.url, self.raw = "", b""
        self.spans = []
        self.services = set()

    async def receive(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.raw += raw
        sent = trace_service.ExportTraceServiceRequest.FromString(raw)
        named = [each for one in sent.resource_spans for each in one.resource.attributes if each.key == "service.name"]
        self.services |= {each.value.string_value for each in named}
        self.spans += [span for one in sent.resource_spans for scope in one.scope_spans for span in scope.spans]
        return web.Response()


@asynccontextmanager
async def collecting():
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.receive)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    try:
        yield collector
    finally:
        await runner.cleanup()


def attributes(span) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


async def test_a_request_and_its_calls_are_spans_of_the_clients_trace(standin: StandIn):
    standin.script.extend([fakes.refuse("openai", limit=3000, prompt=4000), fakes.reply()])
    body = {"model": "m", "messages": fakes.chat(60, 50)}
    async with (
        collecting() as collector,
        in_process(configured(standin, {**SMALL, "observe": {"traces": collector.url}})) as running,
    ):
        answer = await running.chat(body, {**CONTEXT, "authorization": f"Bearer {SECRET}"})
        assert answer.status == 200
    (request,) = [span for span in collector.spans if span.kind == span.SPAN_KIND_SERVER]
    calls = [span for span in collector.spans if span.kind == span.SPAN_KIND_CLIENT]
    known = attributes(request)

    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert request.parent_span_id.hex() == PARENT
    assert request.name == "chat m"
    assert known["gen_ai.operation.name"] == "chat"
    assert known["gen_ai.request.model"] == "m"
    assert known["gen_ai.usage.input_tokens"] > 0
    assert known["turnfold.why"] == "folded"
    assert known["turnfold.request_id"] == answer.headers["x-turnfold-request-id"]
    assert [event.name for event in request.events] == ["turnfold.refused"]
    assert [span.parent_span_id for span in calls] == [request.span_id] * 2
    assert [attributes(span)["http.response.status_code"] for span in calls] == [400, 200]
    sent = [seen.headers["traceparent"] for seen in standin.chats]
    assert sent == [f"00-{TRACE}-{span.span_id.hex()}-01" for span in calls]
    assert standin.chats[0].headers["tracestate"] == "vendor=opaque"
    assert SECRET.encode() not in collector.raw
    assert b"Question" not in collector.raw


async def test_a_client_without_a_trace_gets_one_and_an_unsampled_one_stays_unsampled(standin: StandIn):
    async with (
        collecting() as collector,
        in_process(configured(standin, {**SMALL, "observe": {"traces": collector.url}})) as running,
    ):
        await running.ask("GET", "/models")
        await running.chat({"model": "m", "messages": [fakes.user("Hi")]}, {"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert {span.name for span in collector.spans} == {"GET /v1/models", "call standin"}
    assert standin.chats[0].headers["traceparent"].startswith(f"00-{TRACE}-")
    assert standin.chats[0].headers["traceparent"].endswith("-00")


async def test_a_collector_that_is_away_disturbs_nobody(standin: StandIn):
    async with in_process(
        configured(standin, {**SMALL, "observe": {"traces": "http://127.0.0.1:9/v1/traces"}})
    ) as running:
        assert (await running.chat({"model": "m", "messages": [fakes.user("Hi")]})).status == 200


async def test_without_traces_the_clients_context_travels_on_as_it_came(standin: StandIn, gateway):
    running = await gateway(standin, SMALL)
    await running.chat({"model": "m", "messages": [fakes.user("Hi")]}, CONTEXT)
    assert standin.chats[0].headers["traceparent"] == CONTEXT["traceparent"]


@pytest.mark.parametrize(("variable", "name"), [(None, "turnfold"), ("chat-gateway", "chat-gateway")])
async def test_the_service_is_named_by_opentelemetrys_variable(monkeypatch, standin: StandIn, variable, name):
    if variable:
        monkeypatch.setenv("OTEL_SERVICE_NAME", variable)
    async with (
        collecting() as collector,
        in_process(configured(standin, {**SMALL, "observe": {"traces": collector.url}})) as running,
    ):
        await running.chat({"model": "m", "messages": [fakes.user("hi")]})
    assert collector.services == {name}
