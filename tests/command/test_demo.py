"""The demo shows a conversation that fails without the gateway and succeeds with it, and ends by itself."""

import asyncio
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from importlib import resources

import pytest
from rich.console import Console

from gateway.command.demo import clipped, demo
from tests.running import PATIENCE_S, ROOT

WIDTH = 130


@pytest.fixture
async def shown() -> str:
    """What the demo prints on a screen of ordinary width."""
    screen = io.StringIO()
    async with asyncio.timeout(30):
        await demo(Console(file=screen, width=WIDTH), pause_s=0)
    return screen.getvalue()


async def test_every_request_is_answered_through_the_gateway_and_most_are_refused_without(shown):
    assert "19 requests: 15 refused without Turnfold, 0 with it." in shown


async def test_what_the_last_question_needs_is_still_there(shown):
    assert shown.count("✓") == 4
    assert "✗" not in shown


@pytest.mark.parametrize("format", ["messages", "responses"])
async def test_the_other_formats_show_the_same(format):
    screen = io.StringIO()
    async with asyncio.timeout(30):
        await demo(Console(file=screen, width=WIDTH), pause_s=0, format=format)

    assert ", 0 with it." in screen.getvalue()
    assert "0 refused without" not in screen.getvalue()
    assert screen.getvalue().count("✓") == 4


async def test_no_line_is_wider_than_the_screen(shown):
    assert max(map(len, shown.splitlines())) <= WIDTH


async def test_a_small_terminal_gets_pages_that_fit_and_no_cut_word():
    """Two pages of 80x24: the requests, then the last one with the closing words."""
    screen = io.StringIO()
    async with asyncio.timeout(30):
        await demo(Console(file=screen, width=80, height=24), pause_s=0)
    text = screen.getvalue()
    requests, last = text.split("╭", 1)
    said = resources.files("gateway").joinpath("data/demo.json").read_text("utf-8")
    clipped_words = [line.partition("…")[0].split()[-1] for line in requests.splitlines() if "…" in line]

    assert max(map(len, text.splitlines())) <= 80
    assert len(requests.splitlines()) <= 24
    assert len(last.splitlines()) <= 24
    assert clipped_words
    assert [word for word in clipped_words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said)] == []
    assert "turns folded" in requests
    assert text.count("✓") == 4


def read_until(terminal, wanted=None):
    """Read what a program writes to its terminal until it has written this, or until it ends; fail when it is silent."""
    seen = b""
    while wanted is None or wanted not in seen:
        readable, _, _ = select.select([terminal], [], [], PATIENCE_S)
        assert readable, f"nothing more was written behind {seen[-200:]!r}"
        try:
            more = os.read(terminal, 1 << 16)
        except OSError:  # so Linux tells that the other side is closed
            break
        seen += more
    return seen.decode(errors="replace")


@pytest.fixture
def heeding_ctrl_c():
    """Children heed Ctrl-C, as at a terminal; those of a shell's job in the background, such as CI may be, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding_ctrl_c")
@pytest.mark.parametrize("ends", [True, False], ids=["Enter", "Ctrl-C"])
def test_on_a_terminal_the_last_request_waits_for_enter(ends):
    """A terminal of 80x24, as a person has it: the first page stands until Enter is pressed, and Ctrl-C ends the demo in peace."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    try:
        assert "✓" not in read_until(ours, b"Enter shows the last request."), "what follows is not shown yet"
        if ends:
            os.write(ours, b"\r")
        else:
            process.send_signal(signal.SIGINT)
        rest = read_until(ours)
        assert process.wait(PATIENCE_S) == 0
        assert rest.count("✓") == (4 if ends else 0)
        assert "Traceback" not in rest
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 10, "short"),
        ("cut between words here", 12, "cut between…"),
        ("cut between words here", 13, "cut between…"),
        ("cut between words here", 18, "cut between words…"),
        ("   indented text here", 12, "   indented…"),
        ("onewordthatistoolong", 8, "oneword…"),
    ],
)
def test_a_text_is_cut_between_words(text, width, shown):
    assert clipped(text, width) == shown
    assert len(clipped(text, width)) <= width
