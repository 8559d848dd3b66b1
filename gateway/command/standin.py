"""`turnfold standin`: a strict model server without a model on this machine, for a first try without a key."""

import asyncio
import os
from typing import Final

import click

from gateway.command.process import fail
from gateway.config.report import many
from gateway.observe.printable import printable
from gateway.serve import process
from gateway.standin import Completion, Seen, StandIn

ANSWER: Final = Completion("This is the stand-in: no model runs here.")


def run(port: int, window: int) -> int:
    """Serve until stopped; return the exit status."""
    try:
        asyncio.run(_serve(port, window))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        remedy = "end the program that uses it, or choose another port: --port PORT"
        return fail((f"127.0.0.1:{port} cannot be bound ({reason}); {remedy}",))
    return 0


async def _serve(port: int, window: int) -> None:
    stop = process.stop_event()
    standin = StandIn(window=window, reply=ANSWER)
    await standin.start(port)
    told = asyncio.create_task(tell(standin))  # noqa: TID251  # cancelled below
    try:
        click.echo(_opening(standin.base_url, window))
        await stop.wait()
    finally:
        told.cancel()
        await standin.close()


def _opening(base_url: str, window: int) -> str:
    return (
        f"A stand-in for a model server is at {base_url}: any key, any model name, a window of {window:,} tokens.\n"
        "It counts and checks each request, refuses a longer one as OpenAI does, and answers the others with one sentence.\n"
        f"Next, in another terminal: turnfold serve --upstream {base_url} --window {window}"
    )


async def tell(standin: StandIn) -> None:
    """Print one line for each request when its answer has ended, and keep none of them."""
    async with asyncio.TaskGroup() as waiting:
        while True:
            seen = await standin.arrived(1)
            del standin.requests[0]
            waiting.create_task(_tell_end(seen))


async def _tell_end(seen: Seen) -> None:
    await seen.done.wait()
    click.echo(_line(seen))


def _line(seen: Seen) -> str:
    counted = f"  {many(seen.prompt_tokens, 'token')}" if seen.window else ""
    too_long = "  too long" if seen.window and seen.prompt_tokens > seen.window else ""
    return f"{seen.method} {printable(seen.path)}  {seen.status}{counted}{too_long}"
