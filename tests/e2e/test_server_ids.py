"""Several upstreams, and things that only one of them has: a request that names one reaches the upstream that made it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import orjson
import pytest
import yaml
from openai import AsyncOpenAI

from tests import running
from tests.e2e.keeping import Keeper, keeper

JSON = {"content-type": "application/json"}
MANY = 4
"""Requests in a row. Half of them would reach the other server by turns."""


class Scene:
    """Two servers and one gateway in front of them."""

    def __init__(self, stack: AsyncExitStack, gateway: running.Gateway, servers: dict[str, Keeper]) -> None:
        self.gateway, self.servers = gateway, servers
        self._stack = stack

    def client(self, key: str = "sk-one") -> AsyncOpenAI:
        client = AsyncOpenAI(base_url=self.gateway.base_url, api_key=key, max_retries=0)
        self._stack.push_async_callback(client.close)
        return client

    async def post(self, path: str, **body: Any) -> running.Answered:
        return await self.gateway.ask("POST", path, orjson.dumps({"model": "m", **body}), JSON)

    def served(self) -> dict[str, list[str]]:
        """The requests of each server since the last look."""
        return {name: server.served for name, server in self.servers.items()}


def config(servers: dict[str, Keeper], **more: Any) -> dict[str, Any]:
    """Both servers serve ``m``; the first is the default. ``other`` is served by the second alone."""
    named = {name: {"provider": "openai", "base_url": server.base_url} for name, server in servers.items()}
    first, second = named
    models = {"m": {"upstreams": {first: 1, second: 1}}, "other": {"upstream": second}}
    text = running.configured("", {"models": models, "default_upstream": first, **more})
    return {**yaml.safe_load(text), "upstreams": named}


@asynccontextmanager
async def two(**given: Any) -> AsyncIterator[dict[str, Keeper]]:
    async with keeper("a", **given) as first, keeper("b", **given) as second:
        yield {"a": first, "b": second}


@pytest.fixture
async def scene() -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:

        async def start(**more: Any) -> Scene:
            servers = await stack.enter_async_context(two())
            whole = yaml.safe_dump(config(servers, **more))
            return Scene(stack, await stack.enter_async_context(running.in_process(whole)), servers)

        yield start


async def test_a_response_is_continued_where_it_was_made(scene: Any) -> None:
    told = await scene()
    client = told.client()
    for number in range(MANY):
        made = await client.responses.create(model="m", input=f"Question {number}")
        for _ in range(MANY):
            last = await client.responses.create(model="m", input="And?", previous_response_id=made.id)
            assert last.metadata == made.metadata
            made = last


async def test_a_streamed_response_is_continued_where_it_was_made(scene: Any) -> None:
    told = await scene()
    client = told.client()
    for _ in range(MANY):
        events = [event async for event in await client.responses.create(model="m", input="Question", stream=True)]
        made = events[-1].response
        for _ in range(MANY):
            last = await client.responses.create(model="m", input="And?", previous_response_id=made.id)
            assert last.metadata == made.metadata


async def test_a_stored_response_is_read_cancelled_and_deleted_where_it_was_made(scene: Any) -> None:
    told = await scene()
    client = told.client()
    for _ in range(MANY):
        made = await client.responses.create(model="m", input="Question", background=True)
        place = made.metadata["served_by"]
        told.served()
        await client.responses.retrieve(made.id)
        await client.responses.input_items.list(made.id)
        await client.responses.cancel(made.id)
        await client.responses.delete(made.id)
        served = told.served()
        assert len(served.pop(place)) == 4
        assert not any(served.values())


async def test_items_are_known_by_their_ids(scene: Any) -> None:
    """AI SDKs send the items of stored responses as references."""
    told = await scene()
    client = told.client()
    for stream in (False, True) * MANY:
        answer = await client.responses.create(model="m", input="Question", stream=stream)
        made = [event async for event in answer][-1].response if stream else answer
        again = [
            {"role": "user", "content": "Question"},
            {"type": "item_reference", "id": made.output[0].id},
            {"role": "user", "content": "And?"},
        ]
        last = await client.responses.create(model="m", input=again)
        assert last.metadata == made.metadata


@pytest.mark.parametrize("session", [{}, {"prompt_cache_key": "mine"}], ids=["no session", "a session"])
async def test_what_the_default_upstream_keeps_is_used_there(scene: Any, session: Any) -> None:
    """Conversations and files name no model, so the default upstream makes them."""
    told = await scene()
    client = told.client()
    conversation = await client.conversations.create()
    file = await client.files.create(file=("notes.txt", b"notes"), purpose="user_data")
    assert told.served() == {"a": ["POST /v1/conversations", "POST /v1/files"], "b": []}
    part = {"type": "input_file", "file_id": file.id}
    for _ in range(MANY):
        await client.responses.create(model="m", input="And?", conversation=conversation.id, **session)
        await client.responses.create(model="m", input=[{"role": "user", "content": [part]}], **session)
        await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": [{"type": "file", "file": {"file_id": file.id}}]}],
            **session,
        )
    assert told.served()["b"] == []


async def test_things_are_found_at_an_upstream_that_is_not_the_default(scene: Any) -> None:
    told = await scene()
    client = told.client()
    made = await client.responses.create(model="other", input="Question")
    batch = await told.post("/batches", model="other")
    chat = await client.chat.completions.create(model="other", messages=[{"role": "user", "content": "Hi"}], store=True)
    told.served()
    await client.responses.retrieve(made.id)
    await told.gateway.ask("POST", f"/batches/{batch.json['id']}/cancel")
    await client.chat.completions.delete(chat.id)
    served = told.served()
    assert (len(served["b"]), served["a"]) == (3, [])


async def test_a_streamed_chat_that_is_stored_is_found(scene: Any) -> None:
    told = await scene()
    client = told.client()
    for _ in range(MANY):
        stream = await client.chat.completions.create(
            model="other", messages=[{"role": "user", "content": "Hi"}], store=True, stream=True
        )
        [chunk] = [chunk async for chunk in stream]
        told.served()
        await client.chat.completions.retrieve(chunk.id)
        assert told.served() == {"a": [], "b": [f"GET /v1/chat/completions/{chunk.id}"]}


async def test_audio_of_an_earlier_answer_is_named_where_it_was_made(scene: Any) -> None:
    told = await scene()
    asked = [{"role": "user", "content": "Say it"}]
    for _ in range(MANY):
        made = (await told.post("/chat/completions", messages=asked, modalities=["text", "audio"])).json
        audio = {"role": "assistant", "audio": {"id": made["choices"][0]["message"]["audio"]["id"]}}
        answer = await told.post("/chat/completions", messages=[*asked, audio, {"role": "user", "content": "Again"}])
        assert answer.json["metadata"] == made["metadata"]


async def test_a_container_of_messages_is_used_where_it_was_made(scene: Any) -> None:
    told = await scene()
    asked = {"messages": [{"role": "user", "content": "Run it"}], "max_tokens": 9}
    for _ in range(MANY):
        made = (await told.post("/messages", **asked)).json
        for _ in range(MANY):
            assert (await told.post("/messages", **asked, container=made["container"]["id"])).status == 200


async def test_calls_of_realtime_are_found(scene: Any) -> None:
    told = await scene()
    name = (await told.post("/realtime/calls", model="other")).headers["location"].rpartition("/")[2]
    told.served()
    await told.gateway.ask("POST", f"/realtime/calls/{name}/hangup")
    async with told.gateway.session.ws_connect(f"{told.gateway.base_url}/realtime?call_id={name}"):
        assert told.served() == {"a": [], "b": [f"POST /v1/realtime/calls/{name}/hangup", "GET /v1/realtime"]}


async def test_a_count_with_an_earlier_response_is_asked_where_that_was_made(scene: Any) -> None:
    told = await scene()
    made = [(await told.post("/responses", input="Question")).json for _ in range(MANY)]
    for each in made:
        answer = await told.post("/responses/input_tokens", input="And?", previous_response_id=each["id"])
        assert answer.json["served_by"] == each["metadata"]["served_by"]


async def test_a_response_of_a_socket_is_continued_over_http(scene: Any) -> None:
    told = await scene()
    url = told.gateway.base_url.replace("http", "ws", 1) + "/responses"
    async with told.gateway.session.ws_connect(url) as socket:
        await socket.send_json({"type": "response.create", "model": "m", "input": "Question"})
        await socket.receive_json()
        made = (await socket.receive_json())["response"]["id"]
    for _ in range(MANY):
        assert (await told.post("/responses", input="And?", previous_response_id=made)).status == 200


async def test_when_its_upstream_fails_no_other_is_asked(scene: Any) -> None:
    """Another one would say that it does not know the id, which a client takes for the end of its conversation."""
    told = await scene()
    made = [(await told.post("/responses", input="Question")).json for _ in range(2)]
    told.servers["b"].down = True
    told.served()
    status = {}
    for each in made:
        for _ in range(2):
            answer = await told.post("/responses", input="And?", previous_response_id=each["id"])
            status[each["metadata"]["served_by"]] = answer.status
    assert status == {"a": 200, "b": 503}
    assert len(told.served()["a"]) == 2


async def test_the_upstream_that_made_an_id_is_asked_although_it_rests(scene: Any) -> None:
    told = await scene()
    made = [(await told.post("/responses", input="Question")).json for _ in range(2)]
    told.servers["b"].down = True
    await told.post("/responses", input="Question")
    await told.post("/responses", input="Question")
    told.servers["b"].down = False
    for each in made:
        assert (await told.post("/responses", input="And?", previous_response_id=each["id"])).status == 200


async def test_a_caller_neither_sees_nor_moves_what_another_has(scene: Any) -> None:
    """Another caller's request with the id goes where it would go if the id were not known."""
    told = await scene()
    made = await told.client("sk-one").responses.create(model="other", input="Question")
    told.served()
    with pytest.raises(openai.NotFoundError):
        await told.client("sk-two").responses.delete(made.id)
    assert told.served() == {"a": [f"DELETE /v1/responses/{made.id}"], "b": []}

    told.servers["a"].kept.add(made.id)
    await told.client("sk-two").responses.retrieve(made.id)
    told.served()
    await told.client("sk-one").responses.retrieve(made.id)
    assert told.served() == {"a": [], "b": [f"GET /v1/responses/{made.id}"]}


async def test_an_unknown_id_is_looked_for_at_the_other_upstreams_of_its_model(scene: Any) -> None:
    told = await scene()
    name = told.servers["b"].make("resp")
    answer = await told.gateway.ask("GET", f"/responses/{name}")
    assert (answer.status, answer.json["served_by"]) == (200, "b")
    assert told.served() == {"a": [f"GET /v1/responses/{name}"], "b": [f"GET /v1/responses/{name}"]}
    # From then on it is known.
    assert (await told.gateway.ask("DELETE", f"/responses/{name}")).status == 200
    assert told.served() == {"a": [], "b": [f"DELETE /v1/responses/{name}"]}


async def test_an_id_that_no_upstream_knows_gets_the_first_answer(scene: Any) -> None:
    told = await scene()
    answer = await told.gateway.ask("GET", "/responses/resp_404")
    assert (answer.status, answer.json["error"]["code"]) == (404, "not_found")
    assert told.served() == {name: ["GET /v1/responses/resp_404"] for name in "ab"}


async def test_a_word_of_an_api_is_no_id(scene: Any) -> None:
    """It is part of many paths, and nothing that one upstream alone has."""
    told = await scene()
    await told.post("/messages/batches", model="other")
    await told.gateway.ask("GET", "/messages/batches")
    assert told.served() == {"a": ["GET /v1/messages/batches"], "b": ["POST /v1/messages/batches"]}


async def test_only_reading_is_tried_elsewhere(scene: Any) -> None:
    told = await scene()
    name = told.servers["b"].make("resp")
    assert (await told.gateway.ask("DELETE", f"/responses/{name}")).status == 404
    assert (await told.gateway.ask("POST", f"/responses/{name}/cancel")).status == 404
    assert told.served()["b"] == []


async def test_a_clients_key_is_not_carried_to_servers_of_other_models(scene: Any) -> None:
    told = await scene(models={"m": {"upstream": "a"}, "other": {"upstream": "b"}})
    name = told.servers["b"].make("resp")
    with pytest.raises(openai.NotFoundError):
        await told.client().responses.retrieve(name)
    assert told.servers["b"].keys == []


async def test_the_model_of_a_request_decides_before_an_id(scene: Any) -> None:
    told = await scene()
    made = (await told.post("/conversations")).json["id"]  # its body names m, whose first upstream is a
    told.served()
    await told.post(f"/conversations/{made}/items", model="other")
    assert told.served() == {"a": [], "b": [f"POST /v1/conversations/{made}/items"]}


async def test_what_is_not_stored_is_not_remembered(scene: Any) -> None:
    told = await scene()
    await told.post("/responses", input="Question", store=False)
    await told.post("/chat/completions", messages=[{"role": "user", "content": "Hi"}])
    assert told.gateway.inside is not None
    assert await told.gateway.inside.gateway.store.names("id", 10) == []


async def test_a_gateway_with_one_upstream_remembers_nothing(scene: Any) -> None:
    async with keeper("a") as server, running.in_process(running.configured(server.base_url)) as gateway:
        await gateway.ask("POST", "/responses", b'{"model":"m","input":"Question"}', JSON)
        assert gateway.inside is not None
        assert await gateway.inside.gateway.store.names("id", 10) == []


async def test_a_deletion_by_the_operator_deletes_what_is_known_of_ids(scene: Any) -> None:
    told = await scene()
    made = await told.client().responses.create(model="other", input="Question")
    order = {"everything": True}
    async with told.gateway.session.post(f"{told.gateway.admin_url}/api/forget", json=order) as answer:
        assert answer.status == 200
    await told.gateway.inside.gateway.watch.check()
    told.served()
    with pytest.raises(openai.NotFoundError):
        await told.client().responses.delete(made.id)


async def test_an_id_may_be_anything(scene: Any) -> None:
    told = await scene()
    for odd in ("", "x" * 100_000, "\ud800", 7, None, {"id": 5}, ["resp_1"], {"id": "\ud800"}):
        raw = orjson.dumps({"model": "m", "input": "And?"})[:-1]
        for member in ("previous_response_id", "conversation"):
            value = b'"\\ud800"' if odd == "\ud800" else orjson.dumps(None if odd == {"id": "\ud800"} else odd)
            body = raw + b',"%b":%b}' % (member.encode(), value)
            assert (await told.gateway.ask("POST", "/responses", body, JSON)).status in (200, 400)


@pytest.mark.slow
async def test_workers_and_replicas_know_it_too(tmp_path: Path, shared_store_url: str) -> None:
    """Two gateways with two workers each and one store: each connection reaches another worker."""
    store = {"url": shared_store_url, "timeout": "10s"}
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(two())
        text = yaml.safe_dump(config(servers, store=store))
        replicas = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            command = running.as_command(text, tmp_path / name, "--workers", "2")
            replicas.append((await stack.enter_async_context(command))[0])
        for stream in (False, True) * MANY:
            body = orjson.dumps({"model": "m", "input": "Question", "stream": stream})
            made = await replicas[0].ask("POST", "/responses", body, JSON)
            last = made.body.split(b"data: ")[-1] if stream else made.body
            whole = orjson.loads(last)["response"] if stream else orjson.loads(last)
            for replica in replicas * 2:
                body = orjson.dumps({"model": "m", "input": "And?", "previous_response_id": whole["id"]})
                answer = await replica.ask("POST", "/responses", body, JSON)
                assert (answer.status, answer.json["metadata"]) == (200, whole["metadata"])
                assert (await replica.ask("GET", f"/responses/{whole['id']}")).status == 200
        reads = sum(len([one for one in server.served if one.startswith("GET")]) for server in servers.values())
        assert reads == 2 * MANY * 4  # nobody had to look for one


async def test_a_store_that_fails_costs_no_request(scene: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process has seen itself it still knows."""
    told = await scene(store={"url": f"sqlite:///{tmp_path / 'ids.db'}"})

    async def fails(*_: Any, **__: Any) -> Any:
        raise OSError("gone")

    inner = told.gateway.inside.gateway.store._store
    for name in ("get", "get_many", "put"):
        monkeypatch.setattr(inner, name, fails)
    for _ in range(MANY):
        made = (await told.post("/responses", input="Question")).json
        last = await told.post("/responses", input="And?", previous_response_id=made["id"])
        assert last.json["metadata"] == made["metadata"]
