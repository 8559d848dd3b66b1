"""Calls in an agent's text are read in the forms that programs ask models for."""

import pytest

from gateway.context.read.text_calls import called_in

READ = '{"path":"src/oven.py"}'


@pytest.mark.parametrize(
    ("text", "prose", "calls"),
    [
        (
            "I open it.\n<read_file>\n<path>src/oven.py</path>\n</read_file>",
            "I open it.",
            [("read_file", READ)],
        ),
        (
            "<thinking>Which one?</thinking>\n<kubectl><args>get pods</args></kubectl>",
            "Which one?",
            [("kubectl", '{"args":"get pods"}')],
        ),
        (
            "<attempt_completion>\n<result>The oven is fixed.</result>\n<command>make</command>\n</attempt_completion>",
            "The oven is fixed.",
            [("attempt_completion", '{"command":"make"}')],
        ),
        (
            'Now both.\n<tool_call>{"name": "read", "arguments": {"path": "src/oven.py"}}</tool_call>\n'
            '<tool_call>{"name": "list", "arguments": {}}</tool_call>',
            "Now both.",
            [("read", READ), ("list", "{}")],
        ),
        (
            "<function=read><parameter=path>src/oven.py</parameter></function>",
            "",
            [("read", READ)],
        ),
        (
            '<function_calls>\n<invoke name="read">\n<parameter name="path">src/oven.py</parameter>\n</invoke>\n</function_calls>',
            "",
            [("read", READ)],
        ),
        (
            'Thought: I open it.\nAction: read\nAction Input: {"path":"src/oven.py"}',
            "I open it.",
            [("read", READ)],
        ),
        (
            'Thought: Both.\nAction 1: read\nAction Input 1: src/oven.py\nAction 2: list\nAction Input 2: src',
            "Both.",
            [("read", "src/oven.py"), ("list", "src")],
        ),
        (
            'Action:\n```json\n{"action": "read", "action_input": {"path": "src/oven.py"}}\n```',
            "",
            [("read", READ)],
        ),
        (
            '{"name": "pay", "arguments": {"amount": 1.50}}',
            "",
            [("pay", '{"amount":1.50}')],
        ),
        (
            '{"thought": "I open it.", "action": "read", "args": {"path": "src/oven.py"}}',
            "I open it.",
            [("read", READ)],
        ),
        (
            '{"thoughts": {"text": "open"}, "command": {"name": "read", "args": {"path": "src/oven.py"}}}',
            "",
            [("read", READ)],
        ),
        (
            '```json\n{"tool": "read", "parameters": {"path": "src/oven.py"}}\n```',
            "",
            [("read", READ)],
        ),
        ("```tool_code\nread('src/oven.py')\n```", "", [("tool_code", '{"code":"read(\'src/oven.py\')"}')]),
    ],
)  # fmt: skip
def test_a_call_is_read_in_any_of_its_forms(text: str, prose: str, calls: list[tuple[str, str]]) -> None:
    found = called_in(text)

    assert (found.prose, list(found.calls), found.certain) == (prose, calls, True)


@pytest.mark.parametrize(
    ("text", "prose", "calls"),
    [
        ("THOUGHT: I look.\n\n```bash\nls src\n```", "I look.", [("bash", '{"code":"ls src"}')]),
        ("I look.\n```mswea_bash_command\nls\n```\n", "I look.", [("mswea_bash_command", '{"code":"ls"}')]),
        ("Thought: I look.\n<code>\nprint(1)\n</code>", "I look.", [("code", '{"code":"print(1)"}')]),
    ],
)
def test_a_program_in_a_fence_may_also_be_meant_for_a_reader(
    text: str, prose: str, calls: list[tuple[str, str]]
) -> None:
    found = called_in(text)

    assert (found.prose, list(found.calls), found.certain) == (prose, calls, False)


@pytest.mark.parametrize(
    "text",
    [
        "The oven is warm.",
        "Use <b>bold</b> for it, and <p>this</p> around it.",
        "```bash\nls\n```\nThis lists the files.",
        '{"name": "Ana", "age": 7}',
        "The reaction is slow. Action is needed.",
        "Action: call the plumber",
        "```html\n<read_file>\n```",
        "<read_file><path>never closed",
        "{",
        "<read_file><path>\ud83d</path></read_file>",
        "<tool_call>" * 3000 + "</tool_call>" * 3000,
        '{"name": "f", "arguments": ' + "[" * 300 + "]" * 300 + "}",
        "",
    ],
)
def test_an_answer_has_no_calls(text: str) -> None:
    assert called_in(text) == (text, (), False)
