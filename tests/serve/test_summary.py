"""A conversation with a summariser is laid out once a request, and off the event loop where it is long."""

import threading
from typing import Any

import pytest

from gateway.context.cut import cutting
from gateway.state.threads import INLINE
from tests.fakes import chat

CONFIG = {
    "models": {"m": {"context_window": 8192}, "s": {"context_window": 128_000}},
    "fold": {"summary": {"model": "s", "at": 0.1}},
}


@pytest.fixture
def laid_out(monkeypatch) -> list[str]:
    """The threads in which conversations were laid out, in order."""
    threads: list[str] = []
    real = cutting._make_layout

    def counted(source: Any) -> Any:
        threads.append(threading.current_thread().name)
        return real(source)

    monkeypatch.setattr(cutting, "_make_layout", counted)
    return threads


@pytest.mark.parametrize("turns", [40, 160])
async def test_each_request_is_laid_out_once_and_a_long_one_off_the_event_loop(gateway, standin, laid_out, turns):
    running = await gateway(standin, CONFIG)
    body = {"model": "m", "messages": chat(turns, 300)}
    answer = await running.chat(body)
    await running.settled()
    assert answer.action == "fold"
    assert len(standin.requests) > 1, "a summary was asked for"
    assert len(laid_out) == 1
    is_long = sum(len(str(message)) for message in body["messages"]) > INLINE
    assert (laid_out[0] != threading.main_thread().name) is is_long


async def test_what_fits_is_laid_out_only_for_its_summary_and_never_on_the_loop(gateway, standin, laid_out):
    running = await gateway(standin, CONFIG)
    answer = await running.chat({"model": "m", "messages": chat(12, 230)})
    await running.settled()
    assert answer.action == "none"
    assert len(laid_out) == 1
    assert laid_out[0] != threading.main_thread().name
