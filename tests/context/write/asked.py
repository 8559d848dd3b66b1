"""Messages at the end of a conversation, as what they ask."""

from typing import Any

from gateway.context.choose.asking import AskingPart
from gateway.context.cut.layout import Layout
from gateway.context.cut.units import USER, Cut, Room, Unit
from gateway.context.write.current_question import CurrentQuestion

FOR_FACT = "Which card was it?"
QUESTION = "Root cause of the double booking?"
ERRAND = "Could you book it for Friday?"
WITHOUT_SUBJECT = "Shall we go on?"
REQUEST = "Draft a mail to Sam about the boiler."
STATEMENT = "The bus was late again."
PHRASE = "the number of the last bus"

CHAT: dict[str, Any] = {"ends_with_question": True}
AGENT: dict[str, Any] = {**CHAT, "has_agent": True}
AUTONOMOUS: dict[str, Any] = {**AGENT, "autonomous": True}
ROOM = 100_000


def question(
    text: str, facts: dict[str, Any], *, folded: int = 30_000, room: int = ROOM, points: float | None = None
) -> CurrentQuestion:
    """Return what a text asks at the end of a conversation with so many folded tokens: with so many points, or by its form alone."""
    units = tuple(
        Unit(turn, USER, (turn,), cost=cost, trimmed_cost=cost, stubbed_cost=cost)
        for turn, cost in enumerate((folded, 10))
    )
    cut = Cut(first_kept=1)
    layout = Layout(units, Room(room, 0, 0.6, None), cut, cut, (0,), (1,), **facts)
    return CurrentQuestion(text, layout, AskingPart(points, text) if points is not None else None)
