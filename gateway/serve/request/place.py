"""A place: one model at one upstream, where a request may go, with its window. Its values come from settings, catalogue and learning."""

from typing import Final

import msgspec

from gateway.config import Route
from gateway.config.catalogue import Catalogue, CatalogueEntry
from gateway.context.count import families
from gateway.context.life.states import Visit
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.callers import NOBODY, Identity
from gateway.state.facts import Owner
from gateway.upstream.client import Target
from providers.origins import Origin

LISTED: Final = "upstream"
"""The source of a window that the upstream's model list states."""
DEFAULT: Final = "default"
"""The source of a window that is the configured default."""
SOURCES_OF_UNKNOWN_MODELS: Final = frozenset({LISTED, DEFAULT})
"""The sources of the window of a model that is neither configured nor in the catalogue."""
GUESSED_ERROR: Final = families.family_of("unknown").error
"""Relative error of a count where the upstream may give any model this name: the same as for an unknown model."""


def family_of(route: Route, catalogued: CatalogueEntry | None, stated: str = "") -> str:
    """Return the family whose vocabulary and rules count for a model: configured, stated by its server, or by its name."""
    if route.tokenizer != "auto":
        return route.tokenizer
    return stated or (catalogued.family if catalogued else "unknown")


def family_stated_by(catalogue: Catalogue, origin: Origin | None) -> str:
    """Return the family of the model that a server states behind a name; empty when it states none that is known.

    The size of a vocabulary proves more than a name. The name tells the chat template, too, if it agrees with the size.
    """
    if origin is None:
        return ""
    catalogued = catalogue.find(origin.name)
    by_name, by_size = catalogued.family if catalogued else "", families.BY_VOCABULARY_SIZE.get(origin.vocabulary, "")
    if not by_size or (by_name and families.family_of(by_name).vocabulary == families.family_of(by_size).vocabulary):
        return by_name
    return by_size


class Place(msgspec.Struct, frozen=True):
    """One upstream and model that could answer a request, with its window. To the core it is a `gateway.context.life.place.Place`."""

    route: Route
    target: Target
    catalogued: CatalogueEntry | None
    """The catalogue's entry of the model; None without one."""
    window: int
    configured_window: int
    """The window without anything learned from answers."""
    window_source: str
    """Where the window comes from: the name of the configured or the catalogued entry, `LISTED`, or `DEFAULT`. There are few of them, so metrics
    have it as a label (``entry``)."""
    stated_family: str = ""
    """The family of the model that the server states behind the name; empty when it states none."""
    caller: Identity = NOBODY
    """The caller whose learned facts are used here, and to whom new facts will belong."""

    @property
    def upstream(self) -> str:
        """The upstream's configured name."""
        return self.target.name

    @property
    def model(self) -> str:
        """The model's name at the upstream."""
        return self.route.name

    @property
    def owner(self) -> Owner:
        """The name of the facts that were learned here."""
        return self.target.name, self.route.name, self.caller.learner

    @property
    def max_retries(self) -> int:
        """Calls after the first one that a refused request may take."""
        return self.route.max_retries

    @property
    def family(self) -> str:
        """The family whose vocabulary and rules count for the model."""
        return family_of(self.route, self.catalogued, self.stated_family)

    @property
    def images(self) -> str:
        """The rule for the cost of its images."""
        return self.catalogued.images if self.catalogued else ""


def place_at(visit: Visit) -> Place:
    """Return the place of a visit as the gateway knows it. The core knows less (`gateway.context.life.place`)."""
    assert isinstance(visit.place, Place)
    return visit.place


def place_of(
    gateway: Gateway,
    setup: Setup,
    route: Route,
    target: Target,
    caller: Identity = NOBODY,
    *,
    asked_window: int | None = None,
) -> Place:
    """Return a model at an upstream as a place. A smaller window that the upstream's own refusals stated to this caller
    has precedence until it expires.

    ``asked_window`` is the window with which the request tells the server to load the model. It replaces the window of the model that is loaded.
    """
    catalogued = gateway.catalogue.find(route.name)
    configured_window, window_source = window_at(gateway, setup, route, target)
    if asked_window is not None:
        configured_window = _loaded_window(asked_window, configured_window, window_source, catalogued)
    owner = target.name, route.name, caller.learner
    stated_window = gateway.learning.stated_window(owner) if caller is not NOBODY else None
    window = min(configured_window, stated_window) if stated_window else configured_window
    origin = None if target.vendor else gateway.learning.lists.origin(target.name, route.name)
    stated_family = family_stated_by(gateway.catalogue, origin)
    return Place(route, target, catalogued, window, configured_window, window_source, stated_family, caller)


def _loaded_window(asked_window: int, window: int, window_source: str, catalogued: CatalogueEntry | None) -> int:
    """Return the window with which a server loads a model, if a request asks for one. Ollama lowers it to the model's own one, without a word:
    https://github.com/ollama/ollama/blob/main/llm/server.go."""
    if window_source != LISTED:
        return min(window, asked_window)
    return min(asked_window, max(window, catalogued.context_window)) if catalogued else asked_window


def window_at(gateway: Gateway, setup: Setup, route: Route, target: Target) -> tuple[int, str]:
    """Find the window of a model at an upstream, and its source: configured, stated by the running server, catalogued, listed,
    or the default, in this order."""
    lists = gateway.learning.lists
    if route.window is not None:
        return route.window, route.entry
    if running := lists.running(target.name, route.name):
        return running, LISTED
    if (catalogued := gateway.catalogue.find(route.name)) is not None:
        return catalogued.context_window, catalogued.name
    if listed := lists.window(target.name, route.name):
        return listed, LISTED
    return setup.settings.default_window, DEFAULT


def source_in_words(route: Route, window_source: str) -> str:
    """Return where the window of a place comes from, for a person: the path in the file, the upstream, the catalogue, or the default."""
    if route.window is not None:
        return f"models.{window_source}"
    return {LISTED: "the upstream", DEFAULT: "the default"}.get(window_source, f"the catalogue: {window_source}")


def has_guessed_family(place: Place) -> bool:
    """Return whether the family is only guessed from the model's name: an operator of llama.cpp may call any model ``gpt-4o``.

    It is known at services that sell a model under its own name, if the server states which model has the name, and if the operator
    configured the tokenizer.
    """
    return place.route.tokenizer == "auto" and not place.target.vendor and not place.stated_family


def error_of(place: Place) -> float:
    """Return the relative error of a plain count at this place."""
    error = families.family_of(place.family).error
    return max(error, GUESSED_ERROR) if has_guessed_family(place) else error
