"""A pytest plugin: where ``TURNFOLD_NO_SKIPS`` is set, a test that is skipped fails.

`.ci/run` sets it, since it installs what tests need. ``TURNFOLD_ALLOWED_SKIPS`` names, separated by commas, what it could not install: a
skip whose reason has one of these words is let pass, and so are those of `ALLOWED`.
"""

import os
from collections.abc import Generator
from typing import Any, Final

import pytest

ALLOWED: Final = {
    "the recorded conversations are not here": "data sets that are too large for the repository",
    "no recorded bills at": "data sets that are too large for the repository",
}
"""Reasons that hold in CI too, and why."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Turn a skip into a failure, unless it is allowed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("TURNFOLD_NO_SKIPS"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"skipped where nothing may be: {reason}"
    return report


def is_allowed(reason: str) -> bool:
    """Say whether a skip for this reason is let pass."""
    named = [word for word in os.environ.get("TURNFOLD_ALLOWED_SKIPS", "").split(",") if word]
    return any(word in reason for word in (*ALLOWED, *named))
