"""A server that keeps what it makes: responses, conversations, files, stored chats and calls. It does not know the ids of another one."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

from gateway.standin.answers import EVENTS
from gateway.wire import surrogates


class Keeper:
    """One server. ``requests`` has the method and path of each request, in order."""

    def __init__(self, name: str, *, echoes_store: bool = True) -> None:
        self.name = name
        self.base_url = ""
        self.kept: set[str] = set()
        self.requests: list[str] = []
        self.keys: list[str] = []
        """The key of each request."""
        self.down = False
        self._echoes_store = echoes_store
        self._numbers = itertools.count(1)

    def make(self, prefix: str) -> str:
        """Make an id, and keep it."""
        made = f"{prefix}_{self.name}{next(self._numbers)}"
        self.kept.add(made)
        return made

    @property
    def served(self) -> list[str]:
        """The requests since the last look."""
        found, self.requests = self.requests, []
        return found

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request, or say that an id in it is not known."""
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": []})
        self.requests.append(f"{request.method} {request.path}")
        self.keys.append(request.headers.get("authorization", ""))
        if self.down:
            return _error(503, "down for maintenance", "unavailable")
        if request.headers.get("upgrade", "").lower() == "websocket":
            return await self._socket(request)
        parts = request.path.split("/")[2:]
        raw = await request.read()
        body = surrogates.loads(raw) if raw and request.content_type == "application/json" else {}
        named = [part for part in parts if "_" in part and part not in ("input_items", "input_tokens")]
        for unknown in (one for one in named if one not in self.kept):
            return _error(404, f"{unknown!r} not found", "not_found")
        for unknown in (one for one in _references(body) if one not in self.kept):
            return _error(400, f"{unknown!r} not found", "previous_response_not_found")
        if request.method != "POST" or named:
            return web.json_response({"id": named[0] if named else "", "served_by": self.name, "object": "thing"})
        return await self._create(request, parts, body)

    async def _create(self, request: web.Request, parts: list[str], body: dict[str, Any]) -> web.StreamResponse:
        match parts:
            case ["responses"]:
                return await self._respond(request, body)
            case ["responses", *_]:
                return web.json_response({"served_by": self.name, "object": "response.input_tokens", "input_tokens": 7})
            case ["chat", "completions"]:
                return await self._chat(request, body)
            case ["messages"]:
                container = {"container": {"id": self.make("container"), "expires_at": "2030-01-01T00:00:00Z"}}
                usage = {"input_tokens": 5, "output_tokens": 2}
                text = [{"type": "text", "text": "Done."}]
                return web.json_response(
                    {"id": self.make("msg"), "type": "message", "role": "assistant", "model": "m", "content": text,
                     "stop_reason": "end_turn", "usage": usage, **container}
                )  # fmt: skip
            case ["realtime", "calls"]:
                return web.Response(
                    status=201, text="v=0", headers={"Location": f"/v1/realtime/calls/{self.make('rtc')}"}
                )
            case [first, *_]:
                return web.json_response({"id": self.make(first.rstrip("s")), "object": first, "served_by": self.name})
        return _error(404, "no such path", "not_found")

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        stored = body.get("store") is not False
        make = self.make if stored else lambda prefix: f"{prefix}_{self.name}{next(self._numbers)}"
        item = {
            "type": "message", "id": make("msg"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        }  # fmt: skip
        usage = {
            "input_tokens": 5, "output_tokens": 2, "total_tokens": 7, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
        whole = {
            "id": make("resp"), "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [item], "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "metadata": {"served_by": self.name}, **({"store": stored} if self._echoes_store else {}),
            "error": None, "incomplete_details": None, "instructions": None, "temperature": 1.0, "top_p": 1.0,
        }  # fmt: skip
        if not body.get("stream"):
            return web.json_response(whole)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": item["id"], "delta": "Done."},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]  # fmt: skip
        return await _stream(request, [{**event, "sequence_number": number} for number, event in enumerate(events)])

    async def _chat(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        made = self.make("chatcmpl")
        message: dict[str, Any] = {"role": "assistant", "content": "Done."}
        if "audio" in body.get("modalities", ()):
            message["audio"] = {"id": self.make("audio"), "data": "", "transcript": "Done.", "expires_at": 2}
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        whole = {
            "id": made,
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "usage": usage,
            "metadata": {"served_by": self.name},
        }
        if not body.get("stream"):
            return web.json_response({**whole, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        chunk = {**whole, "object": "chat.completion.chunk"}
        return await _stream(request, [{**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}])

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            event = orjson.loads(message.data)
            whole = {"id": self.make("resp"), "object": "response", "status": "completed", "output": [], "store": True}
            if event.get("type") == "response.create":
                await socket.send_json({"type": "response.created", "response": {**whole, "status": "in_progress"}})
                await socket.send_json({"type": "response.completed", "response": whole})
        return socket


def _references(body: dict[str, Any]) -> list[str]:
    """The ids that a body names."""
    conversation, container = body.get("conversation"), body.get("container")
    found = [
        body.get("previous_response_id"),
        conversation["id"] if isinstance(conversation, dict) else conversation,
        container,
    ]
    items = body.get("input")
    for item in items if isinstance(items, list) else ():
        found += [item["id"]] if item.get("type") == "item_reference" else []
        content = item.get("content")
        found += (
            [part.get("file_id") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        )
    for message in body.get("messages", ()):
        found.append((message.get("audio") or {}).get("id"))
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            found += [(part.get("file") or {}).get("file_id"), (part.get("source") or {}).get("file_id")]
    for tool in body.get("tools", ()):
        found += tool.get("vector_store_ids", ())
    return [one for one in found if isinstance(one, str)]


def _error(status: int, message: str, code: str) -> web.Response:
    fault = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return web.json_response({"error": fault}, status=status)


async def _stream(request: web.Request, events: list[dict[str, Any]]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": EVENTS})
    await response.prepare(request)
    for event in events:
        await response.write(b"data: %b\n\n" % orjson.dumps(event))
    await response.write(b"data: [DONE]\n\n" if "type" not in events[0] else b"")
    return response


@asynccontextmanager
async def keeper(name: str, **given: Any) -> AsyncIterator[Keeper]:
    """Run one server on a loopback port."""
    found = Keeper(name, **given)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        found.base_url = f"http://{host}:{port}/v1"
        yield found
    finally:
        await runner.cleanup()
