"""What a provider is: a frozen record of how to find it, how to authorise to it and how to read what it says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Overflow:
    """The upstream says "too long" about this request; a shorter history would make it acceptable.

    All numbers are tokens, and None where the answer does not state them: nothing is invented. ``limit`` is the context
    window (or the largest prompt) the upstream states. ``prompt`` is the upstream's count of the prompt alone, and
    ``completion`` the output tokens that were asked for, as it read them. ``total`` is their sum when only the sum is
    stated. ``exact`` is False when ``prompt`` or ``total`` is only a bound ("at least N", or a server that stops
    counting at limit + 1), so that it must not size a cut (case 125).
    """

    limit: int | None = None
    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    exact: bool = True
    excess: int | None = None
    """By how many tokens the limit was passed, where that is stated instead of a size."""
    sign: str = ""
    """The name of the sign that recognised it, for logs and tests."""
    implied: int | None = None
    """The window that is meant where the answer names it without its size: a price tier that begins there."""


@dataclass(frozen=True, slots=True)
class OutputTooLarge:
    """The upstream accepts the prompt but not the requested output: lower ``max_tokens``, cut nothing.

    ``limit`` is the largest output (or window) stated, ``window`` says that it is the whole window that was exceeded.
    Only such refusals are read this way in which lowering is certain to be right ("max_tokens=4096 cannot be greater than
    max_model_len=2048"); a plain output cap ("max_tokens valid range [1, 8192]") is the client's to mend and passes through.

    ``limit`` 0 ("max_tokens must be at least 1, got 0") means that the server computed the output itself and found no
    room: the prompt fills the window and must shrink, unless the client had asked for 0 itself (case 124).
    """

    limit: int | None = None
    sign: str = ""


Refusal = Overflow | OutputTooLarge


@dataclass(frozen=True, slots=True)
class Usage:
    """What the upstream billed, in tokens."""

    prompt: int
    completion: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one configured upstream lives. ``key`` is empty when the client's own credentials travel on."""

    base_url: str
    key: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    """What some providers need beside a URL: ``api_version``, ``deployment``, ``region``..."""


Locate = Callable[[Endpoint, str, str, str], str]
"""(endpoint, path below /v1 with leading slash, query string without "?", model) -> the URL to call."""

Authorize = Callable[[str], dict[str, str]]
"""API key -> the headers that carry it. Called only when the endpoint has a key."""

ReadRefusal = Callable[[int, bytes, Literal["http", "sse"]], Refusal | None]
"""(status, body or first event's data, where it stood) -> what it says about size, or None: not about size."""


@dataclass(frozen=True, slots=True)
class Provider:
    """How one kind of upstream is spoken to. A known dialect is a row; what differs is replaced: ``replace(OPENAI, ...)``."""

    name: str
    locate: Locate
    authorize: Authorize
    read_refusal: ReadRefusal
    read_windows: Callable[[bytes], dict[str, int]]
    """The body of the model list -> context window by model id, where the list tells; {} otherwise."""
    read_usage: Callable[[bytes], Usage | None]
    """A JSON body or the data of one stream event -> what was billed, where it says."""
    credential_headers: tuple[str, ...] = ("authorization", "x-api-key")
    """Client headers that carry credentials: replaced when the endpoint has a key, hashed for tenancy."""
    authorize_messages: Authorize | None = None
    """How the Messages API carries the key, where that differs; its requests have a header ``anthropic-version``."""
