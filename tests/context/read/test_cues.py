"""What a sentence says about how it is to be taken."""

import pytest

from gateway.context.read.cues import binding, reports_error


@pytest.mark.parametrize(
    "sentence",
    [
        "Never call me before nine.",
        "All prices in francs from now on.",
        "Ich möchte immer am Fenster sitzen.",
        "Ne réserve jamais sans mon accord.",
        "No quiero hoteles lejos del metro, nunca.",
        "以后所有价格都用人民币表示。",
        "Всегда указывай номер полностью.",
        "항상 존댓말로 대답해 주세요.",
    ],
)
def test_what_is_to_hold_binds_more_than_a_remark(sentence: str) -> None:
    assert binding(sentence) > binding("That sounds nice.") > binding("Could you look that up for me?")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("E   AssertionError: 3 != 4", True),
        ("FAILED tests/test_a.py", True),
        ("bash: foo: No such file or directory", True),
        ("Error: card declined", True),
        ("2024-05-01 request served in 3 ms", False),
        ("all good", False),
    ],
)
def test_errors_are_told_from_other_rows(line: str, error: bool) -> None:
    assert reports_error(line) is error
