"""Families of models: the vocabulary and the chat template that turn a request into tokens.

Text is counted by the family's vocabulary. The text around it comes from the family's published chat template or, if
the provider publishes none, from observed bills. Each row names its source. Frames are in tokens. This module does not
know model names: the catalogue maps models to families.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

Tools = Literal["typescript", "lines", "list", "pretty", "compact", "functions", "bare", "none"]
"""How the template writes tool definitions: see `gateway.context.count.tools`."""


class Undercount(NamedTuple):
    """The largest relative undercount of each part of a chat completion, as billed."""

    messages: float
    fixed: float
    """Of tools, schema and preambles."""


class Family(msgspec.Struct, frozen=True):
    """How the models of one family turn a request into tokens."""

    vocabulary: str
    """The name of a vocabulary in `gateway.context.count.vocabularies`; under any other name, tokens are estimated."""
    error: float
    """The largest relative error, in 999 of 1000 long requests without media."""
    undercount: Undercount | None = None
    """Where bills tell the error of each part; None: ``error`` for both."""
    exact: bool = True
    """Whether the vocabulary is the model's own."""
    normalises: bool = False
    """Whether the vocabulary splits some letters before it encodes them."""
    ratio: float = 1.0
    """Tokens of the model per token of the vocabulary."""

    request: int = 3
    """Tokens for each request: the begin mark and the start of the answer."""
    message: int = 4
    """Tokens around each message; ``roles`` has the exceptions by role."""
    roles: Mapping[str, int] = {}
    preamble: int = 0
    """Tokens of the system text that the template adds to every request."""
    default_system: int = 0
    """Tokens of the text that the template adds when the request has no system message."""
    effort: Mapping[str, int] = {}
    """Tokens added when the request switches thinking ``on`` or ``off``."""

    task_budget: int = 0
    """Tokens added when the request sets a task budget (Anthropic's ``output_config.task_budget``)."""

    call: int = 8
    """Tokens around each tool call and its result, besides the frame of a message."""
    call_names: int = 1
    """How many times the name of a called tool is written: some templates repeat it with the result."""
    parallel: int | None = None
    """Tokens around several calls of one message, which are wrapped into one (OpenAI's ``multi_tool_use``)."""
    calls_replace_text: bool = False
    """Whether a message that has ``tool_calls``, even null, loses its text."""
    reads_thinking: bool = True
    """Whether the model reads reasoning that is sent back with the history."""
    drops_thinking_tags: bool = False
    """Whether the template drops the text of an assistant up to ``</think>``."""

    tools: Tools = "lines"
    tools_once: int = 0
    """Tokens for the instructions around tool definitions, if there are any tools."""
    tools_merge: int = 0
    """Tokens saved when the definitions join an existing system message."""
    tools_forced: int = 0
    """Tokens for a ``tool_choice`` that demands a call."""
    forced_tools: Tools | None = None
    """How definitions are written when a call is demanded, if different."""
    writes_unused_tools: bool = True
    """Whether the definitions are written if ``tool_choice`` is ``none``."""
    schema_once: int | None = None
    """Tokens around a response schema. None if the model does not read the schema: it only limits the sampling."""


_TEMPLATE_ERROR: Final = 0.03
"""Relative error of a known vocabulary in a known template: hosts differ in dates, default prompts and tool texts."""

_OPENAI: Final = Family(
    # 3 to open the answer, 3 and the role around each message:
    # https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken
    # Tools: https://github.com/hmarr/openai-chat-tokens. Calls, parallel calls and schemas: reconstructed from bills.
    # Undercounts: of 320 bills of OpenAI, those without tools are counted exactly, but for o1-mini (8 tokens a request). With
    # tools, at most 8 tokens are missing, at most 4 % of definitions of 100 tokens and more.
    vocabulary="o200k_base",
    error=0.01,
    undercount=Undercount(messages=0.005, fixed=0.05),
    call=5,
    call_names=2,
    parallel=11,
    tools="typescript",
    tools_once=9,
    tools_merge=4,
    schema_once=1,
)

# "You are ChatGPT..., Knowledge cutoff, Current date, Reasoning, Valid channels" before every request; reasoning of earlier
# turns is dropped: https://cookbook.openai.com/articles/openai-harmony
_GPT_OSS: Final = replace(
    _OPENAI,
    error=_TEMPLATE_ERROR,
    undercount=None,
    request=2,
    preamble=61,
    tools_once=28,
    call=8,
    parallel=None,
    reads_thinking=False,
    schema_once=58,
)

_LLAMA3: Final = Family(
    # <|begin_of_text|>, a header and <|eot_id|> around each message, the assistant's header at the end:
    # https://github.com/meta-llama/llama-models/blob/main/models/llama3_1/prompt_format.md
    vocabulary="llama3",
    error=_TEMPLATE_ERROR,
    request=5,
    message=5,
    call=9,
    tools="pretty",
    tools_once=56,
)

_QWEN: Final = Family(
    # <|im_start|>role\n ... <|im_end|>\n; reasoning of earlier turns is dropped, an empty one means "do not think":
    # https://huggingface.co/Qwen/Qwen3-8B/blob/main/tokenizer_config.json
    vocabulary="qwen3",
    error=_TEMPLATE_ERROR,
    normalises=True,
    request=3,
    message=5,
    call=12,
    tools_once=91,
    tools_merge=5,
    reads_thinking=False,
    drops_thinking_tags=True,
    effort={"off": 4},
)

_DEEPSEEK: Final = Family(
    # https://huggingface.co/deepseek-ai/DeepSeek-V3.1/blob/main/tokenizer_config.json
    vocabulary="deepseek_v3",
    error=_TEMPLATE_ERROR,
    request=2,
    message=1,
    roles={"system": 0},
    call=10,
    tools_once=198,
)

# The R1 template writes no tools, drops everything before </think>, and writes a message's calls or its text:
# https://huggingface.co/deepseek-ai/DeepSeek-R1/blob/main/tokenizer_config.json
_R1: Final = replace(_DEEPSEEK, tools="none", reads_thinking=False, drops_thinking_tags=True, calls_replace_text=True)

_MISTRAL: Final = Family(
    # [INST] [/INST], [SYSTEM_PROMPT], [AVAILABLE_TOOLS], </s>: https://github.com/mistralai/mistral-common
    vocabulary="mistral_v3",
    error=_TEMPLATE_ERROR,
    request=1,
    message=2,
    roles={"assistant": 1, "tool": 3},
    call=3,
    tools_once=3,
)

_GLM: Final = Family(
    # [gMASK]<sop><|user|> ... <|assistant|><think>: https://huggingface.co/zai-org/GLM-4.5/blob/main/chat_template.jinja
    vocabulary="glm4",
    error=_TEMPLATE_ERROR,
    request=4,
    message=1,
    call=30,
    tools_once=86,
    reads_thinking=False,
    drops_thinking_tags=True,
)

_CLAUDE: Final = Family(
    # Anthropic publishes no vocabulary for Claude 3 and later. Frames: "\n\nHuman:", "\n\nAssistant:".
    # Tokens for tools:
    # https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/overview#pricing
    vocabulary="claude",
    error=0.15,
    exact=False,
    normalises=True,
    request=3,
    message=4,
    roles={"system": 0, "developer": 0, "assistant": 3},
    call=52,
    tools="functions",
    tools_once=506,
    tools_forced=97,
    schema_once=152,
    reads_thinking=False,
    effort={"on": 28},
    task_budget=36,  # as billed
)

_UNKNOWN: Final = Family(vocabulary="o200k_base", error=0.3, exact=False, ratio=1.1, tools_once=100, schema_once=10)

FAMILIES: Final[Mapping[str, Family]] = {
    "o200k": _OPENAI,
    "cl100k": replace(_OPENAI, vocabulary="cl100k_base"),
    # Reasoning models bill one token less per request; the fifth generation bills some 80 for channels if there are
    # tools.
    "o200k-reasoning": replace(_OPENAI, request=2),
    "gpt-5": replace(_OPENAI, request=2, tools_once=90, call=11),
    "gpt-5-responses": replace(_OPENAI, request=2, tools_once=10, call=11),
    "gpt-oss": _GPT_OSS,
    "gpt-oss-groq": replace(_GPT_OSS, preamble=65),
    "llama2": Family(vocabulary="llama2", error=_TEMPLATE_ERROR, request=1, message=5, roles={"assistant": 3}),
    # "Cutting Knowledge Date" and "Today Date" come before every request since 3.1.
    "llama3": _LLAMA3,
    "llama3.1": replace(_LLAMA3, preamble=20, default_system=5),
    "llama4": replace(_LLAMA3, tools_once=83, tools="lines"),
    "llama4-groq": replace(_LLAMA3, tools_once=653, tools="compact", tools_forced=8, writes_unused_tools=False, call=28),
    # "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    "qwen2": replace(_QWEN, default_system=20, reads_thinking=True, drops_thinking_tags=False, effort={}),
    "qwen3": _QWEN,
    # These expect calls as XML, with longer instructions.
    "qwen3-coder": replace(_QWEN, tools_once=239, tools="compact", effort={}),
    "qwen3.5": replace(_QWEN, request=5, tools_once=222, tools="compact", effort={}),
    "mistral": _MISTRAL,
    # [MODEL_SETTINGS] with the reasoning effort come before every request.
    "mistral-4": replace(_MISTRAL, preamble=12),
    "mistral-v1": Family(vocabulary="mistral_v1", error=_TEMPLATE_ERROR, request=1, message=8, roles={"assistant": 1}),
    "deepseek": _DEEPSEEK,
    "deepseek-reasoner": replace(_DEEPSEEK, request=4, call=36, tools_once=209),
    "deepseek-r1": _R1,
    "deepseek-r1-bedrock": replace(_R1, request=4),
    "deepseek-r1-llama": replace(_R1, vocabulary="llama3"),
    "deepseek-r1-qwen": replace(_R1, vocabulary="qwen3", normalises=True),
    "glm4": _GLM,
    # "Reasoning Effort: Max" in its own system message.
    "glm5": replace(_GLM, request=11),
    # <|im_user|>user<|im_middle|> ... <|im_end|>: https://huggingface.co/moonshotai/Kimi-K2-Instruct
    "kimi": Family(vocabulary="kimi_k2", error=_TEMPLATE_ERROR, call=10, tools="list"),
    "kimi-k3": Family(vocabulary="kimi_k3", error=_TEMPLATE_ERROR, call=10, tools="list"),
    # Google publishes no template: text counts as by Gemma's vocabulary, with almost nothing around it. The cost of
    # definitions depends on the endpoint; when a call is demanded they count as plain JSON.
    "gemini": Family(
        vocabulary="gemma4", error=0.04, request=0, message=1, roles={"user": 0, "system": 0}, call=20, tools="bare",
        tools_once=18, forced_tools="lines",
    ),
    "gemini-openrouter": Family(
        vocabulary="gemma4", error=0.04, request=0, message=1, roles={"user": 0, "system": 0}, call=38, tools="bare",
        forced_tools="lines", tools_forced=-19,
    ),
    # <start_of_turn>user\n ... <end_of_turn>\n
    "gemma": Family(vocabulary="gemma4", error=_TEMPLATE_ERROR, request=4, message=5, tools="pretty"),
    "phi": Family(vocabulary="phi4", error=_TEMPLATE_ERROR, request=2, message=3),
    "olmo": Family(vocabulary="cl100k_base", error=_TEMPLATE_ERROR, request=4, message=4),
    "claude-2": replace(_CLAUDE, request=5),
    "claude-3": replace(_CLAUDE, tools_once=285, tools_forced=10),
    "claude-4": replace(_CLAUDE, tools_once=324, tools_forced=10),
    "claude-4.5": _CLAUDE,
    "claude-4.6": replace(_CLAUDE, reads_thinking=True),
    "claude-5": replace(_CLAUDE, vocabulary="claude-5", reads_thinking=True, tools_once=400),
    "nova": replace(_UNKNOWN, error=0.3, ratio=1.0, request=0, message=0, roles={"assistant": 4}, tools_once=334, call=20),
    "nova-2": replace(_UNKNOWN, error=0.3, ratio=1.0, request=0, message=0, roles={"assistant": 4}, tools_once=836, call=20),
    "command": replace(_UNKNOWN, error=0.2),
    "unknown": _UNKNOWN,
}  # fmt: skip


_BY_VOCABULARY: Final[Mapping[str, Family]] = {
    row.vocabulary: row for row in reversed(list(FAMILIES.values())) if row.exact and row.ratio == 1.0
}
"""The first family of each vocabulary, for requests that name the vocabulary."""


BY_VOCABULARY_SIZE: Final[Mapping[int, str]] = {
    # From each model's published config.json. Sizes that vocabularies of different models share are left out: 32,000 (Llama 2,
    # Mistral 7B), 256,000 (Gemma 2, Command R).
    128_256: "llama3.1",
    202_048: "llama4",
    151_936: "qwen3",
    152_064: "qwen3",
    129_280: "deepseek",
    131_072: "mistral",
    262_144: "gemma",
    262_208: "gemma",
    201_088: "gpt-oss",
    151_552: "glm4",
    163_840: "kimi",
}
"""The family of a vocabulary with so many tokens, as llama.cpp states them."""


def family_of(name: str) -> Family:
    """Return a family by its name or its vocabulary's name; an unknown name returns the unknown family."""
    return FAMILIES.get(name) or _BY_VOCABULARY.get(name) or _UNKNOWN


def names() -> list[str]:
    """Return every name that `family_of` knows."""
    return sorted({*FAMILIES, *_BY_VOCABULARY})
