"""The bills of self-hosted servers' own endpoints."""

import pytest

from providers.native import read_usage
from providers.record import Usage

OLLAMA = b'{"done":true,"prompt_eval_count":26,"eval_count":298}'
NO_BILL = [
    b"",
    b"\n\n",
    b"[DONE]",
    b"[]",
    b"[1,2]",
    b"null",
    b"{}",
    b"[" * 5_000,
    b'{"prompt_eval_count":true,"eval_count":1}',
    b'{"prompt_eval_count":-1,"eval_count":1}',
    b'{"prompt_eval_count":1e3,"eval_count":1}',
    b'{"prompt_eval_count":"26","eval_count":1}',
    b'{"prompt_eval_count":99999999999999999999,"eval_count":1}',
    b'{"meta_info":{"prompt_tokens":7}}',
    b'{"meta_info":[7,5]}',
    b'[{"meta_info":{"prompt_tokens":7,"completion_tokens":5}},{}]',
    b'{"a":"\xff"}',
]


@pytest.mark.parametrize("text", NO_BILL)
def test_what_is_no_bill_is_none(text: bytes) -> None:
    assert read_usage(text, {}) is None


@pytest.mark.parametrize(
    "text",
    [
        OLLAMA,
        b" " + OLLAMA + b"\n",
        b'{"done":false}\n' * 9 + OLLAMA + b"\n",
        b'data: {"tokens_evaluated":26,"tokens_predicted":298}\n\ndata: [DONE]\n\n',
        b'data:{"meta_info":{"prompt_tokens":26,"completion_tokens":298}}\r\n\r\n',
        b'[{"meta_info":{"prompt_tokens":6,"completion_tokens":98}},{"meta_info":{"prompt_tokens":20,"completion_tokens":200}}]',
        b"half of a line\n" + OLLAMA,
    ],
)
def test_a_bill_is_read_from_a_body_its_last_line_or_its_last_event(text: bytes) -> None:
    assert read_usage(text, {}) == Usage(26, 298)
