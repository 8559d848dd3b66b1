"""The catalogue of cases names, for each, a test that holds it; code that speaks of a case finds it there."""

import ast
import re
from functools import cache

import pytest

from tests.running import ROOT

ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
CATALOGUE = {int(number): (text, re.findall(r"`([^`]+)`", tests)) for number, text, tests in
             ROW.findall((ROOT / "docs" / "cases.md").read_text("utf-8"))}  # fmt: skip
MENTIONED = re.compile(r"\b[Cc]ases? (\d+(?:(?:, | and )\d+)*)")


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of the tests of a file."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_place_that_contributors_are_sent_to_is_there():
    rows = re.findall(r"^\| .+ \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    places = [place for row in rows for place in re.findall(r"`((?:gateway|providers|config|tests)/[^`]*)`", row)]
    assert len(places) >= 20
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_the_numbers_are_without_gaps():
    assert list(CATALOGUE) == list(range(1, len(CATALOGUE) + 1))
    assert len(CATALOGUE) >= 127


@pytest.mark.parametrize("number", CATALOGUE)
def test_every_case_has_a_test_that_exists(number):
    text, tests = CATALOGUE[number]
    assert text
    assert tests
    for test in tests:
        file, name = test.split("::")
        assert name in names_in(file), f"docs/cases.md, case {number}: {test} is not there (renamed?)"


def test_every_case_that_code_speaks_of_is_in_the_catalogue():
    files = [path for folder in ("gateway", "providers", "turnfold", "tests") for path in (ROOT / folder).rglob("*.py")]
    mentioned = {
        int(number)
        for path in files
        for numbers in MENTIONED.findall(path.read_text("utf-8"))
        for number in re.findall(r"\d+", numbers)
    }
    assert len(mentioned) > 20
    assert mentioned <= CATALOGUE.keys()
