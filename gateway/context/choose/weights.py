"""The weights by which lines and passages are chosen: each with its unit and its source.

`python -m benchmarks.recall.fit` measures each on one half of the conversations and reports on the other.
"""

from typing import Final

# Quotes: how much a passage bears on a question.
ADJACENT: Final = 0.6
"""Share of the best score among the messages right beside it that a passage gets."""
NEXT_BUT_ONE: Final = 0.3
"""The same for the messages one further away."""
ALIKE: Final = 0.3
"""What a word of the same family counts, beside the word that was asked for."""
PINNED_WORD: Final = 0.3
"""What a word counts that the system prompt has too: it names the subject of the whole conversation."""
OWN_WORDS: Final = 2.2
"""How much more likely the user is to have said what he asks of himself ("my", "I"), as a factor."""
THEIR_WORDS: Final = 1.3
"""The same for a question that names nobody."""
LEAST_OF_BEST: Final = 0.25
"""Of the best passage's score, another must have so much to be quoted."""
STATEMENT_SHARE: Final = 0.25
"""Of all that a message is about, a passage must have so much to be quoted where the message asks nothing. Quotes cost part of a
cached prefix at the next turn."""
