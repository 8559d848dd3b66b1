"""The benchmarks run: each would otherwise be found broken by whoever needs its figure."""

import asyncio
import importlib
import itertools
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks.cache import __main__ as cache
from benchmarks.cache import server
from benchmarks.cache.causes import causes_of
from benchmarks.linear import __main__ as linear
from benchmarks.linear import chart
from benchmarks.load.clock import Clock, Gap, Span, less_pauses
from benchmarks.reading.__main__ import interval
from benchmarks.reading.answers import WAYS, asked, scored
from benchmarks.reading.model import Model
from benchmarks.reading.obedience import PLACES, WISHES, Wish, folded, parts, wished
from benchmarks.recall import __main__ as recall
from benchmarks.recall import instructed, learn, needed, text_agents, timing, variants
from benchmarks.recall.authored import SETS, Authored, Kind, sets_of
from benchmarks.recall.ours import turnfold
from benchmarks.soak.clients import judged
from benchmarks.soak.formats import FORMATS, Format
from benchmarks.speed.servers import ROOT
from gateway.context import frames
from gateway.context.cache.rules import LLAMA_CPP
from gateway.standin import StandIn
from gateway.standin.answers import Completion, Raw
from tests.fakes import assistant, system, user, words

TALKS = [
    {"messages": [system("Be brief."), *(turn for n in range(4) for turn in (user(words(40, n)), assistant("Noted.")))]}
]


@pytest.mark.parametrize(
    "name",
    [
        "cache.__main__",
        "counting.__main__",
        "envoy",
        "instructions.__main__",
        "linear.__main__",
        "load.__main__",
        "load.gateway",
        "reading.__main__",
        "recall.__main__",
        "recall.asking",
        "recall.fit",
        "recall.instructed",
        "recall.learn",
        "replay",
        "soak.__main__",
        "soak.upstream",
        "speed.__main__",
        "store",
        "workers.__main__",
    ],
)
def test_each_can_be_loaded(name: str) -> None:
    assert importlib.import_module(f"benchmarks.{name}").__doc__


@pytest.mark.parametrize(
    "command", ["cache --sets chats", "recall.fit", "recall.formats", "recall.learn", "replay", "reading --server x"]
)
def test_without_the_recorded_sets_one_line_says_so(command: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", *f"benchmarks.{command}".split()]
    ended = subprocess.run(
        program,
        env={**os.environ, "TURNFOLD_DATA": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert str(tmp_path) in line
    assert "TURNFOLD_DATA" in line


def test_conversations_are_joined_up_to_a_user_message() -> None:
    messages = timing.joined([*TALKS, *TALKS], 200)

    assert messages[-1]["role"] == "user"
    assert [message["role"] for message in messages].count("system") == 1


def test_a_fold_can_be_timed() -> None:
    assert timing.timed(timing.joined(TALKS * 8, 1000), 400, 1) >= 0


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_a_soak_tells_a_wrong_stream_from_one_that_broke_off(format: Format) -> None:
    whole = b"".join(format.pieces("seed"))
    assert judged(format, "seed", whole) == "whole"
    assert judged(format, "seed", whole[:500]) == "broken"
    assert judged(format, "seed", whole[:500] + whole[501:]) == "wrong"
    assert judged(format, "other", whole) == "wrong"


QUESTIONS = {
    "held_out": {0.25: 0.80, 0.10: 0.70},
    "held_out_later": {0.25: 0.80, 0.10: 0.70},
    "held_out_last": {0.25: 0.80, 0.10: 0.70},
    "held_out_final": {0.25: 0.80, 0.10: 0.70},
    "held_out_fifth": {0.25: 0.78, 0.10: 0.66},
    "held_out_sixth": {0.25: 0.78, 0.10: 0.70},
    "held_out_seventh": {0.5: 0.84, 0.25: 0.82, 0.10: 0.68, 0.05: 0.60},
    "languages": {0.25: 0.85, 0.10: 0.78, 0.05: 0.64},
    "languages_held_out": {0.5: 0.91, 0.25: 0.86, 0.10: 0.80, 0.05: 0.67},
    "languages_more": {0.5: 0.83, 0.25: 0.76, 0.10: 0.66, 0.05: 0.52},
    "friends": {0.25: 0.75, 0.10: 0.68, 0.05: 0.54},
    "friends_held_out": {0.25: 0.75, 0.10: 0.68, 0.05: 0.54},
    "documents": {0.5: 0.93, 0.25: 0.88, 0.10: 0.78, 0.05: 0.65},
    "documents_held_out": {0.5: 0.93, 0.25: 0.88, 0.10: 0.76, 0.05: 0.62},
    "coding_agents": {0.5: 0.93, 0.25: 0.94, 0.10: 0.92, 0.05: 0.83},
    "coding_agents_held_out": {0.5: 0.96, 0.25: 0.94, 0.10: 0.92, 0.05: 0.79},
    "research_agents": {0.5: 0.91, 0.25: 0.89, 0.10: 0.79, 0.05: 0.66},
    "research_agents_held_out": {0.5: 0.88, 0.25: 0.89, 0.10: 0.77, 0.05: 0.66},
    "work_agents": {0.5: 0.95, 0.25: 0.94, 0.10: 0.86, 0.05: 0.79},
    "work_agents_held_out": {0.5: 0.95, 0.25: 0.94, 0.10: 0.84, 0.05: 0.76},
    "text_agents": {0.5: 0.92, 0.25: 0.85, 0.10: 0.83, 0.05: 0.77},
    "text_agents_held_out": {0.5: 0.83, 0.25: 0.78, 0.10: 0.78, 0.05: 0.72},
    "applications": {0.5: 0.85, 0.25: 0.81, 0.10: 0.68, 0.05: 0.60},
    "applications_held_out": {0.5: 0.86, 0.25: 0.82, 0.10: 0.73, 0.05: 0.63},
    "channels": {0.5: 0.89, 0.25: 0.85, 0.10: 0.76, 0.05: 0.68},
    "channels_held_out": {0.5: 0.86, 0.25: 0.82, 0.10: 0.70, 0.05: 0.61},
    "everyday": {0.5: 0.85, 0.25: 0.76, 0.10: 0.62, 0.05: 0.48},
    "everyday_held_out": {0.5: 0.79, 0.25: 0.73, 0.10: 0.54, 0.05: 0.44},
    "unmarked": {0.5: 0.84, 0.25: 0.79, 0.10: 0.68, 0.05: 0.48},
    "unmarked_held_out": {0.5: 0.81, 0.25: 0.69, 0.10: 0.58, 0.05: 0.46},
    "months": {0.5: 0.86, 0.25: 0.79, 0.10: 0.70, 0.05: 0.57},
    "months_held_out": {0.5: 0.89, 0.25: 0.82, 0.10: 0.72, 0.05: 0.63},
    "revisions": {0.5: 0.83, 0.25: 0.80, 0.10: 0.62, 0.05: 0.48},
    "revisions_held_out": {0.5: 0.86, 0.25: 0.80, 0.10: 0.65, 0.05: 0.46},
    "tool_agents": {0.5: 0.95, 0.25: 0.94, 0.10: 0.90, 0.05: 0.84},
    "tool_agents_held_out": {0.5: 0.92, 0.25: 0.92, 0.10: 0.84, 0.05: 0.76},
    "service": {0.5: 0.95, 0.25: 0.94, 0.10: 0.68, 0.05: 0.36},
    "service_held_out": {0.5: 0.96, 0.25: 0.96, 0.10: 0.72, 0.05: 0.44},
}
"""By set and share of the history, the least share of what questions need that is found. Without the rules for their kind of conversation, coding
agents had 85, 69, 72 and 62 %, research agents 86, 78 and 81 %, service 48, 41, 14 and 9 %, of one set or the other. Russian, Korean and Arabic had 89, 75, 62 and 51 % before
their words were read as these languages need it. Before questions without question marks were recognised, the sets of more languages had 51, 33, 14 and 13 %.
Before calls in text were read as calls, text agents had 75, 71, 77 and 66 %. Before unmarked questions were found inside messages, chats in applications had 59, 44, 33 and
27 %. Without prompt templates, chats in other channels had 74, 68, 55 and 47 %. With rules of form for questions without a mark, everyday chats had 72, 63,
45 and 37 %. With rules of form for question marks and instructions, chats without marks had 80, 64, 52 and 45 %; before common
words of other languages than English counted less, 81, 66, 56 and 47 %, and chats over months 85, 80, 68 and 55 %."""


def set_named(file: str) -> Authored:
    return next(each for each in SETS if each.file == file)


@pytest.mark.parametrize("file", QUESTIONS)
def test_questions_find_what_they_need(file: str) -> None:
    asked = [point for talk in set_named(file).talks for point in needed.probes(talk)]

    found = {
        budget: statistics.mean(needed.found(point, recall.at_budget(point.request, budget)) for point in asked)
        for budget in QUESTIONS[file]
    }
    assert all(found[budget] >= least for budget, least in QUESTIONS[file].items()), found


@pytest.mark.parametrize(
    "file", ["held_out_fifth", "held_out_sixth", "languages", "languages_held_out", "service", "service_held_out"]
)
def test_a_question_without_its_mark_finds_what_one_with_it_finds(file: str) -> None:
    """At a quarter of the history, 31 to 80 % were found before, of 83 to 100 % with marks."""
    marked, unmarked = [
        statistics.mean(
            needed.found(point, recall.at_budget(point.request, 0.25))
            for talk in set_named(file).talks
            for point in variants.VARIANTS[form](talk)
        )
        for form in ("as they are", "without question marks")
    ]
    assert unmarked >= 0.94 * marked


def test_every_set_has_bars() -> None:
    assert [each.file for each in SETS] == list(QUESTIONS)


AGENTS = pytest.mark.parametrize(
    "sessions", [set_named("coding_agents"), set_named("coding_agents_held_out")], ids=lambda each: each.file
)
SERVICE_SETS = pytest.mark.parametrize("talks", sets_of(Kind.SERVICE), ids=lambda each: each.file)


@SERVICE_SETS
def test_service_in_half_of_its_history_is_processed_nearly_as_rarely_as_without_its_oldest_half(
    talks: Authored,
) -> None:
    """In windows of half, tokens that a server processes anew; 1.14 and 1.15 times as many when each cut kept room free for quotes. The reply
    that a message answers is kept since then, which costs 2 % of it."""
    processed = dict.fromkeys(("turnfold", "drop oldest half"), 0.0)
    for messages in (talk["messages"] for talk in talks.talks):
        talk = cache.Talk(messages, cache.share_of(messages, 0.5), tuple(cache.points(messages)))
        for way in processed:
            processed[way] += sum(bill.fresh for bill in cache.billed(talk.sent(way), LLAMA_CPP))

    assert processed["turnfold"] <= 1.135 * processed["drop oldest half"]


@pytest.mark.parametrize(("inside", "budget", "least"), [(False, 0.25, 0.72), (True, 0.25, 0.76), (True, 0.10, 0.51)])
@SERVICE_SETS
def test_service_of_any_company_keeps_what_its_next_calls_need(
    talks: Authored, inside: bool, budget: float, least: float
) -> None:
    """Inside turns, 70 and 39 % were kept when the ids of each answer counted like those of orders."""
    found = [point for talk in talks.talks for point in needed.points(talk, inside_turns=inside)]
    kept = [
        needed.found(point, recall.at_point(point, budget))
        for point in found
        if recall.history(point) >= recall.HISTORY
    ]

    assert statistics.mean(kept) >= least


@pytest.mark.parametrize(("budget", "least"), [(0.5, 0.93), (0.25, 0.80), (0.10, 0.57)])
@AGENTS
def test_a_coding_agent_keeps_tasks_and_findings_while_it_works(
    sessions: Authored, budget: float, least: float
) -> None:
    """Without the worth of their sentences 62, 46 and 26 % were kept, of one set or the other."""
    wishes, remarks = recall.kept_during_work(sessions.talks, budget)

    assert statistics.mean(wishes) >= 0.95
    assert statistics.mean(remarks) >= least


def test_a_fold_fits_for_a_server_that_writes_the_ids_of_calls_into_the_prompt() -> None:
    """Without room for ids, 13 of these 25 folds were too large for such a server."""
    for session in set_named("coding_agents").talks:
        for end in range(len(session["messages"]) // 2, len(session["messages"]), 10):
            messages = session["messages"][:end]
            window = recall.count(messages) // 16
            assert recall.count(turnfold(messages, window, recall.count)) <= window


@pytest.mark.parametrize(("budget", "values", "remarks"), [(0.5, 0.80, 0.74), (0.25, 0.61, 0.60), (0.10, 0.34, 0.53)])
@pytest.mark.parametrize("sessions", sets_of(Kind.TEXT_AGENT), ids=lambda each: each.file)
def test_an_agent_that_calls_in_its_text_keeps_values_and_tasks_while_it_works(
    sessions: Authored, budget: float, values: float, remarks: float
) -> None:
    """When results were read as the user's words, 63, 34 and 13 % of the values were kept, and 64, 58 and 46 % of tasks and decisions."""
    kept = text_agents.kept(sessions.talks, budget, recall.at_point)

    assert statistics.mean(kept.values) >= values
    assert statistics.mean(kept.remarks) >= remarks
    assert statistics.mean(kept.wishes) >= 0.8


@pytest.mark.parametrize("asks", [True, False], ids=["a question", "nothing asked"])
@AGENTS
def test_a_coding_agent_keeps_the_wishes_of_its_developer(sessions: Authored, asks: bool) -> None:
    """At a tenth of the history. Without the worth of a developer's sentences, 65 % were kept."""
    kept, shown = recall.kept_wishes(sessions.talks, 0.1, asks=asks)

    assert statistics.mean(kept) >= 0.9
    assert statistics.mean(shown) <= 0.02


@pytest.mark.parametrize(
    ("form", "least"),
    [
        ("as they are", (0.55, 0.70, 0.82)),
        ("without question marks", (0.50, 0.62, 0.76)),
        ("a call in every fifth turn", (0.50, 0.68, 0.78)),
        ("two calls after the question", (0.50, 0.68, 0.78)),
        ("in the middle of a story", (0.40, 0.62, 0.65)),
        ("as an instruction", (0.50, 0.60, 0.72)),
    ],
)
def test_no_form_of_a_question_and_no_size_of_a_room_loses_what_a_chat_said(
    form: str, least: tuple[float, float, float]
) -> None:
    """At 5, 10 and 25 % of the history. Without any one of the rules for these forms one of the figures is below a third. Instructions had 1,000 tokens of
    quotes, and 81 % at a quarter, before they were measured like any message; now many in this frame get fewer."""
    talks = set_named("held_out_last").talks
    asked = [point for talk in talks for point in variants.VARIANTS[form](talk)]

    kept = [
        statistics.mean(needed.found(point, recall.at_budget_of(point, budget)) for point in asked)
        for budget in (0.05, 0.1, 0.25)
    ]
    assert all(share >= bar for share, bar in zip(kept, least, strict=True)), kept


@pytest.mark.parametrize(("budget", "least", "most"), [(0.05, 0.60, 108), (0.1, 0.68, 220), (0.25, 0.82, 310)])
def test_instructions_find_what_they_need_and_everyday_messages_get_few_quotes(
    budget: float, least: float, most: float
) -> None:
    """On the held-out half. With a share of the worth of all words as the condition, 56 % were found at 5 %, and everyday messages got 108, 244 and
    374 tokens. Since one measure tells what any message asks, everyday messages get 105 tokens at
    5 %, some 25 more than before, and some 5 and 20 fewer at 10 and 25 %."""
    said = [each for each in instructed.instructions() if each.held_out]
    folds = [(each, recall.at_budget_of(each.point, budget)) for each in said]
    needing = [needed.found(each.point, out) for each, out in folds if each.point.remarks]
    everyday = [instructed.quoted_tokens(out) for each, out in folds if each.form == instructed.EVERYDAY]

    assert (len(needing), len(everyday)) == (48, 36)
    assert statistics.mean(needing) >= least
    assert statistics.mean(everyday) <= most


@pytest.mark.parametrize(("file", "least"), [("held_out", 0.6), ("held_out_later", 0.5), ("documents", 0.5)])
def test_standing_wishes_of_chats_are_kept_behind_a_question_without_a_subject(file: str, least: float) -> None:
    talks = set_named(file).talks
    kept = [
        needed.stands(wish["rule"]["text"], recall.at_budget(needed.going_on(talk), 0.1))
        for talk in talks
        for wish in talk["rules"].values()
        if "revoked" not in wish
    ]

    assert statistics.mean(kept) >= least


@pytest.mark.parametrize(("budget", "least"), [(0.10, 0.45), (0.15, 0.80), (0.25, 0.90)])
def test_the_reply_before_the_newest_message_of_a_chat_stands(budget: float, least: float) -> None:
    """With a digest of two fifths of a small room, 34 % of the replies stand at a tenth."""
    assert statistics.mean(recall.replies_kept(set_named("held_out").talks, budget)) >= least


LAPTOP = "The small laptop has gone to my sister for good."
FILES = "From today on send me every file in one piece."


@pytest.mark.parametrize(
    ("rows", "stands"),
    [
        ([f"user: {LAPTOP} {FILES}"], True),
        ([f"user: {FILES}", f"user: Morning. {LAPTOP}"], True),
        ([f"user: {LAPTOP}", "user: From today on send me nothing."], False),
        ([f"user: {FILES}"], False),
    ],
)
def test_a_remark_stands_where_all_of_its_sentences_do(rows: list[str], stands: bool) -> None:
    out = [{"role": "user", "content": row} for row in rows]

    assert needed.stands(f"{LAPTOP} {FILES}", out) is stands


def test_what_is_held_out_stands_where_it_is_said_to_stand() -> None:
    for talk in [talk for each in SETS if "held_out" in each.file for talk in each.talks]:
        told = [each for probe in talk["probes"] for each in probe["evidence"]]
        told += [each for wish in talk["rules"].values() for each in wish.values()]
        assert [each["text"] for each in told if each["text"] not in needed.whole(talk["messages"][each["msg"]])] == []


def test_a_revocation_that_was_not_learned_from_is_told() -> None:
    given = [one for one in learn.load_sentences() if one.language == "en"]
    models = learn.learn(given, [one for one in learn.load_sentences(learn.CHANGES) if one.language == "en"], [])

    def score(text: str) -> float:
        return learn.total_points(models[1], learn.revocation_cue_points, text)

    assert score("you needn't avoid long answers any more") > score("he paid for the tickets with a voucher")


def test_languages_that_are_learned_later_change_no_weight_of_the_others() -> None:
    every = [one for one in learn.load_sentences() if one.language in ("nl", "da")]
    alone = learn.learn([one for one in every if one.language == "nl"], [], [])

    for before, after in zip(alone, learn.learn(every, [], []), strict=True):
        assert after.bias == before.bias
        assert before.weights.items() < after.weights.items()


SAID = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]


def quoted(message: dict[str, str], frame: str) -> dict[str, str]:
    text = message["content"]
    return {**message, "content": f"{text}\n\n{frames.sealed(frames.framed(frames.QUOTES, frame), text)}"}


def noted(message: dict[str, str], frame: str) -> dict[str, str]:
    return {**message, "content": f"{frames.framed(frames.DIGEST, frame)}\n\n{message['content']}"}


@pytest.mark.parametrize(
    ("first", "second", "causes"),
    [
        (SAID[:2], SAID, {"new messages"}),
        ([SAID[0], quoted(SAID[1], "old")], SAID, {"new messages"}),
        (SAID[:2], [*SAID[:3], quoted(SAID[3], "old")], {"new messages", "quotes"}),
        (SAID[:3], [SAID[0], noted(SAID[1], "old"), *SAID[2:]], {"digest", "again, cut moved", "new messages"}),
        ([SAID[0], quoted(SAID[1], "old"), SAID[2]], SAID, {"again, quotes changed", "new messages"}),
        (SAID[:3], SAID[2:], {"again, other", "new messages"}),
    ],
)
def test_what_is_processed_anew_has_a_cause(first: list[Any], second: list[Any], causes: set[str]) -> None:
    found = causes_of(SAID, (len(first), 4), (first, second), len)

    assert {cause for cause, tokens in found.items() if tokens} == {"first", *causes}


async def test_a_server_is_measured_by_its_own_counters(standin: StandIn) -> None:
    standin.script += [
        Raw(200, (b'{"choices": [], "timings": {"prompt_n": 7, "cache_n": 30}}',)),
        Raw(400, (b'{"error": {"message": "too long"}}',)),
    ]
    address = standin.base_url.removesuffix("/v1")

    assert await asyncio.to_thread(server.ask, address, SAID) == (7, 30)
    assert await asyncio.to_thread(server.ask, address, SAID, '[{"type": "function"}]') is None
    first, second = (orjson.loads(request.body) for request in standin.requests)
    assert first["cache_prompt"] is True
    assert "tools" not in first
    assert second["tools"] == [{"type": "function"}]


def test_the_page_shows_the_committed_costs_and_their_chart() -> None:
    found = orjson.loads(linear.TABLE.read_bytes())
    page = (ROOT / "docs" / "speed.md").read_text("utf-8")
    assert linear.table(found["sizes"], found["milliseconds"]) in page
    assert linear.CHART.read_text("utf-8") == chart.drawn(linear.TITLE, found["sizes"], found["milliseconds"])
    assert f"]({linear.CHART.name})" in page


def test_a_cost_that_is_linear_is_parallel_to_the_diagonal() -> None:
    sizes = [2**10, 2**12, 2**14, 2**16]
    lines = {
        "linear": [1.0, 4.0, 16.0, 64.0],
        "same": [2.0, 2.0, 2.0, 2.0],
        "late": [None, None, 1.0, 4.0],
        "more": [1.0] * 4,
    }
    drawing = chart.drawn("Cost", sizes, lines)
    points = [
        [tuple(map(float, point.split(","))) for point in found.split()]
        for found in re.findall(r'points="([^"]+)"', drawing)
    ]
    linear_, same, late, _ = points
    steps = {(round(x2 - x1), round(y2 - y1)) for (x1, y1), (x2, y2) in itertools.pairwise(linear_)}
    across, down = next(iter(steps))
    assert len(steps) == 1 and down < 0, "a straight line that rises"
    assert {y for _, y in same} == {same[0][1]}
    assert [x for x, _ in late] == [x for x, _ in linear_[2:]]
    start, end = re.search(r'class="even" d="M([\d.,]+)L([\d.,]+)"', drawing).groups()  # type: ignore[union-attr]
    (x1, y1), (x2, y2) = (tuple(map(float, place.split(","))) for place in (start, end))
    assert (x2 - x1) / (y2 - y1) == pytest.approx(across / down, rel=0.02)


CHAT = {
    "messages": [
        system("Be kind."),
        *(
            turn
            for n in range(60)
            for turn in (
                user(f"On day {n} we painted fence {n * 3} green."),
                assistant("It will last for years, if the weather holds. " * 3),
            )
        ),
    ],
    "probes": [
        {
            "q": "Which fence did we paint on day 4?",
            "answer": "Fence 12, in green",
            "evidence": [{"text": "On day 4 we painted fence 12 green."}],
        }
    ],
}


async def test_what_a_model_answers_is_compared_with_the_right_answer(standin: StandIn) -> None:
    standin.script += [Completion("It was number 12.") for _ in range(4)]
    model = Model(standin.base_url.removesuffix("/v1"))
    questions = asked([CHAT], 1)

    for way, evidence in (("turnfold", 1.0), ("drop oldest half", 0.0), ("evidence alone", 1.0), ("none", 0.0)):
        (score,) = await asyncio.to_thread(scored, model, questions, WAYS[way], 600)
        assert score.words == 0.5
        assert score.evidence == evidence


OBEDIENT = (
    "Done. Over.",
    "La casa es de mi madre y la veo en el mar.",
    "Sleep early.",
    "Walk, or read.",
    "GO OUT.",
    "Ahoy, go out.",
)
NOT = ("It is over now.", "The sea is blue.", "word " * 40, "1. Walk\n2. Read", "Go out.", "Go, ahoy.")


@pytest.mark.parametrize(("wish", "obeys", "does_not"), list(zip(WISHES, OBEDIENT, NOT, strict=True)))
def test_obedience_is_told_by_the_answer_alone(wish: Wish, obeys: str, does_not: str) -> None:
    assert wish.obeys(obeys)
    assert not wish.obeys(does_not)


def test_a_wish_stands_in_the_digest_wherever_that_is_placed() -> None:
    case = wished([CHAT], 1)[0]
    _, digest, rest = parts(case)

    assert case.wish.text in digest
    assert case.wish.text not in str(rest)
    assert case.wish.text in str(PLACES["in the system message"](case)[0])
    assert case.wish.text not in str(PLACES["without the wish"](case))
    assert folded(case)[0]["role"] == "system"


def test_an_interval_holds_the_mean() -> None:
    low, high = interval([0.0, 1.0] * 20)

    assert 0.3 < low < 0.5 < high < 0.7


def test_a_gap_is_no_fault_of_the_loop_while_the_whole_machine_stood_still() -> None:
    gaps = [Gap(10.0, 10.5, 0.5), Gap(20.0, 20.3, 0.2), Gap(30.0, 30.1, 0.1)]
    pauses = [Span(9.9, 10.4), Span(20.0, 20.3), Span(25.0, 29.0)]
    assert less_pauses(gaps, pauses) == pytest.approx([0.1, 0.0, 0.1])


def test_the_clock_notes_when_it_stood_still(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    try:
        for _ in range(100):  # it may not have begun yet
            clock.process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            clock.process.send_signal(signal.SIGCONT)
            time.sleep(0.1)
            if any(pause.end - pause.start > 0.05 for pause in clock.pauses()):
                break
        else:
            pytest.fail("nothing was noted")
    finally:
        clock.stop()
