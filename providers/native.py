"""The own endpoints of self-hosted servers, beside the OpenAI-compatible ones: which of them are passed through, and how their bills are read.

Each pattern matches ``METHOD /path`` below the server's root. Only what computes an answer or describes the models is listed. What loads or
deletes models, changes settings, or shows the prompts of others stays closed.
"""

import re
from typing import Any, Final

import msgspec

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
LAST_LINES: Final = 5
"""Lines at the end of an answer that may state its bill: a stream's last event is followed by ``[DONE]`` and empty lines."""


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
    meta_info: Any = None
    """SGLang: an object with both, in OpenAI's names."""


_answers: Final = msgspec.json.Decoder(list[_Answer] | _Answer).decode


def read_usage(text: bytes) -> Usage | None:
    """Return the bill in the answer of an own endpoint, or at the end of its stream of lines or events; None without one. The bills of
    several answers are added."""
    last_lines = text.rstrip().rsplit(b"\n", LAST_LINES)[-LAST_LINES:]
    for piece in (text, *reversed(last_lines)):
        try:
            found = _answers(piece.removeprefix(b"data:"))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        bills = [_bill(answer) for answer in (found if isinstance(found, list) else [found])]
        if bills and all(bills):
            stated = [bill for bill in bills if bill is not None]
            return Usage(sum([bill.prompt for bill in stated]), sum([bill.completion or 0 for bill in stated]))
    return None


def _bill(answer: _Answer) -> Usage | None:
    info = answer.meta_info if isinstance(answer.meta_info, dict) else {}
    for prompt, completion in (
        (count(answer.prompt_eval_count), count(answer.eval_count)),
        (count(answer.tokens_evaluated), count(answer.tokens_predicted)),
        (count(info.get("prompt_tokens")), count(info.get("completion_tokens"))),
    ):
        if prompt is not None and completion is not None:
            return Usage(prompt, completion)
    return None
