"""The real client libraries as callers: one per wire format, each with its own way to say the same conversation."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

import anthropic
import openai

from gateway.standin import Seen
from tests.running import PATIENCE_S, Gateway

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What a library told its caller."""

    status: int
    headers: Mapping[str, str]
    answer: Any
    """The parsed answer, or the library's exception."""

    @property
    def action(self) -> str:
        return self.headers["x-turnfold-action"]

    @property
    def ours(self) -> dict[str, str]:
        """Everything the gateway says of its work, without the request's own name."""
        return {
            name: value for name, value in self.headers.items() if name.startswith("x-turnfold") and "id" not in name
        }


@dataclass(frozen=True, slots=True)
class Format:
    """How one API says a conversation, and what it calls a bill."""

    name: str
    path: str
    member: str
    """Where the conversation stands."""
    body: Callable[[Sequence[Message]], dict[str, Any]]
    """Plain messages, the first of them a system message, as the body of a request."""
    bill: Callable[[int, int | None], dict[str, Any]]
    """(billed, from a cache) -> the usage that says so."""
    create: Callable[[Any], Callable[..., Any]]
    """A library -> its function that asks and gives the raw answer."""
    library: type[openai.AsyncOpenAI | anthropic.AsyncAnthropic]
    stop: str = ""
    """The member for stop words."""


def _chat(messages: Sequence[Message]) -> dict[str, Any]:
    return {"messages": [dict(message) for message in messages], "max_tokens": 200}


def _messages(messages: Sequence[Message]) -> dict[str, Any]:
    system = [message["content"] for message in messages if message["role"] == "system"]
    rest = [dict(message) for message in messages if message["role"] != "system"]
    return {"system": "\n".join(system), "messages": rest, "max_tokens": 200}


def _responses(messages: Sequence[Message]) -> dict[str, Any]:
    system = [message["content"] for message in messages if message["role"] == "system"]
    rest = [dict(message) for message in messages if message["role"] != "system"]
    return {"instructions": "\n".join(system), "input": rest, "max_output_tokens": 200}


def _chat_bill(prompt: int, cached: int | None) -> dict[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": prompt, "completion_tokens": 4, "total_tokens": prompt + 4, **details}


def _messages_bill(prompt: int, cached: int | None) -> dict[str, Any]:
    return {"input_tokens": prompt - (cached or 0), "cache_read_input_tokens": cached or 0, "output_tokens": 4}


def _responses_bill(prompt: int, cached: int | None) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": cached or 0}}
    return {"input_tokens": prompt, "output_tokens": 4, "total_tokens": prompt + 4, **details}


FORMATS = {
    "chat": Format(
        "chat", "/v1/chat/completions", "messages", _chat, _chat_bill,
        lambda client: client.chat.completions.with_raw_response.create, openai.AsyncOpenAI, "stop",
    ),
    "messages": Format(
        "messages", "/v1/messages", "messages", _messages, _messages_bill,
        lambda client: client.messages.with_raw_response.create, anthropic.AsyncAnthropic, "stop_sequences",
    ),
    "responses": Format(
        "responses", "/v1/responses", "input", _responses, _responses_bill,
        lambda client: client.responses.with_raw_response.create, openai.AsyncOpenAI,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caller:
    """One library with one key at one gateway."""

    format: Format
    client: Any

    async def ask(self, body: Mapping[str, Any], **headers: str) -> Told:
        """Ask, whatever the body holds: members that the library does not know travel beside those that it does."""
        known = {name: body[name] for name in ("messages", "input", "max_tokens") if name in body}
        more = {name: value for name, value in body.items() if name not in known}
        try:
            raw = await self.format.create(self.client)(model="m", **known, extra_body=more, extra_headers=headers)
        except (openai.APIStatusError, anthropic.APIStatusError) as refused:
            return Told(refused.status_code, refused.response.headers, refused)
        answer = raw.parse()
        return Told(raw.status_code, raw.headers, await answer if isawaitable(answer) else answer)


@asynccontextmanager
async def callers(running: Gateway, format: Format, *keys: str) -> AsyncIterator[list[Caller]]:
    """Open one library for each key."""
    async with AsyncExitStack() as stack:
        opened = []
        for key in keys:
            base_url = (
                running.base_url if format.library is openai.AsyncOpenAI else running.base_url.removesuffix("/v1")
            )
            client = format.library(api_key=key, base_url=base_url, max_retries=0, timeout=PATIENCE_S)
            opened.append(Caller(format, await stack.enter_async_context(client)))
        yield opened


def key_of(seen: Seen) -> str:
    """Whose request it is, as the upstream sees it."""
    return seen.headers.get("x-api-key") or seen.headers.get("authorization", "").removeprefix("Bearer ")


def sent_to(standin: Any, format: Format) -> list[Seen]:
    """The requests of this format that reached the upstream."""
    return [seen for seen in standin.requests if seen.path == format.path]
