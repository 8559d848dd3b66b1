"""How servers say "too long": recorded wordings with open numbers, one row per server.

Each was seen in a real answer or is in the server's source. If a server distinguishes "the prompt is too long" from
"prompt and answer together are too long", both wordings are here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers a refusal can state, in tokens."""

    limit: int
    prompt: int
    completion: int

    @property
    def total(self) -> int:
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one server refuses a request that is too long."""

    prompt: str
    """The wording when the prompt alone is too long."""
    total: str
    """The wording when only prompt and answer together are too long; empty when the server does not check this."""
    envelope: Callable[[str, Sizes], Any]
    status: int = 400
    as_event: bool = False
    """A streamed request is answered 200, with the refusal as its first event."""
    silent_stream: bool = False
    """A streamed request is answered 200 with no event at all."""


def refusal(dialect: Dialect, sizes: Sizes) -> bytes:
    """Write the body of a refusal in a server's own words."""
    wording = dialect.prompt if sizes.prompt > sizes.limit or not dialect.total else dialect.total
    message = wording.format(
        limit=sizes.limit, prompt=sizes.prompt, completion=sizes.completion, total=sizes.total, over=sizes.limit + 1
    )
    return orjson.dumps(dialect.envelope(message, sizes))


def _openai(code: str | int | None, kind: str = "invalid_request_error", param: str | None = "messages") -> Any:
    def envelope(message: str, _: Sizes) -> Mapping[str, Any]:
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    return envelope


def _flat(message: str, _: Sizes) -> Mapping[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}


def _llama_cpp(message: str, sizes: Sizes) -> Mapping[str, Any]:
    kind = "exceed_context_size_error"
    return {
        "error": {"code": 400, "message": message, "type": kind, "n_prompt_tokens": sizes.prompt, "n_ctx": sizes.limit}
    }


def _anthropic(message: str, _: Sizes) -> Mapping[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_011"}


def _gemini(message: str, _: Sizes) -> list[Mapping[str, Any]]:
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def _mistral(message: str, _: Sizes) -> Mapping[str, Any]:
    return {"object": "error", "message": message, "type": "invalid_request_prompt", "param": None, "code": "3051"}


def _tgi(message: str, _: Sizes) -> Mapping[str, Any]:
    return {"error": message, "error_type": "validation"}


def _text(message: str, _: Sizes) -> Mapping[str, Any]:
    return {"error": message}


def _bare(message: str, _: Sizes) -> Mapping[str, Any]:
    return {"message": message}


_ASKED: Final = (
    "This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({prompt} in the "
    "messages, {completion} in the completion). Please reduce the length of the messages or completion."
)
_RESULTED: Final = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in {prompt} tokens. "
    "Please reduce the length of the messages."
)

DIALECTS: Final[Mapping[str, Dialect]] = {
    "openai": Dialect(_RESULTED, _ASKED, _openai("context_length_exceeded")),
    "openai-responses": Dialect(
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "",
        _openai("context_length_exceeded", param="input"),
    ),
    "openai-responses-stream": Dialect(
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "",
        _openai("context_length_exceeded", param="input"),
        as_event=True,
    ),
    "anthropic-stream": Dialect("prompt is too long: {prompt} tokens > {limit} maximum", "", _anthropic, as_event=True),
    "deepseek": Dialect(_ASKED, _ASKED, _openai("invalid_request_error", param=None)),
    "vllm": Dialect(
        "This model's maximum context length is {limit} tokens. However, your request has {prompt} input tokens. Please "
        "reduce the length of the input messages. (parameter=input_tokens, value={prompt})",
        "'max_tokens' or 'max_completion_tokens' is too large: {completion}. This model's maximum context length is {limit} "
        "tokens and your request has {prompt} input tokens ({completion} > {limit} - {prompt}). (parameter=max_tokens, "
        "value={completion})",
        _openai(400, "BadRequestError", "input_tokens"),
    ),
    "vllm-counts-no-further": Dialect(  # it stops counting at the limit: the stated count is a bound
        "This model's maximum context length is {limit} tokens. However, your prompt contains at least {over} input tokens, "
        "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
        "(parameter=input_tokens, value={over})",
        "This model's maximum context length is {limit} tokens. However, you requested {completion} output tokens and your "
        "prompt contains at least {prompt} input tokens, for a total of at least {over} tokens. Please reduce the length of "
        "the input prompt or the number of requested output tokens. (parameter=input_tokens, value={prompt})",
        _openai(400, "BadRequestError", "input_tokens"),
    ),
    "sglang": Dialect(
        "The input ({prompt} tokens) is longer than the model's context length ({limit} tokens).",
        "Requested token count exceeds the model's maximum context length of {limit} tokens. You requested a total of "
        "{total} tokens: {prompt} tokens from the input messages and {completion} tokens for the completion. Please reduce "
        "the number of tokens in the input messages or the completion to fit within the limit.",
        _flat,
        as_event=True,
    ),
    "llama.cpp": Dialect(
        "request ({prompt} tokens) exceeds the available context size ({limit} tokens), try increasing it",
        "",
        _llama_cpp,
    ),
    "llama-cpp-python": Dialect(_ASKED, _ASKED, _openai("context_length_exceeded"), silent_stream=True),
    "ollama": Dialect(
        "input length ({prompt} tokens) exceeds the model's maximum context length ({limit} tokens)",
        "",
        _openai(None, param=None),
    ),
    "ollama-own": Dialect(
        "input length ({prompt} tokens) exceeds the model's maximum context length ({limit} tokens)", "", _text
    ),
    "anthropic": Dialect(
        "prompt is too long: {prompt} tokens > {limit} maximum",
        "input length and `max_tokens` exceed context limit: {prompt} + {completion} > {limit}, decrease input length or "
        "`max_tokens` and try again",
        _anthropic,
    ),
    "gemini": Dialect(
        "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({limit}).", "", _gemini
    ),
    "mistral": Dialect(
        "Prompt contains {prompt} tokens and 0 draft tokens, too large for model with {limit} maximum context length",
        "",
        _mistral,
    ),
    "tgi": Dialect(
        "Input validation error: `inputs` must have less than {limit} tokens. Given: {prompt}",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. Given: {prompt} `inputs` tokens and "
        "{completion} `max_new_tokens`",
        _tgi,
        status=422,
    ),
    "xai": Dialect(
        "This model's maximum prompt length is {limit} but the request contains {prompt} tokens.",
        "",
        lambda message, _: {"code": "Client specified an invalid argument", "error": message},
    ),
    "cerebras": Dialect(
        "Please reduce the length of the messages or completion. Current length is {total} while limit is {limit}",
        "Please reduce the length of the messages or completion. Current length is {total} while limit is {limit}",
        _openai("context_length_exceeded"),
    ),
    "groq": Dialect(  # no number at all
        "Please reduce the length of the messages or completion.",
        "Please reduce the length of the messages or completion.",
        _openai("context_length_exceeded"),
    ),
    "bedrock": Dialect("Input is too long for requested model.", "", _bare),
    "github-models": Dialect(
        "Request body too large for gpt-4o model. Max size: {limit} tokens.",
        "",
        lambda message, _: {"error": {"code": "tokens_limit_reached", "message": message, "details": message}},
        status=413,
    ),
    "lm-studio": Dialect(
        "Requested tokens ({prompt}) exceed context window of {limit}",
        "",
        _openai(None, "internal_server_error", None),
        status=500,
    ),
}
