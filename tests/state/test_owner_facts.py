"""The facts of an owner are kept within bounds, and fetched from the store."""

from gateway.context.life.lessons import PromptRead
from gateway.state.owner_facts import MOST_OWNERS, REFRESH_S
from tests.state.test_learning import ME, M, World, stated, world

__all__ = ["world"]


async def test_what_callers_taught_is_bounded_and_what_is_dropped_is_fetched_again(world: World) -> None:
    learning = world.process()
    learning.learn([stated(4096, "one"), stated(4096, "two")], ME)
    await learning.owners.fetch(M)
    for number in range(MOST_OWNERS):
        learning.learn([PromptRead("up", "m", 5000)], f"other{number}")
    await world.settle()
    assert learning.owners.is_due(M)
    await learning.owners.fetch(M)
    assert learning.stated_window(M) == 4096


async def test_invented_keys_and_models_push_out_no_facts(world: World) -> None:
    learning = world.process()
    learning.learn([stated(4096, "one"), stated(4096, "two")], ME)
    await learning.owners.fetch(M)
    for number in range(MOST_OWNERS):
        await learning.owners.fetch(("up", f"invented {number}", f"key {number}"))

    assert not learning.owners.is_due(M)
    assert learning.stated_window(M) == 4096
    assert learning.owners.is_due(("up", "invented 0", "key 0")) is False
    await learning.owners.fetch(("up", "one more", "key"))
    assert learning.owners.is_due(("up", "invented 0", "key 0"))


async def test_what_a_neighbour_learns_later_is_fetched_after_a_while(world: World) -> None:
    here, there = world.process(), world.process()
    await there.owners.fetch(M)
    here.learn([stated(4096, "one"), stated(4096, "two")], ME)
    await world.settle()

    assert not there.owners.is_due(M)
    world.now += REFRESH_S
    assert there.owners.is_due(M)
    await there.owners.fetch(M)
    await world.settle()
    assert there.stated_window(M) == 4096

    world.now -= 3600
    assert there.owners.is_due(M), "the clock was set back"
