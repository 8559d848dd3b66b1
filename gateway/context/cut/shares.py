"""How a room is shared between a digest, quotes and later growth, in a chat and where tools are called.

A request is *typical* if it has the average size of this conversation's growth from one request to the next.
"""

from typing import Final, NamedTuple

CHAT_QUOTE_TOKENS: Final = 200
"""Tokens that a chat keeps free for quotes. Measured when every message had quotes: a reply to a message that is not mainly a question takes few of
its words from the folded part alone; 400 tokens of quotes have 5 % of these words, 200 tokens 4 % (docs/decisions.md)."""
LEAST_DIGEST_TOKENS: Final = 800
"""Tokens of a chat's digest, at least: about what its standing wishes take. Where nothing is asked, no quotes bring them."""
LEAST_DIGEST_SHARE: Final = 1 / 3
"""Share of the free room that these tokens may take."""
LEAST_DIGEST_ROOM: Final = 1500
"""Tokens of free room from which on these tokens are taken. In a smaller room questions need the quotes more."""
LEAST_TIGHT_QUOTE_TOKENS: Final = 40
"""Tokens. If a tight room's share for quotes is smaller, nothing is kept free for them: so few tokens are not worth a frame, and the digest uses
them better."""
GROWTH_TURNS: Final = 2
"""Typical turns. If these fit beside the digest, quotes and digest have their usual shares."""
LONG_MESSAGE_REQUESTS: Final = 8.0
"""Typical requests. If fewer fill the room of a chat, its messages are long: quotes and digest have smaller shares."""
LEAST_ROOM_TO_GROW: Final = 400
"""Tokens of free room. A smaller room has no room kept free to grow: too little would be saved, because most caches begin
at 1,024 tokens."""
GROWTH_REQUESTS: Final = 2.5
"""Typical requests for which room is left beside a digest in a small room."""
LEAST_GROWTH_REQUESTS: Final = 1.0
"""Typical requests. If fewer fit beside its least share, the digest takes all the remaining room."""


class Shares(NamedTuple):
    """The shares of one kind of conversation.

    A room is *usual* if several turns fit beside the digest, *small* if a few requests do, and *tight* if none does.
    Shares of a digest are of the free room. Shares of quotes are of the room for quotes.
    """

    digest: float
    """Share of a digest in a usual room."""
    least_digest_tokens: float
    """The least tokens of a digest, except in a tight room: within `LEAST_DIGEST_SHARE`, and from `LEAST_DIGEST_ROOM` on."""
    quotes: float
    """Share that a usual room keeps free for quotes. A message that asks for something that was said gets other free room, too, or the oldest
    kept messages are left out for its quotes."""
    most_quote_tokens: float
    """The most tokens of this share."""
    tight_requests: float
    """Typical requests. A room that holds fewer is tight: each request moves the cut, and the digest takes all the
    remaining room. A larger digest finds more, and more is written to the cache."""
    small_digest: tuple[float, float]
    """Least and largest share of a digest in a small room: it is written again after a few requests."""
    small_quotes: float
    """Share that a small room keeps free for quotes: the digest says more in the same tokens."""
    tight_quotes: float
    """Share that a tight room keeps free for quotes."""


AGENT: Final = Shares(
    digest=0.27,
    least_digest_tokens=0,
    quotes=0.0,
    most_quote_tokens=0.0,
    tight_requests=5.0,
    small_digest=(0.3, 0.4),
    small_quotes=0.0,
    tight_quotes=0.0,
)
"""An agent works. Later calls need tool results that no question names, so the digest is larger. Few requests are questions about
the past: room that is kept free for their quotes moves the cut sooner for all requests, or makes the digest smaller. Such a question gets
the free room, or kept turns are set aside for it."""
CHAT: Final = Shares(
    digest=0.22,
    least_digest_tokens=LEAST_DIGEST_TOKENS,
    quotes=0.5,
    most_quote_tokens=CHAT_QUOTE_TOKENS,
    tight_requests=4.0,
    small_digest=(0.15, 0.15),
    small_quotes=0.33,
    tight_quotes=0.2,
)
"""People talk. A question finds the words it needs, so quotes are larger."""
