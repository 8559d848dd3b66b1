"""Streams of upstreams: by which content type they are told, and how they are read."""

from functools import lru_cache
from typing import Final

from gateway.wire.format import Format
from providers import ndjson
from providers.ndjson import Lines
from providers.sse import Events

EVENTS: Final = "text/event-stream"
TYPES_KEPT: Final = 256
"""Number of values of Content-Type for which it is cached whether they are a stream's. Chosen: upstreams send a handful."""


def is_stream(format: Format, content_type: str) -> bool:
    """Return whether an answer of this type is a stream of a format."""
    return is_lines(content_type) if format.in_lines else is_events(content_type)


@lru_cache(maxsize=TYPES_KEPT)
def is_events(content_type: str) -> bool:
    """Return whether an answer of this type is a stream of events."""
    return content_type.lower().startswith(EVENTS)


@lru_cache(maxsize=TYPES_KEPT)
def is_lines(content_type: str) -> bool:
    """Return whether an answer of this type is a stream of JSON values, one in a line, as Ollama's are."""
    return content_type.lower().startswith(ndjson.MEDIA_TYPE)


def reader_for(format: Format) -> Events | Lines:
    """Return a reader of a format's streams."""
    return Lines() if format.in_lines else Events()
