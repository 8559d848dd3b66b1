"""Large values are freed in a thread, in pieces, once nobody else uses them; what others hold stays whole."""

import copy
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.state.freeing import FreeingThread, take_apart

PATIENCE_S = 20
VALUES = st.recursive(
    st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=5) | st.tuples(inner, inner)
    ),
    max_leaves=25,
)


class Ended(list[str]):
    """The threads in which values have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.done = threading.Event()

    def append(self, name: str) -> None:
        super().append(name)
        self.done.set()


class Marked:
    """Notes the thread in which it ends."""

    __slots__ = ("ended", "inner")

    def __init__(self, ended: list[str], inner: Any = None) -> None:
        self.ended = ended
        self.inner = inner

    def __del__(self) -> None:
        self.ended.append(threading.current_thread().name)


@given(VALUES, VALUES)
def test_what_others_hold_stays_whole(mine: Any, shared: Any) -> None:
    before = copy.deepcopy(shared)
    take_apart([{"a": shared, "b": [mine, shared]}, (shared, mine), shared])
    assert shared == before


def test_a_value_in_use_stays_whole() -> None:
    value = {"a": [1, {"b": 2}]}
    take_apart(value)
    assert value == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize("depth", [1, 50_000])
def test_everything_that_nobody_else_holds_is_freed(depth: int) -> None:
    ended: list[str] = []
    value: Any = Marked(ended)
    for number in range(depth):
        value = {"inner": value} if number % 3 == 0 else [value] if number % 3 == 1 else Marked(ended, value)
    parts = [value]
    del value
    take_apart(parts.pop())
    assert len(ended) == 1 + depth // 3


@pytest.fixture
def freeing() -> Any:
    thread = FreeingThread()
    yield thread
    thread.close()


def test_a_value_is_freed_in_the_thread_after_its_last_user_has_left(freeing: FreeingThread) -> None:
    in_use, later = Ended(), Ended()
    value = {"schema": [Marked(in_use)]}
    freeing.add([value])
    freeing.add([[Marked(later)]])
    assert later.done.wait(PATIENCE_S), "behind the value in use"
    assert value["schema"]
    assert in_use == []
    del value
    assert in_use.done.wait(PATIENCE_S)
    assert (in_use, later) == (["freeing"], ["freeing"])
