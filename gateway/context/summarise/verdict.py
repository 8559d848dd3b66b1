"""The verdict on a summariser's answer: read it, accept or reject it, and add required facts that it lost."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import orjson

from gateway.context.count.counter import CountText
from gateway.context.read.cues import binding
from gateway.context.read.words import SYMBOL, words
from gateway.context.summarise.transcript import longest
from gateway.wire.message import Message, call_arguments, text_of, texts, tool_calls

LEAST_CHARACTERS: Final = 24
"""Characters. A shorter text is no summary."""
MOST_OF_REPLACED: Final = 0.8
"""Share of the replaced messages' tokens that a summary may have."""
LEAST_RULE_WORDS: Final = 0.6
"""Share of a rule's words that a text must contain to count as stating it."""
LEAST_BINDING: Final = 1.1
"""How binding a user's sentence must sound to count as a rule (`cues.binding`): it has one word of the closed classes,
and is no question."""
MOST_RULES: Final = 12
"""Most rules of the user that are added to a summary: the most binding ones."""
MOST_IDENTIFIERS: Final = 40
"""Most identifiers that are added to a summary: the most frequent ones."""
LEAST_IDENTIFIERS: Final = 0.1
"""Share of the identifiers in use. With fewer, an answer is about another subject. It is asked of `MANY_IDENTIFIERS` and more."""
MANY_IDENTIFIERS: Final = 10
"""Number of identifiers in use from which on `LEAST_IDENTIFIERS` counts. Chosen: a good summary may leave out a few."""
RULE_CHARACTERS: Final = range(8, 301)
"""Characters of a sentence that may be a rule. Chosen: shorter ones say nothing, longer ones are pasted text."""
IDENTIFIER_CHARACTERS: Final = range(3, 121)
"""Characters of an identifier in its normal form. Chosen: shorter ones are in any text, longer ones are tokens of data."""
MOST_SPELLING_CHARACTERS: Final = 130
"""A token with at least so many characters is more than its identifier: the identifier is written in its normal form."""

# Texts that models write instead of a summary: an empty one, a greeting, or a refusal.
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
_MOST_GREETING: Final = 400
"""Characters of a greeting or refusal. A longer text with such a beginning says more."""
_THINKING: Final = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>\s*", re.S | re.I)
_FENCE: Final = re.compile(r"```[a-z]*\n(.*)\n```", re.S)
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_NON_SPACE: Final = re.compile(r"[^\s\"'`<>(){}\[\],;|]+")
_PUNCTUATION: Final = ".:-#$%&+~^*!?。，、"


class Verdict(msgspec.Struct, frozen=True):
    """``text`` may replace the messages. If it is empty, ``reason`` says why; it quotes nothing."""

    text: str
    reason: str = ""


def read(body: bytes) -> str:
    """Return the text in a summariser's answer; its reasoning if there is no other text (case 61).

    Empty for an error, a truncated answer, or a body that is no answer.
    """
    try:
        answer = orjson.loads(body)
        choice = answer["choices"][0]
        message = choice["message"]
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        return ""
    if not isinstance(message, dict) or choice.get("finish_reason") == "length":
        return ""
    content = "\n".join(texts(message.get("content"))).strip()
    text = _THINKING.sub("", content).strip() or content or _reasoning(message)
    fenced = _FENCE.fullmatch(text)
    return (fenced[1] if fenced else text).strip()


def _reasoning(message: dict[str, Any]) -> str:
    """Return the reasoning in a message; empty without one."""
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
    """Accept an answer, and add the user's rules and the identifiers that it lost; or reject it with a reason.

    ``messages`` are all the replaced ones, from the first on, so that early facts are still required after the tenth
    summary. ``earlier`` is the summary that this one continues. ``replaced`` is the tokens of the messages, ``size`` the
    requested tokens of the summary.
    """
    if reason := _no_summary(text):
        return Verdict("", reason)
    if count(text) > longest(size):
        return Verdict("", "too_long")
    present = {word.key for word in words(text)}
    identifiers = _identifiers(messages, earlier)
    missing = [spelled for key, spelled in identifiers if key not in present]
    if len(identifiers) >= MANY_IDENTIFIERS and len(identifiers) - len(missing) < LEAST_IDENTIFIERS * len(identifiers):
        return Verdict("", "lost_identifiers")
    missing_rules = [rule for rule in _rules(messages) if not _states(present, rule)]
    completed = _completed(text, missing_rules, missing, size, count)
    if count(completed) > MOST_OF_REPLACED * replaced:
        return Verdict("", "not_shorter")
    return Verdict(completed)


def _no_summary(text: str) -> str:
    """Return why a text is no summary; empty if it may be one."""
    if len(text) < LEAST_CHARACTERS or _NOTHING.fullmatch(text):
        return "empty"
    if len(text) < _MOST_GREETING and _GREETING.match(text):
        return "greeting"
    if len(text) < _MOST_GREETING and _REFUSAL.match(text):
        return "refusal"
    return ""


def _completed(text: str, rules: Sequence[str], identifiers: Sequence[str], size: int, count: CountText) -> str:
    """Add missing facts at the end, rules first, within half the requested size."""
    left = size // 2
    lines = [text]
    for heading, values, separator in (("Said by the user:\n- ", rules, "\n- "), ("Also in use: ", identifiers, ", ")):
        added: list[str] = []
        for value in values:
            cost = count(value) + 2
            if cost <= left:
                left -= cost
                added.append(value)
        if added:
            lines.append(heading + separator.join(added))
    return "\n".join(lines)


def _states(present: set[str], sentence: str) -> bool:
    """Return whether a text with these words states a sentence."""
    keys = {word.key for word in words(sentence)}
    return not keys or len(keys & present) >= LEAST_RULE_WORDS * len(keys)


def _rules(messages: Sequence[Message]) -> list[str]:
    """Return the most binding sentences of the user, in their original order."""
    sentences = list(_binding_sentences(messages))
    best = sorted(range(len(sentences)), key=lambda position: -sentences[position][0])[:MOST_RULES]
    return list(dict.fromkeys(sentences[position][1] for position in sorted(best)))


def _binding_sentences(messages: Sequence[Message]) -> Iterator[tuple[float, str]]:
    """Yield the binding sentences of the user: how binding each sounds, and its text."""
    for message in messages:
        if message.get("role") == "user":
            for sentence in _SENTENCES.split(text_of(message)):
                plain = sentence.strip() if sentence else ""
                if len(plain) in RULE_CHARACTERS and (strength := binding(plain)) >= LEAST_BINDING:
                    yield strength, plain


def _identifiers(messages: Sequence[Message], earlier: str) -> list[tuple[str, str]]:
    """Return the identifiers in use as (normal form, spelling), the most frequent first.

    An identifier is in use if the user wrote it, or if it is in the earlier summary or in at least two messages.
    """
    spellings: dict[str, str] = {}
    uses: Counter[str] = Counter()
    sources = [(earlier, 2)] if earlier else []
    for message in messages:
        text = "\n".join([text_of(message), *map(call_arguments, tool_calls(message))])
        sources.append((text, 2 if message.get("role") == "user" else 1))
    for text, weight in sources:
        in_text: dict[str, str] = {}
        for token in _NON_SPACE.findall(text):
            for word in words(token):
                if word.shape >= SYMBOL and len(word.key) in IDENTIFIER_CHARACTERS:
                    in_text.setdefault(
                        word.key, token.strip(_PUNCTUATION) if len(token) < MOST_SPELLING_CHARACTERS else word.key
                    )
        for key, spelling in in_text.items():
            spellings.setdefault(key, spelling)
            uses[key] += weight
    return [(key, spellings[key]) for key, number in uses.most_common(MOST_IDENTIFIERS) if number >= 2]
