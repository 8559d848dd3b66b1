"""A sign of life on the terminal while a command waits for something."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text on standard error, if that is a terminal, until the work inside is done. Then the text disappears."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
