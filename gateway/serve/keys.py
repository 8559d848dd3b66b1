"""Client keys: find a request's key, what it may be used for, and how much of its limits is used.

A client's key is for the gateway alone: it goes to no upstream, into no log and into no error.
"""

import hmac
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final

import orjson
from aiohttp import web
from multidict import CIMultiDict

from gateway.config import ClientKey, Settings
from gateway.serve import record as records
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming import headers as http
from gateway.serve.incoming.addresses import within
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.incoming.callers import CREDENTIALS
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.paths import models_in
from gateway.serve.record import Record
from gateway.state.rates import Used, expected
from gateway.upstream.client import CALLER
from gateway.wire.format import Conversation, output_limit_of
from gateway.wire.model_name import differs, models_in_message, other_models

HEADERS: Final = ("Authorization", "x-api-key", "api-key")
"""Headers in which clients send a key: OpenAI's libraries, Anthropic's, Azure's."""
PROTOCOL: Final = "openai-insecure-api-key."
"""How a browser, which cannot set headers, gives the key of a WebSocket: https://platform.openai.com/docs/guides/realtime-websocket."""
HOW_TO_SEND: Final = (
    "Send the key that the operator gave you as `Authorization: Bearer KEY`, `x-api-key: KEY` or `api-key: KEY`."
)


class RateLimited(ClientError):
    """The key has used up one of its limits until the next minute."""

    def __init__(self, used: Used, headers: Mapping[str, str], wanted: int = 0) -> None:
        left = f"this request may take {wanted} and {used.left} are left" if wanted else "they are used up"
        super().__init__(
            429,
            f"This key may use {used.limit} {used.what} a minute, and {left}. Try again in {used.reset_s} s.",
            code="rate_limit_exceeded",
            type_="rate_limit_error",
            headers={**headers, "Retry-After": str(used.reset_s)},
        )


async def admit(gateway: Gateway, request: web.BaseRequest, record: Record) -> None:
    """Find the client key of a request, where the gateway asks for one, and count the request. Raises ClientError when it may not
    be served."""
    settings = gateway.settings
    key, presented = _find_key(settings, request)
    record.key, record.credential = key, presented
    _check_use(key, record)
    if key.models:
        # Whatever the body names: LiteLLM lets `?model=` replace the body's model.
        for model in models_in(request.rel_url):
            check_model(request, model)
    await _count_request(gateway, key, record)


def _check_use(key: ClientKey, record: Record) -> None:
    """Refuse a key that has expired, or that may not be used from the client's address. Raises ClientError."""
    if key.expires is not None and key.expires <= time.time():
        raise _unauthorised("This key has expired.", "expired_api_key")
    if key.addresses and not within(record.client, key.addresses):
        raise ClientError(
            403,
            "This key may not be used from your address.",
            code="address_not_allowed",
            type_="permission_error",
        )


def _find_key(settings: Settings, request: web.BaseRequest) -> tuple[ClientKey, str]:
    """Return the first known key of a request, as configured and as presented. Raises ClientError."""
    presented = tuple(_presented_keys(request))
    if not presented:
        raise _unauthorised(f"This gateway asks for a key. {HOW_TO_SEND}", "invalid_api_key")
    for given in presented:
        if (key := match(settings.keys.values(), given)) is not None:
            return key, given
    raise _unauthorised(f"The key is not known here. {HOW_TO_SEND}", "invalid_api_key")


def match(keys: Iterable[ClientKey], given: str) -> ClientKey | None:
    """Return the matching key. All hashes are compared completely, so that the time reveals nothing."""
    digest = "sha256:" + sha256(given.encode("utf-8", "surrogatepass")).hexdigest()
    found = None
    for key in keys:
        if hmac.compare_digest(key.hash, digest):
            found = key
    return found


def _presented_keys(request: web.BaseRequest) -> Iterator[str]:
    """Yield every key in a request: in its headers, or among the protocols of a WebSocket."""
    for name in HEADERS:
        for value in request.headers.getall(name, ()):
            scheme, _, rest = value.strip().partition(" ")
            if given := rest.strip() if scheme.lower() == "bearer" else value.strip():
                yield given
    for offered in _offered_protocols(request):
        if offered.startswith(PROTOCOL):
            yield offered.removeprefix(PROTOCOL)


def _offered_protocols(request: web.BaseRequest) -> list[str]:
    """Return the WebSocket protocols that the client offers."""
    return [name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",") if name.strip()]


def upstream_protocols(request: web.BaseRequest) -> list[str]:
    """Return the WebSocket protocols to offer to the upstream: the client's, without its key."""
    mine = records.of(request).key is not None
    return [name for name in _offered_protocols(request) if not (mine and name.startswith(PROTOCOL))]


def check_again(gateway: Gateway, record: Record) -> None:
    """Check the key of an open socket again: it may have been removed or changed, or has expired. Raises ClientError."""
    if record.key is None:
        return
    current = gateway.settings.keys.get(record.key.name)
    if current is None or current.hash != record.key.hash:
        raise _unauthorised("This key was removed.", "invalid_api_key")
    _check_use(current, record)
    record.key = current


async def _count_request(gateway: Gateway, key: ClientKey, record: Record) -> None:
    """Count one request against the key's limits, and put what is left into the headers of the answer. Raises RateLimited."""
    used = []
    if key.rpm is not None:
        used.append(await gateway.rates.use(key.id, "requests", 1, key.rpm))
    if key.tpm is not None:
        used.append(await gateway.rates.use(key.id, "tokens", 0, key.tpm))
    headers = {name: value for each in used for name, value in _limit_headers(each)}
    for each in used:
        if _is_full(each):
            raise RateLimited(each, headers)
    record.shared = {**record.shared, **headers}


def _is_full(used: Used) -> bool:
    """Return whether a limit allows no further request. This request is among the counted ones; its tokens are not yet."""
    return used.count > used.limit if used.what == "requests" else used.count >= used.limit


async def reserve(
    gateway: Gateway,
    record: Record,
    body_bytes: int,
    window: int,
    answer: int | None,
    *,
    answers: int = 1,
    turn_id: str = "",
) -> None:
    """Reserve the tokens that a request may use, before it is sent. Raises RateLimited when the key has not enough left.

    ``answer`` is the largest number of output tokens of one answer, where the request states one; ``answers`` is how many it asks for.
    ``turn_id`` is the identifier of one response on a socket, whose own request has none to reserve.
    """
    key = record.key
    if key is None or key.tpm is None:
        return
    if not turn_id:
        turn_id = record.request_id = record.request_id or gateway.request_id()
    if gateway.rates.has_reservation(turn_id):  # passed through after all
        return
    tokens = expected(body_bytes, window, answer, key.tpm, answers=answers)
    used, fits = await gateway.rates.reserve(turn_id, key.id, tokens, key.tpm)
    record.shared = {**record.shared, **dict(_limit_headers(used))}
    if not fits:
        raise RateLimited(used, record.shared, tokens)


async def admit_turn(gateway: Gateway, record: Record, turn_id: str, body_bytes: int, window: int) -> None:
    """Count a message of a socket that asks for a response, as a request is counted, and reserve its tokens. Raises RateLimited."""
    if record.key is not None:
        await _count_request(gateway, record.key, record)
        await reserve(gateway, record, body_bytes, window, None, turn_id=turn_id)


async def used_up(gateway: Gateway, record: Record) -> RateLimited | None:
    """Return the error for a request whose key has used up its tokens of this minute; None while some are left."""
    key = record.key
    if key is None or key.tpm is None:
        return None
    used = await gateway.rates.use(key.id, "tokens", 0, key.tpm)
    return RateLimited(used, dict(_limit_headers(used))) if _is_full(used) else None


async def reserve_for(gateway: Gateway, record: Record, asked: Conversation, settings: Settings) -> None:
    """Reserve the tokens that a conversation and its answers may use. Raises RateLimited when the key has not enough left."""
    window = settings.route(asked.model).window or settings.default_window
    answers = asked.head.get("n")
    count = answers if isinstance(answers, int) else 1
    await reserve(gateway, record, len(asked.raw), window, output_limit_of(asked), answers=count)


def _limit_headers(used: Used) -> Iterator[tuple[str, str]]:
    """Yield OpenAI's headers about a limit: https://platform.openai.com/docs/guides/rate-limits."""
    yield f"x-ratelimit-limit-{used.what}", str(used.limit)
    yield f"x-ratelimit-remaining-{used.what}", str(used.left)
    yield f"x-ratelimit-reset-{used.what}", f"{used.reset_s}s"


def forwarded(request: web.BaseRequest) -> CIMultiDict[str]:
    """Return the client's headers for an upstream. With a client key, none of the client's credentials is forwarded, and if its tokens
    are limited, no compressed answer is asked for: of one that is far longer than its bytes, the bill at its end would not be read."""
    headers, record = http.forwarded(request.headers), records.of(request)
    if record.key is not None:
        if record.key.tpm is not None:
            headers["Accept-Encoding"] = "identity"
        for name in (*CREDENTIALS, *HEADERS):
            headers.popall(name, None)
        headers[CALLER] = record.credential
    return headers


def check_model(request: web.BaseRequest, model: str) -> None:
    """Refuse a model that the request's key does not allow. Raises ClientError."""
    key = records.of(request).key
    if key is None or key.may_use(model):
        return
    named = "names no model" if not model else "names a model that this key is not for"
    raise ClientError(
        403,
        f"The request {named}; it is for: {', '.join(key.models)}.",
        code="model_not_allowed",
        type_="permission_error",
    )


async def check_conversation(gateway: Gateway, request: web.BaseRequest, asked: Conversation) -> None:
    """Refuse a conversation that names a model, its own or another, which the request's key does not allow. Raises ClientError."""
    check_model(request, asked.model)
    await check_other_models(gateway, request, asked.raw)


async def check_other_models(gateway: Gateway, request: web.BaseRequest, body: bytes) -> None:
    """Refuse a JSON body, decompressed, that names models beside its own which the request's key does not allow. Raises ClientError."""
    if not is_restricted(request):
        return
    check_models(request, await gateway.pool.run(lambda: other_models(body), size_bytes=len(body) // READS_FASTER))


def check_models(request: web.BaseRequest, models: Collection[str] | None) -> None:
    """Refuse models that the request's key does not allow, and None: models that cannot be read. Raises ClientError."""
    for model in [""] if models is None else models:
        check_model(request, model)


def allows_message(request: web.BaseRequest, text: str, *, names_model: bool) -> bool:
    """Return whether a WebSocket message names only models that the key allows. With ``names_model`` a message that begins an answer
    must name one, because the URL of its socket names none that the upstream is sure to use.
    """
    raw = text.encode("utf-8", "surrogatepass")
    try:
        message = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(message, dict) or differs(raw, ("type",)):
        return False
    models = models_in_message(raw)
    if not models:
        return models is not None and not (names_model and message.get("type") == "response.create")
    return all(allows_model(request, model) for model in models)


def allows_model(request: web.BaseRequest, model: str) -> bool:
    """Return whether a request's key allows a model."""
    key = records.of(request).key
    return key is None or key.may_use(model)


def limits_tokens(record: Record) -> bool:
    """Return whether a request has a key with a limit of tokens."""
    return record.key is not None and record.key.tpm is not None


def is_restricted(request: web.BaseRequest) -> bool:
    """Return whether a request's key allows only some models."""
    key = records.of(request).key
    return key is not None and bool(key.models)


def must_know_model(setup: Setup, request: web.BaseRequest) -> bool:
    """Return whether a request's model must be known before it is sent: it decides the upstream, or whether the key allows it."""
    return len(setup.targets) > 1 or is_restricted(request)


def _unauthorised(message: str, code: str) -> ClientError:
    return ClientError(401, message, code=code, type_="authentication_error", headers={"WWW-Authenticate": "Bearer"})
