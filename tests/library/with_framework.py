"""Run an example of docs/library.md inside a framework and print the answer: ``python with_framework.py llamaindex|pydantic-ai URL WINDOW``.

It runs in an environment of its own, so it imports nothing of the other tests. The conversation comes as JSON on standard input.
"""

# ruff: noqa: PLC0415  # each framework is imported where it is chosen

import asyncio
import json  # noqa: TID251  # the environment is the framework's
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def example(heading):
    """Return the names that the example under a heading defines."""
    section = PAGE.read_text("utf-8").partition(f"## {heading}")[2].partition("\n## ")[0]
    names = {"__name__": "example"}
    exec(re.search(r"```python\n(.*?)```", section, re.S)[1], names)
    return names


def llamaindex(url, window, messages):
    from llama_index.core.chat_engine import SimpleChatEngine
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    history = [ChatMessage(role=each["role"], content=each["content"]) for each in messages[:-1]]
    memory = example("With LlamaIndex")["FoldedMemory"](token_limit=10**9, window=window, model="gpt-4o")
    memory.set(history)
    llm = OpenAILike(model="gpt-4o", api_base=url, api_key="k", is_chat_model=True, max_retries=0)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
    answer = engine.chat(messages[-1]["content"])
    assert len(memory.get_all()) == len(messages) + 1, "the memory keeps the whole conversation"
    return str(answer)


def pydantic_ai(url, window, messages):
    import httpx
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    history = [
        ModelRequest([UserPromptPart(each["content"])])
        if each["role"] == "user"
        else ModelResponse([TextPart(each["content"])])
        for each in messages[:-1]
    ]

    async def run():
        async with httpx.AsyncClient(transport=example("With pydantic-ai")["Folding"](window)) as client:
            provider = OpenAIProvider(base_url=url, api_key="k", http_client=client)
            agent = Agent(OpenAIChatModel("gpt-4o", provider=provider), instructions="Answer briefly.")

            @agent.tool_plain
            def weigh(parcel: int) -> int:
                """Weigh a parcel."""
                return parcel * 13

            return (await agent.run(messages[-1]["content"], message_history=history)).output

    return asyncio.run(run())


if __name__ == "__main__":
    run = {"llamaindex": llamaindex, "pydantic-ai": pydantic_ai}[sys.argv[1]]
    print("answer:", run(sys.argv[2], int(sys.argv[3]), json.load(sys.stdin)))  # noqa: T201
