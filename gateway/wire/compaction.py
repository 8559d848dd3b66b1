"""Compaction items that the gateway made, and how they are read again.

A provider encrypts the content of such an item. Ours has a digest there, which is only encoded: the client could read it. It is sent
to upstreams as a user message, because they cannot read the item.
"""

import base64
import binascii
from typing import Any, Final

import orjson

from gateway.wire.message import dumps
from gateway.wire.raw_json import array, members
from gateway.wire.splice import splice
from gateway.wire.views import pieces

SEAL: Final = "turnfold1:"
"""The beginning of ``encrypted_content`` in our own items."""
TRIGGER: Final = "compaction_trigger"
"""The item by which Codex asks for a compaction instead of an answer."""


def item(texts: tuple[str, ...], identity: str) -> dict[str, Any]:
    """Return a compaction item that holds texts."""
    sealed = base64.b64encode(orjson.dumps(texts)).decode()
    return {"id": f"cmp_{identity}", "type": "compaction", "encrypted_content": SEAL + sealed}


def opened(raw: bytes) -> bytes:
    """Return a body with our own compaction items written as user messages; the same bytes when it has none."""
    if SEAL.encode() not in raw:
        return raw
    found = members(raw)
    items = pieces(found["input"]) if found and "input" in found else None
    if not items:
        return raw
    rows = [_opened(each.value) or each.raw for each in items]
    return splice(raw, {"input": array(rows)}) if any(a is not b.raw for a, b in zip(rows, items, strict=True)) else raw


def _opened(value: dict[str, Any]) -> bytes | None:
    sealed = value.get("encrypted_content")
    if value.get("type") != "compaction" or not isinstance(sealed, str) or not sealed.startswith(SEAL):
        return None
    try:
        texts = orjson.loads(base64.b64decode(sealed.removeprefix(SEAL), validate=True))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    parts = [{"type": "input_text", "text": text} for text in texts if text]
    return dumps({"type": "message", "role": "user", "content": parts}) if parts else None
