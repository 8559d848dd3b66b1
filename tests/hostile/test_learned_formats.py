"""What the attacks on learned facts try on chat completions, they may try on every format: asked by the real libraries.

The upstream is hostile, or is deceived into it by the liar; the honest caller's requests must leave as from a fresh process.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from gateway.standin import Completion, Refuse, Seen, StandIn
from tests import fakes
from tests.fakes import chat, system, user, words
from tests.hostile.sdks import FORMATS, Caller, Format, callers, key_of, sent_to
from tests.running import Gateway

WINDOW = 32_000
HONEST, LIAR = "honest", "liar"
CONFIG = {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}}
LONG = chat(12, 230)
"""Some 2,900 tokens, so that the numbers told are plausible."""

WORDINGS = [
    "prompt is too long: 2900 tokens > 2048 maximum",
    "input length and `max_tokens` exceed context limit: 2700 + 200 > 2048",
    "This model's maximum context length is 2048 tokens. However, your messages resulted in 2900 tokens.",
    "Your input exceeds the context window of this model, which is 2048 tokens (2900 given).",
    "The input token count (2900) exceeds the maximum number of tokens allowed (2048).",
]

native_formats = pytest.mark.parametrize("format", [FORMATS["messages"], FORMATS["responses"]], ids=lambda f: f.name)
"""Chat completions have a file of their own; in the replay of a day they are here as well."""


def is_liar(seen: Seen) -> bool:
    return key_of(seen).startswith(LIAR)


def attempt(format: Format, number: int, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """A conversation of its own, with the same text besides."""
    return format.body([system(f"Attempt {number}."), *(m for m in messages if m["role"] != "system")])


async def learned(running: Gateway, *kinds: str) -> list[dict[str, Any]]:
    async with running.session.get(f"{running.admin_url}/api/learned") as response:
        facts: list[dict[str, Any]] = orjson.loads(await response.read())["facts"]
    return [fact for fact in facts if fact["what"] in kinds]


async def as_a_fresh_process_does(honest: Caller, standin: StandIn) -> None:
    """The honest caller's request, which fits its window and none of the windows that liars tell, leaves as it came."""
    body = honest.format.body(chat(60, 250))
    before = len(standin.requests)
    told = await honest.ask(body)
    assert told.status == 200
    assert [seen.json for seen in standin.requests[before:]] == [{"model": "m", **body}]
    assert told.headers["x-turnfold-window"] == str(WINDOW)
    assert told.action == "none"
    assert "x-turnfold-warning" not in told.headers


# --- Refusals that quote the client ---------------------------------------------------------------------------------------


def in_a_call(format: Format, text: str) -> dict[str, Any]:
    """An id of a tool's call."""
    body = format.body(LONG)
    if format.name == "messages":
        use = {"type": "tool_use", "id": text, "name": "f", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": text, "content": "x"}
        body["messages"] += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
    elif format.name == "responses":
        body["input"] += [
            {"type": "function_call", "call_id": text, "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": text, "output": "x"},
        ]
    else:
        body["messages"] += [{"role": "tool", "tool_call_id": text, "content": "x"}]
    return body


def in_a_role(format: Format, text: str) -> dict[str, Any]:
    body = format.body(LONG)
    body[format.member] += [{"role": text, "content": "x"}]
    return body


def in_a_tool(format: Format, text: str) -> dict[str, Any]:
    tool = {
        "chat": {"type": "function", "function": {"name": text}},
        "messages": {"name": text, "input_schema": {"type": "object"}},
        "responses": {"type": "function", "name": text, "parameters": {"type": "object"}},
    }[format.name]
    return {**format.body(LONG), "tools": [tool]}


def in_a_url(format: Format, text: str) -> dict[str, Any]:
    url = f"https://x/{quote(text)}"
    part = {
        "chat": {"type": "image_url", "image_url": {"url": url}},
        "messages": {"type": "image", "source": {"type": "url", "url": url}},
        "responses": {"type": "input_image", "image_url": url},
    }[format.name]
    body = format.body(LONG)
    body[format.member] += [{"role": "user", "content": [part]}]
    return body


QUOTED: dict[str, tuple[Callable[[Format, str], dict[str, Any]], str]] = {
    "the id of a call": (in_a_call, "Invalid id '{}': no such call in the previous message."),
    "a role": (in_a_role, "Invalid value: '{}'. Supported values are: 'user' and 'assistant'."),
    "a tool's name": (in_a_tool, "tools.0.name: String should match pattern: {}"),
    "a stop word": (lambda format, text: {**format.body(LONG), format.stop or "stop": [text]}, "Invalid stop: {}"),
    "a URL": (in_a_url, "Error while downloading https://x/{}"),
    "its text": (lambda format, text: format.body([*LONG, user(text)]), "Content refused by policy: {}"),
    "its instructions": (lambda format, text: format.body([system(text), *LONG]), "Refused by policy: {}"),
    "metadata": (lambda format, text: {**format.body(LONG), "metadata": {"user_id": text}}, "Invalid metadata: {}"),
    "an unknown field": (lambda format, text: {**format.body(LONG), text: 1}, "{}: Extra inputs are not permitted"),
}


def worded(place: int) -> list[str]:
    """Two of the wordings, others for each place."""
    return [WORDINGS[place % len(WORDINGS)], WORDINGS[(place + 2) % len(WORDINGS)]]


MANNERS: dict[str, Callable[[str], str]] = {"whole": lambda text: text, "cut": lambda text: text[:-6] + "..."}


@native_formats
async def test_a_refusal_that_quotes_the_client_proves_nothing(gateway, format: Format) -> None:
    said = ""

    def answer(seen: Seen) -> Any:
        return fakes.error(400, said) if is_liar(seen) else None

    async with StandIn(window=WINDOW, otherwise=answer, rules=()) as standin:
        running = await gateway(standin, CONFIG)
        async with callers(running, format, LIAR, HONEST) as (liar, honest):
            for place, (where, (build, complaint)) in enumerate(QUOTED.items()):
                for number, wording in enumerate(worded(place)):
                    manner = MANNERS["cut" if number % 2 else "whole"]
                    said = complaint.format(quote(wording) if where == "a URL" else manner(wording))
                    for again in range(2):  # two conversations, for one would not be believed by others anyway
                        body = build(format, wording)
                        body[format.member] = [user(f"Attempt {again}."), *body[format.member]]
                        assert (await liar.ask(body)).status == 400
                    assert await learned(running, "window", "ratio", "conversation") == [], (where, wording)
            await as_a_fresh_process_does(honest, standin)


@native_formats
async def test_an_event_of_a_stream_that_quotes_the_client_proves_nothing(gateway, format: Format) -> None:
    """The refusal comes as the second event of an answer with status 200."""
    wording = WORDINGS[0]
    opening = {
        "chat": {"choices": [{"index": 0, "delta": {"role": "assistant"}}]},
        "messages": {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}},
        "responses": {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
    }[format.name]
    told = {"type": "error", "error": {"type": "invalid_request_error", "message": f"Refused by policy: {wording}"}}

    async with StandIn(
        window=WINDOW, otherwise=lambda seen: fakes.events(opening, told) if is_liar(seen) else None, rules=()
    ) as standin:
        running = await gateway(standin, CONFIG)
        async with callers(running, format, HONEST) as (honest,):
            for number in range(3):
                body = {"model": "m", "stream": True, **attempt(format, number, [*LONG, user(wording)])}
                headers = {"authorization": f"Bearer {LIAR}", "x-api-key": LIAR, "content-type": "application/json"}
                await running.ask("POST", format.path.removeprefix("/v1"), orjson.dumps(body), headers)
            assert await learned(running, "window", "ratio", "conversation") == []
            await as_a_fresh_process_does(honest, standin)


@native_formats
async def test_a_refusal_with_numbers_that_cannot_be_is_not_believed(gateway, format: Format) -> None:
    for limit, prompt in [(100, None), (1023, None), (2048, 90_000), (2048, 700), (31_000, None), (0, None)]:

        def answer(seen: Seen, limit: int = limit, prompt: int | None = prompt) -> Any:
            dialect = "anthropic" if format.name == "messages" else "openai"
            return Refuse(dialect, limit, prompt or seen.prompt_tokens) if is_liar(seen) else None

        async with StandIn(window=WINDOW, otherwise=answer) as standin:
            running = await gateway(standin, CONFIG)
            async with callers(running, format, LIAR, HONEST) as (liar, honest):
                for number in range(3):
                    await liar.ask(attempt(format, number, LONG))
                assert await learned(running, "window") == [], (limit, prompt)
                await as_a_fresh_process_does(honest, standin)


@native_formats
async def test_an_honest_refusal_is_believed_and_folds_that_caller_alone(gateway, format: Format) -> None:
    def answer(seen: Seen) -> Any:
        small = is_liar(seen) and seen.prompt_tokens > 8192
        dialect = "anthropic" if format.name == "messages" else "openai"
        return Refuse(dialect, 8192, seen.prompt_tokens) if small else None

    async with StandIn(window=WINDOW, otherwise=answer) as standin:
        running = await gateway(standin, CONFIG)
        async with callers(running, format, LIAR, HONEST) as (liar, honest):
            counts = []
            for number in range(4):
                before = len(sent_to(standin, format))
                assert (await liar.ask(attempt(format, number, chat(60, 250)))).status == 200
                counts.append(len(sent_to(standin, format)) - before)
            assert counts == [2, 2, 1, 1]
            await as_a_fresh_process_does(honest, standin)


# --- Bills ------------------------------------------------------------------------------------------------------------------


def bills(format: Format, tokens: Callable[[Seen], int], cached: int | None = None) -> Callable[[Seen], Any]:
    """An upstream that bills the liar what the test says."""
    return lambda seen: Completion(usage=format.bill(tokens(seen), cached)) if is_liar(seen) else None


def tools_of(format: Format) -> list[dict[str, Any]]:
    functions = [
        {"name": f"tool_{n}", "description": words(60, n), "parameters": {"type": "object"}} for n in range(60)
    ]
    match format.name:
        case "chat":
            return [{"type": "function", "function": function} for function in functions]
        case "messages":
            return [
                {"name": row["name"], "description": row["description"], "input_schema": row["parameters"]}
                for row in functions
            ]
        case _:
            return [{"type": "function", **function} for function in functions]


def thoughts(format: Format) -> list[dict[str, Any]]:
    """Reasoning that a template or a server leaves out of later turns."""
    rows: list[dict[str, Any]] = [user("Go.")]
    for n in range(20):
        if format.name == "messages":
            thinking = {"type": "thinking", "thinking": words(300, n), "signature": "c2ln"}
            rows.append({"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]})
        elif format.name == "responses":
            summary = [{"type": "summary_text", "text": words(300, n)}]
            rows += [
                {"type": "reasoning", "id": f"rs_{n}", "summary": summary, "encrypted_content": "QUJD" * 200},
                {"role": "assistant", "content": "Yes."},
            ]
        else:
            rows.append({"role": "assistant", "content": "Yes.", "reasoning_content": words(300, n)})
        rows.append(user("On."))
    return rows


def innocent(format: Format) -> dict[str, tuple[dict[str, Any], int, int | None]]:
    """Bodies whose bill is small for a good reason: the body, the bill, what came from a cache."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": words(3000)}}}
    structured = {
        "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}},
        "messages": {"output_format": {"type": "json_schema", "schema": schema}},
        "responses": {"text": {"format": {"type": "json_schema", "name": "s", "schema": schema}}},
    }[format.name]
    short, long = format.body(chat(4, 100)), format.body(chat(24, 250))
    return {
        "tools that the template drops": ({**short, "tools": tools_of(format)}, 420, None),
        "a schema that is not read": ({**short, **structured}, 420, None),
        "reasoning that is dropped": ({**short, format.member: thoughts(format)}, 300, None),
        "a cut that was asked for": ({**long, "truncate_prompt_tokens": 2000}, 2000, None),
        "a field nobody knows": ({**long, "transforms": ["middle-out"]}, 4000, None),
        "a truncation that the API offers": ({**long, "truncation": "auto"}, 4000, None),
        "only what the cache did not hold": (long, 176, None),
        "a constant of a mock": (long, 10, None),
        "nothing": (long, 0, None),
    }


@native_formats
async def test_a_small_bill_with_an_innocent_reason_warns_nobody_and_teaches_nothing(gateway, format: Format) -> None:
    for reason, (body, billed, cached) in innocent(format).items():
        async with StandIn(
            window=WINDOW, otherwise=bills(format, lambda _, billed=billed: billed, cached), rules=()
        ) as standin:
            running = await gateway(standin, CONFIG)
            async with callers(running, format, LIAR, HONEST) as (liar, honest):
                for _ in range(3):
                    told = await liar.ask(body)
                    assert "x-turnfold-warning" not in told.headers, reason
                assert await learned(running, "window", "ratio", "conversation") == [], reason
                await as_a_fresh_process_does(honest, standin)


@native_formats
async def test_a_server_that_cuts_is_noticed_at_the_second_bill_and_folds_that_conversation_alone(
    gateway, format: Format
) -> None:
    for cached in (None, 900):
        async with StandIn(
            window=WINDOW, otherwise=bills(format, lambda seen: min(seen.prompt_tokens, 4000), cached)
        ) as standin:
            running = await gateway(standin, CONFIG)
            async with callers(running, format, LIAR, HONEST) as (liar, honest):
                warned, folded = [], []
                for turns in range(8, 30, 2):
                    told = await liar.ask(format.body(chat(40, 250)[: 4 * turns - 2]))
                    warned.append("x-turnfold-warning" in told.headers)
                    folded.append(told.action == "fold")
                cut = [seen.prompt_tokens > 4000 / 0.72 for seen in sent_to(standin, format)]
                assert warned.index(True) <= cut.index(True) + 2, f"cached {cached}"
                assert folded.index(True) == warned.index(True) + 1
                own = await learned(running, "conversation")
                assert {(fact["kind"], fact["holds"]) for fact in own} == {("guessed", "its conversation")}
                assert all(fact["value"] >= 1024 for fact in own)
                assert await learned(running, "window") == []
                await as_a_fresh_process_does(honest, standin)


@native_formats
async def test_one_absurd_bill_moves_nothing(gateway, format: Format) -> None:
    for factor in (7.0, 3.5, 0.3, 100.0, 0.0):
        async with StandIn(
            window=WINDOW, otherwise=bills(format, lambda seen, by=factor: int(seen.prompt_tokens * by))
        ) as standin:
            running = await gateway(standin, CONFIG)
            async with callers(running, format, LIAR, HONEST) as (liar, honest):
                for messages in (LONG, chat(55, 250)):
                    await liar.ask(format.body(messages))
                    told = await liar.ask(format.body(chat(56, 250)))
                    assert (told.status, told.action) == (200, "none"), factor
                    await as_a_fresh_process_does(honest, standin)


# --- A replay of a day ------------------------------------------------------------------------------------------------------


def day(format: Format) -> list[tuple[Callable[[Seen], Any], dict[str, Any]]]:
    """Every lie of this file in one format: what the upstream says, and to what."""
    dialect = "anthropic" if format.name == "messages" else "openai"
    found: list[tuple[Callable[[Seen], Any], dict[str, Any]]] = []
    for place, (build, complaint) in enumerate(QUOTED.values()):
        for wording in worded(place)[:1]:
            found.append((lambda _, c=complaint, w=wording: fakes.error(400, c.format(w)), build(format, wording)))
    for body, billed, cached in innocent(format).values():
        found.append((bills(format, lambda _, billed=billed: billed, cached), body))
    long = format.body(chat(24, 250))
    found += [(bills(format, lambda _, size=size: size), long) for size in (10, 1000, 70_000, 10**9)]
    found += [
        (lambda _, limit=limit: Refuse(dialect, limit), format.body(LONG)) for limit in (64, 100, 900, 8192, 10**8)
    ]
    found += [(bills(format, lambda seen: seen.prompt_tokens // 3), format.body(chat(50, 250)))] * 3
    found += [(bills(format, lambda seen: 3 * seen.prompt_tokens), format.body(chat(50 + n, 250))) for n in range(4)]
    found += [(lambda _: fakes.RATE_LIMITED, format.body(LONG)), (lambda _: fakes.EMPTY_STREAM, format.body(LONG))]
    return found


async def test_a_process_lied_to_in_every_format_answers_honest_callers_as_a_fresh_one_does(gateway) -> None:
    """All lies in all formats into one process, by several keys; then requests that fit, folds, and growing conversations."""
    lie: Callable[[Seen], Any] = lambda _: None  # noqa: E731

    def answer(seen: Seen) -> Any:
        return lie(seen) if is_liar(seen) else None

    async with StandIn(window=WINDOW, otherwise=answer, rules=()) as standin:
        lied, fresh = await gateway(standin, CONFIG), await gateway(standin, CONFIG)
        for format in FORMATS.values():
            async with callers(lied, format, f"{LIAR}-0", f"{LIAR}-1") as liars:
                for number, (told, body) in enumerate(day(format)):
                    lie = told
                    for again in range(2):
                        asked = {**body, format.member: [user(f"Part {again}."), *body[format.member]]}
                        await liars[(number + again) % 2].ask(asked)
        for format in FORMATS.values():
            async with callers(lied, format, HONEST) as (one,), callers(fresh, format, HONEST) as (other,):
                whole = chat(150, 250)
                for messages in (chat(60, 250), *(whole[:count] for count in (260, 270, 298))):
                    answers = [await each.ask(format.body(messages)) for each in (one, other)]
                    assert standin.requests[-2].body == standin.requests[-1].body
                    assert answers[0].ours == answers[1].ours
                    assert [told.status for told in answers] == [200, 200]
