"""`fold.recall.semantic`: a question finds a remark that shares no word with it."""

from collections.abc import Iterator

import orjson
import pytest

from gateway.context.choose import embedding
from gateway.serve.process import start_background_work
from tests.context.choose.paraphrase import QUESTION, REMARK, TALK, WITH_EXTRA

pytestmark = WITH_EXTRA

BODY = {"model": "mine", "max_tokens": 16, "messages": [*TALK, {"role": "user", "content": QUESTION}]}


@pytest.fixture(autouse=True)
def unloaded() -> Iterator[None]:
    embedding._loaded.cache_clear()
    yield
    embedding._loaded.cache_clear()


def configured(semantic: bool) -> dict[str, object]:
    model = {"context_window": 320, "tokenizer": "o200k", "output_reserve": 16}
    return {"models": {"mine": {**model, "recall": {"semantic": semantic}}}}


@pytest.mark.parametrize("semantic", [True, False])
async def test_a_remark_in_other_words_is_quoted_where_meaning_counts(gateway, standin, semantic: bool) -> None:
    running = await gateway(standin, configured(semantic))

    assert (await running.chat(BODY)).status == 200

    sent = orjson.dumps(standin.requests[-1].json["messages"]).decode()
    assert (REMARK in sent) is semantic


async def test_the_record_of_a_fold_says_that_meaning_counted(gateway, standin) -> None:
    running = await gateway(standin, configured(semantic=True))

    await running.chat(BODY)

    async with running.session.get(f"{running.admin_url}/api/exchanges") as answer:
        (exchange,) = orjson.loads(await answer.read())
    (detail,) = [step["detail"] for step in exchange["steps"] if step["stage"] == "recall"]
    assert detail.endswith(" lines, by words and meaning")


@pytest.mark.parametrize("semantic", [True, False])
async def test_vectors_are_loaded_beside_serving_where_they_are_needed(gateway, standin, semantic: bool) -> None:
    running = await gateway(standin, configured(semantic))

    start_background_work(running.inside.gateway)
    await running.settled()

    assert embedding._loaded.cache_info().currsize == semantic


async def test_a_gateway_whose_vectors_cannot_be_read_goes_on_with_words(gateway, standin, monkeypatch) -> None:
    monkeypatch.setattr(embedding, "_WEIGHTS", "no/such/file")
    running = await gateway(standin, configured(semantic=True))

    assert (await running.chat(BODY)).status == 200

    assert REMARK not in orjson.dumps(standin.requests[-1].json).decode()
