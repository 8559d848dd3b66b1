"""What folding leaves in memory: resident memory of a gateway at rest, after one fold, and after many different conversations.

`python -m benchmarks.memory [--conversations 60] [--streams 1000]`. The gateway runs as its users run it, with nginx as the upstream. Its
vocabulary is loaded after the start, and stays; what is remembered of conversations is bounded by ``server.memory``. Then a second gateway hands on so many streams
at once, each waiting for its next event.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.soak import __main__ as soak
from benchmarks.soak.clients import request
from benchmarks.soak.formats import FORMATS
from benchmarks.speed import bodies
from benchmarks.speed.load import one_by_one
from benchmarks.speed.processes import Running, free_port, start
from benchmarks.speed.servers import FOLD_WINDOW, Place

SIZE = 373_000
"""Bytes of a conversation: about 85,000 tokens."""
SMALL = 40_000
"""Bytes of the first conversation: just enough to be folded, and to load the vocabulary."""
SETTLED_S = 2.5
"""Wait before memory is read, so that what is under way has ended, and free memory has been given back."""


def main() -> None:
    """Print resident memory as conversations are folded, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--conversations", type=int, default=60, help="how many different conversations are folded")
    parser.add_argument(
        "--streams", type=int, default=1000, help="how many streams wait for their next event; 0 for none"
    )
    arguments = parser.parse_args()
    folds(arguments.conversations)
    if arguments.streams:
        streams(arguments.streams)


def folds(number: int) -> None:
    """Fold so many different conversations, one after the other."""
    with ExitStack() as stack:
        place = Place(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-memory-"))))
        upstream = place.upstream()
        stack.callback(upstream.stop)
        # The first start compiles the code, as installing does; what compiling leaves in memory is 5 MB.
        place.turnfold(upstream).stop()
        gateway = place.turnfold(upstream, preload=False)
        show("at rest, without a vocabulary", gateway)
        gateway.stop()
        gateway = place.turnfold(upstream)
        stack.callback(gateway.stop)
        show("at rest", gateway)
        one_by_one(gateway, [bodies.conversation(SMALL, "folded", seed=1)])
        show(f"one fold of {SMALL // 1000} KB to {FOLD_WINDOW} tokens", gateway)
        for done in range(number):
            one_by_one(gateway, [bodies.conversation(SIZE, "folded", seed=1000 + done)])
            if done + 1 in (1, 2, 5, 10, 20, 40, number):
                show(f"{done + 1} different conversations of {SIZE // 1000} KB", gateway)
        again = one_by_one(gateway, [bodies.conversation(SIZE, "folded", seed=1000 + number - 1)] * 5)
        print(f"the last one again: {again.cpu_ms:.1f} ms of processor time each")


def streams(number: int) -> None:
    """Open so many streams; a tenth of them was there before, so that what is only made once does not count."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-memory-")))
        ports = [free_port() for _ in range(3)]
        config = folder / "turnfold.yaml"
        config.write_text(soak.configuration(*ports, "memory://"))
        module = [sys.executable, "-m", "benchmarks.soak.upstream", str(ports[0])]
        stack.callback(start("upstream", module, ports[0], folder).stop)
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config)]
        start("gateway", command, ports[1], folder, "/healthz").stop()
        gateway = start("gateway", command, ports[1], folder, "/healthz")
        stack.callback(gateway.stop)
        asyncio.run(waiting(gateway, number))


async def waiting(gateway: Running, number: int) -> None:
    """Open the streams, and tell what each takes."""
    before, writers = 0, []
    for opened in range(number + number // 10):
        if opened == number // 10:
            await asyncio.sleep(SETTLED_S)
            before = gateway.resident()
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, limit=2**12)
        writer.write(request(FORMATS[opened % 3], user=f"waiting-{opened}", pause_s=60))
        await reader.readuntil(b"\r\n\r\n")
        writers.append(writer)
    show(f"{len(writers)} streams that wait", gateway)
    print(f"{(gateway.resident() - before) / number / 1000:.1f} KB a stream")
    for writer in writers:
        writer.transport.abort()


def show(moment: str, gateway: Running) -> None:
    """Print one row, once what is under way has ended."""
    time.sleep(SETTLED_S)
    print(f"{moment:<44} {gateway.resident() / 1e6:>7.1f} MB", flush=True)


if __name__ == "__main__":
    main()
