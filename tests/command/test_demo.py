"""The demo shows a conversation that fails without the gateway and succeeds with it, and ends by itself."""

import asyncio
import io

import pytest
from rich.console import Console

from gateway.command.demo import demo

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
