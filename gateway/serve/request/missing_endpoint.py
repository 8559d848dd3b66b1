"""An upstream that lacks the requested API: how its answer is recognised, and the message for the client."""

from typing import Final

from gateway.wire.format import Format

MISSING_STATUSES: Final = frozenset({404, 405, 501})
"""Statuses of a missing endpoint."""
_SEARCHED_BYTES: Final = 2**14
"""Bytes of an error that are searched for the model's name."""


def says_endpoint_missing(format: Format, status: int, body: bytes) -> bool:
    """Return whether an answer says that the endpoint is missing, not that the model is unknown."""
    return format.name != "chat" and status in MISSING_STATUSES and b"model" not in body[:_SEARCHED_BYTES].lower()


def missing_endpoint_message(format: Format, upstream: str) -> str:
    """Return the message for the client, which also says what to configure."""
    return (
        f"The upstream {upstream!r} has no {format.path}, so this model cannot be reached in this format. Send the request in a format that "
        f"the upstream has, or give the model another upstream: models.NAME.upstream in the configuration, with a server that has {format.path}."
    )
