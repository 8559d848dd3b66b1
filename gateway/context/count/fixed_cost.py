"""The cost of everything that is billed besides messages: tools, functions, schema, and the frame of a request."""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, Final

from gateway.context.count import tools
from gateway.context.count.families import Family, Tools, family_of
from gateway.context.count.message_cost import counts_of, text_counter, texts_inside
from gateway.context.count.vocabularies import count
from gateway.wire.memory import Memory, Recent
from gateway.wire.message import dumps


def fixed_cost(body: Mapping[str, Any], family: str, memory: Memory | None = None) -> int:
    """Count everything billed besides messages: tools, functions, schema, and the request's frame with its preambles."""
    memory = memory or Memory()
    row = family_of(family)
    messages = body.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    has_system = isinstance(first, dict) and first.get("role") in ("system", "developer")
    total = row.request + row.preamble + (0 if has_system else row.default_system)
    system = body.get("system")
    if system:
        total += row.message + sum(map(text_counter(row, memory), texts_inside(system, 0)))
    thinking = _thinking_switch(body)
    if thinking is not None:
        total += row.effort.get("on" if thinking else "off", 0)
    config = body.get("output_config")
    if isinstance(config, dict) and config.get("task_budget"):
        total += row.task_budget
    return total + _tools_cost(body, family, row, memory, has_system=has_system) + _schema_cost(body, row, memory)


def _thinking_switch(body: Mapping[str, Any]) -> bool | None:
    """Return whether the request switches thinking on or off; None when it says nothing."""
    thinking = body.get("thinking")
    if isinstance(thinking, dict):
        kind = thinking.get("type")
        return True if kind == "enabled" else False if kind == "disabled" else None
    effort = body.get("reasoning_effort")
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict):
        effort = reasoning.get("effort", effort)
        if isinstance(reasoning.get("enabled"), bool):
            return bool(reasoning["enabled"])
        if reasoning.get("max_tokens"):
            return True
    return None if not isinstance(effort, str) else effort != "none"


def _tools_cost(body: Mapping[str, Any], family: str, row: Family, memory: Memory, *, has_system: bool) -> int:
    """Count the tool definitions of a request, with the instructions around them."""
    choice = body.get("tool_choice")
    definitions = {key: body[key] for key in ("tools", "functions") if body.get(key)}
    if not definitions or row.tools == "none" or (choice == "none" and not row.writes_unused_tools):
        return 0
    forced = choice is not None and choice not in ("auto", "none")
    form = row.forced_tools if forced and row.forced_tools else row.tools
    cost = _definitions_cost(definitions, form, family, row, memory)
    return max(cost + (row.tools_forced if forced else 0) - (row.tools_merge if has_system else 0), 0)


DEFINITIONS_BYTES: Final = 250
"""Bytes, about, of a cached cost: its key, and its entry in a table."""

DEFINITIONS_SHARE: Final = 1 / 64
"""Share of the memory's budget for the costs of definitions."""


def _cached_costs(memory: Memory) -> Recent[tuple[int, str, str], int]:
    """Make the cache of the costs of definitions, by the hash of their JSON, form and family: clients send the same tools
    with every request."""
    return Recent(memory, lambda key, cost: DEFINITIONS_BYTES, DEFINITIONS_SHARE)


def _definitions_cost(definitions: Mapping[str, Any], form: Tools, family: str, row: Family, memory: Memory) -> int:
    """Count definitions, given by the name of their member in the body, in one form."""
    costs = memory.part(_cached_costs, partial(_cached_costs, memory))
    json = _json(definitions)
    if len(json) > tools.MOST_WRITTEN_BYTES:
        return tools.TooLong(len(json)).tokens
    key = hash(json), form, family
    cost = costs.get(key)
    if cost is None:
        functions = tools.definitions(definitions)
        cost = ceil(count(tools.write(functions, form), row.vocabulary) * row.ratio) + row.tools_once
        if form == "typescript":
            cost += tools.typescript_extra(functions)
        costs.put(key, cost)
    return cost


def _json(definitions: Mapping[str, Any]) -> bytes | str:
    """Return definitions as JSON, to be hashed; as plain text if they have a text that UTF-8 cannot hold."""
    try:
        # One by one: a list of megabytes would be written at once, and other threads would wait.
        rows = [
            (dumps(name), *map(dumps, value if isinstance(value, list) else [value]))
            for name, value in definitions.items()
        ]
        return b",".join(chain.from_iterable(rows))
    except TypeError:
        return tools.flat_text(definitions)


def _schema_cost(body: Mapping[str, Any], row: Family, memory: Memory) -> int:
    """Count the response schema of a request."""
    try:
        schema = tools.response_schema(body) if row.schema_once is not None else ""
    except tools.TooLong as too_long:
        return too_long.tokens
    return ceil(counts_of(row.vocabulary, memory)(schema) * row.ratio) + (row.schema_once or 0) if schema else 0
