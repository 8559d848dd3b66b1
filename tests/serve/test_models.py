"""`GET /v1/models` lists what a client may name: the models of all upstreams and the configured aliases."""

from contextlib import AsyncExitStack

import orjson
import pytest
from openai import AsyncOpenAI

from gateway.standin import StandIn
from tests import fakes


@pytest.fixture
async def two(gateway):
    """A gateway before two upstreams, the first of which is the default one and uses the client's key."""
    async with AsyncExitStack() as stack:

        async def start(first: StandIn, second: StandIn, **config):
            for each in (first, second):
                await stack.enter_async_context(each)
            upstreams = {
                "standin": {"provider": "openai", "base_url": first.base_url},
                "local": {"provider": "vllm", "base_url": second.base_url, **config.pop("local", {})},
            }
            models = config.pop(
                "models", {"fast": {"name": "gpt-4o-mini"}, "llama-*": {"upstream": "local", "context_window": 8192}}
            )
            return await gateway(first, {"upstreams": upstreams, "models": models, **config})

        yield start


CREDENTIALS = {"authorization": "Bearer sk-client", "cookie": "session=1", "openai-organization": "org-1"}


async def listed(running, headers=None):
    answer = await running.ask("GET", "/models", headers=headers)
    assert answer.status == 200, answer.body
    return {entry["id"]: entry for entry in answer.json["data"]}


async def test_all_upstreams_and_aliases_are_listed_with_their_windows(two):
    running = await two(StandIn(models=("gpt-4o", "shared")), StandIn(models=("llama-3", "shared")))
    found = await listed(running)
    assert list(found) == ["gpt-4o", "shared", "llama-3", "fast"]
    assert found["llama-3"]["turnfold"] == {"upstream": "local", "name": "llama-3", "context_window": 8192}
    assert found["fast"]["turnfold"] == {"upstream": "standin", "name": "gpt-4o-mini", "context_window": 128_000}
    assert found["fast"]["context_window"] == 128_000


async def test_the_openai_sdk_reads_the_list_and_an_alias(two):
    running = await two(StandIn(models=("gpt-4o",)), StandIn(models=("llama-3",)))
    async with AsyncOpenAI(base_url=running.base_url, api_key="k", max_retries=0) as client:
        found = [model async for model in client.models.list()]
        assert [(model.id, model.object) for model in found] == [
            (name, "model") for name in ("gpt-4o", "llama-3", "fast")
        ]
        assert all(isinstance(model.created, int) and model.owned_by for model in found)
        assert (await client.models.retrieve("fast")).id == "fast"


async def test_each_upstream_is_asked_with_its_own_key(two):
    first, second = StandIn(models=("a",)), StandIn(models=("b",))
    running = await two(first, second, local={"api_key": "sk-local"})
    await listed(running, CREDENTIALS)
    [own], [other] = first.requests, second.requests
    assert own.headers["authorization"] == "Bearer sk-client"
    assert other.headers["authorization"] == "Bearer sk-local"
    assert not {"cookie", "openai-organization"} & {name.lower() for name in other.headers}


async def test_the_clients_key_goes_to_no_other_upstream(two):
    first, second = StandIn(models=("a",)), StandIn(models=("b",))
    running = await two(first, second)
    assert list(await listed(running, CREDENTIALS)) == ["a", "b", "fast"]
    assert "authorization" not in {name.lower() for name in second.requests[0].headers}


@pytest.mark.parametrize(
    "bad", [fakes.error(500, "down"), fakes.verbatim(200, b"<html>"), fakes.verbatim(200, b'{"data":5}')]
)
async def test_an_upstream_that_fails_is_left_out(two, bad):
    running = await two(StandIn(models=("a",)), StandIn(model_list=bad))
    assert list(await listed(running)) == ["a", "fast"]


async def test_an_upstream_that_is_away_is_left_out(two):
    running = await two(StandIn(models=("a",)), StandIn(), local={"base_url": "http://127.0.0.1:9/v1"})
    assert list(await listed(running)) == ["a", "fast"]


async def test_where_all_fail_the_default_upstream_says_why(two):
    refused = fakes.error(401, "wrong key", code="invalid_api_key")
    running = await two(StandIn(model_list=refused), StandIn(model_list=fakes.error(500, "down")))
    answer = await running.ask("GET", "/models")
    assert (answer.status, answer.json["error"]["code"]) == (401, "invalid_api_key")


async def test_one_upstream_without_names_is_handed_on_as_it_is(gateway):
    body = b'{"data": [ {"id":"x"} ],  "odd": 1}'
    async with StandIn(model_list=fakes.verbatim(200, body)) as standin:
        answer = await (await gateway(standin)).ask("GET", "/models")
        assert answer.body == body


async def test_a_long_list_is_read_whole(two):
    many = {"data": [{"id": f"model-{number}", "description": "x" * 500} for number in range(2000)]}
    running = await two(StandIn(model_list=fakes.verbatim(200, orjson.dumps(many))), StandIn(models=("b",)))
    assert len(await listed(running)) == 2002
