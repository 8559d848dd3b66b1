import pytest

from gateway.context.read import learned
from gateway.context.read.number_table import NumberTable

ROWS = b"a\t1\nsay\t-12\nto say\t7\n\xe5\x88\xab\t4\n"


@pytest.mark.parametrize(
    ("text", "number"),
    [("a", 1), ("say", -12), ("to say", 7), ("\u522b", 4), ("y", 0), ("ay", 0), ("o say", 0), ("", 0), ("\ud800", 0)],
)
def test_a_text_has_the_number_of_its_row_and_a_part_of_one_has_none(text: str, number: int) -> None:
    assert NumberTable(ROWS).get(text) == number


def test_texts_with_the_same_place_are_told_apart() -> None:
    rows = [f"word{number}\t{number}\n" for number in range(1, 3000)]

    table = NumberTable("".join(rows).encode())

    assert [table.get(f"word{number}") for number in range(1, 3000)] == list(range(1, 3000))
    assert not any(table.get(f"other{number}") for number in range(3000))


def test_an_empty_table_has_no_numbers() -> None:
    assert NumberTable(b"").get("a") == 0


def test_the_table_of_requests_has_every_row_of_its_file() -> None:
    rows = learned._bytes_of("learned_requests.txt").decode().splitlines()
    table = learned.request_weights()

    assert 5_000 < len(rows) < 33_000
    assert all(table.get(text) == int(number) for text, number in (row.split("\t") for row in rows))
    assert learned.EDGE in {row.partition("\t")[0] for row in rows}
