"""How OpenAI and Anthropic check the items of tools that they run: each object has the members of its type, and what they sealed comes
back as it was.

The members are the required ones in the types of `openai` 3.57 and `anthropic` 2.14, which are made from the providers' schemas.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

_Kinds = type | tuple[type, ...]
_NULL: Final = type(None)
_PRINTED: Final[Mapping[str, _Kinds]] = {"stdout": str, "stderr": str, "return_code": int, "content": list}
_RESULT: Final[Mapping[str, _Kinds]] = {"tool_use_id": str, "content": (dict, list)}

MEMBERS: Final[Mapping[str, Mapping[str, _Kinds]]] = MappingProxyType(
    {
        "mcp_call": {"id": str, "name": str, "arguments": str, "server_label": str},
        "code_interpreter_call": {"id": str, "code": (str, _NULL), "container_id": str, "outputs": (list, _NULL), "status": str},
        "logs": {"logs": str},
        "file_search_call": {"id": str, "queries": list, "status": str},
        "web_search_call": {"id": str, "status": str},
        "image_generation_call": {"id": str, "result": (str, _NULL), "status": str},
        "server_tool_use": {"id": str, "name": str, "input": dict},
        "mcp_tool_use": {"id": str, "name": str, "input": dict, "server_name": str},
        "mcp_tool_result": {"tool_use_id": str},
        "web_search_tool_result": _RESULT,
        "web_search_result": {"encrypted_content": str, "title": str, "url": str},
        "web_fetch_tool_result": _RESULT,
        "web_fetch_result": {"content": dict, "url": str},
        "document": {"source": dict},
        "code_execution_tool_result": _RESULT,
        "code_execution_result": _PRINTED,
        "encrypted_code_execution_result": {"encrypted_stdout": str, "stderr": str, "return_code": int, "content": list},
        "bash_code_execution_tool_result": _RESULT,
        "bash_code_execution_result": _PRINTED,
        "text_editor_code_execution_tool_result": _RESULT,
        "text_editor_code_execution_view_result": {"content": str, "file_type": str},
        "tool_search_tool_result": _RESULT,
        "tool_search_tool_search_result": {"tool_references": list},
        "tool_reference": {"tool_name": str},
    }
)  # fmt: skip
"""For each type of object, at any depth inside an item: its required members and their kinds."""

_SEALED: Final = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})
_TOOLS: Final = ("_call", "_tool_use", "_tool_result")
"""How the types of items that are checked end."""


def faults(item: Mapping[str, Any]) -> Iterator[str]:
    """Return the error of each missing or wrong member in an item of a tool; nothing for any other item."""
    if str(item.get("type")).endswith(_TOOLS):
        yield from _faults(item)


def _faults(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        kind = value.get("type")
        for name, kinds in MEMBERS.get(kind, {}).items() if isinstance(kind, str) else ():
            if name not in value or not isinstance(value[name], kinds):
                yield f"{kind}.{name}: Field required, or of another type"
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _faults(inner)


def sealed(value: Any) -> Iterator[str]:
    """Return every text in a JSON value that only the provider can read."""
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if name in _SEALED and isinstance(inner, str):
            yield inner
        else:
            yield from sealed(inner)
