"""Drive the `openai` Python package, whichever version is on the path, through every scene; print what came back as JSON.

Run as ``python drive.py BASE_URL`` with the bodies of ``{"long": ..., "too_long": ...}`` on standard input.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import openai
import orjson

ASK = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}


def main() -> None:
    base_url, bodies = sys.argv[1], orjson.loads(sys.stdin.buffer.read())
    client = openai.OpenAI(base_url=base_url, api_key="sk-right", max_retries=0, timeout=20)
    told: dict[str, Any] = {
        "plain": plain(client),
        "stream": streamed(client.chat.completions.create(
            model="gpt-4o", messages=ASK, stream=True, stream_options={"include_usage": True}
        )),
        "tools": tools(client),
        "tools_stream": tools_streamed(client),
        "long": long(client, bodies["long"]),
        "long_stream": long(client, {**bodies["long"], "stream": True}),
        "embeddings": {"rows": len(client.embeddings.create(model="e", input=["a", "b"], encoding_format="float").data)},
        "models": {"ids": [model.id for model in client.models.list()]},
        "too_long": failure(lambda: client.chat.completions.create(**bodies["too_long"])),
        "wrong_key": failure(
            lambda: client.with_options(api_key="sk-wrong").chat.completions.create(model="gpt-4o", messages=ASK)
        ),
    }  # fmt: skip
    for model in bodies["errors"]:
        told[model] = failure(lambda model=model: client.chat.completions.create(model=model, messages=ASK))
    sys.stdout.buffer.write(orjson.dumps({"version": openai.__version__, "told": told}))


def plain(client: openai.OpenAI) -> dict[str, Any]:
    answer = client.chat.completions.create(model="gpt-4o", messages=ASK)
    return {"text": answer.choices[0].message.content, "prompt_tokens": answer.usage.prompt_tokens}


def streamed(stream: Iterable[Any]) -> dict[str, Any]:
    text, usage = "", None
    for chunk in stream:
        usage = chunk.usage or usage
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
    return {"text": text, "prompt_tokens": usage.prompt_tokens if usage else None}


def tools(client: openai.OpenAI) -> dict[str, Any]:
    answer = client.chat.completions.create(model="caller", messages=ASK, tools=[TOOL])
    message = answer.choices[0].message
    call = message.tool_calls[0]
    result = {"role": "tool", "tool_call_id": call.id, "content": "sent"}
    history = [*ASK, message.model_dump(exclude_none=True), result]
    then = client.chat.completions.create(model="caller", messages=history, tools=[TOOL])
    return {
        "name": call.function.name,
        "arguments": call.function.arguments,
        "finish": answer.choices[0].finish_reason,
        "then": then.choices[0].message.content,
    }


def tools_streamed(client: openai.OpenAI) -> dict[str, Any]:
    name, arguments, finish = "", "", None
    for chunk in client.chat.completions.create(model="caller", messages=ASK, tools=[TOOL], stream=True):
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    return {"name": name, "arguments": arguments, "finish": finish}


def long(client: openai.OpenAI, body: dict[str, Any]) -> dict[str, Any]:
    raw = client.chat.completions.with_raw_response.create(**body)
    answer = raw.parse()
    text = streamed(answer)["text"] if body.get("stream") else answer.choices[0].message.content
    return {"text": text, "action": raw.headers.get("x-turnfold-action")}


def failure(ask: Callable[[], Any]) -> dict[str, Any]:
    try:
        ask()
    except openai.APIStatusError as error:
        return {"class": type(error).__name__, "status": error.status_code, "code": error.code}
    except openai.APIError as error:
        return {"class": type(error).__name__}
    return {"class": None}


if __name__ == "__main__":
    main()
