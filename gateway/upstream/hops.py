"""The hop header: each gateway adds its name, so that a request that returns is recognised.

It is not an `x-turnfold-` header, because a gateway does not forward those.
"""

from typing import Final

from multidict import istr

HOPS: Final = istr("turnfold-hop")
MOST_HOPS: Final = 8
"""Gateways in a row. Two or three make sense; a longer chain is a loop through several processes."""


def extended(given: str, own: str) -> str:
    """Return the value of the header with this gateway's name added."""
    return f"{given}, {own}" if given else own


def is_loop(given: str, own: str) -> bool:
    """Return whether the request has been here before, or has passed too many gateways."""
    names = [name.strip() for name in given.split(",")]
    return own in names or len(names) >= MOST_HOPS
