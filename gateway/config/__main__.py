"""``python -m gateway.config``: write the files that are generated from the schema (`make settings`)."""

from pathlib import Path

from gateway.config.generated import with_tables, yaml_file

ROOT = Path(__file__).resolve().parents[2]

(ROOT / "config" / "turnfold.yaml").write_text(yaml_file(), "utf-8")
page = ROOT / "docs" / "configuration.md"
page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
