"""The simulated caches do what the published rules say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks.cache.prompt import rendered
from benchmarks.cache.simulate import Bill, Block, Cache, common_prefix, send
from gateway.context.cache.rules import ANTHROPIC, LLAMA_CPP, OPENAI, OPENAI_BOUNDARY, RULES, VLLM, Matching


def block(section: str, size: int, seed: int = 0, mark_s: float = 0.0) -> Block:
    return Block(section, tuple(range(seed * 100_000, seed * 100_000 + size)), mark_s)


def bills(rule, *requests, every_s: float = 10.0):
    cache, found = Cache(rule), []
    for number, blocks in enumerate(requests):
        cache, bill = send(cache, blocks, number * every_s)
        found.append(bill)
    return found


SYSTEM = block("system", 1000, 1)
FIRST = block("user", 500, 2)
ANSWER = block("assistant", 300, 3)
SECOND = block("user", 100, 4)


def test_a_prompt_below_the_smallest_size_is_never_cached() -> None:
    short = [block("user", 1023)]
    assert bills(OPENAI, short, short) == [Bill(fresh=1023), Bill(fresh=1023)]


def test_a_grown_conversation_reads_its_old_part_in_whole_steps() -> None:
    first, second = bills(OPENAI, [SYSTEM, FIRST], [SYSTEM, FIRST, ANSWER, SECOND])
    assert first == Bill(fresh=1500)
    assert second == Bill(read=1408, fresh=492)


def test_an_entry_that_was_not_used_for_its_lifetime_is_gone() -> None:
    _, second = bills(OPENAI, [SYSTEM, FIRST], [SYSTEM, FIRST], every_s=301)
    assert second.read == 0


def test_a_block_cache_that_is_full_forgets_what_was_used_longest_ago() -> None:
    small = replace(VLLM, capacity=2000)
    one, other = [block("user", 1500, 1)], [block("user", 1500, 2)]
    assert [bill.read for bill in bills(small, one, other, one)] == [0, 0, 0]
    assert [bill.read for bill in bills(VLLM, one, other, one)] == [0, 0, 1488]


def test_a_slot_reads_what_its_last_prompt_shares_with_the_new_one() -> None:
    one, other = [SYSTEM, FIRST], [SYSTEM, SECOND]
    assert [bill.read for bill in bills(LLAMA_CPP, one, other, one)] == [0, 1000, 1000]


def test_newer_openai_models_read_only_where_an_entry_was_written() -> None:
    first, grown, changed = bills(
        OPENAI_BOUNDARY, [SYSTEM, FIRST], [SYSTEM, FIRST, ANSWER, SECOND], [SYSTEM, block("user", 500, 9)]
    )
    assert first == Bill(written=1500)
    assert grown == Bill(read=1500, written=400)
    assert changed == Bill(written=1500)  # the system message alone was never an entry


def test_an_explicit_breakpoint_keeps_the_stable_beginning_readable() -> None:
    stable = block("system", 1100, 1, mark_s=1800)
    _, changed = bills(OPENAI_BOUNDARY, [stable, FIRST], [stable, block("user", 500, 9)])
    assert changed == Bill(read=1100, written=500)


def test_without_a_breakpoint_of_its_own_openai_stores_nothing_behind_the_last_mark() -> None:
    asked = [block("user", 1100, 1, mark_s=1800), block("user", 300, 2)]
    _, bill = send(Cache(OPENAI_BOUNDARY), asked, 0.0, managed=False)
    assert bill == Bill(written=1100, fresh=300)


def test_the_breakpoint_of_the_provider_counts_among_those_a_rule_allows() -> None:
    asked = [block("assistant", 1100, 1, mark_s=1800), block("assistant", 300, 2)]
    cache, _ = send(Cache(replace(OPENAI_BOUNDARY, marks=1)), asked, 0.0)
    assert not cache.entries, "its only breakpoint is the managed one"


def test_tools_stand_where_the_provider_renders_them() -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    sections = [
        [each.section for each in rendered(messages, rule, lambda text: tuple(map(ord, text)), "tools")]
        for rule in (ANTHROPIC, LLAMA_CPP)
    ]
    assert sections == [["tools", "system", "user"], ["system", "tools", "user"]]


def test_claude_caches_nothing_without_a_mark() -> None:
    assert bills(ANTHROPIC, [SYSTEM, FIRST], [SYSTEM, FIRST])[1] == Bill(fresh=1500)


def test_claude_reads_an_older_entry_within_twenty_blocks_before_a_mark() -> None:
    def history(length: int) -> list[Block]:
        blocks = [SYSTEM, *(block("user", 100, 10 + number) for number in range(length))]
        return [*blocks[:-1], replace(blocks[-1], mark_s=300)]

    _, near = bills(ANTHROPIC, history(5), history(20))
    assert near == Bill(read=1500, written=1500)
    _, far = bills(ANTHROPIC, history(5), history(26))
    assert far == Bill(written=3600)


def test_a_longer_lifetime_is_written_at_its_own_price() -> None:
    [bill] = bills(ANTHROPIC, [block("system", 2000, 1, mark_s=3600), replace(FIRST, mark_s=300)])
    assert bill == Bill(written=500, written_long=2000)
    assert bill.cost(ANTHROPIC) == pytest.approx(500 * 1.25 + 2000 * 2)


prompts = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 900)), min_size=1, max_size=6), max_size=8)


@given(prompts, st.sampled_from(sorted(RULES)))
def test_every_token_is_billed_once(rows: list[list[tuple[int, int]]], name: str) -> None:
    rule = RULES[name]
    mark = rule.lifetime_s if rule.matching is Matching.MARKED else 0.0
    requests = [
        [block("user", size, seed, mark if n == len(row) - 1 else 0) for n, (seed, size) in enumerate(row)]
        for row in rows
    ]
    for request, bill in zip(requests, bills(rule, *requests), strict=True):
        assert bill.prompt == sum(len(part.tokens) for part in request)
        assert min(bill.read, bill.written, bill.written_long, bill.fresh) >= 0


@given(st.lists(st.integers(0, 2), max_size=60), st.lists(st.integers(0, 2), max_size=60))
def test_the_common_prefix_is_found(one: list[int], other: list[int]) -> None:
    slow = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    assert common_prefix(tuple(one), tuple(other)) == slow


def test_every_rule_names_its_source_and_day() -> None:
    assert all(rule.source.startswith("https://") and rule.read_on for rule in RULES.values())
