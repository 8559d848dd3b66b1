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


HUNG_UP = """
import os, signal, sys
class Hangup:
    def find_spec(self, name, *_):
        if name == "gateway.command." + sys.argv[1]:
            os.kill(os.getpid(), signal.SIGHUP)
sys.meta_path.insert(0, Hangup())
from gateway.command.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("arguments", [("serving", "serve"), ("extproc", "extproc")])
def test_a_hangup_while_the_code_is_loaded_does_not_end_the_process(tmp_path, arguments):
    done = subprocess.run(
        [sys.executable, "-c", HUNG_UP, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, "it ends because there is no file"


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
