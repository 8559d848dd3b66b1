"""How the documentation becomes a site: `make docs` builds it into build/site, every broken link an error."""

import re
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path

import click
from sphinx.application import Sphinx

from gateway.command.cli import main
from gateway.observe.exchange import Exchange
from gateway.observe.metrics import Metrics

project = "Turnfold"
copyright = "the Turnfold authors"
release = version_of("turnfold")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Turnfold {release}"
html_copy_source = False
html_show_sphinx = False
# Nothing is fetched by a reader's browser but the site itself.
html_theme_options = {"sidebar_hide_name": False}
myst_heading_anchors = 4
myst_links_external_new_tab = False
nitpicky = True


def _adopt_links(app: Sphinx, docname: str, content: list[str]) -> None:
    """Point links that lead out of docs/ to the page that includes the file, or show the path where no page does."""
    text = content[0].replace("](../CONTRIBUTING.md", "](contributing.md").replace("](../README.md", "](start.md")
    content[0] = re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", text)


def _adopt_included(app: Sphinx, relative_path: object, parent: str, content: list[str]) -> None:
    """The same for README.md and CONTRIBUTING.md, whose links start at the top of the repository."""
    text = content[0].replace("](docs/", "](").replace("](CONTRIBUTING.md", "](contributing.md")
    content[0] = re.sub(r"\[([^\]]+)\]\((?!https?:|#|[a-z_/-]+\.md)[^)]+\)", r"\1", text)


def _commands(command: click.Command, name: str) -> Iterator[str]:
    """Describe a command and those inside it, as `--help` does."""
    context = click.Context(command, info_name=name)
    yield f"### {name}\n\n```text\n{command.get_help(context)}\n```\n"
    for each in getattr(command, "commands", {}).values():
        yield from _commands(each, f"{name} {each.name}")


def _reference(app: Sphinx) -> None:
    """Write the page of commands, metrics and record fields from the code, so that it is never out of date."""
    metrics = Metrics()
    families = [(name, text, labels) for name, text, labels, _ in (*metrics.counters(), *metrics.histograms())]
    page = [
        "# Reference\n",
        "Written from the code when the site is built. Settings: [configuration.md](configuration.md).\n",
        "## Commands\n",
        *_commands(main, "turnfold"),
        "## Metrics\n",
        "| family | labels | meaning |\n|---|---|---|",
        *(f"| `{name}` | {', '.join(labels) or 'none'} | {text} |" for name, text, labels in families),
        "\n## Fields of a record\n",
        "What the fields mean: [records.md](records.md).\n",
        ", ".join(f"`{name}`" for name in Exchange.__struct_fields__) + "\n",
    ]
    (Path(app.srcdir) / "reference.md").write_text("\n".join(page), "utf-8")


def setup(app: Sphinx) -> None:
    """Register the page that is written and the two rewrites."""
    app.connect("builder-inited", _reference)
    app.connect("source-read", _adopt_links)
    app.connect("include-read", _adopt_included)
