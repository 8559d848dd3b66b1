"""Real refusals are recognised and read for their numbers, real near misses are let pass, by every reader that may meet them.

The bodies stand in ``tests/bodies/<provider>/``: ``recorded.json`` holds what servers were seen to answer, ``composed.json`` what
they document or could say. A record's ``beyond`` says why we do not read it right (yet).
"""

from pathlib import Path
from typing import Any

import orjson
import pytest

from providers.record import OutputTooLarge, Overflow
from providers.registry import PROVIDERS

BODIES = Path(__file__).resolve().parents[1] / "bodies"

RECORDS: list[tuple[str, dict[str, Any]]] = [
    (file.parent.name, record) for file in sorted(BODIES.glob("*/*.json")) for record in orjson.loads(file.read_bytes())
]


def _cases() -> list[Any]:
    cases = []
    for folder, record in RECORDS:
        readers = {folder: PROVIDERS[folder]} if folder in PROVIDERS else {}
        if not (record["body"] == "" and folder in PROVIDERS):
            readers["generic"] = PROVIDERS["generic"]  # whoever sends nothing is known by its name alone
        for name, provider in readers.items():
            marks = [pytest.mark.xfail(strict=True, reason=record["beyond"])] if "beyond" in record else []
            cases.append(pytest.param(provider, record, id=f"{name}:{record['id']}", marks=marks))
    return cases


@pytest.mark.parametrize(("provider", "record"), _cases())
def test_an_answer_is_read_for_what_it_says_about_size(provider: Any, record: dict[str, Any]) -> None:
    refusal = provider.read_refusal(record["status"], record["body"].encode())
    if record["label"] == "overflow":
        assert isinstance(refusal, Overflow)
        assert (refusal.limit, refusal.prompt, refusal.completion) == (
            record.get("limit"),
            record.get("prompt"),
            record.get("completion"),
        )
        assert record.get("total") in (None, refusal.total) or record.get("prompt")
        assert refusal.exact or not record.get("exact", False)
        assert not refusal.exact or record.get("exact", True)
    elif record["label"] == "output":
        assert refusal == OutputTooLarge(record["limit"], refusal.sign)
    else:
        assert refusal is None


def test_the_ids_are_unique() -> None:
    ids = [record["id"] for _, record in RECORDS]
    assert len(ids) == len(set(ids))


def test_most_of_what_servers_say_is_here() -> None:
    """The corpus cannot shrink unnoticed."""
    overflows = [record for _, record in RECORDS if record["label"] == "overflow"]
    assert len(RECORDS) >= 1070
    assert len(overflows) >= 480
