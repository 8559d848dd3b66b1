"""The mode of one request: the value of its own header, as far as the operator allows it."""

from aiohttp import web

from gateway.config import Mode, Route
from gateway.config.values import MODES
from gateway.serve.errors import ClientError


def mode_of(request: web.BaseRequest, route: Route) -> Mode:
    """Return the mode of one request: its own header, else the configured mode.

    Raises ClientError for an unknown mode, and for a mode that ``fold.client_modes`` leaves out.
    """
    asked = request.headers.get("x-turnfold-mode")
    if asked is None:
        return route.mode
    word = asked.strip().lower()
    if word not in MODES:
        raise ClientError(400, f"x-turnfold-mode: {asked[:40]!r} is not one of {', '.join(MODES)}", code="invalid_mode")
    if word not in route.client_modes and word != route.mode:
        allowed = f"allowed: {', '.join(route.client_modes)}" if route.client_modes else "the header is not allowed"
        raise ClientError(
            403,
            f"x-turnfold-mode: {word} is not allowed for this model (fold.client_modes); {allowed}",
            code="mode_not_allowed",
            type_="permission_error",
        )
    return word
