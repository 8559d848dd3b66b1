"""Each weight has an effect on the order of passages; these tests fail without it."""

from itertools import pairwise

import pytest

from gateway.context import weights
from gateway.context.choose import recall
from gateway.context.choose.recall import choose
from gateway.context.choose.relevance import relevance
from gateway.context.read import lines
from gateway.context.weigh.line_pool import LinePool
from tests.context.pools import pool

FILLER = [
    ("user", "The kettle broke and the plumber came late."),
    ("assistant", "That happens with kettles."),
    ("user", "Nothing else on today, only rain."),
    ("assistant", "Rain suits a quiet morning."),
]


def ranked(found: LinePool, query: str, known: frozenset[str] = frozenset()) -> list[str]:
    """Return the first lines of the passages, the most relevant first."""
    scores = relevance(found, query, known)
    order = sorted(scores, key=lambda passage: -scores[passage])
    return [found.lines[passage.start].text for passage in order]


def test_an_answer_beside_the_question_that_has_the_words_is_found() -> None:
    found = pool(
        *FILLER,
        ("assistant", "Shall it be the oak veneer or the walnut one for the cupboard?"),
        ("user", "The second."),
        *FILLER,
    )

    assert "The second." in ranked(found, "Which veneer did I take for the cupboard?")[:2]


def test_nearer_messages_count_more_than_those_further_off() -> None:
    assert 1 > weights.NEIGHBOUR_SHARE > 0
    found = pool(
        *FILLER,
        ("user", "We looked at the lighthouse."),
        ("assistant", "Lovely."),
        ("user", "Fog came up."),
        ("assistant", "I see it."),
        *FILLER,
    )
    scores = relevance(found, "What of the lighthouse?")
    near = {
        found.message_of[passage.start]: score * (found.size(passage) + 4) ** 0.5 for passage, score in scores.items()
    }

    assert near[5] * 1.3 > near[6] > 0


def test_only_where_there_is_much_place_a_passage_that_bears_less_on_the_question_is_quoted() -> None:
    less = "A pipe ran along the wall of the garden behind the shed, past the old gate and the pear trees, and down to the road."
    found = pool(
        *FILLER,
        ("user", "The plumber charges forty euros for a pipe in the cellar."),
        *FILLER * 2,
        ("user", less),
        *FILLER * 2,
    )

    def quoted(tokens: int) -> list[str]:
        scores = relevance(found, "What does the plumber charge for a pipe?")
        positions = choose(found, scores, tokens, lambda text: len(text) // 4, ())
        return [found.lines[position].text for position in positions]

    assert less in quoted(2 * weights.MANY_QUOTE_TOKENS)
    assert less not in quoted(weights.MANY_QUOTE_TOKENS)
    assert any(text.startswith("The plumber charges") for text in quoted(weights.MANY_QUOTE_TOKENS))


def test_the_answer_beside_an_earlier_question_in_the_same_words_needs_less_to_be_quoted() -> None:
    asked = "Which colour shall the bench under the kitchen window be painted in, the one that stands beside the water butt?"
    answer = "A blue-grey such as Inchyra, in an eggshell finish for outdoors, two coats of it over a primer, and let each dry for a day."
    found = pool(*FILLER, ("user", asked), ("assistant", answer), *FILLER * 2)
    scores = relevance(found, "Which colour is my bench under the kitchen window, beside the water butt?")

    def shown(beside: float) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recall, "LEAST_SCORE_SHARE_BESIDE_BEST", beside)
            positions = choose(found, scores, weights.MANY_QUOTE_TOKENS, lambda text: len(text) // 4, ())
        return [found.lines[position].text for position in positions]

    assert answer in shown(weights.LEAST_SCORE_SHARE_BESIDE_BEST)
    assert answer not in shown(1.0)


def test_rare_words_outweigh_several_common_ones() -> None:
    common = [("user", f"We went to the market and the harbour on day {number}.") for number in range(6)]
    found = pool(*common, *FILLER, ("user", "Grandpa carved a pelican."), *FILLER)

    assert ranked(found, "What about the pelican that we saw in the market at the harbour?")[0].startswith("Grandpa")


def test_a_question_about_the_user_quotes_the_user() -> None:
    said = ("The violin is in the attic.", "The violin is in the cellar.")
    found = pool(*FILLER, ("user", said[0]), *FILLER, ("assistant", said[1]), *FILLER)

    assert ranked(found, "Where is my violin?")[0] == said[0]
    assert relevance(found, "Where is your violin?") != relevance(found, "Where is my violin?")


def test_words_of_the_system_prompt_count_less() -> None:
    found = pool(*FILLER, ("user", "The insurance is dull."), *FILLER, ("user", "The heron is back."), *FILLER)
    query = "What of the insurance and of the heron?"
    known = frozenset(word.key for word in lines.read({"role": "user", "content": "insurance"})[0].words)

    assert ranked(found, query, known)[0].startswith("The heron")


def test_words_of_one_family_meet() -> None:
    found = pool(*FILLER, ("user", "Der Haustürschlüssel hängt im Flur."), *FILLER)

    assert ranked(found, "Wo sind die Haustüren?")[0].startswith("Der Haustür")


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (weights.NAMED_IN_CALL, weights.NAMED_BY_USER),
        (weights.NAMED_BY_USER, weights.NAMED_BY_ASSISTANT),
        (weights.NAMED_BY_ASSISTANT, 1.0),
        (weights.TO_OTHER, weights.DUTY),
        (weights.ASSENT_IN_REPLY, weights.ASIDE),
        (weights.SPEAKER_FACTOR, weights.USER_FACTOR),
    ],
)
def test_the_order_of_weights_that_share_a_scale(more: float, less: float) -> None:
    assert more > less


def test_identifiers_are_worth_more_than_words_and_speech_more_than_data() -> None:
    assert all(said > data for said, data in zip(weights.IN_SPEECH, weights.IN_DATA, strict=True))
    assert all(
        low < high
        for low, high in pairwise(
            [weights.IN_SPEECH[0], weights.IN_SPEECH[1], weights.IN_SPEECH[5], weights.IN_SPEECH[6]]
        )
    )
