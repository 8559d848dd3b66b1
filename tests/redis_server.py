"""A real Redis (or Valkey) server on loopback, in a directory of its own, for as long as a test needs it."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.running import free_ports

BINARY = shutil.which("redis-server") or shutil.which("valkey-server")
REASON = "no redis-server or valkey-server is installed"


def free_port() -> int:
    """Find a port that nobody listens on; it stays free while a server restarts."""
    return free_ports(1)[0]


class RedisServer:
    """One server process; it can be stopped and started again on the same port, keeping its data."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and return when it accepts connections."""
        assert BINARY is not None, REASON
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._directory)]
        self._process = subprocess.Popen(
            [BINARY, *arguments, "--appendonly", "yes"], stdout=subprocess.PIPE, text=True, cwd=self._directory
        )
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if "Ready to accept connections" in line:
                return
        raise AssertionError(f"redis-server ended: {''.join(said)}")

    def kill(self) -> None:
        """End the server as a crash does: without a word to its clients."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=10)

    def stop(self) -> None:
        """End the server; stopping a stopped one is fine."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.communicate(timeout=10)


@contextmanager
def running_redis(directory: Path) -> Iterator[RedisServer]:
    """Run a server for the tests in a ``with`` block. They are skipped where none is installed."""
    if BINARY is None:
        pytest.skip(REASON)
    server = RedisServer(directory)
    server.start()
    try:
        yield server
    finally:
        server.stop()
