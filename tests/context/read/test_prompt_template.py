"""What an application writes around the user's words is told from them by what repeats, in any language and form."""

from collections.abc import Callable

import orjson
import pytest

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.read.as_said import as_said, parts_of, said_in
from gateway.context.read.prompt_template import MOST_MARKS, PromptTemplate, pieces_in, pieces_of_answer, template_of
from gateway.context.write.folding import fold_conversation
from gateway.wire.memory import Memory
from tests.allocation import allocation
from tests.fakes import assistant, user

COUNTER = counter("o200k")

SAID = [
    "I moved my flat to Wexcombe Street last week. Who do I tell?",
    "My landlord is Mr Okonjo. Can I pay him by card?",
    "I lost the blue key. What do I do now?",
    "ok I wrote to him. He never answers me, is that normal?",
    "My rent is 912 now. Was it less before?",
    "I think we agreed on May. Did I say May?",
]
FOUND = [
    "Keys are kept at the office.\nA lost key costs 40.\nBring a passport.",
    "Rent is due on the first.\nCards are not taken.\nA reminder costs 5.",
    "Letters are answered in ten days.\nLate ones go to the board.\nThe board meets in June.",
    "A notice takes three months.\nIt needs a signature.\nA copy stays here.",
    "The cellar is shared.\nBicycles stand in the yard.\nThe yard closes at ten.",
    "Repairs are ordered by phone.\nThe number is on the door.\nWater comes first.",
]


def passages(said: str, found: str, number: int) -> str:
    return f"Tag 20417 skriver den {number}.3., kl. 19:{number}5:\n{said}\n\nFunna avsnitt:\n[A] {found}\n\n--- slut ---\nSvara nu."


def labels(said: str, found: str, number: int) -> str:
    return f"Uhrzeit: {number}:30\nProfil: mag Tee\nNachricht: {said}"


def elements(said: str, found: str, number: int) -> str:
    return f'<turn n="{number}">\n<place>kitchen</place>\n<utterance>{said}</utterance>\n<notes>\n{found}\n</notes>\n</turn>'


def members(said: str, found: str, number: int) -> str:
    return orjson.dumps(
        {"locale": "en-GB", "screen": "home", "input": {"text": said, "at": f"2026-03-0{number}"}, "hints": found}
    ).decode()


def mail(said: str, found: str, number: int) -> str:
    return f"From: Zia Bramhall\nSubject: Re: flat {number}\n\n{said}\n\nKind regards\nZia"


Wrap = Callable[[str, str, int], str]
WRAPS: list[Wrap] = [passages, labels, elements, members, mail]


def wrapped(wrap: Wrap) -> list[str]:
    return [wrap(said, found, number) for number, (said, found) in enumerate(zip(SAID, FOUND, strict=True), 1)]


def learned(wrap: Wrap) -> PromptTemplate:
    template = template_of(wrapped(wrap))
    assert template is not None
    return template


def said_of(text: str, template: PromptTemplate) -> str:
    return "".join([piece.text for piece in pieces_in(text, template) if piece.is_said])


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_users_words_are_told_from_what_the_application_writes(wrap: Wrap) -> None:
    template = learned(wrap)

    for text, said in zip(wrapped(wrap), SAID, strict=True):
        assert [piece.text for piece in pieces_in(text, template) if piece.is_said] == [said]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_new_message_is_split_as_the_first_ones_are(wrap: Wrap) -> None:
    said = "where did I put the red folder"
    pieces = pieces_in(wrap(said, "Folders are green.\nThey cost 3.\nOne each.", 9), learned(wrap))

    assert [piece.text for piece in pieces if piece.is_said] == [said]


@pytest.mark.parametrize(
    "form",
    [
        "Use the following context to answer.\n\nContext:\n{found}\n\nQuestion: {said}\nHelpful Answer:",
        "Context information is below.\n---\n{found}\n---\nAnswer the query.\nQuery: {said}\nAnswer: ",
        "## Retrieved documents:\n{found}\n\n**User question:** {said}",
        "Kontext:\n{found}\n\nFrage: {said}\nAntwort:",
        "Question: {said}\n\nSources:\n{found}",
        "{said}\n\n<hits>\n{found}\n</hits>",
        "<hits>\n{found}\n</hits>\n\n{said}",
    ],
)
def test_two_messages_show_a_template(form: str) -> None:
    first, second = [form.format(found=found, said=said) for found, said in zip(FOUND[:2], SAID[:2], strict=True)]
    messages = as_said([user(first), assistant("I do."), user(second)])

    assert [said_in(message) for message in messages[::2]] == SAID[:2]


@pytest.mark.parametrize("wrap", [passages, elements, members])
def test_passages_are_still_read_as_what_was_pasted(wrap: Wrap) -> None:
    messages = as_said([user(text) for text in wrapped(wrap)])

    for message, found in zip(messages, FOUND, strict=True):
        pasted = "\n".join([part.text for part in parts_of(message) if part.is_block])
        assert all(row in pasted for row in found.split("\n"))


@pytest.mark.parametrize(
    "texts",
    [
        SAID,
        ["ok", "ok", "yes", "ok", "no"],
        [f"Zia: {said}" for said in ("hm", "ok", "yes", "no")],
        ["", "", "", ""],
        ['{"a": 1}', '{"a": 2}', '{"a": 3}', '{"a": 4}'],
        ["{", "{}", '{"a"', "{", "{}"],
        SAID[:1],
        [f"Question {number}: {said}" for number, said in enumerate(SAID)],
    ],
)
def test_messages_without_a_template_have_none(texts: list[str]) -> None:
    assert template_of(texts) is None


def test_a_message_without_the_template_is_read_as_the_users_own() -> None:
    said = "I write this by hand. Do I pay in May?"
    messages = as_said([*[user(text) for text in wrapped(passages)], user(said)])

    assert said_in(messages[-1]) == said


def test_a_shortened_message_is_read_by_its_own_text() -> None:
    message = as_said([user(text) for text in wrapped(passages)])[-1]

    assert said_in({**message, "content": "Only this is left."}) == "Only this is left."


@pytest.mark.parametrize("wrap", WRAPS)
def test_messages_are_sent_as_they_came(wrap: Wrap) -> None:
    messages = [message for text in wrapped(wrap) for message in (user(text), assistant("Noted, thank you. " * 30))]
    draft = fold_conversation(
        [*messages, user(wrap("What was my rent?", FOUND[0], 7))], Budget(700, 50, 0, 0), COUNTER, Policy()
    )

    assert draft.steps
    assert all(set(message) == {"role", "content"} for message in draft.messages)
    assert wrap("What was my rent?", FOUND[0], 7) in draft.messages[-1]["content"]


def test_a_question_in_a_template_finds_what_was_said() -> None:
    messages = [message for text in wrapped(passages) for message in (user(text), assistant("Noted, thank you. " * 40))]
    asked = passages(
        "how much is my rent", "Bins are emptied on Friday.\nGlass goes in the blue one.\nPaper comes later.", 8
    )
    draft = fold_conversation([*messages, user(asked)], Budget(800, 50, 0, 0), COUNTER, Policy())

    assert any("912" in str(message["content"]) for message in draft.messages)


def nested(depth: int) -> str:
    return '{"a":' * depth + '"I write this. Who reads it?"' + "}" * depth


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_deeply_nested_json_is_folded(role: str) -> None:
    messages = [{"role": role, "content": f"{nested(900)}{' ' * number}"} for number in range(5)]
    draft = fold_conversation([*messages, user("What was my rent?")], Budget(2000, 50, 0, 0), COUNTER, Policy())

    assert "failed" not in [step.stage for step in draft.steps]
    assert draft.cost <= 2000


@pytest.mark.parametrize("name", ["turnfold.split", "turnfold.sent", "turnfold.calls", "turnfold.prose"])
def test_a_client_may_send_any_member(name: str) -> None:
    messages = [{"role": role, "content": SAID[0] * 30, name: ["x"]} for role in ("user", "assistant") * 4]
    draft = fold_conversation([*messages, user("What was my rent?")], Budget(700, 50, 0, 0), COUNTER, Policy())

    assert "failed" not in [step.stage for step in draft.steps]
    assert draft.cost <= 700


def test_a_long_name_around_many_members_takes_little_memory() -> None:
    """Each of the members had a path with the name: 1.2 GB for four messages of 126 KB."""
    members = {"n" * 20_000: {str(number): 1 for number in range(1000)}, "screen": "home"}
    texts = [orjson.dumps({**members, "text": said}).decode() for said in SAID]
    with allocation() as found:
        template = template_of(texts)

    assert template is not None
    assert found.peak < 10 * 2**20


def test_numbers_keep_their_written_form() -> None:
    """An order's number of 23 digits became ``1.2345678901234568e+22``, so nothing could be looked up by it."""
    written = ["12345678901234567890123", "1.50"]
    pieces = pieces_of_answer(f'{{"order":{written[0]},"price":{written[1]},"says":"It is on its way."}}')

    assert [piece.text for piece in pieces if not piece.is_said] == written


def test_words_that_seldom_say_i_are_told_from_a_state_that_never_asks() -> None:
    said = [
        "母は72で、膝の手術をしました。",
        "羽田からです。母は朝がだめで。",
        "駐車場から近いところを教えてください。",
        "1月16日の金曜から。仕事は図書館。",
    ]
    screens = ["ホーム", "カレンダー", "旅程", "宿検索"]
    texts = [
        f"［状況］2026-01-16（金）21:0{at}／画面：{screen}／予約：なし\n［本人］\n{each}"
        for at, (screen, each) in enumerate(zip(screens, said, strict=True))
    ]
    template = template_of(texts)

    assert template is not None
    assert [said_of(text, template) for text in texts] == said


def test_a_page_of_tags_is_read_up_to_a_limit() -> None:
    template = PromptTemplate(frozenset({"<i>", "<b>"}), frozenset({"<b>"}), is_json=False)

    assert 100 < len(pieces_in("<i>one<b>two" * 20_000, template)) <= MOST_MARKS + 1


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_many_small_members_count_with_the_memory_that_they_take(role: str) -> None:
    """Twelve messages of 80 KB took 60 MB of a memory of 4."""
    memory = Memory(4 * 2**20)

    def fold(number: int) -> None:
        many = orjson.dumps({"text": f"I do {number}. Who is it?", "found": ["x"] * 20_000}).decode()
        said = [
            user(orjson.dumps({"text": f"I do {n}. Who is it?", "found": [f"{number}"]}).decode()) for n in range(6)
        ]
        rows = [orjson.dumps(message) for message in (*said, {"role": role, "content": many}, user("Who was it?"))]
        as_said(memory.messages(rows) or [], memory)

    fold(0)
    with allocation() as found:
        for number in range(1, 13):
            fold(number)

    assert found.left <= 1.5 * memory.budget
    assert memory.size <= memory.budget


def test_a_growing_conversation_is_seldom_read_in_another_way() -> None:
    """With each message the template was learned again, and a digest changed although its cut had not moved."""
    messages = [user(text) for text in wrapped(passages)] + [user(f"I write row {n} by hand.") for n in range(5)]
    read = [[parts_of(message) for message in as_said(messages[:number])[:6]] for number in range(6, 12)]

    assert all(parts == read[0] for parts in read)


def test_messages_that_come_again_are_read_once() -> None:
    """The second one had fewer rows than the first, so each fold read both again."""
    memory = Memory()
    texts = [*wrapped(passages), *wrapped(passages)[3:]]
    messages = memory.messages([orjson.dumps(user(text)) for text in texts]) or []
    first, second = as_said(messages, memory), as_said(messages, memory)

    assert first[0] is not messages[0]
    assert all(before is after for before, after in zip(first, second, strict=True))
