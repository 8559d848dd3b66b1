"""A serving process prepares itself for many clients."""

import os
import subprocess
import sys

import pytest

from tests.running import ROOT

CLOSED = """
import os, sys
from gateway.command.process import prepare
prepare()
os.write(told, f"{os.open(os.devnull, os.O_RDONLY)} {sys.stderr.fileno()}".encode())
"""
LIMITED = """
import resource
from gateway.command.process import prepare
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
prepare()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard", "then"), [(256, 1024, "1024 1024"), (1024, 1024, "1024 1024")])
def test_a_process_opens_as_many_files_as_the_system_lets_it(soft, hard, then):
    told = subprocess.run(
        [sys.executable, "-c", LIMITED.format(soft=soft, hard=hard)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == then


def test_streams_that_the_starting_program_closed_are_open():
    """Python and its libraries write to stderr; a file of ours must not have its number."""
    reader, writer = os.pipe()
    code = f"import os\ntold = {writer}\n{CLOSED}"
    subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, pass_fds=[writer], preexec_fn=lambda: os.closerange(0, 3), check=True
    )
    os.close(writer)
    with os.fdopen(reader) as told:
        number, stderr = map(int, told.read().split())
    assert number > 2
    assert stderr == 2
