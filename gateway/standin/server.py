"""The stand-in server: it records every request, checks it like the strictest provider, and sends the next answer of its
script or one of its own."""

import asyncio
import gzip
import hashlib
import sys
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

import orjson
from aiohttp import web
from multidict import CIMultiDictProxy

from gateway.standin import completion, dialects, message_events, validity
from gateway.standin.answers import EVENTS, JSON, Answer, Completion, Raw, Refuse
from gateway.standin.apis import APIS, CHAT, MESSAGES, OLLAMA, RESPONSES, RULES, Api

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Windows = int | Mapping[str, int] | Callable[[str], int]
Scripted = Answer | Callable[["Seen"], Answer | None]
"""An answer, or a function of the request; None from it means: judge as usual."""

UNPACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "zstd": zstd.decompress,
}
"""What decompresses a request, for each `Content-Encoding`."""
LARGEST_BODY: Final = 1 << 30
"""Bytes. Chosen far above every test body: limits are tested at the gateway."""
LARGEST_HEADER: Final = 1 << 18
"""Bytes of one header line. Chosen above the gateway's own limit."""


@dataclass(slots=True, eq=False)
class Seen:
    """One request and its result."""

    method: str
    path: str
    query: str
    headers: CIMultiDictProxy[str]
    body: bytes
    raw_target: str = ""
    """The path and query in the request line."""
    json: Any = None
    """The parsed body; None when it is not JSON."""
    prompt_tokens: int = 0
    window: int = 0
    violations: list[validity.Violation] = field(default_factory=list)
    status: int = 0
    """The status of the answer; 0 before it."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the answer is complete or the other side is gone."""
    left: bool = False
    """The other side left before the answer was complete."""

    @property
    def messages(self) -> list[Any]:
        found = self.json.get("messages") if isinstance(self.json, dict) else None
        return found if isinstance(found, list) else []


class StandIn:
    """An upstream for one test, demo or replay: ``async with StandIn(window=8192) as standin: ... standin.base_url``."""

    def __init__(
        self,
        *,
        window: Windows = 128_000,
        dialect: str = "",
        script: Iterable[Scripted] = (),
        otherwise: Callable[["Seen"], Answer | None] | None = None,
        rules: Iterable[str] | None = None,
        reply: Completion = Completion(),  # noqa: B008  # a frozen value
        truncates: bool = False,
        scale: float = 1.0,
        models: tuple[str, ...] | None = None,
        model_list: Raw | None = None,
        key: str = "",
        apis: Iterable[str] = ("chat", "messages", "responses", "counts", "compact"),
    ) -> None:
        """Describe the server.

        ``script`` has the next answers, one per request; when it is empty, ``otherwise`` is used. ``dialect`` is its
        wording of "too long" (empty: each API's own). ``rules`` are the enforced rules: an empty list makes it lenient,
        None means all rules of the API. ``truncates`` cuts the head off a request that is too long and answers 200, as
        some servers do. ``scale`` makes its vocabulary this many times worse than o200k. ``models`` are its model names
        (None: any), ``model_list`` replaces their list. ``key`` is the required bearer token or x-api-key (empty: any).
        ``apis`` are its APIs, also ``ollama``; ``counts`` are its endpoints that count a request, ``compact`` is
        ``/v1/responses/compact``.
        """
        self.requests: list[Seen] = []
        self.base_url = ""
        self.script: deque[Scripted] = deque(script)
        self._otherwise = otherwise
        self.reply = reply
        self._window = window
        self._dialect = dialect
        self._rules = None if rules is None else frozenset(rules)
        self._apis = frozenset(apis)
        self._truncates = truncates
        self.scale = scale
        self._models = models
        self._model_list = model_list
        self._key = key
        self._arrival = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> str:
        """Listen on a loopback port, a free one for 0, and return the base URL with ``/v1``."""
        app = web.Application(client_max_size=LARGEST_BODY)
        for api in APIS:
            if api is OLLAMA and api.name not in self._apis:
                continue  # then it is an endpoint like any other
            app.router.add_post(api.path, partial(self._complete, api))
        app.router.add_post("/v1/messages/count_tokens", partial(self._count, MESSAGES))
        app.router.add_post("/v1/responses/input_tokens", partial(self._count, RESPONSES))
        app.router.add_post("/v1/responses/compact", self._compact)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_get("/v1/files/{name}/content", self._download)
        app.router.add_route("*", "/{path:.*}", self._echo)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            auto_decompress=False,
            max_line_size=LARGEST_HEADER,
            max_field_size=LARGEST_HEADER,
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}/v1"
        return self.base_url

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def chats(self) -> list[Seen]:
        """Return the chat completions among the requests."""
        return [seen for seen in self.requests if seen.path == "/v1/chat/completions"]

    async def arrived(self, count: int) -> Seen:
        """Wait until so many requests have arrived, and return the last of them."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    def window_of(self, model: str) -> int:
        """Return the window of a model."""
        if isinstance(self._window, int):
            return self._window
        return self._window(model) if callable(self._window) else self._window[model]

    @asynccontextmanager
    async def _seen(self, request: web.Request) -> AsyncIterator[Seen]:
        """Record a request and how its answer ended."""
        body = await request.read()
        seen = Seen(
            request.method,
            request.path,
            request.query_string,
            request.headers,
            body,
            request.raw_path,
            _json_in(body, request.headers),
        )
        async with self._arrival:
            self.requests.append(seen)
            self._arrival.notify_all()
        try:
            yield seen
        except (asyncio.CancelledError, ConnectionError):
            seen.left = True
            raise
        finally:
            seen.done.set()

    async def _complete(self, api: Api, request: web.Request) -> web.StreamResponse:
        async with self._seen(request) as seen:
            if api.name not in self._apis:
                answer: Answer = api.error(404, f"Not found: {api.path}")
            else:
                answer = (
                    self._next_scripted(api, seen) or self._check_key(api, seen) or self._check(api, seen) or self.reply
                )
            if isinstance(answer, Refuse):
                answer = self._refusal(api, seen, answer)
            elif isinstance(answer, Completion):
                answer = api.complete(answer, seen.json if isinstance(seen.json, dict) else {}, seen.prompt_tokens)
            seen.status = answer.status
            return await _play(request, answer)

    async def _count(self, api: Api, request: web.Request) -> web.StreamResponse:
        """Answer with the token count of a request."""
        async with self._seen(request) as seen:
            known = {"counts", api.name} <= self._apis and isinstance(seen.json, dict)
            counted: dict[str, Any] = {"object": "response.input_tokens"} if api.name == "responses" else {}
            if known:
                counted["input_tokens"] = round(api.weigh(seen.json) * self.scale)
            unknown = self._model_unknown(api, seen.json.get("model")) if known else None
            answer = unknown or (
                Raw(chunks=(orjson.dumps(counted),)) if known else api.error(404, f"Not found: {request.path}")
            )
            seen.status = answer.status
            return await _play(request, answer)

    async def _compact(self, request: web.Request) -> web.StreamResponse:
        """Compact a conversation into one sealed item."""
        async with self._seen(request) as seen:
            item = {"type": "compaction", "id": "cmp_standin", "encrypted_content": "c2VhbGVk"}
            whole = {"id": "resp_standin", "object": "response.compaction", "created_at": 0, "output": [item]}
            known = "compact" in self._apis and isinstance(seen.json, dict)
            unknown = self._model_unknown(RESPONSES, seen.json.get("model")) if known else None
            answer = unknown or (Raw(chunks=(orjson.dumps(whole),)) if known else RESPONSES.error(404, "Not found"))
            seen.status = answer.status
            return await _play(request, answer)

    def _next_scripted(self, api: Api, seen: Seen) -> Answer | None:
        """Count and check the request, so that a test can read both, and return the next answer of the script; None without one."""
        if isinstance(seen.json, dict):
            own = self.window_of(str(seen.json.get("model")))
            seen.window = min(own, api.asked_window(seen.json) or own)
            rules = RULES[api.name] if self._rules is None else self._rules
            seen.violations = [found for found in api.violations(seen.json) if found.rule in rules]
            seen.prompt_tokens = round(api.weigh(seen.json) * self.scale)
        return self._next(seen)

    def _next(self, seen: Seen) -> Answer | None:
        scripted = self.script.popleft() if self.script else self._otherwise
        return scripted(seen) if callable(scripted) else scripted

    def _check(self, api: Api, seen: Seen) -> Answer | None:
        """Return the error with which a strict server refuses the request; None for a valid one."""
        if not isinstance(seen.json, dict):
            return api.error(400, "We could not parse the JSON body of your request.")
        if api.member not in seen.json:
            return api.error(400, f"Missing required parameter: '{api.member}'.")
        if seen.violations:
            first = seen.violations[0]
            if api.name == "chat":
                return completion.error(400, first.text, param=f"messages.[{first.at}]")
            return api.error(400, first.text)
        return self._model_unknown(api, seen.json.get("model")) or self._too_long(api, seen, seen.json)

    def _check_key(self, api: Api, seen: Seen) -> Raw | None:
        """Return the error for a request without the right key; None when it has the key, or none is required."""
        bearer = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if not self._key or self._key in (bearer, seen.headers.get("x-api-key") if api.name == "messages" else None):
            return None
        if api.name == "messages":
            return message_events.error(401, "invalid x-api-key", "authentication_error")
        return completion.error(401, "Incorrect API key provided.", code="invalid_api_key")

    def _model_unknown(self, api: Api, model: Any) -> Raw | None:
        if not isinstance(model, str) or not model:
            return api.error(400, "you must provide a model parameter")
        if self._models is not None and model not in self._models:
            if api.name == "messages":
                return message_events.error(404, f"model: {model}", "not_found_error")
            if api is OLLAMA:
                return api.error(404, f"model '{model}' not found")
            return completion.error(
                404, f"The model `{model}` does not exist or you do not have access to it.", code="model_not_found"
            )
        return None

    def _too_long(self, api: Api, seen: Seen, body: Mapping[str, Any]) -> Answer | None:
        asked = api.output_limit_in(body)
        dialect = dialects.DIALECTS[self._dialect or api.dialect]
        over = seen.prompt_tokens > seen.window or bool(dialect.total and seen.prompt_tokens + asked > seen.window)
        if over and self._truncates:
            counted = {"prompt_tokens": seen.window // 2, "completion_tokens": 4, "total_tokens": seen.window // 2 + 4}
            return Completion(self.reply.text, usage=counted)
        return Refuse() if over else None

    def _refusal(self, api: Api, seen: Seen, refuse: Refuse) -> Raw:
        body = seen.json if isinstance(seen.json, dict) else {}
        dialect = dialects.DIALECTS[refuse.dialect or self._dialect or api.dialect]
        sizes = dialects.Sizes(
            seen.window if refuse.limit is None else refuse.limit,
            seen.prompt_tokens if refuse.prompt is None else refuse.prompt,
            api.output_limit_in(body),
        )
        text = dialects.refusal(dialect, sizes)
        if api.streams(body) and dialect.silent_stream:
            return Raw(headers={"content-type": EVENTS})
        if api.streams(body) and dialect.as_event:
            return api.refused_stream(body, text)
        return Raw(dialect.status, (text,))

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        async with self._seen(request) as seen:
            if (
                refusal := self._check_key(MESSAGES if "anthropic-version" in seen.headers else CHAT, seen)
            ) is not None:
                seen.status = refusal.status
                return await _play(request, refusal)
            if self._model_list is not None:
                seen.status = self._model_list.status
                return await _play(request, self._model_list)
            seen.status = 200
            known = self._models or ("gpt-4o",)
            rows = [
                {
                    "id": name,
                    "object": "model",
                    "created": 0,
                    "owned_by": "stand-in",
                    "max_model_len": self.window_of(name),
                }
                for name in known
            ]
            return await _play(request, Raw(chunks=(orjson.dumps({"object": "list", "data": rows}),)))

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        async with self._seen(request) as seen:
            seen.status = 200
            texts = seen.json.get("input") if isinstance(seen.json, dict) else []
            rows = [
                {"object": "embedding", "index": index, "embedding": [0.25, -0.5, 1.0]}
                for index, _ in enumerate([texts] if isinstance(texts, str) else texts or [])
            ]
            usage = {"prompt_tokens": len(rows), "total_tokens": len(rows)}
            answer = {"object": "list", "data": rows, "model": "stand-in", "usage": usage}
            return await _play(request, Raw(chunks=(orjson.dumps(answer),)))

    async def _download(self, request: web.Request) -> web.StreamResponse:
        async with self._seen(request) as seen:
            seen.status = 200
            whole = bytes(range(256)) * 512
            chunks = tuple(whole[start : start + 16_384] for start in range(0, len(whole), 16_384))
            return await _play(request, Raw(chunks=chunks, headers={"content-type": "application/octet-stream"}))

    async def _echo(self, request: web.Request) -> web.StreamResponse:
        """Answer with the received request, for any method and path, unless the script has an answer."""
        async with self._seen(request) as seen:
            answer = self._next(seen)
            if not isinstance(answer, Raw):
                echo = {
                    "id": "file-standin",
                    "object": "echo",
                    "method": seen.method,
                    "path": seen.path,
                    "query": seen.query,
                    "bytes": len(seen.body),
                    "sha256": hashlib.sha256(seen.body).hexdigest(),
                }
                answer = Raw(chunks=(orjson.dumps(echo),), headers={"content-type": JSON, "x-echo": "yes"})
            seen.status = answer.status
            return await _play(request, answer)


def _json_in(body: bytes, headers: Mapping[str, str]) -> Any:
    """Return the JSON of a body, which may be compressed; None for any other."""
    unpack = UNPACK.get(headers.get("content-encoding", "identity"))
    try:
        return orjson.loads(body if unpack is None else unpack(body))
    except (ValueError, EOFError, OSError, zlib.error, zstd.ZstdError):
        return None


async def _play(request: web.Request, raw: Raw) -> web.StreamResponse:
    """Send an answer, including its faults."""
    if raw.before is not None:
        await raw.before(0)
    response = web.StreamResponse(status=raw.status, headers=raw.headers)
    if raw.sends_head:
        if "content-length" not in response.headers and len(raw.chunks) == 1 and raw.end == "close":
            response.content_length = len(raw.chunks[0])
        await response.prepare(request)
        for number, chunk in enumerate(raw.chunks):
            if raw.pace is not None:
                await raw.pace(number)
            await response.write(chunk)
    if raw.end == "silence":
        await asyncio.Event().wait()
    if raw.end == "reset" and request.transport is not None:
        request.transport.abort()
    return response
