"""The library: fold, count and read refusals in another program."""

import json  # noqa: TID251  # reads and writes half an emoji, which orjson does not
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest

from gateway.standin import messages as strict_messages
from gateway.standin import ollama as strict_ollama
from gateway.standin import responses as strict_responses
from gateway.standin import validity
from tests.wire.conversations import messages_body, ollama_body, responses_body
from turnfold import Memory, Policy, Refusal, count, fold, read_refusal, smaller

TURNS: list[dict[str, Any]] = [{"role": "system", "content": "Answer briefly."}]
for number in range(60):
    TURNS += [
        {"role": "user", "content": f"Order {number}: the parcel {number * 7919} goes to street {number}. " * 8},
        {"role": "assistant", "content": f"Parcel {number * 7919} is noted. " * 6},
    ]
TURNS.append({"role": "user", "content": "Where does parcel 79190 go?"})

TOO_LONG = (
    b'{"error":{"message":"This model\'s maximum context length is 3000 tokens. However, your messages resulted in 3900 tokens. '
    b'Please reduce the length of the messages.","type":"invalid_request_error","code":"context_length_exceeded"}}'
)


@pytest.mark.parametrize(
    "make", [pytest.param(messages_body, id="messages"), pytest.param(responses_body, id="responses")]
)
def test_a_memory_that_forgets_changes_no_fold(make: Any) -> None:
    """It is filled by the requests of others, too."""
    memory = Memory(50_000)
    differ = []
    for seed in range(60):
        body = make(seed)
        whole, forgetful = [fold(body, window=1500, output_reserve=50, memory=used) for used in (None, memory)]
        differ += [] if whole.body == forgetful.body else [seed]

    assert differ == []


def test_a_long_conversation_fits_and_keeps_what_its_question_needs() -> None:
    folded = fold({"model": "gpt-4o", "messages": TURNS}, window=4096)

    assert folded.changed
    assert folded.fits
    assert folded.tokens_after < 4096 < folded.tokens_before
    assert folded.turns_folded > 10
    sent = folded.body["messages"]
    assert sent[0] == TURNS[0]
    assert sent[-1]["content"] == TURNS[-1]["content"] or TURNS[-1]["content"] in str(sent)
    assert "street 10." in orjson.dumps(sent).decode()
    assert validity.violations(sent) == []


def test_what_fits_is_the_very_object_that_was_given() -> None:
    body = {"model": "gpt-4o", "messages": TURNS[:3]}
    raw = orjson.dumps(body)

    assert fold(body, window=4096).body is body
    assert fold(raw, window=4096).body is raw
    assert not fold(raw, window=4096).changed


def test_a_body_comes_back_in_the_shape_in_which_it_was_given() -> None:
    body = {"model": "gpt-4o", "temperature": 1, "messages": TURNS}
    whole = fold(body, window=4096).body

    assert whole["temperature"] == 1
    assert orjson.loads(fold(orjson.dumps(body), window=4096).body) == whole
    assert orjson.loads(fold(orjson.dumps(body).decode(), window=4096).body) == whole
    assert fold(TURNS, window=4096, model="gpt-4o").body == whole["messages"]


@pytest.mark.parametrize(
    ("format", "body", "violations"),
    [
        ("responses", responses_body(7), strict_responses.added),
        ("messages", messages_body(7), strict_messages.added),
        ("ollama", {**ollama_body(3), "keep_alive": 5}, lambda _, sent: strict_ollama.violations(sent)),
    ],
)
def test_every_format_is_recognised_and_stays_valid(format: Any, body: dict[str, Any], violations: Any) -> None:
    window = count(body) // 2
    folded = fold(body, window=window, output_reserve=16)

    assert fold(body, window=window, output_reserve=16, format=format).body == folded.body
    assert folded.tokens_after < folded.tokens_before
    assert violations(body, folded.body) == []


def test_a_refused_request_becomes_smaller_until_nothing_is_left() -> None:
    refusal = read_refusal(400, {"content-type": "application/json"}, TOO_LONG)
    assert isinstance(refusal, Refusal)
    folded = fold({"model": "gpt-4o", "messages": TURNS}, window=4096)

    second = smaller(folded, refusal)

    assert second is not None
    assert len(orjson.dumps(second.body)) < len(orjson.dumps(folded.body))
    assert second.window == 3000
    steps = 0
    while second is not None:
        steps, second = steps + 1, smaller(second, refusal)
        assert steps < 20


def test_the_window_of_a_known_model_needs_no_number() -> None:
    folded = fold({"model": "gpt-4o", "messages": TURNS[:3]})

    assert folded.window == 128_000
    assert folded.fits


REFUSALS = [
    (200, {"content-type": "application/json"}, b'{"choices":[]}', None),
    (400, {}, b'{"error":{"message":"Unknown parameter: foo"}}', None),
    (413, {"Content-Type": "application/json"}, TOO_LONG, 3000),
    (200, {"Content-Type": "text/event-stream"}, b"data: " + TOO_LONG + b"\n\n", 3000),
    (200, {"Content-Type": "text/event-stream"}, b": ping\n\n", None),
]


@pytest.mark.parametrize(("status", "headers", "body", "limit"), REFUSALS)
def test_a_refusal_is_read_from_any_answer(
    status: int, headers: dict[str, str], body: bytes, limit: int | None
) -> None:
    refusal = read_refusal(status, headers, body)

    assert (refusal.numbers.limit if refusal else None) == limit


BAD: list[tuple[dict[str, Any], str]] = [
    ({"body": b"not json", "window": 100}, "this is not a chat, responses, messages or ollama request"),
    ({"body": {"input": 7}, "window": 100, "format": "responses"}, "this is not a responses request"),
    ({"body": TURNS, "model": "nobody-knows-it"}, "no context window is known for the model 'nobody-knows-it'"),
    ({"body": TURNS, "window": 0}, "the window must be a number of tokens"),
    ({"body": TURNS, "window": True}, "the window must be a number of tokens"),
    ({"body": TURNS, "window": "3000"}, "the window must be a number of tokens"),
    ({"body": TURNS, "window": 3000, "tokenizer": "o300k"}, 'no tokenizer "o300k"'),
    ({"body": TURNS, "window": 3000, "format": "gemini"}, 'no format "gemini"'),
    ({"body": {"messages": TURNS}, "window": 3000, "format": "gemini"}, 'no format "gemini"'),
    ({"body": {"messages": [{"role": "user", "content": {1, 2}}]}, "window": 3000}, "cannot be written as JSON"),
    (
        {"body": None, "window": 3000},
        "a request is JSON as bytes or str, a mapping, or a list of messages, not NoneType",
    ),
    ({"body": 5, "window": 3000}, "a list of messages, not int"),
    ({"body": (turn for turn in TURNS), "window": 3000}, "a list of messages, not generator"),
    ({"body": bytearray(b'{"messages": []}'), "window": 3000}, "a list of messages, not bytearray"),
    ({"body": TURNS, "window": 3000, "output_reserve": "8"}, "output_reserve must be a number of tokens"),
    ({"body": TURNS, "window": 3000, "output_reserve": -1}, "output_reserve must be a number of tokens"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_what_cannot_be_folded_is_refused_with_the_reason(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fold(**arguments)


def test_an_answer_that_is_no_refusal_says_so_where_one_is_needed() -> None:
    with pytest.raises(ValueError, match="read_refusal\\(\\) returned none for this answer"):
        smaller(fold(TURNS, window=3000), read_refusal(500, {}, b"down"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the body of an answer is bytes, not str"):
        read_refusal(400, {}, "too long")  # type: ignore[arg-type]


HALF = "cut \ud83d here"


@pytest.mark.parametrize(
    "shape",
    [
        lambda messages: messages,
        lambda messages: {"messages": messages, "seed": 2**70},
        lambda messages: json.dumps({"messages": messages}),
        lambda messages: json.dumps({"messages": messages}, ensure_ascii=False),
        lambda messages: json.dumps({"messages": messages}).encode(),
    ],
    ids=["a list", "an object", "text in ASCII", "text", "bytes"],
)
def test_text_that_strict_parsers_refuse_is_folded_in_every_shape(shape: Any) -> None:
    """A program that cuts a text in the middle of an emoji holds half of it; orjson writes neither that nor 2**70."""
    found = fold(shape([*TURNS, {"role": "user", "content": HALF}]), window=3000)
    assert found.fits
    assert found.changed
    value = found.body if isinstance(found.body, (list, dict)) else json.loads(found.body)
    messages = value if isinstance(value, list) else value["messages"]
    assert HALF.split("\ud83d", maxsplit=1)[0] in str(messages[-1]["content"])
    assert isinstance(value, list) or value.get("seed", 2**70) == 2**70


def test_a_policy_decides_as_in_the_gateway() -> None:
    folded = fold(TURNS, window=4096, model="gpt-4o", policy=Policy(max_turns=1, recall_share=0.0))

    assert folded.turns_folded == 60


def test_threads_that_share_a_memory_get_the_same_bytes() -> None:
    memory = Memory()
    raw = orjson.dumps({"model": "gpt-4o", "messages": TURNS})
    alone = fold(raw, window=4096).body

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fold(raw, window=4096, memory=memory).body, range(12)))

    assert set(found) == {alone}


SERVER = {
    "aiohttp",
    "asyncio",
    "multidict",
    "redis",
    "socket",
    "sqlite3",
    "ssl",
    "structlog",
    "uvloop",
    "click",
    "rich",
}
USE = """
fold({"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 9000}]})
count([{"role": "user", "content": "Hello"}], model="gpt-4o")
read_refusal(400, {}, b'{"error":{"code":"context_length_exceeded"}}')
"""


@pytest.mark.parametrize("use", ["", USE], ids=["import alone", "in use"])
def test_the_library_brings_in_no_server(use: str) -> None:
    script = (
        f"from turnfold import fold, count, read_refusal, smaller\n{use}\nimport sys; print(*sys.modules, sep='\\n')"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = set(found.stdout.split())
    assert {name.partition(".")[0] for name in loaded} & SERVER == set()
    rooms = {
        "gateway.serve",
        "gateway.state",
        "gateway.command",
        "gateway.observe",
        "gateway.standin",
        "gateway.extproc",
    }
    assert loaded & rooms == set()
    assert ("gateway.context.life.ladder" in loaded) is bool(
        use
    )  # the core comes with the first call, not with the import
    assert "yaml" not in loaded or use


def test_a_window_that_a_request_asks_for_limits_the_given_one() -> None:
    body = {"model": "llama3.2", "messages": TURNS, "options": {"num_ctx": 2048}}
    assert fold(body, window=8192).window == 2048
    assert fold(body, window=1024).window == 1024


def test_a_refusal_in_the_first_line_of_a_stream_is_read() -> None:
    line = b'{"error":"input length (9000 tokens) exceeds the model\'s maximum context length (4096 tokens)"}\n'
    told = read_refusal(200, {"content-type": "application/x-ndjson"}, line, provider="ollama", format="ollama")
    assert told is not None
    assert told.numbers.limit == 4096
