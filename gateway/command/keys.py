"""`turnfold keys`: make, list and revoke client keys in the file of ``server.keys_file``."""

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click
import yaml

from gateway.config import ClientKey, Settings, SettingsError, WrongValue, checked_network, key_file, load, parse
from gateway.config.kinds import write_moment
from gateway.config.loading import with_key_file
from gateway.config.readers import MEASURE, SECONDS, seconds_of_date
from gateway.config.values import MODES

KEY_BYTES: Final = 32
"""256 random bits cannot be guessed, so one round of SHA-256 protects the key from readers of the file."""
MARK: Final = "tfk_"
"""Begins every key, so that a scanner for leaked secrets recognises it."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}\Z")
DEFAULT_FILE: Final = "turnfold.keys.yaml"
HEAD: Final = "# Client keys of Turnfold, by name. Written by `turnfold keys`; only hashes of the keys stand here.\n"


class CannotWrite(Exception):
    """The keys cannot be changed; the text says what the operator can do."""


def add(config: Path, name: str, options: Mapping[str, Any], *, only_print: bool = False) -> int:
    """Make a key and show it; store its hash in the keys file, or show it too."""
    key = MARK + secrets.token_urlsafe(KEY_BYTES)
    try:
        if not NAME.match(name):
            raise CannotWrite(f'"{name}" is no name for a key: letters, digits and _ . @ - , at most 64')
        entry = _entry(key, options)
        if only_print:
            click.echo(yaml.safe_dump({"keys": {name: entry}}, sort_keys=False), nl=False)
        else:
            _change(config, lambda keys: _added(keys, name, entry))
    except (CannotWrite, SettingsError, OSError) as error:
        return _failed(error)
    accepted = "" if only_print else "; running gateways accept it within seconds"
    click.echo(f"The key of {name}, shown only this once{accepted}:", err=True)
    click.echo(key, err=only_print)
    return 0


def remove(config: Path, name: str) -> int:
    """Revoke a key."""
    try:
        _change(config, lambda keys: _removed(keys, name))
    except (CannotWrite, SettingsError, OSError) as error:
        return _failed(error)
    click.echo(f"The key of {name} is removed; running gateways refuse it within seconds.")
    return 0


def show(config: Path) -> int:
    """Print one line per key."""
    try:
        keys = load(config, os.environ).keys
    except SettingsError as error:
        return _failed(error)
    if not keys:
        click.echo("No client keys. `turnfold keys add NAME` makes one.")
        return 0
    rows = [
        ("name", "models", "modes", "requests/min", "tokens/min", "expires", "addresses"),
        *map(_row, keys.values()),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _row(key: ClientKey) -> tuple[str, ...]:
    expires = "never" if key.expires is None else write_moment(key.expires)
    if key.expires is not None and key.expires <= time.time():
        expires += " (expired)"
    modes = "all" if key.modes == MODES else ", ".join(key.modes) or "none"
    addresses = ", ".join(map(str, key.addresses)) or "all"
    return key.name, ", ".join(key.models) or "all", modes, _limit(key.rpm), _limit(key.tpm), expires, addresses


def _limit(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _entry(key: str, options: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"hash": f"sha256:{sha256(key.encode()).hexdigest()}"}
    entry |= {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    for address in entry.get("addresses", ()):
        try:
            checked_network(address)
        except WrongValue as wrong:
            raise CannotWrite(f'--address: "{address}" is not {wrong}') from None
    if "expires" in entry:
        entry["expires"] = _moment(entry["expires"])
    return entry


def _moment(written: str) -> str:
    """Return a date unchanged, and a time from now as a date."""
    try:
        if (match := MEASURE.match(written.strip())) and match[2] in SECONDS:
            written = write_moment(time.time() + float(match[1]) * SECONDS[match[2]])
        expires = seconds_of_date(written)
    except (ValueError, OverflowError, OSError):  # not a date, or one after the year 9999
        message = f'--expires: "{written}" is not a date such as 2027-01-31, or a time from now such as 90d'
        raise CannotWrite(message) from None
    if expires <= time.time():
        raise CannotWrite(f'--expires: "{written}" is past: the key would be refused from the start')
    return written


def _added(keys: dict[str, Any], name: str, entry: dict[str, Any]) -> dict[str, Any]:
    if name in keys:
        raise CannotWrite(f"{name} has a key already; make one under another name, then `turnfold keys remove {name}`")
    return {**keys, name: entry}


def _removed(keys: dict[str, Any], name: str) -> dict[str, Any]:
    if name not in keys:
        raise CannotWrite(f"{name} has no key in this file; it has: {', '.join(keys) or 'none'}")
    return {other: entry for other, entry in keys.items() if other != name}


def _change(config: Path, changed: Any) -> None:
    """Read the keys file, change it and write it. Raises CannotWrite, or SettingsError for an invalid keys file."""
    settings = parse(_text(config), os.environ, str(config))
    if not settings.server.keys_file:
        raise CannotWrite(
            f"{config} names no file for keys: put `keys_file: {DEFAULT_FILE}` under `server:`. From then on clients need a key"
        )
    file = key_file(config, settings).resolve()
    with _locked(file.parent):
        keys = _read(settings, file)
        text = HEAD + yaml.safe_dump({"keys": changed(keys)}, sort_keys=False)
        _write(file, text, settings)


def _text(config: Path) -> str:
    try:
        return config.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        missing = f"{config}: {error.strerror}; --config FILE names another one, `turnfold init --upstream URL` writes a first one"
        raise CannotWrite(missing) from error
    except OSError as error:
        raise CannotWrite(f"{config} cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise CannotWrite(f"{config}: not UTF-8 text (byte {error.start})") from error


def _read(settings: Settings, file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    with_key_file(settings, file)
    return (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("keys") or {}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep another `turnfold keys` from writing at the same time."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(file: Path, text: str, settings: Settings) -> None:
    """Replace a file, so that a reader sees either the old or the new one.

    An existing file keeps its owner and mode; a new one is for this user alone.
    """
    new = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            with suppress(FileNotFoundError, PermissionError):
                before = file.stat()
                os.fchmod(stream.fileno(), before.st_mode & 0o777)
                os.fchown(stream.fileno(), before.st_uid, before.st_gid)
            stream.flush()
            os.fsync(stream.fileno())
        _check(settings, new, file)
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _check(settings: Settings, new: Path, file: Path) -> None:
    """Raise SettingsError for an invalid draft, with the problems of the file that it would replace."""
    try:
        with_key_file(settings, new)
    except SettingsError as error:
        raise SettingsError(problem.replace(str(new), str(file)) for problem in error.problems) from None


def _failed(error: Exception) -> int:
    problems = error.problems if isinstance(error, SettingsError) else (str(error),)
    for problem in problems:
        click.echo(problem, err=True)
    return 1
