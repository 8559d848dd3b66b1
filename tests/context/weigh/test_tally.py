"""Counting the words of a conversation that grew, was edited, or went on otherwise."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.context.choose import digest
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import MOST_FAMILY_WORDS, LinePool
from gateway.context.weigh.tally import Tally, tally
from tests.context.messages import call, message, result

TEXTS = (
    "My phone number is 555-0142.",
    "My phone number changed, it is 555-0977 now.",
    "Please never call me before nine.",
    "Noted, never before nine. The parcel AB1234 waits in Basel.",
    "May I have it back? May is fine.",
    "Call me MAY from now on.",
)
SAID = [message(role, text) for role in ("user", "assistant") for text in TEXTS]
CALLED = [call("c", "find", order="AB1234"), call("c", "find", street="Rose Lane")]
TOLD = [
    result("c", {"order": "AB1234", "paid": "KX4071", "city": "Basel"}),
    result("c", {"orders": [{"id": "AB1234"}, {"id": "CD9876", "day": "2026-05-11"}]}),
    result("c", "row AB1234 stored\nrow KX4071 failed: timeout\n" * 4),
]
KINDS = [
    MessageLines(0, each["role"], found, "find(order=AB1234)" if each["role"] == "tool" else "")
    for each in (*SAID, *CALLED, *TOLD)
    for found in (lines.read(each), lines.read(each)[:1])
]
"""Messages, and each with one line alone, as a skim has it."""

conversations = st.lists(st.sampled_from(range(len(KINDS))), max_size=14)


def readings(kinds: Sequence[int]) -> dict[int, MessageLines]:
    return {index: replace(KINDS[kind], message=index) for index, kind in enumerate(kinds)}


def counts(found: Tally) -> tuple[object, ...]:
    """All that is counted, without the order."""
    return (*found.counts, found.lines, {key: set(words) for key, words in found.spellings.items()})


@given(st.lists(conversations, min_size=1, max_size=5), conversations)
def test_counts_that_are_continued_are_those_of_all_lines(grown: list[list[int]], last: list[int]) -> None:
    found: Tally | None = None
    for kinds in (*grown, last):
        found = tally(readings(kinds), found)

    assert found is not None
    assert counts(found) == counts(tally(readings(last)))


@given(conversations, st.integers(0, 14), conversations)
def test_the_same_lines_are_chosen_whatever_was_counted_before(before: list[int], kept: int, more: list[int]) -> None:
    """Whether the conversation grew by a turn, or went on otherwise behind some message."""
    now = readings([*before[:kept], *more])
    continued = LinePool(now.values(), 0, tally(readings(before)))
    anew = LinePool(now.values(), 0)

    assert continued.worth.odds == anew.worth.odds
    assert continued.worth.bounds == anew.worth.bounds
    assert continued.outdated == anew.outdated
    assert continued.wishes == anew.wishes
    assert [continued.family_of("phone"), continued.lines_with("may")] == [
        anew.family_of("phone"),
        anew.lines_with("may"),
    ]
    assert digest.choose(continued, 60, len) == digest.choose(anew, 60, len)


def test_of_a_large_family_the_first_words_are_looked_up_whatever_was_counted_before() -> None:
    rows = [" ".join(f"light{letter}" for letter in letters) for letters in ("nmlkjih", "gfdcbao")]
    now = {index: MessageLines(index, "user", lines.read(message("user", row))) for index, row in enumerate(rows)}
    continued = LinePool(now.values(), 0, tally({1: now[1]}))

    found = continued.family_of("lighter")

    assert found == LinePool(now.values(), 0).family_of("lighter")
    assert found[0] == "lightn"
    assert len(found) == MOST_FAMILY_WORDS == 12
    assert continued.family_of("ligh") == []


def test_a_message_that_is_read_in_part_is_counted_anew() -> None:
    long = MessageLines(0, "user", lines.read(message("user", "\n".join(TEXTS))))
    rest = {index: replace(KINDS[index], message=index) for index in range(1, 6)}
    before = tally({0: long, **rest})
    short = replace(long, lines=long.lines[:2])

    assert counts(tally({0: short, **rest}, before)) == counts(tally({0: short, **rest}))
    assert counts(tally({0: short, **rest})) != counts(before)
