"""Paths on the client port: a client's call is recognised in whatever form its base URL makes of it.

A path becomes an `Address` before anything else looks at it, and only the address is checked, routed and sent. So two forms of one path
cannot be treated differently.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from aiohttp import web
from yarl import URL

from providers.azure import DEPLOYED
from providers.registry import ROWS

ROOTS: Final = frozenset(
    {
        "assistants", "audio", "batches", "chat", "complete", "completions", "conversations", "embeddings", "files", "fine_tuning",
        "images", "messages", "models", "moderations", "realtime", "responses", "threads", "uploads", "vector_stores",
    }
)  # fmt: skip
"""Paths below ``/v1`` at OpenAI and Anthropic; without ``/v1``, the client's base URL lacks it."""

PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Paths that machines poll to learn whether this process is alive and takes requests."""

OTHERS: Final = frozenset(
    {
        "admin", "chatkit", "classify", "containers", "detokenize", "edits", "engines", "evals", "experimental", "fim", "fine-tuning",
        "moderate", "ocr", "organization", "organizations", "pooling", "rerank", "score", "skills", "tokenize", "videos",
    }
)  # fmt: skip
"""Further documented first parts of paths below ``/v1``, which are not recognised without it."""

PREFIXES: Final = (
    "/openai/v1/",  # Azure, Groq, Bedrock
    "/v1/openai/",  # DeepInfra; Azure's client with /v1 in its endpoint
    "/openai/",  # Azure
    "/v1beta/openai/",  # Gemini
    "/api/v1/",  # OpenRouter
    "/api/v0/",  # LM Studio
    "/api/v3/",  # Volcengine
    "/api/paas/v4/",  # Zhipu
    "/inference/v1/",  # Fireworks
    "/inference/",  # GitHub
    "/compatible-mode/v1/",  # DashScope
    "/anthropic/",  # Foundry, DeepSeek, Moonshot; Anthropic's libraries write /v1 behind it
)
"""What vendors have before their endpoints instead of ``/v1``. The first that matches is used."""

ENDINGS: Final = (
    ("/chat/completions", "/v1/chat/completions"),
    ("/v1/responses", "/v1/responses"),
    ("/v1/responses/compact", "/v1/responses/compact"),
    ("/v1/responses/input_tokens", "/v1/responses/input_tokens"),
    ("/v1/messages", "/v1/messages"),
    ("/v1/messages/count_tokens", "/v1/messages/count_tokens"),
    ("/v1/models/embeddings", "/v1/embeddings"),  # Azure's model inference, whose base URL ends in /models
)
"""Endings of paths that are these endpoints, whatever stands before. ``/messages`` alone may be a message of something else."""

_DEPLOYMENT: Final = re.compile("/(?:deployments|engines)/", re.IGNORECASE)
"""What stands before the name of a model in paths of Azure, and of LiteLLM. Azure does not tell case in a path."""

KEPT: Final = 256
"""Paths whose form is remembered, a number: most requests have one of three."""
MODELS: Final = "/v1/models/"
"""The beginning of the path of one model, whose name may have slashes."""
_NAMED: Final = re.compile("/(?:models?|deployments|engines)(?:;[^/]*)?(?=/([^/:]+))", re.IGNORECASE)
"""Parts of paths behind which a model is named, and the name: Vertex, Bedrock, Azure. Some servers ignore what is behind a semicolon."""
LISTS: Final = frozenset({"/v1/deployments", "/v1/engines"})
"""Paths of lists of all models, beside ``/v1/models``, in small letters and without a slash at the end."""
NAMES: Final = ("model", "deployment")
"""Members of a query that name a model: OpenAI's sockets, Azure's."""
REALTIME: Final = "/v1/realtime/"
"""The beginning of the paths of requests about Realtime's sessions."""
CLIENT_SECRETS: Final = "/v1/realtime/client_secrets"
"""The path of a request whose model stands in its ``session``:
https://platform.openai.com/docs/api-reference/realtime-sessions/create-realtime-client-secret."""
_UNRESERVED: Final = re.compile(r"%(?:4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9AE]|3[0-9]|2[DE]|5F)", re.IGNORECASE)
"""Escapes of signs that need none: https://www.rfc-editor.org/rfc/rfc3986#section-2.3."""
_SLASHES: Final = re.compile("//+")
_ESCAPED_SLASH: Final = re.compile("%2f", re.IGNORECASE)
_NATIVE: Final = re.compile("|".join(dict.fromkeys(row.native.pattern for row in ROWS if row.native is not None)))


class Address(NamedTuple):
    """A client's path in the words of our API."""

    path: str
    """The path with ``/v1``, or that of another endpoint; "" outside the base path."""
    deployment: str = ""
    """The model that the client's path names and ``path`` does not."""
    translated: bool = False
    """Whether the client wrote the path of another API than OpenAI's and Anthropic's."""


def models_in(url: URL) -> set[str]:
    """Return the models that a URL below ``/v1`` names, in its query or in its path."""
    named = {model for name, model in url.query.items() if name.lower() in NAMES}
    path = url.raw_path
    if path.startswith(MODELS):
        named.add(unquote(path.removeprefix(MODELS)))
    else:
        named.update(map(unquote, _NAMED.findall(path)))
    return named - {""}


def query_for(query: str, model: str) -> str:
    """Return a raw query that names a model as OpenAI's API does, if it names one: ``model=NAME``. One that does so already keeps its bytes."""
    parts, named = query.split("&"), f"model={quote(model, safe='')}"
    found = [part for part in parts if unquote_plus(part.partition("=")[0]).lower() in NAMES]
    if not found or (len(found) == 1 and unquote_plus(found[0]) == f"model={model}"):
        return query
    return "&".join(named if part is found[0] else part for part in parts if part is found[0] or part not in found)


def root_of(path: str) -> str:
    """Return the documented first part of a path with ``/v1``, a bounded set; "" for any other."""
    return f"/v1/{path.removeprefix('/v1/').partition('/')[0]}" if known(path) else ""


def known(path: str) -> bool:
    """Return whether some documented API has endpoints under the first part of a path below ``/v1``."""
    return path.removeprefix("/v1/").partition("/")[0] in ROOTS | OTHERS


def is_native(method: str, path: str) -> bool:
    """Return whether some kind of server has this endpoint of its own, and it may be passed through."""
    return _NATIVE.fullmatch(f"{method} {path}") is not None


def native_providers(method: str, path: str) -> list[str]:
    """Return the providers whose servers have this endpoint of their own."""
    return [row.name for row in ROWS if row.native is not None and row.native.fullmatch(f"{method} {path}")]


def address_of(path: str) -> Address:
    """Return the address that a path means."""
    path = _UNRESERVED.sub(lambda escape: unquote(escape[0]), path)
    if found := _deployed(path):
        return Address(f"/v1{found.endpoint}", unquote(found.name), translated=True)
    path = _SLASHES.sub("/", path)
    prefix = next((each for each in PREFIXES if path.startswith(each)), "")
    path = _with_v1(f"/v1/{path.removeprefix(prefix)}" if prefix else path)
    whole = path.removesuffix("/").lower()  # some servers do not tell case in a path
    for ending, endpoint in ENDINGS:
        if whole.endswith(ending):
            return Address(endpoint, translated=bool(prefix) or whole != endpoint)
    return Address(path, translated=bool(prefix))


def with_plain_slashes(path: str) -> str:
    """Return a path in which the slashes of a deployment's name are written as such; Azure's libraries escape them."""
    found = _deployed(path)
    return path if found is None else path[: found.start] + _ESCAPED_SLASH.sub("/", path[found.start :])


class _Deployed(NamedTuple):
    """What a path says behind ``/deployments/``."""

    start: int
    """Where the name begins."""
    name: str
    """The name with its escapes; "" if the client has none: then the body's model counts."""
    endpoint: str


def _deployed(path: str) -> _Deployed | None:
    """Return the deployment in a path and its endpoint; None for the path of anything else."""
    mark = _DEPLOYMENT.search(path)
    if mark is None:
        return None
    rest = _SLASHES.sub("/", path[mark.end() :]).removesuffix("/")
    endpoint = next((each for each in DEPLOYED if rest[-len(each) :].lower() == each), "")
    return _Deployed(mark.end(), rest[: -len(endpoint)].removeprefix("/"), endpoint) if endpoint else None


def _with_v1(path: str) -> str:
    """Return a path with exactly one ``/v1``: Anthropic's libraries add it to the base URL, OpenAI's do not.

    The documented part behind it is written in small letters: some servers do not tell case, and would serve another endpoint than the
    one that we have checked.
    """
    while path.startswith("/v1/v1/"):
        path = path.removeprefix("/v1")
    has_v1 = path.startswith("/v1/")
    first, slash, rest = path.removeprefix("/v1" if has_v1 else "").removeprefix("/").partition("/")
    is_known = first.lower() in (ROOTS | OTHERS if has_v1 else ROOTS)
    return f"/v1/{first.lower()}{slash}{rest}" if is_known else path


@lru_cache(maxsize=KEPT)
def address_below(path: str, base_path: str) -> Address:
    """Return the address that a path below the base path means. Probes find `/healthz` and `/readyz` at the root too."""
    if base_path and path not in PROBES:
        if path == base_path:
            return Address("/")
        if not path.startswith(f"{base_path}/"):
            return Address("")
        path = path.removeprefix(base_path)
    return address_of(path)


def with_path(request: web.BaseRequest, path: str) -> web.BaseRequest:
    """Return the request with another path and the same query; the same request if it has that path already."""
    url = request.rel_url
    if path == url.raw_path:
        return request
    return request.clone(rel_url=URL.build(path=path, query_string=url.raw_query_string, encoded=True))
