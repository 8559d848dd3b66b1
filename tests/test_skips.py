"""In CI a skipped test fails, unless what it needs cannot be there."""

import os
import subprocess
import sys

import pytest

from tests.running import ROOT

TESTS = """
import pytest
def test_good(): pass
@pytest.mark.skipif(True, reason="frobnicator is not installed")
def test_marked(): pass
def test_called(): pytest.skip("the recorded conversations are not here")
@pytest.fixture
def server(): pytest.skip("no redis-server")
def test_with_a_fixture(server): pass
@pytest.mark.xfail
def test_known(): assert 0
"""

CASES = [
    # environment, failed or in error, skipped
    ({}, set(), {"marked", "called", "with_a_fixture"}),
    ({"TURNFOLD_NO_SKIPS": "1"}, {"marked", "with_a_fixture"}, {"called"}),
    ({"TURNFOLD_NO_SKIPS": "1", "TURNFOLD_ALLOWED_SKIPS": "redis-server,frobnicator"}, set(), {"marked", "called", "with_a_fixture"}),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "failed", "skipped"), CASES)
def test_a_skip_fails_where_it_is_not_allowed(tmp_path, environment, failed, skipped):
    (tmp_path / "test_some.py").write_text(TESTS)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TURNFOLD_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rA", "-p", "tests.skips", "-p", "no:cacheprovider", "-c", os.devnull, "test_some.py"],
        cwd=tmp_path, env={**clean, **environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    outcome = {
        line.split("::test_")[1].split()[0]: line.split()[1]
        for line in done.stdout.splitlines()
        if "::test_" in line and "%]" in line
    }
    assert {name for name, word in outcome.items() if word in ("FAILED", "ERROR")} == failed, done.stdout
    assert {name for name, word in outcome.items() if word == "SKIPPED"} == skipped
    assert (outcome["good"], outcome["known"]) == ("PASSED", "XFAIL")
    assert done.returncode == bool(failed)
