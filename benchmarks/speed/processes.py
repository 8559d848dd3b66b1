"""Processes under measurement: how they are started, what they cost, how they end."""

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Running:
    """A process that serves on a port of the loopback interface."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    first_answer_s: float
    """From start to the first answer."""

    def pids(self) -> list[int]:
        """The process and its children (nginx answers in a worker)."""
        found = [self.process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        return found

    def cpu_s(self) -> float:
        """User and system time so far, of all threads."""
        return sum(cpu_s(pid) for pid in self.pids())

    def resident(self) -> int:
        """Resident memory in bytes."""
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE for pid in self.pids())

    def stop(self) -> None:
        """End the process and wait for it."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def cpu_s(pid: int) -> float:
    """User and system time of one process so far, of all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def start(name: str, command: Sequence[str], port: int, folder: Path, path: str = "/v1/models") -> Running:
    """Start a server and wait for its first answer, whatever its status but 503: not ready. Python code is compiled once, as if installed."""
    log = folder / f"{name}.log"
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    began = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ)
    while time.perf_counter() - began < 20:
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended with {process.returncode}: {' '.join(command)}\n{_tail(log)}")
        if _answers(port, path):
            return Running(name, process, port, time.perf_counter() - began)
        time.sleep(0.002)
    process.kill()
    raise RuntimeError(f"{name} does not answer on port {port}\n{_tail(log)}")


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]


def _answers(port: int, path: str) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    except OSError:
        return False
    finally:
        connection.close()
    return answer.status != 503


def free_port(in_a_row: int = 1) -> int:
    """Find a port nobody listens on, with the ports behind it if several in a row are needed."""
    while True:
        with ExitStack() as stack:
            first = _bound(stack, 0)
            try:
                for further in range(1, in_a_row):
                    _bound(stack, first + further)
            except (OSError, OverflowError):
                continue
            return first


def _bound(stack: ExitStack, port: int) -> int:
    probe = stack.enter_context(socket.socket())
    probe.bind(("127.0.0.1", port))
    return int(probe.getsockname()[1])
