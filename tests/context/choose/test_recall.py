"""Which folded lines a question calls for."""

from collections.abc import Sequence
from itertools import cycle

from gateway.context import frames
from gateway.context.choose.recall import Reach, choose, relevance, render
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


def test_a_passage_that_is_near_in_meaning_is_quoted_without_a_word_of_the_question() -> None:
    def near(question: str, texts: Sequence[str]) -> list[float]:
        return [3.0 if "sage" in text else 0.0 for text in texts]

    question = "How fast can swallows fly?"
    assert quoted(question, tokens=40) == ""
    assert "sage" in render(POOL, choose(POOL, relevance(POOL, question, nearness=near), 40, COUNT, frozenset()))


def service(*messages: tuple[str, str]) -> LinePool:
    """A conversation where every question of a customer is looked up twice; ``messages`` are role and text."""
    told = list(messages)
    for number in range(3):
        told += [
            ("user", f"And number {number}?"),
            ("tool", f'{{"order": "A{number}1", "state": "sent"}}'),
            ("tool", f'{{"order": "B{number}1", "state": "sent"}}'),
            ("assistant", f"Number {number} is on its way."),
        ]
    return LinePool(
        MessageLines(
            index,
            role,
            lines.read({"role": role, "content": text, **({"tool_call_id": "c"} if role == "tool" else {})}),
            "look_up" if role == "tool" else "",
        )
        for index, (role, text) in enumerate(told)
    )


LOOKED_UP = '{"parcel": "parcel to the quarry", "kind": "parcel by van"}'


def test_where_tools_are_called_often_the_assistant_answers_questions() -> None:
    """A record has the words of the question more often; what was told is the answer."""
    pool = service(("tool", LOOKED_UP), ("assistant", "The parcel waits at the quarry for two days, behind the gate."))
    scores = relevance(pool, "Why does the parcel wait at the quarry?")
    of_message = {pool.message_of[passage.start]: score for passage, score in scores.items()}

    assert pool.has_many_calls
    assert not pool.autonomous
    assert of_message[1] > 1.5 * of_message[0]


def test_where_tools_are_called_often_a_remark_is_a_neighbour_of_its_reply_across_the_calls() -> None:
    calls = [("tool", f'{{"row": "{number}"}}') for number in range(6)]
    pool = service(("user", "Send the parcel to the quarry."), *calls, ("assistant", "It leaves on Friday then."))
    scores = relevance(pool, "When is the parcel at the quarry?")

    assert any(pool.message_of[passage.start] == 7 for passage in scores)
