"""The inner parts of aiohttp that the client port stands on, and whether they are as expected.

`gateway.serve.incoming.connection` bounds request heads and answers invalid HTTP, which aiohttp's documented interface cannot do. With an aiohttp that it does
not know, the port is served by aiohttp's own server: requests work, those bounds are aiohttp's.
"""

from typing import Final

import aiohttp
from aiohttp import StreamReader, web

KNOWN: Final = ("3.14",)
"""The aiohttp versions whose inner parts were tested with this package. To add one, run the tests with it installed."""
PARTS: Final[tuple[tuple[type, tuple[str, ...]], ...]] = (
    (web.RequestHandler, ("_request_count", "_waiter", "_messages", "_loop", "max_field_size", "force_close")),
    (web.RequestHandler, ("_reading_paused", "resume_reading", "_handler_waiter", "_task_handler", "shutdown")),
    (web.RequestHandler, ("connection_made", "connection_lost", "data_received", "handle_error", "log_exception")),
    (web.RequestHandler, ("_upgraded", "_buffer_paused", "_pause_transport_reading", "_resume_transport_reading")),
    (web.RequestHandler, ("start", "pause_writing", "resume_writing")),
    (StreamReader, ("_size", "total_bytes", "set_read_chunk_size", "read_nowait", "readany", "set_exception")),
)
"""Classes and what is used of them."""
SERVER_ATTRIBUTES: Final = ("_kwargs", "_loop")
"""What a server keeps for the connections that it makes."""


def unknown_parts() -> str:
    """Return the inner part of aiohttp that is not as expected, or "" when all are."""
    version = ".".join(aiohttp.__version__.split(".")[:2])
    if version not in KNOWN:
        return f"aiohttp {version} is not one of the known versions ({', '.join(KNOWN)})"
    for kind, names in PARTS:
        for name in names:
            if not hasattr(kind, name):
                return f"{kind.__qualname__} has no {name}"
    kept = web.Server.__init__.__code__.co_names
    return next((f"Server keeps no {name}" for name in SERVER_ATTRIBUTES if name not in kept), "")
