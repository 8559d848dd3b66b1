"""requirements.lock: every dependency of the image, pinned and hashed, and enough for what pyproject.toml asks for."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.running import ROOT

TEXT = (ROOT / "requirements.lock").read_text("utf-8")
PINS = {
    match[1].lower(): Version(match[2]) for match in re.finditer(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", TEXT, re.MULTILINE)
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WANTED = [
    *PROJECT["dependencies"],
    *(each for extra in ("redis", "encryption") for each in PROJECT["optional-dependencies"][extra]),
]


@pytest.mark.parametrize("wanted", WANTED)
def test_the_lock_satisfies_what_the_project_asks_for(wanted):
    requirement = Requirement(wanted)
    assert PINS[canonicalize_name(requirement.name)] in requirement.specifier


def test_every_pin_has_hashes_and_no_place_is_named():
    blocks = re.split(r"^(?=[A-Za-z0-9])", TEXT, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(PINS) > 10
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in TEXT
    assert "--index-url" not in "".join(line for line in TEXT.splitlines() if not line.startswith("#"))


def test_the_image_installs_the_lock_by_its_hashes():
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert "--require-hashes -r requirements.lock" in dockerfile
    assert "--no-deps ." in dockerfile
