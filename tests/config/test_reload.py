"""The watcher: a changed file is taken up, a bad one refused, and the last good settings stay."""

import asyncio
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.config import Settings, load, reload
from gateway.config.reload import READ_AT_START, Watcher, _value


@dataclass
class File:
    """A configuration file, and the settings that were taken from it."""

    path: Path
    taken: list[Settings] = field(default_factory=list)
    clock_ns: int = 10**18

    def write(self, text: str) -> None:
        """Write the file; its time moves on even where the file system's clock is coarse."""
        self.path.write_text(text)
        self.clock_ns += 10**9
        os.utime(self.path, ns=(self.clock_ns, self.clock_ns))

    def replace(self, text: str) -> None:
        """Put another file in its place, as editors and mounted volumes do."""
        other = self.path.with_suffix(".new")
        other.write_text(text)
        other.rename(self.path)

    def watcher(self) -> Watcher:
        return Watcher(self.path, {}, load(self.path, {}), self.taken.append)

    @property
    def levels(self) -> list[str]:
        return [settings.log.level for settings in self.taken]


@pytest.fixture
def file(tmp_path):
    file = File(tmp_path / "turnfold.yaml")
    file.write("log: {level: info}")
    return file


async def look(watcher: Watcher) -> bool:
    """Look twice: once to see that the file changed, once to see that it stands still."""
    return any([await watcher.poll(), await watcher.poll()])


async def test_a_file_that_stands_still_is_not_read_again(file):
    watcher = file.watcher()
    assert not await look(watcher)
    assert file.taken == []


@pytest.mark.parametrize("text", ["log: {level: error}", "log: {level: no}"], ids=["valid", "not valid"])
async def test_a_change_between_the_start_and_the_first_look_is_read(file, text):
    loaded = load(file.path, {})
    file.write(text)
    watcher = Watcher(file.path, {}, loaded, file.taken.append)
    with capture_logs() as logs:
        await look(watcher)
    assert file.levels == ["error"] or logs[-1]["event"] == "configuration_refused"
    assert not await look(watcher)


async def test_a_file_that_was_emptied_before_the_first_look_is_refused(file):
    file.write("upstreams: {u: {provider: vllm, base_url: 'http://h/v1'}}\ndefault_upstream: u")
    loaded = load(file.path, {})
    file.write("")
    watcher = Watcher(file.path, {}, loaded, file.taken.append)
    with capture_logs() as logs:
        await look(watcher)
    assert logs[-1]["event"] == "configuration_refused"
    assert file.taken == []


@pytest.mark.parametrize("change", [File.write, File.replace])
async def test_a_changed_file_is_taken_up_once(file, change):
    watcher = file.watcher()
    change(file, "log: {level: debug}")
    assert await look(watcher)
    assert not await look(watcher)
    assert file.levels == ["debug"]


async def test_a_file_that_is_still_being_written_is_left_alone(file):
    watcher = file.watcher()
    file.write("")
    assert not await watcher.poll()
    file.write("log: {level: err")
    assert not await watcher.poll()
    file.write("log: {level: error}")
    assert await look(watcher)
    assert file.levels == ["error"]


async def test_a_bad_file_is_refused_with_all_its_problems_and_mended_later(file):
    watcher = file.watcher()
    file.write("log: {level: loud}\nnonsense: 1")
    with capture_logs() as logs:
        assert not await look(watcher)
        assert not await look(watcher)
    assert [entry["event"] for entry in logs] == ["configuration_refused"]
    assert len(logs[0]["problems"]) == 2
    file.write("log: {level: debug}")
    assert await look(watcher)
    assert file.levels == ["debug"]


KEYS = f"keys: {{team-a: {{hash: 'sha256:{'1' * 64}'}}}}"
UPSTREAM = "upstreams: {local: {provider: vllm, base_url: http://127.0.0.1:8000/v1}}"

LOSSES = [
    # what was in the file, what is left of it, what is said to be lost
    (f"{UPSTREAM}\n{KEYS}", "", ["upstreams", "keys"]),
    (f"{UPSTREAM}\n{KEYS}", "# emptied\nnull", ["upstreams", "keys"]),
    (f"log: {{level: info}}\n{UPSTREAM}", "log: {level: error}", ["upstreams"]),
    (f"{UPSTREAM}\n{KEYS}", UPSTREAM, ["keys"]),
    (KEYS, "keys: {}", ["keys"]),
]


@pytest.mark.parametrize(("before", "left", "lost"), LOSSES)
async def test_a_file_cut_short_takes_neither_the_upstreams_nor_the_last_key_away(file, before, left, lost):
    file.write(before)
    watcher = file.watcher()
    file.write(left)
    with capture_logs() as logs:
        assert not await look(watcher)
    assert [entry["event"] for entry in logs] == ["configuration_refused"]
    assert [problem.split(": ")[1] for problem in logs[0]["problems"]] == lost
    assert file.taken == []
    file.write(f"{before}\n# whole again")
    assert await look(watcher)


async def test_upstreams_and_keys_may_be_others_after_a_change(file):
    file.write(f"{UPSTREAM}\n{KEYS}")
    watcher = file.watcher()
    openai = "upstreams: {openai: {provider: openai, base_url: https://api.openai.com/v1}}"
    file.write(f"{openai}\n{KEYS.replace('team-a', 'team-b')}")
    assert await look(watcher)
    assert [*file.taken[0].upstreams, *file.taken[0].keys] == ["openai", "team-b"]


async def test_a_file_that_was_only_touched_is_not_taken_up(file):
    watcher = file.watcher()
    file.write("log: {level: info}")
    assert not await look(watcher)
    assert file.taken == []


async def test_a_file_that_goes_away_and_comes_back_changes_nothing_until_it_is_back(file):
    watcher = file.watcher()
    file.path.unlink()
    with capture_logs() as logs:
        assert not await look(watcher)
    assert [entry["event"] for entry in logs] == ["configuration_missing"]
    file.write("log: {level: error}")
    assert await look(watcher)
    assert file.levels == ["error"]


async def test_a_symbolic_link_that_is_swapped_is_a_change(tmp_path):
    for name, level in (("one", "info"), ("two", "error")):
        (tmp_path / name).write_text(f"log: {{level: {level}}}")
    link = tmp_path / "turnfold.yaml"
    link.symlink_to("one")
    file = File(link)
    watcher = file.watcher()
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(link)
    assert await look(watcher)
    assert file.levels == ["error"]


async def test_what_only_a_restart_can_change_is_said(file):
    watcher = file.watcher()
    file.write(
        "server: {port: 9999, max_body: 1MiB}\nlog: {level: error}\nobserve: {traces: 'http://h/v1/traces'}\nfold: {mode: observe}"
    )
    with capture_logs() as logs:
        assert await look(watcher)
    assert [(entry["event"], entry.get("settings")) for entry in logs] == [
        ("restart_needed", ["server.port", "log.level", "observe.traces"]),
        ("configuration_reloaded", None),
    ]
    assert file.taken[0].fold.mode == "observe"


def test_every_setting_that_is_read_at_the_start_has_a_value():
    for path in READ_AT_START:
        _value(Settings.simple("http://h/v1"), path)


async def test_settings_may_be_adopted_slowly(file):
    taken = []

    async def take(settings):
        taken.append(settings)

    watcher = Watcher(file.path, {}, load(file.path, {}), take)
    file.write("log: {level: debug}")
    assert await look(watcher)
    assert len(taken) == 1


async def test_settings_that_cannot_be_taken_up_are_refused_and_the_watcher_goes_on(file):
    taken = []

    def take(settings):
        if settings.log.level == "debug":
            raise FileNotFoundError(2, "No such file or directory", "/no/such/ca.pem")
        taken.append(settings)

    watcher = Watcher(file.path, {}, load(file.path, {}), take)
    file.write("log: {level: debug}")
    with capture_logs() as logs:
        assert not await look(watcher)
    assert logs[-1]["problems"] == ["/no/such/ca.pem: No such file or directory"]
    file.write("log: {level: error}")
    assert await look(watcher)
    assert len(taken) == 1


async def test_a_file_can_be_read_again_at_once(file):
    watcher = file.watcher()
    file.write("log: {level: error}")
    assert await watcher.reload()
    assert not await look(watcher)
    assert file.levels == ["error"]


async def test_files_are_read_beside_the_event_loop_and_one_after_the_other(file, monkeypatch):
    """A file with thousands of client keys takes a second."""
    threads, under_way = list[str](), list[int]()

    def slow_load(*arguments):
        threads.append(threading.current_thread().name)
        under_way.append(1)
        time.sleep(0.05)
        assert under_way == [1]
        under_way.clear()
        return load(*arguments)

    monkeypatch.setattr(reload, "load", slow_load)
    watcher = file.watcher()
    threads.clear()
    file.write("fold: {mode: 'off'}")
    reading = asyncio.gather(*(watcher.reload() for _ in range(3)))
    rounds = 0
    while not reading.done():  # counts the rounds of the loop
        await asyncio.sleep(0.001)
        rounds += 1
    assert await reading == [True] * 3
    assert rounds > 10
    assert threading.main_thread().name not in threads
