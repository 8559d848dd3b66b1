"""How relevant folded passages are to a question."""

from collections.abc import Sequence

from gateway.context.choose.recall import choose, render
from gateway.context.choose.relevance import relevance
from gateway.context.count.message_cost import counter
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool

COUNT = counter("o200k").text
SAID = (
    "I adopted a terrier in May and called him Biscuit.",
    "Work was busy, as always.",
    "We painted the kitchen sage green.",
)
POOL = LinePool(
    MessageLines(index, "user", lines.read({"role": "user", "content": text})) for index, text in enumerate(SAID)
)


def test_a_passage_that_is_near_in_meaning_is_quoted_without_a_word_of_the_question() -> None:
    def near(question: str, texts: Sequence[str]) -> list[float]:
        return [3.0 if "sage" in text else 0.0 for text in texts]

    question = "How fast can swallows fly?"
    assert relevance(POOL, question) == {}
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
