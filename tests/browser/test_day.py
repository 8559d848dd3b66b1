"""An operator's day: observe, replay, report, enforce, and explain in the dashboard what one conversation lost."""

import asyncio
import re

import orjson
import pytest
import yaml

from gateway.standin import StandIn
from tests import fakes, running
from tests.e2e.test_operator_day import turnfold_output

expect = pytest.importorskip("playwright.async_api", reason="playwright is not installed").expect
PATIENCE_MS = 1000 * running.PATIENCE_S
WISH = "please never deploy on a Friday, ticket QX-4711"
LONG = [fakes.system("You are helpful."), fakes.user(f"Hello, {WISH}."), *fakes.chat(60, 50)[1:]]
DAY = {
    "models": {"m": {"context_window": 2000, "tokenizer": "o200k", "input_price": 2}},
    "observe": {"text": True},
    "fold": {"mode": "observe"},
    "admin": {"token": "of the day"},
    "log": {"level": "error"},
}


def bodies():
    return [{"model": "m", "messages": LONG[:length], "max_tokens": 100} for length in (2, 40, 80, len(LONG))]


async def enforced(gateway, file):
    """Switch to enforce in the file, and wait until the running gateway has read it."""
    settings = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(settings | {"fold": {"mode": "enforce"}}))
    async with asyncio.timeout(running.PATIENCE_S):
        while (await gateway.chat(bodies()[0])).action != "none":  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # files are polled; nothing tells when


async def test_what_a_conversation_lost_is_found_and_explained(tmp_path, dashboard):
    async with StandIn(window=2000) as standin:
        text = running.configured(standin, {**DAY, "store": {"url": f"sqlite:///{tmp_path}/turnfold.db"}})
        async with running.as_command(text, tmp_path) as (gateway, _):
            # Morning: the team's traffic goes through as it is. Some of it is refused, as it always was.
            statuses = [(await gateway.chat(body)).status for body in bodies()]
            refused = statuses.count(400)
            assert refused >= 2

            opened = await dashboard(gateway)
            await opened.go(heading="Token needed")
            await opened.page.get_by_label("Token").fill(DAY["admin"]["token"])
            await opened.page.keyboard.press("Enter")
            await opened.heading("Requests")
            tiles = opened.page.locator(".tiles")
            await expect(tiles).to_contain_text("Would be folded")
            assert re.search(
                r"Tokens not sent\s+0\s", await tiles.inner_text()
            )  # nothing was done, so nothing is claimed

            # Noon: what would enforcing have done?
            told = orjson.loads(await turnfold_output(tmp_path, "report", "--config", "turnfold.yaml", "--json"))
            assert told["modes"]["observe"]["seen_refused"] == refused
            log = tmp_path / "log.jsonl"
            log.write_bytes(b"".join(orjson.dumps(body) + b"\n" for body in bodies()))
            replayed = await turnfold_output(tmp_path, "replay", log.name, "--config", "turnfold.yaml", "--json")
            assert orjson.loads(replayed)["refusals_avoided"] == refused
            [worst] = told["conversations_that_lose_most"]

            # Afternoon: enforce. The page that is open sees it.
            await enforced(gateway, tmp_path / "turnfold.yaml")
            assert [(await gateway.chat(body)).status for body in bodies()] == [200] * 4
            await expect(tiles).to_contain_text("Tokens not sent", timeout=PATIENCE_MS)
            await expect(opened.page.locator(".action-fold").first).to_be_visible(timeout=PATIENCE_MS)

            # Evening: "what was done to this conversation?"
            await opened.page.get_by_role("link", name="Folding").click()
            lost = opened.page.get_by_role("region", name="Conversations that lost most")
            await lost.get_by_role("link").first.click()
            await opened.heading("Conversation")
            assert worst["conversation"] in await opened.text()
            await (
                opened.page.locator("tr.moved", has=opened.page.locator(".action-fold"))
                .last.get_by_role("link")
                .click()
            )
            await opened.heading("Request tf-")
            story = await opened.text()
            assert "It did not fit, so it was made shorter" in story
            assert "turns no longer stand word for word" in story
            kept = opened.page.locator("tr.kept", has_text=WISH)
            await expect(kept.first).to_be_visible(timeout=PATIENCE_MS)  # the wish stands
            assert await opened.page.locator("tr.gone").count() > 0
            await opened.shot("day-explained")
