"""Evidence: how reliable a refusal's numbers, or a bill, are.

A refusal may quote the client, and a bill may leave out text that a template drops or a cache held. So a number is
believed only when no innocent explanation, and no echo of the request, can have produced it. This module has no clock
and no memory.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import unescape
from struct import iter_unpack
from typing import Any, Final, Literal
from urllib.parse import unquote

import msgspec

from gateway.context.count.counter import Counter
from gateway.wire.format import Conversation
from gateway.wire.message import Message, text_of

SMALLEST_WINDOW: Final = 1024
"""Tokens. A smaller number is never a context window: the smallest default of a real server is 2048."""
LEAST_TRUNCATED_BILL: Final = 256
"""Tokens. A smaller bill is no sign of truncation: no server has so small a window, but a cache or a mock may bill it."""
WINDOW_FACTOR: Final = 3.0
"""Factor. If a stated prompt is further than this from our count, the refusal proves no window: it may be about another
request."""
LEAST_COUNT_RATIO: Final = 0.2
"""Ratio; see `MOST_COUNT_RATIO`."""
MOST_COUNT_RATIO: Final = 8.0
"""Ratio of a stated prompt to our count. A larger one is no count of tokens, but of characters or bytes."""
UNDERCOUNT_FACTOR: Final = 1.1
"""Factor. Without a stated prompt, the true one is at most this far above a count with a small error."""
SMALL_ERROR: Final = 0.1
"""Relative error of a count up to which it is nearly exact."""
LOW_BILL_SHARE: Final = 0.8
"""Share of the tokens that were surely sent. A bill below it, less twice the count's error, leaves something out."""
LOW_GROWTH_SHARE: Final = 0.5
"""Share of the tokens by which a conversation surely grew. If its bill grew by less (less twice the count's error), the bill
leaves something out."""
LEAST_GROWN_TOKENS: Final = 128
"""Tokens. If a conversation grew by less, or by less than a fiftieth of its bill, its bill proves nothing."""
EQUAL_SHARE: Final = 0.05
"""Share by which two equal sizes may differ, of different templates."""
EQUAL_SHARE_OF_NEWEST: Final = 0.25
"""The same if only the newest messages are compared. Chosen larger, because frames are a larger part of them."""
EQUAL_TOKENS: Final = 64
"""Tokens by which two equal sizes may differ besides."""
ANCHOR_FACTOR: Final = 2.0
"""Factor. A bill further than this from the best count is not used as an anchor: it may be for another text."""

RUN_CHARACTERS: Final = 16
"""Characters, letters and digits only. A run of a refusal of this length is searched in the request. Shorter runs are
everyday phrases."""
STRIDE_CHARACTERS: Final = 4
"""Characters between the starts of two runs. So a common text of 19 characters is always found."""
NEIGHBOUR_CHARACTERS: Final = 6
"""Characters next to a number that are searched together with it."""
COMPARED_CHARACTERS: Final = 4000
"""Characters of a refusal that are compared with the request, half from its beginning and half from its end."""
FEW_BYTES: Final = 2**16
"""Bytes of a request. In a shorter one, searching for every run is fastest."""
SHORT_CHARACTERS: Final = 64
"""Characters. In a string this short (a role, an id, a stop word, a name) the number alone is an echo."""

ORDINARY_FIELDS: Final = frozenset(
    {
        "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens",
        "messages", "metadata", "min_p", "modalities", "model", "n", "parallel_tool_calls", "prediction", "presence_penalty",
        "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "repetition_penalty", "response_format",
        "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice",
        "tools", "top_k", "top_logprobs", "top_p", "user", "verbosity",
        # The Messages API's own.
        "cache_control", "inference_geo", "output_config", "output_format", "stop_sequences", "thinking",
        # The Responses API's own.
        "background", "include", "max_output_tokens", "max_tool_calls", "reasoning", "text",
    }
)  # fmt: skip
"""Fields that are known not to shorten a prompt, in all formats. Any other (``truncate_prompt_tokens``, ``transforms``,
``truncation``, ``context_management``) may cause truncation."""

BillVerdict = Literal["whole", "suspect", "unclear"]
"""``whole``: the bill covers everything that was sent. ``suspect``: the server must have truncated. ``unclear``: neither is certain."""


class LastRequest(msgspec.Struct, frozen=True):
    """Facts about a conversation from its last request. Sizes are tokens."""

    covered: int
    """The number of messages in the last request."""
    anchored: int = 0
    """The number of messages in the last request with a believed bill; 0 without one."""
    billed: int = 0
    """The tokens of that bill."""
    full: bool = False
    """Whether that bill agreed with our count of the whole request, including tool results."""
    suspicions: int = 0
    """The number of suspect bills since then."""


def plausible_prompt(counted: int, prompt: int | None) -> bool:
    """Return whether a stated size can be this prompt's in some vocabulary."""
    return prompt is not None and LEAST_COUNT_RATIO * counted <= prompt <= MOST_COUNT_RATIO * counted


def plausible_window(counted: int, error: float, limit: int | None, prompt: int | None, output: int | None) -> bool:
    """Return whether a stated limit can be the window that was too small for this request."""
    if limit is None or (prompt is not None and not counted / WINDOW_FACTOR <= prompt <= counted * WINDOW_FACTOR):
        return False
    longest = prompt if prompt is not None else counted * (UNDERCOUNT_FACTOR if error < SMALL_ERROR else WINDOW_FACTOR)
    return SMALLEST_WINDOW <= limit < longest + (output or 0)


def is_echo(refusal_body: bytes, request: Conversation, *numbers: int | None) -> bool:
    """Return whether a refusal repeats the request: its wording, or its numbers with their neighbouring text.

    A server may quote a role, an id, a name, a stop word or a URL, escaped or truncated. Sizes in such a text come from
    the client. Costs one pass through the request, so it is used for refusals only.
    """
    refusal = _letters_and_digits(_shortened(refusal_body.decode("utf-8", "replace")))
    request_text = "".join(_letters_and_digits(string) for string in _strings(request.body))
    stated = [number for number in numbers if number is not None]
    return (
        any(_repeats_number(request_text, refusal, number) for number in stated)
        or _is_in_short_text(request.body, {str(number) for number in stated})
        or (bool(refusal) and _shares_a_run(refusal, request_text))
    )


def _shortened(text: str) -> str:
    """Return the beginning and the end of a long refusal."""
    half = COMPARED_CHARACTERS // 2
    return text if len(text) <= COMPARED_CHARACTERS else text[:half] + text[-half:]


def _repeats_number(request_text: str, refusal: str, number: int) -> bool:
    """Return whether the request has a refusal's number with the same text beside it. Also true if the refusal has no such
    number."""
    contexts = _number_contexts(refusal, number)
    return not contexts or any(context in request_text for context in contexts)


def _is_in_short_text(body: Any, numbers: set[str]) -> bool:
    """Return whether one of the numbers is in a short string of the request, which a server may quote as a whole."""
    return any(
        len(text) <= SHORT_CHARACTERS and not numbers.isdisjoint(re.findall(r"\d+", text))
        for text in _short_strings(body)
    )


def _shares_a_run(refusal: str, request_text: str) -> bool:
    """Return whether the request has a run of the refusal.

    A run in the request covers at least one of the request's consecutive pieces of half its length. One pass looks for those
    pieces, and only runs with such a piece are searched for: a search for every run would take seconds in a large body.
    """
    text = request_text.encode("utf-8", "surrogatepass")
    starts = range(0, max(len(refusal) - RUN_CHARACTERS, 0) + 1, STRIDE_CHARACTERS)
    runs = [refusal[at : at + RUN_CHARACTERS].encode("utf-8", "surrogatepass") for at in starts]
    if len(text) < FEW_BYTES or len(runs[0]) < RUN_CHARACTERS:
        return any(run in text for run in runs)
    halves = {
        run: {run[at : at + RUN_CHARACTERS // 2] for at in range(len(run) - RUN_CHARACTERS // 2 + 1)} for run in runs
    }
    wanted = set().union(*halves.values())
    whole = len(text) - len(text) % (RUN_CHARACTERS // 2)
    found = {piece for (piece,) in iter_unpack(f"{RUN_CHARACTERS // 2}s", memoryview(text)[:whole]) if piece in wanted}
    return any(run in text for run in runs if not found.isdisjoint(halves[run]))


def judge(sent: "SentCount", billed: int, cached: int | None, before: LastRequest | None) -> BillVerdict:
    """Judge the bill of a request. ``before`` is the last request of its conversation."""
    is_low = billed < LOW_BILL_SHARE * sent.sure_share * sent.least
    if not is_low and not has_stopped_growing(sent, billed, before):
        return "whole" if sent.prompt / ANCHOR_FACTOR <= billed <= sent.prompt * ANCHOR_FACTOR else "unclear"
    has_innocent_explanation = (
        billed < LEAST_TRUNCATED_BILL
        or sent.has_upper_bounds
        or not ORDINARY_FIELDS.issuperset(sent.request.body)
        or (_are_equal(billed + (cached or 0), sent.prompt, max(EQUAL_SHARE, sent.error)) and bool(cached))
        or (before is not None and _are_equal(billed, sent.cost_from(before.covered), EQUAL_SHARE_OF_NEWEST))
    )
    return "unclear" if has_innocent_explanation else "suspect"


def has_stopped_growing(sent: "SentCount", billed: int, before: LastRequest | None) -> bool:
    """Return whether a conversation has grown since its last believed bill while its bill has not."""
    if before is None or not before.anchored or sent.folded:
        return False
    grown = sent.least_from(before.anchored, results=before.full)
    if grown < max(LEAST_GROWN_TOKENS, before.billed // 50):
        return False
    return billed - before.billed < LOW_GROWTH_SHARE * sent.sure_share * grown


class SentCount(msgspec.Struct, frozen=True, kw_only=True):
    """The sent request, by our counts."""

    request: Conversation
    messages: Sequence[Message]
    counter: Counter
    """Uses the vocabulary alone."""
    counted: int
    """The whole request by the vocabulary alone: no learned ratio, no earlier bill."""
    prompt: int
    """The whole request by the best available count."""
    error: float
    """Relative error of ``counted``."""
    folded: bool
    has_upper_bounds: bool
    """Whether some part is only counted by an upper bound, or is outside the body."""

    @property
    def sure_share(self) -> float:
        """The share of a count that was surely sent: all but twice its error."""
        return 1 - max(2 * self.error, SMALL_ERROR)

    @property
    def least(self) -> int:
        """A lower bound that holds for every template: the texts of users, assistant and instructions, without frames."""
        return min(self.least_from(0, results=False), self.prompt)

    def least_from(self, start: int, *, results: bool) -> int:
        """Return a lower bound from message ``start`` on; tool ``results`` may be counted if the model is known to read them."""
        roles = _SPOKEN | _RESULTS if results else _SPOKEN
        return sum(self.counter.text(text_of(m)) for m in self.messages[start:] if m.get("role") in roles)

    def cost_from(self, start: int) -> int:
        """Return our full count from message ``start`` on: a server whose cache has the messages before bills this."""
        return sum(map(self.counter.message, self.messages[start:]))


_SPOKEN: Final = frozenset({"system", "developer", "user", "assistant"})
_RESULTS: Final = frozenset({"tool"})


def window_like(tokens: int) -> int:
    """Return the smallest usual size of a window that holds so many tokens: a power of two, or one and a half times one."""
    size = SMALLEST_WINDOW
    while size < tokens:
        if size * 3 // 2 >= tokens:
            return size * 3 // 2
        size *= 2
    return size


def _are_equal(billed: int, counted: int, share: float) -> bool:
    return abs(billed - counted) <= share * counted + EQUAL_TOKENS


def _number_contexts(refusal: str, number: int) -> list[str]:
    """Return each occurrence of a number in a refusal, as text: the number with the characters before it, and with those after
    it."""
    digits = str(number)
    if digits not in refusal and number % 1000 == 0:
        digits = f"{number // 1000}k"
    found: list[str] = []
    for match in re.finditer(re.escape(digits), refusal):
        before, after = (
            refusal[max(match.start() - NEIGHBOUR_CHARACTERS, 0) : match.end()],
            refusal[match.start() : match.end() + NEIGHBOUR_CHARACTERS],
        )
        found += [part for part in (before, after) if len(part) > len(digits)]
    return found


def _letters_and_digits(text: str) -> str:
    """Return only the letters and digits of a text, with escapes decoded: any form of quoting keeps these."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        text = _CONTROL.sub(" ", text)
    if "&" in text:
        text = unescape(text)
    if "%" in text:
        text = unquote(text, errors="replace")
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if text.isascii():
        return text.encode().translate(_LOWER_CASE, _ASCII_MARKS).decode()
    return _MARKS.sub("", text).casefold()


_ESCAPE: Final = re.compile(r"(?<!\\)\\+[ux]\{?0*([0-9a-fA-F]{2,4})\}?")
_CONTROL: Final = re.compile(r"(?<!\\)\\+[nrtbf]")
_MARKS: Final = re.compile(r"[\W_]+")
_ASCII_MARKS: Final = bytes(byte for byte in range(128) if not chr(byte).isalnum())
_LOWER_CASE: Final = bytes(range(256)).lower()


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, including member names; without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += reversed(item)
        elif hasattr(item, "items"):
            for key, inner in item.items():
                waiting += (inner, key)


def _short_strings(body: Any) -> Iterator[str]:
    """Yield every string of a request that a server may quote as a whole, besides message texts and the model's name."""
    for key, value in body.items():
        if key == "messages" and isinstance(value, list):
            for message in value:
                yield from _strings({name: part for name, part in message.items() if name != "content"})
        elif key != "model":
            yield from _strings(value)
