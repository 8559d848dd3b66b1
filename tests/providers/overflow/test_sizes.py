"""Numbers are read by what is said about them, and a number about which nothing is said stays unread."""

import pytest

from providers.overflow.sizes import prove_overflow, sizes
from providers.overflow.wording import normalise

CASES = [
    ("maximum context length is 4096 tokens. However, your messages resulted in 4109 tokens (4046 in the messages, 63 in the functions)", dict(limit=4096, prompt=4109, total=4109)),
    ("maximum context length is 4097 tokens, however you requested 4130 tokens (130 in your prompt; 4000 for the completion)", dict(limit=4097, prompt=130, completion=4000, total=4130)),
    ("prompt is too long: 201016 tokens > 200000 maximum", dict(limit=200000, prompt=201016)),
    ("input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000", dict(limit=200000, prompt=199211, completion=20000)),
    ("8192 > 32768 - 30000", dict(limit=32768, prompt=30000, completion=8192)),
    ("Range of input length should be [1, 98304]", dict(limit=98304)),
    ("size limit exceeded by 168512 tokens. The limit for this model is 132000 tokens.", dict(limit=132000, excess=168512)),
    ("your prompt contains at least 769 input tokens, for a total of at least 32769 tokens", dict(bound=769)),
    ("input tokens (35050) and output tokens 100 exceed 32000 tokens", dict(limit=32000, prompt=35050, completion=100)),
    ("total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354", dict(limit=2048, total=6354)),
    ("context overflow: 9000/8192 tokens", dict(limit=8192, prompt=9000)),
    ("Request payload size exceeds the limit: 20971520 bytes", {}),
    ("string too long. Expected a string with maximum length 1048576, but got a string with length 2000000", {}),
    ("the batch of 512 was refused in position 77", {}),
    ("input token count exceeds the maximum", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), CASES)
def test_a_number_is_what_the_text_calls_it(text: str, found: dict[str, int]) -> None:
    assert sizes(normalise(text)) == found


@pytest.mark.parametrize(
    ("text", "proof"),
    [
        ("9301 tokens in your request, maximum tokens 8192", True),
        ("8000 tokens in your request, maximum tokens 8192", False),
        ("9301 apples, maximum 8192", False),
        ("8000 prompt tokens and 1000 output tokens, limit 8192", True),
    ],
)
def test_numbers_prove_an_overflow_only_when_the_larger_one_is_the_size(text: str, proof: bool) -> None:
    assert prove_overflow(normalise(text)) is proof
