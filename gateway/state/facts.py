"""Facts about upstreams: kind, evidence and time, and how they are encoded and shown."""

from typing import Any, Final, Literal

import msgspec

from gateway.context.count.calibration import LEAST_RATIO, MOST_RATIO, MOST_REPORTS, Calibration
from gateway.context.life.identity import key_hash_in
from gateway.context.life.refusal_numbers import SMALLEST_WINDOW
from gateway.state.store import values

VERSION: Final = 3
"""Version of the stored form; other versions are ignored."""
LARGEST_TOKENS: Final = 100_000_000
"""Tokens. More than any window: a larger number is not a token count."""
SIGN_CHARS: Final = 64
"""Characters of a sign of a refusal; our own names are shorter."""
NAME_CHARS: Final = 1024
"""Characters of a model's name. Chosen above the longest real ones, ARNs with 150."""
LONGEST_TTL_S: Final = 7 * 86400.0
"""Seconds. No fact is learned for longer."""
MOST_AHEAD_S: Final = 300.0
"""How far the clocks of two replicas may differ, in seconds."""
STATED_KEPT: Final = 4
"""Different windows kept for one model: one name may have this many backends of different size."""
ENOUGH_REFUSALS: Final = 2
"""Conversations that must be refused with the same number before it holds for all of their learner: one small backend
of several may have sent it."""
ENOUGH_REFUSALS_AGAINST_BILLS: Final = 4
"""The same, when a larger prompt was billed lately."""

Model = tuple[str, str]
"""Upstream and model."""
Owner = tuple[str, str, str]
"""Upstream, model, and the learner whose refusals and bills taught the fact (`identity.learner_of`)."""


def model_of(owner: Owner) -> Model:
    """Return the model of an owner, at its upstream."""
    upstream, model, _ = owner
    return upstream, model


Kind = Literal["stated", "observed", "guessed"]
"""How a fact is known; see `gateway.context.life.lessons`."""
Holds = Literal["everyone", "its caller", "its conversation", "nobody yet"]
"""For whom a fact is used."""


class StatedSize(msgspec.Struct, frozen=True, kw_only=True):
    """A window stated in an upstream's refusals. Times are seconds since 1970."""

    tokens: int
    prompt: int | None
    counted: int
    sign: str
    conversation: str
    """The last conversation refused with it."""
    refusals: int
    """Refusals of different conversations in a row."""
    since: float
    until: float


class SmallerSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size to which one conversation is folded."""

    upstream: str
    model: str
    learner: str
    """Whose refusals and bills taught it. It is stored as ``caller``."""
    tokens: int
    kind: Kind
    sign: str
    billed: int | None
    counted: int
    since: float
    until: float

    @property
    def owner(self) -> Owner:
        """For whom the fact holds."""
        return self.upstream, self.model, self.learner


class Windows(msgspec.Struct, frozen=True):
    """All facts about one model's window for one learner."""

    stated: tuple[StatedSize, ...] = ()
    largest: int = 0
    """The largest billed prompt."""
    largest_since: float = 0.0
    largest_until: float = 0.0
    smaller_until: float = 0.0
    """Until this time some conversation may have its own smaller size."""


class Ratio(msgspec.Struct, frozen=True):
    """The ratio between a model's bills to one learner and our counts."""

    calibration: Calibration
    since: float
    until: float


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One learned fact, as shown to operators."""

    kind: Kind
    what: Literal["window", "told window", "conversation", "largest prompt", "ratio"]
    upstream: str
    model: str
    caller: str
    """The key hash of the caller whom it holds for; empty where it holds for everyone."""
    value: float
    holds: Holds
    evidence: str
    since: float
    until: float


_TOKENS: Final = values.whole(0, LARGEST_TOKENS)
_WINDOW: Final = values.whole(SMALLEST_WINDOW, LARGEST_TOKENS)
_TIME: Final = values.number(0, 1e11)
_SIGN: Final = values.text(SIGN_CHARS)
_NAME: Final = values.text(NAME_CHARS)


def _optional_tokens(value: object) -> bool:
    return value is None or _TOKENS(value)


_STATED: Final = values.fields(
    tokens=_WINDOW, prompt=_optional_tokens, counted=_TOKENS, sign=_SIGN, conversation=_SIGN, refusals=values.whole(1, 10**9),
    since=_TIME, until=_TIME,
)  # fmt: skip


def pack_windows(known: Windows) -> bytes:
    """Encode the facts about a model's window."""
    stated = [{name: getattr(one, name) for name in StatedSize.__struct_fields__} for one in known.stated]
    return values.pack(
        VERSION,
        stated=stated,
        largest=known.largest,
        largest_since=known.largest_since,
        largest_until=known.largest_until,
        smaller_until=known.smaller_until,
    )


def read_windows(stored: bytes) -> Windows | None:
    """Decode the facts about a model's window; None when damaged or out of range."""
    value = values.unpack(
        stored,
        VERSION,
        stated=values.each(_STATED, STATED_KEPT),
        largest=_TOKENS,
        largest_since=_TIME,
        largest_until=_TIME,
        smaller_until=_TIME,
    )
    if value is None:
        return None
    stated = tuple(StatedSize(**{name: one[name] for name in StatedSize.__struct_fields__}) for one in value["stated"])
    return Windows(stated, value["largest"], value["largest_since"], value["largest_until"], value["smaller_until"])


def pack_ratio(known: Ratio) -> bytes:
    """Encode a ratio."""
    calibration = known.calibration
    return values.pack(
        VERSION,
        ratio=calibration.ratio,
        reports=calibration.reports,
        confirmed=calibration.confirmed,
        counter=calibration.counter,
        since=known.since,
        until=known.until,
    )


def read_ratio(stored: bytes) -> Ratio | None:
    """Decode a ratio; None when damaged or out of range."""
    report = values.each(values.whole(1, LARGEST_TOKENS), 2)
    value = values.unpack(
        stored,
        VERSION,
        ratio=values.number(0.9 * LEAST_RATIO, 1.1 * MOST_RATIO),
        reports=values.each(lambda pair: report(pair) and len(pair) == 2, MOST_REPORTS),
        confirmed=values.flag,
        counter=_SIGN,
        since=_TIME,
        until=_TIME,
    )
    if value is None:
        return None
    reports = tuple((counted, billed) for counted, billed in value["reports"])
    calibration = Calibration(float(value["ratio"]), reports, value["confirmed"], counter=value["counter"])
    return Ratio(calibration, value["since"], value["until"])


_STORED_SMALLER: Final = {name: name for name in SmallerSize.__struct_fields__} | {"learner": "caller"}
"""The name in the store of each field of a `SmallerSize`."""


def pack_smaller(known: SmallerSize) -> bytes:
    """Encode the size to which one conversation is folded."""
    return values.pack(VERSION, **{stored: getattr(known, name) for name, stored in _STORED_SMALLER.items()})


def read_smaller(stored: bytes) -> SmallerSize | None:
    """Decode the size to which one conversation is folded; None when damaged or out of range."""
    value = values.unpack(
        stored,
        VERSION,
        upstream=_NAME,
        model=_NAME,
        caller=_NAME,
        tokens=values.whole(1, LARGEST_TOKENS),
        kind=lambda kind: kind in ("stated", "guessed"),
        sign=_SIGN,
        billed=_optional_tokens,
        counted=_TOKENS,
        since=_TIME,
        until=_TIME,
    )
    return None if value is None else SmallerSize(**{name: value[stored] for name, stored in _STORED_SMALLER.items()})


def read_usage(stored: bytes) -> dict[str, Any] | None:
    """Decode a conversation's billed tokens; None when damaged or out of range."""
    return values.unpack(stored, VERSION, billed=values.whole(1, LARGEST_TOKENS), fixed=_TOKENS)


def window_facts(owner: Owner, known: Windows, now: float) -> list[Fact]:
    """Return the facts about a model's window for one learner, for operators."""
    found = [_stated_fact(owner, one, known, now) for one in known.stated if is_current(one.until, now)]
    if known.largest and known.largest_until > now:
        upstream, model, learner = owner
        largest = Fact(
            kind="observed", what="largest prompt", upstream=upstream, model=model, caller=key_hash_in(learner),
            value=known.largest, holds="nobody yet", evidence="billed", since=known.largest_since, until=known.largest_until,
        )  # fmt: skip
        found.append(largest)
    return found


def _stated_fact(owner: Owner, stated: StatedSize, known: Windows, now: float) -> Fact:
    upstream, model, learner = owner
    size = f"prompt {stated.prompt:,} stated" if stated.prompt else "no prompt size stated"
    refusals = f"{stated.refusals} refusal{'s' * (stated.refusals != 1)}"
    return Fact(
        kind="stated", what="window", upstream=upstream, model=model, caller=key_hash_in(learner), value=stated.tokens,
        holds="its caller" if in_force(stated, known, now) else "nobody yet",
        evidence=f"{refusals}, sign {stated.sign}, {size}, {stated.counted:,} by our count",
        since=stated.since, until=stated.until,
    )  # fmt: skip


def ratio_fact(owner: Owner, ratio: Ratio) -> Fact:
    """Return the ratio between bills and counts as a fact, for operators."""
    upstream, model, learner = owner
    known = ratio.calibration
    reports = ", ".join(f"{billed:,} for {counted:,}" for counted, billed in known.reports[-3:])
    evidence = f"{'confirmed' if known.confirmed else 'not confirmed'}; billed {reports}"
    return Fact(
        kind="observed", what="ratio", upstream=upstream, model=model, caller=key_hash_in(learner), value=known.ratio,
        holds="its caller", evidence=evidence, since=ratio.since, until=ratio.until,
    )  # fmt: skip


def smaller_fact(smaller: SmallerSize) -> Fact:
    """Return the size to which one conversation is folded as a fact, for operators."""
    billed = f"billed {smaller.billed:,}, " if smaller.billed is not None else ""
    return Fact(
        kind=smaller.kind, what="conversation", upstream=smaller.upstream, model=smaller.model,
        caller=key_hash_in(smaller.learner), value=smaller.tokens, holds="its conversation",
        evidence=f"sign {smaller.sign}, {billed}{smaller.counted:,} by our count", since=smaller.since, until=smaller.until,
    )  # fmt: skip


def is_current(until: float, now: float) -> bool:
    """Return whether a fact with this end still holds. One that ends later than any new one would is from before the clock was set
    back: a window that is too small would never be disproved, because nothing larger is sent."""
    return now < until <= now + LONGEST_TTL_S + MOST_AHEAD_S


def in_force(stated: StatedSize, known: Windows, now: float) -> bool:
    """Return whether a stated window holds for all conversations of its learner: enough refusals stated it. If a larger prompt was
    billed, more refusals are needed."""
    against = known.largest > stated.tokens and known.largest_until > now
    return is_current(stated.until, now) and stated.refusals >= (
        ENOUGH_REFUSALS_AGAINST_BILLS if against else ENOUGH_REFUSALS
    )
