"""What is delivered: licences that are listed and allowed, an audit that fails where it must, an SBOM, packages that install."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from types import SimpleNamespace

import orjson
import pytest

from gateway.serve.admin import dashboard
from tests.running import ROOT

SPEC = importlib.util.spec_from_file_location("supply", ROOT / ".ci" / "supply.py")
supply = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(supply)

ALLOWED = {"MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "PSF-2.0", "MPL-2.0", "ISC"}
"""Licences that bind nobody who runs the image or changes Turnfold."""


def test_the_page_of_licences_is_what_the_packages_say():
    assert (ROOT / "docs" / "licences.md").read_text("utf-8") == supply.licences(), "run `make licences`"


@pytest.mark.parametrize("package", [name for name, _ in supply.pins()])
def test_every_licence_is_one_of_the_allowed(package):
    named = set(re.findall(r"[A-Za-z0-9.-]+", supply.licence_of(package))) - {"AND", "OR", "WITH"}
    assert named
    assert named <= ALLOWED


def package(*vulnerabilities, **more):
    return {"name": "p", "version": "1", "vulns": list(vulnerabilities), **more}


BAD, HOPELESS = {"id": "CVE-1", "fix_versions": ["2"]}, {"id": "CVE-2", "fix_versions": []}
UNKNOWN = {"name": "p", "skip_reason": "Dependency not found on PyPI"}
AUDITS = [
    # what the services say, the exit status, what the operator reads
    ([[package()]], 0, "audited 1 packages at pypi"),
    ([[package(BAD)]], 1, "p 1: CVE-1, repaired in 2"),
    ([[package(HOPELESS)]], 0, "p 1: CVE-2, no repair yet"),
    ([[package(HOPELESS, BAD)]], 1, "repaired in 2"),
    ([None, [package(BAD)]], 1, "audited 1 packages at osv"),
    ([[UNKNOWN], None], 0, "audit skipped: none of the advisory services (pypi, osv) can be reached"),
    ([None, None], 0, "audit skipped"),
]


@pytest.mark.parametrize(("answers", "status", "says"), AUDITS)
def test_the_audit_fails_only_where_a_repair_exists_and_says_when_it_was_skipped(answers, status, says, capsys):
    answers = iter(answers)

    def run(command, **_):
        assert command[0] == "pip-audit"
        found = next(answers)
        return SimpleNamespace(stdout=b"" if found is None else orjson.dumps({"dependencies": found}))

    assert supply.audit(run) == status
    assert says in capsys.readouterr().out


def make(target, folder):
    done = subprocess.run(
        ["make", target, f"BUILD={folder}", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=400
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_sbom_names_every_package_with_its_hashes_and_the_audit_runs(tmp_path):
    make("sbom", tmp_path)
    found = orjson.loads((tmp_path / "sbom.json").read_bytes())
    assert found["bomFormat"] == "CycloneDX"
    components = {each["name"]: each for each in found["components"]}
    assert {name: components[name]["version"] for name, _ in supply.pins()} == dict(supply.pins())
    assert all(
        reference["hashes"] for each in components.values() for reference in each["externalReferences"] if "hashes" in reference
    )  # fmt: skip
    said = make("audit", tmp_path)
    assert "audited" in said or "audit skipped" in said


@pytest.mark.parametrize("folder", ["gateway", "providers"])
def test_every_docstring_is_text_that_can_be_stored(folder):
    """Python 3.13 cannot compile a module whose docstring has half a surrogate pair."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                (ast.get_docstring(node, clean=False) or "").encode()


def test_ci_says_on_which_pythons_the_packages_are_tried():
    here = supply.pythons()
    assert sys.version_info[:2] in here
    assert min(here) >= (3, 11)
    said = supply.tried()
    for minor in range(11, 15):
        named = said.partition("not on this machine")[0 if (3, minor) in here else 2]
        assert f"3.{minor}" in named, said
    assert "supply.py pythons" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it, as an index would have them."""
    folder = tmp_path_factory.mktemp("built")
    make("dist", folder)
    return folder / "dist"


@pytest.mark.slow
@pytest.mark.parametrize("python", supply.pythons().values())
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_what_is_built_installs_and_works_in_an_empty_environment(built, tmp_path, python, kind):
    [package_file] = built.glob(kind)
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    where = tmp_path / "venv" / "bin"
    subprocess.run([where / "pip", "install", "-q", package_file], check=True, capture_output=True, timeout=300)
    alone = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    shutil.copy(ROOT / "config" / "turnfold.yaml", tmp_path)

    def turnfold(*arguments):
        command = [where / "turnfold", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=alone, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    assert turnfold("--version").startswith("turnfold, version ")
    assert "all right" in turnfold("check", "turnfold.yaml")
    assert '"$schema"' in turnfold("schema")
    assert "turnfold" in turnfold("demo")


@pytest.mark.slow
def test_what_is_built_holds_every_file_of_the_dashboard_and_its_licence(built):
    [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed, tarfile.open(sdist) as source:
        held = [set(packed.namelist()), {name.partition("/")[2] for name in source.getnames()}]
    wanted = {f"gateway/observe/dashboard/{file}" for file in (*dashboard.files(), "vendor/uPlot.LICENSE")}
    assert [wanted - names for names in held] == [set(), set()]
