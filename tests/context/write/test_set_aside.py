"""History gives way to the quotes of a question, for one request."""

from itertools import pairwise
from typing import Any

import pytest

from gateway.context.read.questions import is_question
from gateway.wire.message import text_of
from tests.context.write.test_folding import called, chatter, cost, folded
from tests.fakes import assistant, result, user

Messages = list[dict[str, Any]]

MOST = 4000
"""Tokens of quotes for a question of a chat."""
QUESTION = "Where did I leave the key of the boat house?"


def talk(turns: int) -> Messages:
    """Talk about the boat house in every fourth turn, with one fact in its first message."""
    fact = user("The key of the boat house hangs behind the oil lamp, remember that place.")
    told = [fact, *chatter(turns, 90)[1:]]
    told[2::8] = [
        user(f"Neighbour{n} left a key of the boat house too, " + "and so on " * 15) for n in range(len(told[2::8]))
    ]
    return [{"role": "system", "content": "Be kind."}, *told]


def standing(messages: Messages, draft: Any) -> int:
    """How many messages of the conversation stand as they came, the question not counted."""
    own = {text_of(message) for message in messages[:-1]}
    return sum(text_of(message) in own for message in draft.messages if message["role"] == "assistant")


@pytest.mark.parametrize("turns", range(60, 76))
def test_a_question_has_room_for_quotes_wherever_the_cut_stands(turns: int) -> None:
    messages = [*talk(turns), user(QUESTION)]

    draft = folded(messages, 1500)

    quotes = sum(-step.saved for step in draft.steps if step.stage == "recall")
    assert quotes > 1500 / 3
    assert "behind the oil lamp" in "".join(map(text_of, draft.messages))
    assert draft.turns_folded == sum(message["role"] == "assistant" for message in messages) - standing(messages, draft)
    assert draft.cost <= 1500


@pytest.mark.parametrize("room", [250, 300, 400, 500])
def test_a_question_in_a_room_too_small_to_grow_is_answered_from_quotes(room: int) -> None:
    """Every request moves the cut there, so quotes break no cached prefix that would otherwise stand."""
    draft = folded([*talk(70), user(QUESTION)], room)

    quotes = sum(-step.saved for step in draft.steps if step.stage == "recall")
    assert "behind the oil lamp" in "".join(map(text_of, draft.messages))
    assert room / 4 < quotes
    assert draft.cost <= room


def test_a_question_about_a_chat_of_long_messages_is_answered_from_quotes() -> None:
    long = [
        {**message, "content": f"{text_of(message)} {'and so on, as we said about that thing ' * 20}"}
        for message in chatter(20, 90)
    ]
    fact = user("The key of the boat house hangs behind the oil lamp, remember that place.")

    draft = folded([fact, assistant("I will."), *long, user(QUESTION)], 900)

    assert "behind the oil lamp" in text_of(draft.messages[-1])


def test_a_question_of_a_chat_fills_no_more_of_a_large_room_than_history_gives_way_for() -> None:
    """Quotes are processed anew at once: what is free costs as much as what gives way."""
    draft = folded([*talk(370), user(QUESTION)], 12_000)

    quotes = sum(-step.saved for step in draft.steps if step.stage == "recall")
    assert "behind the oil lamp" in "".join(map(text_of, draft.messages))
    assert MOST / 2 < quotes <= MOST
    assert draft.cost < 12_000 - MOST / 2


def test_the_turn_before_a_question_stands() -> None:
    messages = [*talk(70), user("And the tin in the kitchen?"), assistant("It holds the tea."), user(QUESTION)]

    texts = [text_of(message) for message in folded(messages, 900).messages]

    assert "It holds the tea." in texts


@pytest.mark.parametrize("turns", range(60, 76))
def test_nothing_gives_way_to_a_question_for_which_little_is_found(turns: int) -> None:
    """History that gives way is read anew, and what is told in it is lost for this request."""
    messages = talk(turns)
    told, asked = ([*messages, user(text)] for text in ("Wonderful.", "Wonderful?"))

    assert standing(asked, folded(asked, 1500)) == standing(told, folded(told, 1500))


def test_what_is_read_anew_because_history_gives_way_is_no_more_than_quotes_gain() -> None:
    """Whatever stands behind the turns that give way is no cached prefix any more, now and perhaps in the next request."""
    gave_way = 0
    for window, turns in ((window, turns) for window in (10_000, 12_000) for turns in range(271, 331, 6)):
        told, asked = ([*talk(turns), user(text)] for text in ("Wonderful.", QUESTION))
        before, after = folded(told, window), folded(asked, window)
        if standing(asked, after) < standing(told, before):
            gave_way += 1
            gained = quoted(after) - (window - before.cost)
            assert own_tokens(asked, after) <= 1.2 * gained
    assert 0 < gave_way < 20


def own_tokens(messages: Messages, draft: Any) -> int:
    """The tokens of the messages that stand as they came, the question not counted."""
    own = {text_of(message) for message in messages[:-1]}
    return sum(cost([message]) for message in draft.messages[1:] if text_of(message) in own)


def quoted(draft: Any) -> int:
    """The tokens of the quotes."""
    return sum(-step.saved for step in draft.steps if step.stage == "recall")


def test_a_statement_leaves_the_history_as_it_is() -> None:
    told, asked = 0, 0
    for turns in range(60, 76):
        messages = talk(turns)
        for text in ("The key of the boat house is heavy.", QUESTION):
            stands = standing([*messages, user(text)], folded([*messages, user(text)], 1500))
            told, asked = (told + stands, asked) if text != QUESTION else (told, asked + stands)

    assert asked < told / 2


def test_what_was_called_since_the_cut_stands() -> None:
    """A turn with calls goes on, and its next request must begin like this one."""
    steps = [message for n in range(3) for message in (called((f"c{n}", "look", "{}")), result(f"c{n}", "nothing"))]
    chat = [*talk(66), user("Look for it."), *steps, assistant("Nothing."), user(QUESTION)]

    draft = folded(chat, 1500)

    assert sum(message["role"] == "tool" for message in draft.messages) == 3


@pytest.mark.parametrize("turns", [200, 700])
def test_a_question_that_names_no_subject_has_few_quotes(turns: int) -> None:
    """Of what comes next the newest messages tell more."""

    def quoted(question: str) -> int:
        draft = folded([*talk(turns), user(question)], 12_000)
        return sum(-step.saved for step in draft.steps if step.stage == "recall")

    assert quoted("Thanks, what shall we do next?") <= 1_200 < quoted(QUESTION)


def test_a_question_about_a_folded_part_many_times_the_room_has_room_for_quotes_where_tools_are_called_too() -> None:
    """A digest tells too little of it."""
    steps = [message for n in range(3) for message in (called((f"c{n}", "look", "{}")), result(f"c{n}", "nothing"))]
    chat = [*talk(166), user("Look for it."), *steps, assistant("Nothing."), user(QUESTION)]

    draft = folded(chat, 1500)

    assert sum(-step.saved for step in draft.steps if step.stage == "recall") > 1500 / 3
    assert "behind the oil lamp" in "".join(map(text_of, draft.messages))


def note(messages: Messages, text: str) -> int:
    """The tokens of the digest when a message of this text ends a conversation."""
    return sum(-step.saved for step in folded([*messages, user(text)], 1500).steps if step.stage == "digest")


def test_the_digest_leaves_room_to_quotes_where_a_question_is_about_a_past_that_is_only_skimmed() -> None:
    errand = "Does the ferry to Skye sail at noon?"
    ferries = [user("The ferry to Skye sails at noon, I think."), assistant("The ferry to Skye sails at one.")]
    messages = [*talk(300), *chatter(150, 400), *ferries * 15]

    assert note(messages, QUESTION) < note(messages, "Wonderful.") / 2
    assert note(messages, errand) == note(messages, "Wonderful.")
    assert "behind the oil lamp" in "".join(map(text_of, folded([*messages, user(QUESTION)], 1500).messages))


@pytest.mark.parametrize("turns", range(60, 76))
def test_a_picture_stands_for_a_question_as_for_a_statement(turns: int) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/key.png", "detail": "low"}}
    shown = {"role": "user", "content": [{"type": "text", "text": "This is the key."}, picture]}
    chat = [*talk(turns), shown, assistant("A fine key."), *chatter(4, 60)]

    def pictures(text: str) -> int:
        contents = [message["content"] for message in folded([*chat, user(text)], 1500).messages]
        return sum(picture in content for content in contents if isinstance(content, list))

    assert pictures(QUESTION) >= pictures("The key of the boat house is heavy.")


def test_questions_in_a_row_begin_alike_most_of_the_time() -> None:
    messages = talk(70)
    starts = []
    for number in range(12):
        messages = [*messages, user(f"Where did I leave the key of boat house {number}?")]
        starts.append([text_of(message) for message in folded(messages, 1500).messages][:3])
        messages = [*messages, assistant("I had better look that up for you.")]

    assert sum(before[2] == after[2] for before, after in pairwise(starts)) >= 6


def test_nothing_gives_way_in_a_conversation_that_fits() -> None:
    messages = [*talk(10), user(QUESTION)]

    assert list(folded(messages, cost(messages)).messages) == messages


@pytest.mark.parametrize(("text", "mainly"), [
    ("Where is it?", True),
    ("I told you two dates for the wedding. Which were they?", True),
    ("It rains here, with wind from the west all day. Funny, no? He lost it, and then we walked home along the river.", False),
    ("I was out with the dog all day and lost his ball. " * 5 + "Funny, no?", False),
    ("It hangs behind the lamp.", False),
    ("", False),
])  # fmt: skip
def test_a_question_is_mainly_one_or_short_and_ends_with_one(text: str, mainly: bool) -> None:
    assert is_question(text) is mainly


WISH = "By the way, never write me more than two lines please."
BACK = "You can go back to long answers now, by the way."


@pytest.mark.parametrize("turns", range(60, 76, 3))
@pytest.mark.parametrize("window", [700, 1500])
def test_no_wish_is_shown_whose_revocation_was_set_aside(turns: int, window: int) -> None:
    history = talk(turns)
    early, late = user(WISH), user(BACK)
    for place in range(len(history) - 21, len(history) - 8, 4):
        chat = [
            *history[:3],
            early,
            assistant("Understood."),
            *history[3:place],
            late,
            assistant("Gladly."),
            *history[place:],
        ]

        sent = "".join(map(text_of, folded([*chat, user(QUESTION)], window).messages))

        assert WISH not in sent or BACK in sent


def test_wishes_that_the_digest_has_no_room_for_stand_in_the_quotes() -> None:
    wishes = [f"Please never serve me {dish} again, whatever it is." for dish in ("eel", "tripe", "haggis", "snails")]
    told = [message for wish in wishes for message in (user(wish), assistant("Understood."))]

    sent = "".join(map(text_of, folded([*told, *talk(70)[1:], user(QUESTION)], 900).messages))

    assert all(wish in sent for wish in wishes)
    assert "behind the oil lamp" in sent


def test_a_question_about_a_folded_part_many_times_a_large_room_is_answered_from_more_quotes() -> None:
    """There neither the digest nor what stands tells much of it."""
    room = 12_000
    messages = [*talk(700), user(QUESTION)]

    quoted = sum(-step.saved for step in folded(messages, room).steps if step.stage == "recall")

    assert cost(messages) > 6 * room
    assert quoted > 0.5 * room  # 4,000 tokens would be a third


@pytest.mark.parametrize("room", [1000, 1500, 3000])
def test_quotes_stay_through_most_steps_of_a_turn(room: int) -> None:
    """Each step took some of their room, and every request had other quotes, behind which nothing was cached."""
    kept = requests = 0
    for turns in range(70, 100, 3):
        chat, sent = [*talk(turns), user(QUESTION)], list[list[str]]()
        for number in range(7):
            sent.append(list(map(text_of, folded(chat, room).messages)))
            chat += [called((f"c{number}", "look", "{}")), result(f"c{number}", f"no key on hook {number} of the wall")]
        requests += len(sent) - 2
        kept += sum(before == after[: len(before)] for before, after in pairwise(sent[1:]))

    assert kept >= 0.8 * requests


@pytest.mark.parametrize("turns", range(60, 76, 2))
def test_history_that_gave_way_for_nothing_stands_through_the_steps_of_a_turn(turns: int) -> None:
    chat = [*talk(turns), user("Did anybody mention quantum chromodynamics?")]
    steps = [called(("c", "look", "{}")), result("c", "nothing")]

    asked, went_on = ([text_of(m) for m in folded(messages, 3000).messages] for messages in (chat, [*chat, *steps]))

    assert went_on[: len(asked) - 1] == asked[:-1]
