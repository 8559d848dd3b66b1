"""An agent that works on its own between two messages of the user: its findings stay, and questions about them are answered."""

from typing import Any

import pytest

from gateway.context import frames
from gateway.context.count.message_cost import counter
from gateway.context.cut.agents import AUTONOMOUS_RESULTS
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.message import text_of
from tests.context.messages import call, message, result

COUNTER = counter("o200k")
STEPS = 3 * AUTONOMOUS_RESULTS
CAUSE = "The retry loop ignored the lease, so both workers wrote the same ledger entry."
REPORTS = (
    f"Fixed. {CAUSE} The lease is checked before each write now.",
    "The export takes 40 seconds instead of 9 minutes, because rows are fetched in blocks. I left the CSV header alone.",
    "The flaky browser test waited for a banner that only shows in June. It is skipped until the clock can be set.",
)
TASKS = (
    "Ledger rows are doubled since Monday, please repair it.",
    "Now the export, it is slow.",
    "And that flaky test.",
)


def session(steps: int = STEPS) -> list[dict[str, Any]]:
    """Three tasks, each with so many steps of work and a report."""
    messages = [message("system", "You are a coding agent.")]
    for task, (wish, report) in enumerate(zip(TASKS, REPORTS, strict=True)):
        messages.append(message("user", wish))
        for step in range(steps):
            name = f"c{task}_{step}"
            messages.append(call(name, "read_file", path=f"src/module_{task}_{step}.py"))
            rows = [
                f"{row:4}  value_{task}_{step}_{row} = compute({row * 37 % 101}, mode='m{row % 7}')"
                for row in range(24)
            ]
            messages.append(result(name, "\n".join(rows)))
        messages.append(message("assistant", report))
    return messages


def folded(question: str, room: int, steps: int = STEPS) -> list[Any]:
    draft = fold_conversation([*session(steps), message("user", question)], Budget(room, 0, 0, 0), COUNTER, Policy())
    assert draft.cost <= room
    return list(draft.messages)


def all_text(messages: list[Any]) -> str:
    return "\n".join(map(text_of, messages))


@pytest.mark.parametrize("room", [1200, 2500, 6000])
def test_the_digest_keeps_the_reports_at_the_end_of_turns(room: int) -> None:
    assert CAUSE in all_text(folded("Go on with the next ticket.", room))


@pytest.mark.parametrize("room", [700, 1200, 2500, 6000, 12_000])
@pytest.mark.parametrize("question", ["Root cause of the doubled ledger rows?", "Why were the ledger rows doubled?"])
def test_a_question_about_the_work_finds_the_finding(question: str, room: int) -> None:
    assert CAUSE in all_text(folded(question, room))


def test_a_long_turn_is_set_aside_in_part_for_the_quotes_of_a_question() -> None:
    """Its user message, the last step and the report stay, and every result has its call."""
    messages = folded("Which browser test is skipped, and what does its banner wait for?", 6000)

    assert messages[-1]["role"] == "user"
    assert frames.QUOTES in text_of(messages[-1])
    kept = [each for each in messages if each["role"] != "system"]
    assert kept[0]["role"] == "user"
    called = [made["id"] for each in kept for made in each.get("tool_calls") or ()]
    assert called == [each["tool_call_id"] for each in kept if each["role"] == "tool"]
    assert text_of(messages[-2]) == REPORTS[-1]
    assert any(TASKS[-1] in text_of(each) for each in kept)


def test_a_service_conversation_is_not_an_agent_that_works_on_its_own() -> None:
    """With few results for each message of the user, the results say what a later call needs."""
    assert CAUSE not in all_text(folded("Go on with the next ticket.", 260, steps=AUTONOMOUS_RESULTS - 1))


@pytest.mark.parametrize("room", [1200, 2500, 16_000])
def test_a_question_fills_its_room_with_what_is_less_relevant(room: int) -> None:
    """The words of a question need not be those of the answer, and room that is not used is lost."""
    question = message("user", "Which modules did you read for the mode of values?")
    draft = fold_conversation([*session(), question], Budget(room, 0, 0, 0), COUNTER, Policy())

    assert 0.9 * room < draft.cost <= room


@pytest.mark.parametrize("paragraphs", [20, 40, 80])
def test_a_list_in_a_page_is_quoted_with_the_heading_that_a_question_finds(paragraphs: int) -> None:
    """Only the heading has the question's words."""
    items = "* the one behind the old mill, open on most days\n* the one beside the long road, open on most days"
    story = [
        f"Paragraph {n} tells how the valley was settled, and who kept the mill in year {1700 + n}."
        for n in range(paragraphs)
    ]
    page = "\n\n".join(["Registered scrapyards of the district", *story, items])
    messages = session()
    messages[2:2] = [call("page", "fetch", url="https://example.com/yards"), result("page", page)]
    question = message("user", "Which registered scrapyards are there in the district?")

    draft = fold_conversation([*messages, question], Budget(1500, 0, 0, 0), COUNTER, Policy())

    assert items in all_text(list(draft.messages))


def mails(number: int) -> list[dict[str, Any]]:
    """One task of an agent for an office, which reads so many mails."""
    messages = [message("system", "You are an agent for an office."), message("user", "Please go through my mail.")]
    for mail in range(number):
        name = f"m{mail}"
        body = " ".join(f"Point {point} of the order stays as it was agreed in week {mail}." for point in range(30))
        messages.append(call(name, "read_mail", id=f"msg-{mail}"))
        messages.append(
            result(name, f"From: Person {mail} <person.{mail}@firm{mail}.example>\nSubject: Order\n\n{body}")
        )
        messages.append(
            message("assistant", f"Mail {mail} says that the order stays, so nothing is to be changed in the plan.")
        )
    return messages


def test_the_addresses_of_those_whose_mails_were_read_stay() -> None:
    """The agent may answer any of them later."""
    messages = mails(12)
    draft = fold_conversation(messages, Budget(sum(map(COUNTER.message, messages)) // 8, 0, 0, 0), COUNTER, Policy())
    text = all_text(list(draft.messages))

    assert [mail for mail in range(12) if f"person.{mail}@firm{mail}.example" not in text] == []
