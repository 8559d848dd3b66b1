"""The cost of one message: its texts, its media and the frame of its family's template.

Text counts are cached by content, so a grown conversation costs only its new messages. A message costs the same at
every position; costs that depend on other messages are in ``tokens.cross_message_tokens``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any, Final

from msgspec.structs import replace

from gateway.context.count import media, tools
from gateway.context.count.counter import Counter, CountText
from gateway.context.count.families import Family, family_of
from gateway.context.count.vocabularies import Counts
from gateway.wire.derived import Interned
from gateway.wire.memory import Memory
from gateway.wire.message import (
    CACHE_CONTROL,
    RESULT_ROLES,
    Message,
    call_arguments,
    call_name,
    media_kind,
    texts,
    tool_calls,
)
from gateway.wire.views import Opaque

COUNTER_BYTES: Final = 2000
"""Bytes of a counter, approximately: some functions with the values that they hold."""


def counter(family: str, images: str = "", memory: Memory | None = None) -> Counter:
    """Return the counter of a family of models; ``images`` is the rule for the cost of its images.

    With one memory the same arguments return the same counter.
    """
    memory = memory or Memory()
    return memory.get_or_make(("counter", family, images), partial(_counter, family, images, memory), COUNTER_BYTES)


def _counter(family: str, images: str, memory: Memory) -> Counter:
    """Make a counter. The cost of an interned message is cached with the message."""
    row = family_of(family)
    text = text_counter(row, memory)
    assistant_text = _counting_after_thinking(text) if row.drops_thinking_tags else text
    frames, usual_frame = dict(row.roles), row.message
    name = f"{family}\n{images}"

    def message(value: Message) -> int:
        if type(value) is not Interned:
            return count(value)
        costs = value.derived.costs
        cost = costs.get(name)
        if cost is None:
            cost = costs[name] = count(value)
        return cost

    def count(value: Message) -> int:
        role = value.get("role")
        frame = frames.get(role, usual_frame) if type(role) is str else usual_frame
        content = value.get("content")
        if type(content) is str and (len(value) == 2 or role == "tool"):  # by far the most messages: a role and a text
            return frame + (assistant_text(content) if role == "assistant" else text(content))
        return frame + _without_frame(value, row, text, images)

    return Counter(message, text, exact=row.exact, name=name)


def counts_of(vocabulary: str, memory: Memory) -> Counts:
    """Return the cache of token counts of a vocabulary; all its families share it."""
    return memory.part(("counts", vocabulary), partial(Counts, vocabulary, memory))


def scaled(counter: Counter, ratio: float, memory: Memory) -> Counter:
    """Return a counter whose counts are multiplied and rounded up; a ratio of 1.0 returns the same counter.

    With one memory the same arguments return the same counter.
    """
    if ratio == 1.0:
        return counter
    return memory.get_or_make(("scaled", counter, ratio), partial(_scaled, counter, ratio), COUNTER_BYTES)


def _scaled(counter: Counter, ratio: float) -> Counter:
    return replace(
        counter,
        message=lambda message: ceil(counter.message(message) * ratio),
        text=lambda text: ceil(counter.text(text) * ratio),
        exact=False,
        name=f"{counter.name}\n{ratio}" if counter.name else "",
    )


def _counting_after_thinking(text: CountText) -> CountText:
    """Return a count of the part of an assistant's text that a template keeps: it drops everything up to ``</think>``."""
    return lambda value: text(value.rpartition("</think>")[2] if "</think>" in value else value)


def text_counter(row: Family, memory: Memory) -> CountText:
    """Return the function that counts a bare text for a family."""
    plain = counts_of(row.vocabulary, memory)
    if row.ratio == 1.0:
        return plain
    ratio = row.ratio
    return lambda value: ceil(plain(value) * ratio)


def _without_frame(message: Message, row: Family, text: CountText, images: str) -> int:
    """Count everything in a message except its frame: parts, calls, reasoning, a name."""
    total = 0
    counted_fields = 1 + ("content" in message)
    calls: Sequence[Mapping[str, Any]] = ()
    if "tool_calls" in message or "function_call" in message:
        calls = tool_calls(message)
        counted_fields += 1
        total += _calls(calls, row, text)
    content = message.get("content")
    if content and not (row.calls_replace_text and "tool_calls" in message and message.get("role") == "assistant"):
        if message.get("role") == "assistant" and (row.drops_thinking_tags or (calls and not row.reads_thinking)):
            content = _without_thinking(content)
        total += text(content) if type(content) is str else sum(_part(part, text, images) for part in _parts(content))
    if len(message) > counted_fields:
        total += _extras(message, row, text)
    return total


def _calls(calls: Sequence[Mapping[str, Any]], row: Family, text: CountText) -> int:
    """Count the calls of one message."""
    if len(calls) > 1 and row.parallel is not None:
        return row.parallel + text(_wrapped(calls))
    total = row.call * len(calls)
    for call in calls:
        function = call.get("function")
        name, value = (function.get("name"), function.get("arguments")) if type(function) is dict else (None, None)
        if type(name) is str and type(value) is str:
            total += row.call_names * text(name) + text(value)
        else:
            total += row.call_names * text(call_name(call)) + text(arguments(call))
    return total


def arguments(call: Mapping[str, Any]) -> str:
    """Return the arguments of a call as text."""
    try:
        return call_arguments(call)
    except TypeError:  # arguments that are not text, with a text that UTF-8 cannot hold
        return tools.flat_text(call)


def _wrapped(calls: Iterable[Mapping[str, Any]]) -> str:
    """Return several calls as the single ``multi_tool_use.parallel`` call that the model made of them."""
    uses = (f'{{"recipient_name":"functions.{call_name(call)}","parameters":{arguments(call)}}}' for call in calls)
    return f'{{"tool_uses":[{",".join(uses)}]}}'


def _extras(message: Message, row: Family, text: CountText) -> int:
    """Count rare fields: reasoning, a refusal, the speaker's name."""
    total = sum(map(text, reasoning_texts(message))) if row.reads_thinking else 0
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        total += text(refusal)
    name = message.get("name")
    if isinstance(name, str) and message.get("role") not in RESULT_ROLES:
        total += 1 + text(name)
    return total


def reasoning_texts(message: Message) -> Iterator[str]:
    """Yield the reasoning that a message has in fields of its own.

    Its details are read only if there is no other reasoning: OpenRouter and LiteLLM send the same reasoning in both.
    """
    plain = [value for key in ("reasoning_content", "reasoning") if isinstance(value := message.get(key), str)]
    yield from plain
    details = message.get("reasoning_details", message.get("thinking_blocks"))
    if isinstance(details, list) and not any(plain):
        for detail in details:
            found = map(detail.get, ("text", "summary", "thinking")) if isinstance(detail, dict) else ()
            if isinstance(value := next(filter(None, found), None), str):
                yield value


def _without_thinking(content: Any) -> Any:
    """Return an assistant's content without the text up to ``</think>``."""
    if isinstance(content, str):
        return content.rpartition("</think>")[2]
    if isinstance(content, list):
        last = max((n for n, part in enumerate(content) if "</think>" in "".join(texts([part]))), default=-1)
        if last >= 0:
            rest = "".join(texts([content[last]])).rpartition("</think>")[2]
            return [{"type": "text", "text": rest}, *content[last + 1 :]]
    return content


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


def _part(part: Any, text: CountText, images: str) -> int:
    """Count one content part: its text, its media, or all texts inside a part of unknown type."""
    if isinstance(part, str):
        return text(part)
    if not isinstance(part, dict):
        return 1
    value = part.get("text", part.get("refusal"))
    if isinstance(value, str):
        return text(value)
    if media_kind(part):
        content = media.document_content(part)
        if content is None:
            return media.tokens(part, images)
        return sum([_part(inner, text, images) for inner in content])
    return sum(text(leaf) for leaf in texts_inside(part, 0)) + (part.extra_tokens if type(part) is Opaque else 0)


def texts_inside(value: Any, depth: int) -> Iterator[str]:
    """Yield all texts in a JSON value except member names; parts that are nested too deep count as JSON."""
    if isinstance(value, str):
        yield value
    elif depth > tools.MOST_LEVELS:
        yield tools.flat_text(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("type", "id", "signature", CACHE_CONTROL, "data"):
                yield from texts_inside(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_inside(inner, depth + 1)
    elif value is not None:
        yield str(value)
