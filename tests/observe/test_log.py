"""Logs: one line a request, as JSON or for people, and never what somebody wrote."""

import io

import orjson
import pytest
import structlog
from msgspec.structs import replace

from gateway.observe.log import ExchangeLog, configure
from tests.observe.test_metrics import FOLDED


@pytest.fixture
def unconfigured():
    """Leave structlog as it was found."""
    yield
    structlog.reset_defaults()


def test_an_exchange_is_one_line_of_json_with_its_steps(unconfigured: None) -> None:
    stream = io.StringIO()
    configure(form="json", stream=stream)
    ExchangeLog().observe(FOLDED)
    lines = stream.getvalue().splitlines()

    assert len(lines) == 1
    line = orjson.loads(lines[0])
    assert line["event"] == "exchange"
    assert (line["action"], line["tokens_before"], line["tokens_after"]) == ("fold", 2500, 600)
    assert line["steps"][0] == {"stage": "digest", "saved": 1900, "detail": "10 lines"}
    assert line["total_ms"] == 300.0


def test_bytes_of_a_header_that_are_no_text_cost_no_line(unconfigured: None) -> None:
    stream = io.StringIO()
    configure(form="json", stream=stream)
    ExchangeLog().observe(replace(FOLDED, session="half \udcff"))

    assert orjson.loads(stream.getvalue())["session"] == "half ?"


def test_levels_below_the_configured_one_are_silent(unconfigured: None) -> None:
    stream = io.StringIO()
    configure(form="console", level="warning", stream=stream)
    ExchangeLog().observe(FOLDED)

    assert stream.getvalue() == ""


def test_on_a_terminal_nothing_of_a_client_steers_it() -> None:
    stream = io.StringIO()
    configure(form="console", level="info", stream=stream)
    try:
        structlog.get_logger().info("window_stated", model="x\x1b[2J\x07\r\nrow\u202e")
    finally:
        structlog.reset_defaults()
    assert all(sign.isprintable() or sign == "\n" for sign in stream.getvalue())
    assert stream.getvalue().count("\n") == 1
