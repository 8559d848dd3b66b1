"""The mode of one request: the value of its own header, as far as the operator allows it."""

from typing import Final

from aiohttp import web
from multidict import istr

from gateway.config import ClientKey, Mode, Route
from gateway.config.values import MODES
from gateway.serve import arrival as arrivals
from gateway.serve.incoming.errors import ClientError

HEADER: Final = istr("x-turnfold-mode")
"""The header with which a client asks for a mode."""


def mode_of(request: web.BaseRequest, route: Route) -> Mode:
    """Return the mode of one request: its own header, else the configured mode. Raises ClientError as `mode_for` does."""
    return mode_for(request.headers.get(HEADER), route, arrivals.of(request).key)


def mode_for(header: str | None, route: Route, key: ClientKey | None = None) -> Mode:
    """Return the mode that a request's header asks for, else the configured mode.

    Raises ClientError for an unknown mode, and for a mode that ``fold.client_modes`` leaves out.
    """
    if header is None:
        return route.mode
    word = header.strip().lower()
    if word not in MODES:
        raise ClientError(
            400, f"x-turnfold-mode: {header[:40]!r} is not one of {', '.join(MODES)}", code="invalid_mode"
        )
    modes = tuple(mode for mode in route.client_modes if key is None or mode in key.modes)
    if word not in modes and word != route.mode:
        allowed = f"allowed: {', '.join(modes)}" if modes else "the header is not allowed"
        reason = "for this model (fold.client_modes)" if word not in route.client_modes else "with this key"
        raise ClientError(
            403,
            f"x-turnfold-mode: {word} is not allowed {reason}; {allowed}",
            code="mode_not_allowed",
            type_="permission_error",
        )
    return word
