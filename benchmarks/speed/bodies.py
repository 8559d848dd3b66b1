"""Request bodies of given sizes: conversations made of seeded words, the same in every run."""

import random

import orjson

WORDS = [
    "the",
    "order",
    "ships",
    "on",
    "monday",
    "from",
    "warehouse",
    "seven",
    "and",
    "customer",
    "asked",
    "whether",
    "invoice",
    "total",
    "includes",
    "tax",
    "please",
    "check",
    "status",
    "error",
    "timeout",
    "retry",
    "service",
    "latency",
    "deploy",
    "branch",
    "review",
    "merge",
    "table",
    "index",
    "query",
    "result",
    "cache",
    "user",
    "session",
    "token",
    "login",
    "payment",
    "refund",
    "address",
    "street",
    "number",
    "city",
    "travel",
    "flight",
    "hotel",
    "booking",
    "date",
    "change",
    "policy",
    "reason",
    "note",
]


def text(rng: random.Random, size: int) -> str:
    """Make prose of about ``size`` characters."""
    words: list[str] = []
    length = 0
    while length < size:
        word = rng.choice(WORDS) if rng.random() < 0.9 else f"{rng.choice('ABCDEF')}-{rng.randrange(10**5)}"
        words.append(word)
        length += len(word) + 1
    return " ".join(words)


def turn(rng: random.Random, size: int) -> list[dict[str, object]]:
    """Make a question, a tool call, its result and an answer of about ``size`` characters together."""
    call = {"name": "look_up", "arguments": orjson.dumps({"query": text(rng, 40)}).decode()}
    name = f"call_{rng.randrange(10**12)}"
    return [
        {"role": "user", "content": text(rng, size // 8)},
        {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": name, "content": text(rng, size // 2)},
        {"role": "assistant", "content": text(rng, size // 4)},
    ]


def conversation(size: int, model: str, *, seed: int = 7, turn_size: int = 8_000, stream: bool = False) -> bytes:
    """Make a request body of ``size`` bytes (a little more where no turn fits it exactly)."""
    rng = random.Random(seed)
    messages: list[dict[str, object]] = [{"role": "system", "content": "You help with orders. Be brief and exact."}]
    question = {"role": "user", "content": text(rng, 200)}

    def body() -> bytes:
        return orjson.dumps({"model": model, "max_tokens": 512, "stream": stream, "messages": [*messages, question]})

    left = size - len(body())
    while left > 1.5 * turn_size:
        added = turn(rng, turn_size)
        messages += added
        left -= len(orjson.dumps(added)) - 1
    if left > 0:
        question["content"] = f"{text(rng, left)} {question['content']}"
    return body()
