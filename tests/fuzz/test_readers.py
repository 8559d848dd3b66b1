"""Every reader of foreign bytes keeps its promises: on good examples, on what a fuzzer found once, and on what hypothesis makes of both.

`python -m benchmarks.fuzz` looks for more; what it finds is kept in `findings`, named after its target.
"""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzz.mutation import changed
from benchmarks.fuzz.targets import TARGETS, seeds

FINDINGS = sorted((Path(__file__).parent / "findings").iterdir())
EXAMPLES = 40
"""For each target; the fuzzer tries millions."""


@pytest.mark.parametrize("target", TARGETS)
def test_good_examples_are_read(target: str) -> None:
    assert seeds(target)
    for seed in seeds(target):
        TARGETS[target](seed)


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda path: path.name)
def test_what_was_found_once_breaks_nothing_any_more(finding: Path) -> None:
    TARGETS[finding.name.partition("-")[0]](finding.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_bytes_changed_at_will_break_nothing(target: str, data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(seeds(target))))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        length = data.draw(st.integers(0, 12))
        raw[start : start + length] = data.draw(st.binary(max_size=12))
    TARGETS[target](bytes(raw))


DOCUMENTS = {
    (target, number): seed for target in TARGETS for number, seed in enumerate(seeds(target)) if seed.startswith(b"{")
}


@pytest.mark.parametrize("place", DOCUMENTS, ids=lambda place: f"{place[0]}-{place[1]}")
@settings(max_examples=2 * EXAMPLES)
@given(seed=st.integers(0, 2**32))
def test_values_changed_at_will_break_nothing(place: tuple[str, int], seed: int) -> None:
    """A member without a name, a list where a type was meant: all found in this way."""
    TARGETS[place[0]](changed(DOCUMENTS[place], Random(seed)))
