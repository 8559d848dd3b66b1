"""Bounds of what is kept: names of models, conversations and sessions are the clients'."""

from typing import Final

MOST_MODELS: Final = 200
"""Models that are told apart; the others are summed as one."""
MOST_CONVERSATIONS: Final = 20_000
"""Conversations that are told apart at one time, 10 MB."""
MOST_NAMES: Final = 200
"""Values of one field that are told apart."""
OTHERS: Final = "(others)"
"""The name of all models beyond `MOST_MODELS`."""
