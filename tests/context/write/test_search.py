"""What a question finds in a conversation that is too long to be read in full."""

from itertools import chain
from typing import Final

from msgspec.structs import replace

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.cutting import layout_of
from gateway.context.cut.policy import Policy
from gateway.context.cut.units import Cut
from gateway.context.write.explain import explain_lines
from gateway.context.write.folding import fold_conversation, source_of
from gateway.context.write.pools import pool_of
from gateway.context.write.search import Query, Search
from gateway.wire.message import Message, text_of
from tests.fakes import assistant, call, result, user, words

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
    made = fold_conversation(messages, Budget(8192, 16, 0, 0), counter("o200k"), Policy())
    return list(map(text_of, made.messages))


def test_the_middle_of_a_very_old_answer_is_quoted_for_its_rare_words() -> None:
    assert any(
        "copper key under the third stair" in text for text in sent("Where is the copper key of the lighthouse?")
    )


def test_another_question_does_not_quote_it() -> None:
    assert not any("copper key" in text for text in sent("What is the weather?"))


def test_the_same_conversation_is_quoted_in_the_same_words() -> None:
    assert sent("Where is the copper key?") == sent("Where is the copper key?")


SHIPMENTS: Final = "\n".join(
    f"Shipment {name}:\nstatus: {'held at customs' if number % 2 else 'on its way'}\ncarrier: {('Nordlink', 'Ostlink')[number % 2]}"
    for number, name in enumerate(
        [
            f"{name}{suffix}"
            for suffix in ("", " II", " III")
            for name in [
                "Ardent",
                "Bellows",
                "Corvid",
                "Dunmore",
                "Esker",
                "Fennel",
                "Garnet",
                "Halcyon",
                "Kestrel",
                "Mallow",
            ]
        ]
    )
)


def test_of_lines_with_the_same_text_only_those_that_stand_in_the_request_count_as_kept() -> None:
    messages = [
        user("Please list all shipments."),
        assistant(None, call("list_shipments", {}, "c")),
        result("c", SHIPMENTS),
        assistant("There are ten shipments."),
        *[message for turn in range(4) for message in (user(f"Tell me story {turn}."), assistant(words(150, turn)))],
        user("What is the status and the carrier of shipment Kestrel?"),
    ]
    budget, count = Budget(650, 16, 3, 0), counter("o200k")
    sent = "\n".join(map(text_of, fold_conversation(messages, budget, count, Policy()).messages))
    fates = explain_lines(messages, budget, count, Policy())

    for text in ("status: on its way", "status: held at customs", "carrier: Nordlink"):
        assert sum(fate.kept for fate in fates if fate.text == text) == sent.count(text), text
    assert 0 < sent.count("status: on its way") < 15


def test_a_message_is_quoted_where_it_is_set_aside_and_not_where_it_is_kept_whatever_was_searched_before() -> None:
    messages = [
        user("The ferry to Bergen leaves at nine."),
        assistant("Noted."),
        user("The spare key hangs in the shed."),
        assistant("I see."),
        user("Where does the spare key hang?"),
    ]
    source = source_of(messages, Budget(1000, 16, 3, 0), counter("o200k"), Policy())
    layout = replace(layout_of(source), cut_at_question=Cut(first_kept=2))
    pool = pool_of(source, range(4))
    query = Query("Where does the spare key hang?", 100, frozenset())

    assert "shed" in Search(source, replace(layout, set_aside=(2, 3)), pool, frozenset()).find(query).text
    assert "shed" not in Search(source, layout, pool, frozenset()).find(query).text
