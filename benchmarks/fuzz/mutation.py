"""Mutation: JSON whose values and members were changed at random, but which is still JSON.

Bytes changed at random are hardly ever JSON any more, so they test the parser; these test what reads the values behind it.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import orjson

ODD: Final = (
    b"null", b"true", b"0", b"-1", b"1.5", b"1152921504606846976", b'""', b'"x"', b"[]", b"{}", b"[[]]", b"[{}]", b'["x"]', b'{"":""}',
    b'{"type":[]}', b'[{"type":[]}]', b'[{"type":"text","text":[]}]', b'[{"type":"image_url"}]',
)  # fmt: skip
"""Values that hardly any member is meant to have."""
MEMBERS: Final = (
    "", "type", "role", "content", "text", "id", "call_id", "tool_call_id", "name", "arguments", "input", "output", "tools", "tool_calls",
    "function", "function_call", "summary", "cache_control", "source", "image_url", "reasoning_content", "status",
)  # fmt: skip
"""Members that some reader looks for; an empty name is one, too."""
MOST_CHANGES: Final = 5
Path = tuple[str | int, ...]


def changed(raw: bytes, random: Random) -> bytes:
    """Return a JSON document with up to `MOST_CHANGES` changes; the document itself where it is no object or list."""
    value = orjson.loads(raw)
    for _ in range(random.randint(1, MOST_CHANGES)):
        paths = list(_paths(value))
        if paths:
            _change(value, random.choice(paths), _at(value, random.choice(paths)), random)
    try:
        return orjson.dumps(value)
    except TypeError:  # nested too deep
        return raw


def _change(whole: Any, path: Path, other: Any, random: Random) -> None:
    """Change one value: to an odd one, to a copy of another, moved to another member, doubled, or gone."""
    parent, key = _at(whole, path[:-1]), path[-1]
    new = orjson.loads(random.choice(ODD))
    match random.randrange(6):
        case 0 | 1:
            parent[key] = new
        case 2:
            parent[key] = orjson.loads(orjson.dumps(other))
        case 3 if isinstance(parent, dict):
            parent[random.choice(MEMBERS)] = new
        case 4 if isinstance(parent, dict):
            parent[random.choice(MEMBERS)] = parent.pop(key)
        case 4 if isinstance(parent, list):
            parent.insert(random.randint(0, len(parent)), new)
        case _:
            parent.pop(key)


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where each value inside another stands."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in members:
        yield (*path, key)
        yield from _paths(inside, (*path, key))


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value
