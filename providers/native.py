"""The own endpoints of self-hosted servers, beside the OpenAI-compatible ones: which of them are served, and how their bills are read.

Each pattern matches ``METHOD /path`` below the server's root. Only what computes an answer or describes the models is listed. What loads or
deletes models, changes settings, or shows the prompts of others stays closed.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from providers import usage
from providers.record import Usage
from providers.usage import count

OLLAMA: Final = re.compile(r"POST /api/(?:chat|generate|embed|embeddings|show)|GET /api/(?:tags|ps|version)")
"""https://github.com/ollama/ollama/blob/main/docs/api.md"""
LLAMA_CPP: Final = re.compile(
    r"POST /(?:completion|infill|tokenize|detokenize|apply-template|embedding|rerank|reranking)|GET /props"
)
"""https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"""
VLLM: Final = re.compile(r"POST /(?:tokenize|detokenize|pooling|classify|score|rerank|v2/rerank)|GET /version")
"""https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"""
SGLANG: Final = re.compile(r"POST /(?:generate|encode|classify|tokenize|detokenize)|GET /(?:get_model_info|model_info)")
"""https://docs.sglang.ai/basic_usage/native_api.html"""
TGI: Final = re.compile(r"POST /(?:generate|generate_stream|tokenize|chat_tokenize)|GET /info")
"""https://huggingface.github.io/text-generation-inference/"""

WRITING: Final = frozenset({"/api/chat", "/api/generate", "/completion", "/infill", "/generate", "/generate_stream"})
"""The paths among these at which a model writes a text."""
BILLED: Final = WRITING | {"/api/embed"}
"""The paths among these whose answers state a bill."""
LAST_LINES: Final = 5
"""Lines at the end of an answer that may state its bill: a stream's last event is followed by ``[DONE]`` and empty lines."""
MOST_LINES: Final = 2**11
"""Lines at the end of a stream of several answers that may state their bills, half of them empty. Chosen: reading them takes 8 ms."""
FIRST_END: Final = re.compile(rb'"finish_reason":\s*+\{')
"""The end of the first of several answers in a stream of SGLang: from here on, the others state their bills."""


class _Answer(msgspec.Struct):
    """Where own endpoints state their bills. The decoder skips every other member without building it."""

    prompt_eval_count: Any = None
    """Ollama: tokens of the prompt."""
    eval_count: Any = None
    """Ollama: tokens of the answer."""
    tokens_evaluated: Any = None
    """llama.cpp: tokens of the prompt."""
    tokens_predicted: Any = None
    """llama.cpp: tokens of the answer."""
    timings: Any = None
    """llama.cpp: an object with both. Its prompt is without the tokens that it had in its cache, which stand beside."""
    details: Any = None
    """TGI: an object with both at the end of a stream."""
    meta_info: Any = None
    """SGLang: an object with both, in OpenAI's names."""
    index: Any = None
    """SGLang: the number of the answer that an event is of, where a stream has several."""


_answers: Final = msgspec.json.Decoder(list[_Answer] | _Answer).decode


def read_usage(text: bytes, headers: Mapping[str, str]) -> Usage | None:
    """Return the bill in the answer of an own endpoint, at the end of its stream of lines or events, or in the answer's headers; None
    without one. The bills of several answers are added."""
    whole = _bills(text)
    if whole is not None:
        return _sum(whole) if whole else _in_headers(headers)
    found: dict[int | None, Usage] = {}
    for number, line in enumerate(reversed(text.rstrip().rsplit(b"\n", MOST_LINES)[-MOST_LINES:])):
        if number >= LAST_LINES and not found:
            break
        for index, bill in _bills(line.removeprefix(b"data:")) or ():
            found.setdefault(index, bill)
        if None in found:  # one answer
            break
    return _sum(list(found.items()))


def read_usage_of_ollama(body: bytes) -> Usage | None:
    """Return the bill in a body or in a line of a stream, at its OpenAI-compatible endpoints or at its own; None without one."""
    return usage.read_usage(body) or read_usage(body, {})


def _bills(text: bytes) -> list[tuple[int | None, Usage]] | None:
    """Return the bills in JSON, each with the number of its answer; none if an answer states none. Return None for what is no JSON."""
    try:
        found = _answers(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    bills = [(count(answer.index), _bill(answer)) for answer in (found if isinstance(found, list) else [found])]
    stated = [(index, bill) for index, bill in bills if bill is not None]
    return stated if len(stated) == len(bills) else []


def _sum(bills: list[tuple[int | None, Usage]]) -> Usage | None:
    if not bills:
        return None
    return Usage(sum([bill.prompt for _, bill in bills]), sum([bill.completion or 0 for _, bill in bills]))


def _in_headers(headers: Mapping[str, str]) -> Usage | None:
    """Return the bill in the headers of TGI, whose body states none: ``router/src/server.rs``."""
    prompt, completion = headers.get("x-prompt-tokens", ""), headers.get("x-generated-tokens", "")
    if not re.fullmatch(r"[0-9]{1,9}", prompt) or not re.fullmatch(r"[0-9]{1,9}", completion):
        return None
    return Usage(int(prompt), int(completion))


def _bill(answer: _Answer) -> Usage | None:
    timings, details, info = map(_members, (answer.timings, answer.details, answer.meta_info))
    processed = count(timings.get("prompt_n"))
    for prompt, completion in (
        # Ollama leaves out a count of 0, and an embedding has no answer.
        (count(answer.prompt_eval_count), count(answer.eval_count) or 0),
        (count(answer.tokens_evaluated), count(answer.tokens_predicted)),
        (
            None if processed is None else processed + (count(timings.get("cache_n")) or 0),
            count(timings.get("predicted_n")),
        ),
        (count(details.get("input_length")), count(details.get("generated_tokens"))),
        (count(info.get("prompt_tokens")), count(info.get("completion_tokens"))),
    ):
        if prompt is not None and completion is not None:
            return Usage(prompt, completion)
    return None


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
