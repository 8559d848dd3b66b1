"""What counting costs: time by vocabulary, size and kind of text, cold and remembered; time and memory to load a vocabulary."""

import base64
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.context.count import delay, tokens
from gateway.context.count import vocabularies as tokenizers
from gateway.context.count.families import FAMILIES
from gateway.context.count.proof import fits_by_size
from gateway.wire.chat import CHAT, parse
from gateway.wire.memory import Memory

OTHERS = {
    "qwen3": "Qwen 3", "gemini": "Gemini, Gemma", "llama3.1": "Llama 3", "mistral": "Mistral", "deepseek": "DeepSeek", "glm4": "GLM",
    "kimi": "Kimi", "claude-4.5": "Claude (estimate)",
}  # fmt: skip
NAMES = {"o200k": "OpenAI o200k"} | OTHERS


WORDS = (
    "the", "order", "was", "shipped", "on", "Tuesday", "and", "should", "arrive", "within", "three", "business", "days", "please", "check",
    "your", "reservation", "again", "refund", "policy",
)  # fmt: skip


def conversation(target: int) -> bytes:
    """A request of about so many tokens: a user, an assistant and JSON from tools, as agents exchange them."""
    chance = random.Random(7)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a helpful agent. " * 40}]
    size = 0
    while size < target:
        text = " ".join(chance.choices(WORDS, k=chance.randrange(20, 200)))
        record = {
            "id": f"res_{chance.randrange(10**6)}",
            "status": chance.choice(WORDS),
            "total": chance.randrange(10**5) / 100,
            "note": text[:200],
        }
        call = {
            "id": f"call_{len(messages)}",
            "type": "function",
            "function": {"name": "get_order", "arguments": f'{{"id": {chance.randrange(10**6)}}}'},
        }
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": orjson.dumps([record] * 20).decode()},
            {"role": "assistant", "content": text.capitalize()},
        ]  # fmt: skip
        size += len(text) // 2 + 900
    return orjson.dumps({"model": "m", "messages": messages})


def megabytes() -> Iterator[tuple[str, str]]:
    """A million bytes of each of the worst kinds."""
    chance = random.Random(1)
    size = 1_000_000
    yield "blanks", " " * size
    yield "one letter", "a" * size
    yield "base64", base64.b64encode(chance.randbytes(size * 3 // 4)).decode()
    yield "random characters", "".join(chance.choices([chr(code) for code in range(33, 127)], k=size))
    yield "emoji", "".join(chance.choices([chr(code) for code in range(0x1F300, 0x1F6FF)], k=size // 4))
    yield "random Chinese", "".join(chance.choices([chr(code) for code in range(0x4E00, 0x9FFF)], k=size // 3))


def best(action: Callable[[], object], times: int = 9) -> float:
    """The shortest of some runs, in milliseconds of processor time: what the machine does beside is not ours."""
    found = []
    for _ in range(times):
        began = time.process_time_ns()
        action()
        found.append(time.process_time_ns() - began)
    return min(found) / 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """One family's costs of a request, in milliseconds."""

    family: str
    tokens: int
    cold: float
    remembered: float


def counting(raw: bytes, family: str) -> Cost:
    """Count a request whose texts were never seen, and again when they were."""
    delay.preload([family])
    unseen = [request for _ in range(5) if (request := parse(raw, Memory()))]
    total = tokens.count_request(unseen[0], family).total
    unseen = [request for _ in range(5) if (request := parse(raw, Memory()))]
    spent = best(lambda: tokens.count_request(unseen.pop(), family), 5)
    return Cost(family, total, spent, remembered(raw, family))


def remembered(raw: bytes, family: str) -> float:
    """Count a request that was counted before but arrives anew: its texts are other objects, as they are after parsing."""
    spent = []
    memory = Memory()
    for _ in range(25):
        request = parse(raw, memory)
        assert request
        began = time.process_time_ns()
        tokens.count_request(request, family)
        spent.append(time.process_time_ns() - began)
    return min(spent) / 1e6


def proof(raw: bytes) -> float:
    """Prove a fit by size, in milliseconds."""
    request = CHAT.read(raw)
    assert request
    return best(lambda: [fits_by_size(len(raw), 4096, 10**7, request, "o200k") for _ in range(100)]) / 100


def longest_call(text: str, vocabulary: str) -> tuple[float, float]:
    """Count a text in its pieces; (the whole, the longest piece) in milliseconds. Between pieces others may run."""
    spent = []
    for piece in tokenizers.pieces(text, tokenizers.PIECE_BYTES if text.isascii() else tokenizers.PIECE_BYTES // 3):
        began = time.process_time_ns()
        tokenizers.count(piece, vocabulary)
        spent.append((time.process_time_ns() - began) / 1e6)
    return sum(spent), max(spent)


_LOAD = """
import time
from gateway.context.count import delay
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
before, began = resident(), time.process_time()
delay.preload([{family!r}])
print(time.process_time() - began, resident() - before, resident())
"""


def load(family: str) -> tuple[float, float, float]:
    """Load a family's vocabulary in a process of its own: (seconds, megabytes more, megabytes in all)."""
    answer = subprocess.run(
        [sys.executable, "-c", _LOAD.format(family=family)], capture_output=True, text=True, check=True
    )
    seconds, more, whole = map(float, answer.stdout.split())
    return seconds, more, whole


def vocabulary(family: str) -> str:
    return FAMILIES[family].vocabulary
