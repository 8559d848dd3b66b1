"""What prompt caches charge for a conversation that outgrows its window, for several ways to keep it inside.

    python -m benchmarks.cache [--sets chats,tau_airline,...] [--share 0.5,0.7] [--rules openai,...] [--every N] [--windows 4096,16384]

Every recorded conversation is sent request by request, as its client would: one at each user message and one after each tool result.
The window is a share of the whole conversation, or a number of
tokens; then conversations of the set are joined, one behind the other, to three times the window. A simulated cache of each provider (`gateway/context/cache`) bills the requests. Printed,
per strategy: the share of prompt tokens read from the cache, the tokens processed anew a request, and the price a conversation in uncached
input tokens, beside that of "no limit", which never drops anything and only stands for comparison; and how many requests are over the window, by this count.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from splintr import Tokenizer

from benchmarks.cache.strategies import STRATEGIES
from gateway.context.cache.marking import BREAKPOINT, CONTROL, marked
from gateway.context.cache.prompt import rendered
from gateway.context.cache.rules import OPENAI, RULES, CacheRule, Matching
from gateway.context.cache.simulate import Bill, Block, Cache, ask

BETWEEN_S = 20.0
"""Seconds from one request to the next."""
DATA = Path(os.environ.get("TURNFOLD_DATA", Path(__file__).resolve().parents[2].parent / "shared")) / "conversations"


_ENCODE = Tokenizer.from_pretrained("o200k_base").encode_ordinary


@lru_cache(maxsize=200_000)
def encode(text: str) -> tuple[int, ...]:
    """The tokens of a text."""
    return tuple(_ENCODE(text))


def cost(message: dict[str, Any]) -> int:
    """The tokens of a message with its role and calls, in the order a chat template writes them."""
    return sum(len(block.tokens) for block in rendered([message], OPENAI, encode))


def points(messages: Sequence[dict[str, Any]]) -> Iterator[int]:
    """How many messages each request of the conversation holds."""
    for number, message in enumerate(messages, 1):
        follows = messages[number]["role"] if number < len(messages) else ""
        if message["role"] in ("user", "tool", "function") and follows not in ("user", "tool", "function"):
            yield number


def blocks_of(messages: Sequence[dict[str, Any]], rule: CacheRule) -> list[Block]:
    """The rendered prompt, with the marks that the gateway sets where the provider takes some; a client that cuts by itself is
    taken to set the same ones."""
    style = {Matching.MARKED: CONTROL, Matching.BOUNDARY: BREAKPOINT}.get(rule.matching)
    return rendered(marked(messages, style) if style else messages, rule, encode)


def billed(requests: Sequence[Sequence[dict[str, Any]]], rule: CacheRule) -> list[Bill]:
    cache, bills = Cache(rule), []
    for number, messages in enumerate(requests):
        cache, bill = ask(cache, blocks_of(messages, rule), number * BETWEEN_S)
        bills.append(bill)
    return bills


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="chats,tau_airline,bfcl_long,swe_agent")
    parser.add_argument("--share", default="0.5")
    parser.add_argument("--windows", default="", help="tokens, instead of a share")
    parser.add_argument("--rules", default="openai,openai-5.6,anthropic,vllm,llama.cpp")
    parser.add_argument("--every", type=int, default=10, help="take every N-th conversation of the larger sets")
    given = parser.parse_args()
    rules = [RULES[name] for name in given.rules.split(",")]
    for name in given.sets.split(","):
        rows = [orjson.loads(line) for line in (DATA / f"{name}.jsonl").read_bytes().splitlines() if line]
        if given.windows:
            for window in map(int, given.windows.split(",")):
                long = joined([row["messages"] for row in rows], LONGER * window)
                table(f"{name} joined to {LONGER} windows of {window}", [long], lambda _, window=window: window, rules)
            continue
        for share in map(float, given.share.split(",")):
            some = [row["messages"] for row in (rows if len(rows) <= 12 else rows[:: given.every])]
            table(f"{name}, window {share:.0%} of each", some, lambda talk, share=share: share_of(talk, share), rules)


LONGER = 3
"""Windows that joined conversations fill."""


def joined(talks: Sequence[list[dict[str, Any]]], tokens: int) -> list[dict[str, Any]]:
    """Conversations one behind the other under the first one's system messages, up to so many tokens or to their end."""
    pinned = ("system", "developer")
    messages = [message for message in talks[0] if message["role"] in pinned]
    total = sum(map(cost, messages))
    for message in (message for talk in talks for message in talk if message["role"] not in pinned):
        total += cost(message)
        if total > tokens:
            break
        messages.append(message)
    return messages


def share_of(messages: Sequence[dict[str, Any]], share: float) -> int:
    """A window for the pinned messages and a share of the others."""
    fixed = sum(cost(m) for m in messages if m["role"] in ("system", "developer"))
    return fixed + int(share * (sum(map(cost, messages)) - fixed))


def table(
    title: str,
    talks: Sequence[list[dict[str, Any]]],
    window_of: Callable[[list[dict[str, Any]]], int],
    rules: Sequence[CacheRule],
) -> None:
    found: dict[tuple[str, str], list[Bill]] = defaultdict(list)
    over: dict[str, int] = defaultdict(int)
    for messages in talks:
        window = window_of(messages)
        for strategy, keep in STRATEGIES.items():
            requests = [keep(messages[:number], window, cost) for number in points(messages)]
            over[strategy] += sum(sum(map(cost, request)) > window for request in requests)
            for rule in rules:
                found[strategy, rule.name] += billed(requests, rule)
    shown = Table(title=f"{title}: {len(talks)} conversations")
    for column in ("strategy", "cache", "read", "anew a request", "price a conversation", "beside no limit", "over"):
        shown.add_column(column, justify="left" if column in ("strategy", "cache") else "right")
    for rule in rules:
        base = sum(bill.cost(rule) for bill in found["no limit", rule.name])
        for strategy in STRATEGIES:
            bills = found[strategy, rule.name]
            price, prompt = sum(bill.cost(rule) for bill in bills), sum(bill.prompt for bill in bills)
            read = sum(bill.read for bill in bills)
            shown.add_row(
                strategy, rule.name, f"{read / prompt:.1%}", f"{(prompt - read) / len(bills):.0f}",
                f"{price / len(talks):.0f}", f"{price / base:.2f}" if base else "-", str(over[strategy]),
            )  # fmt: skip
        shown.add_section()
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
