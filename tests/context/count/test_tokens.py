"""The tokens of a request: every part of it costs, each once, and a proof that holds."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.count import delay
from gateway.context.count.families import FAMILIES, Undercount
from gateway.context.count.fixed_cost import fixed_cost
from gateway.context.count.media import tokens
from gateway.context.count.message_cost import counter
from gateway.context.count.proof import fits_by_size
from gateway.context.count.tokens import Anchor, TokenCount, count_request, has_upper_bounds, margin
from gateway.wire.chat import ChatRequest, parse, skim
from tests.context.pictures import png
from tests.context.texts import TEXTS
from tests.fakes import user

GPT_4O = counter("o200k", "tiles 85 170")


def request(messages: list[dict[str, Any]], **members: Any) -> ChatRequest:
    found = parse(orjson.dumps({"model": "m", "messages": messages, **members}))
    assert found
    return found


def test_a_plain_request_costs_what_openai_documents() -> None:
    """https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken, its example for gpt-4o: 124 tokens."""
    messages = [
        {"role": "system", "content": "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
        {"role": "system", "name": "example_user", "content": "New synergies will help drive top-line growth."},
        {"role": "system", "name": "example_assistant", "content": "Things working well together will increase revenue."},
        {"role": "system", "name": "example_user",
         "content": "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
        {"role": "system", "name": "example_assistant", "content": "Let's talk later when we're less busy about how to do better."},
        {"role": "user", "content": "This late pivot means we don't have time to boil the ocean for the client deliverable."},
    ]  # fmt: skip

    assert count_request(request(messages), "o200k").total == 124


def test_tools_cost_more_than_nothing_and_less_than_their_json() -> None:
    """Case 29."""
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "description": "What it does. " * 20, "parameters": {
            "type": "object", "properties": {f"argument_{m}": {"type": "string", "description": "It means that. " * 5} for m in range(12)}}}}
        for n in range(40)
    ]  # fmt: skip
    size = len(orjson.dumps(tools))
    asked = request([user("hi")], tools=tools)

    for family in FAMILIES:
        if family != "gemini" and FAMILIES[family].tools != "none":
            assert size / 10 < fixed_cost(asked.body, family) < size / 2, family
    assert count_request(asked, "o200k").total > 8192, "over budget where true"


def test_long_arguments_are_counted() -> None:
    """Case 30."""
    arguments = orjson.dumps({"query": TEXTS["english"] * 12}).decode()
    call = {"id": "a", "type": "function", "function": {"name": "search", "arguments": arguments}}
    assert len(arguments) > 4_500

    cost = GPT_4O.message({"role": "assistant", "content": None, "tool_calls": [call]})

    assert cost >= 0.9 * GPT_4O.text(arguments)


@pytest.mark.parametrize("family", ["o200k", "unknown", "deepseek", "deepseek-reasoner", "mistral", "kimi", "claude-5"])
def test_reasoning_raises_the_count(family: str) -> None:
    """Case 31."""
    message = {"role": "assistant", "content": "4"}
    thought = {**message, "reasoning_content": TEXTS["english"] * 5}

    assert counter(family).message(thought) > counter(family).message(message) + 300


@pytest.mark.parametrize("family", ["qwen3", "glm4", "gpt-oss"])
def test_reasoning_that_a_template_drops_counts_only_while_its_turn_runs(family: str) -> None:
    thought = {"role": "assistant", "content": None, "reasoning_content": TEXTS["english"] * 5,
               "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}  # fmt: skip
    running = request([user("hi"), thought, {"role": "tool", "tool_call_id": "a", "content": "1"}])
    over = request([user("hi"), thought, {"role": "tool", "tool_call_id": "a", "content": "1"}, user("and now?")])

    assert count_request(running, family).total > count_request(over, family).total + 300


@pytest.mark.parametrize(
    "detail",
    [{"type": "reasoning.text", "text": TEXTS["english"]}, {"type": "reasoning.summary", "summary": TEXTS["english"]}],
)
def test_reasoning_in_details_counts_once(detail: dict[str, str]) -> None:
    count = GPT_4O.message
    message = {"role": "assistant", "content": "ok"}
    said = count({**message, "reasoning": TEXTS["english"]})

    assert said > count(message)
    assert count({**message, "reasoning_details": [detail]}) == said
    thought = {"type": "thinking", "thinking": TEXTS["english"], "signature": "QUJD"}  # LiteLLM, for Claude
    assert count({**message, "thinking_blocks": [thought]}) == said
    assert count({**message, "thinking_blocks": [thought], "reasoning_content": TEXTS["english"]}) == said
    assert count({**message, "reasoning_details": [detail], "reasoning": TEXTS["english"]}) == said
    assert count({**message, "reasoning_details": [{"type": "reasoning.encrypted", "data": "QUJD"}, 7, {}]}) == count(
        message
    )


def test_images_cost_their_price_not_their_bytes() -> None:
    """Case 32."""
    one = {"type": "image_url", "image_url": {"url": png(1024, 1024, padding=150_000)}}
    assert len(one["image_url"]["url"]) > 200_000

    assert GPT_4O.message(user([one])) == 4 + 765
    assert GPT_4O.message(user([one, one])) == 4 + 2 * 765
    assert counter("gemini", "crops 258").message(user([one])) >= 258


@pytest.mark.parametrize(
    "source",
    [{"type": "text", "media_type": "text/plain", "data": TEXTS["english"]}, {"type": "content", "content": TEXTS["english"]},
     {"type": "content", "content": [{"type": "text", "text": TEXTS["english"]}]}],
)  # fmt: skip
def test_a_document_that_is_written_in_the_body_costs_its_text(source: dict[str, Any]) -> None:
    part = {"type": "document", "title": "News", "context": None, "source": source, "citations": {"enabled": True}}
    one = GPT_4O.text(TEXTS["english"]) + GPT_4O.text("News")

    assert GPT_4O.message(user([part])) == 4 + one
    assert GPT_4O.message(user([part] * 50)) == 4 + 50 * one
    assert not has_upper_bounds([user([part])])


def test_a_picture_in_a_written_document_costs_its_price() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}}
    part = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "A cat."}, picture]}}

    assert GPT_4O.message(user([part])) == 4 + GPT_4O.text("A cat.") + tokens(picture, "tiles 85 170")
    assert has_upper_bounds([user([part])])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_a_text_costs_the_same_as_a_string_and_as_a_part(family: str, role: str) -> None:
    """Case 33."""
    count = counter(family).message
    text = TEXTS["english"]

    assert count({"role": role, "content": text}) == count({"role": role, "content": [{"type": "text", "text": text}]})


def test_the_parts_of_a_tool_result_are_counted() -> None:
    """Case 34."""
    parts = [{"type": "text", "text": TEXTS["log"]}, {"type": "text", "text": TEXTS["json"]}]
    nested = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": parts}]}
    texts = GPT_4O.text(TEXTS["log"]) + GPT_4O.text(TEXTS["json"])

    assert GPT_4O.message({"role": "tool", "tool_call_id": "a", "content": parts}) == 4 + texts
    assert texts <= GPT_4O.message(nested) <= 4 + texts + 5


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_of_an_unknown_model_is_counted_far_off(name: str) -> None:
    """Case 35: never under what OpenAI's vocabulary says, at most an eighth over it."""
    exact = GPT_4O.text(TEXTS[name])

    assert exact <= counter("unknown").text(TEXTS[name]) <= exact * 1.125 + 2
    assert counter("a family nobody knows").text(TEXTS[name]) == counter("unknown").text(TEXTS[name])


@pytest.mark.parametrize(
    "content", [{}, {"content": None}, {"content": ""}, {"content": 0}, {"content": []}, {"content": {}}, {"content": [None, 7, {}, []]},
                {"content": [{"type": "text"}]}, {"content": [{"type": "text", "text": None}]}, {"tool_calls": None}, {"tool_calls": [{}]},
                {"tool_calls": [{"function": {"name": 7, "arguments": {"a": 1}}}]}, {"function_call": {"name": "f"}}, {"name": 7}],
)  # fmt: skip
@pytest.mark.parametrize("role", ["user", "assistant", "tool", "developer", "someone"])
def test_a_message_without_a_text_costs_little_and_something(content: dict[str, Any], role: str) -> None:
    """Case 37."""
    for family in ("o200k", "qwen3", "claude-4.5", "deepseek-r1", "unknown"):
        assert 0 <= counter(family).message({"role": role, **content}) <= 80
    assert counter("o200k").message({"role": role, **content}) > 0


def test_arguments_nested_beyond_measure_are_counted() -> None:
    deep: Any = 1
    for _ in range(600):
        deep = {"a": deep}
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": deep}}],
        "content": [{"type": "x", "y": deep}],
    }

    assert GPT_4O.message(message) > 500
    assert (
        fixed_cost(
            {"messages": [], "tools": [{"type": "function", "function": {"name": "f", "parameters": deep}}]}, "o200k"
        )
        > 0
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["type", "text", "content", "role", "name", "tool_calls", "function", "arguments", "image_url", "url", "id", "file", "input_audio", "data"]
    ), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
        optional={
            "content": json_values,
            "tool_calls": json_values,
            "reasoning_content": json_values,
            "name": json_values,
        },
    ),
    max_size=6,
)


@given(messages, json_values, json_values, json_values, st.sampled_from(sorted(FAMILIES)))
def test_whatever_a_client_sends_is_counted(
    found: list[dict[str, Any]], tools: Any, choice: Any, form: Any, family: str
) -> None:
    asked = request(found, tools=tools, tool_choice=choice, response_format=form, thinking=choice, reasoning=form)

    assert count_request(asked, family).total >= 0
    delay.blocks_event_loop(asked, family)
    fits_by_size(len(asked.raw), 100, 10_000, asked, family)


@given(
    st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=6),
    st.sampled_from(sorted(set(FAMILIES) - {"mistral-v1"})),
)
def test_what_is_proven_to_fit_fits(names: list[str], family: str) -> None:
    asked = request([user(TEXTS[name]) for name in names], tools=[{"type": "function", "function": {"name": "f"}}])
    size = len(asked.raw)

    for window in (size, size + 1024, size + 1200, size * 2 + 1500):
        if fits_by_size(size, 100, window, asked, family):
            assert count_request(asked, family).total + 100 <= window


@pytest.mark.parametrize(
    "asked",
    [
        request([user([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}])]),
        request([user([{"type": "file", "file": {"file_id": "file-1"}}])]),
        request([user([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}])]),
        request([user("hi")], previous_response_id="resp_1"),
        request([user("hi")], tools=[{"type": "web_search"}]),
        request([user("hi")], web_search_options={"search_context_size": "low"}),
        request([{"role": "assistant", "audio": {"id": "audio_1"}}, user("hi")]),
        request([user("hi")], plugins=[{"id": "web"}]),
    ],
)
def test_what_stands_elsewhere_cannot_be_proven_to_fit(asked: ChatRequest) -> None:
    assert not fits_by_size(len(asked.raw), 100, 10**9, asked)


def test_a_small_request_is_proven_at_once() -> None:
    """Case 27: a 60-token history never gets near the window of gpt-4o."""
    asked = request([user("word " * 50)])

    assert fits_by_size(len(asked.raw), 16_384, 128_000, asked, "o200k")
    assert not fits_by_size(len(asked.raw), 16_384, len(asked.raw) + 16_384 + 1023, asked, "o200k")


@pytest.mark.parametrize(("calls", "proven"), [([], True), ([{"id": "a"}], True), ([{"id": "a"}, {"id": "b"}], False)])
def test_a_long_conversation_in_any_script_is_proven_without_being_parsed_unless_it_calls_in_parallel(
    calls: list[dict[str, str]], proven: bool
) -> None:
    called = {"role": "assistant", "content": None, **({"tool_calls": calls} if calls else {})}
    asked = skim(orjson.dumps({"model": "m", "messages": [user(TEXTS["korean"] * 20), called, called]}))
    assert asked

    assert fits_by_size(len(asked.raw), 100, len(asked.raw) + 2000, asked, "o200k") is proven
    assert (asked._whole is None) is proven


def test_letters_that_a_vocabulary_takes_apart_are_no_proof() -> None:
    """U+FDFA is 3 bytes and, taken apart, 18 letters."""
    asked = request([user("\ufdfa" * 1000)])
    escaped = parse(asked.raw.decode().encode("ascii", "backslashreplace"))
    assert escaped

    assert fits_by_size(len(asked.raw), 100, len(asked.raw) + 2000, asked, "o200k")
    assert not fits_by_size(len(asked.raw), 100, len(asked.raw) + 2000, asked, "qwen3")
    assert not fits_by_size(len(escaped.raw), 100, len(escaped.raw) + 2000, escaped, "claude-4.5")


def test_results_of_parallel_calls_cost_their_escapes() -> None:
    """OpenAI bills them as ASCII JSON; results of single calls as they are."""
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in "ab"]
    results = [{"role": "tool", "tool_call_id": name, "content": TEXTS["korean"]} for name in "ab"]
    together = request([user("hi"), {"role": "assistant", "tool_calls": calls}, *results])
    single = request([user("hi"), {"role": "assistant", "tool_calls": calls[:1]}, results[0]])

    assert count_request(together, "o200k").total > 8 * count_request(single, "o200k").total
    assert count_request(together, "qwen3").total < 3 * count_request(single, "qwen3").total


def test_an_anchor_stands_for_what_it_covers() -> None:
    history = [user(TEXTS["english"]), {"role": "assistant", "content": TEXTS["code"]}, user("next")]
    asked = request(history, tools=[{"type": "function", "function": {"name": "f"}}])
    fixed = fixed_cost(asked.body, "unknown")
    found = count_request(asked, "unknown", anchor=Anchor(1, 5000, fixed))

    assert found.basis == "anchor"
    assert found.total == 5000 + sum(map(counter("unknown").message, history[1:]))
    assert found.error < count_request(asked, "unknown").error
    assert count_request(asked, "unknown", anchor=Anchor(1, 5000, fixed - 300)).total == found.total + 300, (
        "tools were added since"
    )


@pytest.mark.parametrize("covered", [0, 4, -1])
def test_an_anchor_of_another_conversation_is_not_used(covered: int) -> None:
    asked = request([user("hi")])

    assert count_request(asked, "o200k", anchor=Anchor(covered, 5000, 3)) == count_request(asked, "o200k")


def test_a_count_says_whether_it_is_exact_estimated_or_an_upper_bound() -> None:
    picture = request([user([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}])])

    assert count_request(request([user("hi")]), "o200k").basis == "exact"
    assert count_request(request([user("hi")]), "claude-4.5").basis == "estimate"
    assert count_request(request([user("hi")]), "o200k", ratio=1.05).basis == "estimate"
    assert count_request(picture, "o200k").has_upper_bounds
    assert count_request(picture, "o200k").basis == "estimate"


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [
        (TokenCount(1, 1, "exact", 0.01), 0.02, 1280),
        (TokenCount(1, 1, "exact", 0.03), 0.02, 2560),
        (TokenCount(1, 0, "exact", 0.01, undercount=Undercount(0.003, 0.05)), 0.02, 384),
        (TokenCount(1, 1000, "exact", 0.01, undercount=Undercount(0.003, 0.05)), 0.02, 434),
        (TokenCount(1, 1000, "exact", 0.01, undercount=Undercount(0.003, 0.05)), 0.002, 256),
        (TokenCount(1, 1000, "estimate", 0.01, undercount=Undercount(0.003, 0.05)), 0.02, 2560),
        (TokenCount(1, 1, "anchor", 0.004), 0.02, 512),
        (TokenCount(1, 1, "estimate", 0.15), 0.02, 19_200),
        (TokenCount(1, 1, "estimate", 0.01), 0.02, 2560),
        (TokenCount(1, 1, "estimate", 0.15), 0.0, 0),
    ],
)
def test_as_much_is_kept_free_as_the_count_may_be_short(count: TokenCount, share: float, expected: int) -> None:
    assert margin(count, 128_000, share) == expected


def test_much_new_text_is_counted_off_the_event_loop() -> None:
    delay.preload(["o200k"])
    long = request([user(f"{n} is new. " * 10_000) for n in range(3)])

    assert delay.blocks_event_loop(long, "o200k")
    count_request(long, "o200k")
    assert not delay.blocks_event_loop(long, "o200k"), "by now it is known"
    assert not delay.blocks_event_loop(request([user("hi")]), "o200k")
