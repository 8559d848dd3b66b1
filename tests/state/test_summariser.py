"""Summaries are made once, in the background, for whoever may have them; whatever goes wrong costs a summary only."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.foresight import messages_before_cut, next_summary
from gateway.context.cut.policy import Policy
from gateway.context.cut.source import Source
from gateway.context.cut.summary import Summary
from gateway.context.cut.turns import split
from gateway.context.life import identity
from gateway.state.store import Store, open_store
from gateway.state.store.memory import MemoryStore
from gateway.state.summariser import CACHED_S, FAILED_TTL_S, LARGEST_SUMMARY, Summariser, SummaryJob
from gateway.state.tasks import Tasks
from gateway.wire.message import text_of

Message = dict[str, Any]

TEXT = "Goal: move the shop.\nFacts: the host is db1.example.com, the order A-4711 was copied."


def count(text: str) -> int:
    return -(-len(text) // 4)


def answer(text: str) -> bytes:
    return orjson.dumps({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})


class Model:
    """A summariser's model: it answers from a script, the last line again and again, and remembers what it was asked."""

    def __init__(self, *script: bytes | Exception | None) -> None:
        self.script = list(script) or [answer(TEXT)]
        self.asked: list[Sequence[Message]] = []

    async def __call__(self, model: str, messages: Sequence[Message]) -> bytes | None:
        self.asked.append(messages)
        said = self.script[min(len(self.asked), len(self.script)) - 1]
        await asyncio.sleep(0)
        if isinstance(said, Exception):
            raise said
        return said

    def questions(self) -> list[str]:
        return [text_of(messages[-1]) for messages in self.asked]


def talk(turns: int, words: str = "please move the shop to db1.example.com, order A-4711") -> list[Message]:
    return [{"role": role, "content": f"{words} ({turn})"} for turn in range(turns) for role in ("user", "assistant")]


def session(name: object) -> list[Message]:
    """A conversation of its own that fills its room far enough for a summary."""
    return talk(11, f"please move the shop of session {name} to db1.example.com, order A-4711")


def source(messages: Sequence[Message], room: int = 450) -> Source:
    """A conversation as it is folded; twenty-some messages of `talk` fill the room."""
    counter = Counter(lambda message: 4 + count(text_of(message)), count)
    return Source(messages, split(messages), Budget(room, 0, 0, 0), counter, Policy())


def end_of(messages: Sequence[Message], covered: int = 0, room: int = 450) -> int:
    """How many messages the next summary will cover."""
    goal = next_summary(source(messages, room), covered)
    assert goal is not None
    return goal.covers


def job(
    messages: Sequence[Message] | None = None, scope: str = "alice.openai", room: int = 450, **more: Any
) -> SummaryJob:
    given = {"used": 0.9, "at": 0.7, "model": "small", "window": 8000, "count": count, **more}
    return SummaryJob(scope, source(talk(11) if messages is None else messages, room), **given)


COVERS = end_of(talk(11))
"""What the first summary of `talk` covers."""


def chain(messages: Sequence[Message], scope: str = "alice.openai") -> list[str]:
    return identity.chain(messages, scope)


async def settled() -> None:
    """Wait until all background work is done."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.gather(*others)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def summariser(store: MemoryStore) -> Summariser:
    return Summariser(store, Tasks())


async def test_a_summary_is_made_in_the_background_and_found_by_whoever_goes_on(summariser: Summariser) -> None:
    model = Model()
    assert summariser.make_if_needed(job(), model)
    assert model.asked == [], "nobody waits for it"
    await settled()
    assert await summariser.find(chain(talk(11))) == Summary(TEXT, COVERS)
    assert await summariser.find(chain(talk(40))) == Summary(TEXT, COVERS)


async def test_another_replica_finds_it_in_the_store_and_so_does_a_restarted_one(store: MemoryStore) -> None:
    Summariser(store, Tasks()).make_if_needed(job(), Model())
    await settled()
    assert await Summariser(store, Tasks()).find(chain(talk(11))) == Summary(TEXT, COVERS)


@pytest.mark.parametrize("more", [{"used": 0.69}, {"model": ""}])
async def test_where_there_is_room_or_no_summariser_nothing_is_looked_at(
    summariser: Summariser, more: dict[str, Any]
) -> None:
    assert not summariser.make_if_needed(job(**more), Model())


async def test_before_the_cut_reaches_it_a_summary_is_not_used(summariser: Summariser) -> None:
    summariser.make_if_needed(job(), Model())
    await settled()
    assert await summariser.find(chain(talk(11))[: COVERS - 1]) is None
    assert await summariser.find([]) is None


async def test_an_edited_message_leaves_summaries_of_it_unused(summariser: Summariser) -> None:
    summariser.make_if_needed(job(), Model())
    await settled()
    for place in (0, 3, COVERS - 1):
        edited = talk(11)
        edited[place] = {**edited[place], "content": "edited"}
        assert await summariser.find(chain(edited)) is None


async def test_a_client_that_compacted_by_itself_is_new(summariser: Summariser) -> None:
    summariser.make_if_needed(job(), Model())
    await settled()
    assert await summariser.find(chain(talk(40)[COVERS:])) is None


async def test_two_futures_of_one_past_share_its_summary_and_nothing_else(summariser: Summariser) -> None:
    left, right = [*talk(11), *talk(16, "left")], [*talk(11), *talk(16, "right")]
    summariser.make_if_needed(job(), Model())
    await settled()
    summariser.make_if_needed(job(left), Model(answer(TEXT + " Left.")))
    await settled()
    assert await summariser.find(chain(left)) == Summary(TEXT + " Left.", end_of(left, COVERS))
    assert await summariser.find(chain(right)) == Summary(TEXT, COVERS)


async def test_two_callers_with_the_same_words_share_nothing(summariser: Summariser) -> None:
    summariser.make_if_needed(job(), Model())
    await settled()
    assert await summariser.find(chain(talk(11), "bob.openai")) is None
    assert await summariser.find(chain(talk(11), "alice.local")) is None


async def test_two_sessions_with_one_system_prompt_do_not_disturb_each_other(summariser: Summariser) -> None:
    system = {"role": "system", "content": "You are a shop."}
    one, other = [system, *talk(10, "shoes")], [system, *talk(10, "hats")]
    summariser.make_if_needed(job(one, room=150), Model(answer(TEXT + " Shoes.")))
    summariser.make_if_needed(job(other, room=150), Model(answer(TEXT + " Hats.")))
    await settled()
    assert await summariser.find(chain(one)) == Summary(TEXT + " Shoes.", end_of(one, room=150))
    assert await summariser.find(chain(other)) == Summary(TEXT + " Hats.", end_of(other, room=150))


async def test_the_next_summary_is_made_from_the_last_one_and_what_came_since(summariser: Summariser) -> None:
    model = Model(answer(TEXT), answer(TEXT + " More."))
    summariser.make_if_needed(job(), model)
    await settled()
    summariser.make_if_needed(job(talk(24)), model)
    await settled()
    assert TEXT in model.questions()[1]
    assert f"A-4711 ({COVERS // 2 - 1})" not in model.questions()[1], "what is covered is not told again"
    assert f"A-4711 ({COVERS // 2})" in model.questions()[1]
    assert await summariser.find(chain(talk(24))) == Summary(TEXT + " More.", end_of(talk(24), COVERS))


async def test_facts_of_the_first_summary_survive_a_second_that_forgot_them(summariser: Summariser) -> None:
    rule = {"role": "user", "content": "Never deploy on Fridays. The licence is KEY-55021."}
    messages = [rule, *talk(26)[1:]]
    kept = answer(TEXT + " Licence KEY-55021. Rules: never deploy on Fridays.")
    summariser.make_if_needed(job(messages[:21], room=600), Model(kept))
    await settled()
    summariser.make_if_needed(job(messages, room=600), Model(answer(TEXT)))
    await settled()
    found = await summariser.find(chain(messages))
    assert found is not None
    assert found.covers > 20
    assert "Never deploy on Fridays." in found.text
    assert "KEY-55021" in found.text


@pytest.mark.parametrize("stores", ["memory", "sqlite"])
async def test_twelve_requests_on_three_replicas_make_one_summary(stores: str, tmp_path: Path) -> None:
    shared = MemoryStore()

    def opened() -> Store:
        return shared if stores == "memory" else open_store(f"sqlite:///{tmp_path}/t.db", timeout_s=30)

    replicas = [(store, Summariser(store, Tasks())) for store in (opened(), opened(), opened())]
    model = Model()
    for number in range(12):
        replicas[number % 3][1].make_if_needed(job(), model)
    await settled()
    for number in range(12):
        replicas[number % 3][1].make_if_needed(job(), model)
    await settled()
    assert len(model.asked) == 1
    for _, summariser in replicas:
        assert await summariser.find(chain(talk(11))) == Summary(TEXT, COVERS)
    for store, _ in replicas:
        await store.close()


async def test_a_longer_copy_of_the_conversation_wants_no_second_summary_of_the_same_part(
    summariser: Summariser,
) -> None:
    model = Model()
    for end in (22, 23):
        summariser.make_if_needed(job(talk(12)[:end]), model)
        await settled()
    assert len(model.asked) == 1


FAILURES = [
    ("an error", Model(ConnectionError("refused"))),
    ("no good answer", Model(None)),
    ("an overflow of its own", Model(b'{"error":{"code":"context_length_exceeded","message":"too long"}}')),
    ("nothing", Model(answer(""))),
    ("None", Model(answer("None"))),
    ("无", Model(answer("无"))),
    ("a greeting", Model(answer("Hello! How can I help you today?"))),
    ("more than there was", Model(answer(TEXT * 50))),
    ("a crash", Model(ValueError("the user said: my secret"))),
]


@pytest.mark.parametrize(("what", "model"), FAILURES, ids=[row[0] for row in FAILURES])
async def test_a_failed_summary_is_no_summary_and_is_not_tried_again_at_once(
    what: str, model: Model, store: MemoryStore
) -> None:
    model.asked.clear()
    for summariser in (Summariser(store, Tasks()), Summariser(store, Tasks())):
        for _ in range(2):
            summariser.make_if_needed(job(), model)
            await settled()
            assert await summariser.find(chain(talk(11))) is None
    assert len(model.asked) == 1


async def test_a_failed_cut_is_tried_again_after_its_pause() -> None:
    now = [0.0]
    summariser = Summariser(MemoryStore(clock=lambda: now[0]), Tasks())
    model = Model(answer("None"), answer(TEXT))
    for now[0] in (0.0, FAILED_TTL_S - 1, FAILED_TTL_S + 1):
        summariser.make_if_needed(job(), model)
        await settled()
    assert len(model.asked) == 2
    assert await summariser.find(chain(talk(11))) == Summary(TEXT, COVERS)


async def test_a_hanging_summariser_is_given_up_at_its_deadline(summariser: Summariser) -> None:
    async def hang(model: str, messages: Sequence[Message]) -> bytes | None:
        await asyncio.Event().wait()
        return None

    summariser.make_if_needed(job(deadline_s=0.01), hang)
    await settled()
    assert await summariser.find(chain(talk(11))) is None


async def test_a_model_that_keeps_failing_is_left_alone(store: MemoryStore) -> None:
    now = [0.0]
    summariser = Summariser(store, Tasks(), clock=lambda: now[0])
    model = Model(None)
    for number in range(10):
        summariser.make_if_needed(job(session(number)), model)
        await settled()
    assert len(model.asked) == 3
    now[0] = 31.0
    summariser.make_if_needed(job(session("later")), model)
    await settled()
    assert len(model.asked) == 4


async def test_one_caller_cannot_use_up_the_operators_budget_of_an_hour(store: MemoryStore) -> None:
    outcomes: list[str] = []
    summariser = Summariser(store, Tasks(), observed=lambda outcome, _: outcomes.append(outcome))
    for number in range(16):
        talked = session(number)
        summariser.make_if_needed(job(talked, scope=f"greedy.{number}", tokens_per_hour=4000), Model())
        await settled()
    assert 1 < outcomes.count("stored") < 16
    outcomes.clear()
    summariser.make_if_needed(job(session("another"), scope="modest.openai", tokens_per_hour=4000), Model())
    await settled()
    assert outcomes == ["stored"]


async def test_an_hours_budget_is_kept_and_comes_back(store: MemoryStore) -> None:
    now = [0.0]
    outcomes: list[str] = []
    summariser = Summariser(store, Tasks(), clock=lambda: now[0], observed=lambda outcome, _: outcomes.append(outcome))
    for number in range(5):
        own = job(session(number), tokens_per_hour=1900, payer="alice")
        summariser.make_if_needed(own, Model())
        await settled()
    assert outcomes == ["stored", "stored", "declined", "declined", "declined"]
    now[0] = 3601.0
    summariser.make_if_needed(job(session(3), tokens_per_hour=1900, payer="alice"), Model())
    await settled()
    assert outcomes[-1] == "stored"


@pytest.mark.parametrize("text", [TEXT, ""], ids=["a summary", "thoughts alone"])
async def test_what_a_model_was_billed_beyond_what_was_planned_counts_against_an_hours_budget(
    store: MemoryStore, text: str
) -> None:
    """A model that thinks first writes many times what it was asked for."""
    outcomes: list[str] = []
    summariser = Summariser(store, Tasks(), observed=lambda outcome, _: outcomes.append(outcome))
    bill = {"prompt_tokens": 500, "completion_tokens": 30_000, "total_tokens": 30_500}
    said = orjson.dumps({**orjson.loads(answer(text)), "usage": bill})
    for number in range(3):
        summariser.make_if_needed(job(session(number), tokens_per_hour=20_000, payer="alice"), Model(said))
        await settled()
    assert outcomes[1:] == ["declined", "declined"]


async def test_no_budget_is_charged_while_the_breaker_is_open(store: MemoryStore) -> None:
    now = [0.0]
    outcomes: list[str] = []
    summariser = Summariser(store, Tasks(), clock=lambda: now[0], observed=lambda outcome, _: outcomes.append(outcome))
    for number in range(20):
        own = job(session(number), tokens_per_hour=1900, payer="alice")
        summariser.make_if_needed(own, Model(None))
        await settled()
    assert outcomes[-1] == "declined", "the breaker opened"
    now[0] = 31.0
    summariser.make_if_needed(job(session("late"), tokens_per_hour=1900, payer="alice"), Model())
    await settled()
    assert outcomes[-1] == "stored", "what was declined has cost nothing"


async def test_a_session_attached_late_is_told_in_pieces_that_fit_the_summariser(summariser: Summariser) -> None:
    messages = talk(300, "please move the shop to db1.example.com, order A-4711, " + "as we said before " * 20)
    model = Model()
    window = 12_000
    summariser.make_if_needed(job(messages, room=16_000, window=window), model)
    await settled()
    sizes = [sum(count(text_of(message)) for message in asked) for asked in model.asked]
    assert 4 < len(sizes) <= 16
    assert max(sizes) + LARGEST_SUMMARY <= window
    assert all(TEXT in question for question in model.questions()[1:]), "each piece is told on top of the ones before"
    assert await summariser.find(chain(messages)) == Summary(TEXT, messages_before_cut(source(messages, 16_000)))


async def test_a_window_that_takes_nothing_makes_no_call(summariser: Summariser) -> None:
    model = Model()
    summariser.make_if_needed(job(window=500), model)
    summariser.make_if_needed(job(talk(30), window=0), model)
    await settled()
    assert model.asked == []


async def test_an_earlier_summary_too_large_for_a_smaller_summariser_is_made_anew_from_the_messages(
    summariser: Summariser,
) -> None:
    long = TEXT + "\nFacts: " + " ".join(f"value {number} is ready" for number in range(80))
    summariser.make_if_needed(job(), Model(answer(long)))
    await settled()
    model = Model()
    summariser.make_if_needed(job(talk(24), window=1700), model)
    await settled()
    assert "A-4711 (0)" in model.questions()[0]
    assert "<memory-" not in model.questions()[0]


@pytest.mark.parametrize(
    "value",
    [b"", b"not json", b"[]", b'{"v":2,"text":"newer"}', b'{"v":1}', b'{"v":1,"text":7}', b'{"v":1,"text":""}'],
)
async def test_values_of_another_version_are_no_summaries(
    value: bytes, summariser: Summariser, store: MemoryStore
) -> None:
    await store.put("summary", chain(talk(11))[COVERS - 1], value, ttl_s=60)
    assert await summariser.find(chain(talk(11))) is None


async def test_forgetting_a_caller_takes_the_summaries_from_the_store(
    summariser: Summariser, store: MemoryStore
) -> None:
    summariser.make_if_needed(job(scope="alice.openai"), Model())
    summariser.make_if_needed(job(scope="bob.openai"), Model())
    await settled()
    assert await store.forget("alice") == 1
    fresh = Summariser(store, Tasks())
    assert await fresh.find(chain(talk(11))) is None
    assert await fresh.find(chain(talk(11), "bob.openai")) is not None


async def test_a_running_replica_lets_go_of_what_was_forgotten_within_minutes(store: MemoryStore) -> None:
    now = [0.0]
    summariser = Summariser(store, Tasks(), clock=lambda: now[0])
    summariser.make_if_needed(job(), Model())
    await settled()
    await store.forget("alice")
    assert await summariser.find(chain(talk(11))) is not None
    now[0] = CACHED_S
    assert await summariser.find(chain(talk(11))) is None


async def test_a_store_that_is_gone_costs_summaries_only() -> None:
    store = open_store("sqlite:////proc/turnfold/t.db")
    summariser = Summariser(store, Tasks())
    model = Model()
    summariser.make_if_needed(job(), model)
    await settled()
    assert await summariser.find(chain(talk(11))) is None
    assert model.asked == [], "nobody can know whether another replica is at it"
    await store.close()


async def test_closing_lets_go_of_a_job_so_that_another_replica_can_have_it(store: MemoryStore) -> None:
    tasks = Tasks()
    started = asyncio.Event()

    async def hang(model: str, messages: Sequence[Message]) -> bytes | None:
        started.set()
        await asyncio.Event().wait()
        return None

    Summariser(store, tasks).make_if_needed(job(), hang)
    await started.wait()
    await tasks.close()
    other = Summariser(store, Tasks())
    other.make_if_needed(job(), Model())
    await settled()
    assert await other.find(chain(talk(11))) == Summary(TEXT, COVERS)
