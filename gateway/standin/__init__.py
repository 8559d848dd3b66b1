"""A strict stand-in upstream on a real socket, used by `turnfold demo`, the tests and the replay."""

from gateway.standin.answers import Answer, Completion, Gate, Raw, Refuse
from gateway.standin.server import Seen, StandIn
from gateway.standin.validity import ALL_RULES, RULES, Violation, added, violations

__all__ = [
    "ALL_RULES",
    "RULES",
    "Answer",
    "Completion",
    "Gate",
    "Raw",
    "Refuse",
    "Seen",
    "StandIn",
    "Violation",
    "added",
    "violations",
]
