"""Where the note goes, and how it is found again."""

from typing import Any

import pytest

from gateway.context import marks
from gateway.context.write import note

DIGEST = f"{marks.HEAD}\nuser: Never on Fridays.\nlook -> A1"


@pytest.mark.parametrize("content", ["Be kind.", [{"type": "text", "text": "Be kind."}]])
def test_a_note_comes_off_as_it_went_on(content: Any) -> None:
    """Case 77."""
    standing = {0: {"role": "system", "content": content}, 1: {"role": "user", "content": "hi"}}

    note.place(standing, DIGEST, (0,), system_role=True)  # type: ignore[arg-type]

    assert marks.without(standing[0]) == ({"role": "system", "content": content}, "user: Never on Fridays.\nlook -> A1")


def test_without_a_system_message_the_note_is_one() -> None:
    standing: dict[int, Any] = {3: {"role": "user", "content": "hi"}}

    note.place(standing, DIGEST, (), system_role=True)

    assert standing[-1] == {"role": "system", "content": DIGEST}


def test_without_a_system_role_the_note_is_closed_in_front_of_the_user() -> None:
    standing: dict[int, Any] = {3: {"role": "user", "content": "hi"}}

    note.place(standing, DIGEST, (), system_role=False)

    assert standing[3]["content"] == f"{DIGEST}\n{marks.END}\n\nhi"
    assert marks.without(standing[3]) == ({"role": "user", "content": "hi"}, "user: Never on Fridays.\nlook -> A1")


def test_other_messages_are_left_as_they_are() -> None:
    message = {"role": "user", "content": "shortened by the gateway, they say"}

    assert marks.without(message) == (message, "")
    assert marks.without({"role": "user", "content": None}) == ({"role": "user", "content": None}, "")


def test_a_summary_sent_back_with_its_digest_leaves_no_mark_inside() -> None:
    """Case 77."""
    written = f"Be kind.\n\n{marks.SUMMARY}\nGoal: move.\n\n{DIGEST}"

    plain, found = marks.without({"role": "system", "content": written})

    assert plain == {"role": "system", "content": "Be kind."}
    assert found == "Goal: move.\n\nuser: Never on Fridays.\nlook -> A1"
