"""A kind of value: how it is read from the file, how it is written in YAML, and its JSON Schema."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec

from gateway.config import locations
from gateway.config import readers as read
from gateway.config.readers import Reader

Written = Callable[[Any], str]

VARIABLE: Final = {"type": "string", "pattern": r"\$\{"}
"""A value from the environment; JSON Schema sees only this text."""
PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./:+-]*\Z|[0-9]+(?:\.[0-9]+){3}\Z")
"""Texts that need no quotes in YAML, including network addresses."""
YAML_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null"})


class Kind(msgspec.Struct, frozen=True):
    """The kind of a setting's values."""

    read: Reader
    schema: Mapping[str, Any]
    """JSON Schema of the value."""
    write: Written
    """Writes a value in YAML."""
    measured: bool = False
    """Whether the file gives the value with a unit."""


def single(reader: Reader, schema: Mapping[str, Any], write: Written, *, measured: bool = False) -> Kind:
    """Make the kind of a single value, which may also be null or come from the environment."""
    return Kind(reader, {"anyOf": [schema, {"type": "null"}, VARIABLE]}, write, measured)


def plain(value: Any) -> str:
    """Write a text, with quotes if YAML would read it as another type."""
    text = str(value)
    return text if PLAIN.match(text) and text.lower() not in YAML_WORDS else f'"{text}"'


def whole(what: str, least: int, most: int | None = None) -> Kind:
    """Make the kind of whole numbers within bounds; ``what`` names them in messages."""
    bounds = {"minimum": least, "maximum": read.LARGEST if most is None else most}
    return single(read.number(what, least, most), {"type": "integer", **bounds}, str)


def choice(*words: str, shown: Sequence[str] = ()) -> Kind:
    """Make the kind of one of a few words. ``off`` is false to YAML, so editors may show it as a boolean."""
    values: list[Any] = [*words, *([False] if "off" in words else [])]
    return single(read.choice(*words, shown=shown), {"enum": values}, str)


def choices(*words: str) -> Kind:
    """Make the kind of a list of words out of a few."""
    each = {"enum": [*words, *([False] if "off" in words else [])]}
    schema = {"anyOf": [{"type": "array", "items": each}, each, {"type": "null"}, VARIABLE]}
    return Kind(read.choices(*words), schema, write_list)


def url(*schemes: str) -> Kind:
    """Make the kind of URLs with one of the schemes."""
    return single(locations.url(*schemes), {"type": "string", "pattern": f"^({'|'.join(schemes)})://"}, plain)


def mapping(each: Kind, *, secret: bool = False) -> Kind:
    """Make the kind of a mapping whose keys are free and whose values are alike."""
    schema = {"type": ["object", "null"], "additionalProperties": each.schema}
    return Kind(read.mapping(each.read, secret=secret), schema, lambda value: "{}" if not value else str(value))


def write_boolean(value: Any) -> str:
    """Write true or false."""
    return "true" if value else "false"


def write_share(value: Any) -> str:
    """Write a share without needless digits."""
    return f"{value:g}"


def write_duration(value: Any) -> str:
    """Write seconds with the unit in which they read best."""
    if value < 1:
        return f"{value * 1000:g}ms"
    days, hours = value / read.SECONDS["d"], value / read.SECONDS["h"]
    if days >= 1 and days.is_integer():
        return f"{days:g}d"
    return f"{hours:g}h" if hours >= 1 and hours.is_integer() else f"{value:g}s"


def write_moment(value: Any) -> str:
    """Write a moment, in UTC."""
    return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_size(value: Any) -> str:
    """Write bytes with the largest unit that divides them."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return f"{value}B"


def write_list(value: Any) -> str:
    """Write names as a list."""
    return f"[{', '.join(plain(each) if each != 'off' else each for each in value)}]"


TEXT: Final = single(read.text, {"type": ["string", "number"]}, plain)
HEADER_VALUE: Final = single(read.header_value, {"type": ["string", "number"]}, plain)
HEADERS: Final = Kind(read.headers, mapping(TEXT).schema, mapping(TEXT).write)
NAME: Final = single(read.name, {"type": "string", "minLength": 1}, plain)
LISTENING_HOST: Final = single(locations.listening_host, NAME.schema, plain)
BOOLEAN: Final = single(read.boolean, {"anyOf": [{"type": "boolean"}, {"enum": sorted(read.BOOLEANS)}]}, write_boolean)
SHARE: Final = single(read.share, {"type": "number", "minimum": 0, "maximum": 1}, write_share)
DOLLARS: Final = single(read.dollars, {"type": "number", "minimum": 0}, write_share)
DURATION: Final = single(
    read.duration,
    {"type": "string", "pattern": r"^(0|[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d))$"},
    write_duration,
    measured=True,
)
MILLISECONDS: Final = msgspec.structs.replace(DURATION, read=partial(read.duration, likely="ms"))
"""A duration that is usually some milliseconds; any unit may be written."""
DAYS: Final = msgspec.structs.replace(DURATION, read=partial(read.duration, likely="d"))
"""A duration that is usually some days; any unit may be written."""
PATIENCE: Final = single(read.patience, DURATION.schema, write_duration, measured=True)
SIZE: Final = single(
    read.size,
    {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*([Bb]|[KkMmGg]([Ii])?[Bb])$"},
    write_size,
    measured=True,
)
PORT: Final = whole("a port number from 0 to 65535 (0: any free one)", 0, 65535)
TOKENS: Final = whole("a number of tokens, such as 128000", 1)
LEAST_WINDOW: Final = 256
"""Tokens. Chosen: far below any model's window, and a short question with a short answer still fits. A smaller number is a mistake."""
WINDOW: Final = whole(f"a number of tokens, {LEAST_WINDOW} or more, such as 128000", LEAST_WINDOW)
MOMENT: Final = single(
    read.moment,
    {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?$"},
    write_moment,
)
KEY_HASH: Final = single(read.key_hash, {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}, plain)
COUNT: Final = whole("a whole number, 0 or more", 0)
POSITIVE: Final = whole("a whole number, 1 or more", 1)
NAMES: Final = Kind(
    read.list_of(read.name),
    {"anyOf": [{"type": "array", "items": {"type": ["string", "number"]}}, {"type": ["string", "null"]}]},
    write_list,
)
HOSTS: Final = Kind(read.list_of(locations.host), NAMES.schema, write_list)
ORIGINS: Final = Kind(read.list_of(locations.origin), NAMES.schema, write_list)
NETWORKS: Final = Kind(
    read.list_of(locations.network),
    {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": ["string", "null"]}]},
    write_list,
)
BASE_PATH: Final = single(locations.base_path, {"type": "string", "pattern": r"^(/[A-Za-z0-9._~-]+)*/?$"}, plain)
STORE_URL: Final = single(
    locations.store_url, {"type": "string", "pattern": "^(memory|sqlite|rediss?|valkeys?|unix)://"}, plain
)
