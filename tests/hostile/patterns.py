"""Finds every regular expression of the product: prints them as JSON, with the place where each is made and how it is used.

Run in a process of its own: it notes what is compiled while all modules are imported and the lazy ones are asked for theirs.
"""

import ast
import importlib
import json  # noqa: TID251  # read by the test that runs this; bytes travel as latin-1
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gateway", "providers")
ANCHORED = {"match", "fullmatch"}
CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
LONGEST_CALL = 40
"""Lines from where a call of `re` begins to where its pattern may stand."""


@dataclass(frozen=True)
class Site:
    """A call of `re` in the source, the pattern where it stands there, and the methods by which its result is used in the file."""

    file: str
    line: int
    constant: str | None
    methods: frozenset[str]


def lazily() -> None:
    """Ask for the patterns that are only made when they are first needed."""
    importlib.import_module("providers.overflow.signs").prepare()
    importlib.import_module("gateway.context.life.refusal_numbers")._number_contexts("12 tokens", 12)


def sites() -> Iterator[Site]:
    """All calls of `re`."""
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            nodes = list(ast.walk(ast.parse(file.read_text())))
            uses: dict[str, set[str]] = {}
            names: dict[int, str] = {}
            for node in nodes:
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    uses.setdefault(node.value.id, set()).add(node.attr)
                if isinstance(node, ast.Assign | ast.AnnAssign):
                    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                    names[id(node.value)] = target.id if isinstance(target, ast.Name) else ""
            for node in nodes:
                if (method := _method_of_re(node)) and isinstance(node, ast.Call):
                    first = node.args[0] if node.args else None
                    constant = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
                    methods = uses.get(names.get(id(node), ""), set()) if method == "compile" else {method}
                    yield Site(str(file.relative_to(ROOT)), node.lineno, constant, frozenset(methods))


def _method_of_re(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if function.attr in CALLS else ""
    return ""


def compiled() -> Iterator[tuple[str, int, str | bytes, int]]:
    """What is compiled while everything is imported: file, line, pattern, flags."""
    made: list[tuple[str, int, str | bytes, int]] = []
    compile_ = re._compile

    def noting(pattern, flags):
        frame = sys._getframe(2)
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(ROOT) and not isinstance(pattern, re.Pattern):
            made.append((str(file.relative_to(ROOT)), frame.f_lineno, pattern, int(flags)))
        return compile_(pattern, flags)

    re._compile = noting
    for package in PACKAGES:
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    lazily()
    re._compile = compile_
    return (row for row in made if row[0].split("/")[0] in PACKAGES)


def main() -> None:
    known = list(sites())
    rows, reached = [], set()
    for file, line, pattern, flags in compiled():
        near = [site for site in known if site.file == file and site.line <= line <= site.line + LONGEST_CALL]
        site = max(near, key=lambda each: each.line, default=Site(file, line, None, frozenset()))
        reached.add(site)
        text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        rows.append((site, text, isinstance(pattern, bytes), flags))
    rows += [(site, site.constant, False, 0) for site in known if site not in reached and site.constant is not None]
    missed = [f"{site.file}:{site.line}" for site in known if site not in reached and site.constant is None]
    patterns = [
        {
            "file": site.file,
            "line": site.line,
            "pattern": text,
            "bytes": is_bytes,
            "flags": flags,
            "anchored": bool(site.methods) and site.methods <= ANCHORED,
        }
        for site, text, is_bytes, flags in rows
    ]
    sys.stdout.write(json.dumps({"patterns": patterns, "missed": sorted(missed)}))


if __name__ == "__main__":
    main()
