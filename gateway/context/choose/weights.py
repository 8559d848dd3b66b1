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

# Standing wishes: what words of each class count in a sentence (logarithms of odds, fitted to long natural chats by half).
NEGATION: Final = 0.8
ALL_TIMES: Final = 1.0
DUTY: Final = 0.8
TO_OTHER: Final = 1.8
OF_SELF: Final = 0.8
STORY: Final = -0.8
THIRD_PERSON: Final = -0.8
CONDITION: Final = 0.4
CHANGE: Final = 0.5
NAMING: Final = 0.4
ASIDE: Final = 1.2
"""For a sentence that begins as an aside ("by the way")."""
ASSENT: Final = 2.0
"""For each sentence of a message to which the assistant's reply agrees at once."""
ADDRESSED: Final = 2.0
"""For the sentence that gives a name with which the assistant addresses the user in its reply."""
ALL_OF_MESSAGE: Final = -0.6
"""For a sentence that is a whole message: an answer, more often than a wish."""
LEAST_WISH: Final = 2.0
"""A sentence below this is no wish."""
WISHES_OF_CHAT: Final = 0.7
"""Share of a digest that wishes may take where no tool has been called."""
WISHES_OF_AGENT: Final = 0.3
"""The same where tools have been called: their facts need the place."""
