"""The entries of an upstream's model list. Servers write the list in several forms, and the name of a model under several keys."""

from typing import Any, Final

import orjson

Entry = dict[str, Any]

LONGEST_LIST_BYTES: Final = 2**23
"""Bytes of a list that are read. OpenRouter's list, the longest known, has 0.5 MB."""
ANY_MODEL: Final = "*"
"""Stands for every model name: a server with one model accepts any."""


def read_entries(body: bytes) -> list[Entry]:
    """Return the entries of a list; of any other object that object, and nothing of what is no JSON."""
    value = _parsed(body)
    listed = _listed(value)
    return [entry for entry in ([value] if listed is None else listed) if isinstance(entry, dict)]


def read_named_entries(body: bytes) -> list[Entry] | None:
    """Return the entries of a list that have a name, each with its name as ``id``; None for a body that is no list."""
    listed = _listed(_parsed(body))
    if listed is None:
        return None
    return [{**entry, "id": name} for entry in listed if isinstance(entry, dict) and (name := name_of(entry))]


def name_of(entry: Entry) -> str:
    """Return the name under which clients may ask for the model of an entry; empty without one."""
    names = (entry.get(key) for key in ("id", "key", "model", "name"))
    return next((name for name in names if isinstance(name, str) and name), "")


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _listed(value: Any) -> list[Any] | None:
    """Return the list under ``data`` (OpenAI), under ``models`` (Ollama, Gemini) or bare (Together); None without one."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("data", "models") if isinstance(value.get(key), list)), None)
    return value if isinstance(value, list) else None
