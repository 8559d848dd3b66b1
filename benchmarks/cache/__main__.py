"""What prompt caches charge for a conversation that outgrows its window, for several ways to keep it inside.

    python -m benchmarks.cache [--sets chats,tau_airline,...] [--share 0.5,0.7 | --windows 4096,16384] [--rules openai,...] [--every N]
                               [--requests N] [--form chat|responses|messages] [--causes] [--server URL]

Every recorded conversation is sent request by request, as its client would: one at each user message and one after each tool result.
The window is a share of each conversation, or a number of tokens; then conversations are joined, one behind the other, to three times the
window, and so many requests are billed from the one on that fills nine tenths of it. A simulated cache of each provider (`gateway/context/cache`)
bills them. Printed for each way:

- read: the share of prompt tokens read from the cache;
- of ideal: the same between cuts, beside a cache that reads all but the messages which the client added;
- anew: tokens a request that are not read;
- price: of a conversation, in uncached input tokens, and beside that of "no limit", which never drops anything and stands for comparison only;
- over: requests over the window, by this count;
- turnfold beside it: Turnfold's price beside this one, of the conversations that this way keeps inside the window.

`--causes` prints what is processed anew, by cause, instead. `--server` sends the same requests to a llama-server, whose own counters are printed.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from splintr import Tokenizer

from benchmarks.cache import server
from benchmarks.cache.causes import CAUSES, causes_of, pieces
from benchmarks.cache.prompt import rendered
from benchmarks.cache.simulate import Bill, Block, Cache, send
from benchmarks.cache.strategies import STRATEGIES
from benchmarks.recall.ours import COUNTER
from benchmarks.recorded import CONVERSATIONS, present
from gateway.command.recast import recast
from gateway.context.cache.marking import BREAKPOINT_STYLE, CACHE_CONTROL_STYLE, ends_with_passing_quotes, marked
from gateway.context.cache.rules import OPENAI, RULES, CacheRule, Matching
from gateway.wire.formats import FORMATS

Messages = Sequence[dict[str, Any]]

BETWEEN_S = 20.0
"""Seconds from one request to the next."""
LONGER = 3
"""Windows that joined conversations fill."""
NEARLY = 0.9
"""Share of a window from which on requests of joined conversations are billed: those before are the same in all ways."""
SMALL = 12
"""Conversations; of a larger set `--every` takes some."""
KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
PINNED = ("system", "developer")
OWN_DATA = Path(__file__).resolve().parents[1] / "recall"
"""Conversations written for this project, such as `coding_agents`."""
FORMS = {format.name: format for format in FORMATS.values()}

_ENCODE = Tokenizer.from_pretrained("o200k_base").encode_ordinary


@lru_cache(maxsize=200_000)
def encode(text: str) -> tuple[int, ...]:
    """The tokens of a text."""
    return tuple(_ENCODE(text))


def cost(message: dict[str, Any]) -> int:
    """The tokens of a message, as the gateway counts them: every way keeps its requests inside the window by this count."""
    return COUNTER.message(message)


def billed_size(message: dict[str, Any]) -> int:
    """The tokens of a message with its calls as the simulation renders them."""
    return sum(len(block.tokens) for block in rendered([message], OPENAI, encode))


def points(messages: Messages) -> Iterator[int]:
    """How many messages each request of the conversation holds."""
    for number, message in enumerate(messages, 1):
        follows = messages[number]["role"] if number < len(messages) else ""
        if message["role"] in ("user", "tool", "function") and follows not in ("user", "tool", "function"):
            yield number


def blocks_of(messages: Messages, rule: CacheRule, tools: str = "") -> list[Block]:
    """The rendered prompt, with the marks that the gateway sets where the provider takes some; a client that cuts by itself is
    taken to set the same ones."""
    style = {Matching.MARKED: CACHE_CONTROL_STYLE, Matching.BOUNDARY: BREAKPOINT_STYLE}.get(rule.matching)
    return rendered(marked(messages, style) if style else messages, rule, encode, tools)


def billed(requests: Sequence[Messages], rule: CacheRule, tools: str = "") -> list[Bill]:
    """The bill of each request of one conversation."""
    cache, bills = Cache(rule), []
    for number, messages in enumerate(requests):
        blocks = blocks_of(messages, rule, tools)
        cache, bill = send(cache, blocks, number * BETWEEN_S, managed=not ends_with_passing_quotes(messages))
        bills.append(bill)
    return bills


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation, its window, and how many messages each request that is billed holds."""

    messages: Messages
    window: int
    ends: tuple[int, ...]
    tools: str = ""
    """The definitions of its tools; the window is without them."""

    def sent(self, way: str) -> list[list[dict[str, Any]]]:
        """The requests, kept inside the window in one way."""
        return [STRATEGIES[way](self.messages[:end], self.window, cost) for end in self.ends]

    def added(self) -> list[int]:
        """The tokens that the client added to each request."""
        return [
            sum(map(billed_size, self.messages[start:end]))
            for start, end in zip((0, *self.ends), self.ends, strict=False)
        ]


@dataclass(slots=True)
class Sums:
    """What the requests of one way came to, by one rule."""

    bill: Bill = field(default_factory=Bill)
    requests: int = 0
    read_between: int = 0
    ideal_between: int = 0
    over: int = 0
    prices: list[float] = field(default_factory=list)
    """Of each conversation."""
    inside: list[bool] = field(default_factory=list)
    """Whether each conversation stayed inside the window."""

    def beside(self, other: "Sums") -> float:
        """The price beside another way's, of the conversations that the other one keeps inside; 0 without any."""
        known = [
            pair
            for pair, inside in zip(zip(self.prices, other.prices, strict=True), other.inside, strict=True)
            if inside
        ]
        return sum(price for price, _ in known) / max(sum(price for _, price in known), 1)

    def add(self, talk: Talk, sent: Sequence[Messages], bills: Sequence[Bill], rule: CacheRule) -> None:
        """Add one conversation."""
        self.requests += len(bills)
        self.prices.append(sum(bill.cost(rule) for bill in bills))
        before = self.over
        firsts = [next((pieces(m)[:1] for m in request if m["role"] not in PINNED), None) for request in sent]
        for number, (bill, new) in enumerate(zip(bills, talk.added(), strict=True)):
            self.bill += bill
            self.over += sum(map(cost, sent[number])) > talk.window
            stands = number and firsts[number] == firsts[number - 1]
            if stands and bill.prompt > new:
                self.read_between += bill.read
                self.ideal_between += bill.prompt - new
        self.inside.append(self.over == before)


def main() -> None:
    given = arguments()
    for title, talks in chosen(given):
        if given.causes:
            show_causes(title, talks, given.ways)
        elif given.server:
            server.show(title, talks, given.ways, given.server)
        else:
            show_prices(title, talks, given.ways, [RULES[name] for name in given.rules.split(",")])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="chats,tau_airline,bfcl_long,swe_agent")
    parser.add_argument("--share", default="0.5")
    parser.add_argument("--windows", default="", help="tokens, instead of a share")
    parser.add_argument("--rules", default="openai,openai-5.6,anthropic,vllm,llama.cpp")
    parser.add_argument("--every", type=int, default=10, help="take every N-th conversation of the larger sets")
    parser.add_argument("--requests", type=int, default=150, help="the most requests of joined conversations")
    parser.add_argument("--form", choices=sorted(FORMS), default="chat")
    parser.add_argument("--causes", action="store_true", help="print what is processed anew, by cause")
    parser.add_argument("--server", default="", help="the address of a llama-server, such as http://127.0.0.1:8080")
    parser.add_argument(
        "--ways", type=lambda text: text.split(","), default=list(STRATEGIES), help=", ".join(STRATEGIES)
    )
    return parser.parse_args()


def chosen(given: argparse.Namespace) -> Iterator[tuple[str, list[Talk]]]:
    """The conversations of each set at each window, under a title."""
    for name in given.sets.split(","):
        path = OWN_DATA / f"{name}.jsonl"
        path = path if path.exists() else present(CONVERSATIONS / f"{name}.jsonl")
        rows = [orjson.loads(line)["messages"] for line in path.read_bytes().splitlines() if line]
        tools = tools_of(rows)
        for window in map(int, filter(None, given.windows.split(","))):
            talk = recast_to(given.form, joined(rows, LONGER * window))
            yield (
                f"{name} joined to {LONGER} windows of {window}",
                [replace(long(talk, window, given.requests), tools=tools)],
            )
        for share in [] if given.windows else map(float, given.share.split(",")):
            some = [recast_to(given.form, talk) for talk in (rows if len(rows) <= SMALL else rows[:: given.every])]
            talks = [Talk(talk, share_of(talk, share), tuple(points(talk)), tools) for talk in some]
            yield f"{name}, window {share:.0%} of each", talks


def recast_to(form: str, messages: Messages) -> Messages:
    """The conversation as the gateway sees it in a wire format."""
    if form == "chat":
        return messages
    request = FORMS[form].parse(orjson.dumps(recast({"messages": list(messages)}, FORMS[form].name)))
    assert request is not None
    return [*request.messages]


def joined(talks: Sequence[Messages], tokens: int) -> list[dict[str, Any]]:
    """Conversations one behind the other under the first one's system messages, up to so many tokens or to their end."""
    messages = [message for message in talks[0] if message["role"] in PINNED]
    total = sum(map(cost, messages))
    for message in (message for talk in talks for message in talk if message["role"] not in PINNED):
        total += cost(message)
        if total > tokens:
            break
        messages.append(message)
    return messages


def long(messages: Messages, window: int, requests: int) -> Talk:
    """A joined conversation, from the request on that nearly fills the window."""
    total, nearly = 0, len(messages)
    for number, message in enumerate(messages):
        total += cost(message)
        if total >= NEARLY * window:
            nearly = number
            break
    return Talk(messages, window, tuple(end for end in points(messages) if end >= nearly)[:requests])


def tools_of(talks: Sequence[Messages]) -> str:
    """The definitions of the tools that a set calls, made from their calls, for the files hold none."""
    found: dict[str, dict[str, Any]] = {}
    for message in (message for talk in talks for message in talk):
        for call in message.get("tool_calls") or ():
            properties = found.setdefault(call["function"]["name"], {})
            arguments = orjson.loads(call["function"]["arguments"])
            properties.update({name: {"type": KINDS.get(type(value), "object")} for name, value in arguments.items()})
    functions = [
        {"name": name, "parameters": {"type": "object", "properties": properties, "required": sorted(properties)}}
        for name, properties in sorted(found.items())
    ]
    return orjson.dumps([{"type": "function", "function": one} for one in functions]).decode() if functions else ""


def share_of(messages: Messages, share: float) -> int:
    """A window for the pinned messages and a share of the others."""
    fixed = sum(cost(m) for m in messages if m["role"] in PINNED)
    return fixed + int(share * (sum(map(cost, messages)) - fixed))


def show_prices(title: str, talks: Sequence[Talk], ways: Sequence[str], rules: Sequence[CacheRule]) -> None:
    """Print what each way costs by each rule."""
    found = {(way, rule.name): Sums() for way in ways for rule in rules}
    for talk in talks:
        for way in ways:
            sent = talk.sent(way)
            for rule in rules:
                found[way, rule.name].add(talk, sent, billed(sent, rule, talk.tools), rule)
    shown = Table(title=f"{title}: {len(talks)} conversations, {found[ways[0], rules[0].name].requests} requests")
    for column in (
        "way",
        "cache",
        "read",
        "of ideal",
        "anew",
        "price",
        "beside no limit",
        "over",
        "turnfold beside it",
    ):
        shown.add_column(column, justify="left" if column in ("way", "cache") else "right")
    for rule in rules:
        base = found["no limit", rule.name].bill.cost(rule) if "no limit" in ways else 0.0
        ours = found.get(("turnfold", rule.name))
        for way in ways:
            sums = found[way, rule.name]
            beside = ours.beside(sums) if ours else 0.0
            price, anew = sums.bill.cost(rule), sums.bill.prompt - sums.bill.read
            shown.add_row(
                way, rule.name, f"{sums.bill.read / sums.bill.prompt:.1%}", f"{sums.read_between / max(sums.ideal_between, 1):.1%}",
                f"{anew / sums.requests:.0f}", f"{price / len(talks):.0f}", f"{price / base:.2f}" if base else "-", str(sums.over),
                f"{beside:.2f}" if beside else "-",
            )  # fmt: skip
        shown.add_section()
    Console(width=130).print(shown)


def show_causes(title: str, talks: Sequence[Talk], ways: Sequence[str]) -> None:
    """Print what each way processes anew, in tokens a request."""
    shown = Table(title=f"{title}: tokens anew a request, by cause")
    for column in ("way", *CAUSES, "all"):
        shown.add_column(column, justify="left" if column == "way" else "right")
    for way in ways:
        found: Counter[str] = Counter()
        for talk in talks:
            found += causes_of(talk.messages, talk.ends, talk.sent(way), count_of)
        each = {cause: found[cause] / max(sum(len(talk.ends) for talk in talks), 1) for cause in CAUSES}
        shown.add_row(way, *(f"{tokens:.0f}" for tokens in each.values()), f"{sum(each.values()):.0f}")
    Console(width=130).print(shown)


def count_of(text: str) -> int:
    """The tokens of a text."""
    return len(encode(text))


if __name__ == "__main__":
    main()
