"""Decide where a conversation is cut.

In the order of use:

- `turns`: the turns and steps of the messages. `units`: the smallest parts that are kept or folded, and the values of a cut.
- `budget`, `policy`, `rungs`: how much room there is, what the operator wants, and how strict the fold is.
- `source`: all these together, with what each message costs. `layout`: everything that is decided before a text is written.
- `cutting`: the entrance: make the layout of a source. It calls the files below.
- `replay`: the conversation's growth, unit by unit. `full_room`: the moment at which the room is full. `next_cut`: the cut that follows.
  `boundary`, `digest_tokens`: the first unit that it keeps, and the tokens of its digest.
- `cost_sums`, `unit_limits`, `result_limits`: what a cut costs, how large one unit may be, and how large an old result.
- `shares`, `agents`: how the room is shared, and whether the conversation is an agent's.

Used by these and by others:

- `question`: the messages of the current question, and whether they can be sent whole.
- `media_and_reasoning`: what is dropped first from an old message.
- `summary`: a model's text instead of the oldest messages. `foresight`: which messages the next summary should cover.
"""
