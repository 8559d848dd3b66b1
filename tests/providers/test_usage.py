"""What was billed is read wherever a provider puts it, and nothing else is taken for it."""

import pytest

from providers.record import Usage
from providers.usage import read_output, read_usage


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (b'{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}', Usage(10, 2)),
        (
            b'{"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}',
            Usage(10, 2, 8),
        ),
        (
            b'{"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":5}}}',
            Usage(10, 2, 3, 5),
        ),
        (b'{"usage":{"prompt_tokens":10,"completion_tokens":0,"prompt_cache_hit_tokens":4}}', Usage(10, 0, 4)),
        (
            b'{"usage":{"input_tokens":10,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}}',
            Usage(10, 2, 1),
        ),
        (b'{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":7,"completion_tokens":1}}}', Usage(7, 1)),
        (b'{"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":1}}}', Usage(3, 1)),
        (
            b'{"type":"message","usage":{"input_tokens":4,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":5}}',
            Usage(324, 5, 300, 20),
        ),
        (
            b'{"type":"message_start","message":{"usage":{"input_tokens":4,"cache_read_input_tokens":0,"output_tokens":1}}}',
            Usage(4, 1, 0),
        ),
        (b'{"type":"message_delta","delta":{},"usage":{"output_tokens":5}}', None),
        (b'{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}', Usage(3, 1)),
        (b'{"usage":{"prompt_tokens":10}}', Usage(10)),
        (b'{"choices":[{"delta":{"content":"hi"}}],"usage":null}', None),
        (b'{"choices":[{"delta":{"content":"\\"usage\\": 5"}}]}', None),
        (b'{"usage":{"prompt_tokens":"10"}}', None),
        (b'{"usage":{"prompt_tokens":-1}}', None),
        (b'{"usage":{"prompt_tokens":true}}', None),
        (b'{"usage":[1]}', None),
        (b'["usage"]', None),
        (b'{"usage"', None),
        (b"[DONE]", None),
        (b"", None),
    ],
)
def test_usage_is_read_from_a_body_or_an_event(body: bytes, usage: Usage | None) -> None:
    assert read_usage(body) == usage


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (b'{"type":"message_delta","usage":{"output_tokens":15}}', 15),
        (b'{"type":"message_delta","usage":{"input_tokens":4,"output_tokens":0}}', 0),
        (b'{"type":"message_delta","usage":null,"said":"output_tokens"}', None),
        (b'{"choices":[],"usage":{"output_tokens":true}}', None),
        (b'"output_tokens"', None),
    ],
)
def test_the_output_is_read_from_an_event_that_states_nothing_else(body: bytes, tokens: int | None) -> None:
    assert read_output(body) == tokens
