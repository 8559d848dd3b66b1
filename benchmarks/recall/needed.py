"""What a conversation needs later: the values its later calls use, and the remarks its questions are about."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gateway.context.read import lines
from gateway.wire.message import call_arguments, call_name, text_of, tool_calls


@dataclass(frozen=True, slots=True)
class Point:
    """One request, and what the conversation needs of its history afterwards."""

    request: list[dict[str, Any]]
    values: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    tail: frozenset[int] = field(default_factory=frozenset)
    """Indices of the messages that are no history: the last user message, and the newest step."""
    kind: str = ""
    """What kind of question a chat's probe is: a fact, what stands beside it, the latest of several."""


def whole(message: Mapping[str, Any]) -> str:
    """All that a model reads of a message."""
    calls = [f"{call_name(call)} {call_arguments(call)}" for call in tool_calls(message)]
    return "\n".join([text_of(message), *calls])


def points(conversation: Mapping[str, Any], *, inside_turns: bool) -> Iterator[Point]:
    """The requests of a conversation that later calls look back to.

    A value is needed when a later call uses it, it stands in the history, neither the system prompt nor the newest messages
    have it, and no user or tool says it again before.
    """
    messages = conversation["messages"]
    texts = [whole(message) for message in messages]
    for at in range(len(messages)):
        tail = _tail(messages, at, inside_turns=inside_turns)
        if at < 2 or tail is None:
            continue
        fixed = "\n".join(texts[k] for k in range(at + 1) if messages[k]["role"] == "system" or k in tail)
        history = "\n".join(texts[k] for k in range(at + 1) if messages[k]["role"] != "system" and k not in tail)
        values = tuple(_needed(messages, texts, at, fixed, history))
        if values:
            yield Point(list(messages[: at + 1]), values=values, tail=frozenset(tail))


def probes(conversation: Mapping[str, Any]) -> Iterator[Point]:
    """The questions about a chat, each asked at its end."""
    for probe in conversation["probes"]:
        request = [*conversation["messages"], {"role": "user", "content": probe["q"]}]
        yield Point(
            request,
            remarks=tuple(said["text"] for said in probe["evidence"]),
            tail=frozenset({len(request) - 1}),
            kind=probe["kind"],
        )


NEXT = {
    "en": "Thanks. What should we do next?",
    "de": "Danke. Was machen wir als Nächstes?",
    "es": "Gracias. ¿Qué hacemos ahora?",
    "fr": "Merci. On fait quoi maintenant ?",
    "nl": "Dank je. Wat doen we nu?",
    "it": "Grazie. Cosa facciamo adesso?",
    "pl": "Dzięki. Co robimy teraz?",
    "ru": "Спасибо. Что делаем дальше?",
    "ko": "고마워. 이제 뭐 할까?",
    "ar": "شكرا. شو نعمل هلأ؟",
    "ja": "ありがとう。次は何をしましょうか？",
    "pt": "Obrigado. O que fazemos agora?",
    "zh": "谢谢。接下来我们做什么？",
    "tr": "Teşekkürler. Şimdi ne yapıyoruz?",
    "vi": "Cảm ơn. Giờ mình làm gì tiếp?",
    "sv": "Tack. Vad gör vi nu?",
    "id": "Terima kasih. Sekarang kita ngapain?",
    "el": "Ευχαριστώ. Τι κάνουμε τώρα;",
    "hu": "Köszi. Most mit csináljunk?",
    "hi-Latn": "Thanks. Ab aage kya karna hai?",
    "tl": "Salamat. Ano na ang susunod nating gagawin?",
}
"""A question about nothing that was said, by language. In a language that the chat does not speak hardly anything is quoted for it, which
leaves more room for wishes."""


def going_on(conversation: Mapping[str, Any], *, asks: bool = True) -> list[dict[str, Any]]:
    """A chat that goes on with a message about nothing in particular, in its own language: what stands then always stands."""
    text = NEXT[conversation["lang"]] if asks else "OK."
    return [*conversation["messages"], {"role": "user", "content": text}]


def found(point: Point, out: Sequence[Mapping[str, Any]]) -> float:
    """The share of what is needed that a folded request still has."""
    text = "\n".join(whole(message) for message in out)
    hits = [_pattern(value).search(text) is not None for value in point.values]
    rows = [set(_words(row)) for row in text.split("\n")]
    for remark in point.remarks:
        wanted = set(_words(remark))
        hits.append(remark in text or any(len(wanted & row) >= 0.8 * len(wanted) for row in rows))
    return sum(hits) / len(hits)


UNASKED: Final = ("task", "constraint", "decision", "cause", "open")
"""Kinds of questions that a user does not ask while an agent works. The agent must know their answers."""


def said_before(
    talk: Mapping[str, Any], asked: int, out: Sequence[Mapping[str, Any]]
) -> tuple[list[bool], list[float]]:
    """Return what a request in the middle of an agent's work has of what was said before message ``asked``: for each standing wish whether
    it is kept, and shares of tasks, constraints, decisions, causes and open points."""
    wishes = [
        stands(wish["rule"]["text"], out)
        for wish in talk["rules"].values()
        if wish["rule"]["msg"] < asked and "revoked" not in wish
    ]
    remarks = [
        found(Point([], remarks=tuple(said["text"] for said in probe["evidence"])), out)
        for probe in talk["probes"]
        if probe["kind"] in UNASKED and all(said["msg"] < asked for said in probe["evidence"])
    ]
    return wishes, remarks


def _tail(messages: Sequence[Mapping[str, Any]], at: int, *, inside_turns: bool) -> set[int] | None:
    """The newest messages of a request that ends here, or None where none can end."""
    if not inside_turns:
        return {at} if messages[at]["role"] == "user" else None
    if messages[at]["role"] != "tool" or (at + 1 < len(messages) and messages[at + 1]["role"] == "tool"):
        return None
    tail = {at}
    step = at
    while messages[step]["role"] == "tool":
        step -= 1
        tail.add(step)
    users = [k for k in range(at) if messages[k]["role"] == "user"]
    return {*tail, users[-1]} if users else None


def _needed(
    messages: Sequence[Mapping[str, Any]], texts: Sequence[str], at: int, fixed: str, history: str
) -> Iterator[str]:
    seen: set[str] = set()
    for later in range(at + 1, len(messages)):
        for value in _arguments(messages[later]):
            if value in seen:
                continue
            pattern = _pattern(value)
            if pattern.search(fixed) or not pattern.search(history):
                continue
            again = next((k for k in range(at + 1, later) if pattern.search(texts[k])), None)
            if again is None or messages[again]["role"] == "assistant":
                seen.add(value)
                yield value


def _arguments(message: Mapping[str, Any]) -> Iterator[str]:
    for call in tool_calls(message):
        try:
            yield from _leaves(orjson.loads(call_arguments(call)))
        except orjson.JSONDecodeError:
            continue


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) >= 100:
        yield str(int(value)) if float(value).is_integer() else str(value)
    elif isinstance(value, str) and 3 <= len(value.strip()) <= 60:
        yield value.strip()


_PATTERNS: dict[str, re.Pattern[str]] = {}


def _pattern(value: str) -> re.Pattern[str]:
    known = _PATTERNS.get(value)
    if known is None:
        known = _PATTERNS[value] = re.compile(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])", re.I)
    return known


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def stands(remark: str, out: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a folded request still has a remark: word for word, four fifths of its words in one row, or each of its sentences.

    A fold chooses sentences: one of a remark may be in the digest, the other among the quotes.
    """
    if found(Point([], remarks=(remark,)), out) == 1.0:
        return True
    text = "\n".join(map(whole, out))
    return all(line.text in text for line in lines.read({"role": "user", "content": remark}))
