"""The own endpoints of self-hosted servers, beside the OpenAI-compatible ones: which of them are passed through.

Each pattern matches ``METHOD /path`` below the server's root. Only what computes an answer or describes the models is listed. What loads or
deletes models, changes settings, or shows the prompts of others stays closed.
"""

import re
from typing import Final

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
