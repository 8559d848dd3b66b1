"""Which folded lines a question calls for."""

from itertools import cycle

from gateway.context import frames
from gateway.context.choose.recall import Reach, choose, render
from gateway.context.choose.relevance import relevance
from gateway.context.count.message_cost import counter
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool

COUNT = counter("o200k").text
SAID = (
    "I adopted a terrier in May and called him Biscuit.",
    "Work was busy, as always.",
    "My sister Elena moves to Bergen in October.",
    "The weather has been awful here, really.",
    "We painted the kitchen sage green.",
    "I like long walks.",
)
POOL = LinePool(
    MessageLines(index, role, lines.read({"role": role, "content": text}))
    for index, (role, text) in enumerate(zip(cycle(("user", "assistant")), SAID, strict=False))
)


def quoted(question: str, tokens: int = 60, hidden: frozenset[int] = frozenset()) -> str:
    return render(POOL, choose(POOL, relevance(POOL, question), tokens, COUNT, hidden))


def test_a_question_finds_what_was_said_in_other_forms_of_its_words() -> None:
    assert "Biscuit" in quoted("Which dog did you adopt?")


def test_quotes_are_marked_as_such() -> None:
    text = quoted("Where is my sister moving?")

    assert text.startswith(frames.QUOTES)
    assert text == frames.framed(frames.QUOTES, "\n".join(text.split("\n")[1:-1]))
    assert "Bergen" in text


def test_nothing_is_quoted_without_a_relevant_passage() -> None:
    assert quoted("Thanks!") == ""
    assert quoted("How fast can swallows fly?") == ""


def test_a_question_that_names_no_subject_quotes_nothing_for_the_words_it_is_made_of() -> None:
    rows = ("She said thanks on the next corner.", "He knew what we should do.", "It rained.")
    pool = LinePool(
        MessageLines(index, "user", lines.read({"role": "user", "content": text})) for index, text in enumerate(rows)
    )

    assert choose(pool, relevance(pool, "Thanks. What should we do next?"), 60, COUNT, ()) == []
    assert choose(pool, relevance(pool, "Thanks. What should we do at the next corner?"), 60, COUNT, ()) != []


def test_what_the_model_sees_anyway_is_not_quoted() -> None:
    assert "Bergen" not in quoted("Where is my sister moving?", hidden=frozenset({2}))


def test_beyond_many_tokens_a_passage_must_be_more_relevant() -> None:
    """After many quotes, less relevant passages cost more than they find."""
    best = [f"The ferry to Bergen leaves from pier {n} of the harbour on Fridays." for n in range(16)]
    weak = [
        f"In week {n} the ferry will leave late, said the man with the plums, the pears and the nuts, who sat by the window all day long and said no more."
        for n in range(48)
    ]
    apart = [text for each in [*best, *weak] for text in (each, *["So it went on."] * 4)]
    pool = LinePool(
        MessageLines(index, "user", lines.read({"role": "user", "content": text})) for index, text in enumerate(apart)
    )

    def quoted_of(reach: Reach) -> str:
        scores = relevance(pool, "Where does the Bergen ferry leave?")
        return render(pool, choose(pool, scores, 8000, COUNT, (), reach=reach))

    assert quoted_of(Reach.FAR).count("In week") == 48
    assert quoted_of(Reach.NEAR).count("In week") < 48
    assert quoted_of(Reach.NEAR).count("The ferry to Bergen") == 16
