"""What every test may ask for: a stand-in upstream and a gateway in front of it."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import hypothesis
import pytest

from gateway.serve.gateway import Gateway
from gateway.standin import StandIn
from tests import running
from tests.redis_server import running_redis
from tests.skips import pytest_runtest_makereport  # noqa: F401  # a hook

# A busy machine makes examples slow; that says nothing about what is tested.
hypothesis.settings.register_profile("turnfold", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("turnfold")


@pytest.fixture
async def standin():
    """A strict upstream on a real socket; a test scripts it with ``standin.script.extend([...])``."""
    async with StandIn() as standin:
        yield standin


@pytest.fixture
async def gateway():
    """Start gateways in this process: ``await gateway(standin, {"models": ...})``. They end with the test."""
    async with AsyncExitStack() as stack:

        async def start(standin, config=None):
            return await stack.enter_async_context(running.in_process(running.configured(standin, config)))

        yield start


@pytest.fixture
async def command(tmp_path: Path):
    """Start gateways as the command, each in a process of its own."""
    async with AsyncExitStack() as stack:

        async def start(standin, config=None):
            text = running.configured(standin, config)
            return await stack.enter_async_context(running.as_command(text, tmp_path))

        yield start


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """The URL of a Redis server that runs for one test."""
    with running_redis(tmp_path) as server:
        yield server.url


@pytest.fixture(params=["sqlite", "redis"])
def shared_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that several processes share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'turnfold.db'}"
    url: str = request.getfixturevalue("redis_url")
    return url


@pytest.fixture
def at_noon(monkeypatch):
    """The clock that counts use stands still 15 s into a minute."""
    build = Gateway.__init__

    def with_clock(self, *given):
        build(self, *given)
        self.rates = type(self.rates)(self.store, clock=lambda: 1_799_999_940.0 + 15)

    monkeypatch.setattr(Gateway, "__init__", with_clock)
    return 45
