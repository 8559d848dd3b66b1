"""A YAML document in which every value knows its path and its line.

This module knows YAML and the environment, and nothing about settings. Environment values are inserted after the YAML
is parsed. So a value can neither break nor change the document, and messages show the ``${NAME}`` as written, never its
value.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import yaml

VARIABLE: Final = re.compile(r"\$\$|\$\{([^}]*)\}?")
NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.DOTALL)
ONE_VARIABLE: Final = re.compile(r"\$\{[A-Za-z0-9_]+\}\Z")
NUMBER: Final = re.compile(r"[+-]?[0-9][0-9_]*(\.[0-9]+)?\Z")
NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
MERGE: Final = "tag:yaml.org,2002:merge"
SHOWN_CHARS: Final = 60
"""Characters of a wrong value that an error message shows."""

# libyaml if PyYAML was built with it: it reads the same language ten times as fast.
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class WrongValue(ValueError):
    """A value is wrong; the text completes the sentence "... is not"."""


class DocumentReading(msgspec.Struct):
    """One pass over one document: its source, and all its problems."""

    where: str
    environ: Mapping[str, str]
    lines: dict[str, int] = {}
    written: dict[str, str] = {}
    """The written form of each value that came from the environment; messages show it instead of the value."""
    noted: list[tuple[int, str, str]] = []

    def note(self, path: str, text: str) -> None:
        """Add a problem; it is reported with the line of ``path`` or of its nearest parent."""
        parent = path
        while parent and parent not in self.lines:
            parent = parent.rpartition(".")[0]
        line = self.lines.get(parent, 1)
        self.noted.append(
            (line, path, f"{self.where}:{line}: {path}: {text}" if path else f"{self.where}:{line}: {text}")
        )

    def is_noted(self, path: str) -> bool:
        """Return whether a value already has a problem."""
        return any(noted == path for _, noted, _ in self.noted)

    def quoted(self, value: str) -> str:
        """Return a value's written form for a message, without a password."""
        return f'"{_without_password(self.written.get(value, value))}"'

    def problems(self) -> tuple[str, ...]:
        """Return all problems in the order of the file, each once."""
        return tuple(dict.fromkeys(text for _, _, text in sorted(self.noted, key=lambda noted: noted[0])))


def _without_password(written: str) -> str:
    """Return what a message shows of a value: the beginning, and of a URL no name and no password."""
    scheme, _, rest = written.partition("//")
    shown = f"{scheme}//***@{rest.rpartition('@')[2]}" if "@" in rest else written
    return shown if len(shown) <= SHOWN_CHARS else shown[:SHOWN_CHARS] + "..."


class Node(msgspec.Struct, frozen=True):
    """A value of the document and its path. Children are built on demand, so a document that refers to itself does no
    harm."""

    raw: yaml.Node
    path: str
    reading: DocumentReading

    def note(self, text: str) -> None:
        """Add a problem with this value."""
        self.reading.note(self.path, text)

    @property
    def is_null(self) -> bool:
        """Return whether no value is given: ``key:``, ``key: null``, or only empty variables."""
        if not isinstance(self.raw, yaml.ScalarNode):
            return False
        text = self.text()
        return text in NULLS and (not self.raw.style or text != self.raw.value)

    @property
    def is_literal(self) -> bool:
        """Return whether the value is as written, with nothing from the environment."""
        return isinstance(self.raw, yaml.ScalarNode) and self.text() == self.raw.value

    def text(self) -> str:
        """Return a single value with its variables inserted; raise `WrongValue` when it is missing or a variable is."""
        if not isinstance(self.raw, yaml.ScalarNode):
            raise WrongValue("a single value")
        text = substitute(self.raw.value, self.reading.environ)
        if text != self.raw.value:
            self.reading.written[text] = self.raw.value
        if "\0" in text:
            raise WrongValue("a text without the character U+0000")  # no name of a file or a host may have it
        return text

    def shown(self, *, secret: bool) -> str:
        """Return the value for a message, as written: no environment value, no password, no secret."""
        if not isinstance(self.raw, yaml.ScalarNode):
            return "a mapping" if isinstance(self.raw, yaml.MappingNode) else "a list"
        if secret and not ONE_VARIABLE.match(self.raw.value):
            return "the value (not shown)"
        written = _without_password(self.raw.value)
        return written if not self.raw.style and NUMBER.match(written) else f'"{written}"'

    def items(self) -> tuple["Node", ...]:
        """Read a list."""
        if not isinstance(self.raw, yaml.SequenceNode):
            raise WrongValue("a list")
        return tuple(self._child(str(index), node) for index, node in enumerate(self.raw.value))

    def entries(self) -> dict[str, "Node"]:
        """Read a mapping; a duplicate key is a problem, and its first value is kept."""
        if not isinstance(self.raw, yaml.MappingNode):
            raise WrongValue("a mapping of keys to values")
        found: dict[str, Node] = {}
        for key, value in self.raw.value:
            if key.tag == MERGE:
                continue
            if not isinstance(key, yaml.ScalarNode):
                self.note("a key must be a single value")
            elif key.value in found:
                first = self.reading.lines[found[key.value].path]
                self._child(key.value, value, key).note(f"is written twice, first on line {first}")
                self.reading.lines[found[key.value].path] = first
            else:
                found[key.value] = self._child(key.value, value, key)
        for merged in self._merged(self.raw, []):
            for key, value in merged.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != MERGE and key.value not in found:
                    found[key.value] = self._child(key.value, value, key)
        return found

    def _merged(self, mapping: yaml.MappingNode, seen: list[yaml.Node]) -> Iterator[yaml.MappingNode]:
        """Return the entries that ``<<: *anchor`` or ``<<: [*a, *b]`` merges, with those that they merge in turn."""
        for key, value in mapping.value:
            if key.tag == MERGE:
                for node in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if not isinstance(node, yaml.MappingNode):
                        self.note('"<<" takes a mapping or a list of mappings')
                    elif node not in seen:
                        seen.append(node)
                        yield node
                        yield from self._merged(node, seen)

    def _child(self, name: str, node: yaml.Node, key: yaml.Node | None = None) -> "Node":
        path = f"{self.path}.{name}" if self.path else name
        self.reading.lines[path] = (key or node).start_mark.line + 1
        return Node(node, path, self.reading)


def compose(text: str, reading: DocumentReading) -> Node | None:
    """Parse the YAML; None when it is empty or broken, and a broken one is a problem."""
    loader = LOADER(text)
    try:
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reading.lines[""] = mark.line + 1 if mark else 1
        reading.note("", f"not YAML: {error.problem or error.context}{_remedy(text, mark)}")
        return None
    except yaml.reader.ReaderError as error:
        reading.lines[""] = text.encode("utf-8", "replace").count(b"\n", 0, error.position) + 1
        reading.note("", f"not YAML: the character U+{_code_point(error.character):04X} is not allowed in a file")
        return None
    except (yaml.YAMLError, RecursionError) as error:
        reading.note("", f"not YAML: {type(error).__name__}")
        return None
    finally:
        loader.dispose()
    return Node(root, "", reading) if root is not None else None


def _remedy(text: str, mark: yaml.Mark | None) -> str:
    """Return what to do about the two mistakes that YAML's own words do not explain."""
    lines = text.split("\n")
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    if line[: len(line) - len(line.lstrip())].count("\t"):
        return "; indent with blanks, not with tabs"
    return "; put quotes around a name that begins with *" if line.lstrip().startswith("*") else ""


def _code_point(character: str | int) -> int:
    """Return a character's number; the two parsers state it as one or the other."""
    return character if isinstance(character, int) else ord(character)


def substitute(text: str, environ: Mapping[str, str]) -> str:
    """Insert ``${NAME}`` and ``${NAME:-default}``; ``$$`` is a dollar sign."""
    if "$" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        parts = NAME.match(match[1]) if match[0].endswith("}") else None
        if parts is None:
            raise WrongValue("${NAME} or ${NAME:-default} (a dollar sign is written $$)")
        name, default = parts[1], parts[2]
        given = environ.get(name, "") if default is not None else environ.get(name)
        if given is None:
            raise WrongValue(f"set: the environment has no {name} (${{{name}:-default}} gives a default)")
        return given or default or ""

    return VARIABLE.sub(value, text)
