"""The gateway runs as the image runs it: as a user without rights, on a read-only file system, with its store on a volume."""

import asyncio
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest
import yaml

from tests import fakes, running
from tests.deploy.test_deploy import named
from tests.test_packaging import instructions

USER = dict(instructions(1))["USER"]
"""Whom the image runs as."""
READ_ONLY = """
set -e
volume=$1 root=$2 app=$3; shift 3
mount --bind "$volume" "$volume"
mount --bind "$root" "$app"  # the checkout may stand in a folder of its user alone
for place in $(awk '{ print $2 }' /proc/self/mounts | sort -u); do
  case "$place" in "$volume"|/proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro "$place" ;; esac
done
exec "$@"
"""
"""Makes every file system of a mount namespace read-only but one folder, then becomes a program."""
PROGRAM = sys.executable if os.access(sys.executable, os.X_OK) else "/usr/bin/python3"


def namespace() -> list[str]:
    """The command that gives a program mounts of its own; skips where that is forbidden."""
    how = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*how, "mount", "--bind", "/tmp", "/tmp"], check=False).returncode
    ):
        pytest.skip("unshare is not installed or not allowed")
    return how


def user() -> list[str]:
    """The command that drops all rights; a test that runs without them keeps its user."""
    if os.geteuid():
        return []
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]


def seen_in(app: Path, place: str) -> str:
    """Return where a file or folder of the checkout stands below the folder in which every user finds it."""
    return place.replace(str(running.ROOT), str(app), 1) if place.startswith(str(running.ROOT)) else place


def readable(app: Path) -> dict[str, str]:
    """The environment in which a user without rights finds Python's packages, also where the interpreter is another user's."""
    packages = [seen_in(app, place) for place in sys.path if place.endswith("site-packages")]
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(app), *packages]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def prepared(folder: Path) -> Path:
    """Make a volume in a folder that every user may write, so that nothing but the file system keeps the gateway from writing beside it."""
    volume = folder / "volume"
    volume.mkdir()
    for each in (folder, *folder.parents):  # pytest's folders are its user's alone
        if each.stat().st_uid == os.geteuid() and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o755)
    folder.chmod(0o777)
    volume.chmod(0o777)
    return volume


def test_the_manifest_asks_for_what_is_tried_here() -> None:
    pod = named("Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert str(pod["securityContext"]["runAsUser"]) == USER
    compose = yaml.safe_load((running.ROOT / "deploy" / "compose.yaml").read_text())
    assert all(service["read_only"] for name, service in compose["services"].items() if name.startswith("gateway"))


@pytest.mark.parametrize("store", ["volume", "elsewhere"])
async def test_it_serves_and_stores_on_a_volume_and_refuses_a_store_elsewhere(standin, tmp_path: Path, store) -> None:
    inside = namespace()
    volume = prepared(tmp_path)
    port, admin_port = running.free_ports(2)
    where = volume if store == "volume" else tmp_path
    config = yaml.safe_load(running.configured(standin, {"store": {"url": f"sqlite:///{where}/turnfold.db"}}))
    config["server"]["port"], config["admin"]["port"] = port, admin_port
    (tmp_path / "turnfold.yaml").write_text(yaml.safe_dump(config))
    app = tmp_path / "app"
    app.mkdir()
    program = [
        seen_in(app, PROGRAM),
        "-m",
        "gateway",
        "serve",
        "--config",
        str(tmp_path / "turnfold.yaml"),
        "--log-format",
        "json",
    ]
    process = await asyncio.create_subprocess_exec(
        *inside, "bash", "-c", READ_ONLY, "read-only", str(volume), str(running.ROOT), str(app), *user(), *program,
        cwd=volume, env=readable(app), stdout=PIPE, stderr=STDOUT
    )  # fmt: skip
    try:
        await running.answering(port, process)
        async with running.client() as session:
            gateway = running.Gateway(f"http://127.0.0.1:{port}/v1", f"http://127.0.0.1:{admin_port}", session)
            status = (await gateway.chat({"model": "m", "messages": fakes.chat(40, 50), "max_tokens": 50})).status
            told = Path(f"/proc/{process.pid}/status")
            ran_as = (await asyncio.to_thread(told.read_text)).partition("Uid:")[2].split()[0]
    finally:
        if process.returncode is None:
            process.terminate()
        output = (await asyncio.wait_for(process.communicate(), running.PATIENCE_S))[0].decode()
    assert status == 200, output
    assert process.returncode == 0, output
    assert ran_as == (USER if os.geteuid() == 0 else str(os.geteuid()))
    assert "Traceback" not in output
    stored = {each.name for each in volume.iterdir()}
    if store == "volume":
        assert {"turnfold.db", "turnfold-records.db"} <= stored
        assert "store_unwritable" not in output
    else:
        assert "store_unwritable" in output, "served without a store, and told so"
        assert "turnfold.db" not in stored
