"""A strict stand-in upstream on a real socket, used by `turnfold demo`, the tests and the replay.

- `server`: the socket. `apis`: what differs between APIs. `answers`: the script.
- `validity`, `messages`, `responses`, `hosted`, `citations`: the rules of valid requests, of all APIs and of each. `ollama`: everything about
  Ollama's own API.
- `weight`: count a request. `dialects`: refuse one that is too long.
- `completion`, `message_events`, `response_events`: write answers.
"""

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
