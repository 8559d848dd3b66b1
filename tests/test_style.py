"""How the source reads: constants say what they are, functions return, and the words are common ones."""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for room in ("gateway", "providers", "turnfold") for path in (ROOT / room).rglob("*.py"))

OBSCURE = re.compile(
    r"\b(whoever|whomever|whosoever|somebody|anybody|thereof|whereof|hitherto|lest|ere|is no matter|in thought)\b", re.I
)
"""Words for which plain English has a shorter or clearer one: name the subject instead."""

BANNED_OPENINGS = re.compile(r"(whether|answers? (the|its|how|what|each|all))\b", re.I)
"""A function returns. Requests are answered, so "Answer a request ..." is fine."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def documented(path: Path) -> Iterator[tuple[ast.AST, str]]:
    """Every docstring with its owner; a text after an assignment belongs to the assignment."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for index, statement in enumerate(body):
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
                continue
            if isinstance(statement.value.value, str):
                yield (body[index - 1] if index else node), statement.value.value


def comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def is_number(value: ast.expr | None) -> bool:
    """A number, or arithmetic with one."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    return isinstance(value, ast.BinOp) and (is_number(value.left) or is_number(value.right))


def bare_constants(source: str) -> list[str]:
    """The constants of a module that are numbers and have neither a docstring nor a comment."""
    said = comments(source)
    body = ast.parse(source).body
    bare = []
    for index, statement in enumerate(body):
        if not isinstance(statement, ast.AnnAssign) or ast.unparse(statement.annotation) != "Final":
            continue
        after = body[index + 1] if index + 1 < len(body) else None
        has_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        has_comment = {statement.lineno - 1, statement.lineno, statement.end_lineno} & set(said)
        if is_number(statement.value) and not has_text and not has_comment:
            bare.append(ast.unparse(statement.target))
    return bare


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_numeric_constant_has_its_unit_and_source_beside_it(path: Path) -> None:
    assert bare_constants(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_docstrings_and_comments_use_common_words(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    texts = [text for _, text in documented(path)] + list(comments(source).values())
    assert [found[0] for text in texts for found in OBSCURE.finditer(text)] == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_function_returns_it_does_not_answer(path: Path) -> None:
    functions = [
        (owner.name, text)
        for owner, text in documented(path)
        if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef)
        if not any(ast.unparse(mark).endswith("property") for mark in owner.decorator_list)
    ]
    assert [name for name, text in functions if BANNED_OPENINGS.match(text)] == []
    assert [name for name, text in functions if re.search(r"[;,:] answers? (the|its|how|whether|with)\b", text)] == []


NAMED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.(?!py\b|txt\b)\w+)*)`(?!`)")
"""A name between single backticks. Double ones are for values."""
OF_OTHERS = {
    "StringIO", "benchmarks", "BodySendMode", "HeaderAppendAction", "OVERWRITE_IF_EXISTS_OR_ADD", "ServingStatus"
}  # fmt: skip
"""Names of Python, of the benchmarks and of Envoy's interface."""


@functools.cache
def names_in_code() -> frozenset[str]:
    """Every word of the code but its docstrings and comments, and every part of a module's name."""
    found = {part for path in SOURCES for part in path.relative_to(ROOT).with_suffix("").parts}
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        documentation = {text for _, text in documented(path)}
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            is_text = token.type == tokenize.STRING and token.string.strip('"') in documentation
            if token.type != tokenize.COMMENT and not is_text:
                found.update(re.findall(r"\w+", token.string))
    return frozenset(found)


def unknown_names(text: str) -> list[str]:
    return [name for name in NAMED.findall(text) if not {*name.split(".")} <= names_in_code() | OF_OTHERS]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_the_names_in_docstrings_and_comments_are_in_the_code(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    texts = [text for _, text in documented(path)] + list(comments(source).values())
    assert [name for text in texts for name in unknown_names(text)] == []


def test_the_names_in_the_page_about_the_architecture_are_in_the_code() -> None:
    assert unknown_names((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")) == []


PACKAGES = [path for path in SOURCES if path.name == "__init__.py" and path.parent.name != "turnfold"]


@pytest.mark.parametrize("path", PACKAGES, ids=name_of)
def test_the_docstring_of_a_package_names_each_of_its_modules(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    modules = {each.stem for each in path.parent.glob("*.py")} | {
        each.parent.name for each in path.parent.glob("*/__init__.py")
    }
    missing = {name for name in modules if not name.startswith("__") and f"`{name}`" not in docstring}
    assert missing == set()


def test_the_check_finds_a_name_that_is_gone() -> None:
    assert unknown_names("`LinePool.lines` is there, and ``any`` value; `LinePool.former_name` is not.") == [
        "LinePool.former_name"
    ]


@pytest.mark.parametrize(
    ("source", "bare"),
    [
        ("LIMIT: Final = 3\n", ["LIMIT"]),
        ("LIMIT: Final = -2 * 3600.0\n", ["LIMIT"]),
        ('LIMIT: Final = 3\n"""Retries."""\n', []),
        ("LIMIT: Final = 3  # retries\n", []),
        ("# Retries.\nLIMIT: Final = 3\n", []),
        ('NAME: Final = "three"\n', []),
        ("OPEN: Final = True\n", []),
    ],
)
def test_the_check_finds_a_constant_without_a_text(source: str, bare: list[str]) -> None:
    assert bare_constants(source) == bare
