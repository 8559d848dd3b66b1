"""Model lists of every form are read, and the name of a model under every key."""

import pytest

from providers.model_list import name_of, read_entries, read_named_entries

FORMS = [
    (b'{"data":[{"id":"a"}]}', ["a"]),
    (b'{"models":[{"name":"a"},{"model":"b"},{"key":"c"}]}', ["a", "b", "c"]),
    (b'[{"id":"a"},{"id":5},5,{}]', ["a"]),
    (b'{"data":[]}', []),
    (b'{"data":{}}', None),
    (b'"x"', None),
    (b"", None),
]


@pytest.mark.parametrize(("body", "names"), FORMS)
def test_lists_of_every_form_are_read(body: bytes, names: list[str] | None) -> None:
    found = read_named_entries(body)
    assert (found if found is None else [entry["id"] for entry in found]) == names


def test_an_object_that_is_no_list_is_its_own_entry() -> None:
    assert read_entries(b'{"n_ctx":4096}') == [{"n_ctx": 4096}]
    assert read_entries(b'"x"') == read_entries(b"<html>") == []


def test_the_name_of_a_model_is_the_first_that_is_a_text() -> None:
    assert name_of({"id": "", "key": 5, "model": "a", "name": "b"}) == "a"
    assert name_of({"id": None}) == ""
