"""Traces by OpenTelemetry: a span for each request and for each call to an upstream. Needs the extra ``otel``.

Spans carry what records carry: no text, no key. The conventions for generative models still change, so their names
stand in one table here: https://opentelemetry.io/docs/specs/semconv/gen-ai/.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import structlog
from multidict import CIMultiDict, CIMultiDictProxy
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway import __version__
from gateway.observe.exchange import Exchange

log = structlog.get_logger(__name__)

Read = Callable[[Exchange], Any]
ATTRIBUTES: Final[Mapping[str, Read]] = {
    # Generative models, as of semantic conventions 1.37
    "gen_ai.operation.name": lambda one: "chat" if one.format else one.path.rpartition("/")[2],
    "gen_ai.provider.name": lambda one: one.upstream,
    "gen_ai.request.model": lambda one: one.model,
    "gen_ai.response.model": lambda one: one.model_used,
    "gen_ai.conversation.id": lambda one: one.session or one.conversation,
    "gen_ai.usage.input_tokens": lambda one: one.prompt_tokens,
    "gen_ai.usage.output_tokens": lambda one: one.completion_tokens,
    # HTTP, as of semantic conventions 1.37
    "http.response.status_code": lambda one: one.status,
    "client.address": lambda one: one.client,
    "error.type": lambda one: one.error,
    # Ours: the fields of a record (docs/records.md)
    "turnfold.request_id": lambda one: one.request_id,
    "turnfold.action": lambda one: one.action,
    "turnfold.why": lambda one: one.why,
    "turnfold.mode": lambda one: one.mode,
    "turnfold.key": lambda one: one.key,
    "turnfold.window": lambda one: one.window,
    "turnfold.tokens_before": lambda one: one.tokens_before,
    "turnfold.tokens_after": lambda one: one.tokens_after,
    "turnfold.cached_tokens": lambda one: one.cached_tokens,
    "turnfold.turns_folded": lambda one: one.turns_folded,
    "turnfold.attempts": lambda one: one.attempts,
    "turnfold.lost.lines": lambda one: one.lost.lines,
    "turnfold.warning": lambda one: one.warning,
}
"""The attributes of a request's span. Empty values are left out."""
CLOSING_MS: Final = 3000
"""Milliseconds that a stopping process waits for its last spans to be sent."""

Headers = CIMultiDict[str] | CIMultiDictProxy[str]


class Tracing:
    """The tracer of one process, and the sender of its spans."""

    def __init__(self, endpoint: str) -> None:
        quiet = logging.getLogger("opentelemetry")
        quiet.handlers, quiet.propagate = [_Unsent()], False
        ours = Resource.create({"service.name": "turnfold", "service.version": __version__})
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win: operators name their services in one place.
        resource = ours.merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self._tracer = self._provider.get_tracer("turnfold", __version__)
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, method: str, path: str, root: str, headers: Headers) -> Iterator[None]:
        """Trace a request as long as it lasts, within the client's trace where it has one.

        ``root`` is the part of the path that names the span: of a bounded set.
        """
        carried = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        known = {"http.request.method": method, "url.path": path}
        span = self._tracer.start_span(
            f"{method} {root}".rstrip(), self._propagator.extract(carried), SpanKind.SERVER, attributes=known
        )
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield

    @contextmanager
    def call(self, upstream: str, model: str, headers: CIMultiDict[str]) -> Iterator[Span]:
        """Trace a call to an upstream; its trace context goes into the headers."""
        known = {"gen_ai.provider.name": upstream, "gen_ai.request.model": model}
        span = self._tracer.start_span(f"call {upstream}", kind=SpanKind.CLIENT, attributes=known)
        carried: dict[str, str] = {}
        self._propagator.inject(carried, trace.set_span_in_context(span))
        headers.update(carried)
        try:
            yield span
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))  # its text may quote a request
            raise
        finally:
            span.end()

    def observe(self, exchange: Exchange) -> None:
        """Complete the span of a request with its record."""
        span = trace.get_current_span()
        if not span.is_recording():
            return
        if exchange.format:
            span.update_name(f"chat {exchange.model}")
        for name, read in ATTRIBUTES.items():
            value = read(exchange)
            if value not in (None, ""):
                span.set_attribute(name, value)
        for call in exchange.calls:
            if call.sign:
                limit = {"turnfold.limit": call.limit} if call.limit is not None else {}
                span.add_event(
                    "turnfold.refused", {"turnfold.upstream": call.upstream, "turnfold.sign": call.sign, **limit}
                )
        if exchange.error or exchange.status >= 500:
            span.set_status(Status(StatusCode.ERROR, exchange.error))

    def close(self) -> None:
        """Send the last spans. Blocks; call it in a thread."""
        self._provider.force_flush(CLOSING_MS)
        self._provider.shutdown()


def answered(span: Span, status: int) -> None:
    """Note the status of a call's answer."""
    span.set_attribute("http.response.status_code", status)
    if status >= 400:
        span.set_status(Status(StatusCode.ERROR))


class _Unsent(logging.Handler):
    """Logs that spans could not be sent, without the exporter's text: it may name hosts and headers."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            log.warning("traces_not_sent")
