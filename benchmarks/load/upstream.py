"""The upstream of the load: answers whose every byte follows from the request, so that a wrong one is seen."""

import asyncio
import hashlib
import sys

import orjson
from aiohttp import web

CHUNKS = 100
CHARACTERS_A_TOKEN = 4


def pieces(seed: str) -> list[bytes]:
    """The events of the stream that answers a request with this ``user``."""
    texts = [hashlib.sha256(f"{seed} {number}".encode()).hexdigest() for number in range(CHUNKS)]
    events = [orjson.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) for text in texts]
    return [b"data: " + event + b"\n\n" for event in (*events, b"[DONE]")]


async def answer(request: web.Request) -> web.StreamResponse:
    """Stream slowly where a stream is wanted; else tell what arrived, and bill it by its length."""
    raw = await request.read()
    if request.path == "/v1/models":
        return web.json_response({"object": "list", "data": []})
    body = orjson.loads(raw)
    if body.get("stream"):
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces(body["user"]):
            await response.write(piece)
            await asyncio.sleep(body["pause_s"])
        return response
    said = {"sha256": hashlib.sha256(raw).hexdigest(), "last": body["messages"][-1], "count": len(body["messages"])}
    return web.json_response(
        {
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": orjson.dumps(said).decode()}}],
            "usage": {"prompt_tokens": len(raw) // CHARACTERS_A_TOKEN, "completion_tokens": 30},
        }
    )  # fmt: skip


def main() -> None:
    """Serve on the port given."""
    app = web.Application(client_max_size=2**27)
    app.router.add_route("*", "/{path:.*}", answer)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
