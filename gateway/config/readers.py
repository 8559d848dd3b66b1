"""Readers: read a single configured value, or say what is wrong with it."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from gateway.config.document import NUMBER, Node, WrongValue

Reader = Callable[[Node], Any]

MEASURE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\Z")
SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES: Final = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
SHORT: Final = re.compile(r"([0-9]+)([kKmM])\Z")
THOUSANDS: Final = {"k": 10**3, "m": 10**6}
"""Endings with which people shorten numbers."""
LARGEST: Final = 10**15
"""The largest number and the largest size in bytes. JSON, SQLite and parsers in C take 64 bits, and sums need some room."""
LONGEST_S: Final = 36500 * SECONDS["d"]
"""The longest duration: a time that lies so far ahead is still a date."""
KEY_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}\Z")
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""https://www.rfc-editor.org/rfc/rfc9110#name-tokens."""
FRAMING: Final = frozenset(
    {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that say where a request ends or belong to one connection."""
BOOLEANS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Key(msgspec.Struct, frozen=True):
    """A key of the file: its reader, and its attribute's name if that differs."""

    read: Reader
    attribute: str = ""
    secret: bool = False
    """The value never appears in a message."""


Keys = Mapping[str, Key]


def text(node: Node) -> str:
    """Read a text; a bare number counts as one."""
    return node.text()


def header_value(node: Node) -> str:
    """Read a text that a header can carry; blanks and line breaks around it, as a file's last line has, are left out."""
    found = node.text().strip()
    if CONTROL.search(found):
        raise WrongValue("a text without line breaks and other control characters")
    return found


def headers(node: Node) -> dict[str, str]:
    """Read headers by their names. Those that frame a request are ours to write."""
    for key, child in node.entries().items():
        if not HEADER_NAME.fullmatch(key):
            child.note("is not the name of a header")
        elif key.lower() in FRAMING:
            child.note("is written by the gateway itself; leave it out")
    found: dict[str, str] = mapping(header_value, secret=True)(node)
    return found


def name(node: Node) -> str:
    """Read a text that is not empty."""
    if not (found := node.text().strip()):
        raise WrongValue("a name")
    return found


def boolean(node: Node) -> bool:
    """Read true or false, in any of YAML's spellings."""
    found = BOOLEANS.get(node.text().strip().lower())
    if found is None:
        raise WrongValue("true or false")
    return found


def number(what: str, least: float, most: float | None = None) -> Reader:
    """Return a reader of integers within bounds."""

    def read(node: Node) -> int:
        found = node.text()
        if not NUMBER.match(found) or "." in found:
            short = SHORT.match(found.strip()) if node.is_literal else None
            raise WrongValue(what + (f"; did you mean {int(short[1]) * THOUSANDS[short[2].lower()]}?" if short else ""))
        value = int(found.replace("_", ""))
        if value < least or (most is not None and value > most):
            raise WrongValue(what)
        if value > LARGEST:
            raise WrongValue(f"{what}, at most 10^15")
        return value

    return read


def share(node: Node) -> float:
    """Read a number from 0 to 1."""
    found = node.text()
    if not NUMBER.match(found) or not 0 <= (value := float(found.replace("_", ""))) <= 1:
        raise WrongValue("a share from 0 to 1, such as 0.25")
    return value


def dollars(node: Node) -> float:
    """Read an amount of money, in US dollars."""
    found = node.text()
    if not NUMBER.match(found) or (value := float(found.replace("_", ""))) < 0 or value > LARGEST:
        raise WrongValue("a number of US dollars for a million tokens, such as 2.5")
    return value


def duration(node: Node, *, likely: str = "s") -> float:
    """Read a duration, in seconds. A bare 0 needs no unit. ``likely`` is the unit that a number without one is probably meant in."""
    if node.text().strip() == "0":
        return 0.0
    expected = "a duration with its unit, such as 500ms, 30s, 5m or 7d"
    found = _measure(node, SECONDS, str, expected, likely=likely)
    if found > LONGEST_S:
        raise WrongValue(f"{expected}, at most 100 years")
    return found


def patience(node: Node) -> float:
    """Read how long to wait, in seconds. A wait of 0 would end everything at once."""
    if (found := duration(node)) <= 0:
        raise WrongValue("a duration above 0, such as 30s or 5m")
    return found


def size(node: Node) -> int:
    """Read a size, in bytes."""
    expected = "a size with its unit, such as 64MiB, 10MB or 512KiB"
    found = _measure(node, BYTES, str.lower, expected)
    if found > LARGEST:
        raise WrongValue(f"{expected}, at most 10^15 bytes")
    return int(found)


def _measure(
    node: Node, units: Mapping[str, float], fold: Callable[[str], str], expected: str, *, likely: str = ""
) -> float:
    """Read a number with its unit. ``likely`` is the unit that a number without one is probably meant in."""
    match = MEASURE.match(node.text().strip())
    unit = units.get(fold(match[2])) if match else None
    if match is None or unit is None:
        meant = f"{node.text().strip()}{likely}"
        is_valid = node.is_literal and NUMBER.match(node.text().strip()) and MEASURE.match(meant)
        raise WrongValue(expected + (f"; did you mean {meant}?" if is_valid else ""))
    return float(match[1]) * unit


def moment(node: Node) -> float:
    """Read a date or a date with a time, in seconds since 1970."""
    try:
        return seconds_of_date(node.text().strip())
    except ValueError:
        raise WrongValue("a date such as 2027-01-31 or 2027-01-31T12:00:00Z") from None


def seconds_of_date(written: str) -> float:
    """Return a date in ISO 8601, with or without a time, in seconds since 1970. Without a time zone it is UTC. Raises ValueError."""
    found = datetime.fromisoformat(written)
    try:
        return (found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except OverflowError:
        raise ValueError("in UTC, it is no date in the years 1 to 9999") from None


def key_hash(node: Node) -> str:
    """Read the hash of a client key."""
    found = node.text().strip().lower()
    if not KEY_HASH.match(found):
        raise WrongValue("sha256: and 64 hexadecimal digits, as `turnfold keys add NAME --print` writes them")
    return found


def choice(*words: str, shown: Sequence[str] = ()) -> Reader:
    """Return a reader of one word out of a few; ``shown`` are those that messages list, when others are only spellings.

    It reads the text, because YAML reads a bare ``off`` as false.
    """

    def read(node: Node) -> str:
        found = node.text().strip().lower()
        if found not in words:
            raise WrongValue(f"one of {', '.join(shown or words)}{nearest(found, words)}")
        return found

    return read


def choices(*words: str) -> Reader:
    """Return a reader of a list of words out of a few, in their own order; a single word counts as a list of one."""
    read_all = list_of(choice(*words))

    def read(node: Node) -> tuple[str, ...]:
        found = read_all(node)
        return tuple(word for word in words if word in found)

    return read


def list_of(read: Reader) -> Reader:
    """Return a reader of a list; a single value counts as a list of one."""

    def read_all(node: Node) -> tuple[Any, ...]:
        try:
            items = node.items()
        except WrongValue:
            return (read(node),)
        return tuple(each(items, read))

    return read_all


def mapping(read: Reader, *, secret: bool = False, null: Any = None) -> Reader:
    """Return a reader of a mapping with free keys and values of one kind.

    A key without a value counts as ``null`` or, when that is None, as absent.
    """

    def read_all(node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.entries().items():
            value = value_of(child, read, secret=secret)
            if value is not MISSING:
                found[key] = value
            elif null is not None:
                found[key] = null
        return found

    return read_all


def section(table: Keys) -> Reader:
    """Return a reader of a mapping with known keys; it returns the valid values by attribute.

    Invalid values are reported and left out, so that one pass reports every mistake.
    """

    def read(node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.entries().items():
            known = table.get(key)
            if known is None:
                child.note(f"unknown key{nearest(key, table) or '; known: ' + ', '.join(table)}")
                continue
            value = value_of(child, known.read, secret=known.secret)
            if value is not MISSING:
                found[known.attribute or key] = value
        return found

    return read


MISSING: Final[Any] = object()


def value_of(node: Node, read: Reader, *, secret: bool = False) -> Any:
    """Read a value; report a wrong one and return MISSING, as for null."""
    try:
        return MISSING if node.is_null else read(node)
    except WrongValue as wrong:
        node.note(f"{node.shown(secret=secret)} is not {wrong}")
        return MISSING


def each(nodes: tuple[Node, ...], read: Reader) -> list[Any]:
    """Read the members of a list and report the wrong ones."""
    return [value for node in nodes if (value := value_of(node, read)) is not MISSING]


def nearest(word: str, known: Any) -> str:
    """Return "; did you mean ...?" when a known name is similar, or is the only one that has the word: url is meant as base_url."""
    having = [name for name in known if word in name.split("_")]
    close = get_close_matches(word, list(known), n=1, cutoff=0.6) or (having if len(having) == 1 else [])
    return f"; did you mean {close[0]}?" if close else ""
