"""Made-up conversations in the Messages, the Responses and Ollama's format: what agents send, with all that may go wrong in a fold."""

import base64
import re
from random import Random
from typing import Any

import orjson

from gateway.standin.messages import sign

WORDS = re.findall(
    r"\S+",
    "order 4711 was refunded on friday; the deploy failed at 12:30 with error E42 in src/app/main.py. She prefers tea, never coffee, and "
    "lives in Lyon since 2019. Keep the budget under 1,250 euros. The password rotation is due on 2026-03-01. Ask Maria about invoice 88.",
)
PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n"
    + (13).to_bytes(4, "big")
    + b"IHDR"
    + (640).to_bytes(4, "big")
    + (480).to_bytes(4, "big")
    + b"\x08" * 9
).decode()


def text(random: Random, most: int) -> str:
    """Some words, in a few sentences."""
    count = max(1, int(most * random.random() ** 2))
    words = [random.choice(WORDS) for _ in range(count)]
    return " ".join(words) + random.choice([".", "?", "", "\n"]).rstrip("\n")


def messages_body(seed: int) -> dict[str, Any]:
    """A Messages body; every one is acceptable to the strict stand-in."""
    random = Random(seed)
    rows: list[dict[str, Any]] = []
    thinks = random.random() < 0.4
    for turn in range(random.randint(1, 7)):
        rows += _question(random)
        for step in range(random.choice([0, 0, 1, 2, 5])):
            rows += _tool_step(random, f"{seed}_{turn}_{step}", thinks=thinks)
        rows.append({"role": "assistant", "content": _said(random, thinks=thinks)})
        if random.random() < 0.1:
            rows.append({"role": "system", "content": text(random, 20)})
    if random.random() < 0.5:
        rows += _question(random)
    else:
        rows += [*_question(random), *_tool_step(random, f"{seed}_last", thinks=thinks)]
    if random.random() < 0.1:
        at = random.choice(
            [n for n, row in enumerate(rows) if row["role"] == "assistant" and isinstance(row["content"], list)] or [-1]
        )
        if at >= 0:
            rows[at]["content"].insert(0, {"type": "compaction", "content": text(random, 60)})
    body: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 200, "messages": rows}
    if thinks:
        body["thinking"] = {"type": "enabled", "budget_tokens": 100}
    if random.random() < 0.7:
        blocks = [{"type": "text", "text": text(random, 80)} for _ in range(random.randint(1, 2))]
        body["system"] = random.choice([text(random, 80), blocks])
    if random.random() < 0.5:
        tool = {"name": "look", "description": text(random, 20), "input_schema": {"type": "object", "properties": {}}}
        body["tools"] = [tool]
    _mark(random, body)
    return body


def _question(random: Random) -> list[dict[str, Any]]:
    kind = random.random()
    if kind < 0.4:
        return [{"role": "user", "content": text(random, 120)}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text(random, 120)} for _ in range(random.randint(1, 3))]
    if kind < 0.55:
        source = {"type": "base64", "media_type": "image/png", "data": PNG}
        blocks.insert(random.randint(0, len(blocks)), {"type": "image", "source": source})
    rows = [{"role": "user", "content": blocks}]
    return [*rows, {"role": "user", "content": text(random, 30)}] if kind > 0.95 else rows


def _thought(random: Random) -> dict[str, Any]:
    thinking = text(random, 60)
    return random.choice(
        [{"type": "thinking", "thinking": thinking, "signature": sign(thinking)}] * 4
        + [{"type": "redacted_thinking", "data": base64.b64encode(thinking.encode()).decode()}]
    )


def _said(random: Random, *, thinks: bool) -> Any:
    if not thinks and random.random() < 0.5:
        return text(random, 80)
    blocks: list[dict[str, Any]] = [_thought(random)] if thinks else []
    blocks.append({"type": "text", "text": text(random, 80)})
    if random.random() < 0.15:
        name = f"srvtoolu_{random.randrange(10**9)}"
        page = {"title": "News", "url": f"https://example.com/{name}"}
        found = [{"type": "web_search_result", **page, "encrypted_content": "QUJD" * 60}]
        blocks += [
            {"type": "server_tool_use", "id": name, "name": "web_search", "input": {"query": text(random, 5)}},
            {"type": "web_search_tool_result", "tool_use_id": name, "content": found},
            {
                "type": "text",
                "text": text(random, 20),
                "citations": [
                    {"type": "web_search_result_location", **page, "encrypted_index": "QUJD", "cited_text": "tea"}
                ],
            },
        ]
    for _ in range(random.choice([0, 0, 0, 0, 1, 3])):
        blocks += _served(random, thinks=thinks)
    return blocks


def _served(random: Random, *, thinks: bool) -> list[dict[str, Any]]:
    """The calls of one or two tools of the server, and their results."""
    thoughts = [_thought(random)] if thinks and random.random() < 0.5 else []
    calls, results = [], []
    for _ in range(random.choice([1, 1, 2])):
        name = f"srvtoolu_{random.randrange(10**9)}"
        if random.random() < 0.5:
            given = {"id": name, "name": "find", "server_name": "s", "input": {"name": text(random, 5)}}
            calls.append({"type": "mcp_tool_use", **given})
            content = random.choice([text(random, 300), [{"type": "text", "text": text(random, 200)}] * 2])
            results.append({"type": "mcp_tool_result", "tool_use_id": name, "is_error": False, "content": content})
        else:
            calls.append(
                {"type": "server_tool_use", "id": name, "name": "code_execution", "input": {"code": text(random, 9)}}
            )
            printed = {"stdout": text(random, 300), "stderr": text(random, 20), "return_code": 0, "content": []}
            content = {"type": "code_execution_result", **printed}
            results.append({"type": "code_execution_tool_result", "tool_use_id": name, "content": content})
    return [*thoughts, *calls, *results]


def _tool_step(random: Random, key: str, *, thinks: bool) -> list[dict[str, Any]]:
    names = [f"toolu_{key}_{n}" for n in range(random.choice([1, 1, 1, 2, 3]))]
    calls: list[dict[str, Any]] = [_thought(random)] if thinks else []
    if random.random() < 0.5:
        calls.append({"type": "text", "text": text(random, 20)})
    if thinks and random.random() < 0.2:
        calls.append(_thought(random))
    for name in names:
        given = random.choice([{"path": text(random, 8)}, {"content": text(random, 300), "n": 1.5}, {}])
        calls.append({"type": "tool_use", "id": name, "name": "look", "input": given})
    results: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": name, "content": _result(random)}
        for name in random.sample(names, len(names))
    ]
    if random.random() < 0.1:
        results[0]["is_error"] = True
    extra = random.random()
    if extra < 0.3:
        results.append({"type": "text", "text": f"<system-reminder>\n{text(random, 15)}\n</system-reminder>"})
    elif extra < 0.35:
        results.append({"type": "text", "text": text(random, 15)})
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def _result(random: Random) -> Any:
    kind = random.random()
    if kind < 0.5:
        return text(random, 400)
    if kind < 0.7:
        rows = [{"id": n, "name": text(random, 3)} for n in range(random.randint(1, 40))]
        return orjson.dumps(rows).decode()
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text(random, 200)} for _ in range(random.randint(1, 3))]
    if kind > 0.9:
        blocks.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
    return blocks


def _mark(random: Random, body: dict[str, Any]) -> None:
    """Put up to four cache marks where clients put them, those that last longer first."""
    carriers = [row for row in body.get("system", ()) if isinstance(row, dict)] + body.get("tools", [])
    for row in body["messages"]:
        if isinstance(row["content"], list):
            carriers += [block for block in row["content"] if block["type"] in ("text", "tool_use", "tool_result")]
    chosen = sorted(random.sample(range(len(carriers)), min(random.randint(0, 4), len(carriers))))
    ordered = [row for row in [*body.get("tools", []), *carriers] if any(row is carriers[n] for n in chosen)]
    unique = list({id(row): row for row in ordered}.values())
    long = random.randint(0, len(unique))
    for n, row in enumerate(unique):
        row["cache_control"] = {"type": "ephemeral", "ttl": "1h"} if n < long else {"type": "ephemeral"}


def responses_body(seed: int) -> dict[str, Any]:
    """A Responses body; every one is acceptable to the strict stand-in."""
    random = Random(seed)
    items: list[dict[str, Any]] = []
    if random.random() < 0.4:
        items.append({"role": "developer", "content": text(random, 60)})
    thinks = random.random() < 0.6
    for turn in range(random.randint(1, 7)):
        items += _asked(random)
        for step in range(random.choice([0, 0, 1, 2, 5])):
            items += _called(random, f"{seed}_{turn}_{step}", thinks=thinks)
        items += _answered(random, f"{seed}_{turn}", thinks=thinks)
    items += _asked(random)
    if random.random() < 0.5:
        items += _called(random, f"{seed}_last", thinks=thinks)
    body: dict[str, Any] = {"model": "gpt-5", "input": items}
    if random.random() < 0.6:
        body["instructions"] = text(random, 80)
    if random.random() < 0.5:
        body["tools"] = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]
    if random.random() < 0.5:
        body["max_output_tokens"] = 200
    return body


def _asked(random: Random) -> list[dict[str, Any]]:
    kind = random.random()
    if kind < 0.3:
        return [{"role": "user", "content": text(random, 120)}]
    parts: list[dict[str, Any]] = [
        {"type": "input_text", "text": text(random, 120)} for _ in range(random.randint(1, 2))
    ]
    if kind > 0.9:
        parts.append({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"})
    return [{"type": "message", "role": "user", "content": parts}]


def _reasoned(random: Random, key: str, *, thinks: bool) -> list[dict[str, Any]]:
    if not thinks or random.random() < 0.3:
        return []
    summary = [{"type": "summary_text", "text": text(random, 10)}] if random.random() < 0.4 else []
    item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{key}", "summary": summary}
    if random.random() < 0.7:
        item["encrypted_content"] = base64.b64encode(text(random, 80).encode()).decode()
    return [item]


def _answered(random: Random, key: str, *, thinks: bool) -> list[dict[str, Any]]:
    items = _reasoned(random, f"{key}_a", thinks=thinks)
    if random.random() < 0.15:
        items.append(
            {
                "type": "web_search_call",
                "id": f"ws_{key}",
                "status": "completed",
                "action": {"type": "search", "query": "tea"},
            }
        )
    if random.random() < 0.15:
        output = {"output": text(random, 300)} if random.random() < 0.8 else {"error": "down"}
        items.append(
            {"type": "mcp_call", "id": f"mcp_{key}", "server_label": "s", "name": "find", "arguments": "{}", **output}
        )
    if random.random() < 0.15:
        outputs: list[dict[str, Any]] = [
            {"type": "logs", "logs": text(random, 300)} for _ in range(random.randrange(3))
        ]
        code = {"code": text(random, 20), "container_id": "cntr_1", "outputs": random.choice([outputs, None])}
        items.append({"type": "code_interpreter_call", "id": f"ci_{key}", **code, "status": "completed"})
    if random.random() < 0.15:
        found = [
            {"file_id": f"file-{n}", "filename": f"{n}.txt", "score": 0.5, "text": text(random, 200)} for n in range(3)
        ]
        asked = {"queries": ["tea"], "results": random.choice([found, None])}
        items.append({"type": "file_search_call", "id": f"fs_{key}", **asked, "status": "completed"})
    part = {"type": "output_text", "text": text(random, 80), "annotations": []}
    items.append({"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed", "content": [part]})
    if random.random() < 0.1:
        items.append({"type": "compaction", "id": f"cmp_{key}", "encrypted_content": "QUJD" * random.randint(5, 60)})
    return items


def _called(random: Random, key: str, *, thinks: bool) -> list[dict[str, Any]]:
    items = _reasoned(random, key, thinks=thinks)
    if random.random() < 0.3:
        part = {"type": "output_text", "text": text(random, 20), "annotations": []}
        items.append(
            {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed", "content": [part]}
        )
    calls, outputs = [], []
    for n in range(random.choice([1, 1, 1, 2, 3])):
        name = f"call_{key}_{n}"
        kind = random.random()
        if kind < 0.7:
            given = orjson.dumps(
                random.choice([{"path": text(random, 8)}, {"content": text(random, 300)}, {}])
            ).decode()
            calls.append(
                {
                    "type": "function_call",
                    "id": f"fc_{key}_{n}",
                    "call_id": name,
                    "name": "look",
                    "arguments": given,
                    "status": "completed",
                }
            )
            outputs.append({"type": "function_call_output", "call_id": name, "output": _output(random)})
        elif kind < 0.85:
            calls.append(
                {"type": "custom_tool_call", "call_id": name, "name": "apply_patch", "input": text(random, 60)}
            )
            outputs.append({"type": "custom_tool_call_output", "call_id": name, "output": text(random, 200)})
        else:
            action = {"type": "exec", "command": ["ls", text(random, 5)], "env": {}}
            calls.append(
                {
                    "type": "local_shell_call",
                    "id": f"lsc_{key}_{n}",
                    "call_id": name,
                    "action": action,
                    "status": "completed",
                }
            )
            outputs.append({"type": "local_shell_call_output", "call_id": name, "output": text(random, 200)})
    if len(calls) > 1 and random.random() < 0.3:
        return [*items, *(each for pair in zip(calls, outputs, strict=True) for each in pair)]
    random.shuffle(outputs)
    return [*items, *calls, *outputs]


def _output(random: Random) -> Any:
    if random.random() < 0.8:
        return text(random, 400)
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": text(random, 200)}]
    if random.random() < 0.5:
        parts.append({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"})
    return parts


def ollama_body(seed: int) -> dict[str, Any]:
    """A body of Ollama's chat API; every one is acceptable to the strict stand-in."""
    random = Random(seed)
    rows: list[dict[str, Any]] = []
    thinks, has_ids = random.random() < 0.4, random.random() < 0.3
    if random.random() < 0.5:
        rows.append({"role": "system", "content": text(random, 80)})
    for turn in range(random.randint(1, 7)):
        rows.append(_shown(random))
        for step in range(random.choice([0, 0, 1, 2, 5])):
            rows += _run(random, f"{seed}_{turn}_{step}", thinks=thinks, has_ids=has_ids)
        thought = {"thinking": text(random, 60)} if thinks else {}
        rows.append({"role": "assistant", "content": text(random, 80), **thought})
    rows.append(_shown(random))
    if random.random() < 0.5:
        rows += _run(random, f"{seed}_last", thinks=thinks, has_ids=has_ids)
    body: dict[str, Any] = {"model": "llama3.2", "messages": rows}
    if random.random() < 0.5:
        body["tools"] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    if random.random() < 0.5:
        body |= {"options": {"num_ctx": 4096, "num_predict": 200, "temperature": 0.5}, "keep_alive": "5m"}
    if random.random() < 0.5:
        body["stream"] = random.random() < 0.5
    return body


def _shown(random: Random) -> dict[str, Any]:
    images = {"images": [PNG] * random.randint(1, 2)} if random.random() < 0.15 else {}
    return {"role": "user", "content": text(random, 120), **images}


def _run(random: Random, key: str, *, thinks: bool, has_ids: bool) -> list[dict[str, Any]]:
    """Return an answer with calls, and their results in the same order."""
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for n in range(random.choice([1, 1, 1, 2, 3])):
        name = random.choice(["look", "write"])
        given = random.choice([{"path": text(random, 8)}, {"content": text(random, 300), "n": 1.5}, {}])
        calls.append({**({"id": f"call_{key}_{n}"} if has_ids else {}), "function": {"name": name, "arguments": given}})
        found = _result(random)
        named = random.choice([{"tool_name": name}, {}])
        said = found if isinstance(found, str) else orjson.dumps(found).decode()
        results.append(
            {"role": "tool", "content": said, **named, **({"tool_call_id": calls[-1]["id"]} if has_ids else {})}
        )
    if (
        len({call["function"]["name"] for call in calls}) > 1
    ):  # then only a name that all results have tells their order
        for call, result in zip(calls, results, strict=True):
            result["tool_name"] = call["function"]["name"]
    thought = {"thinking": text(random, 60)} if thinks else {}
    said = text(random, 20) if random.random() < 0.5 else ""
    return [{"role": "assistant", "content": said, **thought, "tool_calls": calls}, *results]
