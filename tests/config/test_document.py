"""The YAML document: places, variables from the environment, keys that are written twice, anchors."""

import pytest

from gateway.config import SettingsError, parse
from gateway.config.document import WrongValue, substitute

ENVIRON = {"HOST": "10.0.0.1", "EMPTY": "", "PORT": "9000", "BRACES": "a: {b"}

TEXTS = [
    ("plain", "plain"),
    ("${HOST}", "10.0.0.1"),
    ("http://${HOST}:${PORT}/v1", "http://10.0.0.1:9000/v1"),
    ("${NONE:-}", ""),
    ("${NONE:-other}", "other"),
    ("${NONE:-http://x:1/}", "http://x:1/"),
    ("${EMPTY:-other}", "other"),
    ("${EMPTY}", ""),
    ("${BRACES}", "a: {b"),
    ("$${HOST}", "${HOST}"),
    ("pa$$word", "pa$word"),
    ("a $ b $5", "a $ b $5"),
]
MALFORMED = ["${", "${}", "${HOST", "${1A}", "${A B}", "${A-b}", "${A:b}"]


@pytest.mark.parametrize(("text", "meant"), TEXTS)
def test_variables_are_replaced_by_their_values(text, meant):
    assert substitute(text, ENVIRON) == meant


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_variable_is_wrong(text):
    with pytest.raises(WrongValue, match="NAME"):
        substitute(text, ENVIRON)


def test_a_missing_variable_without_a_default_is_told_by_its_name():
    with pytest.raises(SettingsError) as caught:
        parse("admin:\n  token: ${NONE}", {}, "t.yaml")
    assert caught.value.problems == (
        't.yaml:2: admin.token: "${NONE}" is not set: the environment has no NONE (${NONE:-default} gives a default)',
    )


def test_a_variable_may_stand_for_a_number_a_duration_or_a_word():
    settings = parse(
        "server: {port: '${PORT}', keep_alive: '${KEEP}'}\nfold: {mode: '${MODE}'}\nupstreams: {u: {provider: vllm, base_url: http://h/v1, verify: '${SHOW}'}}\ndefault_upstream: u",
        {"PORT": "9000", "KEEP": "5s", "MODE": "observe", "SHOW": "true"},
    )
    assert (settings.server.port, settings.server.keep_alive_s, settings.fold.mode) == (9000, 5, "observe")
    assert settings.upstreams["u"].verify is True


def test_an_empty_variable_is_as_if_the_key_were_not_there():
    settings = parse("server: {port: '${PORT:-}', host: '${HOST:-}'}\ndefaults: {context_window: '${W:-}'}", {})
    assert settings == parse("", {})


def test_a_variable_cannot_change_the_document():
    settings = parse("store: {encryption_key: '${EVIL}'}", {"EVIL": "x}\nserver: {port: 1}"})
    assert settings.server.port == 8787
    assert settings.store.encryption_key == "x}\nserver: {port: 1}"


DUPLICATES = [
    ("log: {level: info}\nserver: {port: 1}\nlog: {level: debug}", "t.yaml:3: log: is written twice, first on line 1"),
    ("server:\n  port: 1\n  host: h\n  port: 2", "t.yaml:4: server.port: is written twice, first on line 2"),
    ("models:\n  a: {}\n  a: {}", "t.yaml:3: models.a: is written twice, first on line 2"),
]


@pytest.mark.parametrize(("text", "said"), DUPLICATES)
def test_a_key_that_stands_twice_is_told_with_both_lines(text, said):
    with pytest.raises(SettingsError) as caught:
        parse(text, {}, "t.yaml")
    assert caught.value.problems == (said,)


BROKEN = [
    ("a: [", "t.yaml:2: not YAML: "),
    ("server:\n  port: 1\n host: x", "t.yaml:3: not YAML: "),
    ("a: *b", "t.yaml:1: not YAML: "),
    ("a: b\n---\nc: d", "t.yaml:2: not YAML: "),
    ("a: \x00", "t.yaml:1: not YAML: the character U+0000 is not allowed in a file"),
    ("a: ü\nb: \x07", "t.yaml:2: not YAML: the character U+0007 is not allowed in a file"),
    (
        "a:\n\tb: 1",
        "t.yaml:2: not YAML: found character that cannot start any token; indent with blanks, not with tabs",
    ),
    (
        "models:\n  *: {mode: off}",
        "t.yaml:2: not YAML: did not find expected alphabetic or numeric character; put quotes around a name",
    ),
    ('a: "b\n', "t.yaml:2: not YAML: "),
    ("{a: 1}: 2\n[b]: 3", "t.yaml:"),
]


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_what_is_not_yaml_is_told_with_its_line(text, said):
    with pytest.raises(SettingsError) as caught:
        parse(text, {}, "t.yaml")
    assert caught.value.problems[0].startswith(said)


def test_anchors_are_merged_and_what_is_written_wins():
    settings = parse(
        "models:\n  a: &base {context_window: 1000, mode: observe}\n  b: {<<: *base, context_window: 2000}\n"
        "  c: {<<: [*base, {max_output_tokens: 5}]}",
        {},
    )
    assert (settings.route("b").window, settings.route("b").mode) == (2000, "observe")
    assert (settings.route("c").window, settings.route("c").max_output_tokens) == (1000, 5)


@pytest.mark.parametrize("text", ["server: &a {<<: *a}", "models: &a {x: *a}", "fold: &a {summary: *a, recall: *a}"])
def test_a_document_that_refers_to_itself_ends(text):
    try:
        parse(text, {})
    except SettingsError as error:
        assert error.problems


def test_a_document_that_multiplies_itself_is_not_unfolded():
    layers = "\n".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 60))
    with pytest.raises(SettingsError) as caught:
        parse(f"x0: &x0 [a]\n{layers}", {})
    assert len(caught.value.problems) == 60
