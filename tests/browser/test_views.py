"""Every view of the dashboard in a real browser: it draws what the gateway did, without barriers, in light and dark, narrow and wide."""

import pytest
from playwright.async_api import expect

from tests.browser import traffic
from tests.browser.conftest import NARROW, WIDE

VIEWS = ["requests", "models", "folding", "learned", "health"]
LOOKS = [("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)]


async def barriers(opened, axe):
    """What axe-core finds in the view: nothing, if all is well."""
    await opened.page.evaluate(axe)
    found = await opened.page.evaluate("axe.run(document)")
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]]


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
async def test_each_view_is_drawn_without_barriers(gateway, standin, dashboard, axe, scheme, size):
    running = await gateway(standin, traffic.CONFIG)
    folded = await traffic.day(running, standin)
    opened = await dashboard(running, size=size, color_scheme=scheme, reduced_motion="reduce")
    name = (await record(running, folded))["conversation"]
    for view in (*VIEWS, f"conversation/{name}", f"request/{folded}"):
        await opened.go(f"#/{view}")
        await opened.page.get_by_text("is counting the requests").wait_for(state="detached")
        for chart in await opened.page.locator(".chart").all():
            await chart.locator("canvas").wait_for()
        assert await barriers(opened, axe) == [], view
        wider = await opened.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{view} is wider than its window"
        await opened.shot(f"{view.partition('/')[0]}-{scheme}-{'narrow' if size == NARROW else 'wide'}")


async def record(running, request_id):
    async with running.session.get(f"{running.admin_url}/api/exchanges/{request_id}") as response:
        return await response.json()


async def test_the_requests_say_what_was_done(gateway, standin, dashboard):
    running = await gateway(standin, traffic.CONFIG)
    folded = await traffic.conversation(running, range(40, 44))
    known = await record(running, folded)
    opened = await dashboard(running)
    await opened.go()
    row = opened.page.locator(f'tr[data-key="{folded}"]')
    told = await row.inner_text()
    assert "folded" in told
    assert f"{known['tokens_before']:,} → {known['tokens_after']:,}" in told
    tiles = await opened.page.locator(".tiles").inner_text()
    assert "4\n" in tiles.split("Requests")[1]
    assert "$" in tiles  # models.m has a price


async def test_one_request_is_explained_to_the_last_line(gateway, standin, dashboard):
    running = await gateway(standin, traffic.CONFIG)
    folded = await traffic.conversation(running, range(40, 42))
    await running.settled()
    known = await record(running, folded)
    opened = await dashboard(running)
    await opened.go(f"#/request/{folded}", folded)
    text = await opened.text()
    assert f"The client sent {known['tokens_before']:,} prompt tokens" in text
    bar = await opened.page.get_by_role("img", name="The window of 4,000 tokens").get_attribute("aria-label")
    assert f"System messages {known['parts']['system']:,}" in bar
    parts = opened.page.get_by_role("region", name="What fills the window")
    for part in ("digest", "quotes", "history", "question", "reserve"):
        assert f"{known['parts'][part]:,}" in await parts.inner_text(), part
    lines = opened.page.get_by_role("region", name="What stood, what was quoted, what went")
    assert traffic.SECRET in await lines.inner_text()
    assert await lines.locator("tr.gone").count() == sum(not line["kept"] for line in known["text"]) > 0
    assert await lines.locator("tr.kept").count() == sum(line["kept"] for line in known["text"]) > 0


async def test_where_text_is_off_none_is_shown(gateway, standin, dashboard):
    running = await gateway(standin, {**traffic.CONFIG, "observe": {"text": False}})
    folded = await traffic.conversation(running, range(40, 42))
    opened = await dashboard(running)
    await opened.go(f"#/request/{folded}", folded)
    assert traffic.SECRET not in await opened.page.content()
    assert "observe.text" in await opened.text()


async def test_a_conversation_shows_where_its_cut_moved(gateway, standin, dashboard):
    running = await gateway(standin, traffic.CONFIG)
    last = await traffic.conversation(running, range(10, 70, 5))
    opened = await dashboard(running)
    await opened.go(f"#/conversation/{(await record(running, last))['conversation']}", "Conversation")
    rows = opened.page.locator("tbody tr[data-key^=tf-]")
    assert await rows.count() == 12
    turns = [int(text) for text in await rows.locator("td:nth-child(5)").all_inner_texts()]
    moved = [place for place, count in enumerate(turns) if count != (turns[place - 1] if place else 0)]
    assert len(moved) >= 2
    assert await opened.page.locator("tbody tr.moved").count() == len(moved)
    label = await opened.page.get_by_role("img", name="Folded turns over time").get_attribute("aria-label")
    assert f"to {max(turns)} turns" in label
    await expect(opened.page.locator(".chart canvas")).to_have_count(2)


async def test_a_view_takes_nothing_over_from_the_one_before(gateway, standin, dashboard):
    running = await gateway(standin, traffic.CONFIG)
    last = await traffic.conversation(running, range(40, 43))
    name = (await record(running, last))["conversation"]
    opened = await dashboard(running)
    for before in VIEWS:
        await opened.go(f"#/{before}")
        await opened.page.evaluate(f"location.hash = '#/conversation/{name}'")
        await opened.heading("Conversation")
        assert await opened.page.locator(".chart").count() == 2
        await expect(opened.page.locator(".chart canvas"), before).to_have_count(2)


async def test_models_show_how_full_their_windows_were(gateway, standin, dashboard):
    running = await gateway(standin, traffic.CONFIG)
    await traffic.conversation(running, range(40, 43))
    await traffic.conversation(running, range(2, 4), "gpt-4o")
    opened = await dashboard(running)
    await opened.go("#/models", "Models")
    card = opened.page.locator("section", has=opened.page.get_by_role("heading", name="m", exact=True))
    label = await card.get_by_role("img").get_attribute("aria-label")
    assert "3 requests did not fit" in label
    assert "window of 4,000 tokens" in await card.inner_text()
    assert await card.locator("svg .over").count() > 0


async def test_folding_shows_stages_refusals_and_savings(gateway, standin, dashboard):
    running = await gateway(standin, traffic.CONFIG)
    await traffic.day(running, standin)
    opened = await dashboard(running)
    await opened.go("#/folding", "Folding")
    stages = await opened.page.get_by_role("region", name="Tokens saved by each stage of folding").inner_text()
    assert "the oldest turns folded" in stages
    refusals = await opened.page.get_by_role("region", name="Refusals as too long, by upstream and sign").inner_text()
    assert "standin" in refusals
    models = await opened.page.get_by_role("region", name="Savings by model").inner_text()
    assert "$2.00, cached $0.500" in models
    assert "unknown" in models  # `small` has no price
    worst = opened.page.get_by_role("region", name="Conversations that lost most")
    await worst.locator("a").first.click()
    await opened.heading("Conversation")


async def test_health_shows_what_the_gateway_depends_on(gateway, standin, dashboard):
    running = await gateway(standin, traffic.CONFIG)
    opened = await dashboard(running)
    await opened.go("#/health", "Health")
    text = await opened.text()
    assert "standin" in text
    assert "in use" in text
    assert "memory" in text
    assert "Off: no model is named in fold.summary.model" in text


async def test_nothing_yet_is_said_as_such(gateway, standin, dashboard):
    opened = await dashboard(await gateway(standin))
    for view, words in [
        ("requests", "No request matches."), ("models", "No request with a known window"), ("folding", "Nothing was folded."),
        ("learned", "Nothing was learned yet"), ("request/tf-none", "No such request"), ("conversation/none", "No such conversation"),
    ]:  # fmt: skip
        await opened.go(f"#/{view}")
        await opened.page.get_by_text(words).first.wait_for()
