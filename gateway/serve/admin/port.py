"""The admin port: metrics, the last exchanges, and explanations of what would be done to a request."""

import hmac
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import web

from gateway.context.life.identity import is_key_hash
from gateway.serve.admin import dashboard, health, lookup, prices, workers
from gateway.serve.admin.explain import explain
from gateway.serve.gateway import Gateway
from gateway.serve.incoming import errors
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.incoming.guard import Guard, check_host, check_json, check_version
from gateway.serve.incoming.http_log import http_log
from gateway.state import forgetting
from gateway.state.facts import Fact
from gateway.state.forgetting import Order
from gateway.state.store.reason import reason_of
from gateway.wire.formats import recognise
from gateway.wire.message import dumps

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = Callable[[Gateway, web.Request], Awaitable[Any]]
HEALTH: Final = "/healthz"
"""A path that needs no token."""
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def runner(gateway: Gateway) -> web.AppRunner:
    """Build the admin port's application; the token is compared in constant time."""
    guard = Guard(gateway.settings.admin.host, gateway.settings.server.allowed_hosts)
    base_path = gateway.settings.server.base_path
    public = {base + path for base in ("", base_path) for path in (HEALTH, *dashboard.PATHS)}

    @web.middleware
    async def authorised(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            check_version(request.version)
            check_host(request.headers, dashboard.route_path(request))
            guard.check(request.raw_path, request.headers)
            if dashboard.route_path(request) not in public:
                _check_token(request, gateway.settings.admin.token)
            if request.method not in ("GET", "HEAD"):
                check_json(request.headers)
            return await handler(request)
        except errors.ClientError as error:
            return errors.response(error, {"WWW-Authenticate": "Bearer"} if error.status == 401 else None)

    app = web.Application(middlewares=[authorised], client_max_size=gateway.settings.server.max_body)
    for method, path, answer in ROUTES:
        for each in ("GET", "HEAD") if method == "GET" else (method,):  # monitors ask with HEAD
            app.router.add_route(each, path, partial(_answered, gateway, answer))
    _serve_below(base_path, app)
    log = http_log("admin port", gateway.failed)
    return web.AppRunner(app, access_log=None, logger=log, shutdown_timeout=1.0)


def _serve_below(base_path: str, app: web.Application) -> None:
    """Serve every route below the base path too; at the root, machines in the same network still find it."""
    for route in list(app.router.routes()) if base_path else ():
        if route.resource is not None:
            app.router.add_route(route.method, base_path + route.resource.canonical, route.handler)


async def _answered(gateway: Gateway, answer: Answer, request: web.Request) -> web.StreamResponse:
    found = await answer(gateway, request)
    return found if isinstance(found, web.StreamResponse) else _json(found)


async def healthz(_: Gateway, __: web.Request) -> Any:
    """Answer that the process is there."""
    return {"status": "ok"}


async def metrics(gateway: Gateway, _: web.Request) -> web.Response:
    """Return the numbers of all workers for Prometheus."""
    return web.Response(body=await workers.metrics(gateway), headers={"Content-Type": METRICS_TYPE})


async def explained(gateway: Gateway, request: web.Request) -> Any:
    """Explain what would be done to a request. Raises ClientError."""
    raw = await request.read()
    conversation = await gateway.threads.run(
        lambda: recognise(raw, gateway.memory), size_bytes=len(raw) // READS_FASTER
    )
    if conversation is None:
        message = "The body is no request for chat completions, responses, messages or Ollama's chat: expected JSON with `messages` or `input`."
        raise errors.ClientError(400, message, code="invalid_body")
    return await explain(gateway, conversation)


async def learned(gateway: Gateway, _: web.Request) -> Any:
    """Return what was learned from upstreams, with its evidence."""
    return {"facts": [_shown(fact) for fact in gateway.learning.facts()]}


async def status(gateway: Gateway, _: web.Request) -> Any:
    """Return how the parts of this process are, and of the other workers."""
    return {**health.status(gateway), "workers": await workers.statuses(gateway)}


async def priced(gateway: Gateway, request: web.Request) -> Any:
    """Return the prices of the models that a request names. Raises ClientError."""
    return prices.asked(gateway, request)


async def page(_: Gateway, request: web.Request) -> web.Response:
    """Answer with a file of the dashboard. Raises ClientError."""
    return dashboard.file(request)


async def forget(gateway: Gateway, request: web.Request) -> Any:
    """Delete what the operator names: in this process at once, in all others that share the store within a second. Raises
    ClientError."""
    order = _order_in(await request.read())
    if order.kind in ("everything", "caller"):
        gateway.summing.clear()
    try:
        values = await forgetting.forget(order, gateway.store, gateway.records.forget, forgetting.now())
    except Exception as error:  # an operator requested it, and must know that it failed
        gateway.failed("forget", error)
        reason = f"Not forgotten everywhere: the store failed ({reason_of(error)})."
        raise errors.ClientError(503, reason, code="store_failed", type_="server_error") from error
    finally:
        await gateway.watch.check()
    return {"forgotten": order.kind, "values": values, "other_processes_within_s": forgetting.EVERY_S}


ROUTES: Final[tuple[tuple[str, str, Answer], ...]] = (
    ("GET", HEALTH, healthz),
    ("GET", "/metrics", metrics),
    ("GET", "/api/exchanges", lookup.exchanges),
    ("GET", "/api/exchanges/{id}", lookup.exchange),
    ("GET", "/api/conversations/{id}", lookup.conversation),
    ("GET", "/api/sums", lookup.sums),
    ("GET", "/api/status", status),
    ("GET", "/api/learned", learned),
    ("GET", "/api/prices", priced),
    ("POST", "/api/explain", explained),
    ("POST", "/api/forget", forget),
    *(("GET", path, page) for path in dashboard.PATHS),
)
"""Everything that the admin port answers."""

FORGET_HINT: Final = 'expected one of {"everything": true}, {"learned": true}, {"upstream": NAME, "model": NAME}, {"key_hash": HASH} with 32 small hexadecimal digits'


def _order_in(body: bytes) -> Order:
    """Return the order to forget in a request's body. Raises ClientError for anything else."""
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        given = None
    match given:
        case {"everything": True, **others} if not others:
            return Order("everything")
        case {"learned": True, **others} if not others:
            return Order("learned")
        case {"upstream": str(upstream), "model": str(model), **others} if not others:
            return Order("model", upstream, model)
        case {"key_hash": str(key_hash), **others} if not others and is_key_hash(key_hash):
            return Order("caller", key_hash=key_hash)
        case _:
            raise errors.ClientError(400, f"The body is not an order to forget: {FORGET_HINT}.", code="invalid_body")


def _shown(fact: Fact) -> dict[str, Any]:
    return {
        **{name: getattr(fact, name) for name in Fact.__struct_fields__},
        "since": datetime.fromtimestamp(fact.since, UTC).isoformat(timespec="seconds"),
        "until": datetime.fromtimestamp(fact.until, UTC).isoformat(timespec="seconds"),
    }


def _check_token(request: web.Request, token: str) -> None:
    """Compare the bytes of a header, which need not be UTF-8: a browser sends letters such as é in Latin-1."""
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip().encode("utf-8", "surrogateescape")
    read = (given, given.decode("latin-1").encode())
    if token and not any([hmac.compare_digest(each, token.encode()) for each in read]):
        raise errors.ClientError(401, "The admin port wants `Authorization: Bearer TOKEN`.", code="unauthorized")


def _json(value: Any) -> web.Response:
    return web.Response(body=dumps(value), content_type=errors.JSON)
