"""Every promise in docs/security.md names a test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    row.groups()
    for row in re.finditer(
        r"^\| ([^|]+) \| `(tests/[\w/]+\.py)::(\w+)` \|$", (ROOT / "docs/security.md").read_text(), re.M
    )
]


@pytest.mark.parametrize(("promise", "file", "name"), ROWS, ids=[row[0] for row in ROWS])
def test_a_promise_names_a_test_that_exists(promise, file, name):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.M), f"{promise}: no {name} in {file}"


def test_every_row_of_promises_names_a_test():
    table = (ROOT / "docs/security.md").read_text().partition("## What is promised")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ") and line != "| promise | test |"]
    assert len(rows) == len(ROWS) > 10
