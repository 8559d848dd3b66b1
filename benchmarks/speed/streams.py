"""An upstream that answers every request with a stream of 100 small events, each in a packet of its own."""

import asyncio
import sys

import uvloop

CHUNKS = 100
GAP_S = 0.003
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1760000000,'
    b'"model":"fits","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'
)
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


class Stream(asyncio.Protocol):
    """One connection: reads requests by their length and answers each with the stream."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if found and len(body) >= length_of(head):
            self.received = b""
            self.transport.write(HEAD)
            self.send(CHUNKS)

    def send(self, left: int) -> None:
        if self.transport.is_closing():
            return
        if left == 0:
            self.transport.write(END)
            return
        self.transport.write(CHUNK)
        asyncio.get_running_loop().call_later(GAP_S, self.send, left - 1)


def length_of(head: bytes) -> int:
    """Read the length of the body from the head of a request."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Stream, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
