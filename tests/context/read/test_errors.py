"""Rows of output that report errors are told from others."""

import pytest

from gateway.context.read.errors import reports_error


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("E   AssertionError: 3 != 4", True),
        ("FAILED tests/test_a.py", True),
        ("bash: foo: No such file or directory", True),
        ("Error: card declined", True),
        ("2024-05-01 request served in 3 ms", False),
        ("all good", False),
    ],
)
def test_errors_are_told_from_other_rows(line: str, error: bool) -> None:
    assert reports_error(line) is error
