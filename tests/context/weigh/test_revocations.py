"""Later sentences revoke a wish with a probability, and a doubtful wish is not shown without the sentence that makes it doubtful."""

import pytest

from gateway.context.choose import digest, rows
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weigh.revocations import Revocations
from tests.context.pools import pool


def count(text: str) -> int:
    return len(text) // 4 + 1


TAKEN_BACK = [
    (
        "Nothing with lactose goes into my recipes, please.",
        "You may put lactose into the recipes, the doctor laughed at me.",
    ),
    (
        "Keep the neighbours out of every draft you write for me.",
        "You can put the neighbours into the draft, we talked.",
    ),
    ("Bitte keine Termine am Mittwoch, nie.", "Mittwoch kannst du mir Termine legen, der Kurs ist vorbei."),
    (
        "Ne me réserve jamais une place dans le tramway.",
        "Tu peux me réserver une place dans le tramway, le genou va bien.",
    ),
]
"""Wishes, and sentences that take them back without a word of change."""
ASIDES = (
    ("assistant", "Understood."),
    *[each for n in range(40) for each in (("user", f"The lamp in room {n} was dusty."), ("assistant", f"Room {n}."))],
)
"""So many lines that a word of two of them is rare."""


@pytest.mark.parametrize(("wish", "later"), TAKEN_BACK)
def test_a_wish_is_not_shown_without_what_takes_it_back_without_a_word_of_change(wish: str, later: str) -> None:
    found = pool(("user", wish), *ASIDES, ("user", later), ("assistant", "Good."))

    rendered = [rows.render(found, digest.choose(found, tokens, count)) for tokens in range(8, 90, 2)]
    assert any(wish in row for row in rendered)
    assert not any(wish in row and later not in row for row in rendered)


def test_only_later_sentences_of_the_user_revoke_a_wish_and_their_probabilities_are_less_than_one() -> None:
    wish, later = TAKEN_BACK[0]
    found = pool(("user", later), ("assistant", later), ("user", wish), *ASIDES, ("user", later), ("assistant", later))
    at = found.positions[2].start

    probabilities = Revocations(found, [at]).of(at)

    assert max(probabilities, key=probabilities.__getitem__) == found.positions[3 + len(ASIDES)].start
    assert all(found.readings[found.message_of[position]].role == "user" for position in probabilities)
    assert all(position > at for position in probabilities)
    assert 0 < sum(probabilities.values()) < 1


def test_a_word_of_the_wish_in_the_reply_makes_a_revocation_more_probable() -> None:
    wish, later = "Never offer me peppermint tea.", "You can offer me that again from now on."
    with_word = pool(("user", wish), *ASIDES, ("user", later), ("assistant", "Peppermint tea it is."))
    without = pool(("user", wish), *ASIDES, ("user", later), ("assistant", "Good to hear that."))
    at = with_word.positions[1 + len(ASIDES)].start

    assert Revocations(with_word, [0]).of(0)[at] > Revocations(without, [0]).of(0)[at]


def test_a_doubtful_wish_comes_after_other_wishes_or_after_what_makes_it_doubtful() -> None:
    doubtful, plain = "Please always write me the dates with dots.", "The tree names in full, please."
    change = "You can write me the dates as you like, dots or not."
    before = pool(("user", doubtful), ASIDES[0], ("user", plain), *ASIDES)
    after = pool(("user", doubtful), ASIDES[0], ("user", plain), *ASIDES, ("user", change), ("assistant", "Good."))

    def order(found: LinePool) -> list[str]:
        return [found.lines[position].text for position in found.wishes.ranked]

    assert order(before)[0] == doubtful
    assert order(after)[0] in {plain, change}


def test_sentences_that_share_hundreds_of_rare_words_have_a_probability() -> None:
    """A long Chinese sentence has a word for each pair of its characters; a person may paste it again."""
    wish = "以后请不要" + "".join(map(chr, range(0x4E00, 0x4E00 + 340)))
    found = pool(("user", wish), *ASIDES, ("user", wish), ("assistant", "好的。"))

    assert 0.5 < sum(Revocations(found, [0]).of(0).values()) <= 1
