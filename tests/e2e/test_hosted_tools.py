"""Tools that the provider runs: their results, as the client libraries send them back, through the running gateway."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import anthropic
import openai
import orjson
import pytest
from anthropic.types import beta
from openai.types import responses

from gateway.standin import StandIn
from gateway.standin import messages as strict_messages
from gateway.standin import responses as strict_responses
from tests.fakes import user, words

WINDOW: Final = 8000
CONFIG: Final = {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}}
QUESTION: Final = "Which consignment of the pharmacy in Leiden is late, and what is its number?"
FACT: Final = "consignment NL-77310 of the pharmacy in Leiden is late by 9 days"
LARGE: Final = "".join([f"consignment BE-{number} arrived on time in depot {number % 97}\n" for number in range(2000)])
"""Some 100 KB; a large result has it twice."""

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAA" * 2000
ITEMS: Final = {
    "mcp_call": {"name": "track", "server_label": "depot", "arguments": '{"city":"Leiden"}', "output": "{}", "status": "completed"},
    "code_interpreter_call": {
        "code": "print(late('Leiden'))", "container_id": "cntr_1", "status": "completed",
        "outputs": [{"type": "image", "url": f"data:image/png;base64,{PNG}"}, {"type": "logs", "logs": "{}"}],
    },
    "file_search_call": {
        "queries": ["late in Leiden"], "status": "completed",
        "results": [{"file_id": "file-1", "filename": "depot.txt", "score": 0.5, "text": "{}"}],
    },
}  # fmt: skip
"""Items of Responses with a result in words; `{}` is its place."""
BLOCKS: Final = {
    "mcp_tool_result": [{"type": "text", "text": "{}"}],
    "web_fetch_tool_result": {
        "type": "web_fetch_result", "url": "https://depot.example/leiden", "retrieved_at": "2026-01-01T00:00:00Z",
        "content": {"type": "document", "title": "Depot", "source": {"type": "text", "media_type": "text/plain", "data": "{}"}},
    },
    "code_execution_tool_result": {"type": "code_execution_result", "stdout": "{}", "stderr": "", "return_code": 0, "content": []},
    "bash_code_execution_tool_result": {
        "type": "bash_code_execution_result", "stdout": "", "stderr": "{}", "return_code": 1,
        "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}],
    },
    "text_editor_code_execution_tool_result": {
        "type": "text_editor_code_execution_view_result", "content": "{}", "file_type": "text", "num_lines": 1, "start_line": 1, "total_lines": 1,
    },
}  # fmt: skip
"""Results of Messages in words, by the type of their block."""


def filled(value: Any, text: str) -> Any:
    """A copy of a result with a text at its place."""
    if isinstance(value, str):
        return text if value == "{}" else value
    if isinstance(value, Mapping):
        return {name: filled(inner, text) for name, inner in value.items()}
    return [filled(inner, text) for inner in value] if isinstance(value, list) else value


def item_turn(kind: str, text: str, number: int = 1) -> list[dict[str, Any]]:
    """Reasoning and the item of a tool in Responses, as the library gives them to its user."""
    given = {"type": kind, "id": f"{kind}_{number}", **filled(ITEMS[kind], text)}
    reasoning = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "QUJD"}
    answer = responses.Response.model_validate(
        {
            "id": "resp_1", "created_at": 0, "model": "m", "object": "response", "output": [reasoning, given],
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        }
    )  # fmt: skip
    return [item.to_dict() for item in answer.output]


def block_turn(kind: str, text: str, number: int = 1) -> list[dict[str, Any]]:
    """An answer in Messages with a tool's call and its result, as the library gives it to its user."""
    name = f"srvtoolu_{number}"
    call = {
        "type": "server_tool_use",
        "id": name,
        "name": kind.removesuffix("_tool_result"),
        "input": {"place": "Leiden"},
    }
    if kind == "mcp_tool_result":
        call = {**call, "type": "mcp_tool_use", "server_name": "depot"}
    result = {"type": kind, "tool_use_id": name, "content": filled(BLOCKS[kind], text)}
    if kind == "mcp_tool_result":
        result["is_error"] = False
    answer = beta.BetaMessage.model_validate(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None,
            "content": [call, result, {"type": "text", "text": "I have looked."}], "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )  # fmt: skip
    return [{"role": "assistant", "content": [block.to_dict() for block in answer.content]}]


class Api(NamedTuple):
    """One API: how its library asks, and how the turn of a tool is written in it."""

    name: str
    turn: Callable[..., list[dict[str, Any]]]
    kinds: Sequence[str]

    async def ask(self, running: Any, rows: Sequence[Any]) -> None:
        """Send a conversation with the API's own library."""
        base = {"base_url": running.base_url, "api_key": "k", "max_retries": 0}
        if self.name == "responses":
            async with openai.AsyncOpenAI(**base) as client:
                await client.responses.create(model="m", input=rows, max_output_tokens=100)
        else:
            async with anthropic.AsyncAnthropic(**base) as client:
                await client.beta.messages.create(model="m", messages=rows, max_tokens=100)


RESPONSES: Final = Api("responses", item_turn, tuple(ITEMS))
MESSAGES: Final = Api("messages", block_turn, tuple(BLOCKS))
STRICT: Final = {"responses": strict_responses, "messages": strict_messages}
each_kind = pytest.mark.parametrize(
    ("api", "kind"), [pytest.param(api, kind, id=kind) for api in (RESPONSES, MESSAGES) for kind in api.kinds]
)


def talk(turns: int) -> list[dict[str, Any]]:
    """A conversation about something else."""
    said = [(user(words(100, n)), {"role": "assistant", "content": words(100, 1000 + n)}) for n in range(turns)]
    return [row for pair in said for row in pair]


def rows_of(sent: Mapping[str, Any]) -> list[dict[str, Any]]:
    return sent.get("input") or sent["messages"]


def found(rows: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """The items or blocks of a type."""
    inside = [block for row in rows if isinstance(row.get("content"), list) for block in row["content"]]
    return [each for each in (*rows, *inside) if each.get("type") == kind]


@pytest.fixture
async def standin():
    async with StandIn(window=WINDOW) as standin:
        yield standin


@each_kind
async def test_a_folded_result_is_quoted(api, kind, gateway, standin):
    running = await gateway(standin, CONFIG)
    told = [f"consignment of the bakery in Ghent came after {n} days" for n in range(20)]
    text = "\n".join([*told, FACT, *told])
    rows = [user("What is late?"), *api.turn(kind, text), *talk(60), user(QUESTION)]

    await api.ask(running, rows)

    (seen,) = standin.requests
    assert (
        STRICT[api.name].added(
            {"max_tokens": 100, **({"input": rows} if api is RESPONSES else {"messages": rows})}, seen.json
        )
        == []
    )
    assert found(rows_of(seen.json), kind) == []
    assert found(rows_of(seen.json), "reasoning") == []
    assert "NL-77310" in str(rows_of(seen.json))


@each_kind
@pytest.mark.parametrize("asked", [True, False], ids=["before_a_question", "in_the_running_turn"])
async def test_a_large_result_is_shortened_in_its_item(api, kind, asked, gateway, standin):
    """What the provider needs to accept the item again stays: ids, required members, all besides the text."""
    running = await gateway(standin, CONFIG)
    rows = [user(QUESTION), *api.turn(kind, f"{LARGE}{FACT}\n{LARGE}")]
    if asked:
        rows.append(user(QUESTION))

    await api.ask(running, rows)

    seen = standin.requests[-1]
    assert seen.violations == []
    assert seen.prompt_tokens <= WINDOW
    (given,), (sent,) = found(rows, kind), found(rows_of(seen.json), kind)
    assert without_texts(sent) == without_texts(given)
    assert "NL-77310" in str(rows_of(seen.json))
    assert "characters cut" in str(sent)


def without_texts(value: Any) -> Any:
    """A copy of a value in which long texts say that they are there."""
    if isinstance(value, str):
        return "text" if len(value) > 200 else value
    if isinstance(value, dict):
        return {name: without_texts(inner) for name, inner in value.items()}
    return [without_texts(inner) for inner in value] if isinstance(value, list) else value


@each_kind
async def test_a_result_that_fits_leaves_as_it_came(api, kind, gateway, standin):
    running = await gateway(standin, CONFIG)
    await api.ask(running, [user("What is late?"), *api.turn(kind, FACT), user(QUESTION)])
    raw = standin.requests[0].body

    path = "/responses" if api is RESPONSES else "/messages"
    await running.ask("POST", path, raw.replace(b"{", b"{ ", 1), {"content-type": "application/json"})

    assert standin.requests[1].body == raw.replace(b"{", b"{ ", 1)


async def test_a_search_is_sealed_so_it_stays_whole_or_goes_with_its_call(gateway, standin):
    """Its pages are read by title and address."""
    pages = [
        {"type": "web_search_result", "title": f"Depot {n}", "url": f"https://depot.example/{n}", "page_age": None, "encrypted_content": "QUJD" * 200}
        for n in range(5)
    ]  # fmt: skip
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "depots in Leiden"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": pages}
    searched = {"role": "assistant", "content": [call, result, {"type": "text", "text": "Five depots."}]}
    running = await gateway(standin, CONFIG)

    for turns in (40, 60):
        await MESSAGES.ask(running, [*talk(turns), user("Which depots are there?"), searched, *talk(4), user("Go on.")])
        await MESSAGES.ask(
            running, [user("Which depots are there?"), searched, *talk(turns), user("Which depots have a page?")]
        )

    assert [seen.violations for seen in standin.requests if seen.violations] == []
    whole = [found(seen.json["messages"], "web_search_tool_result") for seen in standin.requests]
    assert [result in each for each in whole] == [True, False, True, False]
    assert all("https://depot.example/3" in str(seen.json["messages"]) for seen in standin.requests)


BAD: Final[list[Any]] = [None, [], {}, "", "x", 7, True, [None], [[]], [{"text": 7}], {"content": {"content": [None]}}]


@pytest.mark.parametrize("size", [1, 120], ids=["fits", "folded"])
async def test_items_of_any_shape_break_nothing(size, gateway):
    kinds = (*ITEMS, "web_search_call", "image_generation_call")
    members = (
        "id",
        "name",
        "arguments",
        "code",
        "queries",
        "action",
        "output",
        "error",
        "outputs",
        "results",
        "result",
    )
    items = [{"type": kind, **dict.fromkeys(members, bad)} for kind in kinds for bad in BAD]
    items += [{"type": kind} for kind in kinds]
    calls = [{"type": "server_tool_use", **dict.fromkeys(("id", "name", "input"), bad)} for bad in BAD]
    calls += [{"type": "mcp_tool_use"}, {"type": "server_tool_use", "id": "s1"}]
    blocks = [
        {"type": kind, "tool_use_id": name, "content": bad}
        for kind in (*BLOCKS, "web_search_tool_result", "tool_search_tool_result", "advisor_tool_result")
        for bad in (*BAD, filled(BLOCKS.get(kind), "x"), [filled(BLOCKS.get(kind), "x")])
        for name in ("s1", "x", None, 7)
    ]
    async with StandIn(window=WINDOW, rules=()) as standin:
        running = await gateway(standin, CONFIG)
        for path, body in (
            ("/responses", {"model": "m", "input": [*talk(size), *items, *talk(size), user("Go on.")]}),
            ("/messages", {"model": "m", "max_tokens": 9, "messages": [*talk(size), user("?"), {"role": "assistant", "content": [*calls, *blocks]}, *talk(size), user("Go on.")]}),
        ):  # fmt: skip
            raw = orjson.dumps(body)
            answer = await running.ask("POST", path, raw, {"content-type": "application/json"})

            assert (answer.status, answer.action) == (200, "none" if size == 1 else "fold")
            assert (standin.requests[-1].body == raw) == (size == 1)
