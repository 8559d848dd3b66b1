"""An operator at work in the dashboard: live requests, filters, the keyboard, the token, forgetting, trouble, hostile text."""

import asyncio
import re
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from gateway.observe.exchange import Call, Exchange, Lost, Parts
from tests import fakes, running
from tests.browser import traffic
from tests.browser.test_views import VIEWS

expect = pytest.importorskip("playwright.async_api", reason="playwright is not installed").expect
ROWS = "tbody tr[data-key^=tf-]"


async def ask(gateway, count=1, model="gpt-4o"):
    for _ in range(count):
        await gateway.chat({"model": model, "messages": [fakes.user("hi")]})


async def shown(opened, count):
    """Wait until so many requests stand in the table."""
    await expect(opened.page.locator(ROWS)).to_have_count(count, timeout=1000 * running.PATIENCE_S)


async def test_requests_appear_as_they_end_and_not_while_paused(gateway, standin, dashboard):
    served = await gateway(standin)
    opened = await dashboard(served)
    await opened.go()
    await ask(served, 2)
    await shown(opened, 2)
    await opened.page.get_by_role("button", name="Pause").click()
    assert "Paused." in await opened.page.locator("#state").inner_text()
    questions = len(opened.asked)
    await ask(served)
    await opened.page.wait_for_timeout(2500)  # longer than the page's own interval: nothing may happen
    assert len(opened.asked) == questions
    await opened.page.get_by_role("button", name="Pause").click()
    await shown(opened, 3)


async def test_a_long_answer_that_ends_behind_many_short_ones_appears(gateway, standin, dashboard):
    served = await gateway(standin)
    for number in range(150):
        served.inside.gateway.observe(replace(record(f"tf-{number}"), at=1.8e9 + number))
    opened = await dashboard(served)
    await opened.page.clock.install()
    await opened.go()
    await expect(opened.page.locator("#state")).to_contain_text("150 requests.")
    served.inside.gateway.observe(replace(record("tf-long"), at=1.8e9 - 60, total_s=300.0))
    async with opened.page.expect_response("**/api/exchanges*limit=2000*") as asked_for_all:
        while not asked_for_all.is_done():
            await opened.page.clock.run_for(2100)  # one interval of the page
    await expect(opened.page.locator("#state")).to_contain_text("151 requests.")
    for _ in range(3):
        await opened.page.get_by_role("button", name="more").click()
    await expect(opened.page.locator(ROWS)).to_have_count(151)


async def test_the_figures_are_of_all_requests_and_the_table_has_the_newest(gateway, standin, dashboard):
    served = await gateway(standin)
    for number in range(900):
        served.inside.gateway.observe(
            replace(record(f"tf-{number}"), at=1.8e9 + number, status=500 if number < 9 else 200)
        )
    opened = await dashboard(served)
    await opened.go()
    await shown(opened, 50)
    tiles = opened.page.locator(".tiles")
    await expect(tiles).to_contain_text(re.compile(r"Requests\s*900"))
    await expect(tiles).to_contain_text(re.compile(r"Errors\s*9"))
    label = await opened.page.get_by_role("img", name="Requests over time").get_attribute("aria-label")
    assert "900 in all" in label


async def test_while_the_gateway_counts_the_requests_are_shown_already(gateway, standin, dashboard):
    served = await gateway(standin)
    await ask(served, 2)
    opened = await dashboard(served)
    held = asyncio.Event()

    async def hold(route):
        await held.wait()
        await route.continue_()

    await opened.page.route("**/api/sums*", hold)
    await opened.go()
    await shown(opened, 2)
    await opened.page.get_by_text("is counting the requests").wait_for()
    held.set()
    await expect(opened.page.locator(".tiles")).to_contain_text(re.compile(r"Requests\s*2"))


async def test_the_dashboard_works_below_a_base_path(gateway, standin, dashboard):
    served = await gateway(standin, {**traffic.CONFIG, "server": {"base_path": "/llm"}, "admin": {"token": "t"}})
    opened = await dashboard(served)
    await opened.page.goto(f"{served.admin_url}/llm/dashboard")
    await opened.page.get_by_label("Token").fill("t")
    await opened.page.keyboard.press("Enter")
    await opened.heading("Requests")
    await opened.page.get_by_text("No request matches").wait_for()
    await opened.page.get_by_role("link", name="Health", exact=True).click()
    await opened.heading("Health")
    await expect(opened.page.locator("main")).to_contain_text("standin")
    outside = [url for url in opened.asked if not url.startswith(f"{served.admin_url}/llm/")]
    assert outside == [], "a proxy that forwards only the base path reaches everything"


async def test_a_hidden_page_asks_nothing(gateway, standin, dashboard):
    opened = await dashboard(await gateway(standin))
    await opened.go()
    hide = "Object.defineProperty(document, 'hidden', {{value: {}, configurable: true}}); document.dispatchEvent(new Event('visibilitychange'))"
    await opened.page.evaluate(hide.format("true"))
    await opened.page.wait_for_load_state("networkidle")
    questions = len(opened.asked)
    await opened.page.wait_for_timeout(2500)  # as above
    assert len(opened.asked) == questions
    async with opened.page.expect_request("**/api/exchanges*"):
        await opened.page.evaluate(hide.format("false"))


async def test_filters_narrow_the_requests_and_stand_in_the_address(gateway, standin, dashboard):
    served = await gateway(standin)
    await ask(served, 3, "gpt-4o")
    await ask(served, 2, "gpt-4o-mini")
    opened = await dashboard(served)
    await opened.go()
    await shown(opened, 5)
    await opened.page.get_by_label("Model").select_option("gpt-4o-mini")
    await shown(opened, 2)
    assert opened.page.url.endswith("#/requests?model=gpt-4o-mini")
    await opened.page.get_by_label("Period").select_option("1h")
    await shown(opened, 2)
    await opened.page.get_by_role("link", name="Models", exact=True).click()
    await opened.heading("Models")
    assert await opened.page.locator("main h2").all_inner_texts() == ["gpt-4o-mini"]
    await opened.page.go_back()
    await opened.heading("Requests")
    await opened.page.get_by_role("link", name="Clear filters").click()
    await shown(opened, 5)


async def test_key_and_session_are_filters_too(gateway, standin, dashboard):
    served = await gateway(standin)
    for number, (key, session) in enumerate([("team-a", "one"), ("team-a", "two"), ("team-b", "three")]):
        served.inside.gateway.observe(
            replace(record(f"tf-{number}"), key=key, session=session, conversation=f"c{number}")
        )
    opened = await dashboard(served)
    await opened.go()
    await shown(opened, 3)
    await opened.page.get_by_label("Key").select_option("team-a")
    await shown(opened, 2)
    await opened.page.get_by_label("Session").select_option("two")
    await shown(opened, 1)
    assert "two" in await opened.page.locator(ROWS).inner_text()


async def test_everything_is_reached_by_keyboard(gateway, standin, dashboard):
    served = await gateway(standin, traffic.CONFIG)
    await traffic.conversation(served, range(40, 42))
    opened = await dashboard(served)
    await opened.go()
    await shown(opened, 2)
    keys = opened.page.keyboard
    await keys.press("Tab")
    assert await focused(opened) == "Skip to the content"
    await keys.press("Enter")
    for _ in range(10):
        await keys.press("Tab")
        if await opened.page.evaluate("document.activeElement.closest('tbody') !== null"):
            break
    await keys.press("Enter")
    await opened.heading("Request tf-")
    assert "#/request/" in opened.page.url
    await expect(opened.page.locator("main h1")).to_be_focused()  # a screen reader begins there
    await opened.page.get_by_label("Theme").focus()
    outline = await opened.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


async def focused(opened):
    return await opened.page.evaluate("document.activeElement.innerText")


async def test_an_update_takes_neither_focus_nor_an_opened_part_away(gateway, standin, dashboard):
    served = await gateway(standin)
    await ask(served, 2)
    opened = await dashboard(served)
    await opened.go("#/models", "Models")
    await opened.page.locator("summary").click()
    await ask(served)
    await expect(opened.page.locator(".facts dd").first).to_have_text("3", timeout=1000 * running.PATIENCE_S)
    assert await opened.page.locator("details").get_attribute("open") is not None
    assert await focused(opened) == "Figures"


async def test_the_theme_is_switched_and_kept(gateway, standin, dashboard):
    opened = await dashboard(await gateway(standin), color_scheme="light")
    await opened.go()
    background = "getComputedStyle(document.body).backgroundColor"
    light = await opened.page.evaluate(background)
    await opened.page.get_by_label("Theme").select_option("dark")
    dark = await opened.page.evaluate(background)
    assert dark != light
    await opened.page.reload()
    await opened.heading()
    assert await opened.page.evaluate(background) == dark
    await opened.page.get_by_label("Theme").select_option("Auto")
    assert await opened.page.evaluate(background) == light


async def test_the_token_is_asked_for_and_kept_for_the_tab(gateway, standin, dashboard):
    served = await gateway(standin, {"admin": {"token": "correct horse"}})
    await ask(served)
    opened = await dashboard(served)
    await opened.go(heading="Token needed")
    await opened.page.get_by_label("Token").fill("wrong")
    await opened.page.keyboard.press("Enter")
    await opened.page.get_by_role("alert").wait_for()
    await opened.page.get_by_label("Token").fill("correct horse")
    await opened.page.get_by_role("button", name="Continue").click()
    await shown(opened, 1)
    await opened.page.reload()
    await shown(opened, 1)
    assert not any("correct" in url for url in opened.asked)
    await opened.page.get_by_role("button", name="Drop the token").click()
    await opened.heading("Token needed")
    assert await opened.page.locator(ROWS).count() == 0


async def test_what_was_learned_is_forgotten_after_a_question(gateway, standin, dashboard):
    token = {"admin": {"token": "t"}}
    served = await gateway(standin, {**traffic.CONFIG, **token})
    standin.script.extend([fakes.refuse(limit=1200)])
    await traffic.conversation(served, range(30, 31), "small")
    opened = await dashboard(served)
    await opened.go("#/learned", "Token needed")
    await opened.page.get_by_label("Token").fill("t")
    await opened.page.keyboard.press("Enter")
    await opened.heading("Learned")
    row = opened.page.locator("tbody tr", has_text="window")
    told = await row.inner_text()
    assert "1,200" in told
    assert "stated" in told
    assert "1 refusal" in told
    await row.get_by_role("button").click()
    await opened.page.get_by_role("button", name="Cancel").click()
    assert served.inside.gateway.learning.facts()
    await row.get_by_role("button").click()
    async with opened.page.expect_response("**/api/forget") as answer:
        await opened.page.get_by_role("dialog").get_by_role("button", name="Forget", exact=True).click()
    assert (await answer.value).status == 200
    await opened.page.get_by_text("Nothing was learned yet").wait_for()
    assert not served.inside.gateway.learning.facts()


async def test_a_gateway_that_is_gone_is_said_and_comes_back(standin, dashboard, tmp_path):
    port, admin_port = running.free_ports(2)
    ports = {"server": {"port": port}, "admin": {"port": admin_port}}
    config = running.configured(standin, ports)
    async with running.in_process(config) as gateway:
        await ask(gateway)
        opened = await dashboard(gateway)
        await opened.go()
        await shown(opened, 1)
    await opened.page.get_by_role("alert").wait_for()
    assert "does not answer" in await opened.text()
    assert await opened.page.locator(ROWS).count() == 1  # what was known still stands
    async with running.in_process(config):
        await opened.page.locator(".problem").wait_for(state="detached")


def record(request_id, text=""):
    """A record with a text in every field that may hold one."""
    return Exchange(
        request_id=request_id, upstream=text, model=text, entry=text, action="fold", status=200, stream=False, window=4000,
        tokens_before=5000, tokens_after=3000, basis=text, turns_folded=3, attempts=1, why="folded", warning=text, error=text,
        refusals=(text,) if text else (), mode="enforce", format=text, key=text, at=1.8e9, client=text, method=text, path=text,
        session=text, conversation=text, model_used=text, calls=(Call(text, text, 200, text, 4000, 3000, 1, 0.1),),
        lost=Lost(3, 2, 1, 5), parts=Parts(10, 20, 30, 40, 50, 60, 70),
    )  # fmt: skip


async def test_hostile_text_in_every_field_is_shown_and_inert(gateway, standin, dashboard):
    served = await gateway(standin, traffic.CONFIG)
    answer = await served.chat({"model": traffic.HOSTILE, "messages": [fakes.user(traffic.HOSTILE)]})
    await served.settled()
    sent = answer.headers["x-turnfold-request-id"]
    identity = re.sub("[/{}]", "", traffic.HOSTILE)  # what no address of the admin port may have
    served.inside.gateway.observe(replace(record(identity, traffic.HOSTILE), conversation=identity))
    opened = await dashboard(served)
    name, model = quote(identity, safe=""), quote(traffic.HOSTILE, safe="")
    for view in (*VIEWS, f"conversation/{name}", f"request/{name}", f"request/{sent}", f"requests?model={model}"):
        await opened.go(f"#/{view}")
        assert await opened.page.evaluate("window.harmed") is None, view
        assert await opened.page.locator("main img, main script, #filters img").count() == 0, view
        assert "\u202e" not in await opened.text(), view
        if view not in ("learned", "health"):
            assert "<script>window.harmed=2</script>" in await opened.page.inner_text("body"), view
            assert "[U+202E]" in await opened.page.inner_text("body"), view


ATTACKS = [
    "document.body.innerHTML = '<b>x</b>'",
    "document.body.setAttribute('onclick', 'window.harmed = 1')",
    "document.body.append(Object.assign(document.createElement('script'), {text: 'window.harmed = 1'}))",
    "eval('window.harmed = 1')",
]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_the_policy_stops_what_the_page_never_does(gateway, standin, dashboard, attack):
    opened = await dashboard(await gateway(standin))
    await opened.go()
    tried = f"try {{ {attack}; done() }} catch (error) {{ done(error.name) }}"
    error = await opened.page.evaluate(
        f"new Promise(done => setTimeout(() => {{ {tried} }}))"
    )  # as the page's own code
    assert error in ("TypeError", "EvalError")
    assert await opened.page.evaluate("window.harmed") is None
    opened.problems.clear()  # the policy has told the console, as it should
