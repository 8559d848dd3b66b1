"""Prices at the admin port: configured, listed, or unknown."""

import orjson
import pytest

OWN = {
    "models": {
        "house": {"context_window": 8000, "input_price": 0.5},
        "cheap": {"name": "gpt-4o", "input_price": 1, "cached_price": 0.1},
        "alias": {"name": "gpt-4o"},
    }
}
CASES = [
    # model, dollars for a million tokens: fresh, read from a cache
    ("gpt-4o", 2.5, 1.25),
    ("gpt-4o-2024-08-06", 2.5, 1.25),
    ("openai/gpt-4.1", 2, 0.5),
    ("claude-sonnet-4-5-20250929", 3, 0.3),
    ("us.anthropic.claude-sonnet-4-20250514-v1:0", 3, 0.3),
    ("alias", 2.5, 1.25),
    ("house", 0.5, 0.5),
    ("cheap", 1, 0.1),
]


async def prices(running, query):
    async with running.session.get(running.admin_url + "/api/prices", params=query) as response:
        return response.status, orjson.loads(await response.read())


@pytest.mark.parametrize(("model", "fresh", "cached"), CASES)
async def test_a_price_is_the_configured_one_else_the_list_price(gateway, standin, model, fresh, cached):
    status, found = await prices(await gateway(standin, OWN), {"models": orjson.dumps([model]).decode()})
    assert status == 200
    assert (found[model]["input"], found[model]["cached"]) == (fresh, pytest.approx(cached))


async def test_an_unknown_price_is_null(gateway, standin):
    _, found = await prices(await gateway(standin, OWN), {"models": '["my-model", "gpt-4o-audio-preview"]'})
    assert found == {"my-model": None, "gpt-4o-audio-preview": None}


@pytest.mark.parametrize("models", ["", "{}", "[1]", "no json", orjson.dumps(["m"] * 101).decode()])
async def test_a_question_that_names_no_models_is_refused(gateway, standin, models):
    status, found = await prices(await gateway(standin), {"models": models})
    assert (status, found["error"]["code"]) == (400, "invalid_query")
