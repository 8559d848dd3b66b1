"""The process of `turnfold extproc`: the configuration file of the gateway, for Envoy's external processor."""

import asyncio
import os
from pathlib import Path

import structlog
from msgspec.structs import replace

from gateway.command.check import machine
from gateway.command.process import fail, prepare, safe, watch
from gateway.config import Settings, SettingsError, load
from gateway.config.reload import as_running
from gateway.observe.log import configure

log = structlog.get_logger(__name__)

MISSING = "`turnfold extproc` needs the packages of the extra: pip install 'turnfold[envoy]'"
"""The one line that a user without the extra reads."""


def run(config: Path, listen: str, admin_port: int | None, notice_s: float) -> int:
    """Serve Envoy until stopped; return the exit status. Each mistake in the configuration is one line."""
    prepare()
    try:
        import gateway.extproc.server as extproc  # noqa: PLC0415  # optional: imported when it is used
    except ImportError:
        return fail((MISSING,))

    try:
        loaded = load(config, os.environ)
        settings = _overridden(loaded, admin_port)
    except SettingsError as error:
        return fail(error.problems)
    if problems := machine.problems(settings):
        return fail(f"{config}: {problem}" for problem in problems)
    configure(form=settings.log.format, level=settings.log.level)
    for defect in machine.warnings(settings):
        log.warning(defect.event, reason=defect.reason)

    async def ready(running: extproc.RunningProcessor) -> None:
        def adopt(changed: Settings) -> None:
            running.gateway.adopt(safe(as_running(_overridden(changed, admin_port), running.gateway.settings)))

        watch(config, loaded, running.gateway, adopt)

    try:
        asyncio.run(extproc.serve(settings, listen, notice_s, ready))
    except OSError as error:
        return fail((str(error),))
    return 0


def _overridden(settings: Settings, admin_port: int | None) -> Settings:
    return settings if admin_port is None else replace(settings, admin=replace(settings.admin, port=admin_port))
