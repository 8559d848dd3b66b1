"""Memory stays within its budget, whatever is derived, and forgetting changes nothing but the time it takes."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import orjson
import pytest
from msgspec.structs import replace

from benchmarks.speed import bodies
from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.chat import encode, parse
from gateway.wire.derived import derived_of
from gateway.wire.format import Edits
from gateway.wire.memory import Memory, Recent
from tests.allocation import allocation

BUDGET = Budget(4096, 256, 40, 30)
KB = 1000


def conversation(seed: int, size: int = 60 * KB) -> bytes:
    return bodies.conversation(size, "m", seed=seed, turn_size=4000)


def folded(raw: bytes, memory: Memory) -> bytes:
    request = parse(raw, memory)
    assert request
    draft = fold_conversation(request.messages, BUDGET, counter("o200k", memory=memory), Policy(), memory=memory)
    assert draft.turns_folded
    return orjson.dumps(draft.messages)


def test_what_is_remembered_stays_within_the_budget() -> None:
    memory = Memory(2**20)

    for seed in range(12):
        folded(conversation(seed), memory)
        assert 2**19 < memory.size <= 2**20


@pytest.mark.parametrize("budget", [0, 2**16, 2**20, 2**26])
def test_a_smaller_memory_changes_no_byte_that_is_sent(budget: int) -> None:
    memory = Memory(budget)
    asked = [conversation(seed) for seed in (1, 2, 1, 3, 1)]

    assert [folded(raw, memory) for raw in asked] == [folded(raw, Memory()) for raw in asked]


def test_a_grown_conversation_costs_only_its_new_messages() -> None:
    memory = Memory()
    folded(conversation(1, 60 * KB), memory)
    before = memory.size

    folded(conversation(1, 64 * KB), memory)
    grown = memory.size - before

    assert 0 < grown < before / 2, "its lines are weighed anew, its messages are not read again"
    folded(conversation(1, 64 * KB), memory)
    assert memory.size == before + grown, "the same again takes nothing"


def test_the_conversation_that_was_not_asked_for_the_longest_is_forgotten() -> None:
    first, second = conversation(1), conversation(2)
    memory = Memory(3 * 2**20)
    kept = parse(first, memory)
    assert kept

    for seed in range(3, 30):
        folded(first, memory)
        folded(conversation(seed), memory)

    again = parse(first, memory)
    assert again
    assert again.messages[1] is kept.messages[1]
    assert derived_of(again.messages[1]).lines is not None
    assert parse(second, memory) is not None


def test_the_estimate_is_close_to_what_python_allocates() -> None:
    folded(conversation(0), Memory())  # tables of words and modules are loaded
    memory = Memory(2**26)
    with allocation() as found:
        for seed in range(100, 106):
            folded(conversation(seed, 200 * KB), memory)

    assert 0.75 < memory.size / found.left < 1.25


def test_a_lower_budget_is_kept_from_the_next_request_on() -> None:
    memory = Memory(2**22)
    folded(conversation(1), memory)
    assert memory.size > 2**18

    memory.budget = 2**18
    folded(conversation(2), memory)

    assert memory.size <= 2**18


def test_two_threads_may_fold_with_one_memory() -> None:
    """Case: the event loop parses while the pool's thread folds."""
    memory = Memory(2**20)
    asked = [conversation(seed % 5, 30 * KB) for seed in range(40)]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda raw: folded(raw, memory), asked))

    assert found == [folded(raw, Memory()) for raw in asked]
    memory.clear()
    assert memory.size == 0


def test_the_same_conversation_is_folded_once_and_written_the_same() -> None:
    memory, raw = Memory(), conversation(1)
    first, again = parse(raw, memory), parse(raw, memory)
    assert first
    assert again
    count = counter("o200k", memory=memory)
    fold = partial(fold_conversation, budget=BUDGET, counter=count, policy=Policy(), memory=memory)

    before, after = fold(first.messages), fold(again.messages)

    assert after == before
    assert after.steps is before.steps
    assert encode(again, Edits(messages=after.messages)) == encode(first, Edits(messages=before.messages))
    assert fold(first.messages[:-1]).steps is not before.steps
    assert fold(first.messages, budget=replace(BUDGET, reserve=300)).steps is not before.steps


def test_a_value_that_takes_the_place_of_another_gives_its_bytes_back() -> None:
    memory = Memory(2**20)
    recent: Recent[str, bytes] = Recent(memory, lambda key, value: len(key) + len(value), 0.5)
    recent.put("other", b"o" * KB)
    for length in range(1000):
        recent.put("one", b"1" * (KB + length))
    assert recent.get("other") is not None
    assert len(recent.young) == 2, "a thousand values of one key have not begun a new generation"
    assert memory.size == sum(len(key) + len(value) for key, value in recent.young.items())
