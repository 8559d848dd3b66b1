"""What the order of the signs is for: the same words mean different things in different company."""

import orjson
import pytest
from msgspec.structs import replace

from providers.cerebras import CEREBRAS
from providers.overflow.signs import SIGNS, read_refusal
from providers.record import OutputTooLarge, Overflow, Refusal


def read(message: str, status: int = 400, **more: object) -> Refusal | None:
    refusal = read_refusal(status, orjson.dumps({"error": {"message": message, **more}}))
    return replace(refusal, sign="") if refusal else None


@pytest.mark.parametrize(
    ("message", "status", "refusal"),
    [
        ("prompt is too long: 9000 tokens > 8192 maximum", 400, Overflow(8192, 9000)),
        ("prompt is too long: 9000 tokens > 8192 maximum", 429, None),
        ("maximum context length is 8192 tokens, however you requested 9000 tokens", 429, Overflow(8192, 9000)),
        ("maximum context length is 8192 tokens, rate limit exceeded", 400, None),
        ("max_tokens is too large: 9000", 400, None),
        ("max_tokens is too large: 9000. The context length is 8192 and your prompt has 100 tokens", 400, Overflow(8192, 100, 9000)),
        ("max_tokens=4096 cannot be greater than max_model_len=2048", 400, OutputTooLarge(2048)),
        ("max_tokens must be at least 1, got -7584", 400, Overflow()),
        ("max_tokens must be at least 1, got 0", 400, OutputTooLarge(0)),
        ("Invalid 'messages[0].content': string too long", 400, Overflow()),
        ("Invalid 'messages[0].name': string too long", 400, None),
        ("The conversation holds 8193 tokens, more than the 8192 the model takes", 400, Overflow(8192, 8193, exact=False)),
        ("too many tokens: size limit exceeded by 1000 tokens. The limit is 8192 tokens", 400, Overflow(8192, total=9192, excess=1000)),
    ],
)  # fmt: skip
def test_the_words_around_a_sign_decide_whether_it_is_a_refusal(
    message: str, status: int, refusal: Refusal | None
) -> None:
    assert read(message, status) == refusal


@pytest.mark.parametrize(
    "code", ["invalid_request_error", "400", "bad_response_status_code", "BadRequestError", "1261"]
)
def test_a_generic_code_says_nothing(code: str) -> None:
    assert read("Bad Request", code=code, type=code) is None


@pytest.mark.parametrize(
    "code", ["context_length_exceeded", "ContextWindowExceededError", "model_max_prompt_tokens_exceeded"]
)
def test_a_telling_code_needs_no_text(code: str) -> None:
    assert read("Bad Request", code=code) == Overflow()


def test_a_bare_413_teaches_no_window() -> None:
    assert read_refusal(413, b"") == Overflow(sign="bare_413")
    assert read_refusal(413, b"\n<html><title>413 Request Entity Too Large</title></html>") is None


def test_only_cerebras_means_too_long_by_an_empty_400() -> None:
    assert read_refusal(400, b"") is None
    assert CEREBRAS.read_refusal(400, b"") == Overflow(sign="no_body")


def test_numbers_in_fields_fill_in_what_the_text_leaves_out() -> None:
    body = b'{"error":{"message":"exceeds the available context size","n_prompt_tokens":9000,"n_ctx":8192}}'
    assert read_refusal(400, body) == Overflow(8192, 9000, sign="over_context")


def test_the_signs_have_names_of_their_own() -> None:
    names = [sign.name for sign in SIGNS]
    assert len(names) == len(set(names))
