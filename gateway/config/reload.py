"""The watcher that reloads a changed configuration file and refuses a bad one."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec.structs import replace

from gateway.config import Settings, SettingsError, key_file, load, losses, parse, parts_to_keep
from gateway.config.schema import SETTINGS

log = structlog.get_logger(__name__)

READ_AT_START: Final = (
    "server.host", "server.port", "server.socket", "server.workers", "server.allowed_hosts", "server.cors_origins", "server.trusted_proxies",
    "server.base_path", "server.preload", "server.max_header", "server.header_timeout", "server.write_timeout", "server.keep_alive", "server.shutdown_grace",
    "server.tls.cert", "server.tls.key", "admin.host", "admin.port", "store.url", "store.timeout", "store.ttl", "store.max_size",
    "store.encryption_key", "log.format", "log.level", "observe.traces",
)  # fmt: skip
"""Settings that are read only when the process starts; a change takes effect at the next start."""

NAMES: Final = {setting.path: setting.name for setting in SETTINGS}
"""The attribute of each setting, by the setting's path in the file."""

POLLED_EVERY_S: Final = 2.0
"""Interval at which a file is looked at. A change takes effect at the second look."""

Stamp = tuple[int, int, int] | None
"""Identifies a state of a file: modification time, inode and size; None while there is no file."""


Adopt = Callable[[Settings], Awaitable[None] | None]
"""Takes changed settings over, or raises SettingsError."""


class Watcher:
    """Polls a configuration file, and passes its settings to ``on_change`` when they have changed and are valid.

    ``loaded`` is what the file said when the process started. A change since then is read, too: a start takes half a second.

    The file is polled because a notification would miss a mounted volume, and a ConfigMap is a symbolic link that is
    replaced. A change is read after two polls with the same state, so a half-written file is never read.

    The files are read in a thread: a file with 5,000 client keys takes 0.9 s (measured), in which no stream would go on.
    """

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str],
        loaded: Settings,
        on_change: Adopt,
        *,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = path
        self._environ = environ
        self._on_change = on_change
        self._on_refused = on_refused
        self._reading = asyncio.Lock()
        self._files = files_of(path, environ)
        self._seen = self._stamps()
        is_unchanged = _quietly(path, environ) == loaded
        self._read = self._seen if is_unchanged else ()
        self._digest = self._hashed() if is_unchanged else ()
        self._current = loaded

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await asyncio.sleep(POLLED_EVERY_S)
            await self.poll()

    async def poll(self) -> bool:
        """Poll once; return True when changed settings took effect."""
        before, self._seen = self._seen, self._stamps()
        if self._seen != before or self._seen == self._read:
            return False
        self._read = self._seen
        if self._seen[0] is None:
            log.warning("configuration_missing", path=str(self._path))
            return False
        return await asyncio.to_thread(self._hashed) != self._digest and await self.reload()

    async def reload(self) -> bool:
        """Read the file now, after a reading that is under way; return True when its settings took effect. A bad file is refused, and the
        last good settings stay."""
        async with self._reading:
            try:
                settings = await asyncio.to_thread(self._load)
            except SettingsError as error:
                return self._refused(error.problems)
            return await self._take(settings)

    def _load(self) -> Settings:
        """Read the files, and remember their state from before: a change meanwhile is read at the next poll. Raises SettingsError."""
        self._files = files_of(self._path, self._environ)
        self._seen = self._read = self._stamps()
        self._digest = self._hashed()
        return load(self._path, self._environ)

    async def _take(self, settings: Settings) -> bool:
        """Let valid settings take effect; return whether they did."""
        if lost := losses(parts_to_keep(self._current), settings):
            return self._refused([f"{self._path}: {loss}" for loss in lost])
        waiting = [path for path in READ_AT_START if _value(settings, path) != _value(self._current, path)]
        if waiting:
            log.warning("restart_needed", path=str(self._path), settings=waiting)
        try:
            done = self._on_change(settings)
            if inspect.isawaitable(done):
                await done
        except SettingsError as error:  # valid alone, but not together with the command line
            return self._refused(error.problems)
        except OSError as error:  # an unreadable certificate file
            return self._refused((f"{error.filename or self._path}: {error.strerror or error}",))
        self._current = settings
        log.info("configuration_reloaded", path=str(self._path))
        return True

    def _stamps(self) -> tuple[Stamp, ...]:
        return tuple(map(stamp, self._files))

    def _hashed(self) -> tuple[bytes, ...]:
        return tuple(map(digest, self._files))

    def _refused(self, problems: Sequence[str]) -> bool:
        self._on_refused()
        log.error("configuration_refused", path=str(self._path), problems=list(problems))
        return False


def files_of(path: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the configuration file and the files it names whose change is a change of the settings."""
    try:
        settings = parse(path.read_text(encoding="utf-8"), environ)
    except (OSError, UnicodeDecodeError, SettingsError):
        return (path,)
    named = [key_file(path, settings)] if settings.server.keys_file else []
    server = settings.server
    return (path, *named, *(Path(file) for file in (server.tls_cert, server.tls_key) if file))


def _value(settings: Settings, path: str) -> Any:
    """Return the value of a setting by its path in the file."""
    return getattr(getattr(settings, path.partition(".")[0]), NAMES[path])


def as_running(changed: Settings, running: Settings) -> Settings:
    """Return changed settings as they take effect: those that are read only at the start of a process stay as they are."""
    stays: dict[str, dict[str, Any]] = {}
    for path in READ_AT_START:
        stays.setdefault(path.partition(".")[0], {})[NAMES[path]] = _value(running, path)
    return replace(changed, **{name: replace(getattr(changed, name), **values) for name, values in stays.items()})


def stamp(path: Path) -> Stamp:
    """Return the file's state without reading the file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def digest(path: Path) -> bytes:
    """Hash the file's content: a touched file has the same hash."""
    try:
        return sha256(path.read_bytes()).digest()
    except OSError:
        return b""


def _quietly(path: Path, environ: Mapping[str, str]) -> Settings | None:
    try:
        return load(path, environ)
    except SettingsError:
        return None
