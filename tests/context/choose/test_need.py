"""Whether an instruction needs what was said."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.context.choose.need import need
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool

NEEDED = 0.8
"""Points of a message that names something that was spoken of."""
REMARKS = (
    "Dilys at the sail loft has a steam box she'd lend me if I returned it swept",
    "the spare key hangs in the shed behind the watering cans",
    "Garf gave me his own mallet for the caulking",
    "the launch is on midsummer day at high water",
    "we had soup and bread on the slipway",
    "Loveday asked what I thought had killed a fender",
    "the engine is a Beta with six hundred hours",
    "I singed half my left eyebrow with the gun",
)


POOL = LinePool(
    MessageLines(index, role, lines.read({"role": role, "content": text}))
    for index, (role, text) in enumerate(
        each for remark in REMARKS for each in (("user", remark), ("assistant", "I see, thank you."))
    )
)


@pytest.mark.parametrize(
    "instruction",
    [
        "Draft a thank-you to Dilys for the steam box.",
        "Write a note about the spare key and the shed.",
        "Put together a page about our launch.",
        "By the way, what was that mallet for?",
    ],
)
def test_an_instruction_about_what_was_said_needs_it(instruction: str) -> None:
    assert need(POOL, instruction) >= NEEDED


@pytest.mark.parametrize(
    "instruction",
    [
        "Write a haiku about autumn leaves.",
        "Write a product description of a steel bottle with a bamboo lid.",
        "Thanks. Now make it shorter, please.",
        "Translate this into French: the engine is closed.",
        "Explain the difference between a mutex and a semaphore.",
    ],
)
def test_an_instruction_for_something_new_does_not(instruction: str) -> None:
    assert need(POOL, instruction) < NEEDED


def test_a_familiar_word_that_nobody_said_counts_against_it() -> None:
    assert need(POOL, "Write a note about the shed and the orchard.") < need(POOL, "Write a note about the shed.")


def test_words_of_the_system_prompt_count_less() -> None:
    text = "Write a note about the shed."

    assert need(POOL, text, {"shed"}) < need(POOL, text)


def test_an_empty_past_is_needed_by_nothing() -> None:
    assert need(LinePool([]), "Draft a thank-you to Dilys for the steam box.") <= 0.0


NEED = """
from tests.context.choose.test_need import POOL
from gateway.context.choose.need import need
print(need(POOL, "Write a note about the launchpad and a launcher."))
"""


def test_two_processes_find_the_same_need() -> None:
    """Both words begin like *launch*, which was said: the familiar one of them counts."""
    found = {
        subprocess.run(
            [sys.executable, "-c", NEED], env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True, check=True, text=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }  # fmt: skip

    assert len(found) == 1
    assert float(found.pop()) > 0
