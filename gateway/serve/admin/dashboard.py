"""The dashboard's files at the admin port. They hold no data: the page asks the admin API for that, with the token.

Nothing is read before the page is opened.
"""

from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from gateway.serve.incoming.errors import ClientError

FOLDER: Final = Path(__file__).parents[2] / "observe" / "dashboard"
PATH: Final = "/dashboard/"
PATHS: Final = ("/", PATH.rstrip("/"), PATH, PATH + "{name}", PATH + "{folder}/{name}")
"""The page's addresses; the first two lead to the third."""
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types of the files that are served; others, such as licences, are not."""

HEADERS: Final = {
    # The page's own files alone; nothing inline, nothing from elsewhere, no frame, no form. Trusted types forbid to parse text as HTML.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class File(msgspec.Struct, frozen=True):
    """One file as it is sent."""

    body: bytes
    type: str
    tag: str
    """Its hash, by which a browser knows that its copy is current."""


def route_path(request: web.Request) -> str:
    """Return the address of the route that a request matches, with its parts unnamed; empty when there is none."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else ""


def file(request: web.Request) -> web.Response:
    """Return one file of the page. Raises ClientError when there is no such file."""
    if not route_path(request).endswith((PATH, "{name}")):
        return web.Response(
            status=302, headers={"Location": PATH.lstrip("/")}
        )  # relative: it may stand below a base path
    asked = request.match_info
    name = "/".join(asked[part] for part in ("folder", "name") if part in asked) or "index.html"
    found = files().get(name)
    if found is None:
        raise ClientError(404, "The dashboard has no such file.", code="not_found")
    headers = {**HEADERS, "ETag": found.tag}
    if request.headers.get("If-None-Match") == found.tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=found.body, headers={**headers, "Content-Type": found.type})


@cache
def files() -> dict[str, File]:
    """Read all files of the page, by their name in its address."""
    return {
        path.relative_to(FOLDER).as_posix(): _read(path)
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES and path.is_file()
    }


def _read(path: Path) -> File:
    body = path.read_bytes()
    return File(body, TYPES[path.suffix], f'"{blake2b(body, digest_size=12).hexdigest()}"')
