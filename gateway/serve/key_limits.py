"""The limits of client keys: requests and tokens a minute, counted and reserved before a request is sent."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from gateway.config import ClientKey, Settings
from gateway.serve.arrival import Arrival
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.errors import ClientError
from gateway.state.rates import Used, expected
from gateway.wire.format import Conversation, output_limit_of


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


async def count_request(gateway: Gateway, key: ClientKey, arrival: Arrival) -> None:
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
    arrival.shared = {**arrival.shared, **headers}


def _is_full(used: Used) -> bool:
    """Return whether a limit allows no further request. This request is among the counted ones; its tokens are not yet."""
    return used.count > used.limit if used.what == "requests" else used.count >= used.limit


async def reserve(
    gateway: Gateway,
    arrival: Arrival,
    body_bytes: int,
    window: int,
    answer: int | None,
    *,
    answers: int = 1,
    response_id: str = "",
) -> None:
    """Reserve the tokens that a request may use, before it is sent. Raises RateLimited when the key has not enough left.

    ``answer`` is the largest number of output tokens of one answer, where the request states one; ``answers`` is how many it asks for.
    ``response_id`` is the id of one response on a socket. The request that opened the socket reserves nothing.
    """
    key = arrival.key
    if key is None or key.tpm is None:
        return
    if not response_id:
        response_id = arrival.ensure_id(gateway)
    if gateway.rates.has_reservation(response_id):  # passed through after all
        return
    tokens = expected(body_bytes, window, answer, key.tpm, answers=answers)
    used, fits = await gateway.rates.reserve(response_id, key.id, tokens, key.tpm)
    arrival.shared = {**arrival.shared, **dict(_limit_headers(used))}
    if not fits:
        raise RateLimited(used, arrival.shared, tokens)


async def reserve_for(gateway: Gateway, arrival: Arrival, conversation: Conversation, settings: Settings) -> None:
    """Reserve the tokens that a conversation and its answers may use. Raises RateLimited when the key has not enough left."""
    window = settings.route(conversation.model).window or settings.default_window
    count = _number_of(conversation.head.get("n"))
    await reserve(gateway, arrival, len(conversation.raw), window, output_limit_of(conversation), answers=count)


def _number_of(answers: object) -> int:
    """Return how many answers a request asks for. Many servers also read ``"3"`` and ``3.0`` as three."""
    if isinstance(answers, (int, float, str)):
        with suppress(ValueError, OverflowError):
            return int(float(answers))
    return 1


async def admit_response(gateway: Gateway, arrival: Arrival, response_id: str, body_bytes: int, window: int) -> None:
    """Count a message of a socket that asks for a response, as a request is counted, and reserve its tokens. Raises RateLimited."""
    if arrival.key is not None:
        await count_request(gateway, arrival.key, arrival)
        await reserve(gateway, arrival, body_bytes, window, None, response_id=response_id)


async def used_up(gateway: Gateway, arrival: Arrival) -> RateLimited | None:
    """Return the error for a request whose key has used up its tokens of this minute; None while some are left."""
    key = arrival.key
    if key is None or key.tpm is None:
        return None
    used = await gateway.rates.use(key.id, "tokens", 0, key.tpm)
    return RateLimited(used, dict(_limit_headers(used))) if _is_full(used) else None


def limits_tokens(arrival: Arrival) -> bool:
    """Return whether a request has a key with a limit of tokens."""
    return arrival.key is not None and arrival.key.tpm is not None


def _limit_headers(used: Used) -> Iterator[tuple[str, str]]:
    """Yield OpenAI's headers about a limit: https://platform.openai.com/docs/guides/rate-limits."""
    yield f"x-ratelimit-limit-{used.what}", str(used.limit)
    yield f"x-ratelimit-remaining-{used.what}", str(used.left)
    yield f"x-ratelimit-reset-{used.what}", f"{used.reset_s}s"
