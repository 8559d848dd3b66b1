"""Fill the rest of the tokens for quotes, after the lines that are relevant to the question.

Lines are given by their positions in the pool.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from gateway.context import frames
from gateway.context.choose import digest, recall
from gateway.context.choose.rows import ROW_OPENING_TOKENS
from gateway.context.count.counter import CountText
from gateway.context.read.line import CALL, RECORD, SENTENCE
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weigh.passages import Passage

LEAST_FILL_TOKENS: Final = 16
"""Tokens. A smaller rest seldom holds a line. The quotes have their frame already, so it may be less than `quotes.LEAST_SEARCH_TOKENS`."""

_STRUCTURED: Final = frozenset({RECORD, CALL})


class QuotesToFill(msgspec.Struct, frozen=True):
    """The limits of the quotes for one question. Each ``with_`` function takes the quoted lines, adds some, and returns all in their order."""

    pool: LinePool
    most_tokens: int
    count: CountText
    hidden: Collection[int]
    """Positions of the lines that may not be quoted."""

    def with_facts(self, quoted: list[int], known: frozenset[str], fact_tokens: float) -> list[int]:
        """Add the calls and records with the most new facts: facts that are not ``known``. They take at most ``fact_tokens``."""
        left = int(min(self._left(quoted), fact_tokens))
        if left < LEAST_FILL_TOKENS or not self.pool.has_calls:
            return quoted
        in_quotes, envelope = set(quoted), self.pool.envelope
        candidates = {
            position
            for position, line in enumerate(self.pool.lines)
            if line.kind in _STRUCTURED
            and position not in envelope
            and position not in self.hidden
            and position not in in_quotes
        }
        if not candidates:
            return quoted
        return sorted({*quoted, *digest.choose_for_quotes(self.pool, left, self.count, candidates, known=known)})

    def with_less_relevant(
        self, quoted: list[int], scores: Mapping[Passage, float], *, only_talk: bool = False
    ) -> list[int]:
        """Add what is less relevant to the question, the most relevant first; ``scores`` are the relevance of passages.

        With ``only_talk``, only what people say is added. If the folded part has many calls, it is a small part of all, and records
        have more words of the question.
        """
        no_talk = [at for at, line in enumerate(self.pool.lines) if line.kind is not SENTENCE] if only_talk else ()
        return self._with_passages(quoted, scores, no_talk)

    def with_rest_of_messages(self, quoted: list[int], scores: Mapping[Passage, float]) -> list[int]:
        """Add the other passages of the messages that have relevant passages, those of the most relevant message first. A list in a
        page often has the words of the question only above it."""
        is_quoted = set(quoted)
        best: dict[int, float] = {}
        for passage, score in scores.items():
            if not is_quoted.isdisjoint(passage):
                message = self.pool.message_of[passage.start]
                best[message] = max(score, best.get(message, 0.0))
        by_message = {passage: score for message, score in best.items() for passage in self.pool.passages(message)}
        return self._with_passages(quoted, by_message)

    def _with_passages(
        self, quoted: list[int], scores: Mapping[Passage, float], hidden: Collection[int] = ()
    ) -> list[int]:
        """Add passages, those with the highest scores first, without the lines that are quoted or ``hidden``."""
        left = self._left(quoted)
        if left < LEAST_FILL_TOKENS:
            return quoted
        skipped = {*self.hidden, *quoted, *hidden}
        return sorted({*quoted, *recall.choose(self.pool, scores, left, self.count, skipped, reach=recall.Reach.ALL)})

    def with_wishes(self, quoted: list[int], in_note: Collection[int]) -> list[int]:
        """Add the standing wishes that are neither in the note nor in the quotes.

        Sentences that probably revoke a shown wish come first. A wish does not come without such a sentence.
        """
        left = float(self._left(quoted))
        shown = {*quoted, *in_note}
        added: list[int] = []
        revocations, kept = self.pool.wishes.revocations, {*shown, *self.hidden}
        for position in dict.fromkeys([*self._revocations(shown), *self.pool.wishes.ranked]):
            cost = self.pool.lines[position].size + 1 + ROW_OPENING_TOKENS
            later = revocations.get(position)
            if position not in kept and cost <= left and (later is None or later in kept):
                left -= cost
                added.append(position)
                kept.add(position)
        # The estimate may be too low; the least certain wishes are removed first.
        while added and self._size(sorted({*quoted, *added})) > self.most_tokens:
            del added[-max(len(added) // 8, 1) :]
        return sorted({*quoted, *added}) if added else quoted

    def with_newest(self, quoted: list[int]) -> list[int]:
        """Add lines of any kind, those of the newest message first, each message from its beginning on."""
        for _ in range(3):  # the estimate is corrected by the count
            left = float(self._left(quoted))
            if left < LEAST_FILL_TOKENS:
                break
            added: list[int] = []
            for position, cost in self._newest({*quoted, *self.hidden}):
                if left < cost:
                    break
                left -= cost
                added.append(position)
            more = sorted([*quoted, *added])
            # The estimate may be too low; the lines added last are removed first.
            while added and (size := self._size(more)) > self.most_tokens:
                del added[min(int(len(added) * self.most_tokens / size), len(added) - 1) :]
                more = sorted([*quoted, *added])
            if not added:
                break
            quoted = more
        return quoted

    def _revocations(self, shown: Collection[int]) -> Iterator[int]:
        """Yield the sentences that may revoke a wish that is shown."""
        wishes = self.pool.wishes
        for position in wishes.ranked:
            if position in shown and (later := wishes.revocations.get(position)):
                yield later

    def _newest(self, not_wanted: Collection[int]) -> Iterator[tuple[int, float]]:
        """Yield lines and their approximate tokens, those of the newest message first."""
        for message in reversed(self.pool.message_order):
            speaker = ROW_OPENING_TOKENS
            for position in self.pool.positions[message]:
                if position not in not_wanted and position not in self.pool.outdated:
                    yield position, self.pool.lines[position].size + 1 + speaker
                    speaker = 0.0

    def _left(self, quoted: list[int]) -> int:
        """Return the tokens that are left beside quotes with these lines."""
        return self.most_tokens - self._size(quoted)

    def _size(self, quoted: list[int]) -> int:
        """Return the tokens of quotes with these lines."""
        return (
            self.count(recall.render(self.pool, quoted)) if quoted else frames.frame_tokens(frames.QUOTES, self.count)
        )
