"""Read from model lists which model stands behind a name: its published name, and the size of its vocabulary."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from providers.model_list import ANY_MODEL, Entry, name_of, read_entries

LONGEST_NAME: Final = 512
"""Characters. Chosen far above every path of a model's file."""
LARGEST_VOCABULARY: Final = 10_000_000
"""Tokens. Chosen far above every known vocabulary: a larger number is a mistake."""


class Origin(NamedTuple):
    """The model behind a name, as its server states it."""

    name: str = ""
    """Its published name, its file, or its architecture; empty if the server does not state it."""
    vocabulary: int = 0
    """Tokens in its vocabulary; 0 if the server does not state it."""


def read_origins(body: bytes) -> dict[str, Origin]:
    """Return the model behind each name of a list; {} when it states none.

    - vLLM and SGLang: ``root``; of an adapter, the ``root`` of its ``parent``.
    - llama.cpp: the name if it is a file's, and ``meta.n_vocab``. It accepts every name, so a single model stands under
      `ANY_MODEL` too.
    - Ollama's ``/api/ps``: ``details.family``.
    """
    listed = read_entries(body)
    origins = {name: origin for model in listed for name, origin in _origins(model, alone=len(listed) == 1)}
    for model in listed:
        name, parent = name_of(model), model.get("parent")
        if name and isinstance(parent, str):
            origins[name] = origins.get(parent) or Origin(parent[:LONGEST_NAME])
    return origins


def _origins(model: Entry, *, alone: bool) -> Iterator[tuple[str, Origin]]:
    name, root, details, meta = name_of(model), model.get("root"), model.get("details"), model.get("meta")
    if not name:
        return
    if model.get("owned_by") == "llamacpp":
        is_file = name.lower().endswith(".gguf")  # any other name is an alias, which proves nothing
        origin = Origin(name[:LONGEST_NAME] if is_file else "", _vocabulary(meta))
        yield name, origin
        if alone:
            yield ANY_MODEL, origin
    elif isinstance(root, str) and root:
        yield name, Origin(root[:LONGEST_NAME])
    elif isinstance(details, dict) and isinstance(family := details.get("family"), str) and family:
        yield name, Origin(family[:LONGEST_NAME])
        yield name.removesuffix(":latest"), Origin(family[:LONGEST_NAME])


def _vocabulary(meta: Any) -> int:
    size = meta.get("n_vocab") if isinstance(meta, dict) else None
    return size if type(size) is int and 0 < size <= LARGEST_VOCABULARY else 0
