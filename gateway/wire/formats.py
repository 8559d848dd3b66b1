"""The wire formats that are understood, by the path on which clients send them. Any other path is passed through."""

from types import MappingProxyType
from typing import Final

from gateway.wire.chat import CHAT
from gateway.wire.format import Format

FORMATS: Final = MappingProxyType({format.path: format for format in (CHAT,)})
"""One row a format. A new format is a module beside this one and its name here."""


def format_of(path: str) -> Format | None:
    """The format of the bodies that are posted to a path, or None for a path that is only passed through."""
    return FORMATS.get(path)
