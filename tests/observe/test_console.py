"""On a terminal, a request is one line that a person can read along; piped, it is JSON with all fields."""

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.observe.log import sentence
from tests.running import ROOT

FOLDED = {
    "status": 200, "model": "gpt-4o", "method": "POST", "path": "/v1/chat/completions", "action": "fold", "why": "folded", "window": 2000,
    "tokens_before": 4035, "tokens_after": 1460, "turns_folded": 48, "attempts": 2, "total_ms": 1472.3, "request_id": "tf-a-1",
}  # fmt: skip
LINES = [
    ({}, "200  gpt-4o  fold (folded)  4,035 → 1,460 of 2,000 tokens  48 turns folded  2 calls  1.47 s  tf-a-1"),
    ({"action": "none", "why": "fits", "tokens_after": 4035, "window": 9000, "turns_folded": 0, "attempts": 1},
     "200  gpt-4o  none (fits)  4,035 of 9,000 tokens  1.47 s  tf-a-1"),
    ({"action": "off", "why": "off", "tokens_before": None, "turns_folded": 1, "attempts": 1}, "200  gpt-4o  off  1 turn folded  1.47 s  tf-a-1"),
    ({"model": "", "status": 404, "action": "none", "why": "unknown_endpoint", "path": "/v1/x", "method": "GET", "tokens_before": None, "turns_folded": 0, "attempts": 1},
     "404  GET /v1/x  none (unknown_endpoint)  1.47 s  tf-a-1"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "line"), LINES)
def test_a_request_is_told_in_one_line(changed, line):
    assert sentence({**FOLDED, **changed}) == line


SCRIPT = """
from gateway.observe.exchange import Exchange
from gateway.observe.log import ExchangeLog, configure
configure(form="auto")
log = ExchangeLog()
log.observe(Exchange.passed("tf-a-1", "not_chat", 200, method="GET", path="/v1/models", total_s=0.25, attempts=1))
log.write_now()
"""


def on_terminal() -> str:
    """Run the script with a terminal as its standard error, and return what a person sees."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=theirs, cwd=ROOT) as process:
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break  # the process has closed its end
            if not piece:
                break
            seen += piece
        process.wait()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", seen.decode())


def test_a_terminal_gets_a_line_for_people_and_a_pipe_gets_json(tmp_path: Path):
    line = on_terminal().strip()
    assert re.fullmatch(r"\d\d:\d\d:\d\d \[info +\] 200  GET /v1/models  none \(not_chat\)  0\.25 s  tf-a-1", line), (
        line
    )
    piped = subprocess.run([sys.executable, "-c", SCRIPT], stderr=subprocess.PIPE, cwd=ROOT, check=True).stderr
    assert piped.startswith(b"{")
    assert b'"path":"/v1/models"' in piped
