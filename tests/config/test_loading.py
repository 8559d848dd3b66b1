"""The configuration file: what it may say, and how every mistake is told, with its place, at once."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.pretty import pretty_repr

from gateway.config import Settings, SettingsError, load, parse
from gateway.upstream.client import target

ROOT = Path(__file__).resolve().parents[2]

DESIGNED = """
server: {host: 127.0.0.1, port: 8787, workers: 1, max_body: 64MiB, shutdown_grace: 30s}
admin:  {host: 127.0.0.1, port: 8788, token: "${TURNFOLD_ADMIN_TOKEN:-}"}
store:  {url: "sqlite:///turnfold.db"}
upstreams:
  openai: {provider: openai, base_url: https://api.openai.com/v1, api_key: "${OPENAI_API_KEY:-}"}
  local:  {provider: vllm, base_url: http://127.0.0.1:8000/v1}
default_upstream: openai
models:
  gpt-4o:    {context_window: 128000, max_output_tokens: 16384}
  "llama-*": {upstream: local, context_window: 8192, tokenizer: auto}
  fast:      {upstream: openai, name: gpt-4o-mini}
  small:     {upstream: local, context_window: 8192, on_overflow: [gpt-4o]}
defaults:
  max_tokens: 32768
  context_window: null
fold:
  mode: enforce
  low_water: 0.6
  margin: 0.02
  max_turns: null
  tool_result_chars: 20000
  max_retries: 3
  recall:  {share: 0.15}
  summary: {model: null, at: 0.7, deadline: 60s}
"""

TWO = """
upstreams:
  a: {provider: openai, base_url: http://a/v1}
  b: {provider: vllm, base_url: http://b/v1}
"""


def problems(text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse(text, environ or {}, "t.yaml")
    assert str(caught.value) == "\n".join(caught.value.problems)
    return [problem.removeprefix("t.yaml:") for problem in caught.value.problems]


def test_every_documented_key_is_read():
    settings = parse(DESIGNED, {"OPENAI_API_KEY": "sk-1"})
    assert settings.server.max_body == 64 * 2**20
    assert settings.server.shutdown_grace_s == 30
    assert settings.upstreams["openai"].api_key == "sk-1"
    assert settings.upstreams["local"].provider == "vllm"
    assert settings.upstreams["local"].api_key == ""
    assert settings.default_upstream == "openai"
    assert settings.admin.token == ""
    assert settings.store.url == "sqlite:///turnfold.db"
    assert settings.default_window == 131072
    assert settings.fold.policy.recall_share == 0.15
    assert settings.fold.summary.model == ""


@pytest.mark.parametrize(
    "url", ["redis://h:6379/0", "rediss://h/1", "valkey://h:6379/0", "valkeys://h/1", "unix:///run/r.sock"]
)
def test_every_server_that_a_store_can_be_is_a_location_of_it(url: str):
    assert parse(f"store: {{url: '{url}'}}", {}).store.url == url


def test_what_is_documented_is_what_holds_where_nothing_is_said():
    """Every value of the documented example but its upstreams and models is the default."""
    written, silent = parse(DESIGNED, {}), parse("", {})
    for part in ("server", "admin", "store", "log", "defaults", "fold"):
        assert getattr(written, part) == getattr(silent, part)


def test_an_empty_file_sends_everything_to_openai_with_the_clients_own_key():
    settings = parse("# nothing yet\n", {})
    assert settings.default_upstream == "openai"
    assert settings.upstreams["openai"].base_url == "https://api.openai.com/v1"
    assert settings.upstreams["openai"].api_key == ""


def test_the_shipped_file_works_without_any_environment_and_states_the_defaults():
    shipped = load(ROOT / "config" / "turnfold.yaml", {})
    assert shipped == parse("", {})


def test_the_only_upstream_is_the_default_one():
    assert parse("upstreams: {x: {provider: vllm, base_url: http://x/v1/}}", {}).default_upstream == "x"


def test_a_base_url_loses_its_last_slash():
    assert (
        parse("upstreams: {x: {provider: vllm, base_url: http://x/v1/}}", {}).upstreams["x"].base_url == "http://x/v1"
    )


BAD = [
    # what is written, what is said (after the file's name)
    ("server: {port: 99999}", "1: server.port: 99999 is not a port number from 0 to 65535 (0: any free one)"),
    ('server: {port: "http"}', '1: server.port: "http" is not a port number from 0 to 65535 (0: any free one)'),
    ("server: {port: 80.5}", "1: server.port: 80.5 is not a port number from 0 to 65535 (0: any free one)"),
    ("server: {preload: often}", '1: server.preload: "often" is not true or false'),
    ("server: {workers: 0}", "1: server.workers: 0 is not a number of processes, 1 to 256"),
    ("server:\n  max_body: 64", "2: server.max_body: 64 is not a size with its unit, such as 64MiB, 10MB or 512KiB"),
    (
        "server: {max_body: 64M}",
        '1: server.max_body: "64M" is not a size with its unit, such as 64MiB, 10MB or 512KiB',
    ),
    (
        "server: {shutdown_grace: 30}",
        "1: server.shutdown_grace: 30 is not a duration with its unit, such as 500ms, 30s, 5m or 7d; did you mean 30s?",
    ),
    (
        "server: {shutdown_grace: 1_000}",
        "1: server.shutdown_grace: 1_000 is not a duration with its unit, such as 500ms, 30s, 5m or 7d",
    ),
    (
        "server: {shutdown_grace: 30 sec}",
        '1: server.shutdown_grace: "30 sec" is not a duration with its unit, such as 500ms, 30s, 5m or 7d',
    ),
    (
        "upstreams: {u: {provider: vllm, base_url: http://h/v1, timeout: 0s}}",
        '1: upstreams.u.timeout: "0s" is not a duration above 0, such as 30s or 5m',
    ),
    (
        "store: {timeout: 50}",
        "1: store.timeout: 50 is not a duration with its unit, such as 500ms, 30s, 5m or 7d; did you mean 50ms?",
    ),
    (
        "observe: {keep: 7}",
        "1: observe.keep: 7 is not a duration with its unit, such as 500ms, 30s, 5m or 7d; did you mean 7d?",
    ),
    (
        "server: {host: 127.0.0.1:8787}",
        '1: server.host: "127.0.0.1:8787" is not an address without scheme and port, such as 127.0.0.1 or 0.0.0.0; did you mean 127.0.0.1?',
    ),
    (
        "admin: {host: 'http://localhost/'}",
        '1: admin.host: "http://localhost/" is not an address without scheme and port, such as 127.0.0.1 or 0.0.0.0; did you mean localhost?',
    ),
    (
        "server: {host: '[::1]'}",
        '1: server.host: "[::1]" is not an address without scheme and port, such as 127.0.0.1 or 0.0.0.0; did you mean ::1?',
    ),
    (
        "upstreams: {u: {provider: vllm, base_url: http://h/v1, url: http://h/v1}}",
        "1: upstreams.u.url: unknown key; did you mean base_url?",
    ),
    ("server: {host: ''}", '1: server.host: "" is not a name'),
    ("server: 8787", "1: server: 8787 is not a mapping of keys to values"),
    ("server: [a]", "1: server: a list is not a mapping of keys to values"),
    ("server: {prt: 1}", "1: server.prt: unknown key; did you mean port?"),
    ("upstreams: {u: {provider: vllm, base_url: http://h/v1, verify: maybe}}", '1: upstreams.u.verify: "maybe" is not true or false'),
    ("admin: {token: {a: b}}", "1: admin.token: a mapping is not a single value"),
    (
        "store: {url: sqlite:turnfold.db}",
        '1: store.url: "sqlite:turnfold.db" is not memory://, sqlite:///path or redis://host:6379/0',
    ),
    ("store: {url: 'redis://h:abc/0'}", '1: store.url: "redis://h:abc/0" is not memory://, sqlite:///path or redis://host:6379/0'),
    (
        "server: {cors_origins: [chat.example.com]}",
        '1: server.cors_origins.0: "chat.example.com" is not an origin such as https://chat.example.com, without a path; '
        "did you mean https://chat.example.com?",
    ),
    (
        "server: {cors_origins: https://Chat.example.com/app}",
        '1: server.cors_origins: "https://Chat.example.com/app" is not an origin such as https://chat.example.com, without a path; '
        "did you mean https://chat.example.com?",
    ),
    ("store: {url: 'redis://'}", '1: store.url: "redis://" is not memory://, sqlite:///path or redis://host:6379/0'),
    ("log: {level: warn}", '1: log.level: "warn" is not one of debug, info, warning, error; did you mean warning?'),
    ("fold: {mode: of}", '1: fold.mode: "of" is not one of enforce, observe, off; did you mean off?'),
    ("fold: {low_water: 60}", "1: fold.low_water: 60 is not a share from 0 to 1, such as 0.25"),
    ("fold: {margin: -0.1}", "1: fold.margin: -0.1 is not a share from 0 to 1, such as 0.25"),
    ("fold: {recall: {share: 15%}}", '1: fold.recall.share: "15%" is not a share from 0 to 1, such as 0.25'),
    ("fold: {max_turns: 0}", "1: fold.max_turns: 0 is not a whole number, 1 or more"),
    ("fold: {max_retries: -1}", "1: fold.max_retries: -1 is not a whole number, 0 or more"),
    ("fold: {summary: {upstrem: a}}", "1: fold.summary.upstrem: unknown key; did you mean upstream?"),
    ("fold: {summary: {upstream: a}}", '1: fold.summary.upstream: "a" is not an upstream; known: openai'),
    (
        "models: {gpt-4o: {context_window: 128k}}",
        '1: models.gpt-4o.context_window: "128k" is not a number of tokens, 256 or more, such as 128000; did you mean 128000?',
    ),
    (
        "models:\n  gpt-4.1:\n    context_window: 0",
        "3: models.gpt-4.1.context_window: 0 is not a number of tokens, 256 or more, such as 128000",
    ),
    (
        "defaults: {context_window: 10}",
        "1: defaults.context_window: 10 is not a number of tokens, 256 or more, such as 128000",
    ),
    ("defaults: {max_tokens: 10}", "1: defaults.max_tokens: 10 is not a number of tokens, 64 or more, such as 32768"),
    (
        "models: {a: {output_reserve: 900, context_window: 900}}",
        "1: models.a.output_reserve: 900 leaves nothing of context_window 900",
    ),
    ("models: {a: {context_windw: 1}}", "1: models.a.context_windw: unknown key; did you mean context_window?"),
    ("models: {a: {upstream: opena}}", '1: models.a.upstream: "opena" is not an upstream; did you mean openai?'),
    ("models: {a: {upstreams: {b: 1}}}", '1: models.a.upstreams: "b" is not an upstream; known: openai'),
    ("models: {a: {upstreams: {openai: 0}}}", "1: models.a.upstreams.openai: 0 is not a whole number, 1 or more"),
    (
        "models: {a: {upstreams: {openai: 1}, upstream: openai}}",
        "1: models.a.upstreams: stands beside upstream; one of them is enough",
    ),
    ("models: {a: {name: b}, b: {name: a}}", "1: models.a.name: leads in a circle: a -> b -> a"),
    ("models: {a: {name: b*}}", '1: models.a.name: "b*" is not the name of one model'),
    ("models: {big: {on_overflow: [bg]}}", '1: models.big.on_overflow: "bg" is not a configured model; did you mean big?'),
    ("models: {a: {on_overflow: a}}", "1: models.a.on_overflow: a model cannot replace itself"),
    ("models: {a: {low_water: 0.5, fold: {low_water: 0.4}}}", "1: models.a.low_water: is written twice, here and under models.a.fold"),
    ("models: {a: [1]}", "1: models.a: a list is not a mapping of keys to values"),
    ("upstreams: {}", "1: upstreams: at least one upstream is needed"),
    ("upstreams: {x: {base_url: http://x}}", "1: upstreams.x.provider: is missing"),
    ("upstreams:\n  x:\n    provider: vllm", "2: upstreams.x.base_url: is missing"),
    (
        "upstreams: {x: {provider: vllm, base_url: x/v1}}",
        '1: upstreams.x.base_url: "x/v1" is not a URL that begins with http:// or https:// and names a host; did you mean http://x/v1?',
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: 'http://me:secret@x:port/'}}",
        '1: upstreams.x.base_url: "http://***@x:port/" is not a URL that begins with http:// or https:// and names a host',
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: 'http://me:sec/ret@x:port/'}}",
        '1: upstreams.x.base_url: "http://***@x:port/" is not a URL that begins with http:// or https:// and names a host',
    ),
    (
        "models: {a: {upstream: 'http://me:secret@x/v1'}}",
        '1: models.a.upstream: "http://***@x/v1" is not an upstream; known: openai',
    ),
    (f"models: {{a: {{upstream: {'u' * 99}}}}}", f'1: models.a.upstream: "{"u" * 60}..." is not an upstream; known: openai'),
    (
        "server: {cors_origins: ['https://me:secret@x/v1']}",
        '1: server.cors_origins.0: "https://***@x/v1" is not an origin such as https://chat.example.com, without a path',
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: http://x, fallbacks: x}}",
        "1: upstreams.x.fallbacks: an upstream cannot replace itself",
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: http://x, headers: {a: [b]}}}",
        "1: upstreams.x.headers.a: a list is not a single value",
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: http://x, api_key: \"sk-a\\nx-evil: b\"}}",
        "1: upstreams.x.api_key: the value (not shown) is not a text without line breaks and other control characters",
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: http://x, headers: {x-team: \"a\\r\\nx-evil: b\"}}}",
        "1: upstreams.x.headers.x-team: the value (not shown) is not a text without line breaks and other control characters",
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: http://x, headers: {'x a:': b}}}",
        "1: upstreams.x.headers.x a:: is not the name of a header",
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: http://x, headers: {Transfer-Encoding: chunked}}}",
        "1: upstreams.x.headers.Transfer-Encoding: is written by the gateway itself; leave it out",
    ),
    (
        "upstreams: {x: {provider: vllm, base_url: 'http://127.0.0..1:8000/v1'}}",
        '1: upstreams.x.base_url: "http://127.0.0..1:8000/v1" is not a URL that begins with http:// or https:// and names a host',
    ),
    ("upstreams: {x: {provider: vllm, base_url: '${NOT_SET:-}'}}", "1: upstreams.x.base_url: is missing"),
    ("upstreams: {x: {provider: , base_url: http://x}}", "1: upstreams.x.provider: is missing"),
    ("keys: {a: {hash: null}}", "1: keys.a.hash: is missing"),
    ("models: {a: {context_window: 1000000000000001}}", "1: models.a.context_window: 1000000000000001 is not a number of tokens, 256 or more, such as 128000, at most 10^15"),
    ("server: {max_body: 1000000GiB}", '1: server.max_body: "1000000GiB" is not a size with its unit, such as 64MiB, 10MB or 512KiB, at most 10^15 bytes'),
    ("server: {max_body: %sGiB}" % ("9" * 400), f'1: server.max_body: "{"9" * 60}..." is not a size with its unit, such as 64MiB, 10MB or 512KiB, at most 10^15 bytes'),
    ("store: {ttl: 36501d}", '1: store.ttl: "36501d" is not a duration with its unit, such as 500ms, 30s, 5m or 7d, at most 100 years'),
    ('upstreams: {x: {provider: vllm, base_url: http://x, ca_file: "a\\0b"}}', '1: upstreams.x.ca_file: "a\0b" is not a text without the character U+0000'),
    (
        "server: {allowed_hosts: [https://Gate.example.com/v1]}",
        '1: server.allowed_hosts.0: "https://Gate.example.com/v1" is not a name of a host, such as gate.example.com or *.example.com; did you mean gate.example.com?',
    ),
    (
        "server: {allowed_hosts: gate.example.com:8787}",
        '1: server.allowed_hosts: "gate.example.com:8787" is not a name of a host, such as gate.example.com or *.example.com; did you mean gate.example.com?',
    ),
    (
        f"keys: {{a: {{hash: 'sha256:{'0' * 64}', expires: '9999-12-31T23:59:59-14:00'}}}}",
        '1: keys.a.expires: "9999-12-31T23:59:59-14:00" is not a date such as 2027-01-31 or 2027-01-31T12:00:00Z',
    ),
    (TWO, "1: default_upstream: is missing; one of a, b"),
    (TWO + "default_upstream: c", '5: default_upstream: "c" is not an upstream; known: a, b'),
    ("admin: {host: 0.0.0.0}", "1: admin.token: is required, because admin.host is not a loopback address"),
    ("admin: {host: 10.0.0.7, token: ''}", "1: admin.token: is required, because admin.host is not a loopback address"),
    ("admin: {port: 8787}", "1: admin.port: is also server.port (8787)"),
    ("server: {workers: 3}\nadmin: {port: 8786}", "2: admin.port: is 8786 to 8788, one for each of 3 workers, and server.port (8787) is one of them"),
    ("server: {workers: 2}\nadmin: {port: 65535}", "2: admin.port: is 65535 to 65536, one for each of 2 workers, and the highest port is 65535"),
    ("nonsense: 1", "1: nonsense: unknown key; known: server, admin, store, log, observe, upstreams, default_upstream, models, keys, defaults, fold"),
    ("1", "1: 1 is not a mapping of keys to values"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BAD, ids=[said for _, said in BAD])
def test_a_mistake_is_told_with_its_line_path_value_and_what_was_expected(text, said):
    found = problems(text)
    assert found[0] == said
    assert len(found) == (2 if "circle" in said else 1)


@pytest.mark.parametrize("key", ["on_overflow", "fallbacks"])
@pytest.mark.parametrize("target", ["gpt-4o", "claude-sonnet-4-5", "a-model-of-our-own"])
def test_a_model_that_stands_in_for_another_needs_no_entry(key, target):
    settings = parse(f"models: {{small: {{{key}: [{target}]}}}}", {})
    route = settings.route("small")
    [other] = settings.larger(route) if key == "on_overflow" else settings.fallbacks(route)
    assert (other.name, other.upstream) == (target, "openai")


def test_a_provider_that_is_unknown_is_told_with_the_nearest():
    (found,) = problems("upstreams: {x: {provider: vlm, base_url: http://x}}")
    assert found.startswith('1: upstreams.x.provider: "vlm" is not one of openai, azure, ')
    assert found.endswith("; did you mean vllm?")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file():
    text = "server:\n  prt: 1\n  workers: none\nlog: {level: loud}\nmodels:\n  a: {upstream: nowhere, mode: on}\n"
    assert [problem.split(": ")[:2] for problem in problems(text)] == [
        ["2", "server.prt"],
        ["3", "server.workers"],
        ["4", "log.level"],
        ["6", "models.a.mode"],
        ["6", "models.a.upstream"],
    ]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_no_token_is_needed_on_the_loopback_interface(host):
    assert parse(f"admin: {{host: '{host}'}}", {}).admin.host == host


def test_both_ports_may_be_any_free_one():
    assert parse("server: {port: 0}\nadmin: {port: 0}", {}).admin.port == 0


DURATIONS = [("500ms", 0.5), ("30s", 30), ("5m", 300), ("1.5h", 5400), ("7d", 604800), ("0s", 0)]
SIZES = [("64MiB", 2**26), ("10MB", 10**7), ("512KiB", 2**19), ("1 gib", 2**30), ("300b", 300), ("1.5kb", 1500)]


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_durations_carry_their_unit(text, seconds):
    assert parse(f"server: {{keep_alive: {text}}}", {}).server.keep_alive_s == seconds


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_sizes_carry_their_unit(text, size):
    assert parse(f"server: {{max_header: {text}}}", {}).server.max_header == size


def test_numbers_may_be_grouped_by_underscores():
    assert parse("defaults: {context_window: 128_000}", {}).default_window == 128000


@pytest.mark.parametrize("written", ["off", "'off'", "OFF"])
def test_mode_off_is_a_word_though_yaml_takes_it_for_false(written):
    assert parse(f"fold: {{mode: {written}}}", {}).fold.mode == "off"


def test_a_key_without_a_value_is_as_if_it_were_not_there():
    settings = parse("server:\nfold:\n  mode:\n  summary: {model: ~}\nmodels:\n  gpt-4o:\n", {})
    assert settings == parse("models: {gpt-4o: {}}", {})


@pytest.mark.parametrize(
    "written",
    [
        "models: {a: {mode: observe, low_water: 0.5, recall: {share: 0}, summary: {model: m}}}",
        "models: {a: {fold: {mode: observe, low_water: 0.5, recall: {share: 0}, summary: {model: m}}}}",
        "models: {a: {mode: observe, low_water: 0.5, fold: {recall: {share: 0}, summary: {model: m}}}}",
    ],
)
def test_the_keys_of_fold_may_stand_under_one_model(written):
    settings = parse(written + "\nfold: {margin: 0.1, summary: {at: 0.5}}", {})
    route, other = settings.route("a"), settings.route("b")
    assert (route.mode, route.policy.low_water, route.policy.recall_share) == ("observe", 0.5, 0.0)
    assert (route.summary.model, route.summary.at, route.policy.margin) == ("m", 0.5, 0.1)
    assert (other.mode, other.policy.low_water, other.summary.model) == ("enforce", 0.6, "")


SECRETS = [
    "upstreams: {x: {provider: vllm, base_url: http://x, api_key: sk-hidden}}",
    "upstreams: {x: {provider: vllm, base_url: 'http://me:sk-hidden@x/v1'}}",
    "upstreams: {x: {provider: vllm, base_url: http://x, headers: {authorization: sk-hidden}}}",
    "admin: {token: sk-hidden}",
    "store: {url: 'redis://:sk-hidden@cache:6379/0', encryption_key: sk-hidden}",
]


@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_is_in_what_settings_look_like(text):
    settings = parse(text, {})
    assert "sk-hidden" not in repr(settings)
    assert "sk-hidden" not in pretty_repr(settings)
    assert "sk-hidden" not in repr([target(upstream) for upstream in settings.upstreams.values()])


LEAKS = [
    "admin: {token: ['${SECRET}']}",
    "server: {port: '${SECRET}'}",
    "upstreams: {x: {provider: '${SECRET}', base_url: '${SECRET}', headers: ['${SECRET}']}}",
    "fold: {mode: '${SECRET}', summary: {at: '${SECRET}'}}",
    "default_upstream: ${SECRET}",
    "admin: {host: '${SECRET}'}",
    "models: {a: {name: '${SECRET}*', context_window: '${SECRET}'}}",
    "store: {url: 'redis:/:${SECRET}@x', encryption_key: {a: '${SECRET}'}}",
]


@pytest.mark.parametrize("text", LEAKS)
def test_no_value_of_the_environment_is_in_a_problem(text):
    assert "sk-hidden" not in "\n".join(problems(text, {"SECRET": "sk-hidden"}))


def test_a_file_that_is_not_there_or_not_text_is_one_problem(tmp_path):
    missing, latin = tmp_path / "none.yaml", tmp_path / "latin.yaml"
    latin.write_bytes("log: {level: für}".encode("latin-1"))
    for path, said in (
        (missing, "No such file or directory; `turnfold init --upstream URL` writes a first one"),
        (latin, "not UTF-8 text (byte 14)"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(SettingsError) as caught:
            load(path, {})
        assert caught.value.problems == (f"{path}: {said}",)


KEYS = st.sampled_from(
    [
        "server",
        "admin",
        "store",
        "log",
        "upstreams",
        "default_upstream",
        "models",
        "defaults",
        "fold",
        "host",
        "port",
        "max_body",
        "name",
        "fold",
        "on_overflow",
        "base_url",
        "provider",
        "context_window",
        "summary",
        "recall",
        "share",
        "mode",
        "headers",
        "fallbacks",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_document_is_read_or_its_problems_told(document):
    read_or_told(yaml.safe_dump(document, allow_unicode=True))


@given(st.text(alphabet=st.sampled_from("server: {}[]&*a<|>-?!%@`'\"#\n\t,0$:~\x00é"), max_size=60))
def test_any_text_is_read_or_its_problems_told(text):
    read_or_told(text)


def read_or_told(text: str) -> None:
    try:
        assert isinstance(parse(text, {"A": "b"}, "t.yaml"), Settings)
    except SettingsError as error:
        assert error.problems
        assert all(problem.startswith("t.yaml:") for problem in error.problems)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("{max_body: 200MiB}", "1: server.max_body: max_in_flight (67108864 bytes) is less than max_body"),
        ("{max_in_flight: 1MiB}", "1: server.max_in_flight: max_in_flight (1048576 bytes) is less than max_body"),
        ("{max_depth: 0}", "1: server.max_depth: 0 is not a whole number, 1 or more"),
        ("{min_upload_rate: 5}", "1: server.min_upload_rate: 5 is not a size with its unit"),
    ],
)
def test_limits_that_cannot_hold_together_are_told(server: str, problem: str) -> None:
    (told,) = problems(f"server: {server}")
    assert told.startswith(problem)


def test_merged_entries_merge_others_in_turn() -> None:
    upstreams = """
upstreams:
  a: &a {provider: vllm, base_url: http://a, api_key: sk-a, timeout: 7s}
  b: &b {<<: *a, base_url: http://b, timeout: 8s}
  c: {<<: *b, base_url: http://c}
  d: &d {<<: *d, provider: vllm, base_url: http://d}
default_upstream: a
"""
    c = parse(upstreams, {}).upstreams["c"]
    assert (c.provider, c.base_url, c.api_key, c.timeout_s) == ("vllm", "http://c", "sk-a", 8)


def test_hosts_may_be_names_patterns_and_addresses() -> None:
    given = ["gate", "*.Example.com", "*", "::1", "10.0.0.1", "bücher.example."]
    assert parse(f"server: {{allowed_hosts: {given}}}", {}).server.allowed_hosts == tuple(given)


def test_limits_may_be_larger_or_switched_off() -> None:
    server = parse("server: {max_body: 1GiB, max_in_flight: 2GiB, min_upload_rate: 0B}", {}).server
    assert (server.max_body, server.max_in_flight, server.min_upload_rate) == (2**30, 2**31, 0)
