"""Numbers in JSON keep their written form."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire import exact_json, piecewise
from gateway.wire.exact_json import dumps, loads
from gateway.wire.format import Edits
from gateway.wire.messages import MESSAGES

NUMBERS = [
    "1.50",
    "0.00001",
    "1E5",
    "1e999",
    "123456789012345678901234567890",
    "-18446744073709551617",
    "3.14159265358979323846",
    "0",
    "-1.0",
]
WORDS = "a word and another " * 400

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_written_as_it_was_read(number: str) -> None:
    text = f'{{"a":[{number},{{"b":{number}}}]}}'

    assert dumps(loads(text)) == text
    assert str(loads(f"[{number}]")[0]) == number


@given(values)
def test_everything_else_is_as_orjson_has_it(value: Any) -> None:
    text = orjson.dumps(value).decode()

    assert loads(text) == orjson.loads(text)
    assert dumps(loads(text)) == text


@pytest.mark.parametrize("text", ["", "{", "[1,]", "NaN", '"\\ud83d"', "\ud83d", "[" * 5000])
def test_what_is_no_json_is_an_error_of_orjson(text: str) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        loads(text)


def test_a_long_text_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise, "PIECE_BYTES", 8)

    assert (
        exact_json.dumps(exact_json.loads('{"a":[1.50,2.50],"b":"some words here"}'))
        == '{"a":[1.50,2.50],"b":"some words here"}'
    )


@pytest.mark.parametrize("number", ["1.50", "123456789012345678901234567890"])
def test_a_shortened_input_of_a_call_keeps_its_numbers(number: str) -> None:
    raw = (
        '{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":['
        f'{{"type":"tool_use","id":"t1","name":"look","input":{{"a":{number},"long":123456789012345678901,"text":"{WORDS}"}}}}]}},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}]}'
    ).encode()
    request = MESSAGES.parse(raw)
    assert request is not None
    call = request.messages[1]["tool_calls"][0]["function"]
    shorter = {
        **request.messages[1],
        "tool_calls": [{"function": {**call, "arguments": call["arguments"].replace(WORDS, "")}}],
    }

    sent = MESSAGES.encode(request, Edits(messages=(request.messages[0], shorter, request.messages[2])))

    assert b'"long":123456789012345678901,' in sent
