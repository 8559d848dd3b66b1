"""All settings, and the route of each model. A request keeps the settings it started with."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec
from msgspec.structs import replace

from gateway.config.names import is_pattern, literal_characters, matches
from gateway.config.values import (
    Admin,
    ClientKey,
    Defaults,
    Fold,
    Log,
    Mode,
    Model,
    Observe,
    Server,
    StoreSettings,
    SummarySettings,
    Upstream,
)
from gateway.context.cut.policy import Policy

ROUTES_KEPT: Final = 1024
"""Cached routes. Bounded because model names come from clients."""


class Route(msgspec.Struct, frozen=True):
    """The destination of requests for one model, and its rules."""

    model: str
    """As the client names it."""
    entry: str
    """The configured name that matches; the model's own name when none does."""
    name: str
    """The name sent to the upstream."""
    upstream: str
    choices: tuple[tuple[str, int], ...]
    """All upstreams that serve it, with their weights; ``upstream`` is the first."""
    window: int | None
    """The configured window; None without one."""
    max_output_tokens: int | None
    output_reserve: int | None
    tokenizer: str
    on_overflow: tuple[str, ...]
    """Larger models that may answer instead, by configured name."""
    fallbacks: tuple[str, ...]
    """Models to use when the upstream fails, by configured name."""
    input_price: float | None
    cached_price: float | None
    mode: Mode
    client_modes: tuple[Mode, ...]
    policy: Policy
    max_retries: int
    summary: SummarySettings


class Settings(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """Everything that is configured."""

    upstreams: Mapping[str, Upstream]
    default_upstream: str
    server: Server = Server()
    admin: Admin = Admin()
    store: StoreSettings = StoreSettings()
    log: Log = Log()
    observe: Observe = Observe()
    models: Mapping[str, Model] = {}
    defaults: Defaults = Defaults()
    fold: Fold = Fold()
    keys: Mapping[str, ClientKey] = {}
    """Client keys by name, those of ``server.keys_file`` included."""

    @classmethod
    def simple(cls, upstream_url: str, window: int | None = None) -> "Settings":
        """Return the settings of `turnfold serve --upstream URL`, without a file."""
        upstream = Upstream("default", "openai", upstream_url.strip().rstrip("/"))
        models = {"*": Model(context_window=window)} if window is not None else {}
        return cls({upstream.name: upstream}, upstream.name, models=models)

    @cached_property
    def _routes(self) -> dict[str, Route]:
        """The routes found so far, by model."""
        return {}

    @property
    def asks_for_keys(self) -> bool:
        """Whether a client needs a key. With a keys file without keys every request is refused, so that removing the last key opens nothing."""
        return bool(self.keys or self.server.keys_file)

    @property
    def by_meaning(self) -> str:
        """Return the first setting that has questions searched by meaning, ``fold`` or ``models.NAME``; empty when none does."""
        if self.fold.policy.semantic:
            return "fold"
        return next((f"models.{name}" for name in self.models if self.route(name).policy.semantic), "")

    @property
    def default_window(self) -> int:
        """Return the window for models without a known one."""
        return self.defaults.context_window or 4 * self.defaults.max_tokens

    def route(self, model: str) -> Route:
        """Return a model's route. An unknown model goes to the default upstream under its own name."""
        found = self._routes.get(model)
        if found is None:
            if len(self._routes) >= ROUTES_KEPT:
                self._routes.clear()
            found = self._routes[model] = self._resolve(model)
        return found

    def larger(self, route: Route) -> tuple[Route, ...]:
        """Return the routes of `on_overflow`, in order."""
        if not route.on_overflow:
            return ()
        return tuple(self.route(name) for name in route.on_overflow if name != route.model)

    def fallbacks(self, route: Route) -> tuple[Route, ...]:
        """Return the routes to try when the upstream fails: the model's fallbacks, else the same model at the
        upstream's fallbacks."""
        if route.fallbacks:
            return tuple(self.route(name) for name in route.fallbacks if name != route.model)
        if not (others := self.upstreams[route.upstream].fallbacks):
            return ()
        return tuple(replace(route, upstream=name, choices=((name, 1),)) for name in others)

    def entry(self, model: str) -> str | None:
        """Return the configured name for a model: its own, else the matching pattern with the most literal characters;
        the first of equals.
        """
        if model in self.models:
            return model
        patterns = [name for name in self.models if is_pattern(name) and matches(name, model)]
        return max(patterns, key=literal_characters, default=None)

    def _resolve(self, model: str) -> Route:
        """Merge an alias with the entries it refers to; the alias's own values take precedence."""
        entry, name = Model(), model
        seen: set[str] = set()
        while (key := self.entry(name)) is not None and key not in seen:
            seen.add(key)
            found = self.models[key]
            entry = _complete(entry, found) if len(seen) > 1 else found
            name = found.name or name
        choices = entry.upstreams or ((self.default_upstream, 1),)
        fold = self.fold.overlay(entry.fold)
        reserve = self.defaults.output_reserve if entry.output_reserve is None else entry.output_reserve
        return Route(
            model=model,
            entry=self.entry(model) or model,
            name=name,
            upstream=choices[0][0],
            choices=choices,
            window=entry.context_window,
            max_output_tokens=entry.max_output_tokens,
            output_reserve=reserve,
            tokenizer=entry.tokenizer or self.defaults.tokenizer,
            on_overflow=entry.on_overflow,
            fallbacks=entry.fallbacks,
            input_price=entry.input_price,
            cached_price=entry.cached_price,
            mode=fold.mode,
            client_modes=fold.client_modes,
            policy=fold.policy,
            max_retries=fold.max_retries,
            summary=fold.summary,
        )


def _complete(entry: Model, other: Model) -> Model:
    """Fill an alias with missing values of its target, except fallbacks: those are the alias's own."""
    parts = entry.fold.keys() | other.fold.keys()
    return replace(
        entry,
        upstreams=entry.upstreams or other.upstreams,
        context_window=entry.context_window or other.context_window,
        max_output_tokens=entry.max_output_tokens or other.max_output_tokens,
        output_reserve=other.output_reserve if entry.output_reserve is None else entry.output_reserve,
        tokenizer=entry.tokenizer or other.tokenizer,
        input_price=other.input_price if entry.input_price is None else entry.input_price,
        cached_price=other.cached_price if entry.cached_price is None else entry.cached_price,
        fold={part: {**other.fold.get(part, {}), **entry.fold.get(part, {})} for part in parts},
    )
