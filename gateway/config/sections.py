"""The sections of the configuration file: the keys of each with their readers, and where each default is."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import FieldInfo, fields

from gateway.config import readers as read
from gateway.config.readers import Key
from gateway.config.schema import SETTINGS, Setting
from gateway.config.values import (
    Admin,
    ClientKey,
    Defaults,
    Fold,
    Log,
    Model,
    Observe,
    Server,
    StoreSettings,
    SummarySettings,
    Upstream,
)
from gateway.context.cut.policy import Policy

ANY: Final = "*"
"""In a path, a name that the operator chooses."""

OWNERS: Final[Mapping[str, tuple[type[msgspec.Struct], ...]]] = {
    "server": (Server,),
    "server.tls": (Server,),
    "admin": (Admin,),
    "store": (StoreSettings,),
    "log": (Log,),
    "observe": (Observe,),
    "upstreams.*": (Upstream,),
    "models.*": (Model,),
    "keys.*": (ClientKey,),
    "defaults": (Defaults,),
    "fold": (Fold, Policy),
    "fold.recall": (Policy,),
    "fold.cache": (Policy,),
    "fold.summary": (SummarySettings,),
}
"""The class or classes of the values of each section."""


def owner_of(setting: Setting) -> type[msgspec.Struct] | None:
    """Return the class that holds a setting; None when reading converts the setting."""
    owners = OWNERS.get(setting.section, ())
    return next((owner for owner in owners if setting.name in owner.__struct_fields__), None)


def _field(setting: Setting) -> FieldInfo | None:
    owner = owner_of(setting)
    return next(field for field in fields(owner) if field.name == setting.name) if owner else None


def is_required(setting: Setting) -> bool:
    """Return whether the file must contain it."""
    field = _field(setting)
    return field is not None and field.required


def default_of(setting: Setting) -> Any:
    """Return the default; None when there is none."""
    field = _field(setting)
    if field is None or field.required:
        return None
    value = field.default_factory() if callable(field.default_factory) else field.default
    return None if value == "" else value


def under(section: str) -> tuple[Setting, ...]:
    """Return the settings directly in a section."""
    return tuple(setting for setting in SETTINGS if setting.section == section)


def table(section: str) -> dict[str, Key]:
    """Return the keys of a section with their readers, including sub-sections."""
    keys: dict[str, Key] = {}
    start = f"{section}." if section else ""
    for path in (setting.path for setting in SETTINGS if setting.path.startswith(start)):
        key, _, rest = path.removeprefix(start).partition(".")
        if key not in keys:
            keys[key] = _key(start + key, rest)
    if section == "models.*":
        fold = table("fold")
        keys |= {"fold": Key(read.section(fold)), **fold}
    return keys


def _key(path: str, rest: str) -> Key:
    if not rest:
        setting = next(setting for setting in SETTINGS if setting.path == path)
        return Key(setting.kind.read, setting.attribute, setting.secret)
    if rest.startswith(ANY):
        return Key(read.mapping(read.section(table(f"{path}.{ANY}")), null={}))
    return Key(read.section(table(path)))


FOLD_KEYS: Final = frozenset(table("fold"))
"""Keys that are valid under ``fold:`` and under one model."""
FILE: Final = table("")
