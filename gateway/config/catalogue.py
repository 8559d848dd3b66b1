"""The catalogue of known models: windows, outputs, tokenizers, images and prices from ``config/models.yaml``."""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml

KEPT_NAMES: Final = 4096
"""Cached lookups. Bounded because clients may send any name."""


class CatalogueEntry(msgspec.Struct, frozen=True):
    """A model of the catalogue, with the source of its values. All sizes are tokens."""

    name: str
    """The entry that matched, which may be a glob."""
    context_window: int
    max_output_tokens: int | None
    family: str
    """A row of `gateway.context.count.families`."""
    source: str
    images: str = ""
    """A rule of `gateway.context.count.media`; empty when the model does not read images."""
    max_input_tokens: int | None = None
    """The largest prompt, when it is smaller than the window."""
    counts_output: bool = True
    """Whether the upstream refuses a request whose prompt and requested output together exceed the window."""
    binds_thinking: bool = False
    """Whether signed thinking is accepted only after exactly the conversation it was made in."""
    cache: str = ""
    """A rule of `gateway.context.cache.rules`: how the vendor's own service caches prompts; empty when unknown."""

    def window_for(self, reserve: int) -> int:
        """Return the window for a request that reserves ``reserve`` tokens for its answer."""
        if self.max_input_tokens is None:
            return self.context_window
        return min(self.context_window, self.max_input_tokens + reserve)


class Catalogue(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """Known models by name; a name may be a glob."""

    models: Mapping[str, CatalogueEntry]
    prices: Mapping[str, float] = {}
    """List prices: US dollars for a million prompt tokens that no cache holds."""

    @cached_property
    def found(self) -> dict[str, CatalogueEntry | None]:
        """The models found so far, by the name in a request."""
        return {}

    def find(self, model: str) -> CatalogueEntry | None:
        """Find a model by the name in a request, then by the name without vendors' additions."""
        if model in self.found:
            return self.found[model]
        entry = next((known for name in spellings(model) if (known := _match(self.models, name)) is not None), None)
        if len(self.found) >= KEPT_NAMES:
            self.found.clear()
        self.found[model] = entry
        return entry

    def price(self, model: str) -> float | None:
        """Find the list price of a model's prompt tokens; None where none is known."""
        return next((price for name in spellings(model) if (price := _match(self.prices, name)) is not None), None)


Row = TypeVar("Row")


def _match(rows: Mapping[str, Row], name: str) -> Row | None:
    """Return the row of a name: its own, else that of the most specific glob."""
    if name in rows:
        return rows[name]
    globs = [pattern for pattern in rows if _begins(name, pattern) and fnmatchcase(name, pattern)]
    return rows[max(globs, key=_specificity)] if globs else None


def _begins(name: str, pattern: str) -> bool:
    """Return whether a pattern is a glob that begins as the name does: to compile all globs for one name takes 15 ms."""
    wild = _WILD.search(pattern)
    return wild is not None and name.startswith(pattern[: wild.start()])


_WILD: Final = re.compile(r"[*?\[]")


def _specificity(pattern: str) -> int:
    """Return how many characters of a name a glob determines."""
    return len(re.sub(r"\[[^][]*\]|\*", lambda found: "?" if found[0] != "*" else "", pattern))


_REGIONS: Final = frozenset({"us", "eu", "apac", "ap", "jp", "au", "ca", "global", "us-gov"})
_VENDORS: Final = frozenset(
    {"anthropic", "amazon", "meta", "mistral", "deepseek", "qwen", "openai", "google", "moonshot", "moonshotai", "zai"}
) | {"minimax", "nvidia", "cohere", "ai21", "writer", "xai"}
_SELLERS: Final = ("openai-", "databricks-", "snowflake-", "azure-", "zai-", "meta-", "mistralai-")
_REVISION: Final = re.compile(r"-v[0-9]+\Z")
_EDITION: Final = re.compile(r"-(?:[0-9]{8}|[0-9]{6}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest|preview|fp8|turbo)\Z")


def _without_region(name: str) -> str:
    """Return the name without a region, if a vendor follows: ``us.anthropic.claude-sonnet-4-20250514-v1:0`` ->
    ``anthropic.claude-...``."""
    region, _, rest = name.partition(".")
    vendor, dot, _ = rest.partition(".")
    return rest if region in _REGIONS and dot and vendor.replace("-", "").isalnum() else name


def _without_vendor(name: str) -> str:
    vendor, dot, rest = name.partition(".")
    return rest if dot and vendor in _VENDORS else name


def _without_seller(name: str) -> str:
    """Return the name without its seller: ``databricks-claude-sonnet-4``, ``zai-glm-4.7``."""
    return next((name.removeprefix(seller) for seller in _SELLERS if name.startswith(seller)), name)


# Additions to a model's name, in the order of their removal; each spelling is tried before the next is made.
# Names come from clients, so each of these patterns must run in linear time.
_AROUND: Final[tuple[Callable[[str], str], ...]] = (
    lambda name: name.rpartition("/")[
        2
    ],  # openai/gpt-4o, accounts/fireworks/models/llama-v3, arn:...:inference-profile/...
    _without_region,
    _without_vendor,
    lambda name: name.partition(":")[0].partition("@")[0],  # llama3.1:8b, glm-4.6:free, claude-sonnet-4@20250514
    lambda name: _REVISION.sub("", name),
    lambda name: _EDITION.sub("", name),
    _without_seller,
)


def spellings(model: str) -> list[str]:
    """Return the name in lower case, then with fewer and fewer of the vendors' additions."""
    name = model.strip().lower()
    found = [name]
    for less in _AROUND:
        name = less(name)
        if name and name != found[-1]:
            found.append(name)
    return found


@cache
def load() -> Catalogue:
    """Read the packaged catalogue, from the wheel or from the source tree."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "data" / "models.yaml"
    path = packaged if packaged.exists() else package.parent / "config" / "models.yaml"
    return parse(path.read_text("utf-8"))


def parse(text: str) -> Catalogue:
    """Parse a catalogue. An invalid one raises TypeError or KeyError: it is our own, and tested."""
    document: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    models = document["models"]
    prices = {name.lower(): float(price) for name, price in document.get("prices", {}).items()}
    return Catalogue({name.lower(): CatalogueEntry(name=name, **row) for name, row in models.items()}, prices)
