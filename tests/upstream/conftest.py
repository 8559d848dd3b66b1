"""The tests of this folder run on both event loops, because their transports differ: asyncio's and uvloop, which serves."""

import asyncio

import uvloop


def pytest_asyncio_loop_factories():
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
