"""A sketch: an unfinished draft."""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from gateway.context.cut.layout import Layout
from gateway.context.write.draft import QuestionKept, Step
from gateway.context.write.insertion import with_note_and_quotes
from gateway.context.write.replacement import Replacement
from gateway.wire.message import Message


class Sketch(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """An unfinished draft. Each stage of a fold takes a sketch and returns a sketch."""

    layout: Layout
    kept: Mapping[int, Message]
    """The kept messages by index, each in its present form."""
    replacement: Replacement | None = None
    """The note and the quotes for all other messages; None without any."""
    steps: tuple[Step, ...] = ()
    question_kept: QuestionKept | None = None

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages to send."""
        if self.replacement is None:
            return tuple([self.kept[index] for index in sorted(self.kept)])
        quotes = {self.layout.question[-1]: self.replacement.quotes} if self.replacement.quotes else {}
        return with_note_and_quotes(self.kept, self.replacement.note, quotes)
