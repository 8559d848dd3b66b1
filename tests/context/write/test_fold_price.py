"""What a fold costs at a provider with a prompt cache, beside what a client pays that drops its oldest turns."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.context import frames
from gateway.context.cache.marking import BREAKPOINT_STYLE, CACHE_CONTROL_STYLE, MarkStyle, marked
from gateway.context.cache.rules import ANTHROPIC, LLAMA_CPP, OPENAI_BOUNDARY, CacheRule
from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.memory import Memory
from gateway.wire.message import text_of
from tests.counterfactual import Request, counterfactual
from tests.fakes import assistant, call, result, system, user, words

COUNTER = counter("o200k")
WINDOW = 4096
"""Tokens."""
BUDGET = Budget(WINDOW, 16, 3, WINDOW // 50)


def encode(text: str) -> tuple[int, ...]:
    """One number a word, equal for equal words: about as many as there are tokens."""
    return tuple(map(hash, text.split()))


def told(turns: int) -> list[dict[str, Any]]:
    """A chat in which the user tells of his days, as people do, and rarely asks."""
    messages = [system("You are a friend.")]
    for turn in range(turns):
        messages += [user(f"On day {turn}, {words(60, turn)}."), assistant(f"I see. {words(60, turn + 500)}.")]
    return messages


def worked(turns: int) -> list[dict[str, Any]]:
    """A service that looks up what each request names."""
    messages = [system("You help with orders.")]
    for turn in range(turns):
        name = f"c{turn}"
        messages += [
            user(f"Please look up order W{turn * 37 + 4711}, it should hold {words(15, turn)}."),
            assistant(None, call("get_order", {"order": f"W{turn * 37 + 4711}"}, name)),
            result(name, f"order W{turn * 37 + 4711}: {words(120, turn)} total {turn * 13} dollars"),
            assistant(f"It is on its way. {words(20, turn)}"),
        ]
    return messages


def searched(turns: int, steps: int = 10) -> list[dict[str, Any]]:
    """An agent that makes many calls for each request: a turn takes two fifths of the window."""
    messages = [system("You work on the code.")]
    for turn in range(turns):
        messages.append(user(f"Please find out why check {turn} fails, it says {words(10, turn)}."))
        for step in range(steps):
            number = turn * steps + step
            messages += [
                assistant(None, call("read_file", {"path": f"src/part_{number}.py"}, f"c{number}")),
                result(f"c{number}", f"part {number}: {words(100, number)} line {number * 13}"),
            ]
        messages.append(assistant(f"Check {turn} fails because of this: {words(20, turn)}"))
    return messages


TALKS = {"chat": told(90), "service": worked(60), "agent": searched(14)}


def sent(messages: list[dict[str, Any]]) -> list[Request]:
    """The requests of a conversation, as they came and folded."""
    memory = Memory()
    found: list[Request] = []
    for end in range(1, len(messages) + 1):
        if messages[end - 1]["role"] in ("user", "tool"):
            came = messages[:end]
            folded = fold_conversation(came, BUDGET, COUNTER, Policy(), memory=memory).messages
            found.append(Request(20.0 * len(found), came, folded, int(WINDOW * 0.9)))
    return found


SENT = {name: sent(messages) for name, messages in TALKS.items()}


@pytest.mark.parametrize(
    ("rule", "style", "most"),
    [(OPENAI_BOUNDARY, BREAKPOINT_STYLE, 1.0), (ANTHROPIC, CACHE_CONTROL_STYLE, 1.0), (LLAMA_CPP, None, 1.05)],
    ids=lambda it: getattr(it, "name", ""),
)
@pytest.mark.parametrize("talk", TALKS)
def test_a_fold_costs_no_more_than_dropping_the_oldest_half(
    talk: str, rule: CacheRule, style: MarkStyle | None, most: float
) -> None:
    """With the marks that the gateway sets; where only processed tokens count, about as much."""
    requests = [replace(request, sent=marked(request.sent, style) if style else request.sent) for request in SENT[talk]]
    found = counterfactual(requests, rule, encode)

    assert found.too_large > 20
    assert found.ours.cost(rule) <= most * found.cut.cost(rule)


@pytest.mark.parametrize("talk", TALKS)
def test_nearly_all_of_a_request_is_the_beginning_of_the_next_between_cuts(talk: str) -> None:
    """Each request is read up to what the client added to it."""
    shares: list[float] = []
    for before, now in zip(SENT[talk], SENT[talk][1:], strict=False):
        if before.sent[:2] == now.sent[:2] and len(now.came) != len(now.sent):
            same = next(
                n
                for n, pair in enumerate(zip(before.sent, now.sent, strict=False))
                if pair[0] != pair[1] or n == len(before.sent) - 1
            )
            shares.append((same + 1) / len(before.sent))

    assert len(shares) > 20
    assert sum(shares) / len(shares) >= 0.95


def test_a_message_of_a_chat_is_quoted_for_only_if_it_asks_for_what_was_said() -> None:
    """Quotes are processed anew at once, and a statement needs none."""
    remark, reference = TALKS["chat"][5]["content"], "What was it with the harbour nets that day?"
    quoted = {}
    for text in (remark, reference):
        draft = fold_conversation([*TALKS["chat"], user(text)], BUDGET, COUNTER, Policy())
        quoted[text] = frames.QUOTES in text_of(draft.messages[-1])

    assert quoted == {remark: False, reference: True}


def test_where_tools_are_called_only_a_question_about_the_past_is_quoted_for() -> None:
    """A task names what its calls look up; its quotes would be read with every request until the next cut."""
    task, question = (
        fold_conversation([*TALKS["service"], user(text)], BUDGET, COUNTER, Policy()).messages
        for text in (
            "Could you compare order W4711 with W4748 and cancel the dearer one?",
            "What was the total of order W4711?",
        )
    )

    assert frames.QUOTES not in text_of(task[-1])
    assert frames.QUOTES in text_of(question[-1])
