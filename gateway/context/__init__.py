"""The decisions: what is counted, what is cut, what is tried next. Plain functions over plain values.

A fold uses the folders in this order:

- `count`: the tokens of a request.
- `cut`: where the folded part ends, and which form the kept messages have.
- `shrink`: kept messages that are too long.
- `read`: the folded messages as lines.
- `weigh`: the worth of each line, in a pool.
- `choose`: the lines for the digest and for the quotes.
- `write`: the note, the quotes and the messages to send. `stages.py` calls the other folders.

Two files belong to several of these folders: `weights` has the numbers by which lines are weighed, `frames` the lines around a note and
around quotes.

`life` has the states of a request and calls `write`. `summarise` has the questions to a summariser, and `cache` the rules of prompt caches.
"""
