"""What aiohttp's servers say of a request goes into no log; faults of our own are passed on."""

import pytest
from aiohttp import http_exceptions

from gateway.serve.incoming.http_log import http_log

FAULT = ValueError("sk-secret")


@pytest.mark.parametrize(
    ("error", "passed_on"), [(FAULT, [("a port", FAULT)]), (http_exceptions.InvalidHeader("sk-secret"), []), (None, [])]
)
def test_faults_are_passed_on_and_broken_requests_are_not(capfd, error, passed_on):
    found = []
    http_log("a port", lambda part, error: found.append((part, error))).exception("quoted: sk-secret", exc_info=error)
    assert found == passed_on
    assert capfd.readouterr() == ("", "")
