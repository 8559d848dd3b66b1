"""Judge a summariser's answer: read it, accept or reject it, and add required facts that it lost."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gateway.context.choose.cues import binding
from gateway.context.choose.transcript import longest
from gateway.context.choose.words import SYMBOL, words
from gateway.context.count.counter import CountText
from gateway.wire.message import Message, call_arguments, text_of, texts, tool_calls

SHORTEST: Final = 24
"""Characters. A summary that was worth making is longer."""
SHORTER: Final = 0.8
"""Share of the replaced messages that a summary may be long."""
COVERED: Final = 0.6
"""Share of a rule's words that a text must contain to count as stating it."""
RULE: Final = 1.1
"""How binding a user's sentence must sound (`cues.binding`): one word of the closed classes, and no question."""
RULES: Final = 12
"""The most sentences of the user that are added to a summary, the most binding ones."""
IDENTIFIERS: Final = 40
"""The most identifiers that are added to a summary, the most frequent ones."""
LOST: Final = 0.1
"""With a smaller share of the identifiers in use, an answer is about another subject."""

# Texts that models write instead of a summary: nothing, a greeting, or a refusal.
_NOTHING: Final = re.compile(
    r"[\W_]*(?:none|null|nil|n/?a|nothing|empty|no summary|undefined|todo|ok(?:ay)?|sure|无|無|没有|空|なし|없음|нет|rien|nada|keine?)?[\W_]*",
    re.I,
)
_GREETING: Final = re.compile(
    r"\W*(?:hi|hello|hey|greetings|welcome|good (?:morning|day|evening)|how (?:can|may) i (?:help|assist)|i['’]?m (?:here|ready) to (?:help|assist)"
    r"|你好|您好|こんにちは|안녕|hallo|guten tag|bonjour|hola|olá|привет|здравствуй)\b",
    re.I,
)
_REFUSAL: Final = re.compile(
    r"\W*(?:(?:i['’]?m |i am )?(?:sorry|unable)|i (?:can['’]?t|cannot|can not|won['’]?t)|as an ai|抱歉|对不起|申し訳)",
    re.I,
)
_CHATTY: Final = 400
"""Characters. Greetings and refusals are shorter; a longer text with such a beginning says more."""
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>\s*", re.S | re.I)
_FENCE: Final = re.compile(r"```[a-z]*\n(.*)\n```", re.S)
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_TOKENS: Final = re.compile(r"[^\s\"'`<>(){}\[\],;|]+")
_EDGES: Final = ".:-#$%&+~^*!?。，、"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``text`` may replace the messages; if it is empty, ``reason`` says why, without quoting."""

    text: str
    reason: str = ""


def read(body: bytes) -> str:
    """Return the text in a summariser's answer, a string or parts; reasoning when there is nothing else (case 61).

    Empty for an error, a truncated answer, or anything that is not an answer.
    """
    try:
        answer = orjson.loads(body)
        choice = answer["choices"][0]
        message = choice["message"]
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        return ""
    if not isinstance(message, dict) or choice.get("finish_reason") == "length":
        return ""
    said = "\n".join(texts(message.get("content"))).strip()
    without = _THOUGHT.sub("", said).strip()
    text = without or said or _reasoning(message)
    fenced = _FENCE.fullmatch(text)
    return (fenced[1] if fenced else text).strip()


def _reasoning(message: dict[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning"):
        value = message.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def judge(
    text: str,
    messages: Sequence[Message],
    earlier: str,
    *,
    replaced: int,
    size: int,
    count: CountText,
) -> Verdict:
    """Accept an answer, completed with the user's rules and the identifiers in use that it lost, or reject it with a
    reason.

    ``messages`` are all the replaced ones, from the first on, so that early facts are still required after the tenth
    summary; ``earlier`` is the summary it continues. ``replaced`` is the messages' token count, ``size`` the requested
    length.
    """
    if reason := _emptiness(text):
        return Verdict("", reason)
    if count(text) > longest(size):
        return Verdict("", "too_long")
    said = {word.key for word in words(text)}
    known = _identifiers(messages, earlier)
    missing = [spelled for key, spelled in known if key not in said]
    if len(known) >= 10 and len(known) - len(missing) < LOST * len(known):
        return Verdict("", "lost_identifiers")
    whole = _completed(text, [rule for rule in _rules(messages) if not _says(said, rule)], missing, size, count)
    if count(whole) > SHORTER * replaced:
        return Verdict("", "not_shorter")
    return Verdict(whole)


def _emptiness(text: str) -> str:
    if len(text) < SHORTEST or _NOTHING.fullmatch(text):
        return "empty"
    if len(text) < _CHATTY and _GREETING.match(text):
        return "greeting"
    if len(text) < _CHATTY and _REFUSAL.match(text):
        return "refusal"
    return ""


def _completed(text: str, rules: Sequence[str], identifiers: Sequence[str], size: int, count: CountText) -> str:
    """Add missing facts at the end, rules first, within half the requested size."""
    left = size // 2
    lines = [text]
    for head, values, between in (("Said by the user:", rules, "\n- "), ("Also in use:", identifiers, ", ")):
        taken: list[str] = []
        for value in values:
            cost = count(value) + 2
            if cost <= left:
                left -= cost
                taken.append(value)
        if taken:
            lines.append(head + (between if between[0] == "\n" else " ") + between.join(taken))
    return "\n".join(lines)


def _says(said: set[str], sentence: str) -> bool:
    keys = {word.key for word in words(sentence)}
    return not keys or len(keys & said) >= COVERED * len(keys)


def _rules(messages: Sequence[Message]) -> list[str]:
    """Return the most binding sentences of the user, in their original order."""
    found = list(_binding(messages))
    best = sorted(range(len(found)), key=lambda position: -found[position][0])[:RULES]
    return list(dict.fromkeys(found[position][1] for position in sorted(best)))


def _binding(messages: Sequence[Message]) -> Iterator[tuple[float, str]]:
    for message in messages:
        if message.get("role") == "user":
            for sentence in _SENTENCES.split(text_of(message)):
                plain = sentence.strip() if sentence else ""
                if 8 <= len(plain) <= 300 and (strength := binding(plain)) >= RULE:
                    yield strength, plain


def _identifiers(messages: Sequence[Message], earlier: str) -> list[tuple[str, str]]:
    """Return identifiers in use as (normal form, spelling), most frequent first.

    In use means: said by the user, in the earlier summary, or in at least two messages.
    """
    spelled: dict[str, str] = {}
    seen: Counter[str] = Counter()
    sources = [(earlier, 2)] if earlier else []
    for message in messages:
        text = "\n".join([text_of(message), *map(call_arguments, tool_calls(message))])
        sources.append((text, 2 if message.get("role") == "user" else 1))
    for text, weight in sources:
        here: dict[str, str] = {}
        for token in _TOKENS.findall(text):
            for word in words(token):
                if word.kind >= SYMBOL and 3 <= len(word.key) <= 120:
                    here.setdefault(word.key, token.strip(_EDGES) if len(token) < 130 else word.key)
        for key, spelling in here.items():
            spelled.setdefault(key, spelling)
            seen[key] += weight
    return [(key, spelled[key]) for key, times in seen.most_common(IDENTIFIERS) if times >= 2]
