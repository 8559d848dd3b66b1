"""What a summariser's answer is worth."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.summarise.verdict import Verdict, judge, read

Message = dict[str, Any]

GOOD = "Goal: move the shop to the new server.\nFacts: the order is A-4711, the host is db1.example.com.\nOpen: copy /srv/data/shop.sql."


def reply(message: Any, **more: Any) -> bytes:
    return orjson.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop", **more}]})


READ = [
    ("a string", reply({"content": " text \n"}), "text"),
    ("parts", reply({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}), "one\ntwo"),
    ("only reasoning", reply({"content": None, "reasoning_content": "thought"}), "thought"),
    ("only reasoning, elsewhere", reply({"content": "", "reasoning": "thought"}), "thought"),
    ("thoughts in front", reply({"content": "<think>let me see</think>\n\ntext"}), "text"),
    ("nothing but thoughts", reply({"content": "<think>thought</think>"}), "<think>thought</think>"),
    ("a fence around all", reply({"content": "```markdown\ntext\n```"}), "text"),
    ("cut off", reply({"content": "text"}, finish_reason="length"), ""),
    ("a refusal part", reply({"content": None, "refusal": "no"}), ""),
    ("an error", b'{"error":{"message":"too long","code":"context_length_exceeded"}}', ""),
    ("no JSON", b"<html>", ""),
    ("no object", b"[]", ""),
    ("no choices", b'{"choices":[]}', ""),
    ("a strange choice", b'{"choices":["text"]}', ""),
    ("a strange message", b'{"choices":[{"message":"text"}]}', ""),
    ("nothing", b"", ""),
]


@pytest.mark.parametrize(("shape", "body", "text"), READ, ids=[row[0] for row in READ])
def test_an_answer_is_read_in_any_shape(shape: str, body: bytes, text: str) -> None:
    assert read(body) == text


@given(st.binary(max_size=60))
def test_no_answer_makes_reading_raise(body: bytes) -> None:
    assert isinstance(read(body), str)


def said(*texts: str) -> list[Message]:
    return [{"role": "user" if number % 2 == 0 else "assistant", "content": text} for number, text in enumerate(texts)]


TALK = said(
    "please move the shop to db1.example.com", "copied /srv/data/shop.sql for order A-4711 " * 20, "and A-4711?", "done"
)


def judged(
    text: str, messages: list[Message] = TALK, earlier: str = "", *, replaced: int = 2000, size: int = 200
) -> Verdict:
    return judge(text, messages, earlier, replaced=replaced, size=size, count=lambda value: -(-len(value) // 4))


REFUSED = [
    ("empty", ""), ("empty", "None"), ("empty", "无"), ("empty", "null."), ("empty", "**N/A**"), ("empty", "(no summary)"),
    ("empty", "…" * 40), ("greeting", "Hello! How can I help you today?"), ("greeting", "你好！很高兴见到你，今天有什么可以帮助你的吗？请告诉我吧。"),
    ("greeting", "How can I assist you with your project today?"), ("refusal", "I'm sorry, but I can't help with that request."),
    ("refusal", "I cannot summarise this conversation for you."), ("too_long", GOOD * 30),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "text"), REFUSED)
def test_what_is_no_summary_is_refused(reason: str, text: str) -> None:
    assert judged(text) == Verdict("", reason)


def test_a_good_summary_stays_as_it_is() -> None:
    assert judged(GOOD) == Verdict(GOOD)


def test_a_summary_longer_than_what_it_stands_for_is_refused() -> None:
    assert judged(GOOD, replaced=30) == Verdict("", "not_shorter")


def test_a_text_about_something_else_is_refused() -> None:
    messages = said(*(f"look at ticket T-{number}00 in /var/log/app{number}.log" for number in range(20)))
    assert judged("The user and the assistant had a long and pleasant talk.", messages).reason == "lost_identifiers"


def test_rules_of_the_user_that_were_lost_are_added_in_their_own_words() -> None:
    messages = said("Move the shop. You must never deploy on Fridays!", "All right.")
    assert judged(GOOD, messages).text == GOOD + "\nSaid by the user:\n- You must never deploy on Fridays!"


def test_rules_that_were_kept_are_not_doubled() -> None:
    messages = said("Move the shop. You must never deploy on Fridays!", "All right.")
    kept = GOOD + "\nRules: never deploy on Fridays, the user must approve."
    assert judged(kept, messages).text == kept


def test_what_the_assistant_said_is_no_rule() -> None:
    assert judged(GOOD, said("Move the shop", "I must never touch db9 myself.")).text == GOOD


def test_identifiers_in_use_that_were_lost_are_added_as_they_were_spelled() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "stat", "arguments": '{"path":"/srv/Data/Shop.sql"}'}}
    messages = [
        *said("what about order XK-99120?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "/srv/Data/Shop.sql: 120 KB, inode 88172635"},
    ]
    assert judged("Goal: find out what became of an order.", messages).text.endswith(
        "\nAlso in use: XK-99120, /srv/Data/Shop.sql"
    )


def test_what_an_earlier_summary_knew_is_still_looked_for() -> None:
    assert "KEY-55021" in judged(GOOD, TALK, "Facts: the licence is KEY-55021.").text


def test_completing_a_summary_does_not_make_it_long() -> None:
    rules = said(*(f"You must always check the value {number} before you go on, never after." for number in range(200)))
    assert len(judged(GOOD, rules, size=100).text) < len(GOOD) + 4 * 60


@given(text=st.text(max_size=300), contents=st.lists(st.text(max_size=100), max_size=6), earlier=st.text(max_size=100))
def test_a_verdict_is_a_text_or_a_reason_and_always_the_same(text: str, contents: list[str], earlier: str) -> None:
    verdict = judged(text, said(*contents), earlier)
    assert bool(verdict.text) != bool(verdict.reason)
    assert verdict == judged(text, said(*contents), earlier)
