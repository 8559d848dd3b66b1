"""langchain-openai works through the gateway, and takes our refusals for what they are (case 127)."""

import langchain_openai
import openai
import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, convert_to_messages

from tests.e2e import scenes


@pytest.fixture
async def model(gateway):
    """Make chat models that speak to the gateway."""
    async with scenes.upstream() as standin:
        running = await gateway(standin, scenes.CONFIG)

        def make(name: str, key: str = scenes.KEY):
            return langchain_openai.ChatOpenAI(
                model=name, base_url=running.base_url, api_key=key, max_retries=0, max_tokens=100, timeout=20
            )

        yield make


async def test_an_answer_comes_with_its_bill(model):
    answer = await model("gpt-4o").ainvoke("Hello")
    assert answer.content == "Understood."
    assert answer.usage_metadata["input_tokens"] == 8


async def test_a_stream_comes_whole_with_its_bill(model):
    pieces = [piece async for piece in model("gpt-4o").astream("Hello", stream_usage=True)]
    assert "".join(piece.content for piece in pieces) == "Understood."
    assert sum(piece.usage_metadata["input_tokens"] for piece in pieces if piece.usage_metadata) == 8


async def test_a_tool_is_called(model):
    answer = await model("caller").bind_tools([scenes.LOOKUP]).ainvoke("Where is order 7?")
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("lookup", {"order": 7})]


async def test_a_tool_conversation_over_the_window(model):
    answer = await model("small").bind_tools([scenes.LOOKUP]).ainvoke(convert_to_messages(scenes.LONG["messages"]))
    assert isinstance(answer, AIMessage)
    assert answer.content == "Understood."
    assert answer.usage_metadata["input_tokens"] <= scenes.WINDOW - 100


async def test_our_own_refusal_is_a_context_overflow(model):
    with pytest.raises(ContextOverflowError) as refused:
        await model("small").ainvoke(convert_to_messages(scenes.TOO_LONG["messages"]))
    assert isinstance(refused.value, openai.BadRequestError)
    assert refused.value.code == "context_length_exceeded"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bad", openai.BadRequestError),
        ("denied", openai.PermissionDeniedError),
        ("gone", openai.NotFoundError),
        ("limited", openai.RateLimitError),
        ("broken", openai.InternalServerError),
        ("reset", openai.InternalServerError),
    ],
)
async def test_an_error_keeps_its_class(model, name, error):
    with pytest.raises(error):
        await model(name).ainvoke("Hello")


async def test_a_wrong_key_is_an_authentication_error(model):
    with pytest.raises(openai.AuthenticationError):
        await model("gpt-4o", "sk-wrong").ainvoke("Hello")


@pytest.mark.parametrize("streaming", [False, True])
async def test_litellm_reads_our_refusal_as_a_context_window_error(gateway, standin, streaming):
    """LiteLLM maps by the lower-case message, and looks for rate limits first."""
    running = await gateway(standin, scenes.CONFIG)
    answer = await running.chat({**scenes.TOO_LONG, "stream": streaming})
    said = answer.body.decode().lower()
    assert "this model's maximum context length is" in said
    assert not any(other in said for other in ("rate limit", "rate_limit", "rate-limit", "string_above_max_length"))
    assert standin.chats == []
