"""A sentence that is binding for later turns is told from a remark and from a question."""

import pytest

from gateway.context.read.cues import binding


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
