"""A body that goes on from the one before it, a caller's own or another's, is read as one that was never seen."""

from collections.abc import Callable

import orjson
import pytest

from gateway.wire.chat import CHAT
from gateway.wire.memory import Memory
from gateway.wire.skim import BEGINNING_BYTES, Skimmed, skimmed
from tests.allocation import allocation


def message(content: object, role: str = "user") -> str:
    return orjson.dumps({"role": role, "content": content}).decode()


FIRST = message("x" * BEGINNING_BYTES)
IMAGE = message([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}])
NEXT, OTHER = message("Next.", "assistant"), message("Another opening.")

GROWN = {
    "the list twice before": (f'{{"messages":[{FIRST},{IMAGE}],"messages":[{OTHER},{NEXT}]}}', f'{{"messages":[{FIRST},{IMAGE},{NEXT}]}}'),
    "the list twice before, once escaped": (
        f'{{"messages":[{FIRST}],"mess\\u0061ges":[{OTHER}]}}', f'{{"messages":[{FIRST},{NEXT}]}}',
    ),
    "the list twice now, once escaped": (f'{{"messages":[{FIRST}]}}', f'{{"messages":[{FIRST},{NEXT}],"\\u006Dessages":[{OTHER}]}}'),
    "another list grows, and the list came twice": (
        f'{{"messages":[{FIRST},{OTHER}],"x":[1],"messages":[{OTHER}]}}', f'{{"messages":[{FIRST},{OTHER}],"x":[1,{NEXT}]}}',
    ),
    "a member behind": (f'{{"messages":[{FIRST}],"model":"a"}}', f'{{"messages":[{FIRST},{NEXT}],"mod\\u0065l":"b"}}'),
    "a member gone": (f'{{"model":"a","messages":[{FIRST}],"model":"b"}}', f'{{"model":"a","messages":[{FIRST},{NEXT}]}}'),
    "an inner list of that name": (
        f'{{"a":{{"messages":[{FIRST}]}},"messages":[{OTHER}]}}', f'{{"a":{{"messages":[{FIRST},{NEXT}]}},"messages":[{OTHER}]}}',
    ),
}  # fmt: skip


def shown(found: Skimmed | None) -> tuple[object, ...]:
    assert found is not None and found.opening is not None
    return dict(found.head), found.outline, found.message_count, found.opening, found.may_call_in_parallel


@pytest.mark.parametrize("case", GROWN)
def test_a_body_that_has_grown_is_read_as_one_never_seen(case: str) -> None:
    """Where the list of messages stood twice, an image went uncounted, and a conversation got another's name."""
    before, now = (text.encode() for text in GROWN[case])
    memory = Memory()
    skimmed(before, memory)
    assert shown(skimmed(now, memory)) == shown(skimmed(now, Memory()))


def many_values(number: int) -> bytes:
    """A body of some 50 KB, of which 32 KB take a megabyte as values."""
    rows = [
        {"role": "user", "content": f"{number} {'x' * BEGINNING_BYTES}"},
        {"role": "user", "content": [{"a": number}] * 4000},
    ]
    return orjson.dumps({"model": "m", "messages": rows})


@pytest.mark.parametrize("read", [skimmed, CHAT.parse], ids=["skimmed", "parsed"])
def test_values_that_take_far_more_than_their_text_count_with_what_they_take(
    read: Callable[[bytes, Memory], object],
) -> None:
    """Forty bodies of 50 KB took 35 MB of a memory of 4."""
    memory = Memory(4 * 2**20)
    read(many_values(0), memory)
    with allocation() as found:
        for number in range(40):
            read(many_values(number), memory)
    assert found.left <= 1.5 * memory.budget
    assert memory.size <= memory.budget
