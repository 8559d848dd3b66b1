"""Agents that call their tools in the text of their messages: folded like agents that use the API's tool calls."""

import orjson
import pytest

from gateway.standin import StandIn
from gateway.wire.message import text_of
from tests.fakes import assistant, chat, system, user, words

WINDOW = 4000
TASK = "Move the orders of Ines Brandt to the depot in Leith. Never write to a customer without asking me."
FORMS = {
    "elements": (
        "I look at it.\n<get_order>\n<id>{id}</id>\n</get_order>",
        "[get_order for '{id}'] Result:\n{text}\n\n<environment_details>\nMode: ACT\n</environment_details>",
    ),
    "tags": (
        'I look at it.\n<tool_call>{{"name": "get_order", "arguments": {{"id": "{id}"}}}}</tool_call>',
        "<tool_response>\n{text}\n</tool_response>",
    ),
    "actions": ('Thought: I look at it.\nAction: get_order\nAction Input: {{"id": "{id}"}}', "Observation: {text}"),
    "fences": ("I look at it.\n\n```bash\norder {id}\n```", "<returncode>0</returncode>\n<output>\n{text}\n</output>"),
}


def talk(form, steps=40):
    """A long task: orders are looked at one after the other."""
    call, result = FORMS[form]
    messages = [system("You call tools in your text."), user(TASK)]
    for number in range(steps):
        name = f"R-{7000 + number}"
        record = orjson.dumps({"order": name, "carrier": "DHL", "note": words(60, number)}).decode()
        messages += [assistant(call.format(id=name)), user(result.format(id=name, text=record))]
    return messages


@pytest.fixture
async def fold(gateway):
    """Send a conversation of several windows, in parts or as texts; return what the upstream got."""

    async def send(messages, api="chat"):
        async with StandIn(window=WINDOW) as standin:
            running = await gateway(standin, {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}})
            body = {"model": "m", "messages": messages, "max_tokens": 200}
            if api == "chat":
                answer = await running.chat(body)
            else:
                body["system"] = messages[0]["content"]
                body["messages"] = [
                    {"role": each["role"], "content": [{"type": "text", "text": each["content"]}]}
                    for each in messages[1:]
                ]
                raw = orjson.dumps(body)
                answer = await running.ask("POST", "/messages", raw, {"content-type": "application/json"})
            assert (answer.status, answer.action) == (200, "fold")
            return standin.requests[-1].json["messages"]

    return send


@pytest.mark.parametrize("api", ["chat", "messages"])
@pytest.mark.parametrize("form", FORMS)
async def test_the_task_stays_and_the_newest_step_too(form, api, fold):
    messages = talk(form)
    sent = [message for message in await fold(messages, api) if message["role"] != "system"]

    assert TASK in text_of(sent[0])
    assert text_of(sent[-1]).startswith(messages[-1]["content"])
    assert text_of(sent[-2]) == messages[-2]["content"]
    assert [message["role"] for message in sent] == ["user", "assistant"] * (len(sent) // 2) + ["user"] * (
        len(sent) % 2
    )
    assert "R-7003" in "\n".join(map(text_of, sent))
    assert all(message.keys() <= {"role", "content"} for message in sent)


@pytest.mark.parametrize("form", FORMS)
async def test_no_row_of_a_result_is_taken_for_the_users_word(form, fold):
    messages = talk(form)
    call, result = FORMS[form]
    notes = "\n".join(["Never order on a Sunday.", "Always ask Marek first.", "Please keep it short."] * 3)
    messages[6:6] = [assistant(call.format(id="R-1")), user(result.format(id="R-1", text=notes))]
    sent = await fold(messages)

    assert "user: Never order" not in "\n".join(map(text_of, sent))


async def test_feedback_inside_a_result_is_the_users(fold):
    wish = "From now on every amount gets two decimals."
    messages = talk("elements")
    messages[20:20] = [
        assistant("<attempt_completion>\n<result>\nAll moved.\n</result>\n</attempt_completion>"),
        user(f"[attempt_completion] Result:\nThe user has provided feedback.\n<feedback>\n{wish}\n</feedback>"),
    ]
    sent = await fold(messages)

    text = "\n".join(map(text_of, sent))
    assert wish in text
    assert f"user: {wish}" in text or f"<feedback>\n{wish}" in text


async def test_what_the_user_says_about_code_is_sent_whole(fold):
    wish = "[IMPORTANT] " + words(3400)
    talk = [system("You are helpful."), *chat(20, 150)[1:-1]]
    talk += [user("Write the script."), assistant("Here it is:\n\n```python\nprint(1)\n```"), user(wish)]
    sent = await fold(talk)

    assert wish in text_of(sent[-1])
