"""Turnfold's fold as a function of (messages, budget in tokens, count), for benchmarks of the same shape."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gateway.context.count.families import family_of
from gateway.context.count.message_cost import counter
from gateway.context.count.tokens import TokenCount, margin
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.memory import Memory

FAMILY = "o200k"
COUNTER = counter(FAMILY)
POLICY = Policy(semantic=bool(os.environ.get("TURNFOLD_SEMANTIC")))
"""``TURNFOLD_SEMANTIC=1`` has questions searched by meaning, which needs the extra ``semantic``."""
RESERVE = 16
TOOLS = 3
MEMORY = Memory(256 * 2**20)
"""Bytes: what a gateway would remember of these conversations, so that a grown one is folded at the cost of its new messages."""


def budget_of(window: int) -> Budget:
    """Return the budget of a chat completion with ``max_tokens: 16`` and no tools for one of OpenAI's models."""
    family = family_of(FAMILY)
    count = TokenCount(0, TOOLS, "exact", family.error, undercount=family.undercount)
    return Budget(window, RESERVE, TOOLS, margin(count, window, POLICY.margin))


def turnfold(messages, window, count):
    """Fold as the gateway does for such a request."""
    return list(fold_conversation(messages, budget_of(window), COUNTER, POLICY, memory=MEMORY).messages)


def without_recall(messages, window, count):
    """The same with recall switched off."""
    return list(
        fold_conversation(messages, budget_of(window), COUNTER, Policy(recall_share=0.0), memory=MEMORY).messages
    )
