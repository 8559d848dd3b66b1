"""A serving process prepares itself for many clients."""

import subprocess
import sys

import pytest

from tests.running import ROOT

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
