"""Every form of a path is one address, and an address stays what it is."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from gateway.serve.incoming.paths import (
    PREFIXES,
    Address,
    address_below,
    address_of,
    is_native,
    models_in,
    query_for,
)
from gateway.wire.formats import FORMATS
from providers.azure import DEPLOYED

CHAT = "/v1/chat/completions"
ADDRESSES = [
    ("/v1/chat/completions", Address(CHAT)),
    ("/v1/chat/completions/", Address(CHAT)),
    ("/v1//chat/completions", Address(CHAT)),
    ("/V1/CHAT/Completions", Address(CHAT)),
    ("/v1/%63hat/completions", Address(CHAT)),
    ("/v1/Models/Qwen", Address("/v1/models/Qwen")),
    ("/Embeddings", Address("/v1/embeddings")),
    ("/openai/Deployments/X/Embeddings", Address("/v1/embeddings", "X", translated=True)),
    ("/chat/completions", Address(CHAT)),
    ("/v1/v1/v1/chat/completions", Address(CHAT)),
    ("/openai/v1/chat/completions", Address(CHAT, translated=True)),
    ("/a/b/chat/completions", Address(CHAT, translated=True)),
    ("/openai/deployments/gpt-4o/chat/completions", Address(CHAT, "gpt-4o", translated=True)),
    ("/openai/deployments/a%20b%2Ac/chat/completions/", Address(CHAT, "a b*c", translated=True)),
    ("/openai/deployments/org/name/embeddings", Address("/v1/embeddings", "org/name", translated=True)),
    ("/openai/deployments/chat/completions", Address("/v1/completions", "chat", translated=True)),
    ("/v1/deployments/x/audio/speech", Address("/v1/audio/speech", "x", translated=True)),
    ("/engines/x/completions", Address("/v1/completions", "x", translated=True)),
    ("/openai/deployments/chat", Address("/v1/deployments/chat", translated=True)),
    ("/openai/deployments//chat/completions", Address(CHAT, translated=True)),
    ("/openai/deployments///Chat//Completions/", Address(CHAT, translated=True)),
    ("/openai/deployments//completions", Address("/v1/completions", translated=True)),
    ("/openai/deployments//x//chat/completions", Address(CHAT, "x", translated=True)),
    ("/openai/deployments/org%2Fname/embeddings", Address("/v1/embeddings", "org/name", translated=True)),
    ("/openai/deployments/a%2fchat/completions", Address("/v1/completions", "a/chat", translated=True)),
    ("/openai/files", Address("/v1/files", translated=True)),
    ("/v1/files/a//b/", Address("/v1/files/a/b/")),
    ("/v1/models/caf%C3%A9%2Bx", Address("/v1/models/caf%C3%A9%2Bx")),
    ("/v1/threads/t/messages", Address("/v1/threads/t/messages")),
    ("/v1/sessions/s/messages", Address("/v1/sessions/s/messages")),
    ("/messages", Address("/v1/messages")),
    ("/any/messages", Address("/any/messages")),
    ("/api/chat", Address("/api/chat")),
    ("/healthz", Address("/healthz")),
    ("/", Address("/")),
    ("", Address("")),
]


@pytest.mark.parametrize(("path", "address"), ADDRESSES)
def test_a_path_has_one_address(path, address):
    assert address_of(path) == address


@pytest.mark.parametrize("format", [path for path in FORMATS if path.startswith("/v1/")])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_format_is_found_behind_every_prefix(prefix, format):
    assert address_of(prefix + format.removeprefix("/v1/")) == Address(format, translated=True)


PARTS = [
    "v1",
    "openai",
    "deployments",
    "engines",
    "chat",
    "completions",
    "models",
    "messages",
    "api",
    "x",
    "",
    "%61",
    "V1",
    "Deployments",
    "Models",
    *DEPLOYED[0].split("/"),
]


@given(st.lists(st.sampled_from(PARTS), max_size=8).map("/".join).map("/".__add__))
@example("/v1/openai/v1/openai/chat")
def test_an_address_is_plain_and_the_same_when_it_is_read_again(path):
    found = address_of(path)
    assert "//" not in found.path
    again = address_of(found.path)
    assert again.path == found.path or found.path.startswith("/v1/openai/")
    assert not again.deployment or not found.deployment


def test_below_the_base_path_the_same_holds_and_outside_nothing():
    assert address_below("/llm/openai/deployments/x/embeddings", "/llm").deployment == "x"
    assert address_below("/openai/deployments/x/embeddings", "/llm") == Address("")
    assert address_below("/llm2/v1/models", "/llm") == Address("")


NAMED = [
    ("/v1/models/a/b", {"a/b"}),
    ("/v1/models/a:generateContent", {"a:generateContent"}),
    ("/v1/engines/a/edits", {"a"}),
    ("/v1/deployments/a/x/y", {"a"}),
    ("/v1/projects/p/models/a:rawPredict", {"a"}),
    ("/v1/model/a/invoke", {"a"}),
    ("/v1/Deployments/a/x", {"a"}),
    ("/v1/deployments;x/a/y", {"a"}),
    ("/v1/x/models/models/a/b", {"models", "a"}),
    ("/v1/x/models/a/models/b:predict", {"a", "b"}),
    ("/v1/realtime?model=a&deployment=b&model=", {"a", "b"}),
    ("/v1/models", set()),
    ("/v1/models/", set()),
    ("/v1/files/f", set()),
]


@pytest.mark.parametrize(("url", "models"), NAMED)
def test_the_models_of_a_url_are_found(url, models):
    assert models_in(URL(url, encoded=True)) == models


QUERIES = [
    ("model=a&b=%2f", "model=a&b=%2f"),
    ("b=1&mod%65l=a%2Fb", "b=1&mod%65l=a%2Fb"),
    ("api-version=1&deployment=a/b&c=2", "api-version=1&model=a%2Fb&c=2"),
    ("Model=a/b", "model=a%2Fb"),
    ("model=alias&deployment=alias&&c", "model=a%2Fb&&c"),
    ("c=1", "c=1"),
    ("", ""),
]


@pytest.mark.parametrize(("query", "named"), QUERIES)
def test_a_query_names_its_model_once_and_only_if_it_named_one(query, named):
    assert query_for(query, "a" if query.startswith("model=a&") else "a/b") == named


def test_only_listed_endpoints_are_a_servers_own():
    assert is_native("POST", "/api/chat")
    assert not is_native("GET", "/api/chat")
    assert not is_native("POST", "/api/chatx")
