"""Conversations over the window, through the running gateway into a strict upstream: served, valid, and nothing that matters lost.

The numbers in the names are those of the catalogue of cases: input and required outcome.
"""

import asyncio
import itertools

import orjson
import pytest

from gateway.standin import ALL_RULES, RULES, StandIn, violations
from gateway.standin.weight import prompt_tokens
from gateway.wire.message import text_of
from tests import fakes
from tests.e2e.stories import broken, common
from tests.fakes import assistant, call, result, system, user, words

WINDOW = 4000
RESERVE = 200
PNG = "data:image/png;base64," + "iVBORw0KGgo" * 2000


def config(window=WINDOW, **model):
    return {"models": {"m": {"context_window": window, "tokenizer": "o200k", **model}}}


def image(*texts):
    """A user message with an image and texts."""
    parts = [{"type": "text", "text": text} for text in texts]
    return {"role": "user", "content": [*parts, {"type": "image_url", "image_url": {"url": PNG}}]}


@pytest.fixture
async def fold(gateway):
    """Send a conversation through a small window; answer what the client got and what the upstream saw."""

    async def send(messages, window=WINDOW, extra=None, rules=RULES):
        async with StandIn(window=window, rules=rules) as standin:
            running = await gateway(standin, config(window))
            answer = await running.chat({"model": "m", "messages": messages, "max_tokens": RESERVE, **(extra or {})})
            return answer, standin.chats

    return send


def said(messages):
    """All that a model would read of messages: texts and tool calls."""
    calls = [orjson.dumps(message.get("tool_calls")).decode() for message in messages]
    return "\n".join([*(text_of(message) for message in messages), *calls])


PARALLEL = [
    system("s"),
    *itertools.chain.from_iterable(
        [
            user(f"question {n}"),
            assistant(None, call("f", {"n": n}, f"a{n}"), call("g", {"n": n}, f"b{n}")),
            result(f"b{n}", words(200, n)),
            result(f"a{n}", words(200, n + 99)),
            assistant(f"answer {n}"),
        ]
        for n in range(15)
    ),
    user("and now?"),
]
REUSED = [
    *itertools.chain.from_iterable(
        [
            user(f"q{n}"),
            assistant(None, call("f", {"n": n}, "call_0")),
            result("call_0", words(300, n)),
            assistant(f"a{n}"),
        ]
        for n in range(20)
    ),
    user("and now?"),
]
LEGACY = [
    *itertools.chain.from_iterable(
        [
            user(f"q{n}"),
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": words(300, n)},
            assistant(f"a{n}"),
        ]
        for n in range(20)
    ),
    user("and now?"),
]
CHAINED = [
    system("s"),
    user(words(500)),
    assistant(words(900)),
    user("find it"),
    assistant("looking", call("f", {}, "c1")),
    result("c1", words(900, 1)),
    assistant(None, call("f", {}, "c2")),
    result("c2", words(900, 2)),
    assistant("found"),
    user("thanks, and now " + words(800, 3)),
    assistant(words(700, 4)),
    user("go on"),
]

SERVED = [
    ("3 38 a plain conversation", fakes.chat(60)),
    ("4 a turn of two chained tool rounds", CHAINED),
    ("5 an assistant and a tool pair before the first user", [assistant(None, call("f", {}, "c")), result("c", words(900)), *fakes.chat(50)[1:]]),
    ("6 no user at all", [system("s"), *itertools.chain.from_iterable([assistant(None, call("f", {"n": n}, f"c{n}")), result(f"c{n}", words(400, n))] for n in range(12))]),
    ("7 10 parallel calls answered in another order", PARALLEL),
    ("9 a single plain turn", [system("s"), user(words(3000)), assistant(words(2500)), assistant(words(100)), user("so?")]),
    ("11 one id in every turn", REUSED),
    ("12 a client's own duplicate result", [*REUSED[:3], REUSED[2], *REUSED[3:]]),
    ("13 a client's own unanswered call, far back", [user("a"), assistant(None, call("f", {}, "x"), call("g", {}, "y")), result("x", "1"), *fakes.chat(60)[1:]]),
    ("14 calls without results last", [*fakes.chat(60), assistant(None, call("f", {}, "z"))]),
    ("15 a text and then a call, in the running turn", [*fakes.chat(60), assistant("let me see"), assistant(None, call("f", {}, "z")), result("z", "1")]),
    ("16 empty ids", [*itertools.chain.from_iterable([user(f"q{n}"), assistant(None, call("f", {}, "")), result("", words(300, n))] for n in range(20)), user("so?")]),
    ("17 legacy functions", LEGACY),
    ("18 111 pinned messages in the middle", [*fakes.chat(30)[:-1], {"role": "developer", "content": "Answer in French."}, *fakes.chat(30)[1:-1], system("Be brief."), user("so?")]),
    ("20 a user message directly after results", [*fakes.tool_loop(14), user("stop, what did you find?"), assistant("this"), user("go on")]),
    ("21 a prefill last", [*fakes.chat(60), assistant("The first question was")]),
    ("39 tool results of 60 KB", fakes.tool_turns(6, 12_000)),
    ("44 four turns of plain text", [system("s"), *itertools.chain.from_iterable([user(words(1500, n)), assistant(words(1500, n + 50))] for n in range(4)), user("so?")]),
    ("50 a running turn of 40 rounds", fakes.tool_loop(40, 300)),
    ("no system message", fakes.chat(60)[1:]),
    ("a large window attached late", fakes.chat(200)),
]  # fmt: skip


@pytest.mark.parametrize("messages", [row[1] for row in SERVED], ids=[row[0] for row in SERVED])
async def test_a_conversation_over_the_window_is_served_valid(fold, messages):
    own = {violation.rule for violation in violations(messages)}
    answer, chats = await fold(messages, rules=RULES.keys() - own)
    assert prompt_tokens({"messages": messages}) > WINDOW
    assert answer.status == 200
    assert len(chats) == 1, "the count is exact: the upstream need not refuse"
    assert broken(messages, chats[0].messages) == []
    assert chats[0].prompt_tokens <= WINDOW - RESERVE
    assert chats[0].json["max_tokens"] == RESERVE


async def test_the_strictest_alternation_is_kept_where_it_was_kept(fold):
    messages = [system("s"), *itertools.chain.from_iterable([user(words(80, n)), assistant(words(80, n + 100))] for n in range(60)), user("so?")]  # fmt: skip
    answer, _ = await fold(messages, rules=ALL_RULES)
    assert answer.status == 200


async def test_19_messages_of_one_turn_are_never_separated(fold):
    messages = [*fakes.chat(60), assistant("ok"), user("Look at this:"), image("a caption")]
    answer, chats = await fold(messages)
    assert answer.status == 200
    assert "Look at this:" in text_of(chats[0].messages[-2])
    assert chats[0].messages[-1] == messages[-1]


async def test_22_unknown_fields_of_kept_messages_are_kept(fold):
    marked = {**user("keep me"), "name": "bob", "x_trace": {"id": [1, None]}}
    messages = [
        *fakes.chat(60),
        assistant("ok"),
        marked,
        {**assistant("yes"), "refusal": None, "x_n": 1.5},
        user("so?"),
    ]
    _, chats = await fold(messages)
    assert {key: chats[0].messages[-3][key] for key in ("name", "x_trace")} == {
        "name": "bob",
        "x_trace": {"id": [1, None]},
    }
    assert chats[0].messages[-2] == messages[-2]


async def test_40_an_error_at_the_end_of_a_long_log_survives(fold):
    log = "\n".join(f"step {n} ok {words(8, n)}" for n in range(8000)) + "\nFATAL: disk /dev/sdb7 is full (errno 28)"
    messages = [system("s"), user("why did it fail?"), assistant(None, call("log", {}, "c")), result("c", log)]
    answer, chats = await fold(messages)
    assert answer.status == 200
    assert "FATAL: disk /dev/sdb7 is full (errno 28)" in said(chats[0].messages)


async def test_41_cuts_never_split_a_character(fold):
    text = "𝄞e\u0301\U0001f469\u200d\U0001f680漢字" * 8000
    answer, chats = await fold([system("s"), user(text + " What is it?")])
    assert answer.status == 200
    assert chats[0].body.decode("utf-8")
    assert text_of(chats[0].messages[-1]).endswith(" What is it?")


async def test_42_a_cut_result_keeps_its_bytes_as_the_conversation_grows(fold):
    grown = fakes.tool_loop(30, 300)
    first = (await fold(grown))[1][0].messages
    again = (await fold(grown))[1][0].messages
    assert first == again


async def test_43_cut_arguments_are_json_with_the_same_keys(fold):
    written = {"path": "/srv/app/main.py", "content": words(6000), "mode": "w"}
    messages = [system("s"), user("write it"), assistant(None, call("write", written, "c")), result("c", "written")]
    answer, chats = await fold(messages)
    assert answer.status == 200
    calls = [made for message in chats[0].messages for made in message.get("tool_calls") or []]
    assert orjson.loads(calls[-1]["function"]["arguments"]).keys() == written.keys()


async def test_45_46_115_the_images_of_the_current_message_survive(fold):
    for last in (image("what is it?"), image()):
        answer, chats = await fold([*fakes.chat(60), assistant("ok"), last])
        assert answer.status == 200
        parts = chats[0].messages[-1]["content"]
        assert last["content"][-1] in parts
        assert all(part in parts for part in last["content"])


async def test_47_old_images_go_first_and_say_so(fold):
    old = itertools.chain.from_iterable([image(f"picture {n}"), assistant(f"a ship, number {n}")] for n in range(8))
    messages = [system("s"), *old, image("and this one?")]
    answer, chats = await fold(messages)
    assert answer.status == 200
    kept = orjson.dumps(chats[0].messages).count(b"data:image/png")
    assert 1 <= kept < 9
    assert messages[-1]["content"][-1] in chats[0].messages[-1]["content"]
    assert "image" in said(chats[0].messages).lower()


async def test_48_121_one_user_message_of_three_windows_keeps_its_question(fold):
    question = "Given all that, which harbour does the ship leave from?"
    answer, chats = await fold([system("s"), user(f"Read this: {words(12_000)}\n\n{question}")])
    assert answer.status == 200
    text = text_of(chats[0].messages[-1])
    assert text.endswith(question)
    assert text.startswith("Read this:")


async def test_49_121_one_tool_result_of_five_windows_keeps_the_call(fold):
    made = call("search", {"query": "harbour", "limit": 10}, "call_9")
    messages = [system("s"), user("which harbour?"), assistant(None, made), result("call_9", words(20_000))]
    answer, chats = await fold(messages)
    assert answer.status == 200
    assert chats[0].messages[-2]["tool_calls"] == [made]
    assert chats[0].messages[-1]["tool_call_id"] == "call_9"
    assert len(chats[0].messages[-1]["content"]) > 1000


async def test_50_in_a_long_running_turn_every_call_stays_visible(fold):
    messages = fakes.tool_loop(25, 400)
    answer, chats = await fold(messages)
    assert answer.status == 200
    text = said(chats[0].messages)
    assert all(f"port_{n}" in text for n in range(25))
    assert chats[0].messages[-1] == messages[-1]


async def test_51_a_note_stands_exactly_where_something_was_dropped(fold):
    _, chats = await fold(fakes.chat(60))
    assert chats[0].messages[0]["content"] == "You are helpful."
    assert chats[0].messages[1]["content"].startswith("[Earlier messages")
    _, chats = await fold(fakes.chat(3))
    assert chats[0].messages == fakes.chat(3)


REFUSED = [
    ("52 the system prompt alone", [system(words(5000)), user("hi")], {}),
    ("53 system and last turn", [system(words(2500)), image(), image("x"), image("y")], {}),
    ("54 the tools alone", [user("hi")], {"tools": [{"type": "function", "function": {"name": f"f{n}", "description": words(200, n), "parameters": {}}} for n in range(25)]}),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "extra"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_52_53_54_what_cannot_fit_is_refused_with_numbers_and_without_a_call(fold, messages, extra, stream):
    answer, chats = await fold(messages, extra={**extra, "stream": stream})
    assert answer.status == 400
    assert answer.headers["content-type"].startswith("application/json")
    error = answer.json["error"]
    assert (error["code"], error["type"]) == ("context_length_exceeded", "invalid_request_error")
    assert f"maximum context length is {WINDOW} tokens" in error["message"]
    assert answer.action == "error"
    assert chats == []


async def test_25_an_output_as_large_as_the_window_does_not_make_it_negative(fold):
    answer, chats = await fold([system("s"), user("hi")], extra={"max_tokens": 50_000})
    assert answer.status == 200
    assert chats[0].json["max_tokens"] < WINDOW


async def test_28_the_same_history_is_folded_only_for_the_smaller_window(gateway):
    async with StandIn(window=lambda model: {"small": 4000, "large": 100_000}[model]) as standin:
        models = {"small": {"context_window": 4000}, "large": {"context_window": 100_000}}
        running = await gateway(standin, {"models": models})
        bodies = {name: {"model": name, "messages": fakes.chat(60), "max_tokens": 100} for name in models}
        actions = {name: (await running.chat(body)).action for name, body in bodies.items()}
        assert actions == {"small": "fold", "large": "none"}


async def test_105_the_numbers_told_agree_with_what_was_sent(fold):
    messages = fakes.tool_turns(40)
    answer, chats = await fold(messages)
    before, after = answer.tokens
    assert answer.headers["x-turnfold-window"] == str(WINDOW)
    assert before == pytest.approx(prompt_tokens({"messages": messages}), rel=0.02, abs=10)
    assert after == pytest.approx(chats[0].prompt_tokens, rel=0.02, abs=10)
    assert int(answer.headers["x-turnfold-turns-folded"]) > 0


async def test_112_the_users_own_rule_survives_many_folds(gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        history = [system("s"), user("Please plan the releases. Never deploy on Fridays."), assistant("Noted.")]
        for turn in range(60):
            history += [user(f"Plan week {turn}: {words(120, turn)}")]
            answer = await running.chat({"model": "m", "messages": history, "max_tokens": RESERVE})
            assert answer.status == 200
            assert "ever deploy on Fridays" in said(standin.chats[-1].messages)
            history += [assistant(f"Week {turn}: {words(120, turn + 500)}")]


OFFERS = "\n".join(f"{n}. {words(12, n)}" for n in range(60))
ANSWERED = [
    # what stood before the reply: talk, or the steps of an agent
    [
        user("hello"),
        *itertools.chain.from_iterable([[assistant(words(120, n)), user(words(40, n))] for n in range(20)]),
    ],
    [
        user("Look for a place to stay."),
        *itertools.chain.from_iterable(
            [[assistant(None, call("f", {"n": n}, f"c{n}")), result(f"c{n}", words(150, n))] for n in range(20)]
        ),
    ],
]


@pytest.mark.parametrize("before", ANSWERED, ids=["chat", "agent"])
async def test_the_reply_that_a_message_answers_is_still_there(fold, before):
    """*The second one* says nothing without the offers: they are kept whole, although they are longer than the messages that a cut
    leaves."""
    reply = f"{OFFERS}\nThe second one has a balcony. Which one may it be?"
    answer, chats = await fold([system("s"), *before, assistant(reply), user("The second one, please.")])
    assert answer.headers["x-turnfold-action"] == "fold"
    assert chats[-1].messages[-2:] == [assistant(reply), user("The second one, please.")]


async def test_a_large_reply_and_a_large_question_leave_room_for_what_the_user_wants(fold):
    """Both together would fill the room, and nothing would say what was said before."""
    wishes = [
        "Always call me Captain Birdwhistle, please.",
        "Never use semicolons in your letters to me.",
        "Please give all prices in crowns from now on.",
        "My daughter is allergic to hazelnuts, so no nuts in any recipe.",
    ]
    talk = [[user(wish), assistant("Noted.")] for wish in wishes] + [
        [user(words(40, n)), assistant(words(120, n))] for n in range(20)
    ]
    question = user(words(2400, 1))
    asked = [*itertools.chain.from_iterable(talk), user("More."), assistant(words(1700, 2)), question]
    _, chats = await fold(asked)
    sent = said(chats[-1].messages)
    assert [wish for wish in wishes if wish not in sent] == []
    assert text_of(question) in sent


async def test_119_thirty_growing_turns_keep_their_prefix(gateway):
    """With recall off: at most 3 breaks, and nine tenths of what was sent last stand in front of what is sent next."""
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config(recall={"share": 0.0}))
        history = [system("You are helpful.")]
        for turn in range(30):
            history += [user(f"Question {turn}: {words(100, turn)}")]
            assert (await running.chat({"model": "m", "messages": history, "max_tokens": RESERVE})).status == 200
            history += [assistant(f"Answer {turn}: {words(100, turn + 500)}")]
        assert prompt_tokens({"messages": history}) > 1.5 * WINDOW
        sent = [orjson.dumps(seen.messages)[:-1] for seen in standin.chats]
    assert len(sent) == 30
    pairs = list(itertools.pairwise(sent))
    breaks = [number for number, (before, after) in enumerate(pairs, 1) if not after.startswith(before)]
    assert 1 <= len(breaks) <= 3
    kept = [common(before, after) / len(before) for before, after in pairs]
    assert sum(kept) / len(kept) >= 0.9


async def test_109_twelve_identical_requests_at_once_get_the_same_bytes(gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        body = {"model": "m", "messages": fakes.tool_turns(30), "max_tokens": RESERVE}
        answers = await asyncio.gather(*(running.chat(body) for _ in range(12)))
        assert {answer.status for answer in answers} == {200}
        assert len({seen.body for seen in standin.chats}) == 1


async def test_on_overflow_a_model_with_a_larger_window_answers_what_cannot_be_folded(gateway):
    async with StandIn(window=lambda model: {"m": WINDOW, "large": 100_000}[model]) as standin:
        settings = {"models": {**config(on_overflow=["large"])["models"], "large": {"context_window": 100_000}}}
        running = await gateway(standin, settings)
        body = {"model": "m", "messages": [system(words(5000)), user("hi")], "max_tokens": RESERVE}
        assert (await running.chat(body)).status == 200
        assert [seen.json for seen in standin.chats] == [{**body, "model": "large"}]


@pytest.mark.parametrize("extra", [{}, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}])
async def test_members_other_than_messages_stay_as_they_were(fold, extra):
    body = {"temperature": 1.5, "seed": 7, "metadata": {"a": None}, "stream_options": {"include_usage": True}, **extra}
    _, chats = await fold(fakes.chat(60), extra={**body, "stream": True})
    assert {key: chats[0].json[key] for key in body} == body
