"""What a question finds in a conversation that is too long to be read in full."""

from itertools import chain

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.compress import compress
from gateway.wire.message import Message, text_of

FILLER = " ".join(f"Point {number} of the usual report follows." for number in range(40))
"""Long enough that an old answer which holds it is skimmed."""
ANSWER = f"{FILLER} The lighthouse keeper hid the copper key under the third stair. {FILLER}"
TURNS = 150


def conversation(question: str) -> list[Message]:
    turns = [
        ({"role": "user", "content": f"Go on with report {number}."}, {"role": "assistant", "content": FILLER})
        for number in range(TURNS)
    ]
    told = [{"role": "user", "content": "Tell me of the keeper."}, {"role": "assistant", "content": ANSWER}]
    return [*told, *chain.from_iterable(turns), {"role": "user", "content": question}]


def sent(question: str) -> list[str]:
    messages = conversation(question)
    made = compress(messages, Budget(8192, 16, 0, 0), counter("o200k"), Policy())
    return list(map(text_of, made.messages))


def test_the_middle_of_a_very_old_answer_is_quoted_for_its_rare_words() -> None:
    assert any(
        "copper key under the third stair" in text for text in sent("Where is the copper key of the lighthouse?")
    )


def test_no_other_question_brings_it_back() -> None:
    assert not any("copper key" in text for text in sent("What is the weather?"))


def test_the_same_conversation_is_quoted_in_the_same_words() -> None:
    assert sent("Where is the copper key?") == sent("Where is the copper key?")
