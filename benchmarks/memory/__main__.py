"""What folding leaves in memory: resident memory of a gateway at rest, after one fold, and after many different conversations.

`python -m benchmarks.memory [--conversations 60]`. The gateway runs as its users run it, with nginx as the upstream. The first request loads
the vocabulary, which stays; what is remembered of conversations is bounded by ``server.memory``.
"""

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.speed import bodies
from benchmarks.speed.load import one_by_one
from benchmarks.speed.processes import Running
from benchmarks.speed.servers import FOLD_WINDOW, Place

SIZE = 373_000
"""Bytes of a conversation: about 85,000 tokens."""
SMALL = 40_000
"""Bytes of the first conversation: just enough to be folded, and to load the vocabulary."""


def main() -> None:
    """Print resident memory as conversations are folded, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--conversations", type=int, default=60, help="how many different conversations are folded")
    number = parser.parse_args().conversations
    with ExitStack() as stack:
        place = Place(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-memory-"))))
        upstream = place.upstream()
        stack.callback(upstream.stop)
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


def show(moment: str, gateway: Running) -> None:
    """Print one row."""
    print(f"{moment:<44} {gateway.resident() / 1e6:>7.1f} MB", flush=True)


if __name__ == "__main__":
    main()
