"""What operators install beside the gateway: the systemd unit, alert rules, the Grafana board, the scrape configuration. Each by its own checker."""

import re
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest
import yaml

from gateway.observe.metrics import Metrics
from gateway.serve.admin import gauges
from tests import fakes

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARD = orjson.loads((DEPLOY / "grafana.json").read_bytes())
NAME = re.compile(r"\bturnfold_[a-z_]+\b")


def promtool(*arguments, folder=DEPLOY, given=""):
    """Run Prometheus' own checker."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([program, *arguments], cwd=folder, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def exported():
    """The names under which Prometheus sees the metrics."""
    metrics = Metrics()
    counters = {f"{name}_total" for name, *_ in metrics.counters()}
    current = set(re.findall(r'"(turnfold_[a-z_]+)"', Path(gauges.__file__).read_text("utf-8")))
    return counters | {f"{name}_bucket" for name, *_ in metrics.histograms()} | current


def expressions():
    return [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]


def test_the_alert_rules_are_right():
    promtool("check", "rules", "alerts.yaml")


def test_the_alert_rules_fire_when_they_should():
    promtool("test", "rules", "alerts.test.yaml")


def test_every_alert_has_a_case_in_which_it_fires():
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    cases = yaml.safe_load((DEPLOY / "alerts.test.yaml").read_text())["tests"]
    fired = {check["alertname"] for case in cases for check in case["alert_rule_test"] if check["exp_alerts"]}
    assert {rule["alert"] for group in rules for rule in group["rules"]} == fired


@pytest.mark.parametrize("text", [*expressions(), (DEPLOY / "alerts.yaml").read_text()], ids=lambda text: text[:60])
def test_every_metric_that_is_asked_for_exists(text):
    assert set(NAME.findall(text)) <= exported()


def test_every_expression_of_the_board_is_one_of_prometheus(tmp_path):
    rules = [
        {"record": f"board:{number}", "expr": expr.replace("$__rate_interval", "5m").replace("$job", "turnfold")}
        for number, expr in enumerate(expressions())
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    promtool("check", "rules", "rules.yaml", folder=tmp_path)


def test_panels_of_the_board_have_places_of_their_own():
    taken = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
                assert x < 24
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_the_service_monitor_selects_the_admin_service():
    monitor = yaml.safe_load((DEPLOY / "servicemonitor.yaml").read_text())
    services = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "service.yaml").read_text()))
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    [service] = [each for each in services if wanted <= each["metadata"].get("labels", {}).items()]
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    secret = yaml.safe_load((DEPLOY / "kubernetes" / "secret.yaml").read_text())
    credentials = endpoint["authorization"]["credentials"]
    assert credentials["name"] == secret["metadata"]["name"]
    assert credentials["key"] in secret["stringData"]


def test_the_systemd_unit_is_right(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    unit = (DEPLOY / "turnfold.service").read_text()
    present = unit.replace("/opt/turnfold/bin/turnfold", "/bin/true")  # the checker wants a program that is there
    (tmp_path / "turnfold.service").write_text(present)
    done = subprocess.run(
        [program, "verify", str(tmp_path / "turnfold.service")], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if "turnfold.service" in line]
    assert complaints == []


async def test_a_scrape_is_what_prometheus_reads(gateway, standin):
    running = await gateway(standin, {"models": {"m": {"context_window": 4000}}})
    for size in (2, 60):
        await running.chat({"model": "m", "messages": fakes.chat(size)})
    async with running.session.get(f"{running.admin_url}/metrics") as response:
        scraped = await response.text()
    promtool("check", "metrics", given=scraped)
