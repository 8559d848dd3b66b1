"""The numbers in a refusal: which of them is the prompt's size, and whether they can be believed.

A refusal may quote the client, or be about another request. So a number is believed only if it can be this request's, and if the refusal
does not repeat the request. This module has no clock and no memory.
"""

import re
import unicodedata
from collections.abc import Iterator
from html import unescape
from math import log
from struct import iter_unpack
from typing import Any, Final
from urllib.parse import unquote

from gateway.context.count.calibration import LEAST_RATIO, MOST_RATIO
from gateway.context.life.attempt import Attempt
from gateway.context.life.replies import StatedNumbers
from gateway.wire.format import Conversation

SMALLEST_WINDOW: Final = 1024
"""Tokens. A smaller number is never a context window: the smallest default of a real server is 2048."""
WINDOW_FACTOR: Final = 3.0
"""Factor. If a stated prompt is further than this from our count, the refusal proves no window: it may be about another
request."""
UNDERCOUNT_FACTOR: Final = 1.1
"""Factor. Without a stated prompt, the true one is at most this far above a count with a small error."""
SMALL_ERROR: Final = 0.1
"""Relative error of a count up to which it is nearly exact."""

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


def stated_prompt(refusal: StatedNumbers, attempt: Attempt, output_limit: int | None) -> int | None:
    """Return the prompt's tokens by the upstream's count; None if it states no exact number."""
    if not refusal.exact:
        return None
    if refusal.prompt is not None:
        return refusal.prompt
    if refusal.excess is not None and refusal.total is None:
        return (refusal.limit or attempt.window) + refusal.excess
    if refusal.total is None:
        return None
    if refusal.completion is not None:
        return max(refusal.total - refusal.completion, 1)
    # Many sums include the requested output without saying so: believe the interpretation nearer to our own count.
    candidates = [refusal.total]
    if output_limit and output_limit < refusal.total:
        candidates.append(refusal.total - output_limit)
    return min(candidates, key=lambda tokens: abs(log(max(tokens, 1) / max(attempt.prompt, 1))))


def plausible_prompt(counted: int, prompt: int | None) -> bool:
    """Return whether a stated size can be this prompt's in some vocabulary."""
    return prompt is not None and LEAST_RATIO * counted <= prompt <= MOST_RATIO * counted


def plausible_window(counted: int, error: float, limit: int | None, prompt: int | None, output: int | None) -> bool:
    """Return whether a stated limit can be the window that was too small for this request."""
    if limit is None or (prompt is not None and not counted / WINDOW_FACTOR <= prompt <= counted * WINDOW_FACTOR):
        return False
    longest = prompt if prompt is not None else counted * (UNDERCOUNT_FACTOR if error < SMALL_ERROR else WINDOW_FACTOR)
    return SMALLEST_WINDOW <= limit < longest + (output or 0)


def is_echo(refusal_body: bytes, conversation: Conversation, *numbers: int | None) -> bool:
    """Return whether a refusal repeats the request: its wording, or its numbers with their neighbouring text.

    A server may quote a role, an id, a name, a stop word or a URL, escaped or truncated. Sizes in such a text come from
    the client. Costs one pass through the request, so it is used for refusals only.
    """
    refusal = _letters_and_digits(_shortened(refusal_body.decode("utf-8", "replace")))
    request_text = "".join(_letters_and_digits(string) for string in _strings(conversation.body))
    stated = [number for number in numbers if number is not None]
    return (
        any(_repeats_number(request_text, refusal, number) for number in stated)
        or _is_in_short_text(conversation.body, {str(number) for number in stated})
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
    halves_in_request = {
        piece for (piece,) in iter_unpack(f"{RUN_CHARACTERS // 2}s", memoryview(text)[:whole]) if piece in wanted
    }
    return any(run in text for run in runs if not halves_in_request.isdisjoint(halves[run]))


def _number_contexts(refusal: str, number: int) -> list[str]:
    """Return each occurrence of a number in a refusal, as text: the number with the characters before it, and with those after
    it."""
    digits = str(number)
    if digits not in refusal and number % 1000 == 0:
        digits = f"{number // 1000}k"
    contexts: list[str] = []
    for match in re.finditer(re.escape(digits), refusal):
        before, after = (
            refusal[max(match.start() - NEIGHBOUR_CHARACTERS, 0) : match.end()],
            refusal[match.start() : match.end() + NEIGHBOUR_CHARACTERS],
        )
        contexts += [part for part in (before, after) if len(part) > len(digits)]
    return contexts


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
