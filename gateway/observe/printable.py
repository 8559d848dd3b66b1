"""Text of clients and upstreams on a terminal: it must not steer it."""


def printable(text: str) -> str:
    """Return a text with its control and formatting characters written as escapes."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
