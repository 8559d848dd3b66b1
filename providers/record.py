"""A provider as a frozen record: how to build its URLs, how to authorise, how to read its answers."""

import re
from collections.abc import Callable, Mapping

import msgspec


class Overflow(msgspec.Struct, frozen=True):
    """The upstream refused this request as too long; a shorter history would make it acceptable.

    All numbers are tokens, and None when the answer does not state them: nothing is guessed. ``limit`` is the context
    window (or the largest prompt) that the upstream states. ``prompt`` is the upstream's count of the prompt alone.
    ``completion`` is the number of requested output tokens. ``total`` is their sum when only the sum is stated.
    ``exact`` is False when ``prompt`` or ``total`` is only a bound ("at least N", or a server that stops counting at
    limit + 1). A bound must not size a cut (case 125).
    """

    limit: int | None = None
    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    exact: bool = True
    excess: int | None = None
    """Tokens above the limit, when the upstream states the difference instead of a size."""
    sign: str = ""
    """The name of the sign that matched, for logs and tests."""
    implied: int | None = None
    """The window when the answer names it without its size: a price tier that begins there."""


class OutputTooLarge(msgspec.Struct, frozen=True):
    """The upstream accepts the prompt but not the requested output: lower ``max_tokens``, cut nothing.

    ``limit`` is the largest output (or window) stated.
    Only refusals where lowering is certain to help are read this way ("max_tokens=4096 cannot be greater than
    max_model_len=2048"). A plain output cap ("max_tokens valid range [1, 8192]") is the client's error and passes
    through.

    ``limit`` 0 ("max_tokens must be at least 1, got 0") means that the server computed the output itself and found no
    room: the prompt fills the window and must shrink, unless the client requested 0 (case 124).
    """

    limit: int | None = None
    sign: str = ""


Refusal = Overflow | OutputTooLarge


class Usage(msgspec.Struct, frozen=True):
    """Token counts that the upstream billed."""

    prompt: int
    completion: int | None = None
    cached: int | None = None
    """The part of the prompt that was read from a cache."""
    written: int | None = None
    """The part that was written to one, where that is billed."""


class Endpoint(msgspec.Struct, frozen=True):
    """The address of one configured upstream. ``key`` is empty when the client's own credentials are forwarded."""

    base_url: str
    key: str = ""
    options: Mapping[str, str] = {}
    """Settings that some providers need besides a URL: ``api_version``, ``deployment``, ``region``..."""


Locate = Callable[[Endpoint, str, str, str], str]
"""(endpoint, path below /v1 with leading slash, query string without "?", model) -> the URL to call."""

Authorize = Callable[[str], dict[str, str]]
"""API key -> the headers that carry it. Called only when the endpoint has a key."""

ReadRefusal = Callable[[int, bytes], Refusal | None]
"""(status, body or data of one stream event) -> the refusal about size, or None."""


class Provider(msgspec.Struct, frozen=True):
    """How to speak to one kind of upstream. A known dialect is a row that replaces only differences: ``replace(OPENAI,
    ...)``."""

    name: str
    locate: Locate
    authorize: Authorize
    read_refusal: ReadRefusal
    read_windows: Callable[[bytes], dict[str, int]]
    """Body of the model list -> context window by model id; {} when the list states none."""
    read_usage: Callable[[bytes], Usage | None]
    """JSON body or data of one stream event -> the billed token counts, or None."""
    credential_headers: tuple[str, ...] = ("authorization", "x-api-key", "api-key")
    """Client headers that carry credentials: replaced when the endpoint has a key, hashed to separate tenants."""
    native: re.Pattern[str] | None = None
    """Matches the server's own endpoints that are passed through, as ``METHOD /path`` below its root; None for none. Not the ones that
    change the server or show what others do there."""
    versioned: bool = False
    """Whether the server reads ``api-version`` in the query: others may refuse it."""
    authorize_messages: Authorize | None = None
    """How the Messages API carries the key, if different. Its requests have the header ``anthropic-version``."""
