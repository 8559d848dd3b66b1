"""JSON whose numbers keep their written form: ``1.50`` keeps its zero, an integer of thirty digits all of them.

orjson reads both as floats of 64 bits, so an amount or an identifier would be another one when it is written again.
"""

from typing import Any, Final

import msgspec
import orjson

from gateway.wire import piecewise


class Written(float):
    """A number that Python would write in another form."""

    __slots__ = ("form",)
    form: str

    def __new__(cls, form: str) -> "Written":
        number = super().__new__(cls, form)
        number.form = form
        return number

    def __str__(self) -> str:
        return self.form


def _number(form: str) -> float:
    number = float(form)
    return number if repr(number) == form else Written(form)


_decode: Final = msgspec.json.Decoder(float_hook=_number).decode


def loads(text: str) -> Any:
    """Return the value of a text with JSON. Raises orjson.JSONDecodeError when it is not JSON."""
    try:
        if len(text) <= piecewise.PIECE_BYTES:
            return _decode(text)
        return piecewise.loads(text.encode("utf-8", "surrogatepass"), decode=_decode)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return orjson.loads(text)


def loads_object(text: str) -> dict[str, Any] | None:
    """Return the members of a text that is a JSON object; None for any other text."""
    plain = text.strip()
    if not plain.startswith("{"):
        return None
    try:
        members: dict[str, Any] = loads(plain)
    except orjson.JSONDecodeError:
        return None
    return members


def written(number: Written) -> orjson.Fragment:
    """Return the written form of a number, for `orjson.dumps`."""
    return orjson.Fragment(str(number))


def dumps(value: Any) -> str:
    """Return compact JSON of a value that `loads` returned. Raises TypeError if it is nested too deep."""
    try:
        return orjson.dumps(value, default=written).decode()
    except TypeError:  # an integer of more than 64 bits
        return msgspec.json.encode(value, enc_hook=lambda number: msgspec.Raw(str(number).encode())).decode()
