"""`turnfold check FILE --live`: ask every upstream for its models, with its configured key."""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from multidict import CIMultiDict

from gateway.config import Upstream, load
from gateway.config.report import many
from gateway.upstream.client import Client, UpstreamCall, UpstreamUnreachable, target
from gateway.upstream.response import AskFailed, Disconnected, read_body
from providers.model_list import LONGEST_LIST_BYTES, read_named_entries

PATIENCE_S: Final = 10.0
"""Seconds. Clients do not wait longer for a list of models."""
WITHOUT_LIST: Final = frozenset({404, 405, 501})
"""Statuses of working servers that have no list of models."""
RIGHT_URL: Final = "Is its base URL right? It often ends in /v1"
"""The advice for an upstream that does not list its models."""


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """Whether one upstream works, and the line that says so."""

    good: bool
    line: str


def ask(file: Path, environ: Mapping[str, str]) -> tuple[LiveCheck, ...]:
    """Ask all upstreams of a file at once. Raises SettingsError."""
    return asyncio.run(_ask_all(tuple(load(file, environ).upstreams.values())))


async def _ask_all(upstreams: tuple[Upstream, ...]) -> tuple[LiveCheck, ...]:
    client = Client()
    try:
        return tuple(await asyncio.gather(*(ask_one(client, upstream) for upstream in upstreams)))
    finally:
        await client.close()


class NoAnswer(Exception):
    """The upstream cannot be reached, or does not answer in time; the text says which."""


async def fetch(client: Client, upstream: Upstream, path: str = "/models") -> tuple[int, bytes]:
    """Return the status and the body of an upstream's answer. Raises NoAnswer."""
    chosen = target(upstream)
    try:
        async with asyncio.timeout(PATIENCE_S):
            headers = chosen.authorised(CIMultiDict({"Accept-Encoding": "identity"}))
            response = await client.send(chosen, UpstreamCall("GET", path, "", ""), headers, None)
            with closing(response):
                return response.status, await read_body(response, LONGEST_LIST_BYTES)
    except UpstreamUnreachable as error:
        raise NoAnswer(error.reason) from error
    except TimeoutError as error:
        raise NoAnswer(f"does not answer within {PATIENCE_S:g} s") from error
    except AskFailed as error:
        raise NoAnswer(f"does not answer: {error.reason}") from error
    except OSError as error:
        raise NoAnswer(f"does not answer ({error.strerror or type(error).__name__})") from error


async def ask_one(client: Client, upstream: Upstream) -> LiveCheck:
    """Ask one upstream for its models, and say whether it can be used."""
    try:
        status, body = await fetch(client, upstream)
    except NoAnswer as error:
        return LiveCheck(False, f"upstreams.{upstream.name}: {error}{_remedy(upstream, error)}")
    return _judge(upstream, status, body)


def _remedy(upstream: Upstream, error: NoAnswer) -> str:
    """Return what to try where a server closes a plain connection at once, as one that expects TLS does; else nothing."""
    unreachable = error.__cause__
    closed = unreachable is not None and isinstance(unreachable.__cause__, Disconnected)
    plain = urlsplit(upstream.base_url).scheme == "http"
    return "; if it speaks TLS, its URL begins with https://" if closed and plain else ""


def _judge(upstream: Upstream, status: int, body: bytes) -> LiveCheck:
    """Judge an upstream by its answer, and report the number of its models."""
    if status in (401, 403):
        if upstream.api_key:
            return LiveCheck(False, f"upstreams.{upstream.name}: does not accept the configured key (status {status})")
        return LiveCheck(
            True, f"upstreams.{upstream.name}: is there, and asks for a key (status {status}), which clients bring"
        )
    if status in WITHOUT_LIST:
        return LiveCheck(
            True, f"upstreams.{upstream.name}: is there, and lists no models (status {status}). {RIGHT_URL}"
        )
    entries = read_named_entries(body) if status == 200 else None
    if entries is None:
        return LiveCheck(False, f"upstreams.{upstream.name}: {in_place_of_list(status, body)}")
    return LiveCheck(True, f"upstreams.{upstream.name}: is there, with {many(len(entries), 'model')}")


def in_place_of_list(status: int, body: bytes) -> str:
    """Return what an upstream answered in place of its list of models, and what to look at."""
    page = "a web page" if body.lstrip().startswith(b"<") else "something else than a list of models"
    return f"answers GET /models with {page if status == 200 else f'status {status}'}. {RIGHT_URL}"
