"""Scripts for the stand-in upstream: faults, refusals and histories by name, so that a test says what happens and not how."""

import gzip
from collections.abc import Mapping
from typing import Any, Final

import orjson

from gateway.standin import Completion, Gate, Raw, Refuse
from gateway.standin.answers import EVENTS, JSON

PROSE: Final = "the ship sails north under heavy cloud while small crews mend old nets beside warm stone harbour walls"

RESET: Final = Raw(end="reset", sends_head=False)
"""The connection is reset before a byte of an answer."""

SILENCE: Final = Raw(end="silence", sends_head=False)
"""No answer, ever."""

HALF_A_BODY: Final = Raw(200, (b'{"id":"half',), {"content-type": JSON, "content-length": "4096"}, end="reset")
HALF_A_STREAM: Final = Raw(
    200, (b'data: {"choices":[{"index":0,"delta":{"content":"Ha"}}]}\n\n',), {"content-type": EVENTS}, end="reset"
)
EMPTY_STREAM: Final = Raw(200, (), {"content-type": EVENTS})
"""200 and not one event: llama-cpp-python on a prompt that is too long."""

BAD_UTF8: Final = Raw(200, (b'{"choices":[{"index":0,"message":{"role":"assistant","content":"\xff\xfe\xc3("}}]}',))
TOO_LARGE_HTML: Final = Raw(
    413,
    (b"<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n</html>\r\n",),
    {"content-type": "text/html", "server": "nginx/1.25.3"},
)
RATE_LIMITED: Final = Raw(
    429,
    (
        orjson.dumps(
            {
                "error": {
                    "message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 42907.",
                    "type": "tokens",
                    "param": None,
                    "code": "rate_limit_exceeded",
                }
            }
        ),
    ),
    {"content-type": JSON, "retry-after": "7", "x-ratelimit-remaining-tokens": "0", "x-should-retry": "false"},
)


def error(status: int, message: str, *, code: str | int | None = None, kind: str = "invalid_request_error") -> Raw:
    """Any other error in OpenAI's shape."""
    return Raw(status, (orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}),))


def verbatim(status: int, body: str | bytes, headers: Mapping[str, str] | None = None) -> Raw:
    """A recorded answer."""
    return Raw(status, (body.encode() if isinstance(body, str) else body,), headers or {"content-type": JSON})


def events(*data: str | Mapping[str, Any], done: bool = True, gate: Gate | None = None) -> Raw:
    """A 200 stream of just these events."""
    lines = [item if isinstance(item, str) else orjson.dumps(item).decode() for item in data]
    chunks = [f"data: {line}\n\n".encode() for line in (*lines, *(["[DONE]"] if done else []))]
    return Raw(200, tuple(chunks), {"content-type": EVENTS}, gate)


def gzipped(reply: Mapping[str, Any]) -> Raw:
    """A body that travels compressed."""
    return Raw(200, (gzip.compress(orjson.dumps(reply), mtime=0),), {"content-type": JSON, "content-encoding": "gzip"})


def delta(text: str) -> dict[str, Any]:
    """One event's worth of text."""
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}


def refuse(dialect: str = "", *, limit: int | None = None, prompt: int | None = None) -> Refuse:
    """Too long, as a server words it."""
    return Refuse(dialect, limit, prompt)


def reply(
    text: str = "Understood.", *, calls: tuple[Mapping[str, Any], ...] = (), gate: Gate | None = None
) -> Completion:
    """A good answer."""
    return Completion(text, calls, pace=gate)


def call(name: str, arguments: Mapping[str, Any], identity: str = "call_1") -> dict[str, Any]:
    """A tool call as an assistant message carries it."""
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": orjson.dumps(arguments).decode()},
    }


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None = None, *calls: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def result(identity: str, text: Any) -> dict[str, Any]:
    """What a tool answered."""
    return {"role": "tool", "tool_call_id": identity, "content": text}


def words(count: int, seed: int = 0) -> str:
    """Prose of about that many tokens, different for every seed, the same every time."""
    vocabulary = PROSE.split()
    picked = ((seed * 7919 + place * 104_729 + (place * place) % 97) % len(vocabulary) for place in range(count))
    return " ".join(vocabulary[index] for index in picked)


def chat(turns: int, tokens_each: int = 100) -> list[dict[str, Any]]:
    """A plain conversation of so many turns that ends with a question."""
    history = [system("You are helpful.")]
    for turn in range(turns - 1):
        history += [
            user(f"Question {turn}: {words(tokens_each // 2, turn)}?"),
            assistant(f"Answer {turn}: {words(tokens_each // 2, turn + 1000)}."),
        ]
    return [*history, user("And what was the first question about?")]


def tool_turns(turns: int, result_tokens: int = 400) -> list[dict[str, Any]]:
    """A conversation whose every turn calls a tool with a long result; it ends with a question."""
    history = [system("You are helpful.")]
    for turn in range(turns - 1):
        identity = f"call_{turn}"
        history += [
            user(f"Look up order {turn}."),
            assistant(None, call("lookup", {"order": turn}, identity)),
            result(identity, words(result_tokens, turn)),
            assistant(f"Order {turn} is on its way."),
        ]
    return [*history, user("Which order did I ask about first?")]


def tool_loop(rounds: int, result_tokens: int = 400) -> list[dict[str, Any]]:
    """One question and a running chain of tool calls: the request stands inside the turn."""
    history = [system("You are a coding agent."), user("Find the port the service listens on. Never touch prod.")]
    for number in range(rounds):
        identity = f"call_{number}"
        history += [
            assistant(None, call("grep", {"pattern": f"port_{number}"}, identity)),
            result(identity, f"file_{number}.py:{number}: {words(result_tokens, number)}"),
        ]
    return history


class Clock:
    """Time that moves when told to."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
