"""Limits of the memory for sums. Clients choose the names of models, conversations and sessions, so there may be any number of them."""

from typing import Final

MOST_MODELS: Final = 200
"""Models with sums of their own; all others are summed as one."""
MOST_CONVERSATIONS: Final = 20_000
"""Conversations that are kept at one time, 10 MB."""
MOST_NAMES: Final = 200
"""Values of one field that are kept."""
OTHERS: Final = "(others)"
"""The name of all models beyond `MOST_MODELS`."""
