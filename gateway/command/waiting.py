"""A sign of life on the terminal while a command waits for something."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show on standard error what is waited for, where that is a terminal; nothing remains of it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
