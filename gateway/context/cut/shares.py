"""How a room is shared between a digest, quotes and later growth, in a chat and where tools are called."""

from typing import Final, NamedTuple

MOST_QUOTES_OF_CHAT: Final = 200
"""Tokens of quotes that a chat keeps free. Of the words that replies to messages which are not chiefly questions take from the folded
part alone, 400 tokens hold 5 %, 200 hold 4 % (docs/decisions.md)."""
LEAST_QUOTES: Final = 40
"""Tokens; fewer quotes are not worth their frame."""
GROWTH_TURNS: Final = 2
"""Typical turns. With room for these besides the digest, quotes and digest have their usual shares."""
LONG_CHAT: Final = 8.0
"""Typical requests. A chat of which fewer fill the room has long messages: quotes and digest then have smaller shares."""
LEAST_FREE: Final = 400
"""Tokens of free room. In a smaller one too little would be saved for what is lost: most caches begin at 1,024 tokens."""
GROWTH_REQUESTS: Final = 2.5
"""Typical requests for which room is left besides a digest where the room is small but not tight."""
LEAST_GROWTH: Final = 1.0
"""Typical requests. With room for fewer besides its least share the digest takes all."""


CALLED_TOKENS: Final = 1 / 3
"""Share of a conversation's tokens that calls and results take, above which it is an agent's. A chat looks something up now and then."""
CALLING_TURNS: Final = 1 / 2
"""Share of the turns with calls, above which it is an agent's, too, however short they are. In recorded conversations about errands it is half."""


class Shares(NamedTuple):
    """The shares of one kind of conversation. Those of a digest are of the free room, those of quotes of the room for quotes."""

    digest: float
    """If the conversation can grow for several turns besides it."""
    quotes: float
    """Kept free for quotes then. A message that asks nothing needs few; a question gets what is free, or history gives way."""
    most_quotes: float
    """Tokens of them at most."""
    tight: float
    """Typical requests. Where the room holds fewer, every request moves the cut, and the digest takes all that is left. A trade: the
    more the digest takes, the more is found and the more is written."""
    small_digest: tuple[float, float]
    """Least and largest share of a digest where the room is small but not tight: a few requests from now it is written anew."""
    small_quotes: float
    """Kept free for quotes there: the digest says more for the same tokens."""
    tight_quotes: float
    """Kept free for quotes when the conversation cannot grow besides its digest."""


AGENT: Final = Shares(0.27, 0.33, float("inf"), 5.0, (0.3, 0.4), 0.1, 0.1)
"""Tools are called: what a tool returned is needed unasked, so the digest has more of it."""
CHAT: Final = Shares(0.22, 0.5, MOST_QUOTES_OF_CHAT, 4.0, (0.15, 0.15), 0.33, 0.2)
"""People speak: a question finds what they said."""
