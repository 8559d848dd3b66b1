"""The upstream of the soak: streams as slow as asked for, answers that tell what arrived. Run with a port."""

import asyncio
import hashlib
import sys
from functools import partial

import orjson
from aiohttp import web

from benchmarks.soak.formats import CHARACTERS_A_TOKEN, FORMATS, Format, text_of


async def answer(format: Format, request: web.Request) -> web.StreamResponse:
    """Stream what follows from the seed, where a stream is wanted; else tell what arrived, and bill it by its length."""
    raw = await request.read()
    body = orjson.loads(raw)
    if not body.get("stream"):
        said = {"sha256": hashlib.sha256(raw).hexdigest(), "last": text_of(body[format.items][-1])}
        await asyncio.sleep(body.get("pause_s", 0))
        return web.json_response(format.answer(orjson.dumps(said).decode(), len(raw) // CHARACTERS_A_TOKEN))
    response = web.StreamResponse(headers={"content-type": format.media_type})
    await response.prepare(request)
    for piece in format.pieces(body["user"], body.get("size", 0)):
        await response.write(piece)
        if body["pause_s"]:
            await asyncio.sleep(body["pause_s"])
    return response


async def nothing(request: web.Request) -> web.StreamResponse:
    """Answer anything else: a model list without models."""
    await request.read()
    return web.json_response({"object": "list", "data": []})


def main() -> None:
    """Serve on the port given."""
    app = web.Application(client_max_size=2**27)
    for format in FORMATS:
        app.router.add_post(format.path, partial(answer, format))
    app.router.add_route("*", "/{path:.*}", nothing)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None, reuse_port=True)


if __name__ == "__main__":
    main()
