"""Tools, their choice and the answer's schema of a Messages body in chat-completions form: they are counted from it."""

from collections.abc import Mapping
from typing import Any, Final

_CHOICES: Final = {"any": "required", "auto": "auto", "none": "none"}


def translated_tools(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return tools, their choice and the answer's schema in chat-completions form."""
    shaped: dict[str, Any] = {}
    tools = head.get("tools")
    if isinstance(tools, list):
        shaped["tools"] = [_tool(tool) for tool in tools]
    choice = head.get("tool_choice")
    if isinstance(choice, dict):
        named = {"type": "function", "function": {"name": choice.get("name", "")}}
        shaped["tool_choice"] = _CHOICES.get(str(choice.get("type")), named)
    config = head.get("output_config")
    form = config.get("format") if isinstance(config, dict) else None
    if isinstance(form, dict) and "schema" in form:
        described = {"name": "output", "schema": form["schema"]}
        shaped["response_format"] = {"type": "json_schema", "json_schema": described}
    return shaped


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or "input_schema" not in tool:
        return tool
    described = {
        "name": tool.get("name", ""),
        "description": tool.get("description"),
        "parameters": tool["input_schema"],
    }
    return {"type": "function", "function": described}
