"""How the documentation becomes a site: `make docs` builds it into build/site, every broken link an error."""

import re
from importlib.metadata import version as version_of

from sphinx.application import Sphinx

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


def setup(app: Sphinx) -> None:
    """Register the two rewrites."""
    app.connect("source-read", _adopt_links)
    app.connect("include-read", _adopt_included)
