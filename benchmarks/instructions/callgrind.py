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
        self._command("dump")
        self.dumps += 1
        dump = self.output.with_name(f"{self.output.name}.{self.dumps}")
        self._command("instrumentation off")
        lines = dump.read_text(errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("totals:"))

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


def start(name: str, arguments: Sequence[str], folder: Path, files: Path) -> Counted:
    """Start Python with these arguments in a folder, compiled before. Hashes of text are the same in every run, so that
    dicts are, too."""
    output = files / f"callgrind.{name}"
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--instr-atstart=no", "-q"]
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
