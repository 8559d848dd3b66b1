"""The life of one request: states, transitions and the retry ladder.

What can happen to a request:

- `states`: what is known of it at each point, and what the driver does next.
- `events`: what one piece of the driver's work found.
- `transitions`: the table of which state follows. `conditions` and `moves` have the functions in its columns.
- `place`: one model at one upstream, where a request may be sent.

Which bytes are sent:

- `task`: a counted request that must fit one place.
- `attempt`: one form of it that can be sent.
- `ladder`: the first attempt, and a smaller one after each refusal.

What an answer says:

- `replies`: an upstream's answer or refusal, as numbers.
- `refusal_numbers`, `bills`: which of these numbers can be believed.
- `lessons`: what is learned from them for later requests.
- `identity`: the names under which that is kept, of conversations and of callers.
"""
