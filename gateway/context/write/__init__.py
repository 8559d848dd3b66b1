"""Write the text that replaces the folded part, and the messages to send.

- `folding`: the entrance: an earlier draft, or a fold. `draft_cache` keeps drafts. `draft`: the result.
- `stages`: the stages of a fold. It calls the files below. `sketch`: the unfinished fold that they change.
- `kept`: the kept messages, whole or shortened.
- `replacement`: the note and the quotes for all other messages. `insertion`: both put into the kept messages.
- `readings`, `pools`: the folded messages as lines.
- `current_question`: what the current question asks. `allowance`: how many tokens of quotes it gets. `set_aside`: how kept turns and the digest make room for them.
- `quotes`: the quotes for the current question. `search`: the lines for one question. `line_keys`: lines that several pools have. `fill`: what fills the rest of its room.

Beside a fold:

- `explain`: what a fold keeps and drops, line by line.
- `compaction`: the digest of a whole conversation, where the client asks for one.
"""
