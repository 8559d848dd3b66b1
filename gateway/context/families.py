"""Families of models: by which vocabulary and which chat template a request becomes tokens.

Text is counted by the family's vocabulary; what stands around it is what the family's published chat template puts there, or, where the
provider publishes none, what it was seen to bill. Each row names its source. Frames are in tokens. Nothing here knows a
model's name: the catalogue says which model belongs to which family.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

Tools = Literal["typescript", "lines", "list", "pretty", "compact", "bare", "none"]
"""How the template writes tool definitions: see `gateway.context.tools`."""


@dataclass(frozen=True, slots=True)
class Family:
    """How the models of one family turn a request into tokens."""

    vocabulary: str
    """A vocabulary of `gateway.context.tokenizers`, or a name it does not know: then text is estimated."""
    error: float
    """How far the truth may lie above the count, as a share of it, in 999 of 1000 requests without media."""
    exact: bool = True
    """The vocabulary is the model's own."""
    ratio: float = 1.0
    """Tokens of the model per token of the vocabulary."""
    request: int = 3
    """Once per request: the begin mark and what opens the answer."""
    message: int = 4
    """Around each message; ``roles`` tells where a role differs."""
    roles: Mapping[str, int] = field(default_factory=dict)
    preamble: int = 0
    """System text that the template adds to every request."""
    default_system: int = 0
    """System text that the template adds where the request has none."""
    call: int = 8
    """Around each tool call."""
    call_names: int = 1
    """How often the template writes the name of a called tool: some write it again with the result."""
    parallel: int | None = None
    """Where several calls of one message are wrapped into one (OpenAI's ``multi_tool_use``): what the wrapping costs."""
    tools: Tools = "lines"
    tools_once: int = 0
    """For having any tools: the instructions around their definitions."""
    tools_each: int = 0
    tools_merge: int = 0
    """What is saved once where the definitions join a system message that is there anyway."""
    tools_forced: int = 0
    """For a ``tool_choice`` that demands a call."""
    unused_tools: bool = True
    """False where ``tool_choice: none`` leaves the definitions out."""
    schema_once: int = 10
    """For having a response schema, beside the schema itself."""
    schema_ratio: float = 1.0
    """0 where a schema only constrains the sampling and is not read by the model."""
    thinking: bool = True
    """Whether reasoning sent back with the history is read (and billed)."""
    normalises: bool = False
    """The vocabulary takes some letters apart before it encodes them."""
    effort: Mapping[str, int] = field(default_factory=dict)
    """What ``thinking`` costs when it is switched on or off by the request: keys ``on`` and ``off``."""


_TEMPLATE: Final = 0.03
"""Error of a known vocabulary in a known template: hosts differ in dates, default prompts and tool texts."""

_OPENAI: Final = Family(
    # 3 for the answer's opening, 3 and the role around each message:
    # https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken
    # Tools: https://github.com/hmarr/openai-chat-tokens (9, the name with call and result).
    # Parallel calls and schemas: reconstructed from bills, exact on all 8 kinds at hand.
    vocabulary="o200k_base",
    error=0.01,
    call=5,
    call_names=2,
    parallel=11,
    tools="typescript",
    tools_once=9,
    tools_merge=4,
    schema_once=1,
)

_LLAMA3: Final = Family(
    # <|begin_of_text|>, header and <|eot_id|> around each, the assistant's header at the end:
    # https://github.com/meta-llama/llama-models/blob/main/models/llama3_1/prompt_format.md
    vocabulary="llama3",
    error=_TEMPLATE,
    request=5,
    message=5,
    call=9,
    tools="pretty",
    tools_once=70,
    tools_each=2,
    schema_ratio=0.0,
    schema_once=0,
)

_QWEN: Final = Family(
    # <|im_start|>role\n ... <|im_end|>\n: https://huggingface.co/Qwen/Qwen3-8B/blob/main/tokenizer_config.json
    vocabulary="qwen3",
    error=_TEMPLATE,
    request=3,
    message=5,
    call=12,
    tools="lines",
    tools_once=110,
    tools_each=1,
    schema_ratio=0.0,
    schema_once=0,
    thinking=False,
    effort={"off": 4},
)

_CLAUDE: Final = Family(
    # Anthropic publishes no vocabulary for Claude 3 and later; frames and tool prompts as in
    # https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/overview#pricing and as billed.
    vocabulary="cl100k_base",
    error=0.15,
    exact=False,
    ratio=1.06,
    request=3,
    message=4,
    call=40,
    tools="compact",
    tools_once=500,
    schema_once=180,
    effort={"on": 28},
)

_KNOWN: Final[dict[str, Family]] = {
    "o200k": _OPENAI,
    "cl100k": replace(_OPENAI, vocabulary="cl100k_base"),
    # Reasoning models bill one token less a request.
    "o200k-reasoning": replace(_OPENAI, request=2),
    "gpt-5": replace(_OPENAI, request=2, tools_once=90, call=11),
    # System message with model identity, date, effort and channels: https://cookbook.openai.com/articles/openai-harmony
    "gpt-oss": replace(
        _OPENAI,
        error=_TEMPLATE,
        request=2,
        preamble=61,
        tools_once=40,
        tools_merge=4,
        call=14,
        parallel=None,
        schema_once=60,
    ),
    "llama2": Family(vocabulary="llama2", error=_TEMPLATE, request=1, message=5, roles={"assistant": 3}),
    # The Llama 3.0 template has no date header.
    "llama3": replace(_LLAMA3, request=5),
    "llama3.1": replace(_LLAMA3, request=5, preamble=25),
    "llama4": replace(_LLAMA3, tools_once=83, tools="lines"),
    "llama4-groq": replace(_LLAMA3, tools_once=653, tools="compact", tools_forced=8, unused_tools=False),
    "qwen2": replace(_QWEN, default_system=20, effort={}),
    "qwen3": _QWEN,
    "qwen3.5": replace(_QWEN, request=5, tools_once=240, tools="compact", effort={}),
    "qwen3-coder": replace(_QWEN, tools_once=240, tools="compact", effort={}),
    "mistral": Family(
        # [INST] [/INST], [SYSTEM_PROMPT], [AVAILABLE_TOOLS], </s>: https://github.com/mistralai/mistral-common
        vocabulary="mistral_v3",
        error=_TEMPLATE,
        request=1,
        message=2,
        roles={"assistant": 1, "tool": 3},
        call=6,
        tools="lines",
        tools_once=2,
        schema_ratio=0.0,
        schema_once=0,
    ),
    "deepseek": Family(
        # https://huggingface.co/deepseek-ai/DeepSeek-V3.1/blob/main/tokenizer_config.json
        vocabulary="deepseek_v3",
        error=_TEMPLATE,
        request=3,
        message=1,
        roles={"system": 0},
        call=10,
        tools="lines",
        tools_once=190,
        schema_ratio=0.0,
        schema_once=0,
    ),
    "deepseek-r1": Family(
        # The R1 template writes no tools and drops everything before </think>.
        vocabulary="deepseek_v3",
        error=_TEMPLATE,
        request=2,
        message=1,
        roles={"system": 0},
        tools="none",
        thinking=False,
        schema_ratio=0.0,
        schema_once=0,
    ),
    "glm4": Family(
        # [gMASK]<sop><|user|>\n ... <|assistant|>: https://huggingface.co/zai-org/GLM-4.5/blob/main/chat_template.jinja
        vocabulary="glm4",
        error=_TEMPLATE,
        request=4,
        message=1,
        call=14,
        tools="lines",
        tools_once=92,
        thinking=False,
        schema_ratio=0.0,
        schema_once=0,
    ),
    "kimi": Family(
        # <|im_user|>user<|im_middle|> ... <|im_end|>: https://huggingface.co/moonshotai/Kimi-K2-Instruct
        vocabulary="kimi_k2",
        error=_TEMPLATE,
        request=3,
        message=4,
        call=10,
        tools="list",
    ),
    # Google publishes no template; text counts as in Gemma, with next to nothing around it.
    "gemini": Family(
        vocabulary="gemma4",
        error=0.04,
        request=0,
        message=1,
        roles={"user": 0, "system": 0},
        call=6,
        tools="bare",
        schema_once=0,
    ),
    # <start_of_turn>user\n ... <end_of_turn>\n
    "gemma": Family(vocabulary="gemma4", error=_TEMPLATE, request=4, message=5, tools="pretty"),
    "phi": Family(vocabulary="phi4", error=_TEMPLATE, request=2, message=3),
    "mistral-v1": Family(vocabulary="mistral_v1", error=_TEMPLATE, request=1, message=8, roles={"assistant": 1}),
    "claude": _CLAUDE,
    "claude-2": _CLAUDE,
    "claude-3": _CLAUDE,
    "claude-4.6": _CLAUDE,
    "claude-5": replace(_CLAUDE, ratio=1.38),
    "nova": Family(
        vocabulary="o200k_base",
        error=0.2,
        exact=False,
        ratio=1.1,
        request=0,
        message=1,
        tools="lines",
        tools_once=334,
        call=20,
    ),
    "unknown": Family(vocabulary="o200k_base", error=0.3, exact=False, ratio=1.1, tools="lines", tools_once=100),
}


_KNOWN["gpt-oss-groq"]=replace(_KNOWN["gpt-oss"],preamble=_KNOWN["gpt-oss"].preamble+4)
_KNOWN["gpt-5-responses"]=replace(_KNOWN["gpt-5"],tools_once=10)
_KNOWN["mistral-4"]=replace(_KNOWN["mistral"],preamble=12)
_KNOWN["deepseek-reasoner"]=replace(_KNOWN["deepseek"],request=4)
_KNOWN["deepseek-r1-bedrock"]=replace(_KNOWN["deepseek-r1"],request=4)
_KNOWN["deepseek-r1-llama"]=replace(_KNOWN["deepseek-r1"],vocabulary="llama3")
_KNOWN["deepseek-r1-qwen"]=replace(_KNOWN["deepseek-r1"],vocabulary="qwen3")
_KNOWN["kimi-k3"]=replace(_KNOWN["kimi"],vocabulary="kimi_k3")
_KNOWN["glm5"]=replace(_KNOWN["glm4"],request=11)
_KNOWN["nova-2"]=replace(_KNOWN["nova"],tools_once=840)
_KNOWN["command"]=replace(_KNOWN["unknown"])
_KNOWN["olmo"]=replace(_KNOWN["unknown"],vocabulary="cl100k_base")
FAMILIES: Final[Mapping[str, Family]] = _KNOWN


def family_of(name: str) -> Family:
    """Find a family by name; a name nobody knows counts as the unknown family."""
    return FAMILIES.get(name, FAMILIES["unknown"])
