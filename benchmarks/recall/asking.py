"""Fit the weights of `asking`: ``python -m benchmarks.recall.asking``.

A message asks for something that was said, or it does not:

- Questions about chats, each put in the place of a message of the user that comes after what it asks for, are messages that ask.
- The messages of the user in these chats are messages that do not. A few of them do, which makes the figures a little too low.
- Instructions and everyday messages at the end of the six first chats (`instructed`) are of both kinds.

The weights are fitted on sets in whose view other rules were chosen, by logistic regression. Printed for them, and for held-out sets: of how many messages that ask, and of
how many others, the points reach each limit.
"""

from collections.abc import Iterator, Sequence
from math import exp
from typing import Any, Final, NamedTuple

from benchmarks.recall.__main__ import load_if_present
from benchmarks.recall.authored import SETS
from benchmarks.recall.instructed import instructions
from gateway.context.choose import asking
from gateway.context.read import lines
from gateway.context.read.as_said import as_said, said_in
from gateway.context.read.line import MessageLines
from gateway.context.read.spoken import spoken
from gateway.context.weigh.line_pool import LinePool
from gateway.context.write.current_question import LEAST_ASKING, LIKELY_ASKING, SURE_ASKING
from gateway.wire.message import Message

FITTED_ON: Final = (
    "chats",
    "applications",
    "channels",
    "documents",
    "friends",
    "languages",
    "languages_more",
    "everyday",
    "unmarked",
)
HELD_OUT: Final = (
    "applications_held_out",
    "channels_held_out",
    "everyday_held_out",
    "unmarked_held_out",
    "held_out_fifth",
    "held_out_sixth",
)
FOLDED: Final = 0.75
"""Share of the messages before one that are folded."""
MOST_OF_CHAT: Final = 30
"""Messages of a chat that are used, at most."""
ROUNDS: Final = 3000
RATE: Final = 0.3
LIMITS: Final = (LEAST_ASKING - 0.5, LEAST_ASKING, LIKELY_ASKING, SURE_ASKING)


class Example(NamedTuple):
    """A message: its signs in the order of `NAMES`, and whether it asks."""

    signs: tuple[float, ...]
    asks: bool


NAMES: Final = ("WORDING", "SMALL", "LARGE", "QUESTION_WORD", "FORM", "UNKNOWN", "NEED")


def examples(name: str) -> list[Example]:
    """Return the examples of a set. The six first chats are not in the repository."""
    talks = (
        load_if_present("chats.jsonl") if name == "chats" else next(each.talks for each in SETS if each.file == name)
    )
    return [example for talk in talks for example in _examples_of(talk)]


def examples_of_instructions(*, held_out: bool) -> list[Example]:
    """Return the instructions and everyday messages as examples."""
    return [
        example
        for each in instructions()
        if each.held_out is held_out
        for example in _example(each.point.request, asks=bool(each.point.remarks))
    ]


def _examples_of(talk: dict[str, Any]) -> Iterator[Example]:
    messages: list[Message] = talk["messages"]
    places = [at for at, message in enumerate(messages) if message["role"] == "user" and at > 0.4 * len(messages)]
    places = places[:: max(1, len(places) // MOST_OF_CHAT)]
    for at in places:
        yield from _example(messages[: at + 1], asks=False)
    for number, probe in enumerate(talk["probes"]):
        last = max(said["msg"] for said in probe["evidence"])
        after = [at for at in places if at > last + 2] or [len(messages)]
        before = messages[: after[number % len(after)]]
        yield from _example([*before, {"role": "user", "content": probe["q"]}], asks=True)


def _example(request: Sequence[Message], *, asks: bool) -> Iterator[Example]:
    """Yield the last message of a request as an example, if it says anything."""
    *before, message = as_said(request)
    text = spoken(said_in(message))
    if text:
        folded = before[1 : int(FOLDED * len(before))]
        pool = LinePool([MessageLines(at, each["role"], lines.read(each)) for at, each in enumerate(folded)])
        yield Example(asking.signs(pool, text), asks)


def fit(given: Sequence[Example]) -> tuple[float, ...]:
    """Return the bias and the weights of the signs, by gradient descent on signs of mean 0 and deviation 1."""
    columns = list(zip(*[each.signs for each in given], strict=True))
    means = [sum(column) / len(given) for column in columns]
    spreads = [
        (sum([(value - mean) ** 2 for value in column]) / len(given)) ** 0.5 or 1.0
        for column, mean in zip(columns, means, strict=True)
    ]
    rows = [
        (1.0, *[(value - mean) / spread for value, mean, spread in zip(each.signs, means, spreads, strict=True)])
        for each in given
    ]
    weights = [0.0] * len(rows[0])
    for _ in range(ROUNDS):
        slopes = [0.0] * len(weights)
        for row, each in zip(rows, given, strict=True):
            total = sum([weight * value for weight, value in zip(weights, row, strict=True)])
            error = 1 / (1 + exp(-total)) - each.asks
            for at, value in enumerate(row):
                slopes[at] += error * value
        weights = [weight - RATE * slope / len(given) for weight, slope in zip(weights, slopes, strict=True)]
    plain = [weight / spread for weight, spread in zip(weights[1:], spreads, strict=True)]
    bias = weights[0] - sum([weight * mean for weight, mean in zip(plain, means, strict=True)])
    return (bias, *plain)


def report(name: str, given: Sequence[Example], weights: Sequence[float]) -> None:
    """Print the shares of messages whose points reach each limit."""
    points = [weights[0] + sum([w * value for w, value in zip(weights[1:], each.signs, strict=True)]) for each in given]
    shares = []
    for limit in LIMITS:
        of_asking = [value >= limit for value, each in zip(points, given, strict=True) if each.asks]
        of_others = [value >= limit for value, each in zip(points, given, strict=True) if not each.asks]
        shares.append(f"{sum(of_asking) / max(len(of_asking), 1):7.0%} {sum(of_others) / max(len(of_others), 1):5.1%}")
    asking_number = sum(each.asks for each in given)
    print(
        f"{name:24}{asking_number:5}{len(given) - asking_number:6}" + "".join(f"{share:>15}" for share in shares),
        flush=True,
    )


def main() -> None:
    of_sets = {name: examples(name) for name in (*FITTED_ON, *HELD_OUT)}
    fitted = [example for name in FITTED_ON for example in of_sets[name]] + examples_of_instructions(held_out=False)
    weights = fit(fitted)
    print(
        "fitted: BIAS",
        round(weights[0], 2),
        *[f"{name} {value:.2f}" for name, value in zip(NAMES, weights[1:], strict=True)],
    )
    print(f"{'':24}{'asks':>5}{'not':>6}" + "".join(f"{f'from {limit}':>15}" for limit in LIMITS))
    report("fitted on", fitted, weights)
    report("instructions", examples_of_instructions(held_out=True), weights)
    for name in HELD_OUT:
        report(name, of_sets[name], weights)


if __name__ == "__main__":
    main()
