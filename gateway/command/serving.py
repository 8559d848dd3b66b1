"""The process of `turnfold serve`: turn options and file into settings, and settings into a running gateway."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog
import uvloop
from msgspec.structs import replace

from gateway.command import workers
from gateway.command.check import machine
from gateway.command.dealing import listeners
from gateway.command.process import fail, prepare, safe, watch
from gateway.config import (
    Settings,
    SettingsError,
    WrongValue,
    checked_url,
    copy_of,
    load,
    load_copy,
    losses,
    parts_to_keep,
)
from gateway.config.reload import as_running
from gateway.observe.log import configure
from gateway.serve import app
from gateway.serve.incoming.peers import Peers

log = structlog.get_logger(__name__)

HERE: Final = Path("turnfold.yaml")
"""The file that is read when neither a file nor an upstream is named."""


def run(config: Path | None, given: Mapping[str, Any]) -> int:
    """Serve until stopped; return the exit status. Each mistake in the configuration is one line."""
    prepare()
    gc.freeze()  # code and tables are never garbage; checking all of them would stop every stream for 50 ms
    gc.enable()
    try:
        file = file_of(config, given)
        loaded, settings = _starting_settings(file, given)
    except SettingsError as error:
        return fail(error.problems)
    _keep(file, loaded, settings)
    configure(form=settings.log.format, level=settings.log.level)
    if not workers.is_worker():
        for defect in machine.warnings(settings):
            log.warning(defect.event, reason=defect.reason)
        for note in machine.endpoints(settings):
            log.warning("base_url_names_endpoint", reason=note)
        for note in machine.keyless(settings):
            log.warning("upstream_without_key", reason=note)
    if settings.server.workers > 1 and not workers.is_worker():
        if busy := tuple(machine.busy_ports(settings)):
            return fail(busy)
        return _supervise(settings, file)
    try:
        uvloop.run(_serve(settings, file, loaded, given))
    except OSError as error:
        return fail(tuple(machine.busy_ports(_own_ports(settings))) or (error.strerror or str(error),))
    finally:
        workers.clear_folder()
    return 0


def _starting_settings(file: Path | None, given: Mapping[str, Any]) -> tuple[Settings, Settings]:
    """Return the settings of the file, and the same with the command line. A worker that starts while the file is broken gets those that
    the other workers serve. Raises SettingsError."""
    try:
        loaded = settings_from(file, given)
        return loaded, _checked(loaded, file, given)
    except SettingsError:
        copy = workers.kept_copy()
        if copy is None or file is None:
            raise
        loaded = load_copy(copy, file, os.environ)
        return loaded, _checked(loaded, file, given)


def _checked(loaded: Settings, file: Path | None, given: Mapping[str, Any]) -> Settings:
    """Return settings as they take effect. Raises SettingsError if they cannot be served here."""
    settings = safe(_overridden(loaded, given))
    if problems := [*losses(workers.kept(), settings), *machine.problems(settings)]:
        raise SettingsError(f"{file}: {problem}" if file else problem for problem in problems)
    return settings


def _keep(file: Path | None, loaded: Settings, settings: Settings) -> None:
    """Keep for workers that start later what the file says, if it still says what was loaded. A full disk is logged: this worker serves the
    settings all the same."""
    try:
        workers.keep(parts_to_keep(settings))
        if file is not None and workers.is_worker():
            with suppress(SettingsError):  # the file is broken: an earlier copy stays
                copy = copy_of(file, loaded)
                if load_copy(copy, file, os.environ) == loaded:
                    workers.keep_copy(copy)
    except OSError as error:
        log.warning("configuration_not_kept", reason=error.strerror or str(error))


def _own_ports(settings: Settings) -> Settings:
    """Return settings with the ports that this process itself binds. The client port of a worker is its supervisor's."""
    if not workers.is_worker():
        return settings
    admin_port = settings.admin.port and settings.admin.port + workers.number()
    server = replace(settings.server, port=0, workers=1)
    return replace(settings, server=server, admin=replace(settings.admin, port=admin_port))


def _supervise(settings: Settings, file: Path | None) -> int:
    """Run several workers; return the exit status."""
    try:
        folder = workers.socket_folder()
    except OSError as error:
        reason = error.strerror or str(error)
        told = f"server.workers: the sockets between workers cannot be made ({reason}); set TMPDIR to a short path that can be written"
        return fail((told,))
    try:
        listening = listeners(settings.server)
    except OSError as error:
        return fail((error.strerror or str(error),))
    grace_s = settings.server.shutdown_grace_s + 5
    # A worker that starts later reads the file, which may name another host by then: it must be safe where the supervisor listens.
    # The file is named because it may be gone by then.
    named = [] if file is None else ["--config", str(file)]
    command = [sys.executable, "-m", "gateway", *sys.argv[1:], *named, "--host", settings.server.host]
    return workers.run(settings.server.workers, command, folder=folder, listeners=listening, grace_s=grace_s)


def file_of(config: Path | None, given: Mapping[str, Any]) -> Path | None:
    """Return the file to read and watch: the named one, else `turnfold.yaml` in the current folder; None with
    ``--upstream``."""
    if config is not None and given.keys() & {"upstream", "window"}:
        raise SettingsError(("--upstream and --window are for serving without a file; the file names its own.",))
    if config is not None or "upstream" in given:
        return config
    if "window" in given:
        raise SettingsError(("--window needs --upstream; in a file, it is models.NAME.context_window.",))
    if not HERE.exists():
        raise SettingsError(
            (
                "No upstream is named, and this folder has no turnfold.yaml: give --upstream URL or --config FILE, or write a file with `turnfold init --upstream URL`.",
            )
        )
    return HERE


def settings_from(file: Path | None, given: Mapping[str, Any]) -> Settings:
    """Return the settings of the file, or settings made from ``--upstream``. Raises SettingsError."""
    if file is not None:
        return load(file, os.environ)
    settings = Settings.simple(_upstream_url(given["upstream"]), given.get("window"))
    return replace(settings, store=replace(settings.store, url="memory://"))


def settings_after(running: Settings, changed: Settings, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a running gateway after its file has changed. Raises SettingsError if they would not be safe where it
    listens: a changed host takes effect at the next start."""
    return safe(as_running(_overridden(changed, given), running))


def _upstream_url(written: str) -> str:
    try:
        return checked_url(written)
    except WrongValue as wrong:
        shown = "the value (not shown)" if "@" in written else f'"{written}"'
        raise SettingsError((f"--upstream: {shown} is not {wrong}",)) from None


def _overridden(settings: Settings, given: Mapping[str, Any]) -> Settings:
    server = {name: given[name] for name in ("host", "port", "workers", "open") if name in given}
    admin = {"port": given["admin_port"]} if "admin_port" in given else {}
    log = {"format": given["log_format"]} if "log_format" in given else {}
    return replace(
        settings,
        server=replace(settings.server, **server),
        admin=replace(settings.admin, **admin),
        log=replace(settings.log, **log),
    )


async def _serve(settings: Settings, file: Path | None, loaded: Settings, given: Mapping[str, Any]) -> None:
    """Serve until stopped. ``loaded`` are the settings before the command line took precedence."""

    async def ready(running: app.Running) -> None:
        if file is None:
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGHUP, lambda: log.info("nothing_to_reload", reason="no file is configured")
            )
            return

        async def adopt(changed: Settings) -> None:
            effective = settings_after(running.gateway.settings, changed, given)
            if lacking := machine.lacking(effective):
                raise SettingsError(f"{file}: {problem}" for problem in lacking)
            await asyncio.to_thread(_keep, file, changed, effective)
            running.gateway.adopt(effective)
            _renew_certificate(running)

        watch(file, loaded, running.gateway, adopt)

    await app.serve(settings, ready, dealt=workers.channel(), admin_offset=workers.number(), peers=_peers())


def _renew_certificate(running: app.Running) -> None:
    """Read the certificate's files again. If they do not fit together, the old certificate stays, and the other settings are in use
    all the same: a removed key must not wait for a certificate."""
    if running.certificate is None:
        return
    try:
        running.certificate.renew()
    except (SettingsError, OSError) as error:
        running.gateway.note_refused_settings()
        log.error(
            "certificate_refused", problems=list(error.problems) if isinstance(error, SettingsError) else [str(error)]
        )


def _peers() -> Peers | None:
    """Return the other workers of this machine; None when there is only one process."""
    folder = workers.folder()
    return Peers(folder, workers.number()) if folder is not None else None
