"""Bills of conversations with images: nothing is learned from what was sent with one, and the rest teaches as usual."""

from typing import Any

from gateway.standin import StandIn
from tests.context.pictures import png
from tests.fakes import assistant, user, words

WINDOW = 8192
TURNS = 24
PICTURE = {"type": "image_url", "image_url": {"url": png(64, 64)}}


def talk(turns: int) -> list[dict[str, Any]]:
    """A growing conversation that began with a picture."""
    history = [user([{"type": "text", "text": "Look at this."}, PICTURE]), assistant("I see a ship.")]
    for turn in range(turns):
        history += [user(f"Turn {turn}: {words(300, turn)}"), assistant(words(100, turn + 500))]
    return [*history, user("What was in the picture?")]


async def ratios(running: Any) -> list[float]:
    async with running.session.get(f"{running.admin_url}/api/learned") as response:
        return [fact["value"] for fact in (await response.json())["facts"] if fact["what"] == "ratio"]


async def test_counts_are_corrected_once_a_fold_has_left_the_image_out(gateway) -> None:
    """Else the first attempt of every further fold would be refused."""
    async with StandIn(window=WINDOW, scale=1.6, models=("m",)) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": WINDOW}}})
        for turn in range(1, TURNS):
            assert (await running.chat({"model": "m", "max_tokens": 200, "messages": talk(turn)})).status == 200
        assert 0 < sum(seen.status == 400 for seen in standin.requests) <= 4
        [ratio] = await ratios(running)
        assert 1.4 < ratio < 1.8


async def test_a_request_that_is_sent_with_an_image_teaches_nothing(gateway) -> None:
    async with StandIn(window=100 * WINDOW, scale=1.6, models=("m",)) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": 100 * WINDOW}}})
        for turn in range(6, TURNS):
            await running.chat({"model": "m", "max_tokens": 200, "messages": talk(turn)})
        assert await ratios(running) == []
