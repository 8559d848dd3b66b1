"""The retry ladder: the cheapest remedy first, every attempt strictly smaller, and an end."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.count.counter import Counter
from gateway.context.cut.policy import Policy
from gateway.context.life.attempt import Attempt
from gateway.context.life.ladder import certainly_too_long, first_attempt, next_attempt
from gateway.context.life.replies import OutputLimit, StatedNumbers
from gateway.context.life.task import Task
from gateway.wire import chat as wire
from gateway.wire.chat import ChatRequest
from gateway.wire.message import Message, dumps

FIXED = 10


def words(text: str) -> int:
    return len(text) // 4


def counter(*, exact: bool) -> Counter:
    return Counter(lambda message: 4 + words(dumps(message.get("content")).decode()), words, exact=exact)


def conversation(turns: int, size: int = 200) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for turn in range(turns):
        messages.append(
            {"role": "user", "content": f"Question {turn}: " + f"what of item {turn * 7919}? " * (size // 24)}
        )
        messages.append(
            {"role": "assistant", "content": f"Answer {turn}: " + f"item {turn * 7919} is fine. " * (size // 22)}
        )
    return [*messages, {"role": "user", "content": "And now?"}]


def request(messages: list[dict[str, Any]], **fields: Any) -> ChatRequest:
    parsed = wire.parse(orjson.dumps({"model": "asked", "messages": messages, **fields}))
    assert parsed is not None
    return parsed


def task(asked: ChatRequest, window: int, *, exact: bool = True, margin: int = 0, slack: float = 0.0) -> Task:
    count = counter(exact=exact)
    output = asked.body.get("max_tokens")
    return Task(
        conversation=asked,
        model="asked",
        window=window,
        prompt=sum(map(count.message, asked.messages)) + FIXED,
        fixed=FIXED,
        margin=margin,
        fold_margin=margin,
        reserve=output if output is not None else 50,
        output_limit=output,
        min_output=20,
        counter=count,
        policy=Policy(),
        plain_counter=count,
        plain_fixed=FIXED,
        configured_window=window,
        overcount=slack,
    )


def size(attempt: Attempt) -> int:
    messages: list[Message] = orjson.loads(attempt.body)["messages"]
    return sum(map(counter(exact=True).message, messages))


def test_what_fits_to_the_token_leaves_as_it_came() -> None:
    """Case 23."""
    asked = request(conversation(3))
    fitting = task(asked, 1)
    brim = fitting.prompt + fitting.reserve

    assert first_attempt(task(asked, brim)).body is asked.raw
    assert first_attempt(task(asked, brim - 1)).body != asked.raw


def test_an_output_limit_that_is_too_large_is_lowered_and_no_history_is_cut() -> None:
    """Cases 24, 25, 114."""
    asked = request(conversation(3), max_tokens=4000)
    fitted = first_attempt(task(asked, 2000))
    body = orjson.loads(fitted.body)

    assert body["messages"] == orjson.loads(asked.raw)["messages"]
    assert 0.95 * (2000 - fitted.prompt) <= body["max_tokens"] <= 2000 - fitted.prompt


def test_an_answer_does_not_get_shorter_the_more_was_folded() -> None:
    rooms = [
        fitted.output + fitted.prompt
        for turns in (40, 400)
        for fitted in [first_attempt(task(request(conversation(turns), max_tokens=1800), 2000))]
        if fitted.output is not None
    ]

    assert len(rooms) == 2 and min(rooms) >= 0.94 * 2000


def test_an_output_limit_is_never_lowered_below_the_floor() -> None:
    asked = request(conversation(30), max_tokens=100)
    prompt = task(asked, 1).prompt
    fitted = first_attempt(task(asked, prompt + 19))

    assert orjson.loads(fitted.body)["messages"] != orjson.loads(asked.raw)["messages"]
    assert fitted.draft is not None


def test_an_output_limit_at_the_floor_is_not_said_to_be_lowered() -> None:
    """The system message alone leaves less than the smallest output."""
    rule = {"role": "system", "content": "A rule of the house. " * 200}
    asked = request([rule, *conversation(3)], max_tokens=20)
    smallest = first_attempt(task(asked, counter(exact=True).message(rule) + FIXED))

    assert orjson.loads(smallest.body)["max_tokens"] == 20
    assert (smallest.output, [step.stage for step in smallest.steps if step.stage == "max_tokens"]) == (None, [])


def test_numbers_of_the_upstream_beat_ours() -> None:
    """Cases 79, 95, 122: the limit is adopted, and our count is corrected by theirs."""
    asked = request(conversation(40))
    job = task(asked, 100_000, exact=False)
    refused = first_attempt(job)

    following = next_attempt(job, refused, StatedNumbers(limit=4000, prompt=int(job.prompt * 2.5)))

    assert following is not None
    assert following.window == 4000
    assert (size(following) + FIXED) * 2.5 <= 4000


def test_a_completion_that_does_not_fit_is_lowered_with_the_numbers_of_the_upstream() -> None:
    """Case 80."""
    asked = request(conversation(10), max_tokens=3840)
    job = task(asked, 1_000_000)

    following = next_attempt(
        job, first_attempt(job), StatedNumbers(limit=job.prompt + 1000, prompt=job.prompt, completion=3840)
    )

    assert following is not None
    body = orjson.loads(following.body)
    assert body["messages"] == orjson.loads(asked.raw)["messages"]
    assert body["max_tokens"] == 1000


@pytest.mark.parametrize(("exact", "share"), [(True, 0.5), (False, 0.2)])
def test_a_refusal_without_numbers_takes_a_step_as_large_as_our_doubt(exact: bool, share: float) -> None:
    asked = request(conversation(60))
    job = task(asked, 100_000, exact=exact)

    following = next_attempt(job, first_attempt(job), StatedNumbers())

    assert following is not None
    assert following.prompt <= job.prompt * share


def test_a_count_that_is_only_a_bound_does_not_size_the_cut() -> None:
    """Case 125: a server that stops counting at limit + 1."""
    asked = request(conversation(60))
    job = task(asked, 100_000, exact=False)
    limit = job.prompt // 2

    following = next_attempt(job, first_attempt(job), StatedNumbers(limit=limit, total=limit + 1, exact=False))

    assert following is not None
    assert following.ratio == 1.0
    assert following.prompt <= limit * 0.4


def test_a_sum_that_hides_the_output_is_read_as_the_likelier_of_both() -> None:
    asked = request(conversation(20), max_tokens=3000)
    job = task(asked, 100_000)

    following = next_attempt(job, first_attempt(job), StatedNumbers(limit=job.prompt + 2000, total=job.prompt + 3000))

    assert following is not None
    assert following.output == 2000
    assert following.draft is None


def test_where_nothing_can_be_dropped_the_ladder_ends() -> None:
    """Case 103."""
    asked = request([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])
    job = task(asked, 1000)

    assert next_attempt(job, first_attempt(job), StatedNumbers(limit=20)) is None


def test_what_cannot_fit_beyond_doubt_is_hopeless_and_what_might_is_not() -> None:
    """Cases 52, 53: an estimate in doubt goes to the upstream, an exact count does not."""
    asked = request([{"role": "system", "content": "x" * 8000}, {"role": "user", "content": "Hi"}])

    for slack, expected in ((0.0, True), (0.5, False)):
        job = task(asked, 1800, slack=slack)
        assert certainly_too_long(job, first_attempt(job)) is expected


OUTPUT_REFUSALS = [
    # asked, window, limit stated, expected
    (4096, 10_000, 2048, 2048),
    (4096, 10_000, None, 4095),
]


@pytest.mark.parametrize(("asked", "window", "limit", "expected"), OUTPUT_REFUSALS)
def test_a_refusal_of_the_output_alone_lowers_it_alone(
    asked: int, window: int, limit: int | None, expected: int
) -> None:
    """Case 124."""
    wanted = request([{"role": "user", "content": "Hi"}], max_tokens=asked)
    job = task(wanted, window)
    prompt = first_attempt(job).prompt

    lowered = next_attempt(job, first_attempt(job), OutputLimit(limit))

    assert lowered is not None
    assert lowered.draft is None
    assert lowered.output == (expected - prompt if limit else expected)


def test_an_output_nobody_asked_for_cannot_be_lowered() -> None:
    job = task(request([{"role": "user", "content": "Hi"}]), 1000)

    assert next_attempt(job, first_attempt(job), OutputLimit(10)) is None


readings = st.builds(
    StatedNumbers,
    limit=st.none() | st.integers(1, 20_000),
    prompt=st.none() | st.integers(0, 200_000),
    completion=st.none() | st.integers(0, 8000),
    total=st.none() | st.integers(0, 200_000),
    exact=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 25),
    st.integers(200, 8000),
    st.none() | st.integers(1, 6000),
    st.booleans(),
    st.lists(readings, min_size=12, max_size=12),
)
def test_attempts_shrink_strictly_and_end(
    turns: int, window: int, max_tokens: int | None, exact: bool, refusals: list[StatedNumbers]
) -> None:
    """Case 94: whatever the refusals say, no attempt repeats and the ladder ends."""
    fields = {} if max_tokens is None else {"max_tokens": max_tokens}
    asked = request(conversation(turns), **fields)
    job = task(asked, window, exact=exact)
    attempt: Attempt | None = first_attempt(job)
    sizes: list[tuple[int, int]] = []

    for refusal in refusals:
        assert attempt is not None
        sizes.append((size(attempt), attempt.output or max_tokens or 0))
        attempt = next_attempt(job, attempt, refusal)
        if attempt is None:
            break

    assert sizes == sorted(set(sizes), reverse=True)
    assert attempt is None or len(sizes) == len(refusals)


def test_a_retry_keeps_the_last_user_message_once() -> None:
    """Case 96."""
    job = task(request(conversation(40)), 100_000)
    attempt = next_attempt(job, first_attempt(job), StatedNumbers(limit=2000, prompt=8000))

    assert attempt is not None
    users = [message for message in orjson.loads(attempt.body)["messages"] if message["role"] == "user"]
    assert sum("And now?" in message["content"] for message in users) == 1
    assert "And now?" in users[-1]["content"]
