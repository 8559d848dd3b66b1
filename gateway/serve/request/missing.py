"""Detect an upstream without the requested API, and tell the client."""

from typing import Final

from gateway.wire.format import Format

ABSENT: Final = frozenset({404, 405, 501})
"""Statuses of a missing endpoint."""
_SHORT: Final = 2**14
"""Bytes of an error that are searched for the model's name."""


def lacks(format: Format, status: int, said: bytes) -> bool:
    """Return whether an answer says that the endpoint is missing, not that the model is unknown."""
    return format.name != "chat" and status in ABSENT and b"model" not in said[:_SHORT].lower()


def message(format: Format, upstream: str) -> str:
    """Return the message for the client, and what to configure."""
    return (
        f"The upstream {upstream!r} has no {format.path}, so this model cannot be reached in this format. Send the request in a format that "
        f"the upstream has, or give the model another upstream: models.NAME.upstream in the configuration, with a server that has {format.path}."
    )
