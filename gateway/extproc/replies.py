"""Replies of the processor to Envoy: let a message pass, with changes, or give the client an answer of our own."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.extproc import protocol
from gateway.extproc.carried import Carried, to_metadata


def let_pass(
    part: str,
    *,
    headers: Mapping[str, str] | None = None,
    removed: Iterable[str] = (),
    body: bytes | None = None,
    carried: Carried | None = None,
    read_answer: bool = False,
) -> bytes:
    """Return a reply that lets a message pass.

    ``part`` is the part of the request or answer that Envoy sent. ``headers`` are set, ``removed`` ones removed, and ``body`` replaces
    the body. ``carried`` is kept for the next attempt. With ``read_answer`` Envoy also sends the answer's body.
    """
    common: dict[str, Any] = {"header_mutation": _mutation(headers or {}, removed)}
    if body is not None:
        common["body_mutation"] = {"body": body}
    found: dict[str, Any] = {part: {"response": common}}
    if part.endswith("_trailers"):
        found = {part: {}}
    if carried is not None:
        found["dynamic_metadata"] = to_metadata(carried)
    if read_answer:
        found["mode_override"] = {"response_body_mode": protocol.BUFFERED}
    return protocol.encode(protocol.message("ProcessingResponse", **found))


def answer(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a reply that gives the client an answer of our own; no upstream is called."""
    immediate = {
        "status": {"code": status},
        "headers": _mutation({"content-type": "application/json", **headers}, ()),
        "body": body,
        "details": "turnfold",
    }
    return protocol.encode(protocol.message("ProcessingResponse", immediate_response=immediate))


def _mutation(headers: Mapping[str, str], removed: Iterable[str]) -> dict[str, Any]:
    wanted = [
        {
            "header": {"key": name, "raw_value": value.encode("utf-8", "replace")},
            "append_action": protocol.OVERWRITE,
        }
        for name, value in headers.items()
    ]
    return {"set_headers": wanted, "remove_headers": list(removed)}
