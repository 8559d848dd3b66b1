"""However a server puts it, the controlled language says it the same way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.overflow.wording import normalise


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The input is longer than the model's context length.", "prompt over model context ."),
        ("input exceeds context window", "prompt over context"),
        ("InputExceedsContextWindow", "prompt over context"),
        ("input_exceeds_context_window", "prompt over context"),
        ("输入超过上下文窗口", "prompt over context"),
        ("Der Prompt überschreitet das Kontextfenster", "prompt over context"),
        ("Le prompt dépasse le contexte", "prompt over context"),
        ("La entrada supera el contexto", "prompt over context"),
        ("запрос превышает контекст", "prompt over context"),
        ("must be less than or equal to 4096", "at_most #4096"),
        ("cannot be greater than 4096", "at_most #4096"),
        ("should be greater than 4096", "at_least #4096"),
        ("context deadline exceeded", "time over"),
        ("the access token was refused", "auth ~"),
    ],
)
def test_a_thing_said_in_many_ways_reads_as_one(text: str, said: str) -> None:
    assert normalise(text) == f" {said} "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,048,576", "#1048576"),
        ("1_048_576", "#1048576"),
        ("9.120 Token", "#9120 token"),
        ("9 000 jetons", "#9000 token"),
        ("128k tokens", "#128000 token"),
        ("1M tokens", "#1000000 token"),
        ("2.5", "#2"),
        ("-7584", "#-7584"),
        ("20971520 bytes", "%"),
        ("5MB", "%"),
        ("31800 characters", "%"),
        ("in 20.7s", "time"),
        ("gpt-4-32k", "~"),
        ("Llama-3.1-8B-Instruct", "~"),
        ("request id: 0217752964393142fa50af", ""),
        ("(request id: 20250611110758283206479dq0R9awt)", ""),
        ("id 5e1c0f3e-0000-4000-8000-000000000000", "~"),
        ("[1261][Prompt too long][2026092913]", "prompt too_long"),
        ("<400> InternalError", "~"),
        ("Error code: 400, x", "~"),
        ("until 2026-10-01 00:00:00", "~"),
        ("see https://example.com/prompt-is-too-long?max=4096", "~"),
        ("99999999999", "~"),
    ],
)
def test_only_sizes_read_as_numbers(text: str, said: str) -> None:
    assert normalise(text).strip() == said


@pytest.mark.parametrize(
    "text",
    [
        "[type=dict_type, input_value='prompt is too long: 9 > 8', input_type=str]",
        "the model `prompt-is-too-long`",
        "function 'handle_context_length_exceeded'",
        "unknown variant `too many tokens`",
        "context_length_exceeded_behavior",
    ],
)
def test_names_and_repeated_values_say_nothing(text: str) -> None:
    assert "over" not in normalise(text)
    assert "too_long" not in normalise(text)


@given(st.text(max_size=400))
def test_any_text_reads_as_words_between_single_spaces(text: str) -> None:
    said = normalise(text)
    assert said[0] == said[-1] == " "
    assert "  " not in said.strip()
