"""Tool definitions as models read them: the text that chat templates make of tools, functions and schemas.

Providers bill this text and not the client's JSON. This module has the texts; `gateway.context.count.families` says
which family writes which text and adds what surrounds it.
"""

import json  # noqa: TID251  # templates write JSON with blanks and indents, which orjson does not
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from gateway.context.count.families import Tools

Definition = Mapping[str, Any]
"""A function: ``name``, ``description``, ``parameters``."""

MOST_LEVELS: Final = 48
"""Levels of a schema that are written as types; deeper levels are written as JSON. Chosen above real schemas, below the
stack limit."""

WRITTEN_AT_ONCE: Final = 1000
"""Values of a schema that are written at once, in about 1 ms."""
TEXT_AS_VALUES: Final = 200
"""Characters of a text that are written in the time of one other value (measured)."""


def definitions(body: Mapping[str, Any]) -> list[Definition]:
    """Return the functions that a request defines, including legacy ``functions``, from any dialect."""
    found: list[Definition] = []
    for key in ("tools", "functions"):
        value = body.get(key)
        if isinstance(value, list):
            found += [_definition(tool) for tool in value if isinstance(tool, dict)]
    return found


def _definition(tool: Definition) -> Definition:
    """Return the function in a tool, which some dialects wrap."""
    for key in ("function", "custom", "toolSpec"):
        inner = tool.get(key)
        if isinstance(inner, dict):
            return inner
    return tool


def parameters(tool: Definition) -> Any:
    """Return the JSON schema of a function's arguments, which each dialect has in another field."""
    return tool.get("parameters") or tool.get("input_schema") or tool.get("inputSchema") or tool.get("format") or {}


def write(tools: Sequence[Definition], form: Tools) -> str:
    """Write definitions as a family's template does."""
    return _FORMS[form](tools)


MOST_WRITTEN_BYTES: Final = 2**23
"""Bytes (or characters) of definitions or of a schema. Longer ones are not written and counted: no window holds two million
tokens, and joining 31 MB with emoji took a second."""
CHARACTERS_PER_TOKEN: Final = 4
"""Characters of JSON in English. The estimate only has to be far above every window."""


class TooLong(ValueError):
    """Definitions or a schema are too long to be written. ``tokens`` is an estimate."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.tokens = characters // CHARACTERS_PER_TOKEN


def _json(value: Any, *, separators: tuple[str, str] = (", ", ": "), indent: int | None = None) -> str:
    """Return a value as Python writes JSON; as plain text if it is nested too deep. Raises TooLong."""
    try:
        if indent is not None:
            return json.dumps(value, ensure_ascii=False, indent=indent)
        parts: list[str] = []
        _append(parts, value, _ENCODERS[separators], *separators)
        if (characters := sum(map(len, parts))) > MOST_WRITTEN_BYTES:
            raise TooLong(characters)
        return "".join(parts)
    except TooLong:
        raise
    except (RecursionError, ValueError):
        return flat_text(value)


_ENCODERS: Final = MappingProxyType(
    {pair: json.JSONEncoder(ensure_ascii=False, separators=pair).encode for pair in ((", ", ": "), (",", ":"))}
)


def _append(parts: list[str], value: Any, encode: Callable[[Any], str], comma: str, colon: str) -> None:
    """Write a value in pieces of at most `WRITTEN_AT_ONCE` values: Python's encoder holds the interpreter's lock as long as it writes."""
    if _is_small(value):
        parts.append(encode(value))
    elif isinstance(value, dict):
        for number, (name, inner) in enumerate(value.items()):
            parts.append(f"{comma if number else '{'}{encode(name)}{colon}")
            _append(parts, inner, encode, comma, colon)
        parts.append("}")
    else:
        for number, inner in enumerate(value):
            parts.append(comma if number else "[")
            _append(parts, inner, encode, comma, colon)
        parts.append("]")


def _is_small(value: Any) -> bool:
    """Return whether a JSON value has few enough values inside to be written at once."""
    waiting, seen = [value], 0
    while waiting:
        item = waiting.pop()
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        seen += len(item) // TEXT_AS_VALUES if isinstance(item, str) else len(inner)
        if seen > WRITTEN_AT_ONCE:
            return False
        waiting.extend(inner)
    return True


def flat_text(value: Any) -> str:
    """Return all names and values of a JSON value in order, at any depth."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting += [part for name, inner in reversed(list(item.items())) for part in (inner, name)]
        elif isinstance(item, list):
            waiting += reversed(item)
        elif item is not None:
            found.append(str(item))
    return " ".join(found)


def _wrapped(tool: Definition) -> dict[str, Any]:
    """Return the definition as most templates print it: the three known members, wrapped as a function."""
    function = {
        "name": tool.get("name", ""),
        "description": tool.get("description") or "",
        "parameters": parameters(tool),
    }
    return {"type": "function", "function": function}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bare(tool: Definition) -> str:
    """Write names, descriptions and types without the surrounding JSON, like schemas that are sent as messages."""
    return " ".join([str(tool.get("name", "")), str(tool.get("description") or ""), *_words_of(parameters(tool), 0)])


def _words_of(schema: Any, depth: int) -> Iterator[str]:
    """Yield the types, descriptions and names in a schema, without its JSON."""
    if not isinstance(schema, dict) or depth > MOST_LEVELS:
        return
    for key in ("type", "description", "format"):
        if isinstance(schema.get(key), str):
            yield schema[key]
    for value in _list(schema.get("enum")):
        yield str(value)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, value in properties.items():
            yield str(name)
            yield from _words_of(value, depth + 1)
    for name in _list(schema.get("required")):
        yield str(name)
    yield from _words_of(schema.get("items"), depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for value in _list(schema.get(key)):
            yield from _words_of(value, depth + 1)


def typescript(tools: Sequence[Definition]) -> str:
    """Write functions as the TypeScript namespace that OpenAI's models read.

    Published for gpt-oss in https://github.com/openai/harmony (``template_tools_section``). The larger models are
    billed for the same text, plus or minus one token per function (`typescript_extra`).
    """
    lines = ["namespace functions {", ""]
    for tool in tools:
        if tool.get("description"):
            lines.append(f"// {str(tool['description']).strip()}")
        schema = parameters(tool)
        if _properties_of(schema):
            lines += [f"type {tool.get('name', '')} = (_: {{", *_properties(schema, 0), "}) => any;", ""]
        else:
            lines += [f"type {tool.get('name', '')} = () => any;", ""]
    lines.append("} // namespace functions")
    return "\n".join(lines)


def typescript_extra(tools: Sequence[Definition]) -> int:
    """Count tokens that OpenAI bills besides the text: one less per function with arguments, one more per described
    argument."""
    schemas = [parameters(tool) for tool in tools]
    return sum(_described(schema, 0) for schema in schemas) - sum(1 for schema in schemas if _properties_of(schema))


def _described(schema: Any, depth: int) -> int:
    """Return the number of arguments with a description, at any depth."""
    values = [value for value in _properties_of(schema).values() if isinstance(value, dict)]
    if depth > MOST_LEVELS:
        return 0
    return sum(bool(value.get("description")) + _described(value, depth + 1) for value in values)


def _properties_of(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _properties(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a TypeScript type: for each argument its comments, its name and its type."""
    needed = _list(schema.get("required"))
    for name, value in _properties_of(schema).items():
        described = value if isinstance(value, dict) else {}
        if described.get("title"):
            yield f"// {described['title']}\n//"
        if described.get("description"):
            yield f"// {described['description']}"
        mark = "" if name in needed else "?"
        yield f"{name}{mark}: {_type(described, depth)},{_default(described)}"


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default is None else f" // default: {_json(default)}"


def _type(schema: Any, depth: int) -> str:
    """Return the TypeScript type of a schema; each alternative gets its own line."""
    if not isinstance(schema, dict) or depth > MOST_LEVELS:
        return _json(schema) if schema else "any"
    if alternatives := _list(schema.get("enum")):
        return " | ".join(_json(value) for value in alternatives)
    if alternatives := _list(schema.get("anyOf")) or _list(schema.get("oneOf")):
        types = [_type(value, depth + 1) for value in alternatives]
        return "".join(f"\n | {one}" for one in types) + "\n" if "null" in types else " | ".join(types)
    if kinds := _list(schema.get("type")):
        return " | ".join(_type({**schema, "type": kind}, depth + 1) for kind in kinds)
    return _plain_type(schema, depth)


_NAMES: Final = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def _plain_type(schema: Mapping[str, Any], depth: int) -> str:
    """Return the TypeScript type of a schema without alternatives."""
    kind = schema.get("type")
    if kind == "array":
        return f"{_type(schema['items'], depth + 1)}[]" if schema.get("items") else "any[]"
    if kind == "object":
        return "\n".join(["{", *_properties(schema, depth + 1), "}"]) if _properties_of(schema) else "object"
    name = _NAMES.get(str(kind), "any")
    return f"{name} // format: {schema['format']}" if schema.get("format") else name


_FORMS: Final[Mapping[Tools, Callable[[Sequence[Definition]], str]]] = {
    "none": lambda tools: "",
    "typescript": typescript,
    "bare": lambda tools: "\n".join(_bare(tool) for tool in tools),
    "list": lambda tools: _json([_wrapped(tool) for tool in tools]),
    "lines": lambda tools: "\n".join(_json(_wrapped(tool)) for tool in tools),
    "compact": lambda tools: "\n".join(_json(_wrapped(tool), separators=(",", ":")) for tool in tools),
    "functions": lambda tools: "\n".join(_json(_wrapped(tool)["function"], separators=(",", ":")) for tool in tools),
    "pretty": lambda tools: "\n\n".join(_json(_wrapped(tool), indent=4) for tool in tools),
}


def response_schema(body: Mapping[str, Any]) -> str:
    """Write the schema of the answer as OpenAI's models read it; empty when there is none.

    The JSON without ``required`` and ``additionalProperties``, under a heading (harmony's ``# Response Formats``).
    """
    response = body.get("response_format")
    described = response.get("json_schema") if isinstance(response, dict) else None
    if not isinstance(described, dict) or not isinstance(described.get("schema"), dict):
        return ""
    lines = ["# Response Formats", "", f"## {described.get('name', '')}", ""]
    if described.get("description"):
        lines.append(f"// {described['description']}")
    lines.append(_json(_stripped(described["schema"], 0), separators=(",", ":")))
    return "\n".join(lines)


def _stripped(value: Any, depth: int) -> Any:
    """Return a schema without ``required`` and ``additionalProperties``, at any depth."""
    if depth > MOST_LEVELS:
        return value
    if isinstance(value, dict):
        return {k: _stripped(v, depth + 1) for k, v in value.items() if k not in ("required", "additionalProperties")}
    if isinstance(value, list):
        return [_stripped(item, depth + 1) for item in value]
    return value
