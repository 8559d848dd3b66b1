"""Halves of characters in JSON."""

import orjson
import pytest

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire import surrogates
from gateway.wire.chat import parse
from gateway.wire.message import text_of
from gateway.wire.splice import splice

LONG = "so it is " * 700


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\ud83d", "\ufffd"),
        (r"\uDE00 and \ud83d", "\ufffd and \ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\ud83d\ude00\ude00", "\U0001f600\ufffd"),
        (r"\\ud83d \ud83d", r"\ud83d" + " \ufffd"),
        (r"\\\ud83d\n\u0041", "\\\ufffd\nA"),
    ],
)
def test_a_half_is_read_as_the_replacement_character(written: str, read: str) -> None:
    assert surrogates.loads(f'{{"text": "{written}"}}'.encode()) == {"text": read}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[NaN, -Infinity,Infinity]", [None, None, None]),
        ('{"NaN": "NaN, \\"NaN", "a":NaN}', {"NaN": 'NaN, "NaN', "a": None}),
        ('["\\\\", NaN, "\\ud83d"]', ["\\", None, "\ufffd"]),
    ],
)
def test_a_number_that_is_none_is_read_as_null(written: str, read: object) -> None:
    assert surrogates.loads(written.encode()) == read


@pytest.mark.parametrize("raw", [b"{", b'{"a": NaNa}', b'{"a": "\\ud83d"', b'"\\u12"', b""])
def test_what_is_no_json_stays_none(raw: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        surrogates.loads(raw)


@pytest.mark.parametrize("filler", ["short", LONG], ids=["short", "long"])
def test_a_body_with_a_half_is_folded(filler: str) -> None:
    turns = [
        f'{{"role":"user","content":"Look \\ud83d {n} {filler}"}},{{"role":"assistant","content":"ok"}}'
        for n in range(9)
    ]
    raw = f'{{"model":"m","messages":[{",".join(turns)},{{"role":"user","content":"And \\udc00?"}}],"x":"\\ud83d"}}'.encode()
    request = parse(raw)
    assert request is not None
    count = counter("o200k")
    whole = sum(map(count.message, request.messages))

    draft = fold_conversation(request.messages, Budget(whole * 2 // 3, 0, 0, 0), count, Policy())
    sent = orjson.loads(splice(raw, {"messages": list(draft.messages), "x": 1}))["messages"]

    assert draft.turns_folded > 0
    assert text_of(sent[-1]).startswith("And \ufffd?")
