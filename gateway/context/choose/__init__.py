"""Choose lines of the folded part: for the digest by new facts per token, for quotes by relevance to a question.

- `digest`: the lines of the digest. `greedy`: which line is taken next. `chosen_lines`: the lines taken so far, and what another one would add. `naming`: the lines that must come with a line.
- `recall`: the passages for a question. `relevance`: how relevant each passage is to it. `asking`: how surely a message asks for some. `need`: whether its subject was spoken of. `fields`,
  `salience`, `embedding`: other words for the same thing, words that say little, and nearness in meaning. `title`: what a long result is about.
- `lookup`: the relevant ones among messages that are too many to be read as lines.
- `rows`: how chosen lines are written.
"""
