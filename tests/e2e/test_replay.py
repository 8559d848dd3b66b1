"""Recorded conversations, replayed request by request, are all served within windows they do not fit."""

import pytest

from benchmarks import replay
from benchmarks.recorded import CONVERSATIONS

EVERY = {"tau_airline": 33, "bfcl_long": 25, "swe_agent": 4}
"""Which part of each set is enough for a run of seconds; ``make replay`` runs all."""


@pytest.mark.parametrize("name", replay.SETS)
async def test_every_request_is_answered_and_no_promise_is_broken(name):
    if not CONVERSATIONS.is_dir():
        pytest.skip("the recorded conversations are not here (TURNFOLD_DATA names their folder)")
    found = await replay.run([name], replay.SHARES, EVERY[name], "o200k")
    outcomes = [outcome for outcomes in found.values() for outcome in outcomes]
    assert len(outcomes) > 40
    assert [outcome for outcome in outcomes if outcome.status != 200] == []
    assert [outcome for outcome in outcomes if outcome.broken] == []
    assert [outcome for outcome in outcomes if outcome.refusals > 1] == []


async def test_a_tokenizer_nobody_knows_is_refused_once_at_most():
    """The counts are then estimates; a refusal's numbers set them right."""
    if not CONVERSATIONS.is_dir():
        pytest.skip("the recorded conversations are not here (TURNFOLD_DATA names their folder)")
    found = await replay.run(["tau_airline"], [0.25], 50, "unknown")
    outcomes = [outcome for outcomes in found.values() for outcome in outcomes]
    assert [outcome for outcome in outcomes if outcome.status != 200 or outcome.refusals > 1 or outcome.broken] == []
