"""The process that `turnfold serve` is: options and file become settings, settings become a running gateway."""

import asyncio
import gc
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
import uvloop

from gateway.command import workers
from gateway.config import Settings, SettingsError, load
from gateway.config.reload import Watcher
from gateway.observe.log import configure
from gateway.serve import app
from providers.overflow.wording import words

HERE: Final = Path("turnfold.yaml")


def run(config: Path | None, given: Mapping[str, Any]) -> int:
    """Serve until told to stop; answer the exit status. Mistakes in the configuration are told, not raised."""
    gc.freeze()  # neither code nor tables are ever garbage; a look through all of them would hold every stream for 50 ms
    gc.enable()
    try:
        settings = settings_from(config, given)
    except SettingsError as error:
        for problem in error.problems:
            click.echo(problem, err=True)
        return 1
    configure(form=settings.log.format, level=settings.log.level)
    if settings.server.workers > 1 and not workers.is_worker():
        return workers.run(settings.server.workers, grace_s=settings.server.shutdown_grace_s + 5)
    try:
        uvloop.run(_serve(settings, config, given))
    except OSError as error:
        click.echo(f"turnfold: {error.strerror or error}", err=True)
        return 1
    return 0


def settings_from(config: Path | None, given: Mapping[str, Any]) -> Settings:
    """Read the file, or make do with ``--upstream``; what the command line says wins. Raises SettingsError."""
    if config is not None and given.keys() & {"upstream", "window"}:
        raise SettingsError(("--upstream and --window are for serving without a file; the file names its own.",))
    if config is None and "upstream" not in given:
        if not HERE.exists():
            raise SettingsError(("Nothing says where requests go: give --config FILE or --upstream URL.",))
        config = HERE
    if config is not None:
        settings = load(config, os.environ)
    else:
        settings = Settings.simple(given["upstream"], given.get("window"))
        settings = replace(settings, store=replace(settings.store, url="memory://"))
    return _overridden(settings, given)


def _overridden(settings: Settings, given: Mapping[str, Any]) -> Settings:
    server = {name: given[name] for name in ("host", "port", "workers") if name in given}
    admin = {"port": given["admin_port"]} if "admin_port" in given else {}
    log = {"format": given["log_format"]} if "log_format" in given else {}
    return replace(
        settings,
        server=replace(settings.server, **server),
        admin=replace(settings.admin, **admin),
        log=replace(settings.log, **log),
    )


async def _serve(settings: Settings, config: Path | None, given: Mapping[str, Any]) -> None:
    async def ready(running: app.Running) -> None:
        tasks = running.gateway.tasks
        tasks.start(asyncio.to_thread(words, ""), "lexicon")  # so that the first refusal need not wait for it
        if config is None:
            return

        def adopt(changed: Settings) -> None:
            running.gateway.adopt(_overridden(changed, given))

        watcher = Watcher(config, os.environ, adopt)
        tasks.start(watcher.run(), "watch")
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, lambda: tasks.start(watcher.reload(), "reload"))

    await app.serve(settings, ready, reuse_port=workers.is_worker(), admin_offset=workers.number())
