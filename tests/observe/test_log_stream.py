"""The stream of the log: whoever reads it, or does not, the gateway serves on."""

import asyncio
import fcntl
import io
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import orjson
import structlog

from gateway.observe.log import configure, lost_lines
from gateway.observe.log_stream import LogStream
from gateway.standin import StandIn
from tests.fakes import user
from tests.running import PATIENCE_S, ROOT, Gateway, answering, client, configured, free_ports

ASK = {"model": "gpt-4o", "messages": [user("hi")]}


def small_pipe() -> tuple[int, int]:
    """Return the ends of a pipe that holds one page."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)
    return reader, writer


async def test_a_log_that_nobody_reads_stops_neither_requests_nor_the_end(tmp_path: Path) -> None:
    reader, writer = small_pipe()
    port, admin_port = free_ports(2)
    async with StandIn() as standin, client() as session:
        file = tmp_path / "turnfold.yaml"
        file.write_text(
            configured(
                standin,
                {"server": {"port": port}, "admin": {"port": admin_port}, "log": {"format": "json"}},
            )
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "serve", "--config", str(file),
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=writer, stderr=writer,
        )  # fmt: skip
        try:
            await answering(port, process)
            gateway = Gateway(f"http://127.0.0.1:{port}/v1", f"http://127.0.0.1:{admin_port}", session)
            statuses = [(await gateway.chat(ASK)).status for _ in range(30)]
            process.send_signal(signal.SIGTERM)
            ended = await asyncio.wait_for(process.wait(), PATIENCE_S)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            for end in (reader, writer):
                os.close(end)
    assert (statuses, ended) == ([200] * 30, 0)


def test_lines_beyond_the_bound_are_lost_and_counted_and_the_others_come_in_order() -> None:
    reader, writer = small_pipe()
    with os.fdopen(writer, "w") as stream:
        lines = LogStream(stream, most_waiting=20_000)
        for number in range(1000):
            lines.write(f"{number:099}\n")
        kept = 1000 - lines.lost
        assert 200 <= kept <= 200 + 4096 // 100  # the thread may have filled the pipe already
        read = b""
        while read.count(b"\n") < kept:
            read += os.read(reader, 65536)
        lines.finish(PATIENCE_S)
    os.close(reader)
    numbers = [int(line) for line in read.split()]
    assert (len(numbers), numbers) == (kept, sorted(set(numbers)))


def test_a_pipe_that_another_program_made_non_blocking_gets_every_line() -> None:
    reader, writer = small_pipe()
    os.set_blocking(writer, False)
    with os.fdopen(writer, "w") as stream:
        lines = LogStream(stream)
        lines.write("x" * 9_999 + "\n")
        read = b""
        while not read.endswith(b"\n"):
            read += os.read(reader, 65536)
        lines.finish(PATIENCE_S)
    os.close(reader)
    assert (len(read), lines.lost) == (10_000, 0)


def test_lines_to_a_pipe_without_a_reader_are_counted() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    try:
        configure(form="json", stream=stream)
        structlog.get_logger().info("serving")
        factory = structlog.get_config()["logger_factory"]
        factory.lines._stream.finish(PATIENCE_S)
        assert lost_lines() == 1
    finally:
        structlog.reset_defaults()
        stream.close()


def test_after_lost_lines_the_log_says_how_many() -> None:
    said = io.StringIO()
    reader, writer = small_pipe()
    structlog.configure(
        logger_factory=structlog.WriteLoggerFactory(file=said), processors=[structlog.processors.JSONRenderer()]
    )
    try:
        with os.fdopen(writer, "w") as stream:
            lines = LogStream(stream, most_waiting=10)
            lines.write("longer than ten\n")
            lines.write("short\n")
            lines.finish(PATIENCE_S)
            lines.write("short\n")
            lines.finish(PATIENCE_S)
    finally:
        structlog.reset_defaults()
    os.close(reader)
    assert orjson.loads(said.getvalue()) == {"event": "log_lines_lost", "since_start": 1}
