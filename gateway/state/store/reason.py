"""The reason of a store's failure, in one word."""

import re
from typing import Final

REDIS_CODES: Final = ("WRONGTYPE", "MISCONF", "NOPERM", "LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN")
"""Codes for which the driver has no class of its own: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors"""
_CODE: Final = re.compile(rf"(?:^|: )({'|'.join(REDIS_CODES)}) ")
"""A code begins the server's message. For a command of a pipeline, the driver writes the command before it."""


def reason_of(error: BaseException) -> str:
    """Return the kind of failure, never its message: a driver may quote its input."""
    name = str(getattr(error, "sqlite_errorname", type(error).__name__))
    code = _CODE.search(str(error)) if name == "ResponseError" else None
    return code[1] if code else name
