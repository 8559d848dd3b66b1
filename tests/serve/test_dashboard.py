"""The dashboard's files at the admin port: who gets them, with which headers, and that nobody pays for them unopened."""

import re

import pytest

from gateway.serve.admin import dashboard
from tests import raw
from tests.running import ROOT

TOKEN = {"admin": {"token": "secret"}}


async def ask(gateway, path, **headers):
    url = gateway.admin_url + path
    async with gateway.session.get(url, headers=headers, allow_redirects=False) as response:
        return response.status, response.headers, await response.read()


async def test_the_page_and_all_that_it_names_are_served(gateway, standin):
    running = await gateway(standin)
    status, headers, page = await ask(running, "/dashboard/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    named = re.findall(r'(?:src|href)="([^"#]+)"', page.decode())
    assert {"app.js", "style.css", "icon.svg"} <= set(named)
    for name in named:
        status, headers, body = await ask(running, f"/dashboard/{name}")
        assert status == 200, name
        assert headers["Content-Type"] in dashboard.TYPES.values()
        assert body


async def test_every_module_that_a_module_imports_is_there():
    for name, file in dashboard.files().items():
        for imported in re.findall(r'from "(\./|\.\./)([^"]+)"', file.body.decode()) if name.endswith(".js") else ():
            folder = name.rpartition("/")[0] if imported[0] == "./" else ""
            assert f"{folder}/{imported[1]}".lstrip("/") in dashboard.files(), (name, imported)


@pytest.mark.parametrize("path", ["/", "/dashboard"])
async def test_a_browser_is_sent_to_the_page(gateway, standin, path):
    status, headers, _ = await ask(await gateway(standin), path)
    assert (status, headers["Location"]) == (302, "dashboard/")


async def test_the_page_is_served_below_a_base_path(gateway, standin):
    running = await gateway(standin, {"server": {"base_path": "/llm"}, **TOKEN})
    status, headers, _ = await ask(running, "/llm/dashboard")
    assert (status, headers["Location"]) == (302, "dashboard/")  # from /llm/dashboard this is /llm/dashboard/
    for path in ("/llm/dashboard/", "/llm/dashboard/app.js", "/llm/dashboard/views/health.js", "/dashboard/app.js"):
        assert (await ask(running, path))[0] == 200, path
    assert (await ask(running, "/llm/api/learned"))[0] == 401


async def test_the_policy_allows_the_page_s_own_files_and_nothing_inline(gateway, standin):
    _, headers, page = await ask(await gateway(standin), "/dashboard/")
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[kind] for kind in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert {policy[kind] for kind in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(rb"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)


async def test_no_file_of_the_page_refers_to_another_machine():
    for name, file in dashboard.files().items():
        if not name.startswith("vendor/"):  # its comments name pages; tests/browser watches what a browser asks for
            assert set(re.findall(rb"https?://[^\s\"')]+", file.body)) <= {b"http://www.w3.org/2000/svg"}, name


async def test_the_page_needs_no_token_and_its_data_does(gateway, standin):
    running = await gateway(standin, TOKEN)
    assert (await ask(running, "/dashboard/"))[0] == 200
    assert (await ask(running, "/dashboard/app.js"))[0] == 200
    for path in ("/api/exchanges", "/api/exchanges/healthz", "/api/learned", "/api/prices", "/metrics", "/nothing"):
        assert (await ask(running, path))[0] == 401, path


@pytest.mark.parametrize(
    "name", ["nothing.js", "../admin.py", "..%2fadmin.py", "%2e%2e/admin.py", "vendor/uPlot.LICENSE", "views/"]
)
async def test_what_is_no_file_of_the_page_is_not_served(gateway, standin, name):
    running = await gateway(standin)
    port = int(running.admin_url.rpartition(":")[2])
    assert (await raw.ask(port, raw.request(f"/dashboard/{name}"))).status in (400, 404)


PAGES = [
    ({"host": "evil.example"}, 403),
    ({"host": "127.0.0.1:1", "origin": "https://evil.example"}, 403),
    ({"host": "127.0.0.1:1", "sec-fetch-site": "cross-site"}, 403),
    ({"host": "127.0.0.1:1", "sec-fetch-site": "none"}, 200),
    ({"host": "127.0.0.1:1", "sec-fetch-site": "same-origin"}, 200),
]


@pytest.mark.parametrize(("headers", "status"), PAGES)
async def test_the_rules_of_the_admin_port_hold_for_the_page(gateway, standin, headers, status):
    running = await gateway(standin)
    assert (await ask(running, "/dashboard/", **headers))[0] == status


async def test_a_browser_s_copy_is_used_again(gateway, standin):
    running = await gateway(standin)
    _, headers, _ = await ask(running, "/dashboard/app.js")
    status, again, body = await ask(running, "/dashboard/app.js", **{"If-None-Match": headers["ETag"]})
    assert (status, again["ETag"], body) == (304, headers["ETag"], b"")


async def test_an_unopened_page_costs_nothing(gateway, standin):
    dashboard.files.cache_clear()
    running = await gateway(standin)
    await running.ask("GET", "/models")
    assert dashboard.files.cache_info().misses == 0
    await ask(running, "/dashboard/")
    assert dashboard.files.cache_info().misses == 1


def test_the_packaged_library_carries_its_licence():
    vendor = dashboard.FOLDER / "vendor"
    notice = (ROOT / "NOTICE").read_text()
    assert "The MIT License" in (vendor / "uPlot.LICENSE").read_text()
    assert "uPlot" in notice
    assert "Leon Sorokin" in notice
