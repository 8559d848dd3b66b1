"""The Messages format: views of a body, edits written into its bytes, and folds that the strictest stand-in accepts."""

from itertools import pairwise
from typing import Any

import orjson
import pytest

from gateway.standin import messages as strict
from gateway.wire import messages as wire
from gateway.wire.format import Edits
from gateway.wire.messages import MESSAGES
from gateway.wire.messages_request import THINKING
from tests.wire.conversations import messages_body
from tests.wire.folding import COUNTER, folded, read

NOT_DECIDABLE = [b"", b"[]", b"{}", b'{"messages":[]}', b'{"messages":["hi"]}', b'{"messages":[{"content":"no role"}]}',
                 b'{"messages":[{"role":"user","content":7}]}', b'{"messages":[{"role":"user","content":["hi"]}]}',
                 b'{"prompt":"hi"}', b'{"messages":[{"role":"user","content":"\xff"}]}']  # fmt: skip
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "found"}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
REMINDER = {"type": "text", "text": "<system-reminder>be brief</system-reminder>"}


def body_of(*messages: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, **rest, "messages": list(messages)}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


@pytest.mark.parametrize("raw", NOT_DECIDABLE)
def test_a_body_of_another_shape_is_nothing_to_decide_about(raw: bytes) -> None:
    assert wire.parse(raw) is None


def test_one_user_message_is_read_as_its_results_and_what_the_user_said() -> None:
    request = read(
        MESSAGES, body_of(user("go"), assistant(SIGNED, CALL), user(RESULT, {"type": "text", "text": "and now?"}))
    )

    assert [message["role"] for message in request.messages] == ["user", "assistant", "tool", "user"]
    assert request.messages[1]["reasoning"] == "hm"
    assert request.messages[1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"path":"a"}'}


def test_a_reminder_behind_results_is_no_question() -> None:
    request = read(MESSAGES, body_of(user("go"), assistant(SIGNED, CALL), user(RESULT, REMINDER)))

    assert [message["role"] for message in request.messages] == ["user", "assistant", "tool"]
    assert "reasoning" not in request.messages[1]  # the running loop keeps its thinking


def test_instructions_come_as_a_pinned_message() -> None:
    request = read(MESSAGES, body_of(user("go"), system=[{"type": "text", "text": "be kind"}]))

    assert request.messages[0]["role"] == "system"
    assert "system" not in request.body


def test_what_fits_is_the_very_same_bytes() -> None:
    raw = b' {"messages" : [ {"role":"user","content":"hi", "x": 1.50} ] , "max_tokens":7}\n'
    request = wire.parse(raw)

    assert request is not None
    assert MESSAGES.encode(request, Edits(messages=request.messages)) is request.raw
    assert MESSAGES.encode(request, Edits(model="other")).startswith(raw[:60])


def test_a_cut_result_leaves_all_else_as_it_came() -> None:
    raw = (b'{"max_tokens":9,"messages":[{"role":"user","content":"go"},'
           b'{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"x":1.50}}]},'
           b'{"role":"user","content":[{"type":"tool_result", "tool_use_id":"t1","is_error":true,"content":"long"}]}]}')  # fmt: skip
    request = wire.parse(raw)
    assert request is not None
    shorter = {**request.messages[2], "content": "short"}

    assert MESSAGES.encode(request, Edits(messages=(*request.messages[:2], shorter))) == raw.replace(b"long", b"short")


def test_a_note_in_front_of_the_first_message_is_a_block_of_its_own() -> None:
    request = read(MESSAGES, body_of(user("one"), assistant({"type": "text", "text": "two"}), user("three")))
    noted = {**request.messages[2], "content": [{"type": "text", "text": "note"}, {"type": "text", "text": "three"}]}

    sent = orjson.loads(MESSAGES.encode(request, Edits(messages=(noted,))))

    assert sent["messages"] == [user({"type": "text", "text": "note"}, {"type": "text", "text": "three"})]


def test_all_before_a_compaction_is_not_read_and_stays() -> None:
    compaction = {"type": "compaction", "content": "what was said"}
    request = read(MESSAGES, body_of(user("old"), assistant(compaction, {"type": "text", "text": "so"}), user("new")))

    assert [message["role"] for message in request.messages] == ["system", "assistant", "user"]
    sent = orjson.loads(MESSAGES.encode(request, Edits(messages=(request.messages[0], request.messages[2]))))
    assert sent["messages"] == [user("old"), assistant(compaction), user("new")]


def test_a_failed_compaction_hides_nothing() -> None:
    """The API reads on as if it were not there: its content is null."""
    turns = [(user(f"old {n} " * 100), assistant({"type": "text", "text": f"so {n} " * 100})) for n in range(6)]
    failed = assistant({"type": "compaction", "content": None}, {"type": "text", "text": "so"})
    body = body_of(*(row for turn in turns for row in turn), user("one"), failed, user("two"))

    assert len(read(MESSAGES, body).messages) == len(body["messages"])
    assert len(folded(MESSAGES, body, 0.3)) < len(orjson.dumps(body)) / 2


DOCUMENTS = [
    ("text/plain", "".join(map(chr, range(0x4E00, 0x59B8))), 3_000, 12_000),
    ("application/pdf", "JVBERi0x" * 60_000, 5_000, 60_000),
    ("image/png", "iVBORw0K" * 60_000, 1_000, 2_000),
]


@pytest.mark.parametrize(("kind", "data", "least", "most"), DOCUMENTS, ids=[row[0] for row in DOCUMENTS])
def test_what_a_servers_tool_has_fetched_counts_by_its_kind(kind: str, data: str, least: int, most: int) -> None:
    source = {"type": "text" if kind == "text/plain" else "base64", "media_type": kind, "data": data}
    content = {"type": "web_fetch_result", "url": "u", "content": {"type": "document", "source": source}}
    fetched = {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": content}
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_fetch", "input": {"url": "u"}}

    (_, _, message, _) = read(MESSAGES, body_of(user("go"), assistant(call, fetched), user("and?"))).messages

    assert least < COUNTER.message(message) < most


@pytest.mark.parametrize(
    ("asked", "budget", "allowed", "expected"),
    [(1000, None, 500, (500, None)), (4000, 3000, 2000, (2000, 1500)), (4000, 3000, 1100, (1100, 1024)), (400, None, 500, (400, None)),
     (4000, 3000, 900, (4000, 3000))],
)  # fmt: skip
def test_a_lower_limit_keeps_the_thinking_budget_below_it(
    asked: int, budget: int | None, allowed: int, expected: tuple[int, int | None]
) -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}
    request = read(MESSAGES, {"max_tokens": asked, **thinking, "messages": [user("hi")]})

    sent = orjson.loads(MESSAGES.encode(request, Edits(output=allowed)))

    assert (sent["max_tokens"], sent.get("thinking", {}).get("budget_tokens")) == expected


def test_marks_inside_results_count_among_the_four() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    steps = [
        row
        for n in range(6)
        for row in (
            assistant({"type": "tool_use", "id": f"t{n}", "name": "f", "input": {}, **(mark if n == 5 else {})}),
            user({"type": "tool_result", "tool_use_id": f"t{n}", "content": [{"type": "text", "text": f"row {n} " * 90, **(mark if n > 2 else {})}]}),
        )
    ]  # fmt: skip
    body = body_of(user("Find it."), *steps)

    for share in (0.7, 0.5, 0.3):
        sent = orjson.loads(folded(MESSAGES, body, share))
        assert orjson.dumps(sent).count(b'"cache_control"') <= 4


def test_a_mark_on_a_folded_message_moves_to_the_block_that_stays_before_it() -> None:
    mark = {"type": "ephemeral", "ttl": "1h"}
    old = {"type": "text", "text": "old", "cache_control": mark}
    request = read(MESSAGES, body_of(user({"type": "text", "text": "first"}), assistant(old), user("new")))

    sent = orjson.loads(MESSAGES.encode(request, Edits(messages=(request.messages[0], request.messages[2]))))

    assert sent["messages"][0]["content"] == [{"type": "text", "text": "first", "cache_control": mark}]


@pytest.mark.parametrize(
    "start", [0, *(pytest.param(start, marks=pytest.mark.slow) for start in range(200, 2000, 200))]
)
def test_two_thousand_conversations_stay_valid_and_fold_to_the_same_bytes(start: int) -> None:
    for seed in range(start, start + 200):
        body = messages_body(seed)
        assert strict.violations(body) == []
        rung, share = 1 + seed % 3, (0.7, 0.3, 0.1, 0.05)[seed % 4]

        sent = folded(MESSAGES, body, share, rung)

        assert strict.added(body, orjson.loads(sent)) == [], seed
        assert sent == folded(MESSAGES, body, share, rung)
        assert folded(MESSAGES, body, 1.2) == orjson.dumps(body)


def test_signed_thinking_is_never_written_anew() -> None:
    seen = 0
    for seed in range(200):
        body = messages_body(seed)
        given = orjson.dumps(body)
        for message in orjson.loads(folded(MESSAGES, body, 0.4))["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block["type"] in THINKING:
                    seen += 1
                    assert orjson.dumps(block) in given
    assert seen > 50


@pytest.mark.parametrize("rung", [1, 2, 3])
@pytest.mark.parametrize("share", [0.7, 0.3, 0.1])
def test_a_servers_tool_that_calls_the_clients_keeps_its_result(share: float, rung: int) -> None:
    """Programmatic tool calling: code runs on the server, calls the client's tools, and ends some messages later."""
    steps = [message for number in range(6) for message in _program(number)]
    body = body_of(user("What is in these tables?"), *steps, *_program(6)[:2])
    assert strict.violations(body) == []

    assert strict.added(body, orjson.loads(folded(MESSAGES, body, share, rung))) == []


def _program(number: int) -> list[dict[str, Any]]:
    code = {
        "type": "server_tool_use",
        "id": f"s{number}",
        "name": "code_execution",
        "input": {"code": f"look({number})"},
    }
    calls = [
        {**CALL, "id": f"t{number}_{each}", "caller": {"type": "code_execution_20250825", "tool_id": f"s{number}"}}
        for each in range(2)
    ]
    results = [{**RESULT, "tool_use_id": call["id"], "content": f"row {number} of the table\n" * 40} for call in calls]
    printed = {"type": "code_execution_tool_result", "tool_use_id": f"s{number}", "content": {"stdout": "done\n" * 20}}
    return [
        assistant({"type": "text", "text": "I look."}, code, calls[0]),
        user(results[0]),
        assistant(calls[1]),
        user(results[1]),
        assistant(printed, {**CALL, "id": f"t{number}"}),
        user({**RESULT, "tool_use_id": f"t{number}"}),
    ]


@pytest.mark.parametrize("later", [0, 30])
def test_the_results_of_calls_in_a_servers_thread_come_first_and_are_never_left_out(later: int) -> None:
    """The tool runner of `anthropic` sends only what is new: the calls stand in the messages that the server has."""
    results = [{**RESULT, "tool_use_id": name, "content": f"row {name} of the table\n" * 200} for name in ("t8", "t9")]
    talk = [
        each
        for n in range(later)
        for each in (
            assistant({"type": "text", "text": f"Row {n}. " * 20}),
            user({"type": "text", "text": "And then? " * 9}),
        )
    ]
    thread = {"type": "continue", "previous_message_id": "msg_1"}

    sent = orjson.loads(folded(MESSAGES, body_of(user(*results), *talk, thread=thread), 0.2))

    assert [block.get("tool_use_id") for block in sent["messages"][0]["content"]] == ["t8", "t9"]
    assert strict.violations(sent) == []


def test_only_a_thread_that_goes_on_has_text_elsewhere() -> None:
    body = body_of(user({"type": "text", "text": "hi"}))

    assert read(MESSAGES, {**body, "thread": {"type": "continue", "previous_message_id": "msg_1"}}).refers_elsewhere
    assert not read(MESSAGES, {**body, "thread": {"type": "create"}}).refers_elsewhere


ONCE = "next_user_message"
"""A system message with this ``clear_at`` is hidden from the model once a later user message exists."""


@pytest.mark.parametrize("rung", [1, 2, 3])
@pytest.mark.parametrize("share", [0.7, 0.3, 0.1])
def test_a_system_message_for_one_turn_does_not_come_back(share: float, rung: int) -> None:
    turns = [
        row
        for n in range(8)
        for row in (
            user(f"Question {n}. " * 30),
            {"role": "system", "content": f"Only now: speak of {n}.", "clear_at": ONCE},
            assistant({"type": "text", "text": f"Answer {n}. " * 30}),
        )
    ]
    body = body_of(*turns, user("And now?"), {"role": "system", "content": "Only now: be brief.", "clear_at": ONCE})

    sent = orjson.loads(folded(MESSAGES, body, share, rung))["messages"]

    last = max(at for at, message in enumerate(sent) if message["role"] == "user")
    assert sent[last + 1 :] == body["messages"][-1:]
    for before, message in pairwise(sent[: last + 1]):
        if message["role"] == "system":
            given = body["messages"].index(message)
            assert orjson.dumps(before["content"]).count(orjson.dumps(body["messages"][given - 1]["content"])[1:-1])


def test_a_hidden_system_message_costs_nothing_and_stays_where_nothing_is_folded() -> None:
    hidden = {"role": "system", "content": [{"type": "text", "text": "Only now. " * 300}], "clear_at": ONCE}
    request = read(
        MESSAGES, body_of(user("one"), hidden, hidden, assistant({"type": "text", "text": "so"}), user("two"))
    )

    marked = MESSAGES.encode(
        request,
        Edits(messages=(*request.messages[:-1], {**request.messages[-1], "content": [{"type": "text", "text": "2"}]})),
    )

    assert sum(map(COUNTER.message, request.messages)) < 60
    assert [message["role"] for message in orjson.loads(marked)["messages"]] == [
        "user",
        "system",
        "system",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    "visible",
    [
        {"content": "Be kind."},
        {"content": "Be kind.", "clear_at": "never"},
        {"content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}}], "clear_at": ONCE},
        {"content": "Be kind.", "clear_at": ONCE, "output_config": {"effort": "low"}},
    ],
)
def test_any_other_system_message_stays(visible: dict[str, Any]) -> None:
    message = {"role": "system", **visible}
    talk = [
        row for n in range(9) for row in (assistant({"type": "text", "text": f"Answer {n}. " * 30}), user("And? " * 30))
    ]

    sent = orjson.loads(folded(MESSAGES, body_of(user("one"), message, *talk), 0.2))["messages"]

    assert message in sent


def test_what_was_said_stays_in_a_digest_if_the_result_of_a_servers_tool_leaves_no_room_for_a_turn() -> None:
    """Such a result stays with its call as it came, so nothing but the question is kept."""
    called = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "harbours"}}
    pages = [
        {
            "type": "web_search_result",
            "title": f"Harbour {number}: closed",
            "url": f"h/{number}",
            "encrypted_content": "QUJD",
        }
        for number in range(400)
    ]
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": pages}
    turns = [
        user("The ferry to Oslo is booked as K-4471, never on a Sunday."),
        assistant({"type": "text", "text": "Noted: K-4471."}),
        user("Which harbours have room?"),
        assistant(called, result, {"type": "text", "text": "Arendal has room, berth 12."}),
        user("Good, go on."),
    ]

    sent = orjson.loads(folded(MESSAGES, body_of(*turns), 0.1))["messages"]

    assert strict.violations(body_of(*sent)) == []
    assert [message["role"] for message in sent] == ["user"]
    assert all(fact in str(sent) for fact in ("K-4471", "berth 12", "Good, go on."))
