"""The cache of what was chosen from one folded part."""

from gateway.context.weigh.choice_cache import MOST_CACHED_CHOICES, ChoiceCache


def test_a_choice_is_made_once_for_each_key() -> None:
    cache = ChoiceCache()
    made: list[str] = []

    for key in ("a", "b", "a"):
        assert cache.get_or_make(key, lambda key=key: made.append(key) or key.upper()) == key.upper()

    assert made == ["a", "b"]


def test_the_memory_is_told_how_many_bytes_come_and_go() -> None:
    cache = ChoiceCache()
    counted: list[int] = []
    cache.add_bytes = counted.append

    for key in range(MOST_CACHED_CHOICES):
        cache.get_or_make(key, lambda: ("a digest", 7))
    before = sum(counted)
    cache.get_or_make("one more", lambda: "x")

    assert min(counted[:-2]) > 0
    assert counted[-2] == -before
    assert 0 < sum(counted) < before
