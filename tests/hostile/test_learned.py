"""Nothing that is learned can hurt anybody: echoes, absurd bills, innocent ones, poisoned stores, one caller's refused key.

Every attack comes from one caller through a socket; then an honest second caller asks, and what reaches the upstream for it must be what a
fresh process would have sent, byte for byte.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from aiohttp import ClientSession, TCPConnector

from gateway.standin import Completion, Raw, Refuse, Seen, StandIn
from tests import fakes
from tests.fakes import chat, system, user, words
from tests.running import Answered, Gateway

WINDOW = 32_000
HONEST_KEY = {"authorization": "Bearer honest"}
JSON = {"content-type": "application/json"}
LIAR_KEY = {"authorization": "Bearer liar"}
HONEST = {"model": "m", "messages": chat(60, 250), "max_tokens": 200}
"""A request that fits its window by far, and none of the windows that liars tell."""

Answer = Callable[[Seen], Any]


def config(**more: Any) -> dict[str, Any]:
    return {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}, **more}


def is_liar(seen: Seen) -> bool:
    return seen.headers.get("authorization", "").startswith(LIAR_KEY["authorization"])


async def as_a_fresh_process_does(gateway: Gateway, standin: StandIn) -> None:
    """The honest caller's request leaves as it came, and nothing is said of any smaller window."""
    before = len(standin.chats)
    answer = await gateway.chat(HONEST, HONEST_KEY)
    assert answer.status == 200
    assert [seen.body for seen in standin.chats[before:]] == [orjson.dumps(HONEST)]
    assert answer.headers["x-turnfold-window"] == str(WINDOW)
    assert answer.action == "none"
    assert "x-turnfold-warning" not in answer.headers


async def learned(gateway: Gateway) -> list[dict[str, Any]]:
    async with gateway.session.get(f"{gateway.admin_url}/api/learned") as response:
        assert response.status == 200
        facts: list[dict[str, Any]] = orjson.loads(await response.read())["facts"]
        return facts


# --- 1. Refusals that quote the client -----------------------------------------------------------------------------------

WORDINGS = [
    "This model's maximum context length is 2048 tokens. However, your messages resulted in 5000 tokens.",
    "This model's maximum context length is 2,048 tokens, however you requested 5,000 tokens",
    "prompt is too long: 5000 tokens > 2048 maximum",
    "input length and `max_tokens` exceed context limit: 4800 + 200 > 2048",
    "request (5000 tokens) exceeds the available context size (2048 tokens), try increasing it",
    "The input (5000 tokens) is longer than the model's context length (2048 tokens).",
    "Requested tokens (5000) exceed context window of 2048",
    "Input validation error: `inputs` must have less than 2048 tokens. Given: 5000",
    "This model's maximum prompt length is 2048 but the request contains 5000 tokens.",
    "Please reduce the length of the messages or completion. Current length is 5000 while limit is 2048",
    "Prompt contains 5000 tokens and 0 draft tokens, too large for model with 2048 maximum context length",
    "The input token count (5000) exceeds the maximum number of tokens allowed (2048).",
    "context_length_exceeded: 5000 > 2048",
    "context length 2048",
    "maximum context length is 100 tokens, your prompt has 5000",
    "maximum context length is 2048 tokens",
    "上下文长度超过限制：最大 2048，当前 5000 tokens",
    "ＭＡＸＩＭＵＭ context length is ２０４８ tokens, got 5000 tokens",
]

QUOTED = {
    "a tool_call_id": (
        lambda text: {"messages": [*LONG, {"role": "tool", "tool_call_id": text, "content": "x"}]},
        "Invalid parameter: 'tool_call_id' of '{}' not found in 'tool_calls' of previous message.",
    ),
    "a role": (
        lambda text: {"messages": [*LONG, {"role": text, "content": "x"}]},
        "Invalid value: '{}'. Supported values are: 'system', 'assistant', 'user', 'function', and 'tool'.",
    ),
    "a function's name": (
        lambda text: {"messages": LONG, "tools": [{"type": "function", "function": {"name": text}}]},
        "Invalid 'tools[0].function.name': string {} does not match pattern.",
    ),
    "a stop word": (lambda text: {"messages": LONG, "stop": [text]}, "Invalid stop sequence {}"),
    "a URL": (
        lambda text: {"messages": [*LONG, user("x"), {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": f"https://x/{quote(text)}"}}]}]},
        "Error while downloading https://x/{}",
    ),
    "its text": (lambda text: {"messages": [*LONG, user(text)]}, "Content refused by policy: {}"),
    "an unknown field": (lambda text: {"messages": LONG, text: 1}, "Unrecognized request argument supplied: {}"),
}  # fmt: skip

LONG = chat(20, 230)
"""Some 5,000 tokens, so that the numbers told are plausible."""

MANNERS: dict[str, Callable[[str], str]] = {
    "whole": lambda text: text,
    "in capitals": str.upper,
    "cut short": lambda text: text[: max(len(text) - 6, 24)] + "...",
    "escaped": lambda text: "".join(f"\\u{ord(sign):04x}" if sign in "'>:`" else sign for sign in text),
    "as a URL": quote,
}


@pytest.mark.parametrize("where", QUOTED)
async def test_a_refusal_that_quotes_the_client_proves_nothing(gateway, where: str) -> None:
    build, complaint = QUOTED[where]
    said = ""

    def answer(seen: Seen) -> Any:
        return fakes.error(400, complaint.format(said)) if is_liar(seen) else None

    async with StandIn(window=WINDOW, otherwise=answer, rules=()) as standin:
        running = await gateway(standin, config())
        for wording in WORDINGS:
            for manner in MANNERS.values():
                said = manner(wording)
                for again in range(2):  # two conversations, for one would not be believed by others anyway
                    asked = build(wording)
                    asked["messages"] = [system(f"Attempt {again}."), *asked["messages"]]
                    await running.chat({"model": "m", **asked}, LIAR_KEY)
        assert [fact for fact in await learned(running) if fact["what"] in ("window", "ratio", "conversation")] == []
        await as_a_fresh_process_does(running, standin)


@pytest.mark.parametrize(
    ("limit", "prompt"),
    [(100, None), (1023, None), (2048, 90_000), (2048, 700), (31_000, None), (0, None), (10**9, None)],
)
async def test_a_refusal_with_numbers_that_cannot_be_is_not_believed(gateway, limit: int, prompt: int | None) -> None:
    """A floor, a prompt within three times our count, a limit below what was sent."""

    def answer(seen: Seen) -> Any:
        return Refuse("openai", limit, prompt or seen.prompt_tokens) if is_liar(seen) else None

    async with StandIn(window=WINDOW, otherwise=answer) as standin:
        running = await gateway(standin, config())
        for number in range(3):
            await running.chat({"model": "m", "messages": [system(f"Attempt {number}."), *LONG]}, LIAR_KEY)
        assert [fact for fact in await learned(running) if fact["what"] == "window"] == []
        await as_a_fresh_process_does(running, standin)


async def test_an_honest_refusal_is_believed_by_its_conversation_at_once_and_by_others_when_they_are_refused_too(
    gateway,
):
    async with StandIn(window=8192) as standin:
        running = await gateway(standin, config())
        first, second, third = ({"model": "m", "messages": [system(f"I am {name}."), *chat(60, 250)]} for name in "abc")
        counts = []
        for asked in (first, first, second, third):
            before = len(standin.chats)
            assert (await running.chat(asked)).status == 200
            counts.append(len(standin.chats) - before)
        assert counts == [2, 1, 2, 1]


async def test_a_window_that_one_caller_alone_was_told_folds_that_caller_alone(gateway):
    """A caller may choose a small backend with a field of the request, or have a smaller tier than others."""

    def answer(seen: Seen) -> Any:
        small = is_liar(seen) and seen.prompt_tokens > 8192
        return Refuse("openai", 8192, seen.prompt_tokens) if small else None

    async with StandIn(window=WINDOW, otherwise=answer) as standin:
        running = await gateway(standin, config())
        counts = []
        for number in range(4):
            before = len(standin.chats)
            await running.chat({"model": "m", "messages": [system(f"Attempt {number}."), *chat(60, 250)]}, LIAR_KEY)
            counts.append(len(standin.chats) - before)
        assert counts == [2, 2, 1, 1]
        await as_a_fresh_process_does(running, standin)


def refuse_the_attacker(seen: Seen) -> Any:
    """Refuse attempts of an attacker beyond 8,192 tokens; answer everybody else."""
    attack = "Attempt" in seen.messages[0]["content"]
    return Refuse("openai", 8192, seen.prompt_tokens) if attack and seen.prompt_tokens > 8192 else None


async def test_any_number_of_keys_and_addresses_of_one_attacker_fold_nobody_else(gateway):
    """At an upstream that checks no keys: keys are free, and a key that everybody uses may be used by the attacker too."""

    async with StandIn(window=WINDOW, otherwise=refuse_the_attacker) as standin:
        running = await gateway(standin, config())
        elsewhere = TCPConnector(local_addr=("127.0.0.9", 0), force_close=True)
        async with ClientSession(connector=elsewhere, auto_decompress=False) as session:
            other = replace(running, session=session)
            for number in range(12):
                key = HONEST_KEY if number % 4 == 0 else {"authorization": f"Bearer liar-{number}"}
                attempt = [system(f"Attempt {number // 2}."), *chat(60, 250)]
                assert (await other.chat({"model": "m", "messages": attempt}, key)).status == 200
        windows = [fact for fact in await learned(running) if fact["what"] == "window"]
        assert len({fact["caller"] for fact in windows}) > 2
        await as_a_fresh_process_does(running, standin)


async def test_clients_behind_a_trusted_proxy_are_callers_of_their_own(gateway):
    """One key, one connection's address: the proxy tells them apart."""

    async with StandIn(window=WINDOW, otherwise=refuse_the_attacker) as standin:
        running = await gateway(standin, {**config(), "server": {"trusted_proxies": ["127.0.0.1"]}})
        for number in range(3):
            attempt = [system(f"Attempt {number}."), *chat(60, 250)]
            told = {**HONEST_KEY, "x-forwarded-for": "203.0.113.9"}
            assert (await running.chat({"model": "m", "messages": attempt}, told)).status == 200
        await as_a_fresh_process_does(running, standin)


async def test_bills_of_one_caller_set_no_ratio_for_another(gateway):
    """Text that is dense in the upstream's vocabulary, or bills that the client brings about in another way."""

    def billed(seen: Seen) -> int:
        return 3 * seen.prompt_tokens if is_liar(seen) else seen.prompt_tokens

    async with StandIn(window=WINDOW, otherwise=bills(billed)) as standin:
        running = await gateway(standin, config())
        for size in range(10):
            await running.chat({"model": "m", "messages": chat(40 + size, 250)}, LIAR_KEY)
        assert [fact["holds"] for fact in await learned(running) if fact["what"] == "ratio"] == ["its caller"]
        await as_a_fresh_process_does(running, standin)


async def test_two_honest_callers_of_one_small_backend_pay_a_refused_call_each_in_their_first_two_conversations(
    gateway,
):
    async with StandIn(window=8192) as standin:
        running = await gateway(standin, config())
        for key in (HONEST_KEY, LIAR_KEY):
            counts = []
            for number in range(4):
                before = len(standin.chats)
                messages = [system(f"Session {number}."), *chat(60, 250)]
                assert (await running.chat({"model": "m", "messages": messages}, key)).status == 200
                counts.append(len(standin.chats) - before)
            assert counts == [2, 2, 1, 1]


async def test_one_small_backend_among_four_folds_only_what_it_refused_itself(gateway):
    """Two sources that disagree are kept as such."""
    turn = 0

    def window(_: str) -> int:
        return 8192 if turn % 4 == 0 else WINDOW

    async with StandIn(window=window) as standin:
        running = await gateway(standin, config())
        for turn in range(12):  # the backend looks at it
            asked = {"model": "m", "messages": [system(f"Session {turn}."), *chat(60, 250)]}
            before = len(standin.chats)
            answer = await running.chat(asked)
            assert answer.status == 200
            sent = standin.chats[before:]
            assert sent[0].body == orjson.dumps(asked), "nobody is folded for another's small backend"
            assert len(sent) == (2 if turn % 4 == 0 else 1)
            assert answer.action == ("retry" if turn % 4 == 0 else "none")


@asynccontextmanager
async def told_a_small_window(gateway):
    """A gateway whose upstream has stated a window of 8,192 tokens in two conversations, and has a larger one since then."""
    windows = iter([8192] * 4 + [WINDOW] * 99)
    async with StandIn(window=lambda _: next(windows)) as standin:
        running = await gateway(standin, config())
        for name in "ab":
            await running.chat({"model": "m", "messages": [system(f"I am {name}."), *chat(60, 250)]}, HONEST_KEY)
        yield running, standin


async def test_a_stated_window_ends_when_a_larger_prompt_is_billed(gateway):
    async with told_a_small_window(gateway) as (running, standin):
        assert [fact["value"] for fact in await learned(running) if fact["what"] == "window"] == [8192]
        # Whole, for a conversation in mode observe is forwarded untouched: the larger prompt that is billed.
        await running.chat(HONEST, {**HONEST_KEY, "x-turnfold-mode": "observe"})
        assert [fact for fact in await learned(running) if fact["what"] in ("window", "conversation")] == []
        await as_a_fresh_process_does(running, standin)


# --- 2. Bills that are smaller than what was sent ------------------------------------------------------------------------

TOOLS = [
    {
        "type": "function",
        "function": {"name": f"tool_{n}", "description": words(60, n), "parameters": {"type": "object"}},
    }
    for n in range(60)
]
FUNCTIONS = [tool["function"] for tool in TOOLS]
THOUGHTFUL = [
    user("Go."),
    *[{"role": "assistant", "content": "Yes.", "reasoning_content": words(300, n)} for n in range(20)],
]
NAMED = [
    {"role": "user", "name": f"somebody_{n}_{words(30, n).replace(' ', '_')}"[:300], "content": "Yes."}
    for n in range(90)
]


def bills(tokens: int | Callable[[Seen], int], cached: int | None = None) -> Answer:
    """An upstream that bills what the test says."""

    def answer(seen: Seen) -> Any:
        prompt = tokens(seen) if callable(tokens) else tokens
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": 4, "total_tokens": prompt + 4}
        if cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        return Completion(usage=usage)

    return answer


INNOCENT: list[tuple[str, dict[str, Any], int, int | None]] = [
    ("tools that the template drops", {"messages": chat(4, 100), "tools": TOOLS}, 420, None),
    ("legacy functions", {"messages": chat(4, 100), "functions": FUNCTIONS}, 420, None),
    ("a schema that is not read", {"messages": chat(4, 100), "response_format": {"type": "json_schema", "json_schema": {
        "name": "s", "schema": {"type": "object", "description": words(3000)}}}}, 420, None),
    ("reasoning that is dropped", {"messages": [*THOUGHTFUL, user("On.")]}, 300, None),
    ("names that are dropped", {"messages": NAMED}, 450, None),
    ("a cut that was asked for", {"messages": chat(40, 250), "truncate_prompt_tokens": 2000}, 2000, None),
    ("a field nobody knows", {"messages": chat(40, 250), "transforms": ["middle-out"]}, 4000, None),
    ("only what the cache did not hold", {"messages": chat(40, 250)}, 176, None),
    ("the cached part left out", {"messages": chat(40, 250)}, 1500, 8600),
    ("a constant of a mock", {"messages": chat(40, 250)}, 10, None),
    ("nothing", {"messages": chat(40, 250)}, 0, None),
    ("results of functions that the template drops", {"messages": [*chat(4, 100), *[
        {"role": "function", "name": "f", "content": words(300, n)} for n in range(20)], user("On.")]}, 450, None),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "asked", "billed", "cached"), INNOCENT, ids=[row[0] for row in INNOCENT])
async def test_a_small_bill_with_an_innocent_reason_warns_nobody_and_teaches_nothing(
    gateway, reason, asked, billed, cached
):
    async with StandIn(window=WINDOW, otherwise=bills(billed, cached), rules=()) as standin:
        running = await gateway(standin, config())
        for _ in range(4):
            answer = await running.chat({"model": "m", **asked}, LIAR_KEY)
            assert "x-turnfold-warning" not in answer.headers, reason
        assert [fact for fact in await learned(running) if fact["what"] != "largest prompt"] == []
        await as_a_fresh_process_does(running, standin)


async def test_a_server_that_cuts_is_noticed_at_the_second_bill_and_folds_that_conversation_alone(gateway):
    """However its cache is reported; and its window is never below a plausible size."""
    for cached in (None, 0, 900, 3000):
        async with StandIn(
            window=WINDOW, otherwise=bills(lambda seen: min(seen.prompt_tokens, 4000), cached)
        ) as standin:
            running = await gateway(standin, config())
            warned, folded = [], []
            for turns in range(8, 30, 2):
                asked = {"model": "m", "messages": [*chat(40, 250)[: 4 * turns - 1]]}
                answer = await running.chat(asked)
                warned.append("x-turnfold-warning" in answer.headers)
                folded.append(answer.action == "fold")
            cut = [seen.prompt_tokens > 4000 / 0.72 for seen in standin.chats]
            # 4000 billed and 3000 cached make one of the prompts, as if the server billed what its cache did not hold.
            excused = (
                any(
                    abs(seen.prompt_tokens - 4000 - (cached or 0)) < 0.05 * seen.prompt_tokens for seen in standin.chats
                )
                and cached
            )
            assert warned.index(True) <= cut.index(True) + (3 if excused else 2), f"cached {cached}"
            assert folded.index(True) == warned.index(True) + 1
            own = [fact for fact in await learned(running) if fact["what"] == "conversation"]
            assert {(fact["kind"], fact["holds"]) for fact in own} == {("guessed", "its conversation")}
            assert all(fact["value"] >= 1024 for fact in own)
            facts = await learned(running)
            assert all(fact["what"] != "window" and (fact["what"] != "ratio" or fact["value"] == 1) for fact in facts)


async def test_bills_that_stop_growing_are_noticed_while_each_is_near_the_count(gateway):
    """The first cut takes a single message: no bill is far below what was sent, but none grows."""
    async with StandIn(window=WINDOW, otherwise=bills(lambda seen: min(seen.prompt_tokens, 8192), 4096)) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": 16_000, "tokenizer": "o200k"}}})
        whole = chat(60, 250)
        warned = []
        for count in range(45, 90, 2):
            answer = await running.chat({"model": "m", "messages": [*whole[:count], user("Go on.")][:-1]})
            warned.append("x-turnfold-warning" in answer.headers)
        first_cut = next(place for place, seen in enumerate(standin.chats) if seen.prompt_tokens > 8192)
        assert True in warned
        assert first_cut < warned.index(True) <= first_cut + 3


async def test_cut_bills_of_other_conversations_teach_no_ratio(gateway):
    """Each conversation is new, so no bill can be compared with the one before; the vocabulary is unknown, so none is too small."""
    async with StandIn(window=200_000, otherwise=bills(lambda seen: min(seen.prompt_tokens, 4096))) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": 128_000}}})
        for turns in range(17, 32, 2):
            whole = chat(turns, 250)
            await running.chat({"model": "m", "messages": [user(f"Conversation {turns}."), *whole]})
        assert max(seen.prompt_tokens for seen in standin.chats) > 6000
        ratios = [fact["value"] for fact in await learned(running) if fact["what"] == "ratio"]
        assert all(ratio >= 1 for ratio in ratios), ratios


async def test_a_guess_ends_when_more_is_billed(gateway):
    limit = [4000]
    async with StandIn(window=WINDOW, otherwise=bills(lambda seen: min(seen.prompt_tokens, limit[0]))) as standin:
        running = await gateway(standin, config())
        for _ in range(3):
            answer = await running.chat({"model": "m", "messages": chat(60, 250)})
        assert answer.action == "fold"
        limit[0] = WINDOW
        other = {"model": "m", "messages": [system("Another."), *chat(50, 250)]}
        assert (await running.chat(other)).action == "none"
        assert (await running.chat({"model": "m", "messages": chat(60, 250)})).action == "none"


# --- 3. Ratios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [7.0, 3.5, 0.3, 100.0, 0.0])
async def test_one_absurd_bill_moves_nothing(gateway, factor: float) -> None:
    def billed(seen: Seen) -> int:
        return int(seen.prompt_tokens * factor) if is_liar(seen) else seen.prompt_tokens

    async with StandIn(window=WINDOW, otherwise=bills(billed)) as standin:
        running = await gateway(standin, config())
        for body in ({"model": "m", "messages": LONG}, {"model": "m", "messages": chat(55, 250)}):
            await running.chat(body, LIAR_KEY)
            await as_a_fresh_process_does(running, standin)


async def test_no_ratio_makes_a_request_refused_that_fits_without_it(gateway):
    """Ten bills that agree on a lie; then one question that fits the window by our count and could not be cut."""
    async with StandIn(window=10**6, otherwise=bills(lambda seen: int(seen.prompt_tokens * 6.5))) as standin:
        running = await gateway(standin, config())
        for size in range(10):
            await running.chat({"model": "m", "messages": chat(60 + size, 250)}, LIAR_KEY)
        assert max(fact["value"] for fact in await learned(running) if fact["what"] == "ratio") > 6
        question = {"model": "m", "messages": [system("s"), user(f"{words(20_000)}?")], "max_tokens": 100}
        answer = await running.chat(question, HONEST_KEY)
        assert answer.status == 200
        assert answer.headers["x-turnfold-attempts"] == "1"


async def test_no_stated_window_makes_a_request_refused_that_fits_the_configured_one(gateway):
    async with told_a_small_window(gateway) as (running, _):
        answer = await running.chat({"model": "m", "messages": [system("s"), user(f"{words(20_000)}?")]}, HONEST_KEY)
        assert answer.status == 200


async def test_a_vocabulary_guessed_from_a_name_is_an_estimate_unless_the_upstream_is_that_vendors(gateway):
    """``gpt-4o`` served by llama.cpp."""
    async with StandIn(window=WINDOW) as standin:
        for tokenizer, basis in (({}, "estimate"), ({"tokenizer": "o200k"}, "exact")):
            running = await gateway(standin, {"models": {"gpt-4o": {"context_window": WINDOW, **tokenizer}}})
            body = orjson.dumps({"model": "gpt-4o", "messages": chat(4)})
            url = f"{running.admin_url}/api/explain"
            async with running.session.post(url, data=body, headers={"content-type": "application/json"}) as response:
                assert orjson.loads(await response.read())["basis"] == basis


# --- 4. What a running server tells ---------------------------------------------------------------------------------------


def list_of(*models: Mapping[str, Any]) -> Raw:
    return Raw(200, (orjson.dumps({"object": "list", "data": list(models)}),))


async def test_the_window_of_a_running_server_beats_the_catalogues(gateway):
    for listed in (
        {"id": "gpt-4o", "max_model_len": 4096},
        {"id": "some.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 4096}},
    ):
        async with Listing(list_of(listed), window=4096) as standin:
            running = await gateway(standin, {})
            answer = await running.chat({"model": "gpt-4o", "messages": chat(30, 250)})
            assert (answer.status, answer.headers["x-turnfold-attempts"]) == (200, "1"), "not refused once"
            assert answer.headers["x-turnfold-window"] == "4096"


@pytest.mark.parametrize(
    ("listed", "family"),
    [
        ({"id": "mine", "max_model_len": 4096, "root": "Qwen/Qwen3-8B"}, "qwen3"),
        ({"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_vocab": 128_256}}, "llama3.1"),
        ({"id": "Llama-3-8B.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_vocab": 128_256}}, "llama3"),
        ({"id": "Llama-3-8B.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_vocab": 151_936}}, "qwen3"),
    ],
    ids=["root", "size of the vocabulary", "name that agrees with the size", "name that does not"],
)
async def test_a_running_server_states_which_vocabulary_its_model_has(gateway, listed, family):
    """So even the first fold for a made-up name is counted as the model counts."""
    request = {"model": "mine", "messages": chat(30, 250), "max_tokens": 100}
    configured = {"models": {"mine": {"context_window": 4096, "tokenizer": family}}}
    for settings in ({}, {"models": {"mine": {"context_window": 4096}}}):
        async with Listing(list_of(listed)) as standin:
            stated, known = await gateway(standin, settings), await gateway(standin, configured)
            sent = [await running.chat(request) for running in (stated, known)]
            assert [answer.action for answer in sent] == ["fold", "fold"]
            assert standin.chats[0].body == standin.chats[1].body


async def test_llama_cpp_tells_its_window_in_its_properties(gateway):
    listed = list_of({"id": "some.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}})
    props = Raw(200, (orjson.dumps({"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}),))
    async with Listing(listed, window=4096, otherwise=lambda seen: props if seen.path == "/props" else None) as standin:
        running = await gateway(standin, {})
        answer = await running.chat({"model": "gpt-4o", "messages": chat(30, 250)})
        assert answer.headers["x-turnfold-window"] == "4096"
        assert "/props" in [seen.path for seen in standin.requests]


@pytest.mark.parametrize(
    ("owner", "path", "loaded"),
    [
        ("library", "/api/ps", {"models": [{"name": "qwen2.5:7b", "model": "qwen2.5:7b", "context_length": 4096}]}),
        (
            "organization_owner",
            "/api/v0/models",
            {"data": [{"id": "qwen2.5:7b", "loaded_context_length": 4096, "max_context_length": 32_768}]},
        ),
    ],
)
async def test_a_server_that_loads_on_demand_tells_the_window_of_the_loaded_model(gateway, owner, path, loaded):
    """Ollama cuts silently at this window; the model's own, of the catalogue, is eight times as large."""
    listed, stated = list_of({"id": "qwen2.5:7b", "owned_by": owner}), Raw(200, (orjson.dumps(loaded),))
    async with Listing(listed, window=4096, otherwise=lambda seen: stated if seen.path == path else None) as standin:
        running = await gateway(standin, {})
        answer = await running.chat({"model": "qwen2.5:7b", "messages": chat(30, 250)})
        assert (answer.action, answer.headers["x-turnfold-window"]) == ("fold", "4096")


async def test_a_list_in_many_packets_is_read_whole(gateway):
    rows = [{"id": f"model-{n}", "context_length": 4096 + n, "about": words(20, n)} for n in range(2000)]
    body = orjson.dumps({"data": rows})
    assert len(body) > 200_000
    pieces = tuple(body[start : start + 1400] for start in range(0, len(body), 1400))
    async with Listing(Raw(200, pieces), window=WINDOW) as standin:
        running = await gateway(standin, {})
        answer = await running.chat({"model": "model-1999", "messages": chat(2)})
        assert answer.headers["x-turnfold-window"] == "6095"


class Listing(StandIn):
    """A stand-in whose model list is what the test says, for those whose key it likes."""

    def __init__(self, *lists: Raw, key: str = "", **more: Any) -> None:
        super().__init__(**more)
        self.lists = list(lists)
        self.good = key

    async def _list_models(self, request: Any) -> Any:
        from gateway.standin.server import _play  # noqa: PLC0415

        async with self._seen(request) as seen:
            if self.good and seen.headers.get("authorization") != self.good:
                return await _play(request, fakes.error(401, "Incorrect API key provided."))
            return await _play(request, self.lists.pop(0) if len(self.lists) > 1 else self.lists[0])


async def test_a_list_is_not_asked_for_with_a_key_that_was_refused_and_others_may_ask_at_once(gateway):
    listed = list_of({"id": "unheard-of", "max_model_len": 4096})
    async with Listing(listed, key=HONEST_KEY["authorization"], window=4096) as standin:
        running = await gateway(standin, {})
        asked = {"model": "unheard-of", "messages": chat(2)}
        for _ in range(3):
            await running.chat(asked, LIAR_KEY)
        assert [seen.path for seen in standin.requests].count("/v1/models") == 1
        answer = await running.chat(asked, HONEST_KEY)
        assert answer.headers["x-turnfold-window"] == "4096"


# --- 5. Stores and operators ----------------------------------------------------------------------------------------------


async def test_forgetting_reaches_every_process_that_shares_the_store(gateway, tmp_path):
    store = {"store": {"url": f"sqlite:///{tmp_path}/facts.db"}}
    async with StandIn(window=8192) as standin:
        here, there = await gateway(standin, config(**store)), await gateway(standin, config(**store))
        for name in "ab":
            await here.chat({"model": "m", "messages": [system(f"I am {name}."), *chat(60, 250)]}, HONEST_KEY)
        assert here.settled
        await here.settled()
        answer = await there.chat(HONEST, HONEST_KEY)
        assert answer.headers["x-turnfold-window"] == "8192"
        assert answer.headers["x-turnfold-attempts"] == "1", "the neighbour knows"
        assert {fact["what"] for fact in await learned(here)} >= {"window", "conversation"}

        async with here.session.post(
            f"{here.admin_url}/api/forget", data=b'{"learned": true}', headers=JSON
        ) as response:
            assert response.status == 200
        assert await learned(here) == []
        async with asyncio.timeout(10):
            while await learned(there):  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # another process has no event to wait for
        standin._window = WINDOW
        assert (await there.chat(HONEST, HONEST_KEY)).action == "none"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"everything": false}',
        b'{"everything": true, "x": 1}',
        b'{"key_hash": ""}',
        b'{"key_hash": "*"}',
        b'{"key_hash": "sk-a-key-and-no-hash"}',
        b'{"key_hash": "A4B5"}',
    ],
)
async def test_an_order_to_forget_that_is_unclear_forgets_nothing(gateway, standin, body):
    running = await gateway(standin, config())
    async with running.session.post(f"{running.admin_url}/api/forget", data=body, headers=JSON) as response:
        assert response.status == 400
        assert "everything" in orjson.loads(await response.read())["error"]["message"]


# --- 6. Tenants -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 401, 403, 408, 500, 503])
async def test_one_callers_faults_refused_key_or_spent_quota_do_not_rest_an_upstream_for_others(gateway, status):
    def answer(seen: Seen) -> Any:
        return Raw(status, (b'{"error":{"message":"no"}}',), {"retry-after": "600"}) if is_liar(seen) else None

    async with StandIn(window=WINDOW, otherwise=answer) as first, StandIn(window=WINDOW) as second:
        upstreams = {
            "standin": {"provider": "openai", "base_url": first.base_url},
            "second": {"provider": "openai", "base_url": second.base_url},
        }
        models = {"m": {"context_window": WINDOW, "upstreams": {"standin": 1, "second": 1}}}
        running = await gateway(first, {"upstreams": upstreams, "models": models})
        for _ in range(4):
            await running.chat({"model": "m", "messages": [user("Hello")]}, LIAR_KEY)
        before = len(first.chats)
        for _ in range(4):
            assert (await running.chat({"model": "m", "messages": [user("Hello")]}, HONEST_KEY)).status == 200
        assert len(first.chats) == before + 2, "half of them, as the weights say"


# --- C 17. Nothing after a good answer can spoil it -----------------------------------------------------------------------

DEEP = b"[" * 1000 + b"]" * 1000
USAGES = [b"true", b"[]", b'"x"', b"{}", b'{"prompt_tokens":-1}', b'{"prompt_tokens":1e400}', b'{"prompt_tokens":"9"}',
          b'{"prompt_tokens":9,"prompt_tokens_details":' + DEEP + b"}", b'{"prompt_tokens":' + b"9" * 400 + b"}", DEEP,
          b'{"prompt_tokens":9223372036854775807}', b'{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":true}}']  # fmt: skip


@pytest.mark.parametrize("usage", USAGES, ids=range(len(USAGES)))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_no_bill_spoils_a_good_answer(gateway, usage: bytes, stream: bool) -> None:
    body = b'{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."}}],"usage":' + usage + b"}"  # fmt: skip
    told = (
        Raw(200, (b"data: " + body + b"\n\ndata: [DONE]\n\n",), {"content-type": "text/event-stream"})
        if stream
        else Raw(200, (body,))
    )
    async with StandIn(window=WINDOW, otherwise=lambda seen: told) as standin:
        running = await gateway(standin, config())
        for messages in (chat(2), chat(60, 250)):
            answer = await running.chat({"model": "m", "messages": messages, "stream": stream})
            assert (answer.status, answer.body) == (200, told.chunks[0])


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (400, b'{"error":' * 1000 + b'"maximum context length is 2048 tokens"' + b"}" * 1000, {}),
        (400, b'{"error":{"message":' + DEEP + b"}}", {}),
        (429, b'{"error":{"message":"slow down"}}', {"retry-after": "²"}),
        (503, b'{"error":{"message":"busy"}}', {"retry-after": "٣"}),
        (503, b'{"error":{"message":"busy"}}', {"retry-after": "9" * 500}),
        (400, b'{"error":{"message":"maximum context length is ' + b"9" * 5000 + b' tokens"}}', {}),
    ],
)
async def test_no_error_of_an_upstream_becomes_one_of_ours(gateway, status, body, headers):
    told = Raw(status, (body,), {"content-type": "application/json", **headers})
    async with StandIn(window=WINDOW, otherwise=lambda seen: told) as standin:
        running = await gateway(standin, config())
        answer = await running.chat({"model": "m", "messages": chat(3)})
        assert (answer.status, answer.body) == (status, body)


# --- A replay of a day ----------------------------------------------------------------------------------------------------


async def test_a_process_that_was_lied_to_by_every_road_answers_an_honest_caller_as_a_fresh_one_does(gateway):
    """Not only a request that fits: the bytes of folds are compared too."""
    lie: Answer = bills(0)

    def answer(seen: Seen) -> Any:
        return lie(seen) if is_liar(seen) else None

    def day() -> list[tuple[Answer, dict[str, Any]]]:
        found: list[tuple[Answer, dict[str, Any]]] = []
        for build, complaint in QUOTED.values():
            for wording in WORDINGS[:4]:
                found.append((lambda _, c=complaint, w=wording: fakes.error(400, c.format(w)), build(wording)))
        found += [(bills(billed, cached), asked) for _, asked, billed, cached in INNOCENT]
        found += [(bills(size), {"messages": chat(40, 250)}) for size in (10, 1000, 70_000, 10**9)]
        found += [
            (lambda _, limit=limit: Refuse("openai", limit), {"messages": LONG}) for limit in (64, 100, 900, 10**8)
        ]
        found += [(bills(lambda seen: seen.prompt_tokens // 3), {"messages": chat(50, 250)})] * 3
        found += [(lambda _: Refuse("groq"), {"messages": LONG}), (lambda _: fakes.RATE_LIMITED, {"messages": LONG})]
        return found

    folded = {"model": "m", "messages": chat(200, 250), "max_tokens": 200}
    growing = [{"model": "m", "messages": chat(200, 250)[:count], "max_tokens": 200} for count in (250, 260, 270)]
    async with StandIn(window=WINDOW, otherwise=answer, rules=()) as standin:
        liars, fresh = await gateway(standin, config()), await gateway(standin, config())
        for number, (told, asked) in enumerate(day() * 2):
            lie = told
            messages = [system(f"Part {number % 2}."), *asked["messages"]]
            key = {"authorization": f"{LIAR_KEY['authorization']}-{number % 3}"}  # keys cost nothing
            await liars.chat({"model": "m", **asked, "messages": messages}, key)
        for body in (HONEST, folded, *growing):
            answers: list[Answered] = []
            for process in (liars, fresh):
                answers.append(await process.chat(body, HONEST_KEY))
            assert standin.chats[-2].body == standin.chats[-1].body
            told_of = [{name: value for name, value in each.headers.items() if name.startswith("x-turnfold") and "id" not in name}
                       for each in answers]  # fmt: skip
            assert told_of[0] == told_of[1]
        await as_a_fresh_process_does(liars, standin)
