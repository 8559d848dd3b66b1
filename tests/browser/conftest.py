"""What tests of the dashboard ask for: a real Chromium, headless, and a page that notices everything that goes wrong in it."""

import os
import re
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_sdks import install
from tests.running import PATIENCE_S, ROOT, Gateway

NODE = Path(__file__).parent / "node"
SHOTS = ROOT / "build" / "screenshots"
"""Where pictures of the views are kept; not in the repository."""
WIDE, NARROW = (1280, 900), (390, 844)


@dataclass
class Opened:
    """A page of the dashboard, and what was noticed while it was open."""

    page: Any
    gateway: Gateway
    problems: list[str] = field(default_factory=list)
    """Errors, refusals by the page's policy, dialogs."""
    asked: list[str] = field(default_factory=list)
    """Every address that the browser asked for."""

    async def go(self, address: str = "", heading: str | None = None) -> None:
        """Open a view by its address within the page, and wait until it is drawn."""
        from playwright.async_api import expect  # noqa: PLC0415  # optional: its absence skips tests, and is no error here

        await self.page.goto(f"{self.gateway.admin_url}/dashboard/{address}")
        view = re.match(r"#/(\w+)", address)
        await expect(self.page).to_have_title(
            f"{view[1].capitalize() if view else 'Requests'} · Turnfold"
        )  # the view before stands until then
        await self.heading(heading)

    async def heading(self, text: str | None = None) -> None:
        """Wait for the heading of a view."""
        found = self.page.locator("main h1")
        await (found.filter(has_text=text) if text else found).wait_for()

    async def text(self) -> str:
        """Return all text of the view."""
        return await self.page.locator("main").inner_text()

    async def shot(self, name: str) -> None:
        """Keep a picture of the whole view."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


@pytest.fixture
async def chromium():
    """A browser of the system, without a display and without a network of its own."""
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield browser
        await browser.close()


@pytest.fixture
async def dashboard(chromium):
    """Open pages of gateways: ``await dashboard(gateway)``; each fails its test when something went wrong in it."""
    opened: list[Opened] = []
    async with AsyncExitStack() as stack:

        async def open_(gateway: Gateway, *, size: tuple[int, int] = WIDE, **how: Any) -> Opened:
            viewport = {"width": size[0], "height": size[1]}
            context = await stack.enter_async_context(await chromium.new_context(viewport=viewport, **how))
            context.set_default_timeout(1000 * PATIENCE_S)
            found = Opened(await context.new_page(), gateway)
            opened.append(found)
            found.page.on("pageerror", lambda error: found.problems.append(f"error: {error}"))
            found.page.on("dialog", lambda dialog: found.problems.append(f"dialog: {dialog.message}"))
            found.page.on("console", lambda line: _noticed(found, line))
            found.page.on("request", lambda request: found.asked.append(request.url))
            return found

        yield open_
        for each in opened:
            assert each.problems == []
            assert [url for url in each.asked if not url.startswith(each.gateway.admin_url)] == []


def _noticed(found: Opened, line: Any) -> None:
    """Note what the console says, but for answers that a test wants: no token, no gateway."""
    expected = line.type != "error" or "Failed to load resource" in line.text
    if not expected or "Content Security Policy" in line.text:
        found.problems.append(f"console: {line.text}")


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which looks for barriers."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    install(NODE / "node_modules" / "axe-core", "npm", "ci", "--silent", cwd=NODE)
    return (NODE / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
