"""Settings for commands that use a part of the configuration: the store, the upstreams, or neither."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from gateway.command.check import machine
from gateway.config import Settings, SettingsError, load


def with_store(config: Path) -> Settings:
    """Read a configuration whose store will be opened. Raises SettingsError, also if the store's package or key is missing."""
    settings = load(config, os.environ)
    _check(config, [machine.store_problem(settings)])
    return settings


def with_upstreams(config: Path) -> Settings:
    """Read a configuration whose store will be opened and whose upstreams will be called, without traces. Raises SettingsError,
    also if this machine lacks something for that."""
    settings = with_store(config)
    _check(config, machine.upstream_problems(settings))
    return _untraced(settings)


def alone(config: Path) -> Settings:
    """Read a configuration for a command that calls nobody: it needs no certificates, and leaves no traces. Raises SettingsError."""
    settings = load(config, os.environ)
    upstreams = {
        name: replace(upstream, ca_file="", client_cert="", client_key="")
        for name, upstream in settings.upstreams.items()
    }
    return _untraced(replace(settings, upstreams=upstreams))


def _check(config: Path, problems: Iterable[str]) -> None:
    if found := [f"{config}: {problem}" for problem in problems if problem]:
        raise SettingsError(found)


def _untraced(settings: Settings) -> Settings:
    return replace(settings, observe=replace(settings.observe, traces=""))
