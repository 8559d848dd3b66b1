"""The parts of the settings as immutable values, with their defaults."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from gateway.config.locations import Network
from gateway.config.names import matches
from gateway.context.cut.policy import Policy

Mode = Literal["enforce", "observe", "off"]
MODES: Final[tuple[Mode, ...]] = ("enforce", "observe", "off")


class _Hidden(msgspec.Struct, frozen=True):
    """Settings whose values are never shown, because some are secrets or URLs that may hold one."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class Server(msgspec.Struct, frozen=True):
    """The port that clients speak to."""

    host: str = "127.0.0.1"
    port: int = 8787
    workers: int = 1
    preload: bool = True
    """Load the vocabularies of the configured models before the first request."""
    max_body: int = 64 * 2**20
    max_folded: int = 32 * 2**20
    """Bytes of a body, without its content encoding, that is read and folded; a longer one is forwarded unchanged."""
    max_header: int = 16 * 2**10
    """The longest request line or header field, in bytes."""
    header_timeout_s: float = 20.0
    """Time in which a client must send the head of a request."""
    request_timeout_s: float = 300.0
    """Time in which a client must send the body of a chat completion."""
    min_upload_rate: int = 2**10
    """Bytes a second; a slower upload of any body is ended; 0: never."""
    write_timeout_s: float = 300.0
    """Time in which a client must take some bytes of an answer that waits for it."""
    max_requests: int = 2000
    """Concurrent requests of one process."""
    max_in_flight: int = 64 * 2**20
    """Bytes of bodies that one process holds at the same time."""
    memory: int = 10 * 2**20
    """Bytes that one process may take to remember messages and what was found out about them."""
    max_messages: int = 10_000
    max_values: int = 250_000
    """JSON values in a body; each takes some 80 bytes, however short its text."""
    max_depth: int = 128
    """Levels of nested lists and objects."""
    keep_alive_s: float = 75.0
    shutdown_grace_s: float = 30.0
    open: bool = False
    """Whether everyone who reaches the port may use the configured upstream keys."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names of the gateway, besides addresses and localhost."""
    cors_origins: tuple[str, ...] = ()
    """Origins of web pages that may use the gateway."""
    trusted_proxies: tuple[Network, ...] = ()
    """Networks of proxies whose headers about the client's address are read; `unix` is the Unix socket."""
    base_path: str = ""
    """The path below which both ports serve, without a slash at the end; empty: the root."""
    socket: str = ""
    """A Unix socket that clients may use beside the port; empty: none."""
    tls_cert: str = ""
    """The certificate chain in PEM form, the gateway's own first; empty: no TLS."""
    tls_key: str = ""
    keys_file: str = ""
    """Where `turnfold keys` writes; relative to the configuration file. Once named, a client key is compulsory."""


class ClientKey(msgspec.Struct, frozen=True):
    """A key that the operator hands to a client, and what it may be used for. Only its hash is known here."""

    name: str
    hash: str
    """``sha256:`` and the digest in hexadecimal digits."""
    models: tuple[str, ...] = ()
    """Names and patterns of models as clients name them; empty: all."""
    modes: tuple[Mode, ...] = MODES
    """The modes that requests may ask for with `x-turnfold-mode`."""
    rpm: int | None = None
    """Requests a minute."""
    tpm: int | None = None
    """Tokens a minute, as upstreams bill them."""
    expires: float | None = None
    """Seconds since 1970; from then on the key is refused."""
    addresses: tuple[Network, ...] = ()
    """Networks of clients that may use it; empty: all."""

    @property
    def id(self) -> str:
        """The name under which its use is counted. It changes with the key, so a new key of the same name starts at zero."""
        return self.hash.removeprefix("sha256:")[:32]

    def may_use(self, model: str) -> bool:
        """Return whether the key may be used for a model."""
        return not self.models or any(matches(pattern, model) for pattern in self.models)


class Admin(_Hidden, frozen=True):
    """The port that operators speak to."""

    host: str = "127.0.0.1"
    port: int = 8788
    token: str = ""


class StoreSettings(_Hidden, frozen=True):
    """Where derived values live between requests."""

    url: str = "sqlite:///turnfold.db"
    timeout_s: float = 0.05
    """How long a request waits for the store before it continues without."""
    ttl_s: float = 30 * 86400.0
    max_size: int = 256 * 2**20
    encryption_key: str = ""


class Log(msgspec.Struct, frozen=True):
    """How events are written."""

    format: Literal["auto", "json", "console"] = "auto"
    """``auto``: readable text on a terminal, else JSON."""
    level: Literal["debug", "info", "warning", "error"] = "info"


class Observe(msgspec.Struct, frozen=True):
    """How records of past requests are kept."""

    keep_s: float = 7 * 86400.0
    """How long the store keeps records; 0: not at all, only the newest are in memory."""
    max_records: int = 200_000
    max_size: int = 256 * 2**20
    """Bytes that records may take in the store."""
    text: bool = False
    """Whether records hold the text of messages."""
    traces: str = ""
    """Where traces go, by OTLP over HTTP; empty: nowhere."""


class Upstream(_Hidden, frozen=True):
    """One server for models."""

    name: str
    provider: str
    base_url: str
    """Without a slash at the end."""
    api_key: str = ""
    """Empty: the client's own credentials are forwarded."""
    connect_timeout_s: float = 10.0
    timeout_s: float = 600.0
    """How long the upstream may be silent, before and during the answer."""
    headers: Mapping[str, str] = {}
    options: Mapping[str, str] = {}
    verify: bool = True
    ca_file: str = ""
    client_cert: str = ""
    """The certificate that the upstream asks for, in PEM form."""
    client_key: str = ""
    compact: str = "upstream"
    """How a Responses conversation is compacted. ``upstream``: by the upstream or, if it cannot do that, by the gateway. ``ours``: by the gateway."""
    fallbacks: tuple[str, ...] = ()
    """Other upstreams for the same model when this one fails."""


class SummarySettings(msgspec.Struct, frozen=True):
    """Background summaries; off while ``model`` is empty."""

    model: str = ""
    upstream: str = ""
    """Empty: the upstream of the model's own route."""
    at: float = 0.7
    """Share of the room in use at which the oldest turns are summarised."""
    deadline_s: float = 60.0
    tokens_per_hour: int | None = None


class Fold(msgspec.Struct, frozen=True):
    """How requests are folded."""

    mode: Mode = "enforce"
    client_modes: tuple[Mode, ...] = MODES
    """Modes that a request may select with `x-turnfold-mode`."""
    max_retries: int = 3
    policy: Policy = Policy()
    summary: SummarySettings = SummarySettings()

    def overlay(self, given: Mapping[str, Mapping[str, Any]]) -> "Fold":
        """Return this fold with the values given for one model."""
        return replace(
            self,
            **given.get("fold", {}),
            policy=replace(self.policy, **given.get("policy", {})),
            summary=replace(self.summary, **given.get("summary", {})),
        )


class Defaults(msgspec.Struct, frozen=True):
    """Values for a model without better facts."""

    max_tokens: int = 32768
    context_window: int | None = None
    output_reserve: int | None = None
    tokenizer: str = "auto"


class Model(msgspec.Struct, frozen=True):
    """The configuration of one model name, or of all names that match a pattern."""

    upstreams: tuple[tuple[str, int], ...] = ()
    """Upstream and weight; empty: the default upstream."""
    name: str = ""
    """The upstream's name for it; empty: the client's name."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    output_reserve: int | None = None
    tokenizer: str = ""
    on_overflow: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()
    input_price: float | None = None
    """US dollars for a million prompt tokens; None: the list price."""
    cached_price: float | None = None
    """The same for tokens read from the provider's cache; None: by its published rule."""
    fold: Mapping[str, Mapping[str, Any]] = {}
    """Differences from ``fold:``, by part."""
