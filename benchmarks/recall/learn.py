"""Learn which words suggest a standing wish, the revocation of one, or a request: ``python -m benchmarks.recall.learn [--write]``.

The model is logistic regression with a penalty, trained in one fixed order: first on most sentences, then on those of `LATER_LANGUAGES`.
The second training only weighs words that the first one did not see.

Training data: the sentences in ``sentences/``, which were written for this. A row begins with ``+`` for a wish, ``~`` for a sentence that
revokes a wish, ``-`` for any other sentence. Each sentence is used once alone and once joined with other sentences, as people write them.
Requests of recorded customers are further examples of sentences that are no wish. The natural chats and the planted sentences are not used.

Those in ``sentences/requests`` are whole messages without question marks: ``+`` for one that asks for something that was said, ``-`` for any
other. Two fifths of these have words of requests.

Report: how often a wish has more points than another sentence (the area under the ROC curve). It is measured on sentences that were left
out of the training: each fifth of the sentences of every language in turn (sentences are ordered by subject), and each language in turn.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import exp, sqrt
from pathlib import Path
from typing import NamedTuple

from benchmarks.recall.__main__ import load
from gateway.context.read import learned, lines, wishes
from gateway.context.read.cues import binding, sentence_of
from gateway.context.read.learned import EDGE, Feature, text_of
from gateway.context.read.line import SENTENCE

SENTENCES = Path(__file__).with_name("sentences")
CHANGES = SENTENCES / "changes"
"""Sentences that only the model of revocations is trained on. They made the model of wishes worse: on the chats it ranked 86 to 87 % of
the pairs correctly, and 88 % without them."""
REQUESTS = SENTENCES / "requests"
"""Messages that the model of requests is trained on."""
WEIGHTS = Path(str(learned.__file__)).with_name("learned.txt")
REQUEST_WEIGHTS = WEIGHTS.with_name("learned_requests.txt")
LANGUAGES_WITHOUT_SPACES = ("ja", "zh")
"""Languages whose sentences are joined without a space."""
LATER_LANGUAGES = frozenset(
    [
        "ar-Latn",
        "cs",
        "da",
        "el",
        "en-SG",
        "fa",
        "fi",
        "gsw",
        "he",
        "hi-Latn",
        "hu",
        "id",
        "ms",
        "no",
        "pcm",
        "ro",
        "sw",
        "th",
        "tl",
        "uk",
        "vi",
    ]
)
"""Languages that are learned after the others, so that they change nothing in the others. Learned with the others, they cost the
held-out chats one wish in a hundred."""
ROUNDS = 20
"""Passes over the training data."""
LEARNING_RATE = 0.5
"""First step of each weight; AdaGrad makes later steps smaller."""
PENALTY = 0.1
"""L2 penalty on a weight, applied at each sentence that has its feature. Chosen by the results on left-out fifths."""
PENALTY_OF_REQUESTS = 0.01
"""The same for requests, of which there are fewer sentences. Chosen like `PENALTY`."""
LEAST_WEIGHT = 0.25
"""Weights with a smaller absolute value are left out of the file."""
LEAST_WEIGHT_OF_REQUESTS = 0.4
"""The same for requests. With 0.25, one more pair of a hundred is right on left-out fifths, for a third more weights in memory."""
REVOKING_PHRASE_POINTS = 1.5
"""Points of a sentence that `wishes.has_revoking_phrase` recognises by its words. The learned points for a revocation are added to them."""
MOST_CUSTOMER_SENTENCES = 500
"""Customers' sentences to use, at most, from recorded conversations that no other figure is reported on."""


class Sentence(NamedTuple):
    """A sentence, and its label: a wish (``+``), a revocation of a wish (``~``), or neither (``-``)."""

    language: str
    sign: str
    text: str


class Model(NamedTuple):
    """A logistic model: weights by feature, and the bias that every sentence gets."""

    weights: dict[Feature, float]
    bias: float


def load_sentences(folder: Path = SENTENCES) -> list[Sentence]:
    """Return all sentences of a folder."""
    rows = [(path.stem, row) for path in sorted(folder.glob("*.txt")) for row in path.read_text().splitlines()]
    return [Sentence(language, row[0], row[2:].strip()) for language, row in rows]


def customer_sentences() -> list[str]:
    """Return sentences of customers in recorded conversations. They ask for one thing after the other: examples of no wish."""
    talks = [*load("tau_airline.jsonl")[60:], *load("bfcl_long.jsonl")[:60]]
    asked = [message for talk in talks for message in talk["messages"] if message["role"] == "user"]
    said = sorted({line.text for message in asked for line in lines.read(message) if line.kind is SENTENCE})
    return random.Random(3).sample(said, min(MOST_CUSTOMER_SENTENCES, len(said)))


def with_neighbours(given: Sequence[Sentence], chance: random.Random) -> list[tuple[str, str]]:
    """Return each sentence twice with its label: alone, and joined with one or two sentences of its language that are no wish."""
    plain: dict[str, list[str]] = {}
    for one in given:
        if one.sign == "-":
            plain.setdefault(one.language, []).append(one.text)
    found = [(one.text, one.sign) for one in given]
    for one in given:
        others = chance.sample(plain[one.language], chance.choice((1, 1, 2)))
        between = "，" if one.language in LANGUAGES_WITHOUT_SPACES else chance.choice((", ", ". ", " ", " - "))
        found.append((between.join([*others, one.text] if chance.random() < 0.5 else [one.text, *others]), one.sign))
    return found


def wish_cue_points(text: str) -> float:
    """Return the points that the cues of a wish give a sentence, before the learned points are added."""
    return wishes.wish_cues(sentence_of(text)).strength + binding(text)


def revocation_cue_points(text: str) -> float:
    """Return the points that the words of a revocation give a sentence, before the learned points are added."""
    return REVOKING_PHRASE_POINTS * wishes.has_revoking_phrase(sentence_of(text))


def features_of(text: str) -> list[Feature]:
    """Return the features of a text in one fixed order, without the edge: every text has it, so the bias stands for it."""
    return sorted(learned.features(text) - {EDGE}, key=str)


def known_features(given: Sequence[Sentence]) -> frozenset[Feature]:
    """Return the features that a model may weigh: words of the written sentences, and pairs of words that at least two of them
    have. Features of customers' sentences alone, such as their names and numbers, are not used."""
    count = Counter(feature for one in given for feature in features_of(one.text))
    return frozenset(one for one in count if isinstance(one, str) or count[one] > 1)


def fit(
    given: Iterable[tuple[str, bool]],
    cue_points: Callable[[str], float],
    known: frozenset[Feature],
    *,
    has_bias: bool = True,
    penalty: float = PENALTY,
    least_weight: float = LEAST_WEIGHT,
) -> Model:
    """Fit a model of the known features to labelled texts, by stochastic gradient descent with AdaGrad.

    The model adds to the points that ``cue_points`` gives a text without learning. Without a bias, it is 0.
    """
    rows = [([one for one in features_of(text) if one in known], is_one, cue_points(text)) for text, is_one in given]
    weights: dict[Feature, float] = {}
    squared_slopes: dict[Feature, float] = {}
    bias, squared_bias_slopes = 0.0, 1.0
    chance = random.Random(0)
    for _ in range(ROUNDS):
        chance.shuffle(rows)
        for features, is_one, score in rows:
            total = score + bias + sum([weights.get(one, 0.0) for one in features])
            error = 1 / (1 + exp(-max(min(total, 30.0), -30.0))) - is_one
            squared_bias_slopes += error * error
            if has_bias:
                bias -= LEARNING_RATE * error / sqrt(squared_bias_slopes)
            for one in features:
                weight = weights.get(one, 0.0)
                slope = error + penalty * weight
                squared_slopes[one] = squared_slopes.get(one, 1.0) + slope * slope
                weights[one] = weight - LEARNING_RATE * slope / sqrt(squared_slopes[one])
    return Model({one: weight for one, weight in weights.items() if abs(weight) >= least_weight}, bias)


def learn(given: Sequence[Sentence], changes: Sequence[Sentence], requests: Sequence[str]) -> tuple[Model, Model]:
    """Return the model of wishes and the model of revocations. For the first, a revocation counts as a wish."""
    return (
        fit_in_two_steps(given, requests, "+~", wish_cue_points),
        fit_in_two_steps([*given, *changes], requests, "~", revocation_cue_points),
    )


def learn_requests(given: Sequence[Sentence]) -> Model:
    """Return the model of requests. They are whole messages already, so they are not joined with others."""
    rows = [(one.text, one.sign == "+") for one in given]
    return fit(
        rows,
        no_cue_points,
        known_features(given),
        penalty=PENALTY_OF_REQUESTS,
        least_weight=LEAST_WEIGHT_OF_REQUESTS,
    )


def no_cue_points(_: str) -> float:
    """Return no points: a request has no cues besides its words."""
    return 0.0


def fit_in_two_steps(
    given: Sequence[Sentence], requests: Sequence[str], signs: str, cue_points: Callable[[str], float]
) -> Model:
    """Fit a model of the labels in ``signs``. `LATER_LANGUAGES` only weigh features that no other language has."""
    first = [one for one in given if one.language not in LATER_LANGUAGES]
    later = [one for one in given if one.language in LATER_LANGUAGES]
    model = fit(labelled_texts(first, requests, signs), cue_points, known_features(first))
    seen = {feature for one in first for feature in features_of(one.text)}
    added = fit(
        labelled_texts(later, (), signs),
        lambda text: total_points(model, cue_points, text),
        known_features(later) - seen,
        has_bias=False,
    )
    return Model(model.weights | added.weights, model.bias)


def labelled_texts(given: Sequence[Sentence], requests: Sequence[str], signs: str) -> list[tuple[str, bool]]:
    """Return the training texts, and whether the label of each is one of the signs."""
    rows = [*with_neighbours(given, random.Random(1)), *[(text, "-") for text in requests]]
    return [(text, sign in signs) for text, sign in rows]


def total_points(model: Model, cue_points: Callable[[str], float], text: str) -> float:
    """Return the points of a sentence: from its cues, and from a model."""
    return cue_points(text) + model.bias + sum([model.weights.get(one, 0.0) for one in features_of(text)])


def pair_accuracy(wanted: Sequence[float], others: Sequence[float]) -> float:
    """Return the share of pairs in which a wanted sentence has more points than another one; equal points count half."""
    wins = sum([(one > other) + (one == other) / 2 for one in wanted for other in others])
    return wins / max(len(wanted) * len(others), 1)


def accuracy(part: Sequence[Sentence], score: Callable[[str], float], signs: str) -> float:
    """Return the accuracy of a score on sentences; those whose label is one of the signs should have more."""
    scored = [(score(one.text), one.sign in signs) for one in part]
    return pair_accuracy(
        [value for value, is_one in scored if is_one], [value for value, is_one in scored if not is_one]
    )


def accuracies(left_out: Sequence[Sentence], models: tuple[Model, Model]) -> tuple[float, float, float]:
    """Return three accuracies on left-out sentences: wishes by cues alone, wishes by cues and model, revocations by both."""
    wish, revocation = models
    return (
        accuracy(left_out, wish_cue_points, "+~"),
        accuracy(left_out, lambda text: total_points(wish, wish_cue_points, text), "+~"),
        accuracy(left_out, lambda text: total_points(revocation, revocation_cue_points, text), "~"),
    )


def split_in_fifths(given: Sequence[Sentence]) -> list[list[Sentence]]:
    """Return five parts. Each has neighbouring sentences of every language and label, because neighbours share a subject."""
    groups: dict[tuple[str, str], list[Sentence]] = {}
    for one in given:
        groups.setdefault((one.language, one.sign), []).append(one)
    return [
        [one for group in groups.values() for one in group[len(group) * part // 5 : len(group) * (part + 1) // 5]]
        for part in range(5)
    ]


def report_requests(requests: Sequence[Sentence]) -> None:
    """Print how well left-out requests are recognised, in each fifth and in each language of a left-out fifth."""
    print("left out       requests")
    of_language: dict[str, list[float]] = {}
    for number, part in enumerate(split_in_fifths(requests), 1):
        out = set(part)
        model = learn_requests([one for one in requests if one not in out])
        found = request_accuracy(model, part)
        print(f"requests {number:<5}{found:9.3f}", flush=True)
        for language in sorted({one.language for one in part}):
            accuracy = request_accuracy(model, [one for one in part if one.language == language])
            of_language.setdefault(language, []).append(accuracy)
    for language, values in of_language.items():
        print(f"{language:12}{sum(values) / len(values):11.3f}")


def request_accuracy(model: Model, part: Sequence[Sentence]) -> float:
    """Return the accuracy of the model of requests on messages."""
    return accuracy(part, lambda text: total_points(model, no_cue_points, text), "+")


def report(given: Sequence[Sentence], changes: Sequence[Sentence], of_customers: Sequence[str]) -> None:
    """Print how well left-out sentences and languages are classified."""
    parts = {f"fifth {number}": part for number, part in enumerate(split_in_fifths(given), 1)}
    parts |= {f"changes {number}": part for number, part in enumerate(split_in_fifths(changes), 1)}
    for language in sorted({one.language for one in given}):
        parts[language] = [one for one in (*given, *changes) if one.language == language]
    print("left out    cues alone  learned  revocations")
    for name, part in parts.items():
        out = set(part)
        left = [[one for one in among if one not in out] for among in (given, changes)]
        found = accuracies(part, learn(*left, of_customers))
        print(f"{name:12}" + "".join(f"{value:10.3f}" for value in found), flush=True)


def request_file_text(requests: Model) -> str:
    """Return the text of the file of weights for requests: each row has a feature and its weight."""
    tenths = {text_of(one): in_tenths(weight) for one, weight in requests.weights.items()}
    rows = sorted({EDGE: in_tenths(requests.bias), **tenths}.items())
    return "".join(f"{feature}\t{weight}\n" for feature, weight in rows)


def file_text(wish: Model, revocation: Model) -> str:
    """Return the text of the file of weights for wishes and revocations: each row has two weights, and the words and the pairs that have both."""
    tenths: dict[Feature, tuple[int, int]] = {EDGE: (in_tenths(wish.bias), in_tenths(revocation.bias))}
    for one in sorted(wish.weights.keys() | revocation.weights.keys(), key=str):
        tenths[one] = (in_tenths(wish.weights.get(one, 0.0)), in_tenths(revocation.weights.get(one, 0.0)))
    rows: dict[tuple[int, int], tuple[list[str], list[str]]] = {}
    for one, both in tenths.items():
        words, pairs = rows.setdefault(both, ([], []))
        (words if isinstance(one, str) else pairs).append(text_of(one))
    return "".join(
        f"{both[0]}\t{both[1]}\t{'|'.join(words)}\t{'|'.join(pairs)}\n" for both, (words, pairs) in sorted(rows.items())
    )


def in_tenths(weight: float) -> int:
    """Return a weight as the file holds it: a whole number of `learned.TENTHS`."""
    return round(weight * learned.TENTHS)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="write the weights into the package, without a report")
    arguments.add_argument("--requests", action="store_true", help="only the model of requests")
    options = arguments.parse_args()
    requests = load_sentences(REQUESTS)
    if options.write:
        REQUEST_WEIGHTS.write_text(request_file_text(learn_requests(requests)), encoding="utf-8")
    if options.requests:
        if not options.write:
            report_requests(requests)
        return
    given, changes, of_customers = load_sentences(), load_sentences(CHANGES), customer_sentences()
    if options.write:
        WEIGHTS.write_text(file_text(*learn(given, changes, of_customers)), encoding="utf-8")
    else:
        report_requests(requests)
        report(given, changes, of_customers)


if __name__ == "__main__":
    main()
