"""What answers taught about single conversations: their bills, their last requests, and the sizes to which they are folded.

A conversation is found by the chained hashes of its messages (`gateway.context.life.identity.chain`): its last request ended after one of
its newest messages.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from gateway.context.count.tokens import Anchor
from gateway.context.life.bills import LastRequest
from gateway.context.life.lessons import ConversationBilled, ConversationSeen
from gateway.state import facts
from gateway.state.facts import Fact, Owner, SmallerSize
from gateway.state.forgetting import Forgotten
from gateway.state.newest import keep_newest
from gateway.state.store.values import pack
from gateway.state.stored_facts import StoredFacts

USAGE_TTL_S: Final = 6 * 3600.0
"""The bill of a conversation. Chosen: most conversations end within hours."""
CONVERSATIONS: Final = 4096
"""Conversations whose bills are kept in this process. Chosen to bound memory."""
NEWEST_LOOKED_UP: Final = 24
"""Newest messages of a conversation after which a bill or a size is looked up: its last request ended after one of them."""
STORED_AGAIN_AFTER: Final = NEWEST_LOOKED_UP // 2
"""Messages after which a smaller fold is stored again for the grown conversation. Fewer than `NEWEST_LOOKED_UP`, or it would be lost."""


class Conversations:
    """The facts about conversations, in this process and in the store."""

    def __init__(self, stored: StoredFacts, clock: Callable[[], float]) -> None:
        self._stored = stored
        self._clock = clock
        self._forgotten = Forgotten()
        self._anchors: OrderedDict[str, Anchor] = OrderedDict()
        self._smaller: OrderedDict[str, SmallerSize] = OrderedDict()
        self._last_requests: OrderedDict[str, LastRequest] = OrderedDict()

    async def anchor(self, chain: Sequence[str]) -> Anchor | None:
        """Return the newest bill that covers a prefix of a conversation, from this or another process. ``chain`` names its prefixes."""
        recent = list(enumerate(chain, 1))[-NEWEST_LOOKED_UP:]
        for covered, key in reversed(recent):
            known = self._anchors.get(key)
            if known is not None:
                self._anchors.move_to_end(key)
                return Anchor(covered, known.billed, known.fixed)
        found = await self._stored.get_many("usage", [key for _, key in recent])
        for covered, key in reversed(recent):
            value = self._stored.decoded("usage", found.get(key), facts.read_usage)
            if value is not None:
                anchor = Anchor(covered, value["billed"], value["fixed"])
                keep_newest(self._anchors, key, anchor, CONVERSATIONS)
                return anchor
        return None

    def set_anchor(self, lesson: ConversationBilled) -> None:
        """Keep the bill of a conversation."""
        keep_newest(self._anchors, lesson.conversation, lesson.anchor, CONVERSATIONS)
        value = pack(facts.VERSION, billed=lesson.anchor.billed, fixed=lesson.anchor.fixed)
        self._stored.put("usage", lesson.conversation, value, USAGE_TTL_S, lesson.scope)

    def last_request(self, chain: Sequence[str]) -> LastRequest | None:
        """Return the facts about a conversation's last request, found by its prefix."""
        for key in reversed(chain[-NEWEST_LOOKED_UP:]):
            known = self._last_requests.get(key)
            if known is not None:
                return known
        return None

    def set_last_request(self, lesson: ConversationSeen) -> None:
        """Keep the facts about a conversation's last request."""
        keep_newest(self._last_requests, lesson.conversation, lesson.last_request, CONVERSATIONS)

    async def smaller_size(self, owner: Owner, chain: Sequence[str], proven: int) -> int | None:
        """Return the size to which a conversation is folded; None without one. ``proven`` is the largest billed prompt: a size below it
        does not hold."""
        now = self._clock()
        recent = list(chain)[-NEWEST_LOOKED_UP:]
        if not any(key in self._smaller for key in recent):
            await self._read_smaller(recent)
        for newer_messages, key in enumerate(reversed(recent)):
            one = self._smaller.get(key)
            if one is None or not facts.is_current(one.until, now) or one.owner != owner:
                continue
            if one.tokens >= proven:
                if newer_messages >= STORED_AGAIN_AFTER:
                    self.fold_smaller(one.learner, recent[-1], one)
                return one.tokens
        return None

    def fold_smaller(self, scope: str, conversation: str, smaller: SmallerSize) -> None:
        """Keep the size to which a conversation is folded, until it expires."""
        keep_newest(self._smaller, conversation, smaller, CONVERSATIONS)
        self._stored.put("guess", conversation, facts.pack_smaller(smaller), smaller.until - self._clock(), scope)

    def end_smaller(self, owner: Owner, billed: int) -> None:
        """End the smaller folds of a learner's conversations that a bill disproves."""
        for key in [key for key, one in self._smaller.items() if one.owner == owner and one.tokens < billed]:
            ended = replace(self._smaller.pop(key), until=self._clock())
            self._stored.put("guess", key, facts.pack_smaller(ended), 1.0)

    def facts(self) -> list[Fact]:
        """Return the sizes to which conversations are folded, for operators."""
        now = self._clock()
        return [facts.smaller_fact(one) for one in self._smaller.values() if facts.is_current(one.until, now)]

    async def load_all(self, most: int) -> None:
        """Fetch the sizes of at most ``most`` conversations in the store, for operators."""
        await self._read_smaller(await self._stored.names("guess", most))

    def forget(self, forgotten: Forgotten) -> None:
        """Drop everything in memory; facts stored after the deletion are fetched again when needed."""
        self._forgotten = forgotten
        for memory in (self._anchors, self._smaller, self._last_requests):
            memory.clear()

    async def _read_smaller(self, conversations: Sequence[str]) -> None:
        """Take the sizes to which conversations are folded from the store."""
        for key, stored in (await self._stored.get_many("guess", conversations)).items():
            read = self._stored.decoded("guess", stored, facts.read_smaller)
            if read is not None and not self._forgotten.covers(facts.model_of(read.owner), read.since):
                keep_newest(self._smaller, key, read, CONVERSATIONS)
