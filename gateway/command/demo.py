"""`turnfold demo`: a conversation outgrows its model's window, without and with a gateway. Needs no key."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import orjson
from aiohttp import ClientSession
from msgspec.structs import replace
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from gateway.command.recast import recast
from gateway.config import Admin, Server, Settings, StoreSettings
from gateway.observe import log
from gateway.serve import app
from gateway.standin import StandIn
from gateway.standin.weight import prompt_tokens
from gateway.wire.format import Format
from gateway.wire.formats import FORMATS
from gateway.wire.message import call_arguments, call_name, text_of, tool_calls

MODEL: Final = "gpt-4o"
WINDOW: Final = 4000
"""Tokens. Small, so that a short conversation outgrows it."""
ANSWER: Final = 300
"""Tokens reserved for each answer. Chosen: small, like `WINDOW`."""
PAUSE_S: Final = 0.12
"""Pause between requests, for the viewer."""

DIGEST_LINES: Final = 12
"""Lines of the digest that are shown where the screen is high enough."""
NARROW: Final = 110
"""Columns of a screen below which the table leaves out what is not needed."""
CLOSING_ROWS: Final = 13
"""Rows of a screen that the frame and the closing words take below the last request."""
FEWEST_ROWS: Final = 9
"""Rows of the last request that are shown on any screen."""
GAP: Final = "…"
"""Marks that something is left out."""

FACTS: Final = (
    ("never restart payments-db", "a rule of the user's, from the first turn"),
    ("change calendar first", "the other one"),
    ("CHG-7731", "the change that caused it, from a tool result"),
    ("O-558131", "an order of a tool result"),
)
"""The facts that the last question needs; the request that reaches the model must still contain them."""


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One request of the conversation, sent twice: directly to the model, and through the gateway."""

    asked: str
    tokens: int
    straight: int
    """The status of the answer without a gateway."""
    through: int
    headers: Mapping[str, str]
    messages: Sequence[Mapping[str, Any]]
    """The messages that the model received through the gateway."""
    arrived: int
    """Their tokens, as the model counts them."""
    untouched: bool


def run(format: str = "chat") -> int:
    """Show the demo on standard output; return the exit status of the process."""
    log.configure(level="error")
    console = Console()
    with suppress(KeyboardInterrupt):
        sent = asyncio.run(play(console, PAUSE_S, format))
        # Waiting for the key is outside the event loop, which would take the first Ctrl-C for itself.
        if console.is_terminal and sys.stdin.isatty():
            console.input("[dim]Enter shows the last request.[/]")
        else:
            console.print()
        _finish(console, sent)
    return 0


async def demo(console: Console, pause_s: float = PAUSE_S, format: str = "chat") -> None:
    """Play the packaged conversation in a wire format and print the outcome of each request, without waiting for a key."""
    sent = await play(console, pause_s, format)
    console.print()
    _finish(console, sent)


def _finish(console: Console, sent: Sequence[DemoRequest]) -> None:
    """Show the last request as it arrived, and the result."""
    console.print(_last(sent[-1], console.width, console.height))
    console.print(_closing(sent))


async def play(console: Console, pause_s: float, format: str) -> list[DemoRequest]:
    """Play the packaged conversation and show a table of its requests."""
    spoken = next(each for each in FORMATS.values() if each.name == format)
    conversation = orjson.loads(resources.files("gateway").joinpath("data/demo.json").read_bytes())
    console.print(_opening(conversation))
    sent: list[DemoRequest] = []
    async with StandIn(window=WINDOW) as model:
        running = await app.start(_settings(model.base_url))
        try:
            async with ClientSession() as client:
                with Live(
                    _table(sent, console.width), console=console, auto_refresh=False, vertical_overflow="visible"
                ) as screen:
                    for body in requests(conversation):
                        sent.append(await _send(client, model, running.url, body, spoken))
                        screen.update(_table(sent, console.width), refresh=True)
                        await asyncio.sleep(pause_s)
        finally:
            await running.close()
    return sent


def requests(conversation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each request of the client: after every user message and every tool result."""
    messages = conversation["messages"]
    for end, message in enumerate(messages, 1):
        if message["role"] in ("user", "tool"):
            tools = conversation["tools"]
            yield {"model": MODEL, "messages": messages[:end], "tools": tools, "max_tokens": ANSWER}


def _settings(base_url: str) -> Settings:
    simple = Settings.simple(base_url, WINDOW)
    return replace(simple, server=Server(port=0), admin=Admin(port=0), store=StoreSettings("memory://"))


async def _send(
    client: ClientSession, model: StandIn, gateway_url: str, body: dict[str, Any], format: Format
) -> DemoRequest:
    statuses = []
    raw = orjson.dumps(recast(body, format.name))
    for base_url in (model.base_url, gateway_url):
        async with client.post(f"{base_url}{format.path.removeprefix('/v1')}", data=raw) as response:
            await response.read()
            statuses.append(response.status)
    seen = model.requests[-1]
    got = format.parse(seen.body)
    asked = body["messages"][-1]
    label = (
        text_of(asked) if asked["role"] == "user" else f"   ↳ {call_name(tool_calls(body['messages'][-2])[0])} answers"
    )
    messages = got.messages if got is not None else ()
    tokens, arrived, untouched = prompt_tokens(body), seen.prompt_tokens, seen.body == raw
    return DemoRequest(label, tokens, statuses[0], statuses[1], response.headers, messages, arrived, untouched)


def _opening(conversation: Mapping[str, Any]) -> str:
    turns = sum(message["role"] == "user" for message in conversation["messages"])
    return (
        f"{turns} turns with tools, and a model with a window of [bold]{WINDOW:,}[/] tokens.\n"
        "Each request goes twice: straight to the model, and through Turnfold.\n"
    )


def _table(sent: Sequence[DemoRequest], width: int) -> Table:
    narrow = width < NARROW
    asked_width = 26 if narrow else 42
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("request", no_wrap=True, min_width=asked_width)
    table.add_column("tokens", justify="right", no_wrap=True, min_width=6)
    table.add_column("straight", justify="center", no_wrap=True, min_width=8 if narrow else 12)
    table.add_column("Turnfold", justify="center", no_wrap=True, min_width=8)
    table.add_column("sent", justify="right", no_wrap=True, min_width=5)
    table.add_column("what was done", no_wrap=True)
    for each in sent:
        table.add_row(
            escape(clipped(each.asked, asked_width)),
            f"{each.tokens:,}",
            _status(each.straight, narrow=narrow),
            _status(each.through, narrow=narrow),
            f"{each.arrived:,}",
            _done(each, narrow=narrow),
        )
    return table


def clipped(text: str, width: int) -> str:
    """Return a text in at most so many characters, cut between words; a word alone that is longer is cut in it."""
    if len(text) <= width:
        return text
    indent = text[: len(text) - len(text.lstrip())]
    head = text[: width - 1]
    whole = head if text[width - 1].isspace() else head.rpartition(" ")[0]
    return f"{whole.rstrip() if whole.strip() else indent + head.strip()}{GAP}"


def _status(status: int, *, narrow: bool) -> str:
    return "[green]200[/]" if status == 200 else f"[red]{status}{'' if narrow else ' too long'}[/]"


def _done(sent: DemoRequest, *, narrow: bool) -> str:
    if sent.untouched:
        return "[dim]nothing, same bytes[/]" if not narrow else "[dim]same bytes[/]"
    turns = int(sent.headers.get("x-turnfold-turns-folded", 0))
    folded = f"{turns} turn{'s' * (turns != 1)} folded" if turns else "results shortened"
    return folded if narrow else f"{folded}, -{sent.tokens - sent.arrived:,} tokens"


def _last(sent: DemoRequest, width: int, height: int) -> Panel:
    """Print the last request as the model received it: its messages, and the first lines of the digest."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="cyan", no_wrap=True, min_width=9)
    table.add_column(justify="right", no_wrap=True, min_width=5)
    table.add_column(no_wrap=True)
    for role, tokens, text in _fitting(list(_rows(sent)), max(height - CLOSING_ROWS, FEWEST_ROWS)):
        table.add_row(role, tokens, escape(clipped(text, width - 23)))
    return Panel(table, title="The last request, as the model got it", title_align="left")


def _rows(sent: DemoRequest) -> Iterator[tuple[str, str, str]]:
    for message in sent.messages:
        yield message["role"], f"{prompt_tokens({'messages': [message]}):,}", _words(message)
        if message is next((each for each in sent.messages if each["role"] == "user"), None):
            for line in text_of(message).splitlines()[1:DIGEST_LINES]:
                yield "", "", line


def _fitting(rows: list[tuple[str, str, str]], most: int) -> list[tuple[str, str, str]]:
    """Return so many rows at most: the first and the last ones, and between them how many are left out."""
    if len(rows) <= most:
        return rows
    last = most // 3
    first = most - last - 1
    return [*rows[:first], ("", "", f"{GAP} {len(rows) - first - last} more rows {GAP}"), *rows[-last:]]


def _words(message: Mapping[str, Any]) -> str:
    calls = [f"{call_name(call)}({call_arguments(call)})" for call in tool_calls(message)]
    return " ".join([text_of(message), *calls]).replace("\n", " ")


def _closing(sent: Sequence[DemoRequest]) -> str:
    everything = " ".join(map(_words, sent[-1].messages))
    facts = "\n".join(
        f"  [green]✓[/] {fact} [dim]({whose})[/]" if fact in everything else f"  [red]✗[/] {fact} [dim]({whose})[/]"
        for fact, whose in FACTS
    )
    refused = sum(each.straight != 200 for each in sent)
    failed = sum(each.through != 200 for each in sent)
    return (
        f"\nThe last question needs these; they are still in the {sent[-1].arrived:,} tokens the model got:\n{facts}\n\n"
        f"[bold]{len(sent)} requests: {refused} refused without Turnfold, {failed} with it.[/]\n"
        "Put it in front of a model of your own:\n  turnfold serve --upstream https://api.openai.com/v1\n"
    )
