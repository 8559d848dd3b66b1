"""The libraries of agents work through the gateway in their own formats: `anthropic`, `openai`, and the Agents SDK as it is by default."""

import asyncio
from asyncio.subprocess import PIPE
from typing import Any

import anthropic
import openai
import orjson
import pytest
from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled

from gateway.standin import Completion, StandIn
from tests.e2e.native import MESSAGES, RESPONSES
from tests.e2e.test_sdks import INSTALL_S, NODE, npm
from tests.fakes import call, words

WINDOW = 4000
CONFIG = {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}}


@pytest.fixture
async def standin():
    async with StandIn(window=WINDOW) as standin:
        yield standin


@pytest.mark.parametrize("base", ["", "/v1"])
@pytest.mark.parametrize("turns", [2, 120])
async def test_the_sdk_of_anthropic_reads_answers_and_streams(base, turns, gateway, standin):
    running = await gateway(standin, CONFIG)
    async with anthropic.AsyncAnthropic(
        base_url=f"http://127.0.0.1:{running.port}{base}", api_key="k", max_retries=0
    ) as client:
        whole = await client.messages.create(**MESSAGES.body(turns))
        async with client.messages.stream(**MESSAGES.body(turns)) as stream:
            text = await stream.get_final_text()
        counted = await client.messages.count_tokens(model="m", messages=MESSAGES.body(turns)["messages"])

    assert whole.content[0].text == text == "Understood."
    assert whole.usage.input_tokens <= WINDOW
    assert counted.input_tokens > 50 * turns
    assert [seen.violations for seen in standin.requests if seen.violations] == []


async def test_anthropic_raises_what_its_users_catch(gateway, standin):
    running = await gateway(standin, CONFIG)
    async with anthropic.AsyncAnthropic(base_url=running.base_url, api_key="k", max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 4000 maximum"):
            await client.messages.create(**MESSAGES.body(2, system=words(9000)))


@pytest.mark.parametrize("base", ["", "/v1"])
@pytest.mark.parametrize("turns", [2, 120])
async def test_the_sdk_of_openai_reads_responses_and_streams(base, turns, gateway, standin):
    running = await gateway(standin, CONFIG)
    async with openai.AsyncOpenAI(
        base_url=f"http://127.0.0.1:{running.port}{base}", api_key="k", max_retries=0
    ) as client:
        whole = await client.responses.create(**RESPONSES.body(turns))
        text = ""
        async for event in await client.responses.create(**RESPONSES.body(turns), stream=True):
            text += event.delta if event.type == "response.output_text.delta" else ""

    assert whole.output_text == text == "Understood."
    assert whole.usage.input_tokens <= WINDOW


async def test_openai_raises_what_its_users_catch(gateway, standin):
    running = await gateway(standin, CONFIG)
    async with openai.AsyncOpenAI(base_url=running.base_url, api_key="k", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(**RESPONSES.body(2, instructions=words(9000)))

    assert caught.value.code == "context_length_exceeded"


async def test_the_agents_sdk_in_its_default_mode(gateway, standin):
    """An agent that calls its tool until the conversation is three windows long."""
    set_tracing_disabled(True)
    steps = 30

    @function_tool
    def look(path: str) -> str:
        """Read a file."""
        return words(400, int(path))

    def answer(seen: Any) -> Completion | None:
        if seen.violations or seen.prompt_tokens > seen.window:
            return None
        number = len(standin.requests) - 1
        return (
            Completion("", (call("look", {"path": str(number)}, f"call_{number}"),))
            if number < steps
            else Completion("Done.")
        )

    standin._otherwise = answer
    running = await gateway(standin, CONFIG)
    async with openai.AsyncOpenAI(base_url=running.base_url, api_key="k", max_retries=0) as client:
        model = OpenAIResponsesModel("m", client)
        agent = Agent(
            "finder",
            instructions="Look at all files.",
            tools=[look],
            model=model,
            model_settings=ModelSettings(max_tokens=100),
        )
        result = await Runner.run(agent, "Find the fault.", max_turns=steps + 5)

    assert result.final_output == "Done."
    assert {seen.path for seen in standin.requests} == {"/v1/responses"}
    assert len(standin.requests) == steps + 1
    assert [seen.violations for seen in standin.requests if seen.violations] == []


@pytest.mark.parametrize("turns", [2, 120])
async def test_the_npm_packages_read_answers_and_streams(turns, gateway, standin):
    """`@anthropic-ai/sdk` and `openai` for JavaScript, plain and streamed."""
    command = (await asyncio.to_thread(npm))[0]
    running = await gateway(standin, CONFIG)
    process = await asyncio.create_subprocess_exec(
        command[0], NODE / "agents.mjs", f"http://127.0.0.1:{running.port}", stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    bodies = {"messages": MESSAGES.body(turns), "responses": RESPONSES.body(turns)}
    async with asyncio.timeout(INSTALL_S):
        out, err = await process.communicate(orjson.dumps(bodies))

    assert process.returncode == 0, err.decode()
    assert orjson.loads(out) == {"messages": ["Understood."] * 2, "responses": ["Understood."] * 2}
    assert [seen.status for seen in standin.requests] == [200] * 4
