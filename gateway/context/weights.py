"""The weights by which lines and passages are chosen: each with its unit and its source.

`python -m benchmarks.recall.fit` tries each weight at half and at twice its value on one half of the conversations, and
reports the best value on the other half.
"""

from typing import Final

# Quotes: the relevance of a passage to a question.
NEIGHBOUR_SHARE: Final = 0.6
"""Share of a neighbouring message's score that is added to a passage. At two messages' distance it is half of this, at three
a third. Of the two neighbours at one distance, the one with the higher score counts."""
NEIGHBOUR_DISTANCE: Final = 4
"""The largest distance of a neighbour, in messages. People stay with a subject for some turns."""
FAMILY_WORD: Final = 0.4
"""Factor for a word that begins like a word of the question (see `LinePool.family_of`)."""
FIELD_WORD: Final = 0.4
"""Factor for a word of the same field as a word of the question (see `fields`). Each field counts once. The value is that of
`FAMILY_WORD`, because in both cases it is not the question's own word."""
MEANING_WEIGHT: Final = 0.075
"""Share of the worth of all words of the question that one standard deviation of nearness in meaning adds (see
`embedding`)."""
PINNED_WORD: Final = 0.3
"""Factor for a word that is in the system prompt, too: it names the subject of the whole conversation."""
EMPTY_WORD: Final = 0.4
"""Factor for a word that any question may have (*said*, *thing*), even if it is rare in this chat (see `salience`)."""
COMMON_WORD: Final = 0.7
"""Factor for another common word (*name*, *time*)."""
SPEAKER_FACTOR: Final = 2.2
"""Factor for the messages of the speaker whom a question is about: of the user, where the question says *my* or *I*."""
USER_FACTOR: Final = 1.8
"""Factor for the user's messages where a question is about no speaker: most answers are in what the user told. Where tools are called
often, the sentences of the assistant have it, too. They say what it found or did; its calls and their results only contain the words."""
NARRATOR_FACTOR: Final = 1.4
"""Factor for the assistant's messages where it is the assistant who tells, as in a game. Chosen on two games, with 1 and 1.8."""
ASKING_BIAS: Final = -5.65
"""Points of any message: a logarithm of the odds that it asks for something that was said (`choose.asking`). This weight and those down to
`ASKING_NEED` are fitted by `python -m benchmarks.recall.asking`."""
ASKING_WORDING: Final = 0.46
"""Points of a message for each learned point of its wording (`learned.request_points`)."""
ASKING_SMALL: Final = 1.43
"""Points for the natural logarithm of a message's characters, up to `ASKING_SMALL_CHARACTERS`. Very short messages are answers."""
ASKING_LARGE: Final = -4.36
"""Points for what this logarithm has beyond that of `ASKING_SMALL_CHARACTERS`. Long messages tell something."""
ASKING_SMALL_CHARACTERS: Final = 60
"""Characters: the length of a question."""
ASKING_QUESTION_WORD: Final = 2.14
"""Points of a short message with a question word at any place."""
ASKING_FORM: Final = 1.7
"""Points of a message with the form of a question: its mark, or the beginning of a question (`questions.wants_to_know`)."""
ASKING_UNKNOWN: Final = -1.69
"""Points of a message if the folded part has none of its words; if it has some, a share of these points. News has words that were never said."""
ASKING_NEED: Final = 0.25
"""Points of a message for each point of `need`, which tells whether its subject was spoken of."""
ASKING_AMONG_OTHERS: Final = -2.5
"""Points of some sentences of a message that also says something else. A trade: with -2 one more of a hundred questions in stories is found, and
chats get a tenth more quotes."""
ASKING_IN_SPEECH: Final = -0.5
"""Points of some clauses of speech without punctuation."""
ASKING_IN_FRAME: Final = -1.0
"""Points of what an instruction is about, without the words that say what to write (`instructions.without_frame`)."""
LEAST_SCORE_SHARE: Final = 0.32
"""Share of the best passage's score that a passage must have to be quoted. Standing wishes use the room better than less
relevant passages do."""
MESSAGES_BESIDE_BEST: Final = 2
"""Messages on either side of the best passage's message whose passages need less."""
LEAST_SCORE_SHARE_BESIDE_BEST: Final = 0.5
"""Their part of `LEAST_SCORE_SHARE`."""
MANY_QUOTE_TOKENS: Final = 1500
"""Tokens of quotes for the newest question. Passages after so many need a higher score (`LEAST_SCORE_SHARE_AFTER_MANY`),
unless the folded part is many times the room."""
LEAST_SCORE_SHARE_OF_LONG_HISTORY: Final = 0.25
"""The same as `LEAST_SCORE_SHARE` if the folded part is many times the room and there is room for more than
`MANY_QUOTE_TOKENS`, and in a chat between two people. In a long history the best passage has a higher score, and questions
need more passages."""
LEAST_SCORE_SHARE_AFTER_MANY: Final = 0.5
"""The same as `LEAST_SCORE_SHARE` after `MANY_QUOTE_TOKENS`. Of what 258 questions about chats need at half of the history,
passages with lower scores have one more."""

# Facts: how likely a later call needs one, as rough odds. They were counted on recorded agents of three kinds: service,
# long results, coding.
IN_SPEECH: Final = (0.05, 0.2, 0.15, 0.7, 0.7, 0.8, 1.2)
"""Odds of a word in a message or in the arguments of a call, by its shape, in the order of `words.Shape`."""
IN_DATA: Final = (0.02, 0.05, 0.1, 0.3, 0.25, 0.7, 0.5)
"""Odds of a word that is only in a result."""
IDENTIFIER_OF_RECORD: Final = 3.0
"""Factor for an identifier that is a separate value of a record. In customer service one in five of these is needed, one in
20 dates, one in 200 numbers. Rows of output have many identifiers: there the factor is 1."""
NAMED_IN_CALL: Final = 16.0
"""Factor for a value that was an argument of a call. For an agent that works on its own (see `LinePool.autonomous`) only what an argument names
(`Line.arguments`) and e-mail addresses have it: a later call needs such a path one time in eight, a symbol of a piece of code in a call one time
in 500. The other words of its calls count like what it says."""
IDENTIFIER_IN_CALL_OF_AUTONOMOUS: Final = 6.0
"""The same for an identifier that an argument of such an agent names, except the names of files: it reads a mail or a page once."""
ADDRESS_IN_RESULT: Final = 32.0
"""Factor for an e-mail address of a result where an agent works on its own. A later call needs one in five of the addresses that the agent has
only read, and one in eight of the paths that an argument names."""
FOUND_FILE: Final = 12.0
"""The same for a file at the beginning of a row of output, as a search writes it. A later call needs one in twelve of these, and one in
500 of the files inside rows."""
MOST_FOUND_IN_RESULT: Final = 8
"""Addresses or files. In a result with more of them, these factors do not count for them: it is a list of customers, all files of a folder or the like. Of
results with more files a later call needs one in 300."""
NAMED_BY_USER: Final = 4.0
"""Factor for a value that the user named."""
NAMED_BY_ASSISTANT: Final = 2.2
"""Factor for a value that the assistant named."""
IN_SEVERAL_RESULTS: Final = 4.0
"""Factor for an identifier in several results. In customer service a later call needs it three to five times as often."""
ENVELOPE: Final = 0.02
"""Factor for a value of an envelope: a field that a back end writes around every answer (a request id, a version, a rate limit)."""
ENVELOPE_SHARE_OF_RESULTS: Final = 0.5
"""Share of the results that have an envelope's field, at least."""
ENVELOPE_TOOLS: Final = 3
"""Tools whose results have an envelope's field, at least."""
ENVELOPE_HEADERS: Final = 4
"""Results of a tool that begin with a row of this form, at least. Chosen: three may be alike by chance."""
MOST_USED_OF_ENVELOPE: Final = 0.1
"""Share of the lines of an envelope's field whose values were named in a message or a call, at most: an order's number is in most results,
too, but it is used."""
CALLS_OF_COMMON_ARGUMENT: Final = 4
"""Calls of a tool that have the same value of an argument, at least, before it is shown only once. Chosen: three may be alike by chance."""
COMMON_ARGUMENT_SHARE: Final = 0.5
"""Share of the tool's calls that have it, at least. In a session of Codex three of five calls have its limits; the others are edits."""
ERROR_LINE: Final = 1.0
"""Worth that is added to a line that reports an error."""
BINDING_LINE: Final = 1.6
"""Worth that is added to a user's line for each point of `cues.binding`."""
FIRST_USER_MESSAGE: Final = 2.0
"""Worth that is added to each line of the first user message: it says what the conversation is about."""
FULL_WORTH_TOKENS: Final = 20.0
"""Tokens of a line from which `BINDING_LINE`, `FIRST_USER_MESSAGE` and the worths of an agent's sentences (`STEP_SENTENCE`, `REPORT_SENTENCE`,
`TASK_SENTENCE`) count in full. In a shorter line they count in proportion: *Hi!* and *Sure.* bind nothing."""
CALL_LINE: Final = 0.5
"""Worth that is added to a call, even if its arguments are known: a model must not repeat a call."""
STEP_SENTENCE: Final = 4.0
"""Worth that is added to a sentence of an agent that works on its own, beside its calls. It says what the results mean. Chosen,
like `REPORT_SENTENCE` and `TASK_SENTENCE`, on three sessions of coding agents."""
REPORT_SENTENCE: Final = 8.0
"""The same in a message without calls: the report at the end of a turn, with what was found, decided and left open."""
TASK_SENTENCE: Final = 60.0
"""The same for the user of such an agent, besides the other worth of a user's line. There are few of these sentences, and each says
what is to be done and how. With 12, a tenth of a session full of identifiers kept two fifths of its tasks, with 60 two thirds, and two points less of the
values for later calls."""
OLDEST_LINE_SHARE: Final = 0.6
"""Share of its worth that the oldest line keeps. The newest line keeps all of it."""

# Replaced statements: when a newer statement replaces an older one.
LEAST_COMMON_SHARE: Final = 0.5
"""Share of the shorter statement's ordinary words, by rarity, that both statements must have."""
LEAST_COMMON_RARITY: Final = 0.4
"""The least sum of the rarities of these words. Two sentences that share only common words are about two subjects."""
LEAST_COMMON_SHARE_BESIDE_NAMES: Final = 0.75
"""The same as `LEAST_COMMON_SHARE` where the statements differ only in a name."""

# Revocations: how probably a later sentence revokes a wish. The first four were fitted on 43 wishes of nine chats (a conditional logistic
# model, divided so that a shared word that no other line has counts 1). In 39 others the right sentence ranks first for 22.
CHANGE_FOR_REVOCATION: Final = 0.1
"""Points of a sentence for each of its points as a revocation (`WishCues.revocation`)."""
CHANGE_FOR_PHRASE: Final = 0.2
"""Points of a phrase that revokes something (`wishes.has_revoking_phrase`)."""
CHANGE_FOR_STRENGTH: Final = 0.1
"""Points for each point of `WishCues.strength`. A story revokes no wish."""
SHARED_NEARBY: Final = 0.5
"""Factor for a word of the wish that is not in the sentence itself, but in the rest of its message or in the reply."""
CHANGE_SHARPNESS: Final = 4.0
"""By how much one point raises the logarithm of the odds. The fit has 5; the figures of folds are a little better with 4."""
EVEN_CHANGE_POINTS: Final = 1.7
"""Points at which a sentence revokes a wish as probably as the wish is still valid. Chosen with `DOUBT`: see docs/experiments.md."""
DOUBT: Final = 2.0
"""Value that a wish loses with the probability 1 that it was revoked. A wish has a value of about 2 to 4."""
LEAST_CHANGE_PROBABILITY: Final = 0.03
"""Smaller probabilities count as 0."""
SURE_CHANGE_PROBABILITY: Final = 0.5
"""The least probability of a revocation without which its wish is never shown."""

REVOKING_PHRASE_POINTS: Final = 1.5
"""Points that a phrase that revokes something adds to the learned points of a revocation (logarithms of odds)."""
REVOCATION_OFFSET: Final = 2.0
"""Points that are added to the learned points of a revocation, before negative sums are set to 0. With it, one sentence in eight has points and
revokes something."""
REVOCATION_WEIGHT: Final = 0.3
"""Points of a wish for each of its points as a revocation (`WishCues.revocation`): a revocation is needed more urgently than a wish."""

# Standing wishes. The points of a sentence are logarithms of odds. They were fitted on half of the long natural chats.
NEGATION: Final = 0.8
"""Points of a word of negation. The weights down to `NAMING` are points of a word of their class, from the same fit."""
ALL_TIMES: Final = 1.0
"""A word for all times (*always*)."""
DUTY: Final = 0.8
"""A word of duty (*must*)."""
TO_OTHER: Final = 1.8
"""A word for the other speaker (*you*)."""
OF_SELF: Final = 0.8
"""A word for the speaker (*I*)."""
STORY: Final = -0.8
"""A word that tells a story (*was*)."""
THIRD_PERSON: Final = -0.8
"""A word for a third person (*she*)."""
CONDITION: Final = 0.4
"""A word of condition (*if*)."""
CHANGE: Final = 0.5
"""A word of change (*again*)."""
NAMING: Final = 0.4
"""A word that gives a name (*call*)."""
ASIDE: Final = 1.2
"""Points of a sentence that begins like an aside (*by the way*)."""
ASSENT_IN_REPLY: Final = 2.0
"""Points of each sentence of a message to which the assistant's reply agrees at once."""
NAME_IN_REPLY: Final = 2.0
"""Points of a sentence with a name by which the assistant's reply addresses the user."""
WORD_IN_REPLY: Final = 1.0
"""Points of a sentence with a content word that the reply repeats in a short first sentence (*Sentences it is.*)."""
WHOLE_MESSAGE: Final = -0.6
"""Points of a sentence that is a whole message: more often an answer than a wish."""
WISH_BINDING: Final = 1.0
"""Points for each point of `cues.binding`, which knows more languages."""
LEARNED: Final = 0.7
"""Points for each learned point (`learned`)."""
TOOL_WORDS: Final = -6.0
"""Points of a sentence if all its content words are in calls or results. With fewer such words it gets a share of them."""
RARE_WORDS: Final = 6.0
"""Points of a sentence if none of its words is anywhere else. With fewer such words it gets a share of them."""
WISH_SIZE_POWER: Final = 0.3
"""The points are divided by the sentence's tokens to this power. 0 would ignore the size; 1 would rank by points per
token."""
LEAST_WISH_POINTS: Final = 1.5
"""The least points of a wish."""
CUES_WITH_CALLS: Final = 0.7
"""Factor for the points of the classes of words (`NEGATION` to `NAMING`) if the folded part has many calls: requests to an agent have the form of
wishes. This, `LEARNED_WITH_CALLS`, `LEAST_WISH_POINTS_WITH_CALLS` and `SURE_WISH_POINTS_WITH_CALLS` were chosen on planted sentences in every
other conversation of customer service."""
LEARNED_WITH_CALLS: Final = 1.2
"""The same as `LEARNED` if the folded part has many calls."""
LEAST_WISH_POINTS_WITH_CALLS: Final = -0.5
"""The same as `LEAST_WISH_POINTS` if the folded part has many calls. One in eleven sentences of customers has more."""
SURE_WISH_POINTS_WITH_CALLS: Final = 0.8
"""The least points of a sure wish if the folded part has many calls. One in fifty sentences of customers has more."""
WISHES_SHARE_OF_QUOTES: Final = 0.1
"""Share of the current question's quotes that is kept for standing wishes that did not fit into the digest. Chosen: see
docs/experiments.md."""
WISHES_SHARE_OF_CHAT: Final = 0.95
"""Share of a digest that wishes may take in a chat."""
SURE_WISHES_SHARE_WITH_CALLS: Final = 0.6
"""Share of a digest that sure wishes may take if the folded part has many calls: facts need the room."""
WISHES_SHARE_WITH_CALLS: Final = 0.2
"""Share of a digest that all wishes may take there, and in a chat between two people, who have few wishes for each other."""
