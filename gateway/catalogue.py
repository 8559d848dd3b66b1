"""The catalogue of known models: what ``config/models.yaml`` says about windows, outputs and tokenizers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known about one model, and the page that says so."""

    name: str
    context_window: int
    max_output_tokens: int | None
    family: str
    images: str
    source: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Known models by name; a name may be a glob."""

    models: Mapping[str, ModelFacts]
    found: dict[str, ModelFacts | None] = field(default_factory=dict, compare=False)

    def find(self, model: str) -> ModelFacts | None:
        """Look a model up by the name a request gives."""
        if model not in self.found:
            if len(self.found) > 10_000:
                self.found.clear()
            self.found[model] = next((facts for name in _spellings(model) if (facts := self._match(name))), None)
        return self.found[model]

    def _match(self, name: str) -> ModelFacts | None:
        if name in self.models:
            return self.models[name]
        globs = [pattern for pattern in self.models if "*" in pattern and fnmatchcase(name, pattern)]
        return self.models[max(globs, key=len)] if globs else None


def _spellings(model: str) -> list[str]:
    """The name as given, then less and less of what vendors put around it."""
    name = model.lower()
    spellings = [name]
    for pattern in (r"^.*/", r"[:@].*$", r"-(\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|latest)$"):
        name = re.sub(pattern, "", name)
        spellings.append(name)
    return spellings


@cache
def load() -> Catalogue:
    """Read the catalogue that comes with the package."""
    here = Path(__file__).resolve().parent
    packaged = here / "data" / "models.yaml"
    path = packaged if packaged.exists() else here.parent / "config" / "models.yaml"
    return parse(path.read_text("utf-8"))


def parse(text: str) -> Catalogue:
    """Read a catalogue from YAML."""
    document: dict[str, Any] = yaml.safe_load(text)
    return Catalogue({name.lower(): ModelFacts(name=name, **row) for name, row in document["models"].items()})
