"""Marks stand where the next request will begin like this one."""

import orjson
import pytest

from gateway.context import frames
from gateway.context.cache.marking import BREAKPOINT_STYLE, CACHE_CONTROL_STYLE, MOST_MARKS, mark_positions, marked
from gateway.context.write.insertion import with_note_and_quotes
from gateway.wire.formats import FORMATS
from tests.fakes import user

SYSTEM = {"role": "system", "content": "Be kind."}
NOTE = frames.framed(frames.DIGEST, "user: Never on Fridays.")
QUOTES = frames.framed(frames.QUOTES, "assistant: It is A1.")
CALL = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "A1"}


def folded(*messages, quotes=None):
    return with_note_and_quotes(dict(enumerate(messages)), NOTE, quotes or {})


def test_the_pinned_messages_the_note_and_the_question_before_its_quotes_are_marked() -> None:
    sent = marked(folded(SYSTEM, user("Where is it?"), quotes={1: QUOTES}), CACHE_CONTROL_STYLE)

    assert sent[0]["content"] == [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    texts = [(part["text"], "cache_control" in part) for part in sent[1]["content"]]
    assert texts == [(NOTE, True), ("Where is it?", True), (frames.sealed(QUOTES, "Where is it?"), False)]


def test_what_the_request_before_marked_last_is_marked_again() -> None:
    first, second = user("Where is it?"), user("And now?")
    before = folded(SYSTEM, first, quotes={1: QUOTES})
    after = folded(SYSTEM, first, {"role": "assistant", "content": "There."}, second, quotes={3: QUOTES})

    assert mark_positions(before) == [(0, 0), (1, 0), (1, 1)]
    assert mark_positions(after) == [(0, 0), (1, 0), (1, 1), (3, 0)]


def test_a_tool_result_is_marked_where_the_api_allows_it() -> None:
    messages = folded(SYSTEM, user("Where is it?"), CALL, RESULT)

    assert marked(messages, CACHE_CONTROL_STYLE)[-1] == {**RESULT, "cache_control": {"type": "ephemeral"}}
    assert marked(messages, BREAKPOINT_STYLE)[-1] is messages[-1]


ANSWERED_WITH_A_TOOL = {
    "/v1/messages": (
        "messages",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "mcp_tool_use", "id": "m1", "name": "find", "server_name": "s", "input": {}},
                    {"type": "mcp_tool_result", "tool_use_id": "m1", "content": "found"},
                    {"type": "text", "text": "So it is."},
                ],
            }
        ],
    ),
    "/v1/responses": (
        "input",
        [
            {"type": "mcp_call", "id": "m1", "name": "find", "server_label": "s", "arguments": "{}", "output": "found"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So it is."}]},
        ],
    ),
}
"""By the path of an API the name of its conversation, and an answer in which a tool of the provider ran."""


@pytest.mark.parametrize("path", ANSWERED_WITH_A_TOOL)
def test_the_result_of_a_providers_tool_inside_an_answer_is_not_marked(path: str) -> None:
    """No request ended there: the one before ended with the user's message."""
    name, answer = ANSWERED_WITH_A_TOOL[path]
    request = FORMATS[path].parse(orjson.dumps({"model": "m", name: [user("one"), *answer, user("two")]}))
    assert request is not None
    assert len(request.messages) == 5

    assert [index for index, _ in mark_positions(request.messages)] == [0, 4]


@pytest.mark.parametrize("style", [BREAKPOINT_STYLE, CACHE_CONTROL_STYLE], ids=lambda style: style.member)
def test_a_client_that_marks_by_itself_keeps_its_own_marks(style) -> None:
    own = {"role": "user", "content": [{"type": "text", "text": "hi", style.member: {"mode": "explicit"}}]}
    messages = (SYSTEM, own)

    assert marked(messages, style) == messages


def test_there_are_never_more_marks_than_the_api_takes_and_no_text_changes() -> None:
    talk = [SYSTEM, SYSTEM]
    for number in range(30):
        talk += [user(f"Where is {number}?"), CALL, RESULT, {"role": "assistant", "content": "There."}]
        messages = folded(*talk[:-1])
        sent = marked(messages, CACHE_CONTROL_STYLE)
        assert len(mark_positions(messages)) <= MOST_MARKS
        assert [_text(m) for m in sent] == [_text(m) for m in messages]


@pytest.mark.parametrize(
    "messages",
    [(), (SYSTEM,), (user(""),), (user(None),), ({"role": "assistant", "content": "hi"},), (user([{"type": "x"}]),)],
)
def test_messages_without_text_bear_no_mark(messages) -> None:
    assert len(marked(messages, CACHE_CONTROL_STYLE)) == len(messages)


def test_a_text_is_split_into_frames_words_and_quotes_and_nothing_is_lost() -> None:
    (placed,) = folded(user("Where is it?"), quotes={0: QUOTES})

    assert "\n\n".join(frames.split(placed["content"])) == placed["content"]
    assert len(frames.split(placed["content"])) == 3
    assert frames.split(f"hi\n\n{QUOTES}") == [f"hi\n\n{QUOTES}"]
    assert frames.split("") == []


def _text(message):
    content = message.get("content")
    return "\n\n".join(part["text"] for part in content) if isinstance(content, list) else content
