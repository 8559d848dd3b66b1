"""Learn what words tell of a standing wish, or of one taken back: ``python -m benchmarks.recall.learn [--write]``.

The sentences in ``sentences/`` were written for this; a row begins with ``+`` for a wish, ``~`` for one that takes a wish back, ``-`` for
anything else. Half of what is learned from is such a sentence among others, as people write them, and requests of recorded customers
are examples of what is no wish. The natural chats and the planted sentences stay unseen. Reported is how often a wish has more points than
another sentence (the area under the curve): in a fifth of the sentences of each language that was left out, one fifth after the other
(the sentences stand by subject), and in each language that was left out. A logistic model with a penalty, in one fixed order.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import exp, sqrt
from pathlib import Path
from typing import NamedTuple

from benchmarks.recall.__main__ import load
from gateway.context.choose import learned, lines, wishes
from gateway.context.choose.cues import binding
from gateway.context.choose.learned import EDGE, Feature
from gateway.context.choose.line import SENTENCE

SENTENCES = Path(__file__).with_name("sentences")
CHANGES = SENTENCES / "changes"
"""Sentences for the model of revocations alone: of wishes they taught nothing (the chats' wishes were told from other sentences in 86 to 87 % of
pairs instead of 88 %)."""
WEIGHTS = Path(str(learned.__file__)).with_name("learned.txt")
UNSPACED = ("ja", "zh")
"""Languages whose sentences are joined without a space."""
ROUNDS = 20
RATE = 0.5
PENALTY = 0.1
"""Pull of each weight to nothing, at each sentence that has it. Chosen on the fifths left out."""
LEAST = 0.25
"""A smaller weight is left out of the file."""
REVOKES = 1.5
"""Points of a sentence with one of the words of `wishes.may_revoke`, to which those for a revocation are added."""
CUSTOMERS = 500
"""Sentences of customers, of recorded conversations that no other figure is reported on."""


class Sentence(NamedTuple):
    """A sentence, and whether it is a wish (``+``), takes one back (``~``) or is neither (``-``)."""

    language: str
    sign: str
    text: str


class Model(NamedTuple):
    """Weights by feature, and what every sentence gets."""

    weights: dict[Feature, float]
    bias: float


def sentences(folder: Path = SENTENCES) -> list[Sentence]:
    """Return all sentences of a folder."""
    rows = [(path.stem, row) for path in sorted(folder.glob("*.txt")) for row in path.read_text().splitlines()]
    return [Sentence(language, row[0], row[2:].strip()) for language, row in rows]


def customers() -> list[str]:
    """Return sentences of recorded customers, who ask for one thing after the other."""
    talks = [*load("tau_airline.jsonl")[60:], *load("bfcl_long.jsonl")[:60]]
    asked = [message for talk in talks for message in talk["messages"] if message["role"] == "user"]
    said = sorted({line.text for message in asked for line in lines.read(message) if line.sort is SENTENCE})
    return random.Random(3).sample(said, min(CUSTOMERS, len(said)))


def among_others(given: Sequence[Sentence], draw: random.Random) -> list[tuple[str, str]]:
    """Return each sentence alone, and joined with others of its language that are no wish."""
    plain: dict[str, list[str]] = {}
    for one in given:
        if one.sign == "-":
            plain.setdefault(one.language, []).append(one.text)
    found = [(one.text, one.sign) for one in given]
    for one in given:
        others = draw.sample(plain[one.language], draw.choice((1, 1, 2)))
        between = "，" if one.language in UNSPACED else draw.choice((", ", ". ", " ", " - "))
        found.append((between.join([*others, one.text] if draw.random() < 0.5 else [one.text, *others]), one.sign))
    return found


def of_wish(text: str) -> float:
    """Return the points to which those for a wish are added."""
    return wishes.strength(wishes.wish_cues(text)) + binding(text)


def of_revocation(text: str) -> float:
    """Return the points to which those for a revocation are added."""
    return REVOKES * wishes.may_revoke(text)


def features_of(text: str) -> list[Feature]:
    """Return the features of a text in one fixed order; the edge, which each has, is what every sentence gets."""
    return sorted(learned.features(text) - {EDGE}, key=str)


def known_features(given: Sequence[Sentence]) -> frozenset[Feature]:
    """Return the features that a model may weigh: words of written sentences, and pairs of words that two of them have. What only
    recorded customers say, names and numbers of theirs, is none."""
    count = Counter(feature for one in given for feature in features_of(one.text))
    return frozenset(one for one in count if isinstance(one, str) or count[one] > 1)


def fit(given: Iterable[tuple[str, bool]], before: Callable[[str], float], known: frozenset[Feature]) -> Model:
    """Fit a model of the known features."""
    rows = [([one for one in features_of(text) if one in known], is_one, before(text)) for text, is_one in given]
    weights: dict[Feature, float] = {}
    seen: dict[Feature, float] = {}
    bias, seen_bias = 0.0, 1.0
    draw = random.Random(0)
    for _ in range(ROUNDS):
        draw.shuffle(rows)
        for features, is_one, score in rows:
            total = score + bias + sum([weights.get(one, 0.0) for one in features])
            error = 1 / (1 + exp(-max(min(total, 30.0), -30.0))) - is_one
            seen_bias += error * error
            bias -= RATE * error / sqrt(seen_bias)
            for one in features:
                weight = weights.get(one, 0.0)
                slope = error + PENALTY * weight
                seen[one] = seen.get(one, 1.0) + slope * slope
                weights[one] = weight - RATE * slope / sqrt(seen[one])
    return Model({one: weight for one, weight in weights.items() if abs(weight) >= LEAST}, bias)


def learn(given: Sequence[Sentence], changes: Sequence[Sentence], requests: Sequence[str]) -> tuple[Model, Model]:
    """Return the model of wishes, among which those that take one back count, and the model of revocations."""
    return (
        fit(rows_of(given, requests, "+~"), of_wish, known_features(given)),
        fit(rows_of([*given, *changes], requests, "~"), of_revocation, known_features([*given, *changes])),
    )


def rows_of(given: Sequence[Sentence], requests: Sequence[str], signs: str) -> list[tuple[str, bool]]:
    """Return what is learned from: texts, and whether each is of one of the signs."""
    rows = [*among_others(given, random.Random(1)), *[(text, "-") for text in requests]]
    return [(text, sign in signs) for text, sign in rows]


def points(model: Model, before: Callable[[str], float], text: str) -> float:
    """Return all points of a sentence."""
    return before(text) + model.bias + sum([model.weights.get(one, 0.0) for one in features_of(text)])


def above(wanted: Sequence[float], others: Sequence[float]) -> float:
    """Return how often one of the wanted has more points than another."""
    wins = sum([(one > other) + (one == other) / 2 for one in wanted for other in others])
    return wins / max(len(wanted) * len(others), 1)


def judged(left_out: Sequence[Sentence], models: tuple[Model, Model]) -> tuple[float, float, float]:
    """Return how well cues alone, and cues with what was learned, tell wishes; and how well revocations are told."""

    def by(score: Callable[[str], float], signs: str) -> float:
        told = [(score(one.text), one.sign in signs) for one in left_out]
        return above([value for value, is_one in told if is_one], [value for value, is_one in told if not is_one])

    wish, revocation = models
    return (
        by(of_wish, "+~"),
        by(lambda text: points(wish, of_wish, text), "+~"),
        by(lambda text: points(revocation, of_revocation, text), "~"),
    )


def fifths(given: Sequence[Sentence]) -> list[list[Sentence]]:
    """Return five parts, each a run of neighbours of every language and sign: neighbours are of one subject."""
    groups: dict[tuple[str, str], list[Sentence]] = {}
    for one in given:
        groups.setdefault((one.language, one.sign), []).append(one)
    return [
        [one for group in groups.values() for one in group[len(group) * part // 5 : len(group) * (part + 1) // 5]]
        for part in range(5)
    ]


def report(given: Sequence[Sentence], changes: Sequence[Sentence], requests: Sequence[str]) -> None:
    """Print how well sentences and languages that were left out are classified."""
    parts = {f"fifth {number}": part for number, part in enumerate(fifths(given), 1)}
    parts |= {f"changes {number}": part for number, part in enumerate(fifths(changes), 1)}
    for language in sorted({one.language for one in given}):
        parts[language] = [one for one in (*given, *changes) if one.language == language]
    print("left out    cues alone  learned  revocations")
    for name, part in parts.items():
        out = set(part)
        left = [[one for one in among if one not in out] for among in (given, changes)]
        found = judged(part, learn(*left, requests))
        print(f"{name:12}" + "".join(f"{value:10.3f}" for value in found), flush=True)


def written(wish: Model, revocation: Model) -> str:
    """Return the models as rows of two weights and the features that have them."""
    tenths: dict[Feature, tuple[int, int]] = {EDGE: (in_tenths(wish.bias), in_tenths(revocation.bias))}
    for one in sorted(wish.weights.keys() | revocation.weights.keys(), key=str):
        tenths[one] = (in_tenths(wish.weights.get(one, 0.0)), in_tenths(revocation.weights.get(one, 0.0)))
    rows: dict[tuple[int, int], list[str]] = {}
    for one, both in tenths.items():
        rows.setdefault(both, []).append(one if isinstance(one, str) else " ".join(one))
    return "".join(f"{both[0]}\t{both[1]}\t{'|'.join(those)}\n" for both, those in sorted(rows.items()))


def in_tenths(weight: float) -> int:
    return round(weight * learned.TENTHS)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="write the weights into the package, without a report")
    given, changes, requests = sentences(), sentences(CHANGES), customers()
    if arguments.parse_args().write:
        WEIGHTS.write_text(written(*learn(given, changes, requests)), encoding="utf-8")
    else:
        report(given, changes, requests)


if __name__ == "__main__":
    main()
