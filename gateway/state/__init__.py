"""The state that outlives a request: learned facts, summaries, records, background tasks.

What is kept of requests:

- `learning`: what answers teach about upstreams. `owner_facts`: what they have taught. `conversations`: the same about single conversations. `model_lists`: what upstreams' own lists
  say. `facts`, `stored_facts`: these facts as values, and in the store.
- `known_ids`: which upstream made an id.
- `summariser`: summaries that a model writes. `accounts`: what was spent on its calls, and whether they fail.
- `rates`: what client keys have used in this minute.
- `records`: what was done to each request.
- `store`: the store for all of these but the records.
- `forgetting`: delete any of it, in all processes.

How work is done beside the event loop:

- `threads`: two threads for work that takes long.
- `tasks`: background tasks.
- `freeing`, `garbage`: free memory without delaying requests. `newest`: memories of bounded size.
"""
