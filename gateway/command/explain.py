"""`turnfold explain`: one request's explanation on a terminal, in colour or as JSON."""

import asyncio
import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.command import usable
from gateway.config import Settings, SettingsError, WrongValue, checked_url
from gateway.context.write.explain import PINNED, UNCHANGED, Fate
from gateway.observe.printable import printable
from gateway.serve.admin.explain import ASKED, explain, fates
from gateway.serve.gateway import Gateway
from gateway.serve.request.place import source_in_words
from gateway.state.store import open_store
from gateway.wire.format import Conversation
from gateway.wire.formats import recognise
from gateway.wire.memory import Memory
from gateway.wire.message import dumps

SHOWN: Final = 400
"""Characters of a message that are shown. Chosen: about five lines on a terminal."""


def run(path: Path, config: Path | None, window: int | None, upstream: str | None = None, *, as_json: bool) -> int:
    """Explain one request file; return the exit status: 0 also for a request that would be folded, 2 for an unreadable
    one."""
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        settings = usable.alone(config) if config else Settings.simple(_url(upstream), window)
    except OSError as error:
        click.echo(f"{path}: {error.strerror}", err=True)
        return 2
    except SettingsError as error:
        click.echo("\n".join(error.problems), err=True)
        return 2
    raw = raw.removeprefix(BOM_UTF8)  # editors on Windows write it
    request = recognise(raw, Memory(settings.server.memory))
    if request is None:
        click.echo(
            f"{path}: no request for chat completions, responses, messages or Ollama's chat: expected JSON with messages or input{_flaw(raw)}",
            err=True,
        )
        return 2
    decision, lines = asyncio.run(_explained(settings, request))
    if as_json:
        click.echo(_as_json(decision))
    else:
        if decision["window_from"] != ASKED:
            route = settings.route(request.model)
            by_option = config is None and window is not None
            decision["window_from"] = "--window" if by_option else source_in_words(route, decision["window_from"])
        _show(Console(), decision, lines)
        if request.refers_elsewhere:
            click.echo(
                "  Text that only the server has (an earlier response, a stored prompt, a search) is not counted."
            )
    return 0


def _as_json(decision: dict[str, Any]) -> str:
    """Return a decision as indented JSON; in one row if a message in it is nested deeper than orjson writes."""
    try:
        return orjson.dumps(decision, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return dumps(decision).decode()


def _flaw(raw: bytes) -> str:
    """Return where a text stops being JSON, and why; empty for JSON."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return f" (line {error.lineno}, column {error.colno}: {error.msg.partition(':')[0]})"
    return ""


def _url(upstream: str | None) -> str:
    """Return the upstream's URL; without one, an address where no server listens: nothing is sent. Raises SettingsError."""
    try:
        return checked_url(upstream) if upstream else "http://127.0.0.1:9/v1"
    except WrongValue as wrong:
        raise SettingsError((f"--upstream: the value is not {wrong}",)) from None


async def _explained(settings: Settings, conversation: Conversation) -> tuple[dict[str, Any], tuple[Fate, ...]]:
    gateway = Gateway(settings, open_store("memory://"))
    try:
        decision = await explain(gateway, conversation)
        return decision, await fates(gateway, conversation) if decision["action"] == "fold" else ()
    finally:
        await gateway.close()


def _show(console: Console, decision: dict[str, Any], lines: tuple[Fate, ...]) -> None:
    verdict = {
        "none": Text("fits, leaves as it came", style="green"),
        "fold": Text("would be folded", style="yellow"),
        "error": Text("cannot fit", style="red"),
    }
    model = Text(printable(decision["model"]) or "(no model)", style="bold")
    console.print(Text.assemble(model, ": ", verdict[decision["action"]]))
    console.print(
        f"  prompt {decision['prompt_tokens']} tokens ({decision['basis']}; messages {decision['messages_tokens']}, tools and overhead "
        f"{decision['tools_tokens']}) + reserve {decision['reserve']} + margin {decision['margin']}  vs  window {decision['window']} "
        f"(from {printable(decision['window_from'])})",
        markup=False,
    )
    if decision["action"] == "none":
        return
    console.print(f"  after folding: {decision['prompt_tokens_after']} tokens, {decision['turns_folded']} turns folded")
    table = Table("stage", "tokens saved", "detail", box=None, header_style="dim")
    for step in decision["steps"]:
        table.add_row(step["stage"], str(step["saved"]), step["detail"])
    console.print(table)
    console.print("\n[green]kept[/]  [yellow]quoted or in the digest[/]  [red]dropped[/]\n")
    for fate in lines:
        style = "green" if fate.why in (PINNED, UNCHANGED) else "yellow" if fate.kept else "red"
        shown = fate.text if len(fate.text) <= SHOWN else f"{fate.text[:SHOWN]} ... ({len(fate.text)} characters)"
        rows = map(printable, f"{fate.index:>4} {fate.role}: {shown}".expandtabs().split("\n"))
        console.print(Text("\n".join(rows), style=style), Text(f"     {fate.why}", style="dim"))
