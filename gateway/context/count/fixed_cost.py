"""The cost of everything that is billed besides messages: tools, functions, schema, and the frame of a request."""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from math import ceil
from typing import Any, Final

from gateway.context.count import tools
from gateway.context.count.families import Family, Tools, family_of
from gateway.context.count.message_cost import counting, leaves, text_counter
from gateway.context.count.vocabularies import count
from gateway.wire.memory import Memory, Recent
from gateway.wire.message import dumps


def fixed_cost(body: Mapping[str, Any], family: str, memory: Memory | None = None) -> int:
    """Count everything billed besides messages: tools, functions, schema, and the request's frame with its preambles."""
    memory = memory or Memory()
    row = family_of(family)
    messages = body.get("messages")
    first = (
        messages[0].get("role") if isinstance(messages, list) and messages and isinstance(messages[0], dict) else None
    )
    leading = first in ("system", "developer")
    total = row.request + row.preamble + (0 if leading else row.default_system)
    system = body.get("system")
    if system:
        total += row.message + sum(map(text_counter(row, memory), leaves(system, 0)))
    if _thinks(body):
        total += row.effort.get("on", 0)
    elif _thinks(body) is False:
        total += row.effort.get("off", 0)
    config = body.get("output_config")
    if isinstance(config, dict) and config.get("task_budget"):
        total += row.task_budget
    return total + _tools_cost(body, family, row, memory, leading=leading) + _schema_cost(body, row, memory)


def _thinks(body: Mapping[str, Any]) -> bool | None:
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


def _tools_cost(body: Mapping[str, Any], family: str, row: Family, memory: Memory, *, leading: bool) -> int:
    choice = body.get("tool_choice")
    given = {key: body[key] for key in ("tools", "functions") if body.get(key)}
    if not given or row.tools == "none" or (choice == "none" and not row.unused_tools):
        return 0
    forced = choice is not None and choice not in ("auto", "none")
    form = row.forced_tools if forced and row.forced_tools else row.tools
    cost = _definitions_cost(given, form, family, row, memory)
    return max(cost + (row.tools_forced if forced else 0) - (row.tools_merge if leading else 0), 0)


DEFINITIONS_BYTES: Final = 250
"""Bytes of the remembered cost of definitions, approximately: its key, and its place in a table."""

DEFINITIONS_SHARE: Final = 1 / 64
"""Share of the memory's budget for the costs of definitions."""


def _definitions(memory: Memory) -> Recent[tuple[int, str, str], int]:
    """Token counts of definitions by the hash of their JSON, form and family: clients send the same tools with every
    request."""
    return Recent(memory, lambda key, cost: DEFINITIONS_BYTES, DEFINITIONS_SHARE)


def _definitions_cost(given: Mapping[str, Any], form: Tools, family: str, row: Family, memory: Memory) -> int:
    known = memory.part(_definitions, partial(_definitions, memory))
    written = _written(given)
    if len(written) > tools.VAST:
        return tools.Vast(len(written)).tokens
    key = hash(written), form, family
    cost = known.recall(key)
    if cost is None:
        found = tools.definitions(given)
        cost = ceil(count(tools.write(found, form), row.vocabulary) * row.ratio) + row.tools_once
        if form == "typescript":
            cost += tools.typescript_extra(found)
        known.keep(key, cost)
    return cost


def _written(given: Mapping[str, Any]) -> bytes | str:
    try:
        # One by one: a list of megabytes would be written at once.
        rows = [(dumps(name), *map(dumps, part if isinstance(part, list) else [part])) for name, part in given.items()]
        return b",".join(chain.from_iterable(rows))
    except TypeError:  # nested deeper than orjson writes
        return tools.flat(given)


def _schema_cost(body: Mapping[str, Any], row: Family, memory: Memory) -> int:
    try:
        schema = tools.response_schema(body) if row.schema_once is not None else ""
    except tools.Vast as vast:
        return vast.tokens
    return ceil(counting(row.vocabulary, memory)(schema) * row.ratio) + (row.schema_once or 0) if schema else 0
