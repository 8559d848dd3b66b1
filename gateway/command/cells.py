"""Text of clients and upstreams in a table on a terminal."""

from rich.text import Text

from gateway.observe.printable import printable


def cell(text: str) -> Text:
    """Return the text for a table, without control characters and without markup."""
    return Text(printable(text))
