"""`turnfold explain`: one request's explanation on a terminal, in colour or as JSON."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.explain import explain
from gateway.settings import Settings, SettingsError, load
from gateway.shared import Gateway
from gateway.store import open_store
from providers import wire
from providers.wire import ChatRequest

SHOWN: Final = 2000


def run(path: Path, config: Path | None, window: int | None, *, as_json: bool) -> int:
    """Explain one request file; answer the exit status: 0 also for what would be folded, 2 for what cannot be read."""
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        settings = load(config, os.environ) if config else Settings.simple("http://127.0.0.1:9/v1", window)
    except OSError as error:
        click.echo(f"{path}: {error.strerror}", err=True)
        return 2
    except SettingsError as error:
        click.echo("\n".join(error.problems), err=True)
        return 2
    request = wire.parse(raw)
    if request is None:
        click.echo(f"{path}: not a chat-completions request: expected a JSON object with a list of messages", err=True)
        return 2
    told = asyncio.run(_explained(settings, request))
    if as_json:
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode())
    else:
        _show(Console(), told, request)
    return 0


async def _explained(settings: Settings, request: ChatRequest) -> dict[str, Any]:
    gateway = Gateway(settings, open_store("memory://"))
    try:
        return await explain(gateway, request)
    finally:
        await gateway.close()


def _show(console: Console, told: dict[str, Any], request: ChatRequest) -> None:
    verdict = {"none": "[green]fits, leaves as it came", "fold": "[yellow]would be folded", "error": "[red]cannot fit"}
    console.print(f"[bold]{told['model'] or '(no model)'}[/]: {verdict[told['action']]}[/]")
    console.print(
        f"  prompt {told['prompt_tokens']} tokens ({told['basis']}; messages {told['messages_tokens']}, tools and overhead "
        f"{told['tools_tokens']}) + reserve {told['reserve']} + margin {told['margin']}  vs  window {told['window']} "
        f"(from {told['window_from']})"
    )
    if told["action"] == "none":
        return
    console.print(f"  after folding: {told['prompt_tokens_after']} tokens, {told['turns_folded']} turns folded")
    table = Table("stage", "tokens saved", "detail", box=None, header_style="dim")
    for step in told["steps"]:
        table.add_row(step["stage"], str(step["saved"]), step["detail"])
    console.print(table)
    kept = {wire.canonical(message) for message in told["messages"]}
    console.print("\n[dim]- gone or shortened   + sent instead   (blank) sent as it is[/]")
    sent = {wire.canonical(message) for message in request.messages}
    for message in request.messages:
        if wire.canonical(message) not in kept:
            console.print(_line("-", message, "red"))
    for message in told["messages"]:
        new = wire.canonical(message) not in sent
        console.print(_line("+" if new else " ", message, "green" if new else ""))


def _line(mark: str, message: wire.Message, style: str) -> Text:
    calls = [f"{wire.call_name(call)}({wire.call_arguments(call)})" for call in wire.tool_calls(message)]
    text = "\n".join(filter(None, (wire.text_of(message), *calls)))
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]} ... ({len(text)} characters)"
    return Text(f"{mark} {message.get('role')}: {shown}", style=style)
