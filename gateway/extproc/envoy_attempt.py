"""One attempt of Envoy at one request: first the request's headers and body, then the answer's headers and body.

Envoy waits for a reply to each message. After a failure of our own the message passes unchanged; the failure is counted and logged.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError
from msgspec.structs import replace
from multidict import CIMultiDict

from gateway.context.life.replies import Reply
from gateway.context.life.states import Answered, Ready, State, TooLarge
from gateway.extproc import carried, protocol, replies
from gateway.extproc.carried import Carried, CarriedRefusal
from gateway.extproc.deciding import EnvoyRequest, after, decide
from gateway.observe.exchange import Call, Exchange
from gateway.serve.answers.answer import LONGEST_ERROR
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.incoming.encoding import decoder_for, readable_encodings
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.headers import OURS
from gateway.serve.incoming.limits import check_request, check_text
from gateway.serve.record import LONGEST_PATH
from gateway.serve.request import outcome
from gateway.serve.request.mode import mode_for
from gateway.serve.request.outcome import Delivery, Times, Traffic
from gateway.serve.request.sessions import session_of
from gateway.upstream.refusals import refusal_from
from gateway.wire.format import Conversation, Format
from gateway.wire.formats import FORMATS

PARTS: Final = (
    "request_headers",
    "request_body",
    "response_headers",
    "response_body",
    "request_trailers",
    "response_trailers",
)
"""The parts of a request and its answer that Envoy may send."""
RETRY: Final = "x-turnfold-retry"
"""A header on an answer. It tells Envoy's retry policy that a smaller request can follow."""
MODE: Final = "x-turnfold-mode"
"""The header with the mode that the client asks for; only the first attempt still has it."""
ATTEMPT: Final = "x-envoy-attempt-count"
"""The header with the number of the attempt; Envoy sends it only if the processor runs again for a retry."""


class ProtocolError(Exception):
    """Envoy sent something that is no message of the protocol."""


@dataclass(slots=True)
class EnvoyAttempt:
    """The state of one attempt. It is mutable, because each message adds to it; only its own methods change it."""

    gateway: Gateway
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    carried: Carried = carried.NOTHING
    served: EnvoyRequest | None = None
    state: State | None = None
    """What was sent: `Ready`, or `TooLarge` when the client got our refusal."""
    status: int = 0
    answer_headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    times: Times = field(default_factory=lambda: Times(time.perf_counter()))
    done: bool = False
    """Whether this attempt makes no record any more: it was made, or the next attempt makes it."""

    async def reply(self, raw: bytes) -> bytes:
        """Return the reply to one message of Envoy. Raises ProtocolError for anything else."""
        try:
            message = protocol.parse("ProcessingRequest", raw)
        except DecodeError as error:
            raise ProtocolError("not a ProcessingRequest") from error
        part = next((name for name in PARTS if message.HasField(name)), None)
        if part is None:
            raise ProtocolError("a ProcessingRequest without a part that is known here")
        try:
            return await self._reply(part, message)
        except Exception as error:  # noqa: BLE001  # promise 6: what fails here passes as it came
            self.gateway.failed("extproc", error)
            length = len(message.request_body.body) if part == "request_body" else None
            return replies.let_pass(part, headers={"content-length": str(length)} if length is not None else None)

    async def _reply(self, part: str, message: Any) -> bytes:
        match part:
            case "request_headers":
                return self._on_request_headers(message)
            case "request_body":
                return await self._on_request_body(message.request_body.body)
            case "response_headers":
                return await self._on_response_headers(message.response_headers)
            case "response_body":
                return await self._on_response_body(message.response_body.body)
            case _:
                return replies.let_pass(part)

    def _on_request_headers(self, message: Any) -> bytes:
        """Read the headers of a request; remove ours, and keep the mode for later attempts."""
        self.headers = _headers(message.request_headers)
        self.carried = carried.from_metadata(message)
        keeps = None
        if MODE in self.headers and self.carried.mode is None:
            keeps = self.carried = self.carried._replace(mode=self.headers[MODE][:40])
        changed: dict[str, str] = {}
        if self._format is not None and "accept-encoding" in self.headers:
            changed["accept-encoding"] = readable_encodings(self.headers["accept-encoding"])
        return replies.let_pass("request_headers", headers=changed, removed=_our_headers(self.headers), carried=keeps)

    @property
    def _format(self) -> Format | None:
        """The format of the request's body; None for a path that is not folded."""
        path = self.headers.get(":path", "").partition("?")[0].removesuffix("/")
        if self.headers.get(":method") != "POST":
            return None
        return next((format for known, format in FORMATS.items() if path.endswith(known.removeprefix("/v1"))), None)

    async def _on_request_body(self, body: bytes) -> bytes:
        """Decide what is sent instead of a request's body. The length is always set, because a retry still has that of the attempt before."""
        self.times.read = time.perf_counter()
        length = {"content-length": str(len(body))}
        request = await self._parse(body)
        if request is None:
            return replies.let_pass("request_body", headers=length)
        try:
            self.served = self._request_of(request)
        except ClientError as error:
            error_body = request.format.error(str(error), error.code, error.type, None)
            return replies.answer(error.status, self.gateway.own_headers("error"), error_body)
        self.state = await decide(self.served, self.carried.refusals)
        self.times.decided = time.perf_counter()
        if isinstance(self.state, TooLarge):
            refusal = await self.gateway.threads.run(self.state.write_refusal, size_bytes=len(body))
            headers = outcome.headers(outcome.of(self.state), self.served.request_id)
            self._record(Delivery(400, "context_length_exceeded"))
            return replies.answer(400, headers, refusal)
        attempt = self.state.attempt if isinstance(self.state, Ready) else None
        if attempt is None or attempt.body == body:
            return replies.let_pass("request_body", headers=length)
        headers = {"content-length": str(len(attempt.body))}
        for name, value in request.format.drop_thinking_headers.items() if attempt.may_drop_thinking else ():
            headers[name] = ",".join([*self.headers.getall(name, ()), value])
        return replies.let_pass("request_body", headers=headers, body=attempt.body)

    async def _parse(self, body: bytes) -> Conversation | None:
        """Parse a body; None when it is passed unchanged: it is no conversation, compressed, too long or too complex."""
        format, limits = self._format, self.gateway.settings.server
        if format is None or "content-encoding" in self.headers or len(body) > min(limits.max_body, limits.max_folded):
            return None
        gateway = self.gateway

        def parsed() -> Conversation | None:
            check_text(body, limits)
            found = format.read(body, gateway.memory)
            if found is not None:
                check_request(found, limits)
            return found

        try:
            found = await gateway.threads.run(parsed, size_bytes=len(body) // READS_FASTER)
        except ClientError:
            return None  # too complex to look into: the upstream judges it
        setup = gateway.setup
        known = found is None or setup.targets[setup.settings.route(found.model).upstream].serves("POST", format.path)
        return found if known else None

    def _request_of(self, conversation: Conversation) -> EnvoyRequest:
        """Return a parsed request with its settings and its caller. Raises ClientError for a mode that is not allowed."""
        setup = self.gateway.setup
        route = setup.settings.route(conversation.model)
        mode = mode_for(self.carried.mode, route)
        request_id = self.headers.get("x-request-id") or self.gateway.request_id()
        return EnvoyRequest(
            self.gateway, setup, route, conversation, mode, self.headers, request_id[:128], self._address
        )

    @property
    def _address(self) -> str:
        """The client's address as the nearest proxy saw it."""
        return self.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()[:64]

    async def _on_response_headers(self, message: Any) -> bytes:
        """Read the headers of an answer. The body of an error is requested too; any other answer passes at once."""
        self.times.first_byte = time.perf_counter()
        self.answer_headers = _headers(message)
        status = self.answer_headers.get(":status", "")
        self.status = int(status) if status.isdigit() else 0
        removed = _our_headers(self.answer_headers)
        if self.served is None or not isinstance(self.state, Ready):
            return replies.let_pass("response_headers", removed=removed)
        if self.status < 400:
            return self._pass_answer("response_headers", Reply(self.status), removed)
        if message.end_of_stream:
            return await self._judge("response_headers", b"", removed)
        return replies.let_pass("response_headers", removed=removed, read_answer=True)

    async def _on_response_body(self, body: bytes) -> bytes:
        """Read the body of an error."""
        decoder = decoder_for(self.answer_headers)
        error_body = decoder.decode(body, LONGEST_ERROR) if decoder is not None else body
        return await self._judge("response_body", error_body, ())

    async def _judge(self, part: str, error_body: bytes, removed: tuple[str, ...]) -> bytes:
        """Let an error pass, or mark it for Envoy's retry if it says "too long" and a smaller request can follow."""
        served, sent = self.served, self.state
        assert served is not None and isinstance(sent, Ready)
        provider = served.setup.targets[served.route.upstream].provider
        refusal = refusal_from(provider, served.conversation.format, self.status, error_body)
        reply = Reply(self.status, refusal, error_body)
        if refusal is None or ATTEMPT not in self.headers:
            return self._pass_answer(part, reply, removed)
        following = await after(served, sent, reply)
        if not isinstance(following, Ready):
            return self._pass_answer(part, reply, removed, following)
        carried = CarriedRefusal.of(refusal, len(sent.attempt.body))
        keeps = self.carried._replace(refusals=(*self.carried.refusals, carried))
        self.done = True  # the next attempt makes the record
        headers = {RETRY: "smaller", **outcome.headers(outcome.of(_final_state(sent, reply)), served.request_id)}
        return replies.let_pass(part, headers=headers, removed=removed, carried=keeps)

    def _pass_answer(self, part: str, reply: Reply, removed: tuple[str, ...], end: State | None = None) -> bytes:
        """Let an answer pass to the client, with the headers that say what was done. ``end`` is the last state, where one was reached."""
        assert self.served is not None and isinstance(self.state, Ready)
        self.state = end or _final_state(self.state, reply)
        headers = outcome.headers(outcome.of(self.state), self.served.request_id)
        return replies.let_pass(part, headers=headers, removed=[name for name in removed if name not in headers])

    def close(self) -> None:
        """Make the record of the request, unless it was made or the next attempt makes it."""
        if not self.done and self.state is not None:
            self._record(Delivery(self.status) if self.status else Delivery(499, "no_answer"))

    def _record(self, delivery: Delivery) -> None:
        served, state, gateway = self.served, self.state, self.gateway
        self.done = True
        if served is None or state is None:
            return
        traffic = self._traffic(served, state)
        try:
            record = outcome.exchange(outcome.of(state), traffic, self.times, delivery)
        except Exception as error:  # noqa: BLE001  # promise 6
            gateway.failed("record", error)
            record = Exchange.passed(served.request_id, "failed", delivery.status, error=delivery.error, at=time.time())
        gateway.observe(record)

    def _traffic(self, served: EnvoyRequest, state: State) -> Traffic:
        target = served.setup.targets[served.route.upstream]
        refusals = state.life.refusals
        call = Call(target.name, served.route.name, self.status, refusals[-1] if refusals else "")
        return Traffic(
            request_id=served.request_id,
            method=self.headers.get(":method", ""),
            path=self.headers.get(":path", "").partition("?")[0][:LONGEST_PATH],
            client=served.address,
            session=session_of(self.headers, served.conversation.head),
            caller=served.identity.key,
            calls=(call,) if isinstance(state, (Ready, Answered)) else (),
            contents=served.contents,
        )


def _final_state(state: Ready, reply: Reply) -> Answered:
    """Return the last state of a request whose answer passes to the client unchanged."""
    too_long = reply.refusal is not None and reply.refusal.too_long
    refusals = (*state.life.refusals, reply.refusal.sign) if reply.refusal is not None else state.life.refusals
    return Answered(replace(state.life, refusals=refusals), state.visit, state.attempt, reply, too_long=too_long)


def _headers(message: Any) -> CIMultiDict[str]:
    """Return headers as text. Envoy sends values as bytes or, in older versions, as text."""
    pairs = [(each.key, each.raw_value.decode("utf-8", "replace") or each.value) for each in message.headers.headers]
    return CIMultiDict(pairs)


def _our_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the headers that only the gateway may set."""
    return tuple({name.lower() for name in headers if name.lower().startswith(OURS)})
