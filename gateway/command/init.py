"""`turnfold init`: ask a model server for its models, and write a first configuration for it."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import orjson
from msgspec.structs import replace

from gateway.command.check.upstreams import RIGHT_URL, WITHOUT_LIST, NoAnswer, fetch, in_place_of_list
from gateway.config import Settings, SettingsError, Upstream, WrongValue, checked_url, parse
from gateway.config.catalogue import load as load_catalogue
from gateway.config.generated import COMMENT_COLUMN
from gateway.config.report import many
from gateway.upstream.client import Client
from providers.model_list import ANY_MODEL, read_named_entries
from providers.registry import find
from providers.windows import RunningList, read_windows, running_list, running_windows

HOSTS: Final[Mapping[str, str]] = {
    "api.openai.com": "openai", "openai.azure.com": "azure", "api.anthropic.com": "anthropic", "openrouter.ai": "openrouter",
    "api.groq.com": "groq", "api.together.xyz": "together", "api.fireworks.ai": "fireworks", "api.cerebras.ai": "cerebras",
    "api.deepseek.com": "deepseek", "api.mistral.ai": "mistral", "api.x.ai": "xai", "generativelanguage.googleapis.com": "gemini",
}  # fmt: skip
"""The providers of public services, by the end of their host names."""
OWNERS: Final[Mapping[str, str]] = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "library": "ollama"}
"""The providers of servers of one's own, by `owned_by` in their model lists."""
PORTS: Final[Mapping[int, str]] = {11434: "ollama", 1234: "lmstudio", 4000: "litellm"}
"""The providers of servers of one's own, by the ports that these programs take by default."""
KNOWN_TO_MODEL: Final = "the model's largest; the server may load it with less: set that"
"""Said of a window from the catalogue where the server loads models on demand, with a window of its own."""
MOST_MODELS: Final = 60
"""Models that get a line, a number. Routers list hundreds, and a name needs no line to be served."""


class CannotInit(Exception):
    """No file was written; the text says why and what to do."""


def init(url: str, file: Path, provider: str, key_env: str, *, force: bool) -> int:
    """Write a first configuration; return the exit status."""
    try:
        if file.exists() and not force:
            raise CannotInit(f"{file} exists already; --force replaces it, --config FILE writes another one")
        upstream = _upstream(url, provider, key_env, os.environ)
        text, count = asyncio.run(_ask_server(upstream, key_env, guess_provider=not provider))
        parse(text, os.environ, str(file))
        _write(file, text, force=force)
    except CannotInit as error:
        return _failed((str(error),))
    except NoAnswer as error:
        return _failed((f"{url}: {error}. Is the server running, and is this its address?",))
    except SettingsError as error:
        return _failed(error.problems)
    except OSError as error:
        return _failed((f"{file} cannot be written ({error.strerror or error})",))
    click.echo(f"{file}: written, for a server with {many(count, 'model')}.")
    if not count:
        click.echo(f"Note: the server lists no models. {RIGHT_URL}. If it is right, write their windows under models.")
    click.echo(f"Next: `turnfold check {file}`, then `turnfold serve --config {file}`.")
    return 0


def _upstream(url: str, provider: str, key_env: str, environ: Mapping[str, str]) -> Upstream:
    """Describe the server as far as the command line says. Raises CannotInit."""
    try:
        base_url = checked_url(url)
    except WrongValue as wrong:
        raise CannotInit(f"--upstream: the value is not {wrong}") from None
    if urlsplit(base_url).username is not None:
        raise CannotInit(
            "--upstream: a name or a password in the URL would be written into the file; use --key-env NAME"
        )
    try:
        chosen = find(provider).name if provider else _guess_provider(base_url)
    except LookupError as error:
        raise CannotInit(f"--provider: {error.args[0]}") from None
    key = environ.get(key_env, "") if key_env else ""
    if key_env and not key:
        raise CannotInit(f"--key-env: {key_env} is not set in the environment, or is empty")
    return Upstream(_upstream_name(chosen, base_url), chosen, base_url, api_key=key)


def _guess_provider(base_url: str) -> str:
    """Return the provider that an address suggests by its host or port; ``openai`` when it suggests none."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    named = next((name for end, name in HOSTS.items() if host == end or host.endswith(f".{end}")), "")
    return named or PORTS.get(parts.port or 0, "openai")


def _upstream_name(provider: str, base_url: str) -> str:
    """Return the name of the upstream in the file: that of the public service or server program, else ``local``."""
    host = urlsplit(base_url).hostname or ""
    public = any(host == end or host.endswith(f".{end}") for end in HOSTS)
    return provider if public or provider not in ("openai", "generic") else "local"


async def _ask_server(upstream: Upstream, key_env: str, *, guess_provider: bool) -> tuple[str, int]:
    """Ask the server for its models; return the text of the file and the number of models.

    With ``guess_provider`` the list of models may name the provider. Raises CannotInit and NoAnswer.
    """
    client = Client()
    try:
        status, body = await fetch(client, upstream)
        if status in WITHOUT_LIST:
            return _file_text(upstream, key_env, [], {}), 0
        entries = _entries(upstream, key_env, status, body)
        if guess_provider and upstream.provider == "openai":
            owner = next((str(entry.get("owned_by")) for entry in entries), "")
            provider = OWNERS.get(owner, upstream.provider)
            upstream = replace(upstream, provider=provider, name=_upstream_name(provider, upstream.base_url))
        running = running_list(body)
        windows = read_windows(body) | await _running(client, upstream, body, running)
    finally:
        await client.close()
    on_demand = running is not None and running.on_demand
    models = [entry["id"] for entry in entries]
    return _file_text(upstream, key_env, models, windows, on_demand=on_demand), len(entries)


def _entries(upstream: Upstream, key_env: str, status: int, body: bytes) -> list[dict[str, Any]]:
    """Return the models in a server's answer. Raises CannotInit when it has none."""
    if status in (401, 403):
        refusal = "does not accept the key"
        advice = "asks for a key: name the variable that holds it, --key-env NAME"
        raise CannotInit(f"{upstream.base_url} {refusal if key_env else advice} (status {status})")
    entries = read_named_entries(body) if status == 200 else None
    if entries is None:
        raise CannotInit(f"{upstream.base_url} {in_place_of_list(status, body)}")
    return entries


async def _running(client: Client, upstream: Upstream, body: bytes, running: RunningList | None) -> dict[str, int]:
    """Return the windows that the server runs with: from its model list, or from the path where it states them."""
    if running is None:
        return running_windows(body)
    root = replace(upstream, provider="generic", base_url=upstream.base_url.removesuffix("/v1"))
    status, stated = await fetch(client, root, running.path)
    return running.read(stated) if status == 200 else {}


def _file_text(
    upstream: Upstream, key_env: str, models: list[str], windows: Mapping[str, int], *, on_demand: bool = False
) -> str:
    """Return the text of the configuration file."""
    key = f'"${{{key_env}}}"' if key_env else "null"
    lines = [
        "# Written by `turnfold init`. Every other setting, with its default: docs/configuration.md.",
        "# `turnfold check FILE` says what this file means. It is read again when it changes.",
        "",
        _line("server:", "clients use http://127.0.0.1:8787/v1 as their base URL"),
        "  host: 127.0.0.1",
        "  port: 8787",
        "",
        _line("admin:", "metrics, recent requests, explanations"),
        "  host: 127.0.0.1",
        "  port: 8788",
        "",
        _line("store:", "what is learned; safe to delete at any moment"),
        "  url: sqlite:///turnfold.db",
        "",
        "upstreams:",
        f"  {upstream.name}:",
        f"    provider: {upstream.provider}",
        f"    base_url: {_quoted(upstream.base_url)}",
        _line(f"    api_key: {key}", "from the environment" if key_env else "none: the client's own key is forwarded"),
        f"default_upstream: {upstream.name}",
        "",
        _line("models:", "a model needs a line only where its window is not known"),
        *_model_lines(upstream, models, windows, KNOWN_TO_MODEL if on_demand else "known to Turnfold"),
        "",
        _line("fold:", "what to do with a request that does not fit"),
        _line("  mode: enforce", "observe: only report what would be done"),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _model_lines(upstream: Upstream, models: list[str], windows: Mapping[str, int], known_as: str) -> list[str]:
    """Return a line for each model. A window that only the server knows is set; other models are comments.

    ``known_as`` is the comment on a window from the catalogue.
    """
    catalogue = load_catalogue()
    whole = windows.get(ANY_MODEL)
    lines: list[tuple[int, str]] = []  # with its rank: set windows first, then known ones, then assumed ones
    for name in dict.fromkeys(filter(_is_plain, models)):
        stated = whole or windows.get(name.removeprefix("models/"))
        known = catalogue.find(name)
        if stated is not None and (known is None or known.context_window != stated):
            lines.append((0, _entry(name, stated, "as the server states it")))
        elif known is not None:
            lines.append((1, "# " + _entry(name, known.context_window, known_as)))
        else:
            assumed = Settings({upstream.name: upstream}, upstream.name).default_window
            comment = "unknown: assumed until the server says otherwise; set what is right"
            lines.append((2, "# " + _entry(name, assumed, comment)))
    lines.sort(key=lambda line: line[0])
    more = [f"  # ... and {len(lines) - MOST_MODELS} more"] if len(lines) > MOST_MODELS else []
    return [f"  {line}" for _, line in lines[:MOST_MODELS]] + more


def _entry(name: str, window: int, comment: str) -> str:
    return _line(f"{_quoted(name)}: {{context_window: {window}}}", comment, COMMENT_COLUMN + 16)


def _quoted(text: str) -> str:
    """Write a text in YAML, of which JSON is a part."""
    return orjson.dumps(text).decode()


def _is_plain(name: str) -> bool:
    """Return whether a name can be the name of one model in the file."""
    return name.isprintable() and not any(sign in name for sign in ("*", "?", "${"))


def _line(text: str, comment: str, column: int = COMMENT_COLUMN) -> str:
    return f"{text.ljust(column - 1)} # {comment}"


def _write(file: Path, text: str, *, force: bool) -> None:
    """Write the file; without ``force`` only if there is none at this moment."""
    with file.open("w" if force else "x", encoding="utf-8") as stream:
        stream.write(text)


def _failed(problems: tuple[Any, ...]) -> int:
    for problem in problems:
        click.echo(f"turnfold: {problem}", err=True)
    return 1
