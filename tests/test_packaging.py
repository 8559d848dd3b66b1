"""The package as others get it: the Dockerfile's own steps in an empty folder, and what comes out of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def instructions(stage: int) -> list[tuple[str, str]]:
    """The instructions of one build stage, continuation lines joined."""
    joined = re.sub(r"\\\n\s*", "", DOCKERFILE)
    stages = re.split(r"^FROM .*$", joined, flags=re.MULTILINE)[1:]
    lines = [line for line in stages[stage].splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


@pytest.mark.slow
def test_the_dockerfiles_steps_build_a_gateway_that_runs(tmp_path: Path) -> None:
    """No container engine is needed to prove that the steps work: they run here, in an empty folder."""
    source, target = tmp_path / "src", tmp_path / "opt"
    source.mkdir()
    for name, rest in instructions(0):
        if name == "COPY":
            *files, where = rest.split()
            for file in files:
                place = source / where / (file if len(files) > 1 else "") if where != "./" else source / file
                if (ROOT / file).is_dir():
                    shutil.copytree(ROOT / file, source / where, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / file, place)
        if name == "RUN":
            command = rest.replace("/opt/turnfold", str(target)).replace("python -m venv", f"{sys.executable} -m venv")
            subprocess.run(command, shell=True, cwd=source, check=True, capture_output=True)

    turnfold = target / "bin" / "turnfold"
    outside = {"cwd": tmp_path, "capture_output": True, "text": True, "env": {"PATH": os.environ["PATH"]}}
    request = tmp_path / "request.json"
    request.write_text('{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}')

    assert subprocess.run([turnfold, "--version"], check=True, **outside).stdout.startswith("turnfold, version ")
    told = subprocess.run([turnfold, "explain", str(request), "--json"], check=True, **outside).stdout
    assert '"window": 128000' in told
    assert (
        subprocess.run([turnfold, "check", str(ROOT / "config/turnfold.yaml")], check=False, **outside).returncode == 0
    )


def test_the_image_runs_as_nobody_in_particular_and_is_asked_for_its_health() -> None:
    names = dict(instructions(1))

    assert names["USER"] == "10001"
    assert "/healthz" in names["HEALTHCHECK"]
    assert all((ROOT / file).exists() for name, rest in instructions(0) if name == "COPY" for file in rest.split()[:-1])
