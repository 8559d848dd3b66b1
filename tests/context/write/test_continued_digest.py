"""When the cut of an agent's conversation moves, the digest before it may stay as it is, and go on with what was folded since."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context import frames
from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.cut.replay import replay
from gateway.context.cut.units import CALLS, USER, Cut, Room, Unit
from gateway.context.write.folding import fold_conversation
from gateway.wire.memory import Memory
from gateway.wire.message import text_of
from tests.context.messages import call, message, result

COUNTER = counter("o200k")
ROOM = 3000
"""Tokens."""
TASK = "Check every shelf of the hall. And please never order anything from Brix."
REVOCATION = "Forget what I said about Brix: you may order anything from Brix again."


def work(steps: int, *later: str) -> list[dict[str, Any]]:
    """An agent that counts shelves. From the thirtieth step on the user says something more after every tenth."""
    messages = [message("system", "You count."), message("user", TASK), message("assistant", "Noted. Where?")]
    messages.append(message("user", "Begin with the northern hall."))
    for step in range(steps):
        name = f"c{step}"
        if step in range(30, 30 + 10 * len(later), 10):
            messages += [message("assistant", "These are counted."), message("user", later[step // 10 - 3])]
        rows = "\n".join(f"shelf S{step * 31 + row}-K: {(step + row) * 37 % 101} boxes" for row in range(20))
        messages += [call(name, "count_shelf", shelf=f"S{step * 31}-K"), result(name, rows)]
    return messages


def digests(messages: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the frames of each digest, of the requests in order; each digest once."""
    memory, found = Memory(), list[tuple[str, ...]]()
    for end, each in enumerate(messages, 1):
        if each["role"] not in ("user", "tool"):
            continue
        draft = fold_conversation(messages[:end], Budget(ROOM, 0, 0, 0), COUNTER, Policy(), memory=memory)
        assert sum(map(COUNTER.message, draft.messages)) <= ROOM
        parts = frames.split(text_of(draft.messages[1]))
        digest = tuple(part for part in parts if frames.is_frame(part))
        if digest and (not found or found[-1] != digest):
            found.append(digest)
    return found


def test_the_next_digest_begins_with_the_one_before() -> None:
    """So the provider's cache has it. Now and then all of it is written anew."""
    found = digests(work(140))
    continued = [now for before, now in pairwise(found) if now[0] == before[0]]

    assert len(found) > 4
    assert len(continued) >= len(found) // 3
    assert len({digest[0] for digest in found}) > 1
    assert all(len(digest) == 2 for digest in continued)


def test_what_is_added_is_of_the_messages_that_were_folded_since() -> None:
    found = digests(work(140))
    added = [now[1] for before, now in pairwise(found) if now[0] == before[0]]

    assert added
    for number, text in enumerate(added):
        assert "count_shelf" in text
        assert not any(row in found[0][0] for row in text.split("\n")[1:-1]), number


def test_the_same_request_alone_has_the_same_digest() -> None:
    """A new replica has folded nothing before."""
    messages = work(70)
    memory = Memory()
    for end in range(4, len(messages) + 1, 2):
        grown, alone = (
            fold_conversation(messages[:end], Budget(ROOM, 0, 0, 0), COUNTER, Policy(), memory=each).messages
            for each in (memory, None)
        )
        assert list(map(text_of, grown)) == list(map(text_of, alone))


def test_a_wish_is_not_shown_without_its_revocation() -> None:
    """The digest that stays may have the wish. Then what is added has the revocation, or all is written anew."""
    shown = ["\n".join(digest) for digest in digests(work(100, REVOCATION, "Now the southern hall, please."))]
    with_wish = [number for number, text in enumerate(shown) if "never order anything from Brix" in text]
    folded = next(number for number, text in enumerate(shown) if "Forget what I said" in text)

    assert with_wish[0] < folded
    assert all("Forget what I said" in shown[number] for number in with_wish if number > folded)


@settings(max_examples=60)
@given(costs=st.lists(st.integers(20, 900), min_size=20, max_size=120), free=st.integers(1500, 9000))
def test_a_digest_that_goes_on_leaves_room_to_grow(costs: list[int], free: int) -> None:
    units = [
        Unit(0, USER, (0,), 50, 50, 50),
        *(Unit(0, CALLS, (n,), cost, cost, cost) for n, cost in enumerate(costs, 1)),
    ]
    cuts = replay(units, Room(free, 0, 0.6, None))

    for before, cut in pairwise(cuts):
        if cut is before or cut.earlier_digest is None:
            continue
        first, tokens = before.earlier_digest or (before.first_kept, before.digest_tokens)
        assert cut.earlier_digest == (first, tokens)
        assert first < cut.first_kept
        assert tokens < cut.digest_tokens < free


def test_the_digest_of_a_chat_is_written_anew() -> None:
    """A question sets kept turns aside if quotes have too little room, and a larger digest leaves them less."""
    units = [Unit(n, USER, (n,), 60, 60, 60) for n in range(400)]

    assert all(cut.earlier_digest is None for cut in replay(units, Room(4000, 400, 0.6, None)))
    assert replay(units, Room(4000, 400, 0.6, None))[-1] != Cut()
