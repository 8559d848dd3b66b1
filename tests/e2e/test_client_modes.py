"""What `x-turnfold-mode` may ask for is the operator's choice: ``fold.client_modes``."""

import pytest
from openai import AsyncOpenAI, PermissionDeniedError

from tests import fakes

ASK = {"model": "m", "messages": [fakes.user("hi")]}

CASES = [
    # fold, models, mode asked for, status
    ({}, {}, "off", 200),
    ({"client_modes": ["enforce", "observe"]}, {}, "off", 403),
    ({"client_modes": ["enforce", "observe"]}, {}, "observe", 200),
    ({"client_modes": ["enforce", "observe"]}, {}, None, 200),
    ({"client_modes": []}, {}, "observe", 403),
    ({"client_modes": []}, {}, "enforce", 200),  # the configured mode itself changes nothing
    ({"client_modes": ["enforce"]}, {"m": {"client_modes": ["off"]}}, "off", 200),
    ({}, {"m": {"fold": {"client_modes": "observe"}}}, "off", 403),
]


@pytest.mark.parametrize(("fold", "models", "mode", "status"), CASES)
async def test_a_mode_that_is_not_allowed_is_refused(gateway, standin, fold, models, mode, status):
    running = await gateway(standin, {"fold": fold, "models": models})
    answer = await running.chat(ASK, {"x-turnfold-mode": mode} if mode else None)
    assert answer.status == status
    assert len(standin.chats) == (1 if status == 200 else 0)


async def test_the_refusal_says_what_is_allowed_in_a_form_that_clients_raise(gateway, standin):
    running = await gateway(standin, {"fold": {"client_modes": ["enforce", "observe"]}})
    async with AsyncOpenAI(base_url=running.base_url, api_key="k", max_retries=0) as client:
        with pytest.raises(PermissionDeniedError, match="allowed: enforce, observe") as caught:
            await client.chat.completions.create(**ASK, extra_headers={"x-turnfold-mode": "off"})
    assert caught.value.code == "mode_not_allowed"
