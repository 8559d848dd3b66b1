"""The bare pass-through that Turnfold is compared with: aiohttp and uvloop, what a competent engineer would write in an hour."""

import asyncio
import sys

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

HOP_BY_HOP = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


def travelling(headers):
    return [(name, value) for name, value in headers.items() if name.lower() not in HOP_BY_HOP]


async def main(upstream: str, port: int) -> None:
    timeout = ClientTimeout(total=None, sock_connect=10)
    connector = TCPConnector(limit=0)
    async with ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, cookie_jar=DummyCookieJar()
    ) as session:

        async def forward(request: web.BaseRequest) -> web.StreamResponse:
            body = await request.read()
            headers = travelling(request.headers)
            async with session.request(
                request.method, upstream + request.path_qs, headers=headers, data=body
            ) as answer:
                response = web.StreamResponse(status=answer.status, headers=travelling(answer.headers))
                if answer.content_length is not None:
                    response.content_length = answer.content_length
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response

        runner = web.ServerRunner(web.Server(forward, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
