"""What happened between a client, the gateway and the stand-in, and what must be true of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson

from gateway.standin import Seen, StandIn, added
from gateway.standin.validity import PINNED
from tests.running import Answered, Gateway


@dataclass(frozen=True, slots=True)
class Story:
    """A gateway before a stand-in."""

    gateway: Gateway
    standin: StandIn

    @property
    def chats(self) -> list[Seen]:
        return self.standin.chats

    def shrinks_each_time(self, *, at_most: int) -> None:
        """Each attempt is strictly smaller than the one before, and there are not too many."""
        sizes = [len(seen.body) for seen in self.chats]
        assert 1 < len(sizes) <= at_most
        assert all(later < earlier for earlier, later in pairwise(sizes)), sizes

    def last_is_valid(self, body: Mapping[str, Any]) -> None:
        """What was sent last keeps every promise about the client's messages."""
        assert broken(body["messages"], self.chats[-1].messages) == []
        assert self.chats[-1].prompt_tokens <= self.chats[-1].window


def broken(client: Sequence[Any], sent: Sequence[Any], *, last_user_whole: bool = True) -> list[str]:
    """The promises that the sent messages break, in words; [] when none.

    No rule of the strictest provider is broken more often than the client broke it. Pinned messages are all there, in
    order, each starting with the client's own text. The last user message is intact, and the last message has its role.
    """
    found = [f"{violation.rule}: {violation}" for violation in added(client, sent)]
    pinned = [message for message in client if message["role"] in PINNED]
    kept = [message for message in sent if message["role"] in PINNED]
    rest = iter(kept)
    if not all(any(_continues(message, late) for late in rest) for message in pinned) or len(kept) > len(pinned) + 1:
        found.append("pinned: a system message is missing, changed or out of order")
    asked = [message for message in client if message["role"] == "user"]
    if asked and last_user_whole and not any(_continues(asked[-1], message, before=True) for message in sent):
        found.append("last_user: the last user message is missing or changed")
    if client[-1]["role"] != sent[-1]["role"]:
        found.append("end: the request ends on another role")
    return found


def _continues(message: Mapping[str, Any], late: Mapping[str, Any], *, before: bool = False) -> bool:
    """Whether a message still says what it said, with at most something added at the end (or also ``before`` it)."""
    if message["role"] != late["role"]:
        return False
    said, says = message.get("content"), late.get("content")
    if isinstance(said, str) and isinstance(says, str):
        return says.startswith(said) or (before and said in says)
    if isinstance(said, list) and isinstance(says, list):
        starts = range(len(says) - len(said) + 1) if before else range(1)
        return any(says[start : start + len(said)] == said for start in starts)
    return said == says


def events_of(answer: Answered) -> list[Any]:
    """The events of a stream: parsed, the closing mark as text."""
    lines = [line.removeprefix("data: ") for line in answer.body.decode().split("\n\n") if line]
    return [line if line == "[DONE]" else orjson.loads(line) for line in lines]


def final_text(answer: Answered, stream: bool) -> str:
    """What the model said, whichever way it came."""
    if not stream:
        return answer.json["choices"][0]["message"]["content"]
    parts = events_of(answer)
    assert parts[-1] == "[DONE]"
    return "".join(choice["delta"].get("content") or "" for part in parts[:-1] for choice in part["choices"])


def common(before: bytes, after: bytes) -> int:
    """How many bytes two bodies share at the front: what a provider's prompt cache can use again."""
    differing = (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    return next(differing, min(len(before), len(after)))
