"""The token count of a request: the cost of each message, and of everything that is billed besides messages.

A message costs its texts, its media and the frame of its family's template. Text counts are cached by content, so a
grown conversation costs only its new messages. Costs that depend on other messages (several calls wrapped into one,
reasoning that a template drops) are in `cross_message_tokens`, so a message costs the same at every place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, Final, Literal

from gateway.context.count import media, tools
from gateway.context.count.counter import Counter
from gateway.context.count.families import Family, Tools, family_of
from gateway.context.count.vocabularies import Counts, count, loaded
from gateway.context.count.vocabularies import preload as load_vocabulary
from gateway.wire.facts import Interned, facts_of
from gateway.wire.format import Conversation
from gateway.wire.memory import Memory, Recent
from gateway.wire.message import (
    MEDIA_TYPES,
    RESULT_ROLES,
    Message,
    call_arguments,
    call_name,
    dumps,
    media_parts,
    texts,
    tool_calls,
)
from gateway.wire.views import Opaque

Basis = Literal["exact", "anchor", "estimate"]

LEARNED: Final = 0.05
"""Relative error of a count that was corrected by an earlier bill."""

_EXPANSION: Final = 11
"""The most tokens per byte when letters are split first: U+FDFA has 3 bytes and becomes 18 letters with 33 tokens."""

HEAVY: Final = 48_000
"""Bytes of text without a cached count; in the worst case about 50 ms of counting. More than this is counted in a
thread."""

_ENVELOPE: Final = 1024
"""Tokens that templates may add to a request without tools: preambles, frames, default prompts."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The token count of a request and its reliability."""

    messages: int
    fixed: int
    """Tools, schema, preambles: everything outside the messages."""
    basis: Basis
    error: float
    """The largest amount by which the truth may exceed ``total``, as a share of it."""
    bounded: bool = False
    """Media were counted by an upper bound, so a bill for this request teaches nothing."""

    @property
    def total(self) -> int:
        return self.messages + self.fixed


@dataclass(frozen=True, slots=True)
class Anchor:
    """The billed tokens of a conversation's first messages, including everything billed besides them."""

    covered: int
    """The number of these messages."""
    billed: int
    fixed: int
    """Our count of tools, schema and frame in that request; later changes are added."""


COUNTER_BYTES: Final = 2000
"""Bytes of a counter, approximately: some functions with the values that they hold."""


def counter(family: str, images: str = "", memory: Memory | None = None) -> Counter:
    """Return the counter of a family of models; ``images`` is the rule for the cost of its images.

    With one memory the same arguments return the same counter.
    """
    memory = memory or Memory()
    return memory.once(("counter", family, images), partial(_counter, family, images, memory), COUNTER_BYTES)


def counting(vocabulary: str, memory: Memory) -> Counts:
    """Return the cached counts of a vocabulary, which all its families share."""
    return memory.part(("counts", vocabulary), partial(Counts, vocabulary, memory))


def _counter(family: str, images: str, memory: Memory) -> Counter:
    row = family_of(family)
    text = _text(row, memory)
    answer = _without_thoughts(text) if row.tags else text
    frames, frame = dict(row.roles), row.message
    name = f"{family}\n{images}"

    def message(value: Message) -> int:
        if type(value) is not Interned:
            return counted(value)
        costs = value.facts.costs
        found = costs.get(name)
        if found is None:
            found = costs[name] = counted(value)
        return found

    def counted(value: Message) -> int:
        role = value.get("role")
        around = frames.get(role, frame) if type(role) is str else frame
        content = value.get("content")
        if type(content) is str and (len(value) == 2 or role == "tool"):  # by far the most messages: a role and a text
            return around + (answer(content) if role == "assistant" else text(content))
        return around + _rest(value, row, text, images)

    return Counter(message, text, exact=row.exact, name=name)


def _without_thoughts(text: Callable[[str], int]) -> Callable[[str], int]:
    """Count the part of an assistant's text that a template keeps: everything up to ``</think>`` is dropped."""
    return lambda value: text(value.rpartition("</think>")[2] if "</think>" in value else value)


def _text(row: Family, memory: Memory) -> Callable[[str], int]:
    """Count a bare text as the family does."""
    plain = counting(row.vocabulary, memory)
    if row.ratio == 1.0:
        return plain
    ratio = row.ratio
    return lambda value: ceil(plain(value) * ratio)


def _rest(message: Message, row: Family, text: Callable[[str], int], images: str) -> int:
    """Count everything in a message except its frame: parts, calls, reasoning, a name."""
    total = 0
    usual = 1 + ("content" in message)
    calls: Sequence[Mapping[str, Any]] = ()
    if "tool_calls" in message or "function_call" in message:
        calls = tool_calls(message)
        usual += 1
        total += _calls(calls, row, text)
    content = message.get("content")
    if content and not (row.call_or_text and "tool_calls" in message and message.get("role") == "assistant"):
        if message.get("role") == "assistant" and (row.tags or (calls and not row.thinking)):
            content = _spoken(content)
        total += text(content) if type(content) is str else sum(_part(part, text, images) for part in _parts(content))
    if len(message) > usual:
        total += _extras(message, row, text)
    return total


def _calls(calls: Sequence[Mapping[str, Any]], row: Family, text: Callable[[str], int]) -> int:
    if len(calls) > 1 and row.parallel is not None:
        return row.parallel + text(_wrapped(calls))
    total = row.call * len(calls)
    for call in calls:
        function = call.get("function")
        name, given = (function.get("name"), function.get("arguments")) if type(function) is dict else (None, None)
        if type(name) is str and type(given) is str:
            total += row.call_names * text(name) + text(given)
        else:
            total += row.call_names * text(call_name(call)) + text(_arguments(call))
    return total


def _arguments(call: Mapping[str, Any]) -> str:
    try:
        return call_arguments(call)
    except TypeError:  # arguments that are not text, nested deeper than orjson writes
        return tools.flat(call)


def _extras(message: Message, row: Family, text: Callable[[str], int]) -> int:
    """Count rare fields: reasoning, a refusal, the speaker's name."""
    total = sum(map(text, _thoughts(message))) if row.thinking else 0
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        total += text(refusal)
    name = message.get("name")
    if isinstance(name, str) and message.get("role") not in RESULT_ROLES:
        total += 1 + text(name)
    return total


def _spoken(content: Any) -> Any:
    """Return an assistant's content without the text up to ``</think>``."""
    if isinstance(content, str):
        return content.rpartition("</think>")[2]
    if isinstance(content, list):
        last = max((n for n, part in enumerate(content) if "</think>" in "".join(texts([part]))), default=-1)
        if last >= 0:
            rest = "".join(texts([content[last]])).rpartition("</think>")[2]
            return [{"type": "text", "text": rest}, *content[last + 1 :]]
    return content


def _wrapped(calls: Iterable[Mapping[str, Any]]) -> str:
    """Return several calls as the single ``multi_tool_use.parallel`` call that the model made of them."""
    uses = (f'{{"recipient_name":"functions.{call_name(call)}","parameters":{_arguments(call)}}}' for call in calls)
    return f'{{"tool_uses":[{",".join(uses)}]}}'


def _parts(content: Any) -> Iterator[Any]:
    """Yield the parts of a content value; the nested parts of a tool result replace it."""
    if isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("content"), list):
                yield from _parts(part["content"])
            else:
                yield part
    elif content is not None:
        yield content


def _part(part: Any, text: Callable[[str], int], images: str) -> int:
    """Count one content part: its text, its media, or all texts inside a part of unknown type."""
    if isinstance(part, str):
        return text(part)
    if not isinstance(part, dict):
        return 1
    value = part.get("text", part.get("refusal"))
    if isinstance(value, str):
        return text(value)
    kind = part.get("type")
    if isinstance(kind, str) and kind in MEDIA_TYPES:
        return media.tokens(part, images)
    return sum(text(leaf) for leaf in _leaves(part, 0)) + (part.extra if type(part) is Opaque else 0)


def _leaves(value: Any, depth: int) -> Iterator[str]:
    """Yield all texts in a JSON value except member names; parts that are nested too deep count as JSON."""
    if isinstance(value, str):
        yield value
    elif depth > tools.DEEPEST:
        yield tools.flat(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("type", "id", "signature", "cache_control", "data"):
                yield from _leaves(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, depth + 1)
    elif value is not None:
        yield str(value)


def fixed_cost(body: Mapping[str, Any], family: str, memory: Memory | None = None) -> int:
    """Count everything billed besides messages: tools, functions, schema, and the request's frame with its preambles."""
    memory = memory or Memory()
    row = family_of(family)
    messages = body.get("messages")
    first = (
        messages[0].get("role") if isinstance(messages, list) and messages and isinstance(messages[0], dict) else None
    )
    leading = first in ("system", "developer")
    total = row.request + row.preamble + (0 if leading else row.default_system)
    system = body.get("system")
    if system:
        total += row.message + sum(map(_text(row, memory), _leaves(system, 0)))
    if _thinks(body):
        total += row.effort.get("on", 0)
    elif _thinks(body) is False:
        total += row.effort.get("off", 0)
    config = body.get("output_config")
    if isinstance(config, dict) and config.get("task_budget"):
        total += row.task_budget
    return total + _tools_cost(body, family, row, memory, leading=leading) + _schema_cost(body, row, memory)


def _thinks(body: Mapping[str, Any]) -> bool | None:
    """Return whether the request switches thinking on or off; None when it says nothing."""
    thinking = body.get("thinking")
    if isinstance(thinking, dict):
        kind = thinking.get("type")
        return True if kind == "enabled" else False if kind == "disabled" else None
    effort = body.get("reasoning_effort")
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict):
        effort = reasoning.get("effort", effort)
        if isinstance(reasoning.get("enabled"), bool):
            return bool(reasoning["enabled"])
        if reasoning.get("max_tokens"):
            return True
    return None if not isinstance(effort, str) else effort != "none"


def _tools_cost(body: Mapping[str, Any], family: str, row: Family, memory: Memory, *, leading: bool) -> int:
    choice = body.get("tool_choice")
    given = {key: body[key] for key in ("tools", "functions") if body.get(key)}
    if not given or row.tools == "none" or (choice == "none" and not row.unused_tools):
        return 0
    forced = choice is not None and choice not in ("auto", "none")
    form = row.forced_tools if forced and row.forced_tools else row.tools
    cost = _definitions_cost(given, form, family, row, memory)
    return max(cost + (row.tools_forced if forced else 0) - (row.tools_merge if leading else 0), 0)


DEFINITIONS_BYTES: Final = 250
"""Bytes of the remembered cost of definitions, approximately: its key, and its place in a table."""
DEFINITIONS_SHARE: Final = 1 / 64
"""Share of the memory's budget for the costs of definitions."""


def _definitions(memory: Memory) -> Recent[tuple[int, str, str], int]:
    """Token counts of definitions by the hash of their JSON, form and family: clients send the same tools with every
    request."""
    return Recent(memory, lambda key, cost: DEFINITIONS_BYTES, DEFINITIONS_SHARE)


def _definitions_cost(given: Mapping[str, Any], form: Tools, family: str, row: Family, memory: Memory) -> int:
    known = memory.part(_definitions, partial(_definitions, memory))
    key = hash(_written(given)), form, family
    cost = known.recall(key)
    if cost is None:
        found = tools.definitions(given)
        cost = ceil(count(tools.write(found, form), row.vocabulary) * row.ratio) + row.tools_once
        if form == "typescript":
            cost += tools.typescript_extra(found)
        known.keep(key, cost)
    return cost


def _written(given: Mapping[str, Any]) -> bytes | str:
    try:
        return dumps(given)
    except TypeError:  # nested deeper than orjson writes
        return tools.flat(given)


def _schema_cost(body: Mapping[str, Any], row: Family, memory: Memory) -> int:
    schema = tools.response_schema(body) if row.schema_once is not None else ""
    return ceil(counting(row.vocabulary, memory)(schema) * row.ratio) + (row.schema_once or 0) if schema else 0


def cross_message_tokens(messages: Sequence[Message], family: str, memory: Memory | None = None) -> int:
    """Count the tokens that messages cost only together, in addition to their sum.

    Templates that drop the reasoning of earlier turns keep that of the current turn. OpenAI's backend writes the
    results of parallel calls as ASCII JSON: each letter beyond ASCII becomes an escape of some four tokens
    (https://community.openai.com/t/massive-token-overestimation-in-multiple-tool-calls-due-to-internal-unicode-escaping/1375117).
    """
    row = family_of(family)
    extra = 0
    if not row.thinking:
        text = _text(row, memory or Memory())
        extra += sum(text(thought) for message in _running(messages) for thought in _thoughts(message))
    if row.parallel is not None:
        extra += sum(_escape_cost(value) for message in _together(messages) for value in texts(message.get("content")))
    return extra


def _running(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages after the last user message, newest first."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return
        yield message


def _together(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the results of calls that one message made in parallel."""
    calls: set[Any] = set()
    for message in messages:
        made = message.get("tool_calls")
        if made:
            if isinstance(made, list) and len(made) > 1:
                calls.update(call["id"] for call in tool_calls(message) if isinstance(call.get("id"), str))
        elif calls and message.get("role") == "tool" and message.get("tool_call_id") in calls:
            yield message


def _thoughts(message: Message) -> Iterator[str]:
    for key in ("reasoning_content", "reasoning"):
        value = message.get(key)
        if isinstance(value, str):
            yield value


def _escape_cost(value: str) -> int:
    return 0 if value.isascii() else 3 * (len(value) - len(value.encode("ascii", "ignore")))


def count_request(
    request: Conversation, family: str, images: str = "", ratio: float = 1.0, anchor: Anchor | None = None
) -> TokenCount:
    """Count a whole request by the best method: the earlier bill of this conversation, else vocabulary and ratio."""
    row = family_of(family)
    memory = request.memory
    fixed = ceil(fixed_cost(request.body, family, memory) * ratio)
    cost = scaled(counter(family, images, memory), ratio, memory).message
    bounded = has_bounds(request.messages)
    if anchor is not None and 0 < anchor.covered <= len(request.messages):
        new = sum(map(cost, request.messages[anchor.covered :]))
        total = max(anchor.billed + fixed - anchor.fixed + new, 1)
        error = 0.002 + row.error * new / total
        return TokenCount(max(total - fixed, 0), fixed, "anchor", error, bounded)
    messages = sum(map(cost, request.messages)) + cross_message_tokens(request.messages, family, memory)
    sure = row.exact and ratio == 1.0 and not bounded
    error = row.error if ratio == 1.0 else min(row.error, LEARNED)
    return TokenCount(messages, fixed, "exact" if sure else "estimate", error, bounded)


def has_bounds(messages: Iterable[Message]) -> bool:
    """Return whether the messages contain something that can only be counted by an upper bound."""
    return any(
        media.bounded(part)
        for message in messages
        if type(message.get("content")) is list
        for part in media_parts(message)
    )


def margin(count: TokenCount, window: int, share: float) -> int:
    """Return tokens to keep free because a count may be too low: its own error; for an estimate at least ``share`` of
    the window.

    A reliable count keeps less than ``share`` free. With a share of 0 the operator keeps nothing free.
    """
    if share <= 0:
        return 0
    kept = max(count.error, share) if count.basis == "estimate" else min(count.error, share)
    return ceil(kept * window)


def scaled(counter: Counter, ratio: float, memory: Memory) -> Counter:
    """Return a counter whose counts are multiplied and rounded up; a ratio of 1.0 returns the same counter.

    With one memory the same arguments return the same counter.
    """
    if ratio == 1.0:
        return counter
    return memory.once(("scaled", counter, ratio), partial(_scaled, counter, ratio), COUNTER_BYTES)


def _scaled(counter: Counter, ratio: float) -> Counter:
    return replace(
        counter,
        message=lambda message: ceil(counter.message(message) * ratio),
        text=lambda text: ceil(counter.text(text) * ratio),
        exact=False,
        name=f"{counter.name}\n{ratio}" if counter.name else "",
    )


def proven(body_bytes: int, reserve: int, window: int, request: Conversation, family: str = "") -> bool:
    """Prove without counting that a request fits: tokens never outnumber bytes, and nothing is included by reference.

    Two kinds of text may cost more tokens than bytes: letters that a normaliser splits (Qwen, old Claude), and results
    of parallel calls, which are escaped. Both need letters beyond ASCII; if there are any, and they could matter, the
    size counts several times.
    """
    beside = reserve + _ENVELOPE
    if body_bytes + beside > window or not self_contained(request):
        return False
    normalises = family_of(family).normalises
    # Searching the whole body takes as long as parsing it: this comes last, for bodies near their window.
    if body_bytes * (_EXPANSION if normalises else 2) + beside <= window:
        return True
    if request.raw.isascii() and not (normalises and b"\\u" in request.raw):
        return True
    return not normalises and not any(map(_several, request.messages))


def _several(message: Message) -> bool:
    """Return whether a message makes several calls in parallel."""
    calls = message.get("tool_calls")
    return isinstance(calls, list) and len(calls) > 1


def self_contained(request: Conversation) -> bool:
    """Return whether the body holds everything the model reads: no media, no ids of files or earlier answers, no hosted
    tools."""
    if request.refers_elsewhere:
        return False
    given = request.head.get("tools")
    if isinstance(given, list) and not all(isinstance(tool, dict) and _own(tool) for tool in given):
        return False
    for message in request.outline:
        content = message.get("content")
        if "audio" in message or (isinstance(content, list) and not all(map(_is_text, content))):
            return False
    return True


def _own(tool: Mapping[str, Any]) -> bool:
    return tool.get("type", "function") in ("function", "custom")


def _is_text(part: Any) -> bool:
    if type(part) is Opaque:
        return part.stands_here
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str) and len(part) <= 3)


def heavy(request: Conversation, family: str, images: str = "") -> bool:
    """Return whether counting would block the event loop for long: much text without a cached count, or a vocabulary to
    load."""
    row = family_of(family)
    if not loaded(row.vocabulary):
        return True
    if len(request.raw) <= HEAVY:
        return False
    counted = counting(row.vocabulary, request.memory)
    name = counter(family, images, request.memory).name
    size = 0
    for message in request.messages:
        if name not in facts_of(message).costs:
            size += sum(_bytes(value) for value in texts(message.get("content")) if value not in counted)
            if "tool_calls" in message:
                given = map(_arguments, tool_calls(message))
                size += sum(_bytes(value) for value in given if len(value) > 2000 and value not in counted)
            if size > HEAVY:
                return True
    return False


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else 3 * len(text)


def preload(families: Iterable[str]) -> None:
    """Load the vocabularies of families now, so that no request waits for them."""
    for vocabulary in {family_of(family).vocabulary for family in families}:
        load_vocabulary(vocabulary)
