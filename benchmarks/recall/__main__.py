"""Print what survives a fold: ``python -m benchmarks.recall [--quick]``, and what it costs: ``--time`` for that alone.

At a budget of 25 % a request may take what its system prompt and its newest messages take, and a quarter of the rest. Other
conversations than the recorded ones can be given with ``TURNFOLD_DATA``. ``TURNFOLD_SEMANTIC=1`` has questions searched by meaning.
"""

import random
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.recall import text_agents, timing
from benchmarks.recall.agents import as_tool_calls
from benchmarks.recall.authored import Kind, rows_of, sets_of
from benchmarks.recall.baselines import BASELINES
from benchmarks.recall.needed import Point, found, going_on, points, probes, said_before, stands, whole
from benchmarks.recall.ours import COUNTER, turnfold, without_recall
from benchmarks.recall.planted import FRESH, INSTRUCTIONS, UNSEEN, with_change, with_instruction
from benchmarks.recall.variants import VARIANTS
from benchmarks.recorded import CONVERSATIONS, present
from gateway.context.cut.source import id_tokens

BUDGETS = (0.10, 0.25, 0.50)
SMALL_BUDGETS = (0.02, 0.05)
"""Rooms in which every request moves the cut."""
HISTORY = 600
"""Tokens of history below which a request is left out."""


def count(messages: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of messages as the strictest servers count them: with the ids of calls, which some templates write into the prompt."""
    return sum(COUNTER.message(message) + id_tokens(message, COUNTER.text) for message in messages)


def load(name: str) -> list[dict[str, Any]]:
    """Return the conversations of a recorded set. Raises SystemExit if it is missing."""
    return rows_of(present(CONVERSATIONS / name))


def load_if_present(name: str) -> list[dict[str, Any]]:
    """Return the conversations of a recorded set; none if it is missing."""
    return load(name) if (CONVERSATIONS / name).exists() else []


def main() -> None:
    parser = ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sixty requests of each set")
    parser.add_argument("--time", action="store_true", help="only what a fold costs")
    options = parser.parse_args()
    most = 60 if options.quick else 10_000
    recorded = {name: load_if_present(f"{name}.jsonl") for name in ("tau_airline", "bfcl_long", "swe_agent")}
    if options.time:
        timing.table(recorded)
        return
    sets: dict[str, list[Point]] = {}
    for name in ("tau_airline", "bfcl_long"):
        for inside in (False, True):
            label = f"{name}, {'inside turns' if inside else 'at user messages'}"
            sets[label] = [point for talk in recorded[name] for point in points(talk, inside_turns=inside)]
    chats = {"natural chats": load_if_present("chats.jsonl"), **{each.label: each.talks for each in sets_of(Kind.CHAT)}}
    agents = {each.label: each.talks for each in sets_of(Kind.AGENT)}
    service = {each.label: each.talks for each in sets_of(Kind.SERVICE)}
    for label, talks in service.items():
        for inside in (False, True):
            place = "inside turns" if inside else "at user messages"
            sets[f"{label}, {place}"] = [point for talk in talks for point in points(talk, inside_turns=inside)]
    sets["swe_agent, inside turns"] = [
        point for talk in recorded["swe_agent"] for point in points(as_tool_calls(talk), inside_turns=True)
    ]
    agents_in_text = {each.label: each.talks for each in sets_of(Kind.TEXT_AGENT)}
    talks_with_questions = {**chats, **agents, **agents_in_text, **service}
    asked = {
        label: [point for talk in talks for point in probes(talk)] for label, talks in talks_with_questions.items()
    }
    for label, found_points in {**sets, **asked}.items():
        table(label, sample(found_points, most))
    for label, found_points in asked.items():
        kinds(label, found_points)
    each([talk for talks in (*chats.values(), *agents.values()) for talk in talks])
    in_other_forms({label: talks for label, talks in chats.items() if "friends" not in label})
    for label, talks in talks_with_questions.items():
        if any(talk["rules"] for talk in talks):
            wished(label, talks)
    for label, talks in agents.items():
        during_work(label, talks)
    for label, talks in agents_in_text.items():
        during_work_in_text(label, talks)
    for label, talks in chats.items():
        if talks:
            answered(label, talks)
    standing(recorded["tau_airline"][:most])
    growing(recorded["tau_airline"][: most // 3])
    timing.table(recorded)


def sample(found_points: Sequence[Point], most: int) -> list[Point]:
    large = [point for point in found_points if history(point) >= HISTORY]
    return large if len(large) <= most else random.Random(7).sample(large, most)


def fixed(point: Point) -> int:
    return count(message for at, message in enumerate(point.request) if message["role"] == "system" or at in point.tail)


def history(point: Point) -> int:
    return count(point.request) - fixed(point)


Compressor = Callable[[list[dict[str, Any]], int, Any], list[dict[str, Any]]]


def table(label: str, found_points: Sequence[Point]) -> None:
    """Recall, room used and time of each compressor on one set."""
    if not found_points:
        print(f"\n{label}: no conversations at hand")
        return
    print(
        f"\n{label}: {len(found_points)} requests, {statistics.mean(count(p.request) for p in found_points):.0f} tokens each"
    )
    print(f"  {'':24}" + "".join(f"{f'recall at {budget:.0%}':>16}" for budget in BUDGETS) + f"{'ms':>8}  over")
    for name, compressor in {"turnfold": turnfold, **BASELINES}.items():
        cells: list[str] = []
        over = 0
        started = time.process_time()
        for budget in BUDGETS:
            scores: list[float] = []
            for point in found_points:
                window = int(fixed(point) + budget * history(point))
                out = compressor(point.request, window, count)
                too_large = count(out) > window
                over += too_large
                scores.append(0.0 if too_large else found(point, out))
            cells.append(f"{statistics.mean(scores):16.1%}")
        each = (time.process_time() - started) * 1000 / len(found_points) / len(BUDGETS)
        print(f"  {name:24}" + "".join(cells) + f"{each:8.1f}  {over}")


def kinds(label: str, found_points: Sequence[Point]) -> None:
    """Recall of chats by the kind of question."""
    print(f"\n{label}, by kind of question")
    for kind in sorted({point.kind for point in found_points}):
        asked = [point for point in found_points if point.kind == kind]
        cells = [
            statistics.mean(found(point, at_budget(point.request, budget)) for point in asked) for budget in BUDGETS
        ]
        print(f"  {kind:16}{len(asked):4}" + "".join(f"{cell:8.1%}" for cell in cells))


def in_other_forms(chats: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Recall of the same questions in other forms, and in small rooms."""
    budgets = (*SMALL_BUDGETS, *BUDGETS)
    print("\nthe same questions in other forms" + "".join(f"{budget:>8.0%}" for budget in budgets))
    for label, talks in chats.items():
        for form, points_of in VARIANTS.items():
            asked = [point for talk in talks for point in points_of(talk)]
            cells = [
                statistics.mean(found(point, at_budget_of(point, budget)) for point in asked) for budget in budgets
            ]
            print(f"  {label:24}{form:30}" + "".join(f"{cell:8.1%}" for cell in cells))


def each(talks: Sequence[Mapping[str, Any]]) -> None:
    """Recall of each chat, for some are in other languages."""
    print("\nquestions at the end, each chat")
    for talk in talks:
        asked = list(probes(talk))
        cells = [
            statistics.mean(found(point, at_budget(point.request, budget)) for point in asked) for budget in BUDGETS
        ]
        print(f"  {talk['id']:12}{talk['lang']:4}{len(asked):4}" + "".join(f"{cell:8.1%}" for cell in cells))


def wished(label: str, talks: Sequence[Mapping[str, Any]]) -> None:
    print(f"\nstanding wishes in {label}")
    for budget in BUDGETS:
        for asks in (True, False):
            kept, stale = kept_wishes(talks, budget, asks=asks)
            if kept:
                shown = f", shown as valid {statistics.mean(stale):.1%} of {len(stale)}" if stale else ""
                last = "a question" if asks else "nothing asked"
                print(f"  at {budget:.0%}, {last}: kept {statistics.mean(kept):.1%} of {len(kept)}{shown}")


def kept_wishes(talks: Sequence[Mapping[str, Any]], budget: float, *, asks: bool) -> tuple[list[bool], list[bool]]:
    """Return for each standing wish whether it is kept, and for each wish that was taken back whether it is shown without what took it back."""
    kept: list[bool] = []
    stale: list[bool] = []
    for talk in talks:
        out = at_budget(going_on(talk, asks=asks), budget)
        for wish in talk["rules"].values():
            there = stands(wish["rule"]["text"], out)
            if "revoked" in wish:
                stale.append(there and not stands(wish["revoked"]["text"], out))
            else:
                kept.append(there)
    return kept, stale


REPLY_BUDGETS: Final = (0.10, 0.15, 0.25)
EVERY_SO_MANY_TURNS: Final = 4
"""Of so many turns in the second half of a chat one is measured."""


def answered(label: str, talks: Sequence[Mapping[str, Any]]) -> None:
    print(f"\n{label}, replies that stand before the newest message")
    for budget in REPLY_BUDGETS:
        kept = replies_kept(talks, budget)
        print(f"  at {budget:.0%}: {statistics.mean(kept):.1%} of {len(kept)}")


def replies_kept(talks: Sequence[Mapping[str, Any]], budget: float) -> list[bool]:
    """Return for some messages of the user in the second half of each chat whether the reply before it stands word for word. What the user
    says next is often about it, and no question finds it."""
    kept: list[bool] = []
    for talk in talks:
        messages = talk["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user" and at > len(messages) // 2]
        for at in users[::EVERY_SO_MANY_TURNS]:
            out = at_budget(messages[: at + 1], budget)
            kept.append(any(whole(message) == whole(messages[at - 1]) for message in out))
    return kept


EVERY_SO_MANY: Final = 7
"""Of so many requests in the second half of a session one is measured."""


def during_work(label: str, talks: Sequence[Mapping[str, Any]]) -> None:
    print(f"\n{label}, in the middle of the work")
    for budget in BUDGETS:
        wishes, remarks = kept_during_work(talks, budget)
        print(
            f"  at {budget:.0%}: wishes kept {statistics.mean(wishes):.1%} of {len(wishes)},"
            f" tasks, decisions and causes {statistics.mean(remarks):.1%} of {len(remarks)}"
        )


def during_work_in_text(label: str, talks: Sequence[Mapping[str, Any]]) -> None:
    print(f"\n{label}, in the middle of the work")
    for budget in BUDGETS:
        kept = text_agents.kept(talks, budget, at_point)
        print(
            f"  at {budget:.0%}: values {statistics.mean(kept.values):.1%} of {len(kept.values)} requests, wishes kept"
            f" {statistics.mean(kept.wishes):.1%} of {len(kept.wishes)}, tasks, decisions and causes {statistics.mean(kept.remarks):.1%} of {len(kept.remarks)}"
        )


def at_point(point: Point, budget: float) -> list[dict[str, Any]]:
    """Fold a request into its newest messages and a share of the rest."""
    return turnfold(point.request, int(fixed(point) + budget * history(point)), count)


def kept_during_work(talks: Sequence[Mapping[str, Any]], budget: float) -> tuple[list[bool], list[float]]:
    """Return what requests in the middle of an agent's work keep of what was said before the current task: standing wishes, and tasks,
    decisions and causes."""
    wishes: list[bool] = []
    remarks: list[float] = []
    for talk in talks:
        messages = talk["messages"]
        for end in requests_of_the_second_half(messages):
            asked = max(at for at, message in enumerate(messages[:end]) if message["role"] == "user")
            point = Point(messages[:end], tail=frozenset([asked, end - 2, end - 1]))
            wishes_kept, remarks_kept = said_before(talk, asked, at_point(point, budget))
            wishes += wishes_kept
            remarks += remarks_kept
    return wishes, remarks


def requests_of_the_second_half(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return how many messages some requests of an agent have that end with a result."""
    results = [at for at, message in enumerate(messages, 1) if message["role"] == "tool"]
    ends = [at for at in results if at == len(messages) or messages[at]["role"] != "tool"]
    return ends[len(ends) // 2 :: EVERY_SO_MANY]


def at_budget(request: list[dict[str, Any]], budget: float) -> list[dict[str, Any]]:
    """Fold a request into its system prompt, its last message and a share of the rest."""
    least = count(message for message in request if message["role"] == "system") + count(request[-1:])
    return turnfold(request, int(least + budget * (count(request) - least)), count)


def at_budget_of(point: Point, budget: float) -> list[dict[str, Any]]:
    """Fold a request into its system prompt, its newest messages and a share of the rest. The newest are the last user message and all behind it."""
    messages = point.request
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
    least = count(message for message in messages if message["role"] == "system") + count(messages[asked:])
    return turnfold(messages, int(least + budget * (count(messages) - least)), count)


def standing(conversations: Sequence[Mapping[str, Any]]) -> None:
    """What a user says once and expects to hold, and what he corrects, in a tenth and a quarter of the history."""
    print("\nstanding instructions, three sets of sentences, and corrections planted in tau_airline")
    for half in (0, 1):
        for budget in BUDGETS[:2]:
            kept = [
                [stands(sentence, at_budget(request, budget)) for request, sentence in planted]
                for among in (INSTRUCTIONS, UNSEEN, FRESH)
                for planted in [list(with_instruction(conversations, 1, half=half, among=among))]
            ]
            shares = ", ".join(f"{statistics.mean(each):.1%}" for each in kept if each)
            print(f"  half {half} at {budget:.0%}: kept {shares}")
        both = [
            (old in text, new in text)
            for request, old, new in with_change(conversations, 1, half=half)
            for text in [text_at(request, 0.25)]
        ]
        if both:
            alone = statistics.mean(old and not new for old, new in both)
            beside = statistics.mean(old and new for old, new in both)
            print(f"  half {half} at 25%: old value without the new {alone:.1%}, beside it {beside:.1%}")


def text_at(request: list[dict[str, Any]], budget: float) -> str:
    return "\n".join(map(whole, at_budget(request, budget)))


def growing(conversations: Sequence[Mapping[str, Any]]) -> None:
    """How much of each request is a prefix of the one before, as conversations grow through a small window."""
    print(
        "\nprefix of the request before (shares of characters), of requests over the window; a break shares less than half."
    )
    print("  kept: how much of the request before begins the next one, of all requests")
    talks = {"tau_airline": [talk["messages"] for talk in conversations]}
    talks["natural chats"] = [talk["messages"] for talk in load_if_present("chats.jsonl")]
    for name, messages in talks.items():
        for share in (0.5, 0.7):
            for label, compressor in (("with recall", turnfold), ("without", without_recall)):
                steps = [step for talk in messages for step in prefixes(talk, share, compressor)]
                shares = [step.begins for step in steps if step.over]
                if shares:
                    stands = [part for part in shares if part >= 0.5]
                    print(
                        f"  {name:14} window {share:.0%} {label:12} mean {statistics.mean(shares):6.1%}"
                        f"  between breaks {statistics.mean(stands or [0]):6.1%}  breaks {1 - len(stands) / len(shares):6.1%}"
                        f"  kept {statistics.mean(step.kept for step in steps):6.1%}"
                    )


class Step(NamedTuple):
    """Two requests, one after the other: what they begin with together, as a share of each."""

    begins: float
    """Of the later one."""
    kept: float
    """Of the earlier one."""
    over: bool
    """Whether the later one did not fit as it came."""


def prefixes(messages: list[dict[str, Any]], share: float, compressor: Compressor) -> list[Step]:
    window = int(share * count(messages))
    steps: list[Step] = []
    before = ""
    for end in (at for at, message in enumerate(messages) if message["role"] == "assistant"):
        request = messages[:end]
        over = count(request) > window
        text = "\x00".join(map(whole, compressor(request, window, count) if over else request))
        if before:
            same = next(
                (at for at, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), min(len(before), len(text))
            )
            steps.append(Step(same / len(text), same / len(before), over))
        before = text
    return steps


if __name__ == "__main__":
    main()
