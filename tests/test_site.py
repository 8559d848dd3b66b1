"""The documentation builds as a site, and a link that leads nowhere is an error."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_site_builds_without_a_warning_and_a_broken_link_breaks_it(tmp_path: Path) -> None:
    top = tmp_path / "top"
    shutil.copytree(ROOT / "docs", top / "docs")
    for name in ("README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, top / name)
    built = build(top / "docs", tmp_path / "site")
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "start.html").stat().st_size > 10_000

    reference = (tmp_path / "site" / "reference.html").read_text("utf-8")
    assert all(each in reference for each in ("turnfold keys add", "--force", "turnfold_key_tokens", "tokens_before"))

    with (top / "docs" / "operations.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    broken = build(top / "docs", tmp_path / "site")
    assert broken.returncode != 0
    assert "nowhere" in broken.stderr


def test_every_page_stands_in_the_table_of_contents() -> None:
    listed = (ROOT / "docs" / "index.md").read_text()
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {page for page in pages if f"\n{page}\n" not in listed} == set()
