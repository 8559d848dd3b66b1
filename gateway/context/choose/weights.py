"""The weights by which lines and passages are chosen: each with its unit and its source.

`python -m benchmarks.recall.fit` halves and doubles each, on one half of the conversations, and reports the best on the other half.
"""

from typing import Final

# Quotes: how much a passage bears on a question.
ADJACENT: Final = 0.6
"""Share of the better score among the messages right beside it that a passage gets; of those two away half of it, of those three away a third."""
REACH: Final = 4
"""Messages up to which that goes on: people stay with a subject for some turns."""
ALIKE: Final = 0.4
"""What a word of the same family counts, beside the word that was asked for."""
RELATED: Final = 0.4
"""What a word of the same field counts (see `fields`): once for each field that the question names. Chosen as `ALIKE`, which it generalises."""
MEANT: Final = 0.075
"""What a standard deviation of likeness in meaning counts, of the worth of all words of the question (see `embedding`)."""
PINNED_WORD: Final = 0.3
"""What a word counts that the system prompt has too: it names the subject of the whole conversation."""
EMPTY_WORD: Final = 0.4
"""What a word counts of which questions are built (*said*, *thing*), however rare it is in a chat (see `salience`)."""
COMMON_WORD: Final = 0.7
"""What another common word counts (*name*, *time*)."""
OWN_WORDS: Final = 2.2
"""How much more likely the user is to have said what he asks of himself ("my", "I"), as a factor."""
UNNAMED: Final = 1.8
"""The same for a question that names nobody: what is asked for is mostly what the user told."""
QUOTED_UNASKED: Final = 0.5
"""Share of the place for quotes that a message may take which asks nothing."""
STAYS: Final = 0.2
"""Share of the place for quotes that those of earlier questions may take: the rest is the current one's."""
STAYS_WITH_CALLS: Final = 1.0
"""The same where tools are called: dropping quotes there makes the provider process a whole turn anew, and a turn's question needs
few of them."""
LEAST_OF_BEST: Final = 0.36
"""Of the best passage's score, another must have so much to be quoted: the place of what bears less on the question is left to standing wishes."""
MANY: Final = 1500
"""Tokens of quotes for the newest question, beyond which a passage must have more of the best score, unless the folded part is many times the room."""
LEAST_OF_BEST_IN_LARGE: Final = 0.25
"""The same as `LEAST_OF_BEST` where the folded part is many times the room, and there is place for more quotes than these: of so much the best passage is
better, and more is asked for."""
LEAST_OF_BEST_AMONG_MANY: Final = 0.5
"""That share. Of what 258 questions about chats need, passages with less find one more there, at half of the history."""
STATEMENT_SHARE: Final = 0.5
"""Of all that a message is about, a passage must have so much to be quoted where the message asks nothing. Quotes cost part of a
cached prefix at the next turn."""
LEAST_TOLD: Final = 4
"""Words of such a message that tell passages apart, at least. Quotes for *you had me at fennel* held nothing of what 1,450 replies took from the folded part."""

# Facts: how likely one is to be needed by a later call, as rough odds counted on recorded agents of three kinds (service, long results, coding).
IN_SPEECH: Final = (0.05, 0.2, 0.15, 0.7, 0.7, 0.8, 1.2)
"""Of a word that was said or called with, by its shape, in the order of `words.Shape`."""
IN_DATA: Final = (0.02, 0.05, 0.1, 0.3, 0.25, 0.7, 0.5)
"""Of a word that only stood in a result."""
IDENTIFIER: Final = 3.0
"""Factor for an identifier that is a value of a record of its own: a fifth of these are needed, of dates a twentieth, of numbers one in 200
(customer service). In rows of output, where identifiers are many, it counts once."""
USED: Final = 16.0
"""Factor for a value that a call has used."""
ASKED: Final = 4.0
"""The same for one that the user named."""
ANSWERED: Final = 2.2
"""The same for one that the assistant named."""
SEVERAL: Final = 4.0
"""The same for an identifier that several results have: three to five times as many of these are needed (customer service)."""
ERROR: Final = 1.0
"""Added to a line that reports an error."""
BINDING: Final = 1.6
"""Added to a user's line for each point of `cues.binding`."""
FIRST: Final = 2.0
"""Added to the lines of the first user message, which says what it is all about."""
SAYING: Final = 20.0
"""Tokens of a user's line from which the last two count in full, shorter ones in proportion: "Hi!" and "Sure." bind nothing."""
CALLED: Final = 0.5
"""Added to a call, even where its arguments are known: a model must not repeat what it did."""
OLDEST: Final = 0.6
"""What the oldest line is worth beside the same line among the newest, as a factor."""

# Changed minds: when a newer statement replaces an older one.
COMMON: Final = 0.5
"""Share of the ordinary words of the shorter statement, by rarity, that both must have."""
TELLING: Final = 0.4
"""Rarity of what they share, at least: two sentences with nothing but common words in common are two subjects."""
NEARLY_ALL: Final = 0.75
"""The share where only a name differs."""
REVOKES: Final = 0.6
"""Rarity that a sentence of change shares with a wish that it may take back: about one telling word that few lines have."""
LEAST_REVOCATION: Final = 0.5
"""Points of `wishes.strength` of a sentence of change: a story takes no wish back."""

REVOKING_WORD: Final = 1.5
"""Points of a sentence with a word of change, to which those that its words tell are added: a logarithm of odds."""
REVOKING: Final = 0.3
"""Added to a sentence for each of these points: what takes a wish back is more urgent than the wish."""
PERHAPS: Final = 2.0
"""Points added to these before they count: one in eight such sentences takes something back."""

# Standing wishes: what words of each class count in a sentence (logarithms of odds, fitted to long natural chats by half).
NEGATION: Final = 0.8
"""A word of negation. Each of the following counts for a word of its class, by the fit named above."""
ALL_TIMES: Final = 1.0
"""A word for all times ("always")."""
DUTY: Final = 0.8
"""A word of duty ("must")."""
TO_OTHER: Final = 1.8
"""A word for the other speaker ("you")."""
OF_SELF: Final = 0.8
"""A word for the speaker ("I")."""
STORY: Final = -0.8
"""A word that tells a story ("was")."""
THIRD_PERSON: Final = -0.8
"""A word for a third person ("she")."""
CONDITION: Final = 0.4
"""A word of condition ("if")."""
CHANGE: Final = 0.5
"""A word of change ("instead")."""
NAMING: Final = 0.4
"""A word that gives a name ("call")."""
ASIDE: Final = 1.2
"""For a sentence that begins as an aside ("by the way")."""
ASSENT: Final = 2.0
"""For each sentence of a message to which the assistant's reply agrees at once."""
ADDRESSED: Final = 2.0
"""For the sentence that gives a name with which the assistant addresses the user in its reply."""
TAKEN_UP: Final = 1.0
"""For a sentence with a telling word that the reply repeats in a short first sentence ("Sentences it is.")."""
ALL_OF_MESSAGE: Final = -0.6
"""For a sentence that is a whole message: an answer, more often than a wish."""
BINDING_WORD: Final = 1.0
"""For each point of `cues.binding`, which knows more languages."""
LEARNED: Final = 0.7
"""For each point that the words tell (`learned`)."""
OF_TASK: Final = -6.0
"""For a sentence all of whose telling words tools were called with or returned; a share of it for others."""
UNUSUAL: Final = 6.0
"""For a sentence none of whose words stands anywhere else; a share of it for others."""
WISH_SIZE: Final = 0.3
"""Power of a sentence's tokens by which its score is divided: 0 ignores size, 1 is the most wish for a token."""
LEAST_WISH: Final = 1.5
"""A sentence below this is no wish."""
CUES_WITH_CALLS: Final = 0.7
"""Factor for the classes of words above where tools are called: errands have the same form. These four were chosen on planted sentences in
every other customer-service conversation."""
LEARNED_WITH_CALLS: Final = 1.2
"""For each point that the words tell, where tools are called."""
LEAST_WISH_WITH_CALLS: Final = -0.5
"""A sentence below this is no wish where tools are called: one in eleven of what customers say is above."""
SURE_WISH_WITH_CALLS: Final = 0.8
"""A sentence above this is hardly anything else there: one in fifty of what customers say."""
WISHES_IN_QUOTES: Final = 0.1
"""Share of the current question's quotes that is kept for standing wishes which the digest has no room for. Chosen: see docs/experiments.md."""
WISHES_OF_CHAT: Final = 0.95
"""Share of a digest that wishes may take where no tool has been called."""
WISHES_OF_AGENT: Final = 0.6
"""The same of sure wishes where tools have been called: their facts need the place."""
UNSURE_WISHES: Final = 0.2
"""The same of all wishes there, and in a chat between two people, who wish little of each other."""
