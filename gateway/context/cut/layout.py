"""The layout of a fold: which messages are kept, which are folded, and the tokens of digest and quotes. No text is written yet."""

import msgspec

from gateway.context.cut.units import Cut, Room, Unit


class Layout(msgspec.Struct, frozen=True):
    """Where a conversation is cut, and the facts about the request that decide what replaces the folded part."""

    units: tuple[Unit, ...]
    room: Room
    cut: Cut
    cut_at_question: Cut
    """The cut at the beginning of the current turn. Only messages that it folds are quoted."""
    folded: tuple[int, ...]
    """Indices of the folded messages."""
    question: tuple[int, ...]
    """Indices of the user messages of the newest turn that has some: for them lines are quoted."""
    ends_with_question: bool = False
    """Whether the request ends with the current question, or with the beginning of its answer."""
    prefix_breaks: bool = False
    """Whether the request begins unlike the one before it although the cut did not move: then filling the room breaks no
    cached prefix."""
    tight: bool = False
    """Whether the cut moved with this request and moves again with the next: then the digest may fill the room."""
    has_agent: bool = False
    """Whether the conversation is an agent's: calls and results are a large part of it. `LinePool.has_many_calls` is another question: whether
    they are a large part of what is folded."""
    autonomous: bool = False
    """Whether the agent works on its own between two messages of the user: the conversation has many results for each turn."""
    set_aside: tuple[int, ...] = ()
    """Indices of messages after the cut that are left out of this request and may be quoted: they make room for the
    quotes of the current question."""

    @property
    def left_out(self) -> tuple[int, ...]:
        """Indices of all messages that are not sent, and may be quoted: folded ones and those set aside."""
        return tuple(sorted({*self.folded, *self.set_aside})) if self.set_aside else self.folded

    @property
    def turns_folded(self) -> int:
        """The number of turns of which nothing is kept."""
        if self.set_aside:
            left_out = set(self.left_out)
            return next(unit.turn for unit in self.units if not left_out.issuperset(unit.indices))
        return self.units[self.cut.first_kept].turn if self.cut.first_kept else 0
