"""Folded requests get cache marks and a key where vendor and model are known to take them, and nowhere else."""

import orjson
import pytest

from gateway.config import Upstream, catalogue
from gateway.context import frames
from gateway.context.count.message_cost import counter
from gateway.context.cut.policy import Policy
from gateway.context.cut.units import Prices
from gateway.context.life.ladder import first_attempt
from gateway.context.life.task import Task
from gateway.serve.request.caching import priced, terms_for
from gateway.standin import messages as strict
from gateway.upstream.client import target
from gateway.wire import chat, messages, responses
from tests import fakes

BASES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "deepseek": "https://api.deepseek.com/v1",
}
TALK = fakes.chat(12)[1:]
QUESTION = TALK[-1]
DEFAULT = Policy()


def asked(form, model, **members):
    """A conversation of twelve turns in one of the formats."""
    if form is chat:
        body = {"messages": [fakes.system("Be kind."), *TALK]}
    elif form is responses:
        body = {"instructions": "Be kind.", "input": TALK}
    else:
        body = {"system": "Be kind.", "messages": TALK, "max_tokens": 50}
    parsed = form.parse(orjson.dumps({"model": model, **body, **members}))
    assert parsed is not None
    return parsed


def sent(form, provider, model, *, policy=DEFAULT, base="", window=900, scope="someone", **members):
    """The body that goes upstream."""
    request = asked(form, model, **members)
    upstream = target(Upstream("it", provider, base or BASES[provider]))
    count = counter("o200k")
    task = Task(
        conversation=request, model=model, window=window, prompt=sum(map(count.message, request.messages)) + 3, fixed=3, margin=0, fold_margin=0,
        reserve=50, output_limit=None, min_output=20, counter=count, policy=policy, plain_counter=count, plain_fixed=3, configured_window=window,
        cache=terms_for(policy, catalogue.load().find(model), upstream, request, scope),
    )  # fmt: skip
    return first_attempt(task).body


def folds(form, provider, model, **given):
    return orjson.loads(sent(form, provider, model, **given))


def marked_texts(value, member):
    """The texts of all parts that carry a mark."""
    if isinstance(value, list):
        return [text for inner in value for text in marked_texts(inner, member)]
    if not isinstance(value, dict):
        return []
    own = [value.get("text", "")] if member in value else []
    return own + [text for inner in value.values() for text in marked_texts(inner, member)]


def test_newer_openai_models_get_breakpoints_and_a_key_in_a_folded_chat() -> None:
    body = folds(chat, "openai", "gpt-5.6")
    texts = marked_texts(body, "prompt_cache_breakpoint")

    assert texts[0] == "Be kind."
    assert texts[1].startswith((frames.DIGEST, frames.BRIEF_DIGEST))
    assert texts[-1] == QUESTION["content"]
    assert len(texts) <= 4
    assert body["prompt_cache_key"].startswith("tf-")


@pytest.mark.parametrize("form", [chat, responses], ids=["chat", "responses"])
def test_newer_openai_models_store_no_quotes_that_the_next_request_will_not_have(form) -> None:
    """Their own breakpoint would stand behind the quotes: written at 1.25, and never read."""
    body = folds(form, "openai", "gpt-5.6")
    assert body["prompt_cache_options"] == {"mode": "explicit"}
    assert marked_texts(body, "prompt_cache_breakpoint")[-1] == QUESTION["content"]

    assert "prompt_cache_options" not in folds(form, "openai", "gpt-5.6", policy=Policy(cache_marks="off"))
    assert "prompt_cache_options" not in folds(form, "openai", "gpt-5.6", policy=Policy(recall_share=0.0))
    assert "prompt_cache_options" not in folds(form, "openai", "gpt-4o")


def test_in_a_chain_of_calls_openai_marks_the_newest_message_itself() -> None:
    """Quotes stay behind the question there, and results carry no breakpoint."""
    body = folds(chat, "openai", "gpt-5.6", messages=fakes.tool_loop(6, 200))
    assert marked_texts(body, "prompt_cache_breakpoint")
    assert "prompt_cache_options" not in body


def test_a_folded_responses_request_gets_them_too() -> None:
    body = folds(responses, "openai", "gpt-5.6")
    texts = marked_texts(body["input"], "prompt_cache_breakpoint")

    assert body["instructions"] == "Be kind."
    assert texts[0].startswith((frames.DIGEST, frames.BRIEF_DIGEST))
    assert texts[-1] == QUESTION["content"]
    assert "prompt_cache_key" in body


def test_claude_gets_its_marks_at_the_end_of_system_of_the_fold_and_of_the_question() -> None:
    body = folds(messages, "anthropic", "claude-sonnet-4-5")
    texts = marked_texts(body, "cache_control")

    assert marked_texts(body["system"], "cache_control") == ["Be kind."]
    assert any(text.startswith((frames.DIGEST, frames.BRIEF_DIGEST)) for text in texts)
    assert marked_texts(body["messages"][-1], "cache_control") == [QUESTION["content"]]
    assert len(texts) <= 4
    assert "prompt_cache_key" not in body


def test_older_openai_models_get_the_key_alone() -> None:
    body = folds(chat, "openai", "gpt-4o")

    assert "prompt_cache_key" in body
    assert not marked_texts(body, "prompt_cache_breakpoint")


@pytest.mark.parametrize(
    ("provider", "model", "base"),
    [
        ("openai", "gpt-5.6", "http://127.0.0.1:8000/v1"),  # a server of one's own may call any model so
        ("openai", "gpt-oss-120b", ""),
        ("openai", "unheard-of", ""),
        ("deepseek", "deepseek-chat", ""),
        ("deepseek", "gpt-5.6", ""),
    ],
)
def test_an_upstream_that_is_not_known_to_take_them_gets_nothing(provider, model, base) -> None:
    body = sent(chat, provider, model, base=base)

    assert b"prompt_cache" not in body
    assert b"cache_control" not in body


@pytest.mark.parametrize(
    ("policy", "key", "breakpoints"),
    [
        (Policy(cache_marks="off"), True, False),
        (Policy(cache_key="off"), False, True),
        (Policy(cache_marks="off", cache_key="off"), False, False),
    ],
)
def test_both_can_be_switched_off(policy, key, breakpoints) -> None:
    body = sent(chat, "openai", "gpt-5.6", policy=policy)

    assert (b"prompt_cache_key" in body, b"prompt_cache_breakpoint" in body) == (key, breakpoints)


@pytest.mark.parametrize(
    ("form", "provider", "model"),
    [(chat, "openai", "gpt-5.6"), (responses, "openai", "gpt-5.6"), (messages, "anthropic", "claude-sonnet-4-5")],
    ids=["chat", "responses", "messages"],
)
def test_what_fits_passes_byte_for_byte_unless_always(form, provider, model) -> None:
    came = asked(form, model).raw

    assert sent(form, provider, model, window=100_000) == came
    always = sent(form, provider, model, window=100_000, policy=Policy(cache_marks="always"))
    assert always != came
    assert b"cache_control" in always or b"prompt_cache_breakpoint" in always


def test_a_client_that_marks_and_names_its_key_itself_keeps_its_own() -> None:
    body = folds(chat, "openai", "gpt-5.6", prompt_cache_key="mine", prompt_cache_options={"mode": "explicit"})
    assert body["prompt_cache_key"] == "mine"
    assert not marked_texts(body, "prompt_cache_breakpoint")

    body = folds(messages, "anthropic", "claude-sonnet-4-5", cache_control={"type": "ephemeral"})
    assert not marked_texts({k: v for k, v in body.items() if k != "cache_control"}, "cache_control")


MARK = {"type": "ephemeral", "ttl": "1h"}


def looked(number: int, call=None, result=None):
    """A step of an agent, with members for its call and its result."""
    name = f"toolu_{number}"
    use = {"type": "tool_use", "id": name, "name": "look", "input": {"n": number}, **(call or {})}
    found = {"type": "tool_result", "tool_use_id": name, "content": fakes.words(150, number), **(result or {})}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [found]}]


@pytest.mark.parametrize("last", [{"call": {"cache_control": MARK}}, {"result": {"cache_control": MARK}}], ids=str)
def test_a_client_that_marks_a_call_or_a_result_gets_no_marks_besides(last) -> None:
    """Five marks are refused, and so is one of an hour behind one of five minutes. Agents mark their newest block."""
    steps = [*(row for n in range(8) for row in looked(n)), *looked(8, **last)]
    body = folds(messages, "anthropic", "claude-sonnet-4-5", messages=[fakes.user("Find the fault."), *steps])

    assert strict.violations(body) == []
    assert not marked_texts(body["system"], "cache_control")
    assert orjson.dumps(body).count(b'"cache_control"') <= 2, "the client's own, and that of the digest"


def test_the_key_is_the_conversations_and_the_callers_and_says_nothing() -> None:
    one = folds(chat, "openai", "gpt-4o")["prompt_cache_key"]
    later = folds(chat, "openai", "gpt-4o", window=700)["prompt_cache_key"]
    other = folds(chat, "openai", "gpt-4o", scope="another")["prompt_cache_key"]

    assert one == later != other
    assert len(one) <= 64


def test_a_tool_result_carries_claudes_mark_on_its_own_block() -> None:
    loop = fakes.tool_loop(6, 200)
    talk = []
    for message in loop[1:]:
        if message["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            talk.append({"role": "user", "content": [block]})
        elif message.get("tool_calls"):
            uses = [
                {
                    "type": "tool_use",
                    "id": c["id"],
                    "name": c["function"]["name"],
                    "input": orjson.loads(c["function"]["arguments"]),
                }
                for c in message["tool_calls"]
            ]
            talk.append({"role": "assistant", "content": uses})
        else:
            talk.append({"role": message["role"], "content": message["content"]})
    last = next(n for n in range(len(talk) - 1, -1, -1) if talk[n]["role"] == "user")
    body = folds(messages, "anthropic", "claude-sonnet-4-5", messages=talk[: last + 1])

    block = body["messages"][-1]["content"][-1]
    assert block["type"] == "tool_result"
    assert block["cache_control"] == {"type": "ephemeral"}
    assert block["content"] == talk[last]["content"][0]["content"]


async def test_a_server_of_ones_own_gets_what_it_always_got(gateway, standin) -> None:
    """Over a real socket: folded, and without a member that the client did not send."""
    running = await gateway(standin, {"models": {"gpt-5.6": {"context_window": 900, "cache": {"marks": "always"}}}})
    body = {"model": "gpt-5.6", "messages": [fakes.system("Be kind."), *TALK], "max_tokens": 50}
    answer = await running.chat(orjson.dumps(body))

    assert answer.action == "fold"
    assert b"prompt_cache" not in standin.chats[-1].body
    assert set(orjson.loads(standin.chats[-1].body)) == set(body)


@pytest.mark.parametrize(
    ("provider", "base", "model", "prices"),
    [
        ("openai", "", "gpt-5.6", Prices(1.25, 0.1)),
        ("openai", "", "gpt-4o", Prices(1.0, 0.5)),
        ("anthropic", "", "claude-sonnet-4-5", Prices(1.25, 0.1)),
        ("openai", "http://127.0.0.1:8000/v1", "gpt-5.6", Prices()),
        ("openai", "", "a-model-of-our-own", Prices()),
    ],
)
def test_a_cut_knows_the_prices_of_the_vendor_alone(provider, base, model, prices) -> None:
    """A server of one's own sells nothing: there only the work counts, whatever its model is called."""
    upstream = target(Upstream("it", provider, base or BASES[provider]))

    assert priced(DEFAULT, catalogue.load().find(model), upstream).prices == prices
