"""The current question is never destroyed: it is sent whole on every rung where it fits, and cut to what the room holds where it cannot."""

import random
from collections.abc import Iterator
from typing import Any, Final

import orjson
import pytest
from msgspec.structs import replace

from gateway.context.count.counter import Counter
from gateway.context.count.message_cost import scaled
from gateway.context.cut.policy import Policy
from gateway.context.life.attempt import Attempt
from gateway.context.life.ladder import certainly_too_long, first_attempt, next_attempt
from gateway.context.life.replies import OutputLimit, StatedNumbers
from gateway.context.life.task import Task
from gateway.wire import chat as wire
from gateway.wire.message import dumps, text_of
from tests.fakes import assistant, call, result, system, user

CONVERSATIONS: Final = 3200
FIXED: Final = 40
MODES: Final = ("all", "limit", "prompt", "nothing", "output", "excess")
"""What a refusal states."""


def characters(*, exact: bool) -> Counter:
    """Four characters to a token, as quick as can be."""
    return Counter(lambda message: 4 + len(dumps(message)) // 4, lambda text: len(text) // 4 + 1, exact=exact)


def words(rng: random.Random, number: int) -> str:
    return " ".join(rng.choice(WORDS) + (str(rng.randrange(999)) if rng.random() < 0.1 else "") for _ in range(number))


WORDS: Final = [
    "order",
    "ship",
    "the",
    "lamp",
    "never",
    "Friday",
    "a",
    "copy",
    "of",
    "error",
    "path",
    "/srv/x",
    "done",
    "Zoe",
]


def conversation(rng: random.Random, window: int) -> list[dict[str, Any]]:
    """Turns with and without tools, and a question of any size, followed by nothing, a tool loop or a prefill."""
    messages = [system(words(rng, rng.choice([3, 20, 60])))] if rng.random() < 0.7 else []
    for turn in range(rng.randrange(0, 7)):
        messages.append(user(words(rng, rng.randrange(2, 80))))
        messages += loop(rng, turn, rng.choice([0, 0, 1, 3]))
        messages.append(assistant(words(rng, rng.randrange(2, 60))))
    question = words(rng, int(rng.choice([0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.2]) * window / 1.3) + 1)
    if rng.random() < 0.2:
        messages.append(user(words(rng, 30)))
    content = [{"type": "text", "text": question}] if rng.random() < 0.2 else question
    messages.append({"role": "user", "content": content})
    ending = rng.random()
    if ending < 0.2:
        messages += loop(rng, 99, rng.randrange(1, 4))
    elif ending < 0.4:
        messages.append(assistant("Sure, here it is: " + words(rng, 4)))
    return messages


def loop(rng: random.Random, turn: int, steps: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for step in range(steps):
        name = f"c{turn}_{step}"
        messages += [
            assistant(None, call("look", {"at": words(rng, 3)}, name)),
            result(name, words(rng, rng.randrange(1, 300))),
        ]
    return messages


def task_of(rng: random.Random, messages: list[dict[str, Any]], window: int) -> Task:
    asked = rng.choice([None, None, 50, window // 4, window])
    fields = {} if asked is None else {"max_tokens": asked}
    request = wire.parse(orjson.dumps({"model": "m", "messages": messages, **fields}))
    assert request is not None
    count = characters(exact=rng.random() < 0.5)
    margin = rng.choice([0, window // 50])
    prompt = sum(map(count.message, request.messages)) + FIXED
    reserve = asked if asked is not None else window // 4
    return Task(
        request, "m", window, prompt, FIXED, margin, margin, reserve, asked, 1024, count, Policy(),
        plain_counter=count, plain_fixed=FIXED, configured_window=window,
        overcount=0.0 if count.exact else 0.3,
    )  # fmt: skip


def refusal(rng: random.Random, mode: str, task: Task, attempt: Attempt) -> StatedNumbers:
    """What an upstream says that counts a little differently, or has a smaller window, or says nothing."""
    limit = rng.choice([task.window, task.window, int(task.window * 0.8)])
    prompt = int(attempt.prompt * rng.choice([1.0, 1.1]))
    return {
        "all": StatedNumbers(limit=limit, prompt=prompt),
        "limit": StatedNumbers(limit=limit),
        "prompt": StatedNumbers(prompt=prompt),
        "output": StatedNumbers(limit=limit, prompt=prompt, completion=task.output_limit or 0),
        "excess": StatedNumbers(excess=max(prompt - task.window, 7)),
        "nothing": StatedNumbers(),
    }[mode]


def attempts(rng: random.Random, task: Task) -> Iterator[Attempt]:
    """All that would be sent to an upstream that refuses and refuses."""
    attempt: Attempt | None = first_attempt(task)
    mode = rng.choice(MODES)
    for _ in range(8):
        if attempt is None:
            return
        yield attempt
        if rng.random() < 0.1:
            attempt = next_attempt(task, attempt, OutputLimit(rng.choice([None, 64]))) or attempt
        attempt = next_attempt(task, attempt, refusal(rng, mode, task, attempt))


def last_user(messages: Any) -> dict[str, Any]:
    return next(message for message in reversed(messages) if message["role"] == "user")


def room_for_question(task: Task, attempt: Attempt, standing: list[dict[str, Any]]) -> int:
    """What is left for the question's last message when all else that must stand does, as the upstream would count: the pinned messages, the
    question's other messages, and what follows."""
    count = scaled(task.counter, attempt.ratio, task.conversation.memory)
    pinned = sum(count.message(message) for message in task.conversation.messages if message["role"] == "system")
    at = standing.index(last_user(standing))
    first = next((n + 1 for n in range(at - 1, -1, -1) if standing[n]["role"] != "user"), 0)
    beside = sum(map(count.message, standing[first:at] + standing[at + 1 :]))
    return attempt.window - task.least_output(attempt.window) - -(-FIXED * attempt.ratio // 1) - pinned - beside


@pytest.mark.parametrize("seed", range(8))
def test_a_question_that_fits_is_whole_on_every_rung(seed: int) -> None:
    """Every eighth of the conversations, each refused as often as anything smaller is found."""
    rng = random.Random(seed)
    sent = whole = cut = 0
    for _ in range(CONVERSATIONS // 8):
        window = rng.choice([300, 800, 2000, 5000])
        messages = conversation(rng, window)
        task = task_of(rng, messages, window)
        question = last_user(messages)
        for attempt in attempts(rng, task):
            sent += 1
            assert "failed" not in {step.stage for step in attempt.steps}
            standing = orjson.loads(attempt.body)["messages"]
            if messages[-1]["role"] == "assistant":
                assert standing[-1] == messages[-1], "a prefill is never altered"
            kept = text_of(last_user(standing))
            room = room_for_question(task, attempt, standing)
            if scaled(task.counter, attempt.ratio, task.conversation.memory).message(question) <= room:
                whole += 1
                assert text_of(question) in kept, (seed, window, attempt.rung)
            elif attempt.draft is not None and text_of(question) not in kept:
                cut += 1
                check_cut(task, attempt, question, kept)
    assert sent > CONVERSATIONS // 8
    assert whole > 200
    assert cut > 20


def check_cut(task: Task, attempt: Attempt, question: dict[str, Any], kept: str) -> None:
    """The head and the tail are there, the draft tells, and at least half of the room is used for it."""
    assert attempt.draft is not None
    told = attempt.draft.question_kept
    assert told is not None
    assert told.characters < told.total
    others = sum(cost for message, cost in zip(attempt.draft.messages, attempt.draft.costs, strict=True)
                 if message["role"] != "user")  # fmt: skip
    free = attempt.window - task.fold_margin - task.least_output(attempt.window) - FIXED * attempt.ratio - others
    cost = scaled(task.counter, attempt.ratio, task.conversation.memory).message({"role": "user", "content": kept})
    # Where next to nothing is left there is nothing to halve; and an upstream that states the same excess whatever it is sent
    # makes every character dearer than the last time.
    if free > 100 and attempt.ratio < 1.5:
        assert kept[-10:] == text_of(question)[-10:]
        assert cost >= free // 2 - 40


@pytest.mark.parametrize("size", range(1400, 2100, 25))
def test_a_question_and_the_newest_step_fit_together(size: int) -> None:
    """Of a question that fits without the newest step, and not with it, as much is kept as the step leaves."""
    rng = random.Random(8)
    calls = [call("look", {"at": words(rng, 20)}, f"c{number}") for number in range(4)]
    results = [result(f"c{number}", words(rng, 80)) for number in range(4)]
    question = (words(rng, size * 2) * 2)[: size * 4]
    messages = [user("Hi."), assistant("Hello."), user(question), assistant(None, *calls), *results]
    task = replace(task_of(rng, messages, 2000), counter=characters(exact=True), overcount=0.0, output_limit=20)

    attempt = first_attempt(replace(task, reserve=20, margin=0, fold_margin=0))

    sent = orjson.loads(attempt.body)["messages"]
    assert not certainly_too_long(task, attempt)
    assert [message["role"] for message in sent[-5:]] == ["assistant", "tool", "tool", "tool", "tool"]
    assert len(text_of(last_user(sent))) > 4 * 1000
    assert text_of(last_user(sent))[-10:] == question[-10:]


@pytest.mark.parametrize("size", range(1000, 2100, 100))
def test_many_messages_of_one_question_fit_together(size: int) -> None:
    """People who write to each other send many messages in a row. What remains of each shortened one takes room, too."""
    rng = random.Random(9)
    messages = [*(user(words(rng, 30)) for _ in range(60)), user((words(rng, size * 2) * 2)[: size * 4])]
    task = replace(task_of(rng, messages, 2000), counter=characters(exact=True), overcount=0.0, output_limit=20)

    attempt = first_attempt(replace(task, reserve=20, margin=0, fold_margin=0))

    assert not certainly_too_long(task, attempt)
    assert text_of(last_user(orjson.loads(attempt.body)["messages"]))[-10:] == text_of(messages[-1])[-10:]


@pytest.mark.parametrize("stated", [StatedNumbers(), StatedNumbers(limit=2000)], ids=["nothing", "the limit"])
def test_a_pasted_book_keeps_at_least_half_of_the_room_however_often_it_is_refused(stated: StatedNumbers) -> None:
    rng = random.Random(5)
    task = task_of(rng, [system("Be kind."), user(f"{words(rng, 6000)}\nWhat is the whale called?")], 2000)
    task = replace(task, counter=characters(exact=True), output_limit=None, margin=0, fold_margin=0)
    attempt: Attempt | None = first_attempt(task)
    seen = []
    while attempt is not None:
        assert attempt.draft is not None
        seen.append(text_of(last_user(attempt.draft.messages)))
        attempt = next_attempt(task, attempt, stated)

    assert len(seen) > 1
    assert all(text.endswith("What is the whale called?") for text in seen)
    assert len(seen[0]) > 4 * 1300, "nearly all of the room"
    assert all(len(text) > len(seen[0]) * 0.47 for text in seen)


def test_of_a_question_too_long_what_its_end_asks_for_stays() -> None:
    rng = random.Random(6)
    book = "\n".join(
        [*(words(rng, 12) for _ in range(300)), "The whale is called Bane.", *(words(rng, 12) for _ in range(300))]
    )
    task = task_of(rng, [user(f"{book}\n\nWhat is the whale called?")], 2000)

    attempt = first_attempt(replace(task, counter=characters(exact=True)))

    assert "The whale is called Bane." in attempt.body.decode()


def test_with_refuse_a_question_is_never_cut() -> None:
    rng = random.Random(7)
    messages = [system("Be kind."), user(words(rng, 30)), assistant("ok"), user(words(rng, 4000))]
    task = replace(
        task_of(rng, messages, 2000), policy=Policy(question="refuse"), counter=characters(exact=True), overcount=0.0
    )

    attempt = first_attempt(task)

    assert attempt.draft is not None
    assert attempt.draft.question_kept is None
    assert text_of(last_user(attempt.draft.messages)) == messages[-1]["content"]
    assert certainly_too_long(task, attempt), "so that the refusal is ours, and no upstream is asked"
    assert next_attempt(task, attempt, StatedNumbers()) is None
