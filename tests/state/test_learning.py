"""Learning: what one process learned holds until it expires, and its neighbours know it too."""

from collections.abc import AsyncIterator

import pytest

from gateway.context.count.calibration import Calibration
from gateway.context.count.tokens import Anchor
from gateway.context.life.identity import chain
from gateway.context.life.lessons import ConversationBilled, CountCompared, PromptRead, SmallerFold, StatedWindow
from gateway.state import facts, forgetting
from gateway.state.facts import Ratio, StatedSize, Windows
from gateway.state.forgetting import Watch
from gateway.state.learning import FIRST_STATED_TTL_S, GUESSED_TTL_S, STATED_TTL_S, Learning
from gateway.state.store import open_store
from gateway.state.store.base import Store
from gateway.state.store.memory import MemoryStore
from gateway.state.tasks import Tasks

CHAT = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "Go on"},
]


ME = "keyhash.upstream.address"
M, N = ("up", "m", ME), ("up", "n", ME)


def stated(tokens: int, conversation: str, model: str = "m") -> StatedWindow:
    return StatedWindow(
        upstream="up", model=model, scope="scope", conversation=conversation, tokens=tokens, prompt=9000, counted=8800,
        sign="context_over",
    )  # fmt: skip


def smaller(model: str, conversation: str, tokens: int, billed: int | None) -> SmallerFold:
    """A conversation that is to be folded to a size."""
    sign = "accepted" if billed is None else "truncated"
    return SmallerFold(
        upstream="up", model=model, scope="scope", conversation=conversation, tokens=tokens, billed=billed, counted=9000, sign=sign
    )  # fmt: skip


class World:
    """A store, the time, and processes that share both."""

    def __init__(self) -> None:
        self.store: Store = open_store("memory://")
        self.now = 1_000_000.0
        self.ignored: list[str] = []
        self._tasks: list[Tasks] = []

    def process(self) -> Learning:
        self._tasks.append(Tasks())
        return Learning(self.store, self._tasks[-1], lambda: self.now, self.ignored.append)

    async def settle(self) -> None:
        """Let everything that is being written be written."""
        for tasks in self._tasks:
            await tasks.settled()

    async def close(self) -> None:
        for tasks in self._tasks:
            await tasks.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


async def test_a_stated_window_holds_for_its_conversation_at_once_and_for_its_caller_when_another_is_refused_too(
    world: World,
) -> None:
    """Case 102."""
    learning = world.process()
    learning.learn([stated(4096, "one")], ME)
    assert learning.stated_window(M) is None
    assert await learning.smaller_size(M, ["one", "next"]) == 4096
    assert await learning.smaller_size(M, ["other"]) is None

    learning.learn([stated(4096, "one")], ME)
    assert learning.stated_window(M) is None, "the same conversation is no second witness"
    learning.learn([stated(4096, "two")], ME)
    assert learning.stated_window(M) == 4096


async def test_a_stated_window_expires_soon_when_it_is_new_and_after_a_day_once_it_has_lasted(world: World) -> None:
    learning = world.process()
    learning.learn([stated(4096, "one"), stated(4096, "two")], ME)
    world.now += FIRST_STATED_TTL_S + 1
    assert learning.stated_window(M) is None

    learning.learn([stated(4096, "one"), stated(4096, "two"), stated(4096, "three")], ME)
    world.now += STATED_TTL_S - 1
    assert learning.stated_window(M) == 4096
    world.now += 2
    assert learning.stated_window(M) is None


async def test_what_a_clock_that_was_ahead_taught_ends_when_it_is_set_back(world: World) -> None:
    learning = world.process()
    world.now += 365 * 86400
    learning.learn([stated(4096, "one"), stated(4096, "two"), smaller("m", "three", 2000, None)], ME)
    world.now -= 365 * 86400

    assert learning.stated_window(M) is None
    assert await learning.smaller_size(M, ["one"]) is None
    assert await learning.smaller_size(M, ["three"]) is None
    assert [fact for fact in learning.facts() if fact.what in ("window", "conversation")] == []
    learning.learn([stated(4096, "one"), stated(4096, "two")], ME)
    assert learning.stated_window(M) == 4096, "what is learned afterwards holds"


async def test_a_larger_prompt_that_was_billed_ends_a_stated_window(world: World) -> None:
    learning = world.process()
    learning.learn([stated(4096, "one"), stated(4096, "two"), PromptRead("up", "m", 4097)], ME)

    assert learning.stated_window(M) is None
    assert await learning.smaller_size(M, ["one"]) is None


async def test_where_larger_prompts_are_billed_a_small_backend_among_several_decides_nothing(world: World) -> None:
    learning = world.process()
    for number in range(40):
        backend = PromptRead("up", "m", 20_000) if number % 4 else stated(8192, f"c{number}")
        learning.learn([backend], ME)
        assert learning.stated_window(M) is None
    assert await learning.smaller_size(M, ["c36"]) is None, "nor for a conversation of its own"

    learning.learn([stated(8192, f"d{number}") for number in range(facts.ENOUGH_REFUSALS_AGAINST_BILLS)], ME)
    assert learning.stated_window(M) == 8192, "but a server that was restarted smaller is noticed"


async def test_callers_teach_nothing_about_each_other(world: World) -> None:
    """Windows, ratios, bills that disprove, guesses: each belongs to the caller who got it, in memory and in the store."""
    here, there = world.process(), world.process()
    liars = [f"liar{number}.upstream.address" for number in range(5)]
    for number, liar in enumerate(liars):
        here.learn([stated(2048, f"{liar} {turn}") for turn in range(5)], liar)
        here.learn([CountCompared("up", "m", 2000 + turn, 9000 + number, stated=True) for turn in range(5)], liar)
        here.learn([smaller("m", "shared prefix", 1500, None)], liar)
    here.learn([stated(4096, "one"), stated(4096, "two")], ME)
    here.learn([PromptRead("up", "m", 900_000)], liars[0])
    await world.settle()
    await there.owners.fetch(M)

    for learning in (here, there):
        assert (learning.stated_window(M), learning.ratio(M)) == (4096, 1.0)
        assert await learning.smaller_size(M, ["shared prefix"]) is None
        assert await learning.smaller_size(M, ["one"]) == 4096


async def test_a_guess_holds_for_its_conversation_for_an_hour_or_until_more_is_billed(world: World) -> None:
    learning = world.process()
    for model in ("m", "n"):
        learning.learn([smaller(model, f"mine-{model}", 2048, 1500)], ME)
    assert learning.stated_window(M) is None
    assert await learning.smaller_size(M, ["mine-m"]) == 2048
    assert await learning.smaller_size(M, ["theirs"]) is None
    assert await learning.smaller_size(N, ["mine-m"]) is None

    learning.learn([PromptRead("up", "n", 2049)], ME)
    assert await learning.smaller_size(N, ["mine-n"]) is None
    world.now += GUESSED_TTL_S + 1
    assert await learning.smaller_size(M, ["mine-m"]) is None


async def test_a_guess_holds_however_far_its_conversation_has_grown(world: World) -> None:
    """Only the newest messages are looked up; the guess moves with them, here and in the store, and still ends after its hour."""
    learning = world.process()
    chain = [f"m{number}" for number in range(200)]
    learning.learn([smaller("m", "m9", 2048, 1500)], ME)
    for length in range(11, 200, 2):
        assert await learning.smaller_size(M, chain[:length]) == 2048, length
    await world.settle()
    assert await world.process().smaller_size(M, chain) == 2048
    world.now += GUESSED_TTL_S + 1
    assert await learning.smaller_size(M, chain) is None


async def test_a_guess_that_moved_is_forgotten_with_its_caller(world: World) -> None:
    learning = world.process()
    learning.learn([smaller("m", "m0", 2048, 1500)], ME)
    assert await learning.smaller_size(M, [f"m{number}" for number in range(20)]) == 2048
    await world.settle()
    await forgetting.forget_caller(world.store, "keyhash", world.now)
    assert "m19" not in await world.store.names("guess", 10)


async def test_a_guess_is_never_below_what_was_read_whole_before(world: World) -> None:
    """A refusal without numbers makes the next attempt very small. That it passed does not say that no more would."""
    learning = world.process()
    learning.learn([PromptRead("up", "m", 3664)], ME)
    learning.learn([smaller("m", "mine", 700, None)], ME)
    assert await learning.smaller_size(M, ["mine"]) == 3664
    learning.learn([PromptRead("up", "m", 3665)], ME)
    assert await learning.smaller_size(M, ["mine"]) is None, "a larger prompt ends it, as ever"


async def test_a_neighbour_knows_what_was_learned_here(world: World) -> None:
    here, there = world.process(), world.process()
    here.learn([stated(4096, "one"), stated(4096, "two")], ME)
    here.learn([CountCompared("up", "m", 2000, 5000, stated=True), CountCompared("up", "m", 1000, 2500)], ME)
    here.learn([ConversationBilled("scope", chain(CHAT, "scope", "m")[0], Anchor(1, 777, 7))], ME)
    await world.settle()
    await there.owners.fetch(M)

    assert there.stated_window(M) == 4096
    assert there.ratio(M) == here.ratio(M) > 2.4
    assert await there.conversations.anchor(chain(CHAT, "scope", "m")) == Anchor(1, 777, 7)
    assert await there.smaller_size(M, ["two"]) == 4096


async def test_the_newest_usage_of_a_conversation_is_found_and_nobody_elses(world: World) -> None:
    """Cases 72, 110."""
    learning = world.process()
    edited = [{"role": "user", "content": "Hullo"}, *CHAT[1:]]
    names = chain(CHAT, "mine", "m")
    learning.learn([ConversationBilled("mine", names[0], Anchor(1, 100, 7))], ME)
    learning.learn([ConversationBilled("mine", names[1], Anchor(2, 130, 7))], ME)

    assert await learning.conversations.anchor(chain(CHAT, "mine", "m")) == Anchor(2, 130, 7)
    assert await learning.conversations.anchor(chain(CHAT, "theirs", "m")) is None
    assert await learning.conversations.anchor(chain(CHAT, "mine", "other")) is None
    assert await learning.conversations.anchor(chain(edited, "mine", "m")) is None


GOOD_WINDOW = facts.pack_windows(
    Windows(
        (
            StatedSize(
                tokens=4096,
                prompt=9000,
                counted=8800,
                sign="context_over",
                conversation="c",
                refusals=2,
                since=1_000_000.0,
                until=1_000_500.0,
            ),
        ),
        0,
        0.0,
        0.0,
        0.0,
    )
)
GOOD_RATIO = facts.pack_ratio(Ratio(Calibration(1.5, ((1000, 1500),), True), 1_000_000.0, 1_000_500.0))
BAD = [
    ("window", b""), ("window", b"[]"), ("window", b"{}"), ("window", b"\xff"), ("window", b'{"v":99}'),
    ("window", b'{"v":1,"tokens":4096,"until":1e12}'),
    *[("window", GOOD_WINDOW.replace(b'"tokens":4096', b'"tokens":' + bad)) for bad in
      (b"-5", b"0", b"true", b'"4096"', b"[]", b"4096.5", b"10000000000000", b"null")],
    *[("window", GOOD_WINDOW.replace(b'"until":1000500.0', b'"until":' + bad)) for bad in (b"true", b"-1", b"1e300", b"[]")],
    *[("window", GOOD_WINDOW.replace(b'"refusals":2', b'"refusals":' + bad)) for bad in (b"true", b"-1", b"[]")],
    *[("ratio", GOOD_RATIO.replace(b'"ratio":1.5', b'"ratio":' + bad)) for bad in
      (b"0", b"-1", b"true", b"[]", b"1e9", b'"1.5"', b"0.001", b"null")],
    *[("ratio", GOOD_RATIO.replace(b"[1000,1500]", bad)) for bad in (b"[0,1]", b"[1000]", b"1.5", b"[true,true]", b"[[],[]]")],
]  # fmt: skip


async def test_what_is_stored_is_read_again(world: World) -> None:
    await world.store.put("window", f"up\nm\n{ME}", GOOD_WINDOW, ttl_s=60)
    await world.store.put("ratio", f"up\nm\n{ME}", GOOD_RATIO, ttl_s=60)
    learning = world.process()
    await learning.owners.fetch(M)

    assert (learning.stated_window(M), learning.ratio(M), world.ignored) == (4096, 1.5, [])


@pytest.mark.parametrize(("kind", "value"), BAD)
async def test_a_value_that_cannot_be_ours_is_ignored_and_counted(world: World, kind: str, value: bytes) -> None:
    assert value not in (GOOD_WINDOW, GOOD_RATIO)
    await world.store.put(kind, f"up\nm\n{ME}", value, ttl_s=60)
    learning = world.process()
    await learning.owners.fetch(M)

    assert (learning.stated_window(M), learning.ratio(M), world.ignored) == (None, 1.0, [kind])


async def test_operators_see_every_fact_with_its_kind_its_evidence_and_its_time(world: World) -> None:
    learning = world.process()
    learning.learn([stated(4096, "one"), stated(8192, "one"), stated(8192, "two")], ME)
    learning.learn([smaller("n", "mine", 2048, 1500)], ME)
    learning.learn([PromptRead("up", "o", 700), CountCompared("up", "o", 2000, 2900)], ME)
    learning.lists.store("up", {"p": 8192}, {"p": 8192}, {})

    shown = {(fact.kind, fact.what, fact.model, fact.value, fact.holds) for fact in learning.facts()}
    assert shown == {
        ("stated", "window", "m", 4096, "nobody yet"),
        ("stated", "window", "m", 8192, "its caller"),
        ("stated", "conversation", "m", 8192, "its conversation"),
        ("guessed", "conversation", "n", 2048, "its conversation"),
        ("observed", "largest prompt", "o", 700, "nobody yet"),
        ("observed", "ratio", "o", learning.ratio(("up", "o", ME)), "its caller"),
        ("stated", "told window", "p", 8192, "everyone"),
    }
    assert all(fact.evidence and fact.since <= world.now < fact.until for fact in learning.facts())


async def test_what_is_forgotten_is_not_believed_when_a_process_that_has_not_heard_writes_it_back(world: World) -> None:
    here, there = world.process(), world.process()
    here.learn([stated(4096, "one")], ME)
    await world.settle()
    world.now += 10
    await forgetting.forget_learned(world.store, world.now)
    world.now += 1
    here.learn([stated(4096, "two")], ME)  # it has not looked yet, and still knows the first
    await world.settle()

    await Watch(world.store, Tasks(), there.forget).check()
    await there.owners.fetch(M)
    assert there.stated_window(M) is None
    here.forget(forgetting.read(await world.store.get("forgotten", "all"), world.now))
    here.learn([stated(4096, "three"), stated(4096, "four")], ME)
    assert here.stated_window(M) == 4096, "what is learned afterwards is believed"


async def test_one_model_is_forgotten_and_the_others_stay(world: World) -> None:
    here = world.process()
    watch = Watch(world.store, Tasks(), here.forget)
    await watch.check()
    for model in ("m", "n"):
        here.learn([stated(4096, who, model) for who in ("one", "two")], ME)
    await world.settle()
    world.now += 1
    assert await forgetting.forget_learned(world.store, world.now, "up", "m") == 1
    await watch.check()
    for model in ("m", "n"):
        await here.owners.fetch(("up", model, ME))

    assert (here.stated_window(M), here.stated_window(N)) == (None, 4096)


async def test_forgetting_that_the_store_does_not_keep_is_an_error(world: World) -> None:
    class ReadOnly(MemoryStore):
        async def put(self, *_: object, **__: object) -> None:
            """What a guarded read-only store does."""

    with pytest.raises(forgetting.NotForgotten):
        await forgetting.forget_everything(ReadOnly(), world.now)
