"""The examples of docs/library.md work with the libraries they name, against a strict upstream."""

import asyncio
import re
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI

from gateway.standin import StandIn
from tests.running import ROOT

WINDOW = 3000
LONG: list[dict[str, Any]] = []
for number in range(60):
    LONG += [
        {"role": "user", "content": f"Parcel {number} weighs {number * 13} grams and goes to street {number}. " * 4},
        {"role": "assistant", "content": f"Parcel {number} is noted. " * 4},
    ]
LONG.append({"role": "user", "content": "How heavy is parcel 9?"})


def example(heading: str) -> dict[str, Any]:
    """Return the names that the example under a heading defines."""
    page = (ROOT / "docs" / "library.md").read_text("utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    code = re.search(r"```python\n(.*?)```", section, re.S)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    return names


@pytest.mark.parametrize("scale", [1.0, 2.5])
async def test_the_openai_sdk_folds_and_recovers(scale: float) -> None:
    complete = example("With the OpenAI SDK")["complete"]
    async with StandIn(window=WINDOW, scale=scale) as standin:
        with openai.OpenAI(base_url=standin.base_url, api_key="k", max_retries=0) as client:
            answer = await asyncio.to_thread(lambda: complete(client, LONG, WINDOW, model="gpt-4o"))

    assert answer.choices[0].message.content == "Understood."
    assert len(standin.requests) == (1 if scale == 1.0 else 2)
    assert [seen.violations for seen in standin.requests if seen.violations] == []


async def test_the_openai_sdk_raises_what_is_no_refusal() -> None:
    complete = example("With the OpenAI SDK")["complete"]
    async with StandIn(window=WINDOW, models=("other",)) as standin:
        with (
            openai.OpenAI(base_url=standin.base_url, api_key="k", max_retries=0) as client,
            pytest.raises(openai.NotFoundError),
        ):
            await asyncio.to_thread(lambda: complete(client, LONG, WINDOW, model="gpt-4o"))


async def test_langchain_folds_in_front_of_the_model() -> None:
    fitting = example("With LangChain")["fitting"]
    async with StandIn(window=WINDOW) as standin:
        model = ChatOpenAI(model="gpt-4o", base_url=standin.base_url, api_key="k", max_retries=0)
        given = [HumanMessage(m["content"]) if m["role"] == "user" else AIMessage(m["content"]) for m in LONG]

        answer = await fitting(model, WINDOW).ainvoke(given)
        await model.root_async_client.close()

    assert answer.content == "Understood."
    assert "117 grams" in standin.requests[0].body.decode()


async def test_the_agents_sdk_folds_each_request_of_a_run() -> None:
    folding = example("With the OpenAI Agents SDK")["folding"]
    set_tracing_disabled(True)
    async with (
        StandIn(window=WINDOW) as standin,
        openai.AsyncOpenAI(base_url=standin.base_url, api_key="k", max_retries=0) as client,
    ):
        agent = Agent("clerk", instructions="Answer briefly.", model=OpenAIResponsesModel("gpt-4o", client))
        result = await Runner.run(agent, LONG, run_config=folding(WINDOW))

    assert result.final_output == "Understood."
    assert "117 grams" in standin.requests[0].body.decode()
