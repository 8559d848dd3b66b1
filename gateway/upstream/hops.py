"""The hop header: each gateway that a request passes leaves its name, so that a request that comes back is recognised.

It is not one of the `x-turnfold-` headers, because those end at the first gateway.
"""

from typing import Final

HOPS: Final = "turnfold-hop"
MOST_HOPS: Final = 8
"""Gateways in a row; a chain of two or three makes sense, a longer one is a loop through several processes."""


def passed(given: str, own: str) -> str:
    """Return the header's value after this gateway."""
    return f"{given}, {own}" if given else own


def is_loop(given: str, own: str) -> bool:
    """Say whether the request has been here before, or at too many gateways."""
    names = [name.strip() for name in given.split(",")]
    return own in names or len(names) >= MOST_HOPS
