"""The rules of the strictest provider name exactly what is wrong."""

import pytest

from gateway.standin import added, violations
from tests.fakes import assistant, call, result, system, user

A, B = call("f", {}, "a"), call("f", {}, "b")
OK = "ok"

CASES = [
    ("plain", [user("hi"), assistant("hello"), user("bye")], []),
    ("system and developer anywhere", [system("s"), user("u"), {"role": "developer", "content": "d"}], ["late_system"]),
    ("no messages", [], ["nothing_to_answer"]),
    ("only system", [system("s")], ["nothing_to_answer"]),
    ("an unknown role", [{"role": "robot", "content": "x"}], ["shape"]),
    ("no object", ["x"], ["shape"]),
    ("assistant first", [assistant("hi"), user("x")], ["first_role"]),
    ("a blank user text", [user(" ")], ["content"]),
    ("no parts", [{"role": "user", "content": []}], ["content"]),
    ("an empty part", [{"role": "user", "content": [{"type": "text", "text": ""}]}], ["content"]),
    ("an empty tool result", [user("u"), assistant(None, A), result("a", "")], []),
    ("a tool result of null", [user("u"), assistant(None, A), {"role": "tool", "tool_call_id": "a", "content": None}], ["content"]),
    ("an assistant that says nothing", [user("u"), assistant(None)], ["content"]),
    ("parallel calls, answers in another order", [user("u"), assistant(None, A, B), result("b", OK), result("a", OK)], []),
    ("one of two answered", [user("u"), assistant(None, A, B), result("a", OK)], ["unanswered"]),
    ("answered too late", [user("u"), assistant(None, A), user("v"), result("a", OK)], ["unanswered", "orphan"]),
    ("calls last", [user("u"), assistant(None, A)], ["unanswered_last"]),
    ("an orphan", [user("u"), result("a", OK)], ["orphan"]),
    ("answered twice", [user("u"), assistant(None, A), result("a", OK), result("a", OK)], ["duplicate"]),
    ("the same id in two turns", [user("u"), assistant(None, A), result("a", OK), user("v"), assistant(None, A), result("a", OK)], ["alternation"]),
    ("the same id twice at once", [user("u"), assistant(None, A, A), result("a", OK)], ["call"]),
    ("an empty id", [user("u"), assistant(None, {**A, "id": ""}), result("", OK)], ["call"]),
    ("arguments that are no JSON", [user("u"), assistant(None, {**A, "function": {"name": "f", "arguments": "{"}}), result("a", OK)], ["call"]),
    ("arguments that are no object", [user("u"), assistant(None, {**A, "function": {"name": "f", "arguments": "[]"}}), result("a", OK)], ["call"]),
    (
        "a legacy function pair",
        [user("u"), {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}, {"role": "function", "name": "f", "content": OK}],
        [],
    ),
    ("a legacy orphan", [user("u"), {"role": "function", "name": "f", "content": OK}], ["orphan"]),
    ("two users in a row", [user("u"), user("v")], ["alternation"]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "rules"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_broken_rule_is_named(messages, rules):
    assert [violation.rule for violation in violations(messages)] == rules


def test_only_what_was_made_worse_is_added():
    client = [assistant("hi"), user("x"), user("y")]
    assert added(client, client) == []
    assert [violation.rule for violation in added(client, [assistant("hi"), user("x"), user("y"), user("z")])] == [
        "alternation"
    ]
