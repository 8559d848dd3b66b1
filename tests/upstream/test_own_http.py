"""Our own client: on the wire stands what was given, and an answer is what the upstream sent to this request and nothing else."""

import asyncio
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.own_http import OwnHttp
from gateway.upstream.received import BUFFER
from gateway.upstream.response import AskFailed, BrokenOff, Disconnected, InvalidHttp, NotConnected, read_body
from gateway.upstream.sending import AT_ONCE, PIECE

LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=600)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ALL = 2**30


class Upstream:
    """Plays one script for each request: pieces of bytes, written one after the other; None closes the connection."""

    def __init__(self, *scripts: tuple[bytes | None, ...]) -> None:
        self.scripts = list(scripts)
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.connections = self.open = 0
        self.early = False
        """Whether it answers before it has read the body."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                if not self.early:
                    self.bodies.append(await self._body(head, reader))
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                for piece in script:
                    if piece is None:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self.open -= 1

    async def _body(self, head: bytes, reader: asyncio.StreamReader) -> bytes:
        fields = dict(line.lower().split(b": ", 1) for line in head.strip().split(b"\r\n")[1:])
        if fields.get(b"transfer-encoding") != b"chunked":
            return await reader.readexactly(int(fields.get(b"content-length", 0)))
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return body


@asynccontextmanager
async def asking(*scripts):
    """An upstream, and a function that asks it."""
    upstream = Upstream(*(script if isinstance(script, tuple) else (script,) for script in scripts or (OK,)))
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    http = OwnHttp()

    async def ask(method="POST", headers=(), body=b"x", limits=LIMITS):
        url = URL(f"http://127.0.0.1:{port}/v1/a%2Fb?q=%20", encoded=True)
        async with asyncio.timeout(20):
            return await http.send(method, url, CIMultiDict(headers), body, tls=True, limits=limits)

    ask.http = http
    yield upstream, ask
    await http.close()
    server.close()
    async with asyncio.timeout(20):
        while upstream.open:  # noqa: ASYNC110  # the upstream has no event for it
            await asyncio.sleep(0)


async def whole(response):
    async with asyncio.timeout(20):
        return await read_body(response, ALL)


def stream_of(*pieces, error=None):
    """A client's body, whose bytes are there already."""
    reader = aiohttp.StreamReader(aiohttp.base_protocol.BaseProtocol(asyncio.get_running_loop()), 2**16)
    for piece in pieces:
        reader.feed_data(piece)
    if error is not None:
        reader.set_exception(error)
    else:
        reader.feed_eof()
    return reader


async def test_the_head_carries_the_headers_given_and_host_and_length_alone():
    async with asking() as (upstream, ask):
        response = await ask("POST", {"X-One": "1", "authorization": "Bearer k"}, b"{}")
        assert (response.status, response.reason, await whole(response)) == (200, "OK", b"ok")
        line, *headers = upstream.heads[0].decode().strip().split("\r\n")
        assert line == "POST /v1/a%2Fb?q=%20 HTTP/1.1"
        names = sorted(header.partition(":")[0].lower() for header in headers)
        assert names == ["authorization", "content-length", "host", "x-one"]


async def test_bytes_of_a_header_that_are_no_text_arrive_as_they_are():
    async with asking() as (upstream, ask):
        await ask("GET", {"x-odd": "caf\udce9 ü"}, None)
        assert b"x-odd: caf\xe9 \xc3\xbc\r\n" in upstream.heads[0]


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\rb", "a\0b"])
async def test_a_header_that_would_end_its_line_is_not_sent(value):
    async with asking() as (upstream, ask):
        with pytest.raises(ValueError, match="line"):
            await ask("GET", {"x-odd": value}, None)
        assert upstream.connections == 0


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
async def test_a_request_without_a_body_has_none(method):
    async with asking() as (upstream, ask):
        assert await whole(await ask(method, {}, None)) == b"ok"
        assert upstream.bodies == [b""]


@pytest.mark.parametrize("size", [0, 1, AT_ONCE, AT_ONCE + 1, 3 * PIECE + 5, 9 * 2**20])
async def test_a_body_of_any_size_arrives_whole_and_in_order(size):
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    async with asking() as (upstream, ask):
        for _ in range(2):
            assert await whole(await ask("POST", {}, body)) == b"ok"
        assert upstream.bodies == [body, body]
        assert upstream.connections == 1


@pytest.mark.parametrize("headers", [{}, {"content-length": "9"}], ids=["chunked", "of known length"])
async def test_a_body_that_still_arrives_is_passed_on(headers):
    async with asking() as (upstream, ask):
        assert await whole(await ask("POST", headers, stream_of(b"abc", b"def", b"ghi"))) == b"ok"
        assert upstream.bodies == [b"abcdefghi"]


async def test_a_body_that_breaks_off_ends_the_request():
    async with asking() as (_, ask):
        with pytest.raises(Disconnected):
            await ask("POST", {}, stream_of(b"abc", error=ValueError("the client left")))
        assert await whole(await ask()) == b"ok"


async def test_one_connection_serves_many_requests():
    async with asking() as (upstream, ask):
        for number in range(5):
            assert await whole(await ask("POST", {}, b"%d" % number)) == b"ok"
        assert upstream.bodies == [b"0", b"1", b"2", b"3", b"4"]
        assert upstream.connections == 1


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = {
    "with a length": (OK, b"ok"),
    "empty": (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""),
    "in chunks": (CHUNKED + b"2\r\nok\r\n3\r\nay!\r\n0\r\n\r\n", b"okay!"),
    "in chunks with trailers": (CHUNKED + b"2\r\nok\r\n0\r\nx-left: over\r\nx-also:\r\n\r\n", b"ok"),
    "a huge chunk extension": (CHUNKED + b"2;" + b"e" * 500_000 + b"\r\nok\r\n0\r\n\r\n", b"ok"),
    "after 100 and 103": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK, b"ok"),
    "without a reason": (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", b"ok"),
    "lines that end in a line feed": (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", b"ok"),
    "blanks behind a value": (b"HTTP/1.1 200 OK\r\nx-one: 1 \t\r\ncontent-length: 2 \r\n\r\nok", b"ok"),
    "a header without a value": (b"HTTP/1.1 200 OK\r\nx-empty:\r\ncontent-length: 2\r\n\r\nok", b"ok"),
    "500 headers": (b"HTTP/1.1 200 OK\r\n" + b"x-h: 1\r\n" * 500 + b"content-length: 2\r\n\r\nok", b"ok"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "304 with a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b""),
}


@pytest.mark.parametrize("trickled", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize(("answer", "body"), WHOLE.values(), ids=list(WHOLE))
async def test_an_answer_is_read_however_it_is_framed_and_the_connection_used_again(answer, body, trickled):
    cut = tuple(answer[at : at + 1] for at in range(len(answer))) if trickled and len(answer) < 10_000 else (answer,)
    async with asking(cut, OK) as (upstream, ask):
        response = await ask()
        assert await whole(response) == body
        assert response.complete
        following = await ask()
        assert (following.status, await whole(following)) == (200, b"ok")
        assert list(following.headers.items()) == [("content-length", "2")], "nothing of one answer is in the next"
        assert upstream.connections == 1


@pytest.mark.parametrize("length", [b"content-length: 9\r\n", b"transfer-encoding: chunked\r\n", b""])
async def test_the_answer_to_head_has_no_body_and_the_connection_is_used_again(length):
    async with asking(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n", OK) as (upstream, ask):
        assert await whole(await ask("HEAD", {}, None)) == b""
        assert await whole(await ask()) == b"ok"
        assert upstream.connections == 1


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n",
                                  b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n"])  # fmt: skip
async def test_an_answer_without_an_end_lasts_until_the_connection_closes(head):
    async with asking((head + b"some", b" thing", None)) as (_, ask):
        response = await ask()
        assert await whole(response) == b"some thing"
        assert response.complete


BROKEN = {
    "a length not reached": b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    "a chunk not reached": CHUNKED + b"9\r\nhalf",
    "no last chunk": CHUNKED + b"4\r\nhalf\r\n",
    "a chunk that is no number": CHUNKED + b"4\r\nhalf\r\nzz\r\n",
    "trailers without end": CHUNKED + b"4\r\nhalf\r\n0\r\n" + b"x: y\r\n" * 5000,
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=list(BROKEN))
async def test_half_an_answer_breaks_off_after_what_has_come(answer):
    async with asking((answer, None)) as (_, ask):
        response = await ask()
        found = b""
        with pytest.raises(BrokenOff):
            while piece := await response.next_piece():
                found += piece
        assert found == b"half"
        assert not response.complete


INVALID = {
    "no HTTP": b"nonsense\r\n\r\n",
    "a status below 100": b"HTTP/1.1 000 Odd\r\ncontent-length: 2\r\n\r\nok",
    "a zero byte in a name": b"HTTP/1.1 200 OK\r\nbad\x00header: x\r\n\r\n",
    "a zero byte in a value": b"HTTP/1.1 200 OK\r\nbad: a\x00b\r\n\r\n",
    "a length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
    "a length below zero": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nok",
    "a switch of protocols that was not asked for": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "5000 headers": b"HTTP/1.1 200 OK\r\n" + b"x-h: 1\r\n" * 5000 + b"\r\n",
    "a header of 200 KB": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
    "a reason of 200 KB": b"HTTP/1.1 200 " + b"a" * 200_000 + b"\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 1_100_000,
    "1xx without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 50_000,
}


@pytest.mark.parametrize("answer", INVALID.values(), ids=list(INVALID))
async def test_what_is_no_http_raises_and_its_connection_is_not_used_again(answer):
    async with asking(answer) as (upstream, ask):
        for _ in range(2):
            with pytest.raises(InvalidHttp):
                await ask()
        assert upstream.connections == 2


@pytest.mark.parametrize("answer", [(None,), (b"HTTP/1.1 200 OK\r\ncontent-le", None)], ids=["nothing", "half a head"])
async def test_a_request_that_may_have_been_processed_is_not_sent_twice(answer):
    async with asking(answer, OK) as (upstream, ask):
        with pytest.raises(Disconnected):
            await ask("POST")
        assert len(upstream.heads) == 1


async def test_a_request_that_changes_nothing_is_sent_twice_and_no_more():
    async with asking((None,), OK) as (upstream, ask):
        assert await whole(await ask("GET", {}, None)) == b"ok"
        assert len(upstream.heads) == 2
    async with asking((None,)) as (upstream, ask):
        with pytest.raises(Disconnected):
            await ask("GET", {}, None)
        assert len(upstream.heads) == 2


SURPLUS = {
    "another answer": OK,
    "the beginning of one": b"HTTP/1.1 2",
    "no HTTP": b"x" * 100,
    "more body": b"body",
}


@pytest.mark.parametrize("surplus", SURPLUS.values(), ids=list(SURPLUS))
async def test_bytes_behind_an_answer_reach_no_other_request(surplus):
    async with asking(OK + surplus, OK) as (upstream, ask):
        assert await whole(await ask()) == b"ok"
        assert await whole(await ask()) == b"ok"
        assert upstream.connections == 2


@pytest.mark.parametrize(
    ("head", "connections"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n", 2),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: x, Close\r\n\r\n", 2),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 9\r\n\r\n", 2),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 9\r\nconnection: keep-alive\r\n\r\n", 1),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", 1),
        (b"HTTP/1.1 200 OK\r\n\r\n", 1),
    ],
)
async def test_after_an_answer_to_head_the_connection_is_used_again_only_where_it_stays(head, connections):
    """The upstream says `close` and does not close: the answer's head decides, not an end that may come a moment later."""
    async with asking(head) as (upstream, ask):
        for _ in range(2):
            assert (await ask("HEAD", {}, None)).status == 200
        assert upstream.connections == connections


@pytest.mark.parametrize("method", ["HEAD", "POST"])
async def test_a_body_where_none_may_be_reaches_no_other_request(method):
    answer = b"HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n\r\nevil" if method == "POST" else OK
    async with asking(answer, OK) as (upstream, ask):
        assert await whole(await ask(method, {}, None)) == b""
        assert await whole(await ask()) == b"ok"
        assert upstream.connections == 2


async def test_an_answer_on_an_idle_connection_closes_it():
    async with asking((OK, OK), OK) as (upstream, ask):
        assert await whole(await ask()) == b"ok"
        for _ in range(20):
            await asyncio.sleep(0)
        assert await whole(await ask()) == b"ok"
        assert upstream.connections == 2


async def test_a_connection_that_says_close_is_not_used_again():
    async with asking(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok") as (upstream, ask):
        for _ in range(2):
            assert await whole(await ask()) == b"ok"
        assert upstream.connections == 2


async def test_an_early_answer_is_given_while_the_body_is_still_being_sent_and_ends_the_connection():
    async with asking(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno") as (upstream, ask):
        upstream.early = True
        response = await ask("POST", {}, b"x" * 50_000_000)
        assert (response.status, await whole(response)) == (413, b"no")
        assert await whole(await ask("POST", {}, b"")) == b"no"
        assert upstream.connections == 2


async def test_a_slow_reader_holds_the_upstream_back_and_gets_every_byte():
    size = 40 * BUFFER
    async with asking((b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size, b"x" * size)) as (_, ask):
        response = await ask()
        async with asyncio.timeout(20):
            while not response.held_back:  # noqa: ASYNC110  # the transport has no event for it
                await asyncio.sleep(0)
        assert not response.complete
        assert len(await whole(response)) == size
        assert await whole(await ask("GET", {}, None)) == b"x" * size


async def test_a_cancelled_request_closes_its_connection():
    async with asking((b"HTTP/1.1 200",), OK) as (upstream, ask):
        waiting = asyncio.ensure_future(ask())  # noqa: TID251  # the test's own client
        async with asyncio.timeout(20):
            while not upstream.heads:  # noqa: ASYNC110  # the upstream has no event for it
                await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await whole(await ask()) == b"ok"
        assert upstream.connections == 2


async def test_a_closed_answer_gives_no_more_and_its_connection_is_not_used_again():
    async with asking((b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",), OK) as (upstream, ask):
        response = await ask()
        response.close()
        response.close()
        response.take()
        with pytest.raises(BrokenOff):
            await response.next_piece()
        assert await whole(await ask()) == b"ok"
        assert upstream.connections == 2


async def test_a_redirect_is_an_answer_like_any_other():
    answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://elsewhere/\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n"
    async with asking(answer) as (upstream, ask):
        response = await ask()
        assert (response.status, response.headers["Location"]) == (307, "http://elsewhere/")
        await ask()
        assert b"cookie" not in upstream.heads[1].lower()


async def test_a_compressed_answer_stays_compressed():
    async with asking(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8bzz") as (_, ask):
        assert await whole(await ask()) == b"\x1f\x8bzz"


async def test_a_port_on_which_nobody_listens_is_not_connected(unused_tcp_port):
    http = OwnHttp()
    with pytest.raises(NotConnected) as caught:
        await http.send(
            "GET", URL(f"http://127.0.0.1:{unused_tcp_port}/"), CIMultiDict(), None, tls=True, limits=LIMITS
        )
    assert isinstance(caught.value, AskFailed)
    await http.close()


async def test_unused_connections_are_closed_after_a_while():
    async with asking() as (upstream, ask):
        for _ in range(2):
            await whole(await ask())
            ask.http.close_idle(asyncio.get_running_loop().time() + 1000)
        assert upstream.connections == 2


async def test_headers_are_given_as_they_came_but_for_blanks_around_them():
    odd = b"X-One:  1 \t\r\nx-two: caf\xe9\r\nX-TWO:\r\nx-last: \xc3\xbc \r\n"
    async with asking(b"HTTP/1.1 200 \xfcber\r\ncontent-length: 0\r\n" + odd + b"\r\n") as (_, ask):
        response = await ask()
    assert list(response.headers.items())[1:] == [
        ("X-One", "1"),
        ("x-two", "caf\udce9"),
        ("X-TWO", ""),
        ("x-last", "ü"),
    ]
    assert response.reason == "\udcfcber"
