"""The three stores, opened as the configuration opens them."""

import base64
from collections.abc import AsyncIterator

import pytest

from gateway.state.store import Store, open_store

PATIENCE_S = 30.0
"""Time limits are another test's subject; a busy machine must not look like a failing store."""
KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(params=["memory", "sqlite", "sqlite encrypted", "redis", "redis encrypted"])
async def store(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[Store]:
    """Each store in turn, empty."""
    place, _, encrypted = request.param.partition(" ")
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/turnfold.db"}
    url = urls[place] if place in urls else request.getfixturevalue("redis_server").url
    opened = open_store(url, encryption_key=KEY if encrypted else "", timeout_s=PATIENCE_S)
    await opened.forget(None)
    yield opened
    await opened.close()
