"""A Python process under callgrind: start it, set its count to zero, read it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

COMPILED: Final = Path(tempfile.gettempdir()) / "turnfold-compiled"
"""Where compiled code is kept from run to run."""
INSTALL: Final = (
    "valgrind is not installed: `apt-get install valgrind`, `dnf install valgrind` or `brew install valgrind`."
)


def require_valgrind() -> str:
    """Return what is missing, or ""."""
    return "" if shutil.which("valgrind") and shutil.which("vgdb") else INSTALL


@dataclass(slots=True)
class Counted:
    """A process whose instructions are counted, those of all its threads together."""

    process: subprocess.Popen[bytes]
    output: Path
    dumps: int = field(default=0)

    def zero(self) -> None:
        """Count from here. Before that the process runs some ten times faster."""
        self._command("instrumentation on")
        self._command("zero")

    def instructions(self) -> int:
        """Return the instructions since `zero`."""
        dump = self._dumped()
        self._command("instrumentation off")
        return _total(dump)

    def main_thread(self) -> int:
        """Return the instructions of the main thread since the start. The process was started with `from_start`."""
        dump = self._dumped()
        return _total(dump.with_name(f"{dump.name}-01"))

    def _dumped(self) -> Path:
        """Have the counts written; return the file."""
        self._command("dump")
        self.dumps += 1
        return self.output.with_name(f"{self.output.name}.{self.dumps}")

    def stop(self) -> None:
        """End the process and wait for it."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _command(self, name: str) -> None:
        pid = str(self.process.pid)
        subprocess.run(["vgdb", f"--pid={pid}", name], check=True, capture_output=True, timeout=60)
        time.sleep(0.2)  # work that was put off, such as writing logs, belongs to the requests before


def _total(dump: Path) -> int:
    """Return the instructions in a file of callgrind's."""
    lines = dump.read_text(errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("totals:"))


def start(name: str, arguments: Sequence[str], folder: Path, files: Path, *, from_start: bool = False) -> Counted:
    """Start Python with these arguments in a folder, compiled before. Hashes of text are the same in every run, so that
    dicts are, too. With ``from_start`` everything is counted, each thread by itself."""
    output = files / f"callgrind.{name}"
    when = "--separate-threads=yes" if from_start else "--instr-atstart=no"
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", when, "-q"]
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"PYTHONHASHSEED": "0", "PYTHONPATH": str(folder), "PYTHONPYCACHEPREFIX": str(COMPILED)}
    _compile(arguments[1], folder, environ)
    with (files / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*tool, sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=environ,
        )
    return Counted(process, output)


def _compile(module: str, folder: Path, environ: dict[str, str]) -> None:
    """Import everything once without callgrind, under which compiling would take minutes."""
    imported = f"import {module}" if module != "gateway" else "import gateway.command.cli, gateway.command.serving"
    command = [sys.executable, "-c", imported]
    subprocess.run(command, check=True, cwd=folder, env=environ, stdout=subprocess.DEVNULL)
