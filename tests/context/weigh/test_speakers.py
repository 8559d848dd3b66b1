"""Who of a conversation is likely to have said the answer to a question."""

import pytest

from gateway.context.read.words import words
from gateway.context.weigh.speakers import (
    LEAST_POSSESSIVES,
    WITH_ASSISTANT,
    Dialogue,
    answer_factors,
    dialogue_of,
    is_told_by_assistant,
)
from gateway.context.weights import NARRATOR_FACTOR, SPEAKER_FACTOR, USER_FACTOR
from tests.context.choose.test_weights import ranked
from tests.context.pools import pool

TOLD = (
    ("user", "Hey Duarte! My sister took my old bike to Porto, and I miss it."),
    ("assistant", "Poor you, Imke. My knee is fine again, so I ride mine to my studio."),
    ("user", "Good for you, Duarte. My mother asks for my recipe of the plum cake."),
    ("assistant", "Give her mine, Imke! My plums are ripe, and so are my pears."),
)
FRIENDS = TOLD * 2
ASSISTED = [
    ("user", "My sister took my bike, and my mother has my recipe."),
    (
        "assistant",
        "I can write the recipe down for you. I would begin with the plums, Imke. My advice is to keep it short.",
    ),
] * 10


def newest_first(said: list[tuple[str, str]]) -> Dialogue:
    return dialogue_of(reversed(said))


def test_two_who_speak_of_what_is_theirs_are_people() -> None:
    assert newest_first(list(FRIENDS)) == Dialogue(True, {"imk": "user", "duart": "assistant"})


POLISH = [
    ("user", "Kupiłam mój rower i moja siostra też ma rower, ale mi się nie podoba."),
    ("assistant", "Rower ma dobre koła i ma mocne hamulce. Sprawdź łańcuch i opony, i dopompuj je."),
] * 10
KOREAN = [
    ("user", "저는 어제 제 자전거를 샀어요."),
    ("assistant", "이제 문제 없이 탈 수 있어요. 어제 먼저 바퀴를 봤으니 이제 나사를 조이세요."),
] * 10


@pytest.mark.parametrize(
    "said",
    [
        ASSISTED,
        POLISH,
        KOREAN,
        [],
        [("user", "My bike.")],
        [*FRIENDS, ("tool", "{}")],
        list(FRIENDS)[: LEAST_POSSESSIVES // 3],
    ],
)
def test_a_chat_with_an_assistant_is_not_between_two_people(said: list[tuple[str, str]]) -> None:
    assert newest_first(said) == WITH_ASSISTANT


def test_friends_are_recognised_in_their_language() -> None:
    told = [
        ("user", "Moja siostra ma mój rower, a ja mam jej buty."),
        ("assistant", "A mnie moja mama oddała mój stary plecak."),
    ]

    assert newest_first(told * 6).between_people


def test_names_before_a_speakers_words_are_the_speakers() -> None:
    names = {"user": "Imke", "assistant": "Duarte"}
    signed = [
        (role, f"{names[role]}: {text.replace('Duarte', 'you').replace('Imke', 'you')}") for role, text in FRIENDS
    ]

    assert newest_first(signed).role_of_name == {"imk": "user", "duart": "assistant"}


def test_a_word_that_is_also_typed_in_small_letters_is_no_name() -> None:
    said = [*FRIENDS, ("assistant", "Well, my day was fine."), ("assistant", "Well, my cat was not well.")]

    assert "well" not in newest_first(said).role_of_name


NAMES = [
    "Ada",
    "Bor",
    "Cyl",
    "Dun",
    "Eck",
    "Fay",
    "Gus",
    "Hal",
    "Ida",
    "Jon",
    "Kit",
    "Lou",
    "Max",
    "Ned",
    "Olga",
    "Pip",
    "Quin",
    "Rob",
    "Sue",
    "Tom",
]
STORY = [("assistant", f"You meet {name} at the gate.") for name in NAMES]
ANSWERED = [("user", f"I ask {name} to wait.") for name in NAMES]


def told(messages: list[tuple[str, str]]) -> bool:
    return is_told_by_assistant((role, words(text)) for role, text in messages)


def test_the_speaker_who_says_most_names_first_tells_the_story() -> None:
    assert told([*STORY, *ANSWERED])
    assert not told([*ANSWERED, *STORY])
    assert not told([*STORY[:9], *ANSWERED, *STORY[9:]])


def test_few_names_tell_nothing() -> None:
    assert not told([*STORY[:19], *ANSWERED[:19]])


def test_a_storys_answer_is_what_the_assistant_told() -> None:
    asked = [("user", f"I ask {name} for the violin.") for name in NAMES]
    story = pool(*STORY, ("assistant", "Pip hides the violin in the attic."), *asked)

    assert "attic" in ranked(story, "Where is the violin?")[0]
    assert answer_factors("Where is my violin?", story.dialogue) == {"assistant": NARRATOR_FACTOR}


@pytest.mark.parametrize(
    ("question", "dialogue", "factors"),
    [
        ("Where is my violin?", WITH_ASSISTANT, {"user": SPEAKER_FACTOR}),
        ("Where is the violin?", WITH_ASSISTANT, {"user": USER_FACTOR}),
        ("What did you tell of the violin?", WITH_ASSISTANT, {}),
        ("What does Duarte ride?", newest_first(list(FRIENDS)), {"assistant": SPEAKER_FACTOR}),
        ("Who took Imke's bike?", newest_first(list(FRIENDS)), {"user": SPEAKER_FACTOR}),
        ("What do Imke and Duarte grow?", newest_first(list(FRIENDS)), {}),
        ("What grows?", newest_first(list(FRIENDS)), {}),
        ("Where is my violin?", newest_first(list(FRIENDS)), {"user": SPEAKER_FACTOR}),
    ],
)
def test_the_answer_is_likely_said_by(question: str, dialogue: Dialogue, factors: dict[str, float]) -> None:
    assert answer_factors(question, dialogue) == factors


def test_a_question_about_one_of_two_people_is_answered_by_that_one() -> None:
    told = pool(
        *FRIENDS,
        ("assistant", "The violin, Imke, is in my attic."),
        *FRIENDS,
        ("user", "The violin, Duarte, is in my cellar."),
    )

    assert "attic" in ranked(told, "Where is Duarte's violin?")[0]
    assert "cellar" in ranked(told, "Where is Imke's violin?")[0]
