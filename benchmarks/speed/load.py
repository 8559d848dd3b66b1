"""Load: wrk for many requests at once, one connection for exact counts."""

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from benchmarks.speed.processes import Running

SCRIPT = """
local file = assert(io.open("{body}", "rb"))
wrk.method = "POST"
wrk.path = "/v1/chat/completions"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer sk-bench"
"""
UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


WRK = "/usr/bin/wrk"


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of load cost."""

    requests: int
    per_second: float
    latency_ms: float
    """The median."""
    cpu_ms: float
    """Of the proxy, per request."""


def wrk(proxy: Running, body: Path, *, connections: int, seconds: int) -> Round:
    """Send the same body over and over on several connections."""
    if not Path(WRK).exists():
        raise SystemExit(f"{WRK} is not there: apt-get install wrk")
    script = body.with_suffix(".lua")
    script.write_text(SCRIPT.format(body=body))
    before = proxy.cpu_s()
    load = [WRK, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency"]
    command = [*load, "-s", str(script), f"http://127.0.0.1:{proxy.port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cpu_s = proxy.cpu_s() - before
    if problem := re.search(r"(Non-2xx|Socket errors).*", done):
        raise RuntimeError(f"{proxy.name}: {problem[0]}")
    requests = int(re.search(r"(\d+) requests in", done)[1])  # type: ignore[index]
    per_second = float(re.search(r"Requests/sec:\s+([\d.]+)", done)[1])  # type: ignore[index]
    number, unit = re.search(r"50%\s+([\d.]+)(us|ms|s|m)", done).groups()  # type: ignore[union-attr]
    return Round(requests, per_second, float(number) * UNITS_MS[unit], 1000 * cpu_s / max(1, requests))


def one_by_one(proxy: Running, bodies: Sequence[bytes]) -> Round:
    """Send each body once, one after the other on one connection."""
    connection = HTTPConnection("127.0.0.1", proxy.port, timeout=60)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench"}
    took: list[float] = []
    before, began = proxy.cpu_s(), time.perf_counter()
    for body in bodies:
        sent = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{proxy.name}: answered {answer.status}")
        took.append(time.perf_counter() - sent)
    elapsed, cpu_s = time.perf_counter() - began, proxy.cpu_s() - before
    connection.close()
    return Round(len(bodies), len(bodies) / elapsed, 1000 * median(took), 1000 * cpu_s / len(bodies))
