"""One Redis server for all tests of the state that need one; each test begins with an empty store."""

from collections.abc import Iterator

import pytest

from tests.redis_server import RedisServer, running_redis


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server
