"""Follow the configuration file as it changes."""

from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.settings import Settings


class Watcher:
    """Looks at the file now and then."""

    def __init__(self, path: Path, environ: Mapping[str, str], on_change: Callable[[Settings], None]) -> None:
        self._path, self._environ, self._on_change = path, environ, on_change

    async def run(self) -> None:
        """Watch for ever."""
