"""What a speaker pasted is told from the speaker's own words."""

import pytest

from gateway.context.read.line import LineKind
from gateway.context.read.lines import read
from gateway.context.read.pasted import own_words, parts_of
from tests.hostile.test_long_text import steps

DOCUMENT = "[1] Housing\nThe host site rents a flat.\nPets are never allowed in the flat."
ASKED = "May I bring the dog?"


@pytest.mark.parametrize(
    "frame",
    [
        "<context>\n{}\n</context>\n\n",
        '<document index="1">\n{}\n</document>\n',
        "<search_results>\n{}\n</search_results>\n",
        "<system-reminder>{}</system-reminder>\n",
        "<environmentDetails>\n{}\n</environmentDetails>\n",
        "<FILE path='a.md'>{}</file>\n",
        "---------------------\n{}\n---------------------\n",
        '"""\n{}\n"""\n',
        "```text\n{}\n```\n",
        "<documents>\n<document>{}</document>\n</documents>\n",
        "<file>\n<div>\n{}\n</div>\n</file>\n",
    ],
)
@pytest.mark.parametrize("before", ["", "Use this: \n"])
def test_what_is_enclosed_is_a_block(frame: str, before: str) -> None:
    text = before + frame.format(DOCUMENT) + ASKED

    [block] = [part for part in parts_of(text) if part.is_block]
    assert DOCUMENT in block.text
    assert ASKED not in block.text
    assert own_words(text).split() == (before + ASKED).split()


@pytest.mark.parametrize(
    "text",
    [
        f"<user_query>\n{DOCUMENT}\n</user_query>",
        f"<custom_instructions>\n{DOCUMENT}\n</custom_instructions>",
        f"<task>\n{DOCUMENT}\n</task>",
        f"<b>\n{DOCUMENT}\n</b>",
        f"<context>\n{DOCUMENT}",
        f"{DOCUMENT}\n</context>",
        f"<context>\n{DOCUMENT}\n</document>",
        f"-----\n{DOCUMENT}\n=====",
        f"---\n{DOCUMENT}\n---",
        "<context>short</context> and so on",
        "5 < 6 and 7 > 6",
        "",
    ],
)
def test_anything_else_is_the_speakers_own_words(text: str) -> None:
    assert not any(part.is_block for part in parts_of(text))
    assert own_words(text).split() == text.split() or "short" in text


@pytest.mark.parametrize("tag", ["system-reminder", "system_reminder", "reminderInstructions", "taskReminder"])
def test_a_programs_reminder_is_never_the_users_words_however_short(tag: str) -> None:
    text = f"<{tag}>You must always use the todo tool.</{tag}>\n{ASKED}"

    assert own_words(text) == ASKED
    assert not any(line.binding for line in read({"role": "user", "content": text}) if "todo" in line.text)


@pytest.mark.parametrize("tag", ["reminder", "Reminder", "my-reminder", "important_reminder"])
def test_a_reminder_that_a_user_types_is_the_users_words(tag: str) -> None:
    """A standing wish inside it was lost."""
    text = f"<{tag}>Always answer in French.</{tag}>\n{ASKED}"

    assert own_words(text) == text
    assert any(line.binding for line in read({"role": "user", "content": text}) if "French" in line.text)


def test_a_reminder_beside_words_of_the_user_that_a_program_has_set_off_is_the_programs() -> None:
    """As GitHub Copilot writes them."""
    text = f"<reminder>You must always use the todo tool.</reminder>\n<userRequest>\n{ASKED}\n</userRequest>"

    assert "todo" not in own_words(text)
    assert ASKED in own_words(text)


def test_a_short_block_is_not_described() -> None:
    """Its rows say no more than the description would."""
    short = f"<system-reminder>The file was changed.</system-reminder>\n{ASKED}"
    long = f"<system-reminder>{DOCUMENT}</system-reminder>\n{ASKED}"

    assert [line.text for line in read({"role": "user", "content": short})] == ["The file was changed.", ASKED]
    assert "[pasted 3 rows of system-reminder]" in [line.text for line in read({"role": "user", "content": long})]


def test_a_message_that_is_a_document_alone_says_what_it_says() -> None:
    assert own_words(f"<context>{DOCUMENT}</context>") == f"<context>{DOCUMENT}</context>"


def test_no_text_is_lost_or_doubled() -> None:
    text = f"a <context>\n{DOCUMENT}\n</context> b\n```\n1\n2\n3\n```\nc\n-----\n4\n5\n6\n-----\nd"

    assert "".join(part.text for part in parts_of(text)).split() == [
        *["a", *DOCUMENT.split(), "b", "1", "2", "3", "c"],
        *["4", "5", "6", "d"],
    ]


@pytest.mark.parametrize(
    ("row", "language"),
    [("python", "python"), ("c++ ", "c++"), ("", ""), ("The host site rents a flat.", ""), ("x" * 100_000, "")],
)
def test_the_first_row_behind_a_fence_is_a_language_or_a_row_of_the_block(row: str, language: str) -> None:
    text = f"Look:\n```{row}\n{DOCUMENT}\n```"

    block = parts_of(text)[1]
    assert block.name == language
    assert block.text.split() == ([] if language else row.split()) + DOCUMENT.split()
    assert len(read({"role": "user", "content": text})[1].text) < 100


def test_a_document_binds_nobody() -> None:
    """It is quoted as rows, and no standing wish is taken from it."""
    lines = read({"role": "user", "content": f"<context>\n{DOCUMENT}\n</context>\nNever call me by my first name."})

    [rule] = [line for line in lines if "Pets" in line.text]
    [wish] = [line for line in lines if "first name" in line.text]
    assert (rule.kind, rule.binding) == (LineKind.OUTPUT, 0.0)
    assert (wish.kind, wish.binding > 1.0) == (LineKind.SENTENCE, True)
    assert lines[0].text == "[pasted 3 rows of context]"


@pytest.mark.parametrize(
    "piece", ["<context>", "</context>", "<file ", "```", "-----\n", '"""\n', "<", "<a" + " " * 30]
)
def test_twice_as_many_marks_take_twice_the_steps(piece: str) -> None:
    few, many = (steps(lambda size=size: parts_of(piece * (size // len(piece)))) for size in (20_000, 80_000))
    assert many < 5 * few + 100
