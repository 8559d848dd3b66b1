"""Turnfold as a library: fold, count and read refusals inside another program, without the gateway.

    from turnfold import fold

    folded = fold({"model": "gpt-4o", "messages": messages}, window=8192)
    client.chat.completions.create(**folded.body)

Nothing here opens a connection or keeps anything between calls. Two kinds of files of this package are read once: the vocabulary of a
model's family, and the catalogue of models when no window is given. All functions may be called from several threads.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.context.cut.policy import Policy
    from gateway.context.life.replies import Refusal
    from gateway.context.write.draft import Step
    from gateway.wire.memory import Memory
    from turnfold.library import Folded, count, fold, read_refusal, smaller

__all__ = ["Folded", "Memory", "Policy", "Refusal", "Step", "count", "fold", "read_refusal", "smaller"]

_PLACES = {
    "Policy": "gateway.context.cut.policy",
    "Refusal": "gateway.context.life.replies",
    "Step": "gateway.context.write.draft",
    "Memory": "gateway.wire.memory",
}


def __getattr__(name: str) -> Any:
    """Load a public name at first use, so that ``import turnfold`` alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'turnfold' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_PLACES.get(name, "turnfold.library")), name)
