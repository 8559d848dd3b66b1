"""The admin port: metrics, the last exchanges, and explanations of what would be done to a request."""

import hmac
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from aiohttp import web

from gateway.serve import errors
from gateway.serve.explain import explain
from gateway.serve.guard import Guard, check_json
from gateway.serve.shared import Gateway
from gateway.state import forgetting
from gateway.state.facts import Fact
from gateway.wire.formats import recognise

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HEALTH: Final = "/healthz"
"""The only path, at the root or below the base path, that needs no token."""
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def runner(gateway: Gateway) -> web.AppRunner:
    """Build the admin port's application; the token is compared in constant time."""
    guard = Guard(gateway.settings.admin.host, gateway.settings.server.allowed_hosts)

    @web.middleware
    async def authorised(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            guard.check(request.raw_path, request.headers)
            _check_token(request, gateway.settings.admin.token)
            if request.method not in ("GET", "HEAD"):
                check_json(request.headers)
            return await handler(request)
        except errors.ClientError as error:
            return errors.response(error, {"WWW-Authenticate": "Bearer"} if error.status == 401 else None)

    async def healthz(_: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def metrics(_: web.Request) -> web.Response:
        from gateway.observe.exposition import text_of  # noqa: PLC0415  # 20 ms of the start, if nobody ever scrapes

        return web.Response(body=text_of(gateway.metrics), headers={"Content-Type": METRICS_TYPE})

    async def exchanges(request: web.Request) -> web.Response:
        limit = request.query.get("limit", "100")
        if not limit.isdigit():
            raise errors.ClientError(400, f"limit: {limit[:20]!r} is not a whole number", code="invalid_query")
        return _json([exchange._asdict() for exchange in gateway.recent.newest(int(limit))])

    async def explained(request: web.Request) -> web.Response:
        asked = recognise(await request.read(), gateway.memory)
        if asked is None:
            message = "The body is no request for chat completions, responses or messages: expected JSON with `messages` or `input`."
            raise errors.ClientError(400, message, code="invalid_body")
        return _json(await explain(gateway, asked))

    async def learned(_: web.Request) -> web.Response:
        return _json({"facts": [_shown(fact) for fact in gateway.learning.facts()]})

    async def forgotten(request: web.Request) -> web.Response:
        return _json(await _forget(gateway, await request.read()))

    app = web.Application(middlewares=[authorised], client_max_size=gateway.settings.server.max_body)
    app.router.add_get(HEALTH, healthz)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/api/exchanges", exchanges)
    app.router.add_get("/api/learned", learned)
    app.router.add_post("/api/explain", explained)
    app.router.add_post("/api/forget", forgotten)
    _serve_below(gateway.settings.server.base_path, app)
    return web.AppRunner(app, access_log=None, shutdown_timeout=1.0)


def _serve_below(base_path: str, app: web.Application) -> None:
    """Serve every route below the base path too; at the root, machines in the same network still find it."""
    for route in list(app.router.routes()) if base_path else ():
        if route.resource is not None:
            app.router.add_route(route.method, base_path + route.resource.canonical, route.handler)


FORGET_HINT: Final = (
    'expected one of {"everything": true}, {"learned": true}, {"upstream": NAME, "model": NAME}, {"key_hash": HASH}'
)


async def _forget(gateway: Gateway, body: bytes) -> dict[str, Any]:
    """Delete what the operator names: in this process at once, in all others that share the store within a second."""
    try:
        asked = orjson.loads(body)
    except orjson.JSONDecodeError:
        asked = None
    match asked:
        case {"everything": True, **others} if not others:
            order, work = "everything", forgetting.forget_everything(gateway.store, forgetting.now())
        case {"learned": True, **others} if not others:
            order, work = "learned", forgetting.forget_learned(gateway.store, forgetting.now())
        case {"upstream": str(upstream), "model": str(model), **others} if not others:
            order, work = "model", forgetting.forget_learned(gateway.store, forgetting.now(), upstream, model)
        case {"key_hash": str(key_hash), **others} if not others and key_hash:
            order, work = "caller", forgetting.forget_caller(gateway.store, key_hash, forgetting.now())
        case _:
            raise errors.ClientError(400, f"The body is not an order to forget: {FORGET_HINT}.", code="invalid_body")
    try:
        values = await work
    except Exception as error:  # an operator requested it, and must know that it failed
        gateway.failed("forget", error)
        reason = f"Not forgotten everywhere: the store failed ({type(error).__name__})."
        raise errors.ClientError(503, reason, code="store_failed", type_="server_error") from error
    finally:
        await gateway.watch.look()
    return {"forgotten": order, "values": values, "other_processes_within_s": forgetting.EVERY_S}


def _shown(fact: Fact) -> dict[str, Any]:
    return {
        **{name: getattr(fact, name) for name in Fact.__slots__},
        "since": datetime.fromtimestamp(fact.since, UTC).isoformat(timespec="seconds"),
        "until": datetime.fromtimestamp(fact.until, UTC).isoformat(timespec="seconds"),
    }


def _check_token(request: web.Request, token: str) -> None:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    if token and not request.path.endswith(HEALTH) and not hmac.compare_digest(given.encode(), token.encode()):
        raise errors.ClientError(401, "The admin port wants `Authorization: Bearer TOKEN`.", code="unauthorized")


def _json(value: Any) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type=errors.JSON)
