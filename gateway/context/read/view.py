"""Views: messages in the shape in which the core reads them.

A message that is read in another shape has a *view*: a copy with further members. One of them is the message itself (`SENT`). A fold works on
views, and sends `as_sent` of each. When a view is shortened, all its members are copied (``{**message, ...}``), so the shorter one still has the
message that it stands for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gateway.wire.derived import MESSAGE_BYTES, Derived, Interned, derived_of
from gateway.wire.message import Message, tool_calls

SENT: Final = "turnfold.sent"
"""A member of a view: the message that is sent."""
CALLS: Final = "turnfold.calls"
"""A member of a view of an agent's message: its calls in the shape of ``tool_calls``. Its content still has their text."""
PROSE: Final = "turnfold.prose"
"""A member of the same view: what the message says besides its calls."""
SPLIT: Final = "turnfold.split"
"""A member of a view: how the message is split into what is said and what is around it (`gateway.context.read.as_said`)."""
ADDED: Final = frozenset({SENT, CALLS, PROSE, SPLIT})
"""All members that a view adds."""


def viewed(message: Message, members: Mapping[str, Any], bytes_of_members: Callable[[], int] = int) -> Message:
    """Return the view of a message that has these members. As long as the message is remembered, the same members give the same view, so that
    what is read of the view is remembered, too. ``bytes_of_members`` returns the bytes that the members take."""
    derived: Derived[Any] = derived_of(message)
    before = derived.view
    if before is not None and all([before.get(name) == value for name, value in members.items()]):
        return before
    view = Interned({**message, **members, SENT: message}, MESSAGE_BYTES + bytes_of_members())
    view.derived.on_growth = derived.grow
    derived.view = view
    freed = 0
    if before is not None:
        before.derived.on_growth = None
        freed = before.derived.size
    # This may forget the message, and another thread may at any time: then it has no view any more.
    derived.grow(view.derived.size - freed)
    return view


def as_sent(message: Message) -> Message:
    """Return the message to send: the original one, unless something of it was shortened or left out."""
    original: Message | None = message.get(SENT)
    if original is None:
        return message
    kept = without_added(message)
    kept["role"] = original["role"]
    is_unchanged = len(kept) == len(original) and all([kept[name] is original.get(name) for name in kept])
    return original if is_unchanged else kept


def without_added(message: Message) -> dict[str, Any]:
    """Return a message without the members of a view. A client may send members of these names: they are no view."""
    return {name: value for name, value in message.items() if name not in ADDED}


def calls_of(message: Message) -> Sequence[Mapping[str, Any]]:
    """Return the calls of a message, those in its text too."""
    calls: Sequence[Mapping[str, Any]] | None = message.get(CALLS)
    return tool_calls(message) if calls is None else calls


def prose_of(message: Message) -> str | None:
    """Return what an agent's message says besides the calls in its text; None for any other message."""
    return message.get(PROSE)
