"""An upstream's answer as it arrives, whichever client received it, and the reasons why there is none."""

import errno
from collections.abc import Mapping
from typing import Final, Protocol

from multidict import CIMultiDict


class Response(Protocol):
    """The head of an answer, and its body piece by piece. Close it, unless its body was read to the end."""

    status: int
    reason: str
    """The reason phrase as it came; it may hold any character but a line's end."""
    headers: CIMultiDict[str]

    @property
    def complete(self) -> bool:
        """Whether no more bytes will arrive; some may wait to be taken."""

    def take(self) -> bytes:
        """Return the bytes that have arrived, without waiting."""

    async def next_piece(self) -> bytes:
        """Wait for the next bytes; empty at the end. Raises BrokenOff, or TimeoutError when nothing came for too long."""

    def close(self) -> None:
        """Give up the rest. The connection of an incomplete answer is closed."""


class AskFailed(OSError):
    """The upstream gave no whole answer."""

    reason = "failed"
    """Completes the sentence "upstream X could not be reached: ", without addresses and header values."""


class NameUnknown(AskFailed):
    """There is no address for the upstream's name."""

    reason = "its name does not resolve"


class CertificateRefused(AskFailed):
    """The upstream's certificate is not valid for its name, or no known authority signed it."""

    reason = "its certificate was not accepted"


class TlsFailed(AskFailed):
    """The TLS handshake failed for another reason than the certificate: most often the upstream speaks plain HTTP."""

    reason = "the TLS handshake failed; if it speaks plain HTTP, its URL begins with http://"


class NotConnected(AskFailed):
    """No address of the upstream accepted a connection."""

    reason = "the connection was refused"


class NoRoute(NotConnected):
    """The network has no way to the upstream's address."""

    reason = "there is no route to its address"


class NoDescriptors(NotConnected):
    """This process may open no further connection: not the upstream's fault."""

    reason = "the gateway has no file descriptors left: raise its limit (ulimit -n)"


_NOT_CONNECTED: Final[Mapping[int, type[NotConnected]]] = {
    errno.EHOSTUNREACH: NoRoute,
    errno.ENETUNREACH: NoRoute,
    errno.EMFILE: NoDescriptors,
    errno.ENFILE: NoDescriptors,
}


def not_connected(error: OSError) -> NotConnected:
    """Return the reason why a connection could not be opened."""
    return _NOT_CONNECTED.get(error.errno or 0, NotConnected)(type(error).__name__)


class Disconnected(AskFailed):
    """The connection ended before the head of an answer was complete."""

    reason = "it closed the connection without an answer"


class InvalidHttp(AskFailed):
    """The answer, or its head, is not valid HTTP, or longer than our limits."""

    reason = "its answer was not valid HTTP"


class BrokenOff(AskFailed):
    """The answer ended in the middle of its body."""

    reason = "it broke off in the middle of its answer"


async def read_body(response: Response, most: int) -> bytes:
    """Read a body to its end, or until at least ``most`` bytes are read."""
    found: list[bytes] = []
    size = 0
    while size < most and (piece := await response.next_piece()):
        found.append(piece)
        size += len(piece)
    return b"".join(found)
