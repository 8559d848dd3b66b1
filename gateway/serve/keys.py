"""Client keys: find the key of a request, and check who may use it.

A client's key is for the gateway alone: it goes to no upstream, into no log and into no error. Which models a key is for is in
`gateway.serve.key_models`, how much it may use in `gateway.serve.key_limits`.
"""

import hmac
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from gateway.config import ClientKey, Settings
from gateway.serve import arrival as arrivals
from gateway.serve.arrival import Arrival
from gateway.serve.gateway import Gateway
from gateway.serve.incoming import headers as http
from gateway.serve.incoming.addresses import within
from gateway.serve.incoming.callers import is_credential
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.paths import models_in
from gateway.serve.key_limits import count_request
from gateway.serve.key_models import check_model
from gateway.upstream.client import CALLER

HEADERS: Final = ("Authorization", "x-api-key", "api-key")
"""Headers in which clients send a key: OpenAI's libraries, Anthropic's, Azure's."""
PROTOCOL: Final = "openai-insecure-api-key."
"""How a browser, which cannot set headers, gives the key of a WebSocket: https://platform.openai.com/docs/guides/realtime-websocket."""
HOW_TO_SEND: Final = (
    "Send the key that the operator gave you as `Authorization: Bearer KEY`, `x-api-key: KEY` or `api-key: KEY`."
)


async def admit(gateway: Gateway, request: web.BaseRequest, arrival: Arrival) -> None:
    """Find the client key of a request, where the gateway asks for one, and count the request. Raises ClientError when it may not
    be served."""
    settings = gateway.settings
    key, presented = _find_key(settings, request)
    arrival.key, arrival.credential = key, presented
    _check_use(key, arrival)
    if key.models:
        # Whatever the body names: LiteLLM lets `?model=` replace the body's model.
        for model in models_in(request.rel_url):
            check_model(request, model)
    await count_request(gateway, key, arrival)


def _check_use(key: ClientKey, arrival: Arrival) -> None:
    """Refuse a key that has expired, or that may not be used from the client's address. Raises ClientError."""
    if key.expires is not None and key.expires <= time.time():
        raise _unauthorised("This key has expired.", "expired_api_key")
    if key.addresses and not within(arrival.client, key.addresses):
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
    mine = arrivals.of(request).key is not None
    return [name for name in _offered_protocols(request) if not (mine and name.startswith(PROTOCOL))]


def check_again(gateway: Gateway, arrival: Arrival) -> None:
    """Check the key of an open socket again: it may have been removed or changed, or has expired. Raises ClientError."""
    if arrival.key is None:
        return
    current = gateway.settings.keys.get(arrival.key.name)
    if current is None or current.hash != arrival.key.hash:
        raise _unauthorised("This key was removed.", "invalid_api_key")
    _check_use(current, arrival)
    arrival.key = current


def forwarded(request: web.BaseRequest) -> CIMultiDict[str]:
    """Return the client's headers as an upstream may get them: without hop-by-hop headers and our own.

    With a client key, none of the client's credentials is forwarded. If the key's tokens are limited, no compressed answer is asked for:
    if it were far longer than its bytes, the bill at its end would not be read.
    """
    headers, arrival = http.forwarded(request.headers), arrivals.of(request)
    if arrival.key is not None:
        if arrival.key.tpm is not None:
            headers["Accept-Encoding"] = "identity"
        for name in [name for name in headers if is_credential(name)]:
            headers.popall(name, None)
        headers[CALLER] = arrival.credential
    return headers


def _unauthorised(message: str, code: str) -> ClientError:
    return ClientError(401, message, code=code, type_="authentication_error", headers={"WWW-Authenticate": "Bearer"})
