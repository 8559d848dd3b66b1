"""The image's dependencies: their licences, and the vulnerabilities that are known of them.

`audit` fails when a known vulnerability has a repair, and says so in one line when no advisory service can be reached.
`licences` writes docs/licences.md from what the packages say of themselves. `pythons` says on which versions of Python of this machine
the packages are tried.
"""

import glob
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import orjson

ROOT: Final = Path(__file__).resolve().parents[1]
LOCK: Final = ROOT / "requirements.lock"
LICENCES: Final = ROOT / "docs" / "licences.md"
SERVICES: Final = ("pypi", "osv")
"""The advisory services that pip-audit knows, in the order in which they are tried."""
PATIENCE_S: Final = 180
"""Seconds for one service. Chosen: far above what an answer for thirty packages takes."""
CONDITIONAL: Final[Mapping[str, str]] = {"async-timeout": "Apache-2.0"}
"""Packages that only some versions of Python need, and their licences."""
SPELLINGS: Final[Mapping[str, str]] = {
    "Apache 2.0": "Apache-2.0", "MIT License": "MIT", "License :: OSI Approved :: MIT License": "MIT",
}  # fmt: skip
"""Licences by other spellings; the others are SPDX expressions."""
PYTHONS: Final = (
    "/usr/bin/python3.*", "/usr/local/bin/python3.*", "~/.pyenv/versions/*/bin/python3.*", "~/.local/share/uv/python/*/bin/python3.*",
)  # fmt: skip
"""Where interpreters are looked for."""
OLDEST: Final = (3, 11)
"""The oldest version that the package supports: pyproject.toml."""
NEWEST: Final = (3, 14)
"""The newest version that is released."""
HEAD: Final = """\
# Licences

What the container image holds besides Turnfold (Apache-2.0), as the packages state it. Written by `make licences` from `requirements.lock`.

| package | version | licence |
|---|---|---|
"""


def pins() -> Iterator[tuple[str, str]]:
    """Return the packages of the lock and their versions."""
    yield from re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", LOCK.read_text("utf-8"), re.MULTILINE)


def licence_of(package: str) -> str:
    """Return the SPDX expression of a package's licence."""
    if package in CONDITIONAL:
        return CONDITIONAL[package]
    told = metadata.metadata(package)
    named = [each for each in told.get_all("Classifier") or () if each.startswith("License ::")]
    found = told.get("License-Expression") or (told.get("License") or "").strip() or next(iter(named), "")
    return SPELLINGS.get(found, found)


def pythons() -> dict[tuple[int, int], str]:
    """Return one interpreter of every supported version that is on this machine."""
    found = {sys.version_info[:2]: os.path.realpath(sys.executable)}
    for pattern in PYTHONS:
        for place in sorted(glob.glob(os.path.expanduser(pattern))):
            if (match := re.fullmatch(r"python(3)\.(\d+)", Path(place).name)) and os.access(place, os.X_OK):
                version = int(match[1]), int(match[2])
                if version >= OLDEST and _makes_environments(place):
                    found.setdefault(version, place)
    return dict(sorted(found.items()))


def _makes_environments(python: str) -> bool:
    """Return whether an interpreter can make a virtual environment: Debian's needs a package for that."""
    return subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0


def tried() -> str:
    """Say which versions are here, and which are not."""
    here = {".".join(map(str, version)) for version in pythons()}
    wanted = {f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)}
    missing = f"; not on this machine: {', '.join(sorted(wanted - here))}" if wanted - here else ""
    return f"the sdist and the wheel are tried on Python {', '.join(sorted(here))}{missing}\n"


def licences() -> str:
    """Write the page of licences."""
    return HEAD + "".join(f"| {name} | {version} | {licence_of(name)} |\n" for name, version in pins())


def audit(run: Any = subprocess.run) -> int:
    """Ask the advisory services; return 1 when a known vulnerability has a repair."""
    for service in SERVICES:
        command = ["pip-audit", "-r", str(LOCK), "--require-hashes", "--disable-pip", "--progress-spinner", "off", "-s", service, "-f", "json"]  # fmt: skip
        done = run(command, capture_output=True, timeout=PATIENCE_S, check=False)
        if (found := _read(done.stdout)) is not None:
            return _judged(found, service)
    sys.stdout.write(
        f"audit skipped: none of the advisory services ({', '.join(SERVICES)}) can be reached; nothing is known of these versions. "
        "Run `make audit` where one can be\n"
    )
    return 0


def _read(output: bytes) -> list[dict[str, Any]] | None:
    """Return the audited packages; None when the service knew none of them, or did not answer."""
    try:
        packages = orjson.loads(output)["dependencies"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    audited = [package for package in packages if "skip_reason" not in package]
    return audited or None


def _judged(packages: list[dict[str, Any]], service: str) -> int:
    """Say what was found; return 1 when something can be repaired."""
    status = 0
    for package in packages:
        for vulnerability in package.get("vulns", ()):
            repaired = ", ".join(vulnerability["fix_versions"])
            status = 1 if repaired else status
            said = f"repaired in {repaired}: run `make lock`" if repaired else "no repair yet"
            sys.stdout.write(f"{package['name']} {package['version']}: {vulnerability['id']}, {said}\n")
    sys.stdout.write(f"audited {len(packages)} packages at {service}\n")
    return status


if __name__ == "__main__":
    if sys.argv[1:] == ["audit"]:
        sys.exit(audit())
    if sys.argv[1:] == ["pythons"]:
        sys.stdout.write(tried())
        sys.exit()
    LICENCES.write_text(licences(), "utf-8")
