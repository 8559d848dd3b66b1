"""The price of a model's prompt tokens: the configured one, else the list price; and the provider's published rule for its cache."""

from typing import Any, Final

import orjson
from aiohttp import web

from gateway.context.cache.rules import RULES
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.errors import ClientError

MOST_MODELS: Final = 100
"""Models in one question. Chosen: a page asks for each model once."""


def asked(gateway: Gateway, request: web.Request) -> dict[str, Any]:
    """Return the prices of the models that a request names, by name. Raises ClientError."""
    try:
        models = orjson.loads(request.query.get("models", ""))
    except orjson.JSONDecodeError:
        models = None
    if not isinstance(models, list) or len(models) > MOST_MODELS or not all(isinstance(each, str) for each in models):
        raise ClientError(400, f"models: expected a JSON list of at most {MOST_MODELS} names.", code="invalid_query")
    return {model: price_of(gateway, model) for model in models}


def price_of(gateway: Gateway, model: str) -> dict[str, Any] | None:
    """Return the price of a million prompt tokens in US dollars, fresh and read from a cache; None where it is unknown."""
    route = gateway.settings.route(model)
    fresh = gateway.catalogue.price(route.name) if route.input_price is None else route.input_price
    if fresh is None:
        return None
    catalogued = gateway.catalogue.find(route.name)
    rule = RULES.get(catalogued.cache) if catalogued is not None else None
    cached = fresh * rule.read if rule is not None else fresh
    return {
        "input": fresh,
        "cached": cached if route.cached_price is None else route.cached_price,
        "written": fresh * rule.written if rule is not None else fresh,
        "lifetime_s": rule.lifetime_s if rule is not None else None,
        "source": "list" if route.input_price is None else "configured",
    }
