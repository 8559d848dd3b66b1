"""No regular expression of ours can be made to take long: on text made to hurt it, its steps grow no faster than the text."""

import json  # noqa: TID251  # what the collecting process printed
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from re import _constants
from typing import Any

import pytest

from gateway.config.catalogue import spellings
from gateway.config.names import matches
from providers.overflow.wording import HEAD_WORDS, TAIL_WORDS
from tests.hostile.steps import MARKS, Matcher, TooManySteps
from tests.running import ROOT

LENGTH = 64
"""Characters of a text on which steps are counted; then twice as many."""
HUGE = 20_000
"""Characters of a parse tree: only the lexicon's has more, and takes a thousand steps at each character."""
GROWTH = 2.9
"""Twice the text takes twice the steps where they grow evenly, four times where they grow with the square."""
FREE_STEPS = 600
MOST_REPEATS = 12
"""Of a pattern with more repeated parts, so many are taken, evenly."""
MOST_STEPS = 300_000
CPU_S = 100
"""For all patterns on all texts of 64 KB by `re` itself: a hundred times what they take."""
KIB_64 = 2**16
SHORT_TEXTS = "providers/overflow/phrases.py"
FEW_STEPS = 1_000_000
EVERYWHERE = ("a", " ", "\n", "\t \n", "0", "1,", ".", "-", "a ", "a1", "A", "aB", "_a", '"', "\\", "\\\"", "(", "[", "{\"", "<", "=", ":", "/", "é", "中", "\x00")  # fmt: skip


@pytest.fixture(autouse=True)
def deep():
    """The matcher that counts calls itself for every step that it may have to take back."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    yield
    sys.setrecursionlimit(before)


@cache
def collected() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.patterns"], cwd=ROOT, capture_output=True, check=True, timeout=100
    )
    return json.loads(done.stdout)


@cache
def patterns() -> tuple[tuple[str, str, bool, int, bool], ...]:
    """Each pattern once: where it stands, itself, whether it is for bytes, its flags, whether it is only tried at one place."""
    rows: dict[tuple[Any, ...], str] = {}
    for row in collected()["patterns"]:
        key = (row["pattern"], row["bytes"], row["flags"], row["anchored"])
        rows.setdefault(key, f"{row['file']}:{row['line']}")
    return tuple((where, *key) for key, where in rows.items())


def sample(nodes: Any) -> str:
    """A text that the nodes match, as short as may be; repeated once what may be repeated."""
    return "".join(_sample(node) for node in nodes)


def _sample(node: Any) -> str:
    kind, value = node
    if kind is _constants.LITERAL:
        return chr(value)
    if kind in MARKS:
        return _one_of(node)
    if kind is _constants.SUBPATTERN:
        return sample(value[3])
    if kind is _constants.BRANCH:
        return sample(value[1][0])
    if kind is _constants.ATOMIC_GROUP:
        return sample(value)
    if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        return sample(value[2]) * max(value[0], 1)
    return ""


def _one_of(node: Any) -> str:
    kind, value = node
    if kind is _constants.IN:
        for inner, what in value:
            if inner is _constants.LITERAL and value[0][0] is not _constants.NEGATE:
                return chr(what)
            if inner is _constants.RANGE and value[0][0] is not _constants.NEGATE:
                return chr(what[0])
            if inner is _constants.CATEGORY and value[0][0] is not _constants.NEGATE:
                return {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " "}.get(str(what), "a")
    return "a"


def repeats(nodes: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What stands before each part that may be repeated, and the part."""
    for node in nodes:
        kind, value = node
        if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            if value[1] > 1:
                yield before, sample(value[2])
                if len(value[2]) == 1 and value[2][0][0] is _constants.BRANCH:
                    yield from ((before, sample(way)) for way in value[2][0][1][1])
            yield from repeats(value[2], before)
        elif kind is _constants.SUBPATTERN:
            yield from repeats(value[3], before)
        elif kind is _constants.ATOMIC_GROUP:
            yield from repeats(value, before)
        elif kind is _constants.BRANCH:
            for way in value[1]:
                yield from repeats(way, before)
        before += _sample(node)


def hostile(tree: Any, length: int) -> list[str]:
    """Texts on which a pattern would go wrong if it could: what it repeats, over and over, and then not what it wants."""
    seeds = set(EVERYWHERE)
    texts = []
    found = sorted(set(repeats(tree)))
    for before, part in found[:: len(found) // MOST_REPEATS + 1]:
        if part:
            texts += [before + part * (length // len(part)) + end for end in ("\x00", "\n", "a", "1")]
            seeds |= {before + part, before + part * 3 + "!", part + " "}
        seeds.add(before or "a")
    if len(str(tree)) > HUGE:
        texts, seeds = texts[::12], set(EVERYWHERE[::6])
    return [*texts, *((seed * (length // len(seed) + 1))[:length] + "\x00" for seed in sorted(seeds))]


def made(text: str, *, in_bytes: bool) -> str | bytes:
    return text.encode("utf-8", "ignore") if in_bytes else text


def test_every_regular_expression_is_found():
    assert collected()["missed"] == []
    assert len(patterns()) > 100


def grown(where: str, pattern: str | bytes, flags: int, *, anchored: bool) -> tuple[int, str] | None:
    """The text on which the steps of a pattern grow faster than the text, and its steps; None where there is none."""
    matcher = Matcher(pattern, flags)
    in_bytes = isinstance(pattern, bytes)
    for once, twice in zip(hostile(matcher.tree, LENGTH), hostile(matcher.tree, 2 * LENGTH), strict=True):
        least = MOST_STEPS
        try:
            least = matcher.count(made(once, in_bytes=in_bytes), MOST_STEPS, anchored=anchored)
            matcher.count(made(twice, in_bytes=in_bytes), int(least * GROWTH) + FREE_STEPS, anchored=anchored)
        except TooManySteps:
            return least, once[:40]
    return None


def test_steps_grow_no_faster_than_the_text():
    slow = {}
    for where, pattern, in_bytes, flags, anchored in patterns():
        if where.startswith(SHORT_TEXTS):
            continue
        found = grown(where, pattern.encode("latin-1") if in_bytes else pattern, flags, anchored=anchored)
        if found:
            slow[where, pattern] = found
    assert slow == {}


def test_patterns_that_only_see_short_texts_take_few_steps_on_the_longest_of_them():
    """Statements in the controlled language are cut to so many words before these are tried on them."""
    steps = []
    for where, pattern, _, flags, _ in patterns():
        if where.startswith(SHORT_TEXTS):
            matcher = Matcher(pattern, flags)
            for before, part in sorted(set(repeats(matcher.tree)))[::3]:
                if part.strip():
                    steps.append(
                        matcher.count(
                            before + part * ((HEAD_WORDS + TAIL_WORDS) // len(part.split())) + " ~ ", FEW_STEPS
                        )
                    )
    assert len(steps) > 100


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a+)+$", "a" * 30 + "!"),
        (r"^(a|a)*$", "a" * 30 + "!"),
        (r"[:@].*$", ":" * 3000 + "\nx"),
        (r"\s+$", " " * 3000 + "x"),
    ],
)
def test_the_count_of_steps_knows_a_bad_pattern(pattern, text):
    with pytest.raises(TooManySteps):
        Matcher(pattern).count(text, 200_000)


@pytest.mark.parametrize("text", ["", "a", "aaab", "xab12", "12 34", "<b>x</b>", "a\nb", "äöü", "AbC", "foo(bar)"])
@pytest.mark.parametrize(
    "pattern",
    [r"a*b", r"(?:a|ab)(?:c|12)?", r"\d+(?=\s)", r"<(\w)>.*?</\w>", r"(?<!a)b", r"^\w+$", r"[^a-z]+", r"a*+b"],
)
def test_the_matcher_that_counts_finds_what_re_finds(pattern, text):
    matcher = Matcher(pattern)
    matcher.count(text, 10_000)
    for start in range(len(text) + 1):
        matcher._text = text
        found = re.compile(pattern).match(text, start)
        assert matcher._run(list(matcher.tree), 0, start, lambda at: at) == (found.end() if found else None)


RUN = """
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
for pattern, flags, anchored, texts in json.load(sys.stdin):
    one = re.compile(pattern, flags)
    for text in texts:
        one.match(text) if anchored else sum(1 for _ in one.finditer(text))
print("done")
"""


@pytest.mark.slow
def test_sixty_four_kilobytes_made_to_hurt_end_within_a_bound_on_the_processor():
    rows = []
    for where, pattern, in_bytes, flags, anchored in patterns():
        if not in_bytes and not where.startswith(SHORT_TEXTS):
            texts = [text for text in hostile(Matcher(pattern, flags).tree, KIB_64) if text[:3] not in EVERYWHERE][::4]
            rows.append((pattern, flags, anchored, texts))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(CPU_S)],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr[-500:]


@pytest.mark.parametrize(
    "name", [":" * KIB_64 + "\nx", "a/" * KIB_64, "us." * KIB_64, "-v1" * KIB_64 + "x", "gpt-" + "1" * KIB_64]
)
def test_names_of_64_kilobytes_are_spelled_and_matched_at_once(name):
    """Names that long are refused; this holds even where they are not."""
    assert spellings(name)[0] == name.strip().lower()
    assert not matches("*a*b*a*b*a*c", "ab" * KIB_64)


def test_an_error_that_repeats_the_words_of_a_refusal_is_read_in_few_steps():
    """Sixty of them took a second for each of ten patterns, and twice as many would never have ended."""
    text = "over limit " + "prompt limit limit prompt limit " * 28
    counted = [
        Matcher(pattern, flags).count(f" {text} ~ ", FEW_STEPS)
        for where, pattern, _, flags, _ in patterns()
        if where.startswith(SHORT_TEXTS)
    ]
    assert len(counted) > 50
