"""The Responses format: views of a body, edits written into its bytes, and folds that the strictest stand-in accepts."""

from typing import Any

import orjson
import pytest

from gateway.standin import responses as strict
from gateway.wire import responses as wire
from gateway.wire.format import Edits
from gateway.wire.responses import RESPONSES
from tests.wire.conversations import responses_body
from tests.wire.folding import COUNTER, folded, read

NOT_DECIDABLE = [b"", b"[]", b"{}", b'{"input":null}', b'{"input":["hi"]}', b'{"input":[{"content":"no role"}]}',
                 b'{"input":"\xff"}', b'{"previous_response_id":"resp_1"}']  # fmt: skip
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QUJD"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "look",
    "arguments": '{"a": 1}',
    "status": "completed",
}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "found"}


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def said(text: str, identity: str = "msg_1") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": identity, "role": "assistant", "status": "completed", "content": [part]}


@pytest.mark.parametrize("raw", NOT_DECIDABLE)
def test_a_body_of_another_shape_is_nothing_to_decide_about(raw: bytes) -> None:
    assert wire.parse(raw) is None


def test_reasoning_and_what_it_led_to_are_one_message() -> None:
    request = read(
        RESPONSES,
        {"instructions": "be kind", "input": [user("go"), REASONING, said("ok"), CALL, OUTPUT, REASONING, said("so")]},
    )

    assert [message["role"] for message in request.messages] == ["system", "user", "assistant", "tool", "assistant"]


def test_an_input_of_one_text_is_one_message() -> None:
    request = read(RESPONSES, {"input": "hello"})

    assert [message["content"] for message in request.messages] == [[{"type": "input_text", "text": "hello"}]]
    sent = orjson.loads(RESPONSES.encode(request, Edits(messages=({**request.messages[0], "content": "hi"},))))
    assert sent == {"input": [user("hi")]}


def test_what_fits_is_the_very_same_bytes() -> None:
    raw = b' {"input" : [ {"role":"user","content":"hi", "x": 1.50} ] , "max_output_tokens":7}\n'
    request = wire.parse(raw)

    assert request is not None
    assert RESPONSES.encode(request, Edits(messages=request.messages, output=9)) is request.raw
    assert RESPONSES.encode(request, Edits(output=5)) == raw.replace(b":7", b":5")


def test_a_cut_output_leaves_all_else_as_it_came() -> None:
    raw = (b'{"input":[{"role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[ ]},'
           b'{"type":"function_call","call_id":"c1","name":"f","arguments":"{\\"x\\": 1.50}"},'
           b'{"type":"function_call_output", "id":"fo_1","call_id":"c1","output":"long","status":"completed"}]}')  # fmt: skip
    request = wire.parse(raw)
    assert request is not None
    shorter = {**request.messages[2], "content": "short"}

    assert RESPONSES.encode(request, Edits(messages=(*request.messages[:2], shorter))) == raw.replace(b"long", b"short")


@pytest.mark.parametrize(
    "pair",
    [
        (CALL, OUTPUT),
        ({"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "x"}, {"type": "custom_tool_call_output", "call_id": "c1", "output": "y"}),
        ({"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "action": {"command": ["ls"]}}, {"type": "local_shell_call_output", "call_id": "c1", "output": "y"}),
        ({"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}}, {"type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "y"}]}),
        ({"type": "apply_patch_call", "call_id": "c1", "operation": {"type": "delete_file"}}, {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed"}),
        ({"type": "computer_call", "call_id": "c1", "action": {"type": "click"}}, {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot", "image_url": "data:,"}}),
    ],
)  # fmt: skip
def test_a_call_of_any_kind_is_found_by_the_id_of_its_output(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    request = read(RESPONSES, {"input": [user("go"), *pair, said("done"), user("next")]})

    call, output = request.messages[1], request.messages[2]
    assert call["tool_calls"][0]["id"] == output["tool_call_id"] == "c1"


@pytest.mark.parametrize("rung", [1, 2, 3])
@pytest.mark.parametrize("elsewhere", [{}, {"previous_response_id": "resp_1"}])
def test_a_result_whose_call_only_the_server_has_is_never_left_out(elsewhere: dict[str, str], rung: int) -> None:
    """The Vercel AI SDK refers to stored calls by `item_reference`; a call without a result is refused."""
    turns = [
        [user(f"Question {n}: " + "what was it again? " * 20), *([] if elsewhere else [{"type": "item_reference", "id": f"fc_{n}"}]),
         {**OUTPUT, "call_id": f"c{n}", "output": f"row {n} of many\n" * 60}, said("Noted. " * 60, f"msg_{n}")]
        for n in range(8)
    ]  # fmt: skip
    screen = {"type": "computer_screenshot", "image_url": "data:,"}
    turns[0].append({"type": "computer_call_output", "call_id": "k", "output": screen})
    given = [*(item for turn in turns for item in turn), user("And now?")]

    sent = orjson.loads(folded(RESPONSES, {**elsewhere, "input": given}, 0.1, rung))["input"]

    results = [item for item in sent if item["type"].endswith("_output")]
    assert [item["call_id"] for item in results] == ["c0", "k", *(f"c{n}" for n in range(1, 8))]
    assert results[0]["output"] == "[result removed]"
    assert results[1]["output"] == screen
    assert len(orjson.dumps(sent)) < 0.4 * len(orjson.dumps(given))


@pytest.mark.parametrize("kind", ["shell_call_output", "local_shell_call_output", "apply_patch_call_output"])
def test_a_long_result_of_a_shell_whose_call_only_the_server_has_is_left_out_but_for_its_id(kind: str) -> None:
    printed = [f"row {n} of many\n" * 200 for n in range(8)]
    outputs = [
        [{"stdout": text, "stderr": "", "outcome": {"type": "timeout"}}] if kind == "shell_call_output" else text
        for text in printed
    ]
    turns = [
        [user(f"Question {n}?"), {"type": "item_reference", "id": f"sh_{n}"}, {"type": kind, "call_id": f"c{n}", "output": output}, said("Noted.", f"msg_{n}")]
        for n, output in enumerate(outputs)
    ]  # fmt: skip
    given = [*(item for turn in turns for item in turn), user("And now?")]

    sent = orjson.loads(folded(RESPONSES, {"input": given}, 0.2))["input"]

    results = [item for item in sent if item["type"] == kind]
    assert [item["call_id"] for item in results] == [f"c{n}" for n in range(8)]
    first = results[0]["output"]
    expected = [{"stdout": "[result removed]", "stderr": "", "outcome": {"type": "timeout"}}]
    assert first == (expected if kind == "shell_call_output" else "[result removed]")
    assert len(orjson.dumps(sent)) < 0.4 * len(orjson.dumps(given))


@pytest.mark.parametrize("ids", [{}, {"id": "mcp_1"}])
def test_long_results_in_items_are_cut_each_for_itself(ids: dict[str, str]) -> None:
    """Also where items have no id, or the same."""
    outputs = ["one\n" * 400, None, "two\n" * 400]
    calls = [{"type": "mcp_call", **ids, "name": "f", "arguments": "{}", "output": output} for output in outputs]

    sent = orjson.loads(folded(RESPONSES, {"input": [user("go"), *calls, CALL, OUTPUT]}, 0.5))

    first, none, second = (item["output"] for item in sent["input"] if item["type"] == "mcp_call")
    assert "one" in first and "two" not in first
    assert none is None
    assert "two" in second and "one" not in second
    assert len(first) + len(second) < 2 * len(str(outputs[0]))


def shell_step(n: int, stdout: str, stderr: str = "") -> list[dict[str, Any]]:
    rest = {"outcome": {"type": "exit", "exit_code": n}}
    return [
        {"type": "shell_call", "id": f"sh_{n}", "call_id": f"c{n}", "action": {"commands": [f"cat {n}.log"]}},
        {"type": "shell_call_output", "call_id": f"c{n}", "output": [{"stdout": stdout, "stderr": stderr, **rest}]},
    ]


def test_what_a_shell_printed_is_cut_and_quoted_like_any_result() -> None:
    logs = [f"host db{n}.internal is up\n" + f"row {n} of many words\n" * 200 for n in range(8)]
    talk = "and a line of small talk\n" * 100
    steps = [item for n, log in enumerate(logs) for item in shell_step(n, log, talk if n == 7 else "")]

    sent = orjson.loads(folded(RESPONSES, {"input": [user("Which hosts are up?"), *steps]}, 0.1))["input"]

    assert "db3.internal" in orjson.dumps(sent[0]).decode()
    (chunk,) = sent[-1]["output"]
    assert chunk.keys() == {"stdout", "stderr", "outcome"}
    assert chunk["outcome"] == {"type": "exit", "exit_code": 7}
    assert chunk["stdout"].startswith("host db7.internal")
    assert len(chunk["stdout"]) < len(logs[7]) / 2
    assert chunk["stderr"].startswith("and a line")


def test_an_odd_output_of_a_shell_stays_as_it_came() -> None:
    chunks = [{"stdout": None, "stderr": "one\n" * 300}, {"stdout": "two\n" * 300}, {"outcome": {"type": "timeout"}}]
    step = shell_step(0, "")
    step[1]["output"] = chunks

    sent = orjson.loads(folded(RESPONSES, {"input": [user("go"), *step]}, 0.3))["input"][-1]["output"]

    assert [chunk.keys() for chunk in sent] == [chunk.keys() for chunk in chunks]
    assert (sent[0]["stdout"], sent[2]) == (None, chunks[2])
    assert len(orjson.dumps(sent)) < len(orjson.dumps(chunks)) / 2


def program_items(rounds: int, *, done: bool) -> list[dict[str, Any]]:
    """A program of the model that calls the client's tools: https://platform.openai.com/docs/api-reference/responses/create."""
    by = {"caller": {"type": "program", "caller_id": "p1"}}
    items: list[dict[str, Any]] = [
        {"type": "program", "id": "pr_1", "call_id": "p1", "code": "look()", "fingerprint": "f"}
    ]
    for n in range(rounds):
        items.append({**CALL, "id": f"fc_{n}", "call_id": f"c{n}", **by})
        items.append({**OUTPUT, "call_id": f"c{n}", "output": f"row {n} of many words\n" * 60, **by})
    ended = {"type": "program_output", "id": "po_1", "call_id": "p1", "result": "42 rows", "status": "completed"}
    return [*items, ended] if done else items


@pytest.mark.parametrize("rung", [1, 2, 3])
@pytest.mark.parametrize("share", [0.6, 0.3, 0.1])
@pytest.mark.parametrize("done", [False, True])
def test_a_program_its_calls_and_its_output_are_kept_or_folded_together(*, done: bool, share: float, rung: int) -> None:
    given = [user("old " * 200), said("so " * 200), user("Sum the rows."), *program_items(6, done=done)]

    sent = orjson.loads(folded(RESPONSES, {"input": given}, share, rung))

    assert strict.violations({"input": given}) == strict.violations(sent) == []
    assert [item for item in sent["input"] if item["type"] == "program"] == given[3:4]


@pytest.mark.parametrize("rung", [1, 2, 3])
@pytest.mark.parametrize("share", [0.6, 0.3, 0.1])
@pytest.mark.parametrize("ended", [12, 19, None])
def test_a_job_that_runs_for_many_turns_does_not_join_them(ended: int | None, share: float, rung: int) -> None:
    """The turns between an asynchronous call and its output are kept whole or folded, and the call stays with its output."""
    output = {**OUTPUT, "output": "The job is done."}
    given: list[dict[str, Any]] = []
    for n in range(20):
        given += [user(f"Question {n}: " + "of many words " * 20)]
        given += [REASONING, {**CALL, "async": True}] if n == 2 else []
        given += [output] if n == ended else []
        given += [{**REASONING, "id": f"rs_a{n}"}, said(f"Answer {n}: " + "in many words " * 20, f"msg_{n}")]
    given.append(user("And now?") if ended else output)

    sent = orjson.loads(folded(RESPONSES, {"input": given}, share, rung))["input"]

    assert strict.added({"input": given}, {"input": sent}) == []
    new = [item for item in sent if item not in given]
    assert len(new) <= 2, "the note, and the question with its quotes"
    assert (output in sent) == ({**CALL, "async": True} in sent)
    assert ended or sent[-1] == output


def test_an_output_that_names_its_tool_instead_of_a_call_is_a_result() -> None:
    """Of a tool that reports on its own: `call_id` may be null, https://platform.openai.com/docs/api-reference/responses/create."""
    report = {"type": "function_call_output", "call_id": None, "name": "monitor", "output": "Disk sda7 is full.\n" * 60}
    given = [
        user("Watch the disks."),
        said("I do. " * 200),
        report,
        said("Noted.", "msg_2"),
        user("Which disk is full?"),
    ]

    request = read(RESPONSES, {"input": given})
    assert [message["role"] for message in request.messages] == ["user", "assistant", "tool", "assistant", "user"]
    sent = folded(RESPONSES, {"input": given}, 0.2)
    assert b"sda7" in sent
    assert len(sent) < len(orjson.dumps(given)) / 2


def test_the_output_of_a_folded_program_is_quoted() -> None:
    given = [user("Sum the rows."), *program_items(3, done=True), said("Done. " * 200), user("And now?")]

    assert "42 rows" in orjson.dumps(orjson.loads(folded(RESPONSES, {"input": given}, 0.2))).decode()


def test_an_update_of_the_configuration_stays() -> None:
    """It holds until the next one: https://platform.openai.com/docs/api-reference/responses/create."""
    update = {"type": "configuration_update", "text": {"format": {"type": "json_object"}}}
    given = [user("old " * 400), said("so"), update, user("older " * 400), said("so", "msg_2"), user("new")]

    assert update in orjson.loads(folded(RESPONSES, {"input": given}, 0.3))["input"]


def test_several_actions_of_a_computer_are_counted() -> None:
    typed = [{"type": "type", "text": "a long text " * 100}, {"type": "wait"}]
    call = {"type": "computer_call", "call_id": "c1", "actions": typed}

    assert COUNTER.message(read(RESPONSES, {"input": [user("go"), call]}).messages[1]) > 300


@pytest.mark.parametrize(
    "item",
    [
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0K" * 50_000},
        {"type": "code_interpreter_call", "id": "ci_1", "code": "plot()", "outputs": [{"type": "image", "url": "data:image/png;base64," + "iVBORw0K" * 50_000}]},
    ],
    ids=lambda item: item["type"],
)  # fmt: skip
def test_an_image_that_a_tool_made_is_not_counted_by_its_base64(item: dict[str, Any]) -> None:
    assert 1000 < sum(map(COUNTER.message, read(RESPONSES, {"input": [user("go"), item]}).messages)) < 2000


def test_a_compaction_is_pinned_whole() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "QUJD"}
    body = {"input": [user("old " * 400), compaction, said("so", "msg_2"), user("new")]}

    sent = orjson.loads(folded(RESPONSES, body, 0.3))["input"]

    assert compaction in sent
    assert len(orjson.dumps(sent)) < len(orjson.dumps(body["input"])) / 2


@pytest.mark.parametrize("member", ["previous_response_id", "conversation", "prompt"])
def test_text_from_elsewhere_is_told(member: str) -> None:
    assert read(RESPONSES, {"input": "hi", member: "x"}).refers_elsewhere
    assert not read(RESPONSES, {"input": "hi"}).refers_elsewhere


@pytest.mark.parametrize(
    "start", [0, *(pytest.param(start, marks=pytest.mark.slow) for start in range(200, 2000, 200))]
)
def test_two_thousand_conversations_stay_valid_and_fold_to_the_same_bytes(start: int) -> None:
    for seed in range(start, start + 200):
        body = responses_body(seed)
        assert strict.violations(body) == []
        rung, share = 1 + seed % 3, (0.7, 0.3, 0.1, 0.05)[seed % 4]

        sent = folded(RESPONSES, body, share, rung)

        assert strict.added(body, orjson.loads(sent)) == [], seed
        assert sent == folded(RESPONSES, body, share, rung)
        assert folded(RESPONSES, body, 1.2) == orjson.dumps(body)


def test_kept_items_keep_their_ids_and_status() -> None:
    for seed in range(100):
        body = responses_body(seed)
        given = {item["id"]: item for item in body["input"] if "id" in item}
        for item in orjson.loads(folded(RESPONSES, body, 0.4))["input"]:
            if "id" in item:
                assert item.get("status") == given[item["id"]].get("status")
                assert item["type"] == given[item["id"]]["type"]


@pytest.mark.parametrize("kind", [{}, {"type": None}, {"type": "item_reference"}])
def test_a_reference_to_an_item_may_leave_out_its_type(kind: dict[str, Any]) -> None:
    """`type` is optional: https://platform.openai.com/docs/api-reference/responses/create."""
    reference = {"id": "msg_9", **kind}
    request = read(RESPONSES, {"input": [reference, user("new")]})

    assert request.refers_elsewhere
    given = [reference, user("old " * 400), said("so"), user("older " * 400), said("so", "msg_2"), user("new")]
    assert reference in orjson.loads(folded(RESPONSES, {"input": given}, 0.3))["input"]


@pytest.mark.parametrize("rung", [1, 2, 3])
@pytest.mark.parametrize("share", [0.7, 0.5, 0.3, 0.1])
def test_a_call_that_the_user_approved_stays_with_its_approval(share: float, rung: int) -> None:
    given = [user("Go through all rows.")]
    for n in range(8):
        call = {"server_label": "s", "name": "find", "arguments": "{}"}
        given += [
            {"type": "mcp_approval_request", "id": f"mcpr_{n}", **call},
            {"type": "mcp_approval_response", "approval_request_id": f"mcpr_{n}", "approve": True},
            {
                "type": "mcp_call",
                "id": f"mcp_{n}",
                **call,
                "approval_request_id": f"mcpr_{n}",
                "output": f"row {n} of many\n" * 60,
            },
        ]

    sent = orjson.loads(folded(RESPONSES, {"input": given}, share, rung))["input"]

    requested = [item["id"] for item in sent if item["type"] == "mcp_approval_request"]
    assert [item["approval_request_id"] for item in sent if item["type"] == "mcp_approval_response"] == requested
    assert [item["approval_request_id"] for item in sent if item["type"] == "mcp_call"] == requested
