"""The process of `turnfold extproc`: the configuration file of the gateway, for Envoy's external processor."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import structlog

from gateway.command import preflight
from gateway.command.serving import SWITCH_S
from gateway.config import Settings, SettingsError, load
from gateway.config.reload import Watcher
from gateway.observe.log import configure

log = structlog.get_logger(__name__)

MISSING = "`turnfold extproc` needs the packages of the extra: pip install 'turnfold[envoy]'"
"""The one line that a user without the extra reads."""


def run(config: Path, listen: str, admin_port: int | None, notice_s: float) -> int:
    """Process until stopped; return the exit status. Each mistake in the configuration is one line."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the file is watched; a reload must never end the process
    sys.setswitchinterval(SWITCH_S)
    try:
        import gateway.extproc.server as extproc  # noqa: PLC0415  # optional: imported when it is used
    except ImportError:
        return _failed((MISSING,))

    try:
        settings = _overridden(load(config, os.environ), admin_port)
    except SettingsError as error:
        return _failed(error.problems)
    if problems := preflight.problems(settings):
        return _failed(f"{config}: {problem}" for problem in problems)
    configure(form=settings.log.format, level=settings.log.level)
    for warning in preflight.warnings(settings):
        log.warning("store_unwritable", reason=warning)

    async def ready(running: extproc.Running) -> None:
        def adopt(changed: Settings) -> None:
            running.gateway.adopt(_overridden(changed, admin_port))

        tasks = running.gateway.tasks
        watcher = Watcher(config, os.environ, adopt, on_refused=running.gateway.refused_settings)
        tasks.start(watcher.run(), "watch")
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: tasks.start(watcher.reload(), "reload"))

    try:
        asyncio.run(extproc.serve(settings, listen, notice_s, ready))
    except OSError as error:
        return _failed((str(error),))
    return 0


def _overridden(settings: Settings, admin_port: int | None) -> Settings:
    return settings if admin_port is None else replace(settings, admin=replace(settings.admin, port=admin_port))


def _failed(problems: Iterable[str]) -> int:
    for problem in problems:
        sys.stderr.write(f"turnfold: {problem}\n")
    return 1
