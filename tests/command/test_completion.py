"""Shells complete the command line as the documentation says."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.running import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
COMMAND = "from gateway.command.cli import main; main(prog_name='turnfold')"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_gives_a_script_for_the_shell(shell):
    (documented,) = re.findall(rf"_TURNFOLD_COMPLETE={shell}_source", PAGE)
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("click asks bash for its version")
    name, value = documented.split("=")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND],
        env={**os.environ, name: value},
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert "_TURNFOLD_COMPLETE" in done.stdout


def test_commands_are_completed():
    asked = {"_TURNFOLD_COMPLETE": "bash_complete", "COMP_WORDS": "turnfold re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND],
        env={**os.environ, **asked},
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert set(done.stdout.split()) == {"plain,replay", "plain,report"}
