"""A conversation is billed as it was sent, unfolded, and cut by its client."""

from gateway.context.cache.compare import Comparison, Request, counterfactual, drop_oldest_half
from gateway.context.cache.prompt import rendered
from gateway.context.cache.rules import ANTHROPIC, OPENAI_BOUNDARY, VLLM
from gateway.context.cache.simulate import Bill


def encode(text):
    """One token a word."""
    return tuple(hash(word) for word in text.split())


def words(count, name):
    return " ".join(f"{name}{number}" for number in range(count))


SYSTEM = {"role": "system", "content": words(200, "rule")}


def turns(count, size=100):
    """The messages after each question of a conversation."""
    messages = [SYSTEM]
    for number in range(count):
        messages.append({"role": "user", "content": words(size, f"question{number}x")})
        yield list(messages)
        messages.append({"role": "assistant", "content": words(size, f"answer{number}x")})


def test_what_fits_costs_the_same_in_every_way() -> None:
    requests = [Request(10.0 * n, came, came, 10_000) for n, came in enumerate(turns(4))]
    found = counterfactual(requests, VLLM, encode)
    assert found.ours == found.unfolded == found.cut
    assert found.too_large == 0
    assert found.unfolded.read > 0


def test_a_conversation_that_outgrows_its_room_is_cut_and_says_how_often_it_would_have_been_refused() -> None:
    came = list(turns(10))
    requests = [Request(10.0 * n, m, [SYSTEM, m[-1]], 1200) for n, m in enumerate(came)]
    found = counterfactual(requests, VLLM, encode)
    assert found.too_large == sum(sum(len(encode(m["content"])) + 1 for m in messages) > 1200 for messages in came)
    assert found.cut.prompt < found.unfolded.prompt
    assert found.ours.prompt == sum(len(encode(m[-1]["content"])) + 1 + 201 for m in came)


def test_a_client_that_cuts_keeps_its_pinned_messages_and_the_newest_turn_and_stays_where_it_is() -> None:
    kept = [drop_oldest_half(messages, 1200, VLLM, encode) for messages in turns(10)]
    assert all(messages[0] == SYSTEM for messages in kept)
    assert all(messages[-1]["role"] == "user" for messages in kept)
    starts = [messages[1]["content"][:12] for messages in kept]
    assert len(set(starts)) == 3  # it does not move with each turn
    assert drop_oldest_half([SYSTEM, {"role": "user", "content": words(5000, "long")}], 100, VLLM, encode)[1:]


def test_bills_of_conversations_add_up() -> None:
    one = Comparison(Bill(1, 2, 3, 4), Bill(1), Bill(fresh=5), 1)
    assert one + one == Comparison(Bill(2, 4, 6, 8), Bill(2), Bill(fresh=10), 2)


def test_tools_are_the_first_block_and_a_mark_stands_at_its_own_part() -> None:
    marked = {"type": "text", "text": "old part", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    messages = [SYSTEM, {"role": "user", "content": [marked, {"type": "text", "text": "new"}]}]
    blocks = rendered(messages, ANTHROPIC, encode, "all the tools")
    assert [block.section for block in blocks] == ["tools", "system", "user", "user"]
    assert [block.mark_s for block in blocks] == [0, 0, 3600, 0]
    assert rendered(messages, OPENAI_BOUNDARY, encode)[1].mark_s == 1800


def test_without_any_mark_those_of_a_careful_client_are_assumed() -> None:
    blocks = rendered([SYSTEM, {"role": "user", "content": "a question"}], ANTHROPIC, encode)
    assert [bool(block.mark_s) for block in blocks] == [True, True]


def test_text_as_a_string_and_as_a_part_are_the_same_tokens_and_calls_follow_the_text() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    as_text = rendered([{"role": "assistant", "content": "I look", "tool_calls": [call]}], VLLM, encode)
    part = {"type": "text", "text": "I look"}
    as_part = rendered([{"role": "assistant", "content": [part], "tool_calls": [call]}], VLLM, encode)
    assert as_text == as_part
    assert len(as_text) == 2
