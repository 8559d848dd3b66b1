"""Client keys in the configuration: what is read, and what is refused."""

import pytest

from gateway.config import SettingsError, load, parse

HASH = "sha256:" + "0a" * 32
OPEN = "server: {host: 0.0.0.0, %s}\nupstreams: {u: {provider: openai, base_url: 'https://h/v1', api_key: k}}\n"


def problems(text):
    with pytest.raises(SettingsError) as error:
        parse(text, {})
    return "\n".join(error.value.problems)


WRONG = [
    ("keys: {a: null}", "keys.a.hash: is missing"),
    ("keys: {a: {hash: tfk_secret}}", "keys.a.hash:"),
    (f"keys: {{a: {{hash: '{HASH}', rpm: 0}}}}", "keys.a.rpm"),
    (f"keys: {{a: {{hash: '{HASH}', modes: [of]}}}}", "keys.a.modes"),
    (f"keys: {{a: {{hash: '{HASH}', expires: soon}}}}", "keys.a.expires"),
    (f"keys: {{a: {{hash: '{HASH}', modles: x}}}}", "unknown key; did you mean modes?"),
    (f"keys: {{a: {{hash: '{HASH}'}}, b: {{hash: '{HASH.upper().replace('SHA', 'sha')}'}}}}", "is also that of a"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_wrong_key_is_told_by_its_place(text, says):
    assert says in problems(text)


def test_off_loopback_keys_take_the_place_of_open():
    assert "turnfold keys add NAME" in problems(OPEN % "")
    parse(OPEN % "" + f"keys: {{a: {{hash: '{HASH}'}}}}", {})
    parse(OPEN % "keys_file: k.yaml", {})


def test_the_keys_of_the_file_stand_beside_those_of_the_configuration(tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text(f"server: {{keys_file: k.yaml}}\nkeys: {{a: {{hash: '{HASH}'}}}}")
    with pytest.raises(SettingsError, match=r"does not exist; `turnfold keys add NAME` makes it"):
        load(config, {})
    keys = tmp_path / "k.yaml"
    keys.write_text(f"keys: {{b: {{hash: '{HASH[:-1]}f', models: x}}}}")
    assert sorted(load(config, {}).keys) == ["a", "b"]
    for text, says in [
        (f"keys: {{b: {{hash: '{HASH}'}}}}", "is also that of a"),
        (f"keys: {{a: {{hash: '{HASH[:-1]}f'}}}}", "is the name of a key in the configuration too"),
        ("server: {port: 1}", "unknown key"),
        ("keys: [", "not YAML"),
    ]:
        keys.write_text(text)
        with pytest.raises(SettingsError, match=says):
            load(config, {})
