"""Every setting of the configuration file, once: its path, kind, default and meaning.

The reader, `config/turnfold.yaml`, the tables of `docs/configuration.md` and the JSON Schema of `turnfold schema` are
generated from this table. To add a setting, add a row here and an attribute with its default to `values.py`, use the
attribute, and run `make settings`. Defaults are only in `values.py`.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.config.kinds import (
    BASE_PATH,
    BOOLEAN,
    COUNT,
    DAYS,
    DOLLARS,
    DURATION,
    HEADER_VALUE,
    HEADERS,
    HOSTS,
    KEY_HASH,
    LISTENING_HOST,
    MILLISECONDS,
    MOMENT,
    NAME,
    NAMES,
    NETWORKS,
    ORIGINS,
    PATIENCE,
    PORT,
    POSITIVE,
    SHARE,
    SIZE,
    STORE_URL,
    TEXT,
    TOKENS,
    WINDOW,
    Kind,
    choice,
    choices,
    mapping,
    url,
    whole,
)
from gateway.config.values import MODES
from gateway.context.count import families
from providers.registry import PROVIDERS, ROWS


class Setting(msgspec.Struct, frozen=True):
    """One key of the file."""

    path: str
    """Its path in the file. ``*`` is a name that the operator chooses: ``models.*.name``."""
    kind: Kind
    help: str
    """One line, for the table and for the comment in the YAML file."""
    more: str = ""
    """Additional text for the documentation."""
    attribute: str = ""
    """The name in `values.py`, if it differs from the key."""
    default: str = ""
    """The default in words, if it is not a value."""
    example: str = ""
    """The text in `config/turnfold.yaml` instead of the default; it must mean the same."""
    secret: bool = False
    """The value never appears in a message."""

    @property
    def section(self) -> str:
        """The path without the key."""
        return self.path.rpartition(".")[0]

    @property
    def key(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def name(self) -> str:
        """The attribute that holds the value."""
        return self.attribute or self.key


TOKENIZER: Final = choice("auto", *families.names())

SETTINGS: Final = (
    Setting("server.host", LISTENING_HOST, "address that clients connect to; their base URL is http://HOST:PORT/v1", "`0.0.0.0` serves other machines, too."),
    Setting("server.port", PORT, "0: any free port"),
    Setting("server.socket", NAME, "path of a Unix socket for clients, in addition to the port"),
    Setting("server.workers", whole("a number of processes, 1 to 256", 1, 256), "processes that share the port; each uses one core", "See [workers](operations.md#workers)."),
    Setting(
        "server.open", BOOLEAN, "true: serve other machines although an upstream's key is configured; everyone who reaches the port may use it",
        "So a firewall or a proxy must keep strangers from the port. `--open` on the command line.",
    ),
    Setting(
        "server.allowed_hosts", HOSTS, "names under which clients reach the gateway, besides IP addresses, localhost and host",
        "`gate.example.com`, `*.example.com`, or `*` for any. On loopback, requests for other names get 403, on both ports. On other addresses "
        "they get 403 only if a name is listed.", default="none",
    ),
    Setting(
        "server.cors_origins", ORIGINS, "origins of web pages that may use the client port; others get 403",
        "`https://chat.example.com`; `*` is any.", default="none",
    ),
    Setting(
        "server.trusted_proxies", NETWORKS, "proxies in front whose x-forwarded-for and forwarded state the client's address",
        "Addresses and networks, `10.0.0.0/8`; `unix` trusts connections to `server.socket`. From others these headers are ignored. "
        "See [behind a proxy](operations.md#behind-a-proxy).", default="none",
    ),
    Setting(
        "server.base_path", BASE_PATH, "path below which both ports serve; with /llm, clients use http://HOST:PORT/llm/v1",
        "For a proxy in front that forwards a part of its paths unchanged. `/healthz` and `/readyz` are served at the root too.",
    ),
    Setting(
        "server.keys_file", NAME, "file of client keys that `turnfold keys` writes, in the folder of this file; if set, clients need a key",
        "Read again when it changes. With a keys file without keys, every request is refused. See [client keys](operations.md#client-keys).",
    ),
    Setting(
        "server.preload", BOOLEAN, "load the vocabularies of configured models right after the start, not at their first use",
        "0.2 s and 40 MB for each vocabulary of a model that is configured by name (Gemma 1 s, 75 MB). While one loads, all requests wait. So `/readyz` "
        "answers 503 until all are loaded. With `false`, the first request that must be counted loads its vocabulary, and all requests wait.",
    ),
    Setting(
        "server.max_body", SIZE, "largest body that is read whole, compressed or not; a larger one gets 413",
        "A chat completion is read whole. It is refused by its `content-length` before a byte of it is read. Bodies that are passed through "
        "are streamed and have no limit.",
    ),
    Setting(
        "server.max_folded", SIZE, "largest body, decompressed, that is read and folded; a larger one up to max_body is sent as it came",
        "Anthropic, Vertex AI and Bedrock accept none that is larger. Some steps of reading a body stop all other requests. At 32 MB each such step "
        "takes 10 to 25 ms, and longer for larger bodies.",
    ),
    Setting("server.max_header", SIZE, "longest request line or header field, else 431; all together may be eight times as long"),
    Setting(
        "server.header_timeout", PATIENCE, "time for the head of a request, from its first byte; then 408",
        "On a new connection the time runs from the start.", attribute="header_timeout_s",
    ),
    Setting(
        "server.request_timeout", PATIENCE, "time for a body that is read whole; then 408", attribute="request_timeout_s"
    ),
    Setting(
        "server.min_upload_rate", SIZE, "bytes a second; a body that is slower for ten seconds gets 408. 0B: no limit",
        "On every path, but only while the gateway waits for the client.",
    ),
    Setting(
        "server.write_timeout", PATIENCE, "longest time in which a client takes nothing of an answer that waits for it; then its connection is cut",
        "While a client does not read, nothing is read of the upstream's answer either, and its connection stays in use.", attribute="write_timeout_s",
    ),
    Setting("server.max_requests", POSITIVE, "requests that one process serves at the same time; more get 503 with retry-after"),
    Setting(
        "server.max_in_flight", SIZE, "bytes of bodies that one process holds at the same time; more get 503 with retry-after",
        "Unfinished uploads count from their first byte. Folding a body takes up to 18 times its size in memory ([capacity](operations.md#capacity)).",
    ),
    Setting(
        "server.memory", SIZE, "memory of one process for messages of conversations, their lines and counts; more is faster",
        "A conversation of 85,000 tokens takes some 2.5 MB. A remembered conversation is folded some eight times as fast. Others are read again. "
        "Every worker has its own memory. 0B: nothing is remembered.",
    ),
    Setting("server.max_messages", POSITIVE, "messages in one request; more get 400"),
    Setting(
        "server.max_values", POSITIVE, "JSON values in one body, counted by commas and brackets; more get 400",
        "Even a value of two characters takes some 80 bytes of memory.",
    ),
    Setting("server.max_depth", POSITIVE, "levels of lists and objects in one body, outside of calls; deeper ones get 400"),
    Setting("server.keep_alive", DURATION, "how long an idle connection stays open", attribute="keep_alive_s"),
    Setting("server.shutdown_grace", DURATION, "time for running streams to end after SIGTERM", attribute="shutdown_grace_s"),
    Setting(
        "server.tls.cert", NAME, "certificate chain in PEM form: clients then connect with https",
        "Read again when the file changes, with its key; running connections stay.", attribute="tls_cert",
    ),
    Setting("server.tls.key", NAME, "the certificate's private key in PEM form", attribute="tls_key"),

    Setting("admin.host", LISTENING_HOST, "address of the admin port; on any address except loopback a token is required"),
    Setting("admin.port", PORT, "worker n listens on port + n; each shows all workers"),
    Setting(
        "admin.token", HEADER_VALUE, "clients of the admin port send it as Authorization: Bearer TOKEN", example='"${TURNFOLD_ADMIN_TOKEN:-}"', secret=True
    ),

    Setting("store.url", STORE_URL, "memory://, sqlite:///path or redis://host:6379/0, also valkey:// (extra redis)"),
    Setting("store.timeout", MILLISECONDS, "how long a request waits for the store; then it continues without it", attribute="timeout_s"),
    Setting("store.ttl", DAYS, "how long a summary is kept", attribute="ttl_s"),
    Setting("store.max_size", SIZE, "largest size of memory and SQLite stores; the oldest values are dropped first"),
    Setting(
        "store.encryption_key", TEXT, "encrypts stored values (extra encryption)",
        "To rotate, give several keys, separated by commas: the first one encrypts, all of them decrypt.",
        secret=True,
    ),

    Setting("log.format", choice("auto", "json", "console"), "auto: console on a terminal, else json"),
    Setting("log.level", choice("debug", "info", "warning", "error"), "debug, info, warning or error"),

    Setting(
        "observe.keep", DAYS, "how long the store keeps the record of each request; 0: only the newest 1000, in memory",
        "Records hold no text, unless observe.text is on: see [records](records.md).", attribute="keep_s",
    ),
    Setting(
        "observe.traces", url("http", "https"), "where OpenTelemetry traces are sent (extra otel): http://localhost:4318/v1/traces",
        "OTLP over HTTP. Variables of OpenTelemetry such as `OTEL_EXPORTER_OTLP_HEADERS` are used, too ([traces](records.md#traces)). Read at the start.",
    ),
    Setting("observe.max_records", POSITIVE, "most records that the store keeps; the oldest are dropped first"),
    Setting("observe.max_size", SIZE, "largest size of the records in the store; the oldest are dropped first"),
    Setting(
        "observe.text", BOOLEAN, "true: keep the lines of each request, for the dashboard",
        "In memory, and in the store (encrypted with `store.encryption_key`). By default, records hold no text.",
    ),

    Setting(
        "upstreams.*.provider", choice(*PROVIDERS, shown=[row.name for row in ROWS]), "openai, azure, vllm, ollama, ... or generic",
        "A row of [providers.md](providers.md).", example="vllm",
    ),
    Setting("upstreams.*.base_url", url("http", "https"), "with /v1 if the server has it", example="http://127.0.0.1:8000/v1"),
    Setting("upstreams.*.api_key", HEADER_VALUE, "replaces the client's credentials; without one, the client's own are forwarded", secret=True),
    Setting("upstreams.*.connect_timeout", PATIENCE, "time to open a connection", attribute="connect_timeout_s"),
    Setting(
        "upstreams.*.timeout", PATIENCE, "longest silence of the upstream, before its answer and within it", "Raise it for models that think longer.",
        attribute="timeout_s",
    ),
    Setting("upstreams.*.headers", HEADERS, "headers that are sent with every request"),
    Setting("upstreams.*.options", mapping(TEXT), "for some providers: api_version, deployment", "See [providers](providers.md#addresses-and-keys)."),
    Setting("upstreams.*.verify", BOOLEAN, "false: accept any TLS certificate"),
    Setting("upstreams.*.ca_file", NAME, "certificates to trust instead of the system's"),
    Setting("upstreams.*.compact", choice("upstream", "ours"), "upstream: it is asked first to compact a Responses conversation; ours: Turnfold does it at once, with its digest"),
    Setting("upstreams.*.client_cert", NAME, "certificate for an upstream that asks its clients for one, in PEM form"),
    Setting("upstreams.*.client_key", NAME, "its private key in PEM form", default="in the file of the certificate"),
    Setting(
        "upstreams.*.fallbacks", NAMES,
        "upstreams to ask for the same model if this one cannot be reached, times out, or sends 429 or 5xx",
    ),

    Setting("default_upstream", NAME, "the upstream of all models that are not mentioned under models", default="the only upstream"),

    Setting("models.*.upstream", NAME, "the upstream of this model", default="`default_upstream`"),
    Setting(
        "models.*.upstreams", mapping(POSITIVE), "several upstreams with weights: {a: 3, b: 1}",
        "A conversation stays with one of them. An upstream that fails rests. See [several upstreams](operations.md#several-upstreams-of-one-model).",
    ),
    Setting("models.*.name", NAME, "name that the upstream gets instead of the client's: an alias", default="as the client names it"),
    Setting(
        "models.*.context_window", WINDOW, "the window, in tokens", "Set it if neither the catalogue nor the server states it, or to use less of it: `turnfold models` shows what is known.",
        default="as the catalogue or the server states",
    ),
    Setting("models.*.max_output_tokens", TOKENS, "most tokens of an answer of the model; the default reserve is not larger"),
    Setting(
        "models.*.output_reserve", COUNT, "tokens kept free for the answer if the client sets no limit",
        default="4096 or a quarter of the window",
    ),
    Setting(
        "models.*.tokenizer", TOKENIZER, "auto: by the name of the model; else the family or vocabulary that counts its tokens",
        f"One of {', '.join(families.names())}. See [counting](counting.md).", default="`defaults.tokenizer`",
    ),
    Setting("models.*.on_overflow", NAMES, "models with larger windows, asked if even the smallest form is too long"),
    Setting("models.*.fallbacks", NAMES, "models asked if the upstream fails"),
    Setting(
        "models.*.input_price", DOLLARS, "US dollars for a million prompt tokens, for the dashboard",
        "The [dashboard](dashboard.md) counts savings with it.", default="the list price, if one is known",
    ),
    Setting(
        "models.*.cached_price", DOLLARS, "the same for prompt tokens that the provider reads from its cache",
        default="by the provider's published rule",
    ),

    Setting(
        "keys.*.hash", KEY_HASH, "SHA-256 of the key, as `turnfold keys add NAME --print` writes it",
        example=f"sha256:{'0' * 64}",
    ),
    Setting("keys.*.models", NAMES, "names and patterns of the models it may use, as clients name them", default="all"),
    Setting(
        "keys.*.modes", choices(*MODES), "modes that x-turnfold-mode may ask for with this key; `fold.client_modes` limits them too"
    ),
    Setting("keys.*.rpm", POSITIVE, "requests a minute; more get 429 with retry-after", default="no limit"),
    Setting("keys.*.tpm", TOKENS, "tokens a minute as upstreams bill them; if they are used up, requests get 429 with retry-after", default="no limit"),
    Setting(
        "keys.*.addresses", NETWORKS, "addresses and networks of the clients that may use it; others get 403",
        "If a proxy is in front, list it in `server.trusted_proxies`. Then the client's address is the one that the proxy states.", default="all",
    ),
    Setting("keys.*.expires", MOMENT, "it is refused from this moment on: 2027-01-31 or 2027-01-31T12:00:00Z", default="never"),

    Setting("defaults.max_tokens", whole("a number of tokens, 64 or more, such as 32768", 64), "the window of an unknown model is assumed to be four times this"),
    Setting("defaults.context_window", WINDOW, "the window of an unknown model, instead of four times max_tokens"),
    Setting("defaults.output_reserve", COUNT, "tokens kept free for the answer, for models that set none"),
    Setting("defaults.tokenizer", TOKENIZER, "auto, or a family or vocabulary, for models that the catalogue does not know"),

    Setting(
        "fold.mode", choice(*MODES), "observe: decide and report, but forward unchanged; off: only forward",
        "A request may choose another mode with the header `x-turnfold-mode`.",
    ),
    Setting(
        "fold.client_modes", choices(*MODES), "modes that x-turnfold-mode may ask for; any other mode gets 403",
        "`[enforce, observe]` forbids `off`; `[]` forbids the header.",
    ),
    Setting("fold.low_water", SHARE, "if trimmed tool results leave at most this share of the room in use, no turns are folded"),
    Setting(
        "fold.margin", SHARE, "share of the window that is kept free because a count may be too low",
        "For an exact count, less is kept free; with 0, nothing. Raise it if upstreams refuse folded requests as too long.",
    ),
    Setting("fold.max_turns", POSITIVE, "most turns that stay word for word; null: as many as fit", default="as many as fit"),
    Setting("fold.tool_result_chars", COUNT, "most characters that an old tool result keeps if it is cut"),
    Setting(
        "fold.question", choice("cut", "refuse"), "cut: a question too large for the window is cut to the room; refuse: the client gets the refusal",
        "A question that fits is always sent whole: see [the current question](folding.md#the-current-question).",
    ),
    Setting("fold.min_output", POSITIVE, "max_tokens is not lowered below this, or below an eighth of a small window"),
    Setting("fold.max_retries", COUNT, 'calls after the first if the upstream says "too long"'),
    Setting(
        "fold.recall.share", SHARE, "share of the room for quotes that are relevant to the question; 0: none", attribute="recall_share"
    ),
    Setting(
        "fold.recall.semantic", BOOLEAN, "true: find quotes also by meaning, and not only by words; needs the extra `semantic`",
        "See [questions in other words](howto.md#questions-in-other-words). All replicas need the same setting and the same extra.",
    ),
    Setting(
        "fold.cache.marks", choice("auto", "off", "always"), "auto: cache marks in folded requests, for vendors that take them; always: in all requests; off: none",
        "Only if the client sets none itself, and vendor and model are known to take them. See [prompt caches](caching.md).",
        attribute="cache_marks",
    ),
    Setting(
        "fold.cache.key", choice("auto", "off"), "auto: prompt_cache_key in the same requests, for vendors that take it; off: none", attribute="cache_key",
    ),
    Setting("fold.summary.model", NAME, "a model that summarises old turns in the background; null: none"),
    Setting("fold.summary.upstream", NAME, "the upstream that summarises", default="the model's own"),
    Setting("fold.summary.at", SHARE, "a summary is prepared when this share of the room is in use"),
    Setting("fold.summary.deadline", PATIENCE, "time for each call", attribute="deadline_s"),
    Setting("fold.summary.tokens_per_hour", TOKENS, "most tokens that summaries may use; one caller may use three quarters of the tokens that others leave", default="no limit"),
)  # fmt: skip

SECTIONS: Final[Mapping[str, str]] = {
    "server": "the port that clients speak to",
    "admin": "metrics, recent exchanges and explain, for operators",
    "store": "learned facts: limits, ratios, summaries. You may delete it at any moment.",
    "log": "how events are written",
    "observe": "records of past requests, and traces",
    "upstreams": "model servers, by names that you choose",
    "default_upstream": "",
    "models": "well-known models need no entry: their windows come with Turnfold",
    "keys": "keys that clients must send; without any, everyone is served",
    "defaults": "for models that neither this file nor the catalogue knows better",
    "fold": "you may also set every key for one model, directly or under its fold:",
}
"""The top-level sections in the order of the file."""
