"""One foldable request: its places, its measure, the work of its states, its end and its record.

What is open for it:

- `served`: the request, and what is closed at its end.
- `conversation`: what its body holds. `mode`, `sessions`, `deployment`: what its headers, its body and its path ask for.

The work of its states:

- `places`: where it may be sent. `place`: one of these places. `model_lists`: what upstreams say about their models.
  `known_ids`: the one upstream that knows the ids in it.
- `decisions`: the work of every state that needs no upstream. It uses `measure` (does it fit?), `caching` (what is added for prompt caches)
  and `summary` (the summary of what is folded).
- `sending`: send an attempt.

Its end:

- `finish`: give the client its answer. `missing_endpoint`: an upstream that lacks the API.
- `learn`: learn from the answer. `uncounted_bill`: its lessons if the request was not counted. `summary`: request one, if it will be needed.
- `outcome`: what headers and record say. `contents`, `texts`: what was sent and left out, for the record.
"""
