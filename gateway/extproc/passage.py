"""One attempt of Envoy's at one request: its headers and its body on the way to the model, then the answer's on the way back.

Envoy waits for a reply to each message. A fault of our own lets the message pass as it came, and is counted and logged.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError
from msgspec.structs import replace
from multidict import CIMultiDict

from gateway.context.life.replies import Refusal, Reply, ThinkingRejected
from gateway.context.life.states import Answered, Ready, State, TooLarge
from gateway.extproc import carried, protocol, replies
from gateway.extproc.carried import Carried, CarriedRefusal
from gateway.extproc.deciding import Asked, after, decide
from gateway.observe.exchange import Call, Exchange
from gateway.serve.answers.answer import LONGEST_ERROR
from gateway.serve.incoming.encoding import inflater, readable_encodings
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.headers import OURS
from gateway.serve.incoming.limits import check_request, check_text
from gateway.serve.record import LONGEST_PATH
from gateway.serve.request import account
from gateway.serve.request.account import Ending, Origin, Times
from gateway.serve.request.mode import allowed
from gateway.serve.request.sessions import session_of
from gateway.serve.shared import Gateway
from gateway.upstream.refusals import refusal_of
from gateway.wire.format import Conversation, Format
from gateway.wire.formats import FORMATS

PLACES: Final = (
    "request_headers",
    "request_body",
    "response_headers",
    "response_body",
    "request_trailers",
    "response_trailers",
)
"""The parts of a request and its answer that Envoy may send."""
RETRY: Final = "x-turnfold-retry"
"""The header on an answer by which Envoy's retry policy knows that a smaller request can follow."""
MODE: Final = "x-turnfold-mode"
"""The client's own wish for this request; only the first attempt still has it."""
ATTEMPT: Final = "x-envoy-attempt-count"
"""Which attempt this is; Envoy sends it only where the processor runs again for a retry."""


class Misplaced(Exception):
    """Envoy sent something that is not of the protocol."""


@dataclass(slots=True)
class Passage:
    """The state of one attempt. Frozen values would be filled in message by message; this is filled in here alone."""

    gateway: Gateway
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    carried: Carried = carried.NOTHING
    asked: Asked | None = None
    state: State | None = None
    """What was sent: `Ready`, or `TooLarge` when the client got our refusal."""
    status: int = 0
    answer_headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    times: Times = field(default_factory=lambda: Times(time.perf_counter()))
    done: bool = False
    """Whether the record of the request was made, or is left to the next attempt."""

    async def reply(self, raw: bytes) -> bytes:
        """Return the reply to one message of Envoy's. Raises Misplaced for something else."""
        try:
            message = protocol.parse("ProcessingRequest", raw)
        except DecodeError as error:
            raise Misplaced("not a ProcessingRequest") from error
        place = next((name for name in PLACES if message.HasField(name)), None)
        if place is None:
            raise Misplaced("a ProcessingRequest without a part that is known here")
        try:
            return await self._reply(place, message)
        except Exception as error:  # noqa: BLE001  # promise 6: what fails here passes as it came
            self.gateway.failed("extproc", error)
            length = len(message.request_body.body) if place == "request_body" else None
            return replies.go_on(place, headers={"content-length": str(length)} if length is not None else None)

    async def _reply(self, place: str, message: Any) -> bytes:
        match place:
            case "request_headers":
                return self._opened(message)
            case "request_body":
                return await self._received(message.request_body.body)
            case "response_headers":
                return await self._answered(message.response_headers)
            case "response_body":
                return await self._refused(message.response_body.body)
            case _:
                return replies.go_on(place)

    def _opened(self, message: Any) -> bytes:
        """Read the headers of a request; take ours off."""
        self.headers = _headers(message.request_headers)
        self.carried = carried.read(message)
        keeps = None
        if MODE in self.headers and self.carried.mode is None:
            keeps = self.carried = self.carried._replace(mode=self.headers[MODE][:40])
        changed: dict[str, str] = {}
        if self._format is not None and "accept-encoding" in self.headers:
            changed["accept-encoding"] = readable_encodings(self.headers["accept-encoding"])
        return replies.go_on("request_headers", headers=changed, removed=_ours(self.headers), carried=keeps)

    @property
    def _format(self) -> Format | None:
        """The format of the request's body; None for a path that is not folded."""
        path = self.headers.get(":path", "").partition("?")[0]
        if self.headers.get(":method") != "POST":
            return None
        return next((format for known, format in FORMATS.items() if path.endswith(known.removeprefix("/v1"))), None)

    async def _received(self, body: bytes) -> bytes:
        """Decide what is sent instead of a request's body. Its length is always stated anew: a retry has that of the attempt before."""
        self.times.read = time.perf_counter()
        length = {"content-length": str(len(body))}
        request = await self._understood(body)
        if request is None:
            return replies.go_on("request_body", headers=length)
        try:
            self.asked = self._asked(request)
        except ClientError as error:
            said = request.format.error(str(error), error.code, error.type, None)
            return replies.answer(error.status, self.gateway.marks("error"), said)
        self.state = await decide(self.asked, self.carried.refusals)
        self.times.decided = time.perf_counter()
        if isinstance(self.state, TooLarge):
            refusal = await self.gateway.pool.run(self.state.refusal, size_bytes=len(body))
            headers = account.headers(account.outcome_of(self.state), self.asked.request_id)
            self._record(Ending(400, "context_length_exceeded"))
            return replies.answer(400, headers, refusal)
        attempt = self.state.attempt if isinstance(self.state, Ready) else None
        if attempt is None or attempt.body == body:
            return replies.go_on("request_body", headers=length)
        headers = {"content-length": str(len(attempt.body))}
        for name, value in request.format.drop_thinking_headers.items() if attempt.may_drop_thinking else ():
            headers[name] = ",".join([*self.headers.getall(name, ()), value])
        return replies.go_on("request_body", headers=headers, body=attempt.body)

    async def _understood(self, body: bytes) -> Conversation | None:
        """Parse a body; None when nothing is to be decided about it."""
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
            return await gateway.pool.run(parsed, size_bytes=len(body) // 8)
        except ClientError:
            return None  # too complex to look into: the upstream judges it

    def _asked(self, request: Conversation) -> Asked:
        setup = self.gateway.setup
        route = setup.settings.route(request.model)
        mode = allowed(self.carried.mode, route)
        request_id = self.headers.get("x-request-id") or self.gateway.request_id()
        return Asked(self.gateway, setup, route, request, mode, self.headers, request_id[:128], self._address)

    @property
    def _address(self) -> str:
        """The client's address as the nearest proxy saw it."""
        return self.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()[:64]

    async def _answered(self, message: Any) -> bytes:
        """Read the head of an answer. Of an error the body is read too; anything else goes on to the client at once."""
        self.times.first_byte = time.perf_counter()
        self.answer_headers = _headers(message)
        status = self.answer_headers.get(":status", "")
        self.status = int(status) if status.isdigit() else 0
        foreign = _ours(self.answer_headers)
        if self.asked is None or not isinstance(self.state, Ready):
            return replies.go_on("response_headers", removed=foreign)
        if self.status < 400:
            return self._final("response_headers", Reply(self.status), foreign)
        if message.end_of_stream:
            return await self._judged("response_headers", b"", foreign)
        return replies.go_on("response_headers", removed=foreign, read_answer=True)

    async def _refused(self, body: bytes) -> bytes:
        """Read an error. When it says "too long" and a smaller request can follow, mark the answer for Envoy's retry."""
        decode = inflater(self.answer_headers)
        return await self._judged(
            "response_body", decode.decompress(body, LONGEST_ERROR) if decode is not None else body, ()
        )

    async def _judged(self, place: str, said: bytes, foreign: tuple[str, ...]) -> bytes:
        asked, sent = self.asked, self.state
        assert asked is not None and isinstance(sent, Ready)
        reply = Reply(self.status, _refusal(asked, self.status, said), said)
        if reply.refusal is None or ATTEMPT not in self.headers:
            return self._final(place, reply, foreign)
        following = await after(asked, sent, reply)
        if not isinstance(following, Ready):
            return self._final(place, reply, foreign, following)
        refusal = CarriedRefusal.of(reply.refusal, len(sent.attempt.body))
        keeps = self.carried._replace(refusals=(*self.carried.refusals, refusal))
        self.done = True  # the next attempt makes the record
        headers = {RETRY: "smaller", **account.headers(account.outcome_of(_answer(sent, reply)), asked.request_id)}
        return replies.go_on(place, headers=headers, removed=foreign, carried=keeps)

    def _final(self, place: str, reply: Reply, foreign: tuple[str, ...], end: State | None = None) -> bytes:
        """Let an answer go on to the client, with the headers that describe what was done."""
        assert self.asked is not None and isinstance(self.state, Ready)
        self.state = end or _answer(self.state, reply)
        headers = account.headers(account.outcome_of(self.state), self.asked.request_id)
        return replies.go_on(place, headers=headers, removed=[name for name in foreign if name not in headers])

    def close(self) -> None:
        """Make the record of the request, unless it was made or is left to the next attempt."""
        if not self.done and self.state is not None:
            self._record(Ending(self.status) if self.status else Ending(499, "no_answer"))

    def _record(self, ending: Ending) -> None:
        asked, state, gateway = self.asked, self.state, self.gateway
        self.done = True
        if asked is None or state is None:
            return
        origin = self._origin(asked, state)
        try:
            record = account.exchange(account.outcome_of(state), origin, self.times, ending)
        except Exception as error:  # noqa: BLE001  # promise 6
            gateway.failed("record", error)
            record = Exchange.passed(asked.request_id, "failed", ending.status, error=ending.error, at=time.time())
        gateway.observe(record)

    def _origin(self, asked: Asked, state: State) -> Origin:
        target = asked.setup.targets[asked.route.upstream]
        refusals = state.life.refusals
        call = Call(target.name, asked.route.name, self.status, refusals[-1] if refusals else "")
        return Origin(
            request_id=asked.request_id,
            method=self.headers.get(":method", ""),
            path=self.headers.get(":path", "").partition("?")[0][:LONGEST_PATH],
            client=asked.address,
            session=session_of(self.headers, asked.request.head),
            caller=asked.identity.key,
            calls=(call,) if isinstance(state, (Ready, Answered)) else (),
            contents=asked.contents,
        )


def _answer(state: Ready, reply: Reply) -> Answered:
    """Return the end of a request whose answer goes to the client as it is."""
    too_long = reply.refusal is not None and reply.refusal.too_long
    refusals = (*state.life.refusals, reply.refusal.sign) if reply.refusal is not None else state.life.refusals
    return Answered(replace(state.life, refusals=refusals), state.visit, state.attempt, reply, too_long=too_long)


def _refusal(asked: Asked, status: int, said: bytes) -> Refusal | None:
    """Return what an error says about size, as the model's provider words it."""
    found = asked.setup.targets[asked.route.upstream].provider.read_refusal(status, said, "http")
    if found is not None:
        return refusal_of(found)
    rejected = status == 400 and asked.request.format.rejects_thinking(said)
    return Refusal("thinking_rejected", ThinkingRejected()) if rejected else None


def _headers(message: Any) -> CIMultiDict[str]:
    """Return headers as text. Envoy sends values as bytes or, in older versions, as text."""
    pairs = [(each.key, each.raw_value.decode("utf-8", "replace") or each.value) for each in message.headers.headers]
    return CIMultiDict(pairs)


def _ours(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of headers that only we may set."""
    return tuple({name.lower() for name in headers if name.lower().startswith(OURS)})
