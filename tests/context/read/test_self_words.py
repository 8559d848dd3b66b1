"""How often each of two speakers speaks of itself."""

import pytest

from gateway.context.read.self_words import self_words


@pytest.mark.parametrize(
    ("text", "other", "counts"),
    [
        ("I like my house.", "We sold mine, I’m sorry.", ((2, 1), (3, 1))),
        ("Mam psa i kota, moja siostra ma rybę.", "Ja mam ptaka i mój brat ma konia.", ((1, 1), (2, 1))),
        ("Compro i libri, ma non i miei.", "Io compro i tuoi e i miei.", ((1, 1), (2, 1))),
        ("我喜欢我的房子。", "不错。", ((2, 2), (0, 0))),
        ("이제 문제가 없어요. 저녁에 제가 할게요.", "저는 어제 왔어요. 제 집은 멀어요.", ((1, 1), (2, 1))),
        ("", "", ((0, 0), (0, 0))),
    ],
)
def test_only_words_of_the_language_of_both_count(text: str, other: str, counts: tuple[tuple[int, int], ...]) -> None:
    assert self_words(text, other) == counts
