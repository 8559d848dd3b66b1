"""Model lists: asked for when they are due, with keys that are let in, and again soon where that failed."""

from gateway.state.model_lists import FIRST_RETRY_S, LIST_TTL_S, LOADED_TTL_S, ModelLists
from tests.fakes import Clock


def test_a_list_that_was_read_is_asked_for_once_an_hour() -> None:
    clock = Clock(1000.0)
    lists = ModelLists(clock)
    assert lists.begin_request("up", "a")
    assert not lists.begin_request("up", "b"), "it is being asked for"
    lists.store("up", {"m": 8192}, {}, {})
    assert (lists.window("up", "m"), lists.running("up", "m")) == (8192, None)

    clock.now += LIST_TTL_S - 1
    assert not lists.begin_request("up", "a")
    clock.now += 1
    assert lists.begin_request("up", "a")
    assert lists.window("up", "m") == 8192


def test_a_clock_that_is_set_back_does_not_keep_a_list_for_longer() -> None:
    clock = Clock()
    lists = ModelLists(clock)
    clock.now += 10 * LIST_TTL_S
    assert lists.begin_request("up", "a")
    lists.store("up", {"m": 8192}, {}, {})

    clock.now -= 5 * LIST_TTL_S
    assert lists.is_due("up")
    assert lists.begin_request("up", "a")
    assert not lists.begin_request("up", "a"), "it is being asked for"


def test_a_list_that_could_not_be_read_is_asked_for_again_soon_and_then_later() -> None:
    clock = Clock(1000.0)
    lists = ModelLists(clock)
    waited = []
    for _ in range(4):
        assert lists.begin_request("up", "a")
        lists.note_failure("up", "status 503")
        started = clock.now
        while not lists.begin_request("up", "a"):
            clock.now += 1
        lists.note_failure("up", "status 503")
        waited.append(clock.now - started)
        clock.now += LIST_TTL_S
    assert waited[0] == FIRST_RETRY_S
    assert waited == sorted(waited)


def test_a_key_that_was_refused_does_not_ask_again_and_keeps_nobody_else_from_asking() -> None:
    clock = Clock(1000.0)
    lists = ModelLists(clock)
    assert lists.begin_request("up", "bad")
    lists.note_refused_key("up", "bad")

    clock.now += FIRST_RETRY_S
    assert not lists.begin_request("up", "bad")
    assert lists.begin_request("up", "good")


def test_a_window_too_small_for_any_server_is_not_one() -> None:
    lists = ModelLists(Clock(1000.0))
    lists.store("up", {"m": 1, "n": 4096}, {"o": 7}, {})

    assert (lists.window("up", "m"), lists.window("up", "n"), lists.running("up", "o")) == (None, 4096, None)


def test_a_server_of_one_model_tells_for_every_name() -> None:
    lists = ModelLists(Clock(1000.0))
    lists.store("up", {"llama.gguf": 131_072}, {"*": 4096, "llama.gguf": 4096}, {})

    assert lists.running("up", "gpt-4o") == 4096
    assert lists.names() == {"llama.gguf"}


def test_a_server_that_loads_on_demand_is_asked_again_until_a_model_is_loaded() -> None:
    clock = Clock(1000.0)
    lists = ModelLists(clock)
    assert lists.begin_request("up", "a")
    lists.store("up", {}, {}, {}, on_demand=True)
    clock.now += FIRST_RETRY_S - 1
    assert not lists.begin_request("up", "a")
    clock.now += 1
    assert lists.begin_request("up", "a")
    lists.store("up", {}, {"m": 4096}, {}, on_demand=True)
    assert lists.running("up", "m") == 4096
    clock.now += LOADED_TTL_S - 1
    assert not lists.begin_request("up", "a")
    clock.now += 1
    assert lists.begin_request("up", "a"), "it may load another model, or this one with another window"


def test_a_model_that_was_unloaded_keeps_the_window_that_it_had() -> None:
    """It is loaded again by its next request, which must fit."""
    lists = ModelLists(Clock(1000.0))
    for loaded in ({"m": 4096}, {"n": 8192}, {}, {"m": 2048}):
        lists.store("up", {}, loaded, {}, on_demand=True)
    assert (lists.running("up", "m"), lists.running("up", "n")) == (2048, 8192)
