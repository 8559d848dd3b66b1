"""Where a cut may stand, through the running gateway into a strict upstream. The numbers are those of docs/cases.md."""

import orjson
import pytest

from gateway.standin import RULES, StandIn
from gateway.wire.message import text_of
from providers.overflow.signs import read_refusal
from providers.record import Overflow
from tests import fakes
from tests.e2e.stories import broken
from tests.fakes import assistant, call, result, system, user, words

WINDOW = 2000


@pytest.fixture
async def sent(gateway):
    """Send a conversation through a small window; return the messages that the upstream accepted."""

    async def send(messages, window=WINDOW, whole=True):
        async with StandIn(window=window, rules=RULES) as standin:
            running = await gateway(standin, {"models": {"m": {"context_window": window, "tokenizer": "o200k"}}})
            answer = await running.chat({"model": "m", "messages": messages, "max_tokens": 200})
            assert (answer.status, answer.action) == (200, "fold"), answer.body
            forwarded = standin.chats[-1].messages
            assert broken(messages, forwarded, last_user_whole=whole) == []
            return forwarded

    return send


def chain(number: int, size: int):
    """A question, two calls at once, both results, an answer."""
    return [
        user(f"question {number}"),
        assistant(None, call("f", {"n": number}, f"a{number}"), call("g", {"n": number}, f"b{number}")),
        result(f"a{number}", words(size, number)),
        result(f"b{number}", words(size, number + 50)),
        assistant(f"answer {number}"),
    ]


@pytest.mark.parametrize("size", range(60, 400, 40))
async def test_7_13_a_cut_never_stands_between_parallel_calls_and_their_results(sent, size):
    messages = [message for number in range(8) for message in chain(number, size)]
    forwarded = await sent([*messages, user(words(600, 7)), assistant("noted"), user("and now?")])
    calls = {each["id"] for message in forwarded for each in message.get("tool_calls") or ()}
    assert calls == {message["tool_call_id"] for message in forwarded if message["role"] == "tool"}


async def test_8_where_the_first_turn_is_too_long_the_cut_stands_behind_it(sent):
    forwarded = await sent(
        [user("begin " + words(3000)), assistant("done"), user("second"), assistant("yes"), user("third")]
    )
    assert [text_of(message) for message in forwarded][-3:] == ["second", "yes", "third"]


async def test_9_a_single_plain_turn_is_shrunk_inside(sent):
    [*_, last] = await sent([user("Summarise this: " + words(4000) + " What is the total of line 7?")], whole=False)
    assert last["role"] == "user"
    assert text_of(last).startswith("Summarise this:")
    assert text_of(last).endswith("What is the total of line 7?")


async def test_16_a_call_with_an_empty_id_of_the_clients_own_is_forwarded_as_it_came(gateway):
    body = {"model": "m", "messages": [user("q"), assistant(None, call("f", {}, "")), result("", "r"), user("next")]}
    async with StandIn(rules=()) as standin:
        answer = await (await gateway(standin)).chat(body)
        assert answer.status == 200
        assert standin.chats[0].body == orjson.dumps(body)


async def test_16_a_call_with_an_empty_id_does_not_break_a_fold(gateway):
    odd = [user("q"), assistant(None, call("f", {}, "")), result("", words(300)), assistant("ok")]
    async with StandIn(window=WINDOW, rules=()) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}})
        answer = await running.chat({"model": "m", "messages": [*odd, *fakes.chat(40)], "max_tokens": 200})
        assert (answer.status, answer.action) == (200, "fold")


async def test_20_a_hint_after_tool_results_does_not_hide_the_call(sent):
    early = [message for number in range(6) for message in chain(number, 150)][:-1]
    hint = [
        user("Hint: call the tool again if the result is empty."),
        assistant("Thanks."),
        user("Which calls were made?"),
    ]
    forwarded = await sent([*early, *hint])
    told = orjson.dumps(forwarded).decode()
    assert all(name in told for name in ("f", "g"))
    assert text_of(forwarded[-1]).startswith("Which calls were made?")


async def test_26_without_max_tokens_the_default_reserve_alone_is_kept_free(gateway, standin):
    running = await gateway(standin, {"models": {"m": {"context_window": 1_000_000}}})
    ask = {"model": "m", "messages": [user("hi")]}
    async with running.session.post(f"{running.admin_url}/api/explain", json=ask) as response:
        assert orjson.loads(await response.read())["reserve"] == 4096


async def test_111_developer_and_late_system_messages_stay_in_their_place(sent):
    middle = system("From now on answer in French.")
    messages = [{"role": "developer", "content": "Be brief."}, *fakes.chat(20), middle, *fakes.chat(20)]
    pinned = [message for message in await sent(messages) if message["role"] in ("system", "developer")]
    assert pinned == [message for message in messages if message["role"] in ("system", "developer")]


STATED = [
    # case, what the upstream says, limit, prompt
    (81, "This model's maximum context length is 4097 tokens. However, you requested 4927 tokens (3730 in the messages, 730 in the functions, and 467 in the completion).", 4097, 4460),
    (85, "This model's maximum context length is 131072 tokens. However, your messages resulted in 142907 tokens.", 131_072, 142_907),
    (85, "Requested 429001 tokens, which is more than the context window of 200429 tokens.", 200_429, 429_001),
]  # fmt: skip


@pytest.mark.parametrize(("case", "text", "limit", "prompt"), STATED)
def test_81_85_numbers_are_read_as_sizes_and_never_as_a_status(case, text, limit, prompt):
    body = orjson.dumps({"error": {"message": text, "type": "invalid_request_error", "code": None}})
    found = read_refusal(400, body)
    assert isinstance(found, Overflow)
    assert (found.limit, found.prompt) == (limit, prompt)
