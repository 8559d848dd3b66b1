"""The command line: serve, extproc, init, check, schema, explain, replay, report, models, forget, keys,
demo, standin.

Each command imports its modules when it runs: `turnfold check` need not load a web server.
"""

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

import click

from gateway import __version__


class Number(click.IntRange):
    """An integer within bounds; ``what`` says in words which numbers are meant."""

    def __init__(self, what: str, least: int, most: int | None = None) -> None:
        super().__init__(least, most)
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises click.BadParameter."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            return self.fail(f"{value} is not {self._what}.", param, ctx)


PORT = Number("a port number from 0 to 65535 (0: any free one)", 0, 65535)
# The bounds are those of a window in the file, `LEAST_WINDOW` and `LARGEST`; see the docstring for why they are not imported.
WINDOW = Number("a number of tokens, 256 or more, such as 128000", 256, 10**15)
WORKERS = Number("a number of processes, 1 to 256", 1, 256)

_config = click.option(
    "--config", "config", type=click.Path(path_type=Path, dir_okay=False),
    help="The YAML configuration. Default: none; windows are those of well-known models.",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="turnfold")
def main() -> None:
    """Turnfold keeps long conversations inside the model's context window."""


@main.command()
@click.option("--config", "config", type=click.Path(path_type=Path, dir_okay=False),
              help="The YAML configuration. Default: turnfold.yaml in the current folder, unless --upstream is given.")  # fmt: skip
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=PORT, help="Port to listen on; 0: any free port.")
@click.option("--admin-port", type=PORT, help="Port of the admin interface; 0: any free port.")
@click.option("--upstream", help="Base URL of the one upstream, for example http://127.0.0.1:8000/v1.")
@click.option("--window", type=WINDOW, help="Context window of every model of --upstream, in tokens.")
@click.option("--workers", type=WORKERS, help="Processes that share the port.")
@click.option(
    "--open", is_flag=True, default=None, help="Let everyone who reaches the port use the configured keys of upstreams."
)
@click.option("--log-format", type=click.Choice(["json", "console"]), help="How events are written.")
def serve(**options: Any) -> None:
    """Serve until SIGTERM or SIGINT."""
    _ignore_hangup()
    gc.disable()  # loaded objects stay for good: checking them for garbage takes a tenth of the start
    _load_packages()
    from gateway.command.serving import run  # noqa: PLC0415  # see the file's docstring

    config = options.pop("config")
    sys.exit(run(config, {name: value for name, value in options.items() if value is not None}))


@main.command()
@click.option("--config", "config", type=click.Path(path_type=Path, dir_okay=False), default="turnfold.yaml",
              show_default=True, help="The YAML configuration.")  # fmt: skip
@click.option("--listen", default="127.0.0.1:8789", show_default=True, metavar="HOST:PORT",
              help="Address for Envoy: a host and port, or unix:/path.")  # fmt: skip
@click.option("--admin-port", type=PORT, help="Port of the admin interface; 0: any free port.")
@click.option("--notice", type=click.FloatRange(0, 600), default=5.0, show_default=True, metavar="SECONDS",
              help="Time of serving after SIGTERM, until Envoy's health checks have noticed.")  # fmt: skip
def extproc(config: Path, listen: str, *, admin_port: int | None, notice: float) -> None:
    """Serve as Envoy's external processor until SIGTERM or SIGINT. Envoy forwards requests, and this process folds them."""
    _ignore_hangup()
    _load_packages()
    from gateway.command.extproc import run  # noqa: PLC0415  # see the file's docstring

    sys.exit(run(config, listen, admin_port, notice))


def _ignore_hangup() -> None:
    """Ignore SIGHUP until the file is watched: a reload must never end the process, not even while its code is loaded."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _load_packages() -> None:
    """Load packages without what they would load and the gateway does not need: rich, which draws tracebacks that no log line has
    (5 % of a start and 3 MB), greenlet (1 MB), and the system's certificates."""
    absent: Any = None
    unneeded = [name for name in ("rich", "greenlet") if name not in sys.modules]
    sys.modules.update(dict.fromkeys(unneeded, absent))
    import structlog  # noqa: F401, PLC0415

    for name in unneeded:
        del sys.modules[name]
    from gateway.upstream.certificates import load_aiohttp  # noqa: PLC0415  # see the file's docstring

    load_aiohttp()


@main.command()
@click.option(
    "--upstream",
    prompt="Base URL of your model server",
    help="Base URL of the model server. It is asked for its models.",
)
@click.option("--provider", help="The kind of server, if its address and its answer do not show it.")
@click.option(
    "--key-env", metavar="NAME", help="The environment variable with the server's key. Only its name is written."
)
@click.option("--config", "config", type=click.Path(path_type=Path, dir_okay=False), default="turnfold.yaml",
              show_default=True, help="The file to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(upstream: str, config: Path, *, provider: str | None, key_env: str | None, force: bool) -> None:
    """Ask a model server for its models, and write a commented configuration for it."""
    from gateway.command.init import init as write_first  # noqa: PLC0415

    sys.exit(write_first(upstream, config, provider or "", key_env or "", force=force))


@main.command()
@click.argument("file", type=click.Path(path_type=Path), default="turnfold.yaml")
@click.option("--model", help="Show the values for this model, and where each comes from.")
@click.option("--live", is_flag=True, help="Ask every upstream for its models, with its configured key.")
def check(file: Path, *, model: str | None, live: bool) -> None:
    """Check a configuration FILE, turnfold.yaml by default. Show all mistakes at once, or explain the file."""
    from gateway.command.check import check as check_file  # noqa: PLC0415

    text, problems = check_file(file, os.environ)
    if not problems and model is not None:
        from gateway.command.check.one_model import of_model  # noqa: PLC0415

        text = of_model(file, os.environ, model)
    click.echo(text)
    if not problems and live:
        from gateway.command.check.upstreams import ask  # noqa: PLC0415
        from gateway.command.waiting import waiting  # noqa: PLC0415

        with waiting("Asking the upstreams for their models"):
            answers = ask(file, os.environ)
        click.echo("\n".join(each.line for each in answers))
        problems = tuple(each.line for each in answers if not each.good)
    sys.exit(1 if problems else 0)


@main.command()
def schema() -> None:
    """Print the JSON Schema of the configuration file, for editors."""
    import orjson  # noqa: PLC0415

    from gateway.config.generated import json_schema  # noqa: PLC0415

    click.echo(orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2).decode())


@main.command()
@click.argument("request", type=click.Path(path_type=Path, allow_dash=True))
@_config
@click.option("--window", type=WINDOW, help="Pretend that the model has this context window.")
@click.option("--upstream", help="Base URL of the one upstream, instead of a configuration. Nothing is sent there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a picture.")
def explain(request: Path, config: Path | None, window: int | None, upstream: str | None, *, as_json: bool) -> None:
    """Show what would be cut from REQUEST, a JSON file, and why. No upstream is called. The file - is standard input."""
    from gateway.command.explain import run  # noqa: PLC0415

    sys.exit(run(request, config, window, upstream, as_json=as_json))


@main.command()
@click.argument("logs", type=click.Path(path_type=Path, exists=True))
@_config
@click.option("--window", type=WINDOW, help="Pretend that every model has this context window.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page with charts.")
@click.option("--cores", type=WORKERS, help="Processes. Default: all cores.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def replay(
    logs: Path, config: Path | None, window: int | None, html: Path | None, cores: int | None, *, as_json: bool
) -> None:
    """Show what would have been done to past traffic. LOGS is a file with one request body on each line, or a folder.

    OpenAI batch files, records of LiteLLM and Langfuse, and files compressed with gzip can be read, too. No upstream is called.
    """
    from gateway.command.replay import run  # noqa: PLC0415  # see the file's docstring

    if config is not None and window is not None:
        raise click.UsageError(
            "--window is for a replay without a configuration. In a file, set models.NAME.context_window."
        )
    sys.exit(run(logs, config, window, html, cores, as_json=as_json))


_file = click.option(
    "--config", "config", type=click.Path(path_type=Path, dir_okay=False), default="turnfold.yaml",
    show_default=True, help="The YAML configuration.",
)  # fmt: skip


@main.command()
@_file
def models(config: Path) -> None:
    """Show the models of the file and its upstreams, with their windows and the learned facts."""
    from gateway.command.learned import show_models  # noqa: PLC0415

    sys.exit(show_models(config))


@main.command()
@_file
@click.option("--since", default="24h", show_default=True, help="How far back: 2h, 7d, a date, or seconds since 1970.")
@click.option("--key", default="", help="Only requests with this client key, by its name.")
@click.option("--model", default="", help="Only requests for this model.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def report(config: Path, *, since: str, key: str, model: str, as_json: bool) -> None:
    """Sum up a day: what folding saves or would save, and which conversations lose most."""
    from gateway.command.report import run  # noqa: PLC0415  # see the file's docstring

    sys.exit(run(config, since, key, model, as_json=as_json))


@main.command()
@_file
@click.option("--key-hash", help='Forget one caller. To get its hash: `printf %s "$KEY" | b2sum -l 128`.')
@click.option("--learned", is_flag=True, help="Forget learned facts of all upstreams. Summaries stay.")
@click.option("--model", default="", help="Forget learned facts of one model, by its name at the upstream.")
@click.option("--upstream", default="", help="With --model: the upstream, if it is not the configured one.")
@click.option("--all", "everything", is_flag=True, help="Forget everything.")
def forget(config: Path, *, key_hash: str | None, learned: bool, model: str, upstream: str, everything: bool) -> None:
    """Delete stored facts of a caller, of upstreams, or all. Running processes forget them within a second."""
    from gateway.command.learned import forget as forget_memories  # noqa: PLC0415
    from gateway.context.life.identity import is_key_hash  # noqa: PLC0415
    from gateway.state.forgetting import Order  # noqa: PLC0415

    orders = {
        Order("caller", key_hash=key_hash or ""): key_hash is not None,
        Order("learned"): learned,
        Order("model", upstream, model): bool(model),
        Order("everything"): everything,
    }
    given = [order for order, is_given in orders.items() if is_given]
    if len(given) != 1:
        raise click.UsageError("Give one of --key-hash HASH, --learned, --model NAME or --all.")
    if key_hash is not None and not is_key_hash(key_hash):
        raise click.UsageError(
            "--key-hash wants the hash of a key, 32 small hexadecimal digits, and not the key itself."
        )
    sys.exit(forget_memories(config, given[0]))


@main.group()
def keys() -> None:
    """Add, list and remove client keys. Running gateways read them again within seconds."""


_any_file = click.option(
    "--config", "config", type=click.Path(path_type=Path, dir_okay=False), default="turnfold.yaml",
    show_default=True, help="The YAML configuration. Keys are in the file that its server.keys_file names.",
)  # fmt: skip


@keys.command("add")
@click.argument("name")
@_any_file
@click.option(
    "--models",
    multiple=True,
    metavar="PATTERN",
    help="A model that the key may use, such as gpt-4o*. May be repeated. Default: all.",
)
@click.option("--mode", "modes", multiple=True, type=click.Choice(["enforce", "observe", "off"]),
              help="A mode that x-turnfold-mode may ask for. May be repeated. Default: all.")  # fmt: skip
@click.option("--rpm", type=click.IntRange(min=1), help="Requests a minute.")
@click.option("--tpm", type=click.IntRange(min=1), help="Tokens a minute.")
@click.option("--address", "addresses", multiple=True, metavar="NETWORK",
              help="A network of clients that may use the key, such as 10.0.0.0/8. May be repeated. Default: all.")  # fmt: skip
@click.option(
    "--expires", help="When the key expires: a date (2027-01-31), or a time from now (90d, 12h). Default: never."
)
@click.option(
    "--print", "only_print", is_flag=True, help="Write no file. Print the entry for the section keys: instead."
)
def keys_add(name: str, config: Path, *, only_print: bool, **options: Any) -> None:
    """Make a key for NAME, and show it once. Only its hash is kept."""
    from gateway.command.keys import add  # noqa: PLC0415

    sys.exit(add(config, name, {key: value for key, value in options.items() if value}, only_print=only_print))


@keys.command("list")
@_any_file
def keys_list(config: Path) -> None:
    """List the keys, with their limits and last days."""
    from gateway.command.keys import show  # noqa: PLC0415

    sys.exit(show(config))


@keys.command("remove")
@click.argument("name")
@_any_file
def keys_remove(name: str, config: Path) -> None:
    """Remove the key of NAME. Requests with it are then refused."""
    from gateway.command.keys import remove  # noqa: PLC0415

    sys.exit(remove(config, name))


@main.command()
@click.option(
    "--format",
    type=click.Choice(["chat", "responses", "messages"]),
    default="chat",
    show_default=True,
    help="The wire format.",
)
def demo(format: str) -> None:
    """Show a gateway, a stand-in upstream and a real conversation on one screen. You need no key."""
    from gateway.command.demo import run  # noqa: PLC0415

    sys.exit(run(format))


@main.command()
@click.option("--port", type=PORT, default=8000, show_default=True, help="Port to listen on, on this machine alone.")
@click.option("--window", type=WINDOW, default=8192, show_default=True, help="Its context window, in tokens.")
def standin(port: int, window: int) -> None:
    """Serve as a strict model server without a model, for a first try. You need no key."""
    from gateway.command.standin import run  # noqa: PLC0415

    sys.exit(run(port, window))
