"""Learning: what one process learned holds until it expires, and its neighbours know it too."""

from collections.abc import AsyncIterator

import pytest

from gateway.context.count.tokens import Anchor
from gateway.state.learning import GUESSED_TTL_S, REFRESH_S, STATED_TTL_S, Learning, conversation
from gateway.state.store import open_store
from gateway.state.store.base import Store
from gateway.state.tasks import Tasks

CHAT = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "Go on"},
]


class World:
    """A store, the time, and processes that share both."""

    def __init__(self) -> None:
        self.store: Store = open_store("memory://")
        self.now = 1_000_000.0
        self._tasks: list[Tasks] = []

    def process(self) -> Learning:
        self._tasks.append(Tasks())
        return Learning(self.store, self._tasks[-1], lambda: self.now)

    async def settle(self) -> None:
        """Let everything that is being written be written."""
        for tasks in self._tasks:
            await tasks.settled()

    async def close(self) -> None:
        for tasks in self._tasks:
            await tasks.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


async def test_a_stated_window_holds_for_a_day_and_a_guessed_one_for_an_hour(world: World) -> None:
    """Case 102."""
    learning = world.process()
    learning.note_window("up", "stated", 4096, stated=True)
    learning.note_window("up", "guessed", 2048, stated=False)
    assert (learning.window("up", "stated"), learning.window("up", "guessed")) == (4096, 2048)

    world.now += GUESSED_TTL_S + 1
    assert (learning.window("up", "stated"), learning.window("up", "guessed")) == (4096, None)
    world.now += STATED_TTL_S
    assert learning.window("up", "stated") is None


async def test_a_neighbour_knows_what_was_learned_here(world: World) -> None:
    here, there = world.process(), world.process()
    here.note_window("up", "m", 4096, stated=True)
    here.note_count("up", "m", 1000, 2500)
    here.note_usage("scope", conversation("scope", "m", CHAT)[0], Anchor(1, 777, 7))
    await world.settle()
    await there.know("up", "m")

    assert there.window("up", "m") == 4096
    assert there.ratio("up", "m") == here.ratio("up", "m") > 2.4
    assert await there.anchor(conversation("scope", "m", CHAT)) == Anchor(1, 777, 7)


async def test_what_a_neighbour_learns_later_is_fetched_after_a_while(world: World) -> None:
    here, there = world.process(), world.process()
    await there.know("up", "m")
    here.note_window("up", "m", 4096, stated=True)
    await world.settle()

    assert not there.is_new("up", "m")
    world.now += REFRESH_S
    assert there.is_new("up", "m")
    await there.know("up", "m")
    await world.settle()
    assert there.window("up", "m") == 4096


async def test_the_newest_usage_of_a_conversation_is_found_and_nobody_elses(world: World) -> None:
    """Cases 72, 110."""
    learning = world.process()
    edited = [{"role": "user", "content": "Hullo"}, *CHAT[1:]]
    learning.note_usage("mine", conversation("mine", "m", CHAT)[0], Anchor(1, 100, 7))
    learning.note_usage("mine", conversation("mine", "m", CHAT)[1], Anchor(2, 130, 7))

    assert await learning.anchor(conversation("mine", "m", CHAT)) == Anchor(2, 130, 7)
    assert await learning.anchor(conversation("theirs", "m", CHAT)) is None
    assert await learning.anchor(conversation("mine", "other", CHAT)) is None
    assert await learning.anchor(conversation("mine", "m", edited)) is None


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"v":99,"tokens":5,"until":1e12}', b'{"v":1,"tokens":"5"}', b"\xff"]
)
async def test_damaged_or_foreign_values_are_ignored(world: World, value: bytes) -> None:
    for kind in ("window", "ratio"):
        await world.store.put(kind, "up\nm", value, ttl_s=60)
    learning = world.process()
    await learning.know("up", "m")

    assert learning.window("up", "m") is None
    assert learning.ratio("up", "m") == 1.0


async def test_a_misread_window_is_not_learned(world: World) -> None:
    learning = world.process()
    learning.note_window("up", "m", 3, stated=True)

    assert learning.window("up", "m") is None


async def test_a_model_list_is_asked_for_once_an_hour(world: World) -> None:
    learning = world.process()

    assert learning.wants_list("up")
    assert not learning.wants_list("up")
    learning.note_list("up", {"m": 8192})
    assert learning.told_window("up", "m") == 8192
    world.now += 3601
    assert learning.wants_list("up")
    assert learning.told_window("up", "m") == 8192
