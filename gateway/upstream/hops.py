"""The hop header: each gateway adds its name, so that a request that returns is recognised.

It is not an `x-turnfold-` header, because those end at the first gateway.
"""

from typing import Final

HOPS: Final = "turnfold-hop"
MOST_HOPS: Final = 8
"""Gateways in a row. Two or three make sense; a longer chain is a loop through several processes."""


def passed(given: str, own: str) -> str:
    """Return the header's value after this gateway."""
    return f"{given}, {own}" if given else own


def is_loop(given: str, own: str) -> bool:
    """Return whether the request has been here before, or has passed too many gateways."""
    names = [name.strip() for name in given.split(",")]
    return own in names or len(names) >= MOST_HOPS
