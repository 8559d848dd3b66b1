"""What Turnfold costs: CPU time, latency and memory beside a bare pass-through and nginx, in one run on one machine.

`python -m benchmarks.speed` takes about four minutes, `--quick` one. Everything runs on the loopback interface and is
ended by process id. All proxies take turns in every round, so that what else the machine does meets each of them alike.
"""

import argparse
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.speed import bodies
from benchmarks.speed.load import Round, one_by_one, wrk
from benchmarks.speed.processes import Running
from benchmarks.speed.servers import FOLD_WINDOW, Place
from benchmarks.speed.streams import CHUNKS

KB = 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure."""

    rounds: int
    seconds: int
    folds: int


FULL = Plan(rounds=9, seconds=2, folds=30)
QUICK = Plan(rounds=3, seconds=1, folds=10)


@dataclass(frozen=True, slots=True)
class Target:
    """How much a request may cost: beside the bare pass-through, or in milliseconds of CPU."""

    ratio: float | None = None
    cpu_ms: float | None = None


FITS: Mapping[str, tuple[int, str, Target]] = {
    "1 KB that fits": (1 * KB, "fits", Target(ratio=1.35)),
    "100 KB that fits": (100 * KB, "fits", Target(ratio=1.5)),
    "512 KB that fits": (512 * KB, "fits", Target(ratio=1.7)),
    "512 KB, counted": (512 * KB, "counted", Target()),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    plan = QUICK if parser.parse_args().quick else FULL
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {cpu_name()}, medians of {plan.rounds} rounds\n"
    )
    with ExitStack() as stack:
        place = Place(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-speed-"))))

        def run(start: Callable[[], Running]) -> Running:
            running = start()
            stack.callback(running.stop)
            return running

        starts(place, plan, run)
        fitting(place, plan, run)
        streaming(place, plan, run)
        folding(place, plan, run)


Run = Callable[[Callable[[], Running]], Running]


def starts(place: Place, plan: Plan, run: Run) -> None:
    """Time from start to first answer, and resident memory at that moment."""
    upstream = run(place.upstream)
    print(f"| {'':<18} | start to first answer | resident then |\n|{'-' * 20}|{'-' * 23}:|{'-' * 14}:|")
    for start in (lambda: place.bare(upstream), lambda: place.turnfold(upstream)):
        took, resident, name = [], [], ""
        start().stop()  # compiles the code
        for _ in range(plan.rounds):
            running = start()
            name = running.name
            took.append(running.first_answer_s)
            resident.append(running.resident())
            running.stop()
        print(f"| {name:<18} | {median(took):>19.2f} s | {median(resident) / 1e6:>10.1f} MB |")


def fitting(place: Place, plan: Plan, run: Run) -> None:
    """Requests that fit and travel as they came."""
    upstream = run(place.upstream)
    proxies = [run(start) for start in proxies_before(place, upstream)]
    heading()
    for title, (size, model, target) in FITS.items():
        file = place.folder / f"{title}.json".replace(" ", "-").replace(",", "")
        file.write_bytes(bodies.conversation(size, model))
        rounds = interleaved(
            proxies, plan.rounds, lambda proxy, body=file: wrk(proxy, body, connections=8, seconds=plan.seconds)
        )
        rows(title, rounds, target)


def streaming(place: Place, plan: Plan, run: Run) -> None:
    """Streams of many small chunks, each arriving on its own."""
    upstream = run(place.streams)
    proxies = [run(start) for start in proxies_before(place, upstream)]
    file = place.folder / "stream.json"
    file.write_bytes(bodies.conversation(1 * KB, "fits", stream=True))
    rounds = interleaved(proxies, plan.rounds, lambda proxy: wrk(proxy, file, connections=16, seconds=2 * plan.seconds))
    rows(f"{CHUNKS} chunks", rounds, Target(ratio=1.2))


def folding(place: Place, plan: Plan, run: Run) -> None:
    """Requests that hold many windows: the same again, one turn more each time, and one never seen before each time."""
    turnfold = run(lambda: place.turnfold(run(place.upstream)))
    size = 373 * KB
    print(f"\n373 KB that do not fit a window of {FOLD_WINDOW} tokens, one after the other\n")
    print(f"| {'':<18} | requests | CPU/request | latency |\n|{'-' * 20}|{'-' * 9}:|{'-' * 12}:|{'-' * 8}:|")
    same = [bodies.conversation(size, "folded")] * plan.folds
    one_by_one(turnfold, same[:3])
    grown = [bodies.conversation(size + 8_000 * step, "folded") for step in range(plan.folds)]
    fresh = [bodies.conversation(size, "folded", seed=1000 + step) for step in range(plan.folds)]
    for title, asked in (("the same again", same), ("one turn more", grown), ("never seen before", fresh)):
        cost = one_by_one(turnfold, asked)
        print(f"| {title:<18} | {cost.requests:>8} | {cost.cpu_ms:>8.2f} ms | {cost.latency_ms:>4.1f} ms |")
    print(f"\nafterwards turnfold holds {turnfold.resident() / 1e6:.1f} MB")


def proxies_before(place: Place, upstream: Running) -> list[Callable[[], Running]]:
    """The proxies to compare, the measure first."""
    return [lambda: place.bare(upstream), lambda: place.turnfold(upstream), lambda: place.reference(upstream)]


def interleaved(proxies: Sequence[Running], rounds: int, load: Callable[[Running], Round]) -> dict[str, list[Round]]:
    """Let all proxies take turns, after one round nobody counts."""
    for proxy in proxies:
        load(proxy)
    found: dict[str, list[Round]] = {proxy.name: [] for proxy in proxies}
    for _ in range(rounds):
        for proxy in proxies:
            found[proxy.name].append(load(proxy))
    return found


def heading() -> None:
    print(f"\n| {'':<18} | {'proxy':<8} | CPU/request | x bare | requests/s | latency | target |")
    print(f"|{'-' * 20}|{'-' * 10}|{'-' * 12}:|{'-' * 7}:|{'-' * 11}:|{'-' * 8}:|{'-' * 7}:|")


def rows(title: str, rounds: Mapping[str, Sequence[Round]], target: Target) -> None:
    """Print the medians of each proxy; the ratio is the median of the rounds' own ratios."""
    bare = rounds["bare"]
    for name, each in rounds.items():
        ratio = median(one.cpu_ms / other.cpu_ms for one, other in zip(each, bare, strict=True))
        wanted = f"{target.ratio:.2f}" if name == "turnfold" and target.ratio else ""
        print(
            f"| {title:<18} | {name:<8} | {1000 * median(one.cpu_ms for one in each):>8.0f} us | {ratio:>6.2f} "
            f"| {median(one.per_second for one in each):>10.0f} | {median(one.latency_ms for one in each):>4.1f} ms | {wanted:>6} |",
            flush=True,
        )


def cpu_name() -> str:
    """Read what the machine calls its processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()


if __name__ == "__main__":
    main()
