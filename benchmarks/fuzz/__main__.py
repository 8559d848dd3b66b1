"""`python -m benchmarks.fuzz [--seconds 60] [--target NAME] [--findings DIR]`: fuzz the readers of foreign bytes, guided by coverage.

Needs `pip install 'turnfold[fuzz]'` (atheris, with a wheel for Linux). Each target runs in a process of its own for an equal part of the
time; what breaks a promise is written to the folder of findings. `tests/fuzz` plays those that were kept again.
"""

import argparse
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from types import FunctionType

import orjson

from benchmarks.fuzz.mutation import changed
from benchmarks.fuzz.targets import TARGETS, seeds

LONGEST = 4096
"""Bytes of an input."""
PATIENCE_S = 60
"""A single input may take so long; longer is a finding."""
MEMORY_MB = 2048


def fuzz(name: str, arguments: list[str]) -> None:
    """Fuzz one target in this process; libFuzzer ends it."""
    import atheris  # noqa: PLC0415  # an extra, needed here alone

    target = TARGETS[name]
    packages = ("gateway", "providers")
    for module in [module for key, module in sys.modules.items() if key.startswith(packages) and module is not None]:
        for value in list(vars(module).values()):
            if getattr(value, "__module__", None) != module.__name__:
                continue
            for function in (value, *(vars(value).values() if isinstance(value, type) else ())):
                if isinstance(function, FunctionType):
                    function.__code__ = atheris.instrument_func(function).__code__

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        """Change JSON value by value half of the time, and anything else byte by byte."""
        if seed % 2:
            with suppress(orjson.JSONDecodeError):
                return changed(data, Random(seed))[:most]
        return bytes(atheris.Mutate(data, most))

    atheris.Setup([sys.argv[0], *arguments], target, custom_mutator=mutated)
    atheris.Fuzz()


def main() -> int:
    """Fuzz the targets one after the other; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--target", choices=list(TARGETS), action="append", help="only these")
    parser.add_argument(
        "--findings", type=Path, default=Path("build/fuzz"), help="folder for inputs that break a promise"
    )
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments, rest = parser.parse_known_args()
    if arguments.alone:
        fuzz(arguments.alone, rest)
        return 0
    if find_spec("atheris") is None:
        parser.error("atheris is not installed; the extra `fuzz` brings it: pip install -e '.[fuzz]'")
    names = arguments.target or list(TARGETS)
    arguments.findings.mkdir(parents=True, exist_ok=True)
    failed = [name for name in names if not _alone(name, max(arguments.seconds // len(names), 1), arguments.findings)]
    print(f"found in: {', '.join(failed)}; see {arguments.findings}" if failed else "nothing found")
    return 1 if failed else 0


def _alone(name: str, seconds: int, findings: Path) -> bool:
    """Fuzz one target in a process of its own; return whether nothing was found."""
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds(name)):
            (Path(folder) / str(number)).write_bytes(seed)
        command = [
            sys.executable, "-m", "benchmarks.fuzz", "--alone", name, folder, f"-max_total_time={seconds}", f"-max_len={LONGEST}",
            f"-timeout={PATIENCE_S}", f"-rss_limit_mb={MEMORY_MB}", f"-artifact_prefix={findings}/{name}-", "-print_final_stats=1",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = [line for line in done.stderr.splitlines() if "cov:" in line or "number_of_executed_units" in line][-2:]
    print(f"{name}: {'nothing found' if done.returncode == 0 else 'FOUND'}; {' '.join(last)}", flush=True)
    if done.returncode:
        print("\n".join(done.stderr.splitlines()[-40:]))
        print("\n".join(done.stdout.splitlines()[-40:]))
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
