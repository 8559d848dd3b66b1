"""The sums of a replay: what would have been refused, folded, kept and cached, by model and by conversation."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.command.replay.deciding import Decided, Results
from gateway.observe.exchange import Lost, Parts
from gateway.observe.sums import bounds

SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.5, 2.0, 4.0)
"""Upper ends of the classes of fullness: prompt over window."""
SHOWN: Final = 5
"""Conversations that lose most, as the table shows them."""


@dataclass(slots=True)
class RequestSums:
    """The sums of some requests. Tokens, where nothing else is said."""

    requests: int = 0
    refused: int = 0
    """Requests that do not fit as they came: an upstream would have refused them."""
    saved_requests: int = 0
    """Requests among these that would have been sent in a smaller form."""
    folded: int = 0
    lowered: int = 0
    """Requests that only needed a lower output limit."""
    too_large: int = 0
    """Requests that do not fit in their smallest form either."""
    before: int = 0
    after: int = 0
    cached_before: int = 0
    """Tokens that begin like the conversation's previous request, as the client sent them."""
    cached_after: int = 0
    """The same of what would have been sent."""
    estimated: int = 0
    """Requests counted by an estimate, not by the model's own vocabulary."""
    lost: Counter[str] = field(default_factory=Counter)

    def add(self, one: Decided, cached: tuple[int, int]) -> None:
        """Add one request."""
        self.requests += 1
        self.refused += one.too_long
        self.saved_requests += one.too_long and one.action == "fold"
        self.too_large += one.action == "error"
        self.folded += one.action == "fold" and any(stage != "max_tokens" for stage, _ in one.steps)
        self.lowered += one.action == "fold" and all(stage == "max_tokens" for stage, _ in one.steps)
        self.before += one.before
        self.after += one.after
        self.cached_before += cached[0]
        self.cached_after += cached[1]
        self.estimated += not one.exact
        self.lost.update(dict(zip(Lost._fields, one.lost, strict=False)))

    def as_json(self) -> dict[str, Any]:
        """Return the sums as JSON."""
        return {
            "requests": self.requests,
            "refused_as_they_came": self.refused,
            "refusals_avoided": self.saved_requests,
            "folded": self.folded,
            "lowered": self.lowered,
            "too_large": self.too_large,
            "tokens_before": self.before,
            "tokens_after": self.after,
            "saved_share": share(self.before - self.after, self.before),
            "cached_share_before": share(self.cached_before, self.before),
            "cached_share_after": share(self.cached_after, self.after),
            "estimated": self.estimated,
            "lost": {name: self.lost[name] for name in Lost._fields},
        }


@dataclass(slots=True)
class ConversationSums:
    """One conversation: its sums, and its last request as a prompt cache knows it."""

    model: str
    sums: RequestSums = field(default_factory=RequestSums)
    most_lost: int = 0
    """The most lines that one request lost."""
    given: Sequence[tuple[bytes, int]] = ()
    sent: Sequence[tuple[bytes, int]] = ()


class ReplaySums:
    """All sums of one replay, in bounded memory."""

    def __init__(self) -> None:
        self.all = RequestSums()
        self.models: dict[str, RequestSums] = {}
        self.windows: dict[str, int] = {}
        self.formats: Counter[str] = Counter()
        self.stages: Counter[str] = Counter()
        self.parts: Counter[str] = Counter()
        self.fullness: Counter[int] = Counter()
        self.unreadable = 0
        self.failed = 0
        self._conversations: OrderedDict[str, ConversationSums] = OrderedDict()
        self.conversations = 0

    def add(self, results: Results) -> None:
        """Add the results of a batch."""
        self.unreadable += results.unreadable
        self.failed += results.failed
        for one in results.decided:
            self._add(one)

    def _add(self, one: Decided) -> None:
        known = self._conversations.pop(one.conversation, None)
        if known is None:
            known = ConversationSums(one.model)
            self.conversations += 1
            if len(self._conversations) >= bounds.MOST_CONVERSATIONS:
                self._conversations.popitem(last=False)
        self._conversations[one.conversation] = known
        cached = shared_prefix(known.given, one.given), shared_prefix(known.sent, one.sent)
        known.given, known.sent = one.given, one.sent
        name = one.model if one.model in self.models or len(self.models) < bounds.MOST_MODELS else bounds.OTHERS
        for sums in (self.all, known.sums, self.models.setdefault(name, RequestSums())):
            sums.add(one, cached)
        known.most_lost = max(known.most_lost, one.lost[1] if one.lost else 0)
        self.windows[name] = one.window
        self.formats[one.format] += 1
        self.fullness[
            next((index for index, top in enumerate(SHARES) if one.before <= top * one.window), len(SHARES))
        ] += 1
        if one.action == "fold":
            for stage, saved in one.steps:
                self.stages[stage] += saved
            self.parts.update(dict(zip(Parts._fields, one.parts, strict=False)))

    def losers(self) -> list[tuple[str, ConversationSums]]:
        """Return the conversations that lose most, the worst first."""
        losing = [pair for pair in self._conversations.items() if pair[1].most_lost or pair[1].sums.too_large]
        return sorted(losing, key=lambda pair: (-pair[1].sums.too_large, -pair[1].most_lost, pair[0]))[:SHOWN]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            **self.all.as_json(),
            "conversations": self.conversations,
            "unreadable": self.unreadable,
            "failed": self.failed,
            "formats": dict(self.formats),
            "stages": dict(self.stages),
            "parts_of_folded": {name: self.parts[name] for name in Parts._fields},
            "fullness": [
                {"up_to": SHARES[index] if index < len(SHARES) else None, "requests": self.fullness[index]}
                for index in range(len(SHARES) + 1)
            ],
            "models": {
                name: {"window": self.windows[name], **sums.as_json()}
                for name, sums in sorted(self.models.items(), key=lambda pair: -pair[1].before)
            },
            "conversations_that_lose_most": [
                {
                    "conversation": name,
                    "model": one.model,
                    "most_lines_lost": one.most_lost,
                    **one.sums.as_json(),
                }
                for name, one in self.losers()
            ],
        }


def share(part: float, whole: float) -> float:
    """Return a share, rounded; 0 of nothing."""
    return round(part / whole, 4) if whole else 0.0


def shared_prefix(one: Iterable[tuple[bytes, int]], other: Iterable[tuple[bytes, int]]) -> int:
    """Return the tokens with which two prompts begin alike, in whole messages."""
    found = 0
    for (left, _), (right, tokens) in zip(one, other, strict=False):
        if left != right:
            break
        found += tokens
    return found
