"""The functions of the library: one request in, one request out. They ask the same core as the gateway.

The core is loaded by the first call of each function, not with this file: a program that only might fold starts at once.
"""

import json  # noqa: TID251  # writes and reads what orjson does not
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import orjson

if TYPE_CHECKING:
    from gateway.context.cut.policy import Policy
    from gateway.context.life.attempt import Attempt
    from gateway.context.life.replies import Refusal
    from gateway.context.life.task import Task
    from gateway.context.write.draft import Step
    from gateway.wire.format import Conversation, Format, FormatName
    from gateway.wire.memory import Memory

Body = bytes | str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A request body as JSON or as a mapping, or its messages (its input items) alone."""
B = TypeVar("B", bytes, str, Mapping[str, Any], Sequence[Mapping[str, Any]])

_LIST: Final[Mapping["FormatName", str]] = {
    "chat": "messages",
    "messages": "messages",
    "responses": "input",
    "ollama": "messages",
}
"""The member with the conversation, by format."""


@dataclass(frozen=True, slots=True)
class Folded(Generic[B]):
    """A request that was made to fit, and what was done to it. All sizes are tokens."""

    body: B
    """The request in the shape in which it was given; the very object when nothing had to change."""
    tokens_before: int
    """The prompt as it was given: messages, tools and overhead."""
    tokens_after: int
    window: int
    fits: bool
    """Whether the request fits by our count, with the answer's reserve. False: even the smallest form is too long."""
    turns_folded: int = 0
    """The number of turns that are left out whole."""
    max_tokens: int | None = None
    """The lowered output limit; None when the request's own holds."""
    steps: "tuple[Step, ...]" = ()
    """What was done, in order, without message text."""
    task: "Task | None" = field(default=None, repr=False, compare=False)
    attempt: "Attempt | None" = field(default=None, repr=False, compare=False)

    @property
    def changed(self) -> bool:
        """Whether anything had to change."""
        return bool(self.steps)


def fold(
    body: B,
    *,
    window: int | None = None,
    model: str = "",
    format: "FormatName | None" = None,
    policy: "Policy | None" = None,
    output_reserve: int | None = None,
    tokenizer: str = "auto",
    memory: "Memory | None" = None,
) -> Folded[B]:
    """Make a request fit a context window, keeping what the model will still need. What fits is returned as it is.

    ``window`` in tokens; without one the catalogue's window of the model. ``model`` names it where the body does not. ``format`` is
    recognised from a whole body; a bare list counts as chat messages unless it is named. ``output_reserve`` are tokens kept for the
    answer where the body sets no limit. ``tokenizer`` is the name of a family, as in the gateway's configuration. A ``memory`` that is
    handed in again makes later calls for a grown conversation cheap.

    Raises ValueError when the body is not a request, when window, reserve or tokenizer are none, or when neither window nor model is known. It does not raise when nothing fits:
    see ``Folded.fits``.
    """
    from gateway.context.cut.policy import Policy  # noqa: PLC0415  # see the file's docstring
    from gateway.context.life import ladder  # noqa: PLC0415
    from turnfold.tasks import task_of  # noqa: PLC0415

    if window is not None and (type(window) is not int or window < 1):
        raise ValueError(f"the window must be a number of tokens, not {window!r}")
    if output_reserve is not None and (type(output_reserve) is not int or output_reserve < 0):
        raise ValueError(f"output_reserve must be a number of tokens, not {output_reserve!r}")
    request = _request(body, format, memory)
    task = task_of(
        request,
        model=model or request.model,
        window=window,
        policy=policy or Policy(),
        output_reserve=output_reserve,
        tokenizer=tokenizer,
    )
    return _folded(body, task, ladder.first_attempt(task))


def count(
    body: Body,
    *,
    model: str = "",
    format: "FormatName | None" = None,
    tokenizer: str = "auto",
    memory: "Memory | None" = None,
) -> int:
    """Return the prompt tokens of a request: messages, tools, media and overhead. Raises ValueError as `fold` does."""
    from gateway.context.cut.policy import Policy  # noqa: PLC0415  # see the file's docstring
    from turnfold.tasks import task_of  # noqa: PLC0415

    request = _request(body, format, memory)
    return task_of(request, model=model or request.model, window=0, policy=Policy(), tokenizer=tokenizer).prompt


def read_refusal(
    status: int, headers: Mapping[str, str], body: bytes, *, provider: str = "generic", format: "FormatName" = "chat"
) -> "Refusal | None":
    """Return what an upstream's answer says about the request's size; None when it says nothing about it.

    ``body`` is decoded (no gzip); of a stream, the beginning. A ``Refusal`` has the sign that matched and the numbers stated. Raises
    LookupError for an unknown provider, with the nearest name, and ValueError for a body that is not bytes.
    """
    if not isinstance(body, bytes):
        raise ValueError(f"the body of an answer is bytes, not {type(body).__name__}")
    from gateway.upstream.refusals import refusal_from  # noqa: PLC0415  # see the file's docstring
    from gateway.upstream.streams import is_stream, reader_for  # noqa: PLC0415
    from providers import registry  # noqa: PLC0415

    reader, written = registry.find(provider), _format(format)
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if status < 400 and is_stream(written, kind):
        events = reader_for(written)
        for event in [*events.feed(body), *events.close()]:
            if not written.is_preamble(event.data):
                return refusal_from(reader, written, status, event.data)
        return None
    return refusal_from(reader, written, status, body)


def smaller(folded: Folded[B], refusal: "Refusal") -> Folded[B] | None:
    """Return a smaller form of a request that was refused; None when there is none.

    The refusal's numbers take precedence over our count. Each call returns a strictly smaller request, so a loop over it ends. Raises ValueError
    without a refusal: `read_refusal` returns None for an answer that is about something else.
    """
    from gateway.context.life import ladder  # noqa: PLC0415  # see the file's docstring
    from gateway.context.life.replies import Refusal  # noqa: PLC0415

    if not isinstance(refusal, Refusal):
        raise ValueError("only a refusal tells how much smaller: read_refusal() returned none for this answer")
    task, attempt = folded.task, folded.attempt
    if task is None or attempt is None:
        raise ValueError("only what fold() or smaller() returned can be made smaller")
    found = ladder.next_attempt(task, attempt, refusal.numbers)
    return _folded(folded.body, task, found) if found is not None else None


def _format(name: "FormatName") -> "Format":
    from gateway.wire.formats import FORMATS  # noqa: PLC0415  # see the file's docstring

    found = next((format for format in FORMATS.values() if format.name == name), None)
    if found is None:
        raise ValueError(f'no format "{name}"; expected one of {", ".join(_LIST)}')
    return found


def _request(body: Body, format: "FormatName | None", memory: "Memory | None") -> "Conversation":
    """Return a body as a conversation. Raises ValueError."""
    from gateway.wire.formats import recognise  # noqa: PLC0415  # see the file's docstring

    if isinstance(body, (bytes, str)):
        # Half an emoji is written as its escape, which JSON allows.
        raw = body.encode("utf-8", "backslashreplace") if isinstance(body, str) else body
    elif isinstance(body, Mapping):
        raw = _dumps(body)
    elif isinstance(body, Sequence) and not isinstance(body, (bytearray, memoryview)):
        format = _format(format or "chat").name
        raw = _dumps({_LIST[format]: list(body)})
    else:
        raise ValueError(
            f"a request is JSON as bytes or str, a mapping, or a list of messages, not {type(body).__name__}"
        )
    request = _format(format).parse(raw, memory) if format else recognise(raw, memory)
    if request is None:
        raise ValueError(
            f"this is not a {format or 'chat, responses, messages or ollama'} request: expected JSON with a list of objects under "
            '"messages" or "input", or that list itself'
        )
    return request


def _dumps(value: Any) -> bytes:
    """Write a body. Raises ValueError for values that JSON has not, and for values nested too deep."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half an emoji, or a number beyond 64 bits: Python's own writes both
        try:
            return json.dumps(value).encode()
        except (TypeError, RecursionError) as error:
            raise ValueError(f"this request cannot be written as JSON: {error}") from None


def _loads(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return json.loads(raw)


def _folded(body: B, task: "Task", attempt: "Attempt") -> Folded[B]:
    changed = attempt.body != task.conversation.raw
    least = 1 if task.output_limit is None else task.least_output(attempt.window)
    return Folded(
        body=_shaped(body, attempt.body, task.conversation.format.name) if changed else body,
        tokens_before=task.prompt,
        tokens_after=attempt.prompt,
        window=attempt.window,
        fits=task.fits
        if attempt.draft is None and attempt.output is None
        else attempt.prompt + least <= attempt.window,
        turns_folded=attempt.turns_folded,
        max_tokens=attempt.output,
        steps=attempt.steps,
        task=task,
        attempt=attempt,
    )


def _shaped(given: B, raw: bytes, format: "FormatName") -> Any:
    """Return bytes in the shape in which the body was given."""
    if isinstance(given, bytes):
        return raw
    if isinstance(given, str):
        return raw.decode()
    body = _loads(raw)
    return body if isinstance(given, Mapping) else body[_LIST[format]]
