"""The other workers on this machine: asked over Unix sockets in a folder that only this user can enter.

Each worker listens on ``N.sock`` there. The worker whose admin port is asked asks the others, so that one question
sees all of them. A worker that does not answer in time is left out of the answer.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import orjson

PATIENCE_S: Final = 2.0
"""How long a worker may take to answer. A worker that folds is blocked for less than 0.1 s."""


class Peers(msgspec.Struct, frozen=True):
    """All workers of one supervisor."""

    folder: Path
    number: int
    """This worker's."""

    def own(self) -> Path:
        """Return this worker's socket; a socket that a dead worker left is deleted."""
        path = self.folder / f"{self.number}.sock"
        path.unlink(missing_ok=True)
        return path

    async def ask(self, path: str) -> list[Any]:
        """Ask every other worker, and return the answers of those that gave one."""
        others = sorted(each for each in self.folder.glob("*.sock") if each.stem != str(self.number))
        answers = await asyncio.gather(*(_ask(each, path) for each in others))
        return [answer for answer in answers if answer is not None]


async def _ask(socket: Path, path: str) -> Any:
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as session,
            session.get(f"http://worker{path}") as response,
        ):
            return orjson.loads(await response.read()) if response.status == 200 else None
    except (aiohttp.ClientError, OSError, TimeoutError, orjson.JSONDecodeError):
        return None
