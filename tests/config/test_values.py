"""Settings: where the requests for a model go, and by which rules."""

import pytest

from gateway.config import Settings, parse
from gateway.config.settings import ROUTES_KEPT

TEXT = """
upstreams:
  openai: {provider: openai, base_url: https://api.openai.com/v1, fallbacks: [azure, local]}
  azure: {provider: azure, base_url: https://x.openai.azure.com}
  local: {provider: vllm, base_url: http://127.0.0.1:8000/v1}
default_upstream: openai
models:
  gpt-4o: {context_window: 128000, max_output_tokens: 16384, fallbacks: [spare], mode: observe}
  "*": {context_window: 1000}
  "llama-*": {upstream: local, context_window: 8192}
  "llama-*-big": {upstream: local, context_window: 65536}
  "?lama-3-*": {upstream: azure, context_window: 4096}
  fast: {name: gpt-4o}
  faster: {name: fast, low_water: 0.3, context_window: 64000}
  spare: {upstream: azure, name: gpt-4o}
  both: {upstreams: {local: 3, azure: 1}, on_overflow: [llama-9, gpt-4o]}
  pinned: {name: pinned}
defaults: {output_reserve: 77, tokenizer: o200k_base}
fold: {low_water: 0.5}
"""

SETTINGS = parse(TEXT, {})

ROUTES = [
    # model asked for, as the upstream is told, upstream, window
    ("gpt-4o", "gpt-4o", "openai", 128000),
    ("something", "something", "openai", 1000),
    ("", "", "openai", 1000),
    ("llama-2", "llama-2", "local", 8192),
    ("llama-2-big", "llama-2-big", "local", 65536),
    ("llama-3-x", "llama-3-x", "azure", 4096),
    ("fast", "gpt-4o", "openai", 128000),
    ("faster", "gpt-4o", "openai", 64000),
    ("spare", "gpt-4o", "azure", 128000),
    ("pinned", "pinned", "openai", None),
    ("both", "both", "local", None),
    ("GPT-4O", "GPT-4O", "openai", 1000),
]


@pytest.mark.parametrize(("model", "name", "upstream", "window"), ROUTES)
def test_an_exact_name_wins_over_the_most_specific_pattern_and_an_alias_is_followed(model, name, upstream, window):
    route = SETTINGS.route(model)
    assert (route.model, route.name, route.upstream, route.window) == (model, name, upstream, window)


def test_of_equally_specific_patterns_the_first_in_the_file_wins():
    settings = parse('models: {"ab*": {context_window: 1000}, "*bc": {context_window: 2000}}', {})
    assert settings.route("abc").window == 1000


def test_an_alias_takes_what_it_leaves_open_from_what_it_stands_for():
    route = SETTINGS.route("faster")
    assert (route.max_output_tokens, route.mode, route.policy.low_water) == (16384, "observe", 0.3)


def test_an_alias_has_no_fallbacks_but_its_own():
    assert SETTINGS.route("spare").fallbacks == ()


def test_defaults_fill_in_what_no_entry_says():
    assert (SETTINGS.route("x").output_reserve, SETTINGS.route("x").tokenizer) == (77, "o200k_base")


def test_a_route_is_found_once():
    assert SETTINGS.route("gpt-4o") is SETTINGS.route("gpt-4o")


def test_the_routes_remembered_are_bounded():
    settings = parse("", {})
    for number in range(3 * ROUTES_KEPT):
        settings.route(f"made-up-{number}")
    assert len(settings._routes) <= ROUTES_KEPT


def test_weights_name_several_upstreams():
    assert SETTINGS.route("both").choices == (("local", 3), ("azure", 1))
    assert SETTINGS.route("gpt-4o").choices == (("openai", 1),)


def test_fallbacks_of_a_model_are_other_models():
    assert SETTINGS.fallbacks(SETTINGS.route("gpt-4o")) == (SETTINGS.route("spare"),)


def test_fallbacks_of_an_upstream_serve_the_same_model():
    route = SETTINGS.route("something")
    assert [(other.name, other.upstream, other.window) for other in SETTINGS.fallbacks(route)] == [
        ("something", "azure", 1000),
        ("something", "local", 1000),
    ]


def test_larger_models_are_found_by_name_or_pattern():
    assert [route.name for route in SETTINGS.larger(SETTINGS.route("both"))] == ["llama-9", "gpt-4o"]


def test_simple_settings_need_a_url_alone():
    settings = Settings.simple("http://127.0.0.1:8000/v1/")
    assert settings.upstreams["default"].base_url == "http://127.0.0.1:8000/v1"
    assert settings.route("any/model").upstream == "default"
    assert settings.route("any/model").window is None
    assert Settings.simple("http://x/v1", 4096).route("any/model").window == 4096


def test_the_default_window_is_given_or_four_times_the_default_output():
    assert parse("", {}).default_window == 131072
    assert parse("defaults: {max_tokens: 1000}", {}).default_window == 4000
    assert parse("defaults: {context_window: 500}", {}).default_window == 500


def test_settings_do_not_change():
    with pytest.raises(AttributeError):
        SETTINGS.server.port = 1  # type: ignore[misc]
