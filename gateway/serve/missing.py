"""An upstream that does not have the API it was asked in: how that shows, and what the client is told."""

from typing import Final

from gateway.wire.format import Format

ABSENT: Final = frozenset({404, 405, 501})
"""Statuses of an endpoint that is not there."""
_SHORT: Final = 2**14


def lacks(format: Format, status: int, said: bytes) -> bool:
    """Whether an answer says that the endpoint is not there, and not that the model is unknown."""
    return format.name != "chat" and status in ABSENT and b"model" not in said[:_SHORT].lower()


def told(format: Format, upstream: str) -> str:
    """What the client is told, and what to configure."""
    return (
        f"The upstream {upstream!r} has no {format.path}, so this model cannot be reached in this format. Send the request in a format that "
        f"the upstream has, or give the model another upstream: models.NAME.upstream in the configuration, with a server that has {format.path}."
    )
