"""The next cut, when the room is full: trim old results, or fold up to a boundary that leaves room to grow."""

from msgspec.structs import replace

from gateway.context.cut.boundary import KEPT_SHARE, first_kept
from gateway.context.cut.cost_sums import CostSums
from gateway.context.cut.digest_tokens import with_digest, with_earlier_digest
from gateway.context.cut.full_room import FullRoom, cut_at
from gateway.context.cut.units import Cut


def next_cut(sums: CostSums, cut: Cut, newest: int, turn_quote_tokens: int | None) -> Cut:
    """Return the cut that follows ``cut`` when unit ``newest`` does not fit. Old results are trimmed if that frees enough room and costs no
    more than folding. Else units are folded up to the first boundary that leaves room to grow.

    ``turn_quote_tokens`` are the tokens of the quotes that the current turn has already; None if this cut decides them.
    """
    quote_tokens = sums.room.quote_tokens if turn_quote_tokens is None else turn_quote_tokens
    unspent = quote_tokens if turn_quote_tokens is None else 0
    full = FullRoom(sums, cut, newest, sums.room.free - quote_tokens, unspent)
    folded = with_digest(full, cut_at(first_kept(full)))
    if full.keeps_too_many_turns(cut):
        return folded
    folded, price_of_folding = _with_cheaper_digest(full, folded)
    for trimmed, unchanged in _trimmed_cuts(full):
        kept = full.kept_cost(trimmed)
        size = kept + cut.digest_tokens
        fits = size <= full.room.low_water * full.most_filled
        if fits and _price(full, size, rewritten=kept - unchanged) <= price_of_folding:
            return trimmed
    return folded


def _price(full: FullRoom, size: int, *, rewritten: int) -> float:
    """Return the expected price for each token of growth until the room is full again.

    It is the price of what is written to the cache now, and of what the requests until then read from it. ``size`` is
    the tokens of digest and kept units, ``rewritten`` those of them that the cache does not have.
    """
    prices = full.room.prices
    growth = max(full.most_filled - size, 1)
    return prices.written * rewritten / growth + prices.read * (size + growth / 2) / full.tokens_per_request


def _with_cheaper_digest(full: FullRoom, folded: Cut) -> tuple[Cut, float]:
    """Return the cut ``folded`` with the cheaper digest, and its price. The digest is written anew, or the present one goes on: that is larger, but
    its beginning stays in the cache."""
    kept = full.kept_cost(folded)
    size = kept + folded.digest_tokens
    price = _price(full, size, rewritten=size)
    continued = with_earlier_digest(full, folded)
    if continued is None or continued.earlier_digest is None:
        return folded, price
    size = kept + continued.digest_tokens
    price_of_continuing = _price(full, size, rewritten=size - continued.earlier_digest.tokens)
    return (continued, price_of_continuing) if price_of_continuing < price else (folded, price)


def _trimmed_cuts(full: FullRoom) -> list[tuple[Cut, int]]:
    """Return the ways to free room without folding more: trim results, then reduce them to stubs. Each comes with the
    tokens of the kept units before the first changed one."""
    sums, cut, newest = full.sums, full.cut, full.newest
    in_full = full.room.free * KEPT_SHARE
    end = newest
    while end > cut.first_kept and sums.full[newest + 1] - sums.full[end - 1] <= in_full:
        end -= 1
    trimmed = replace(cut, trims_end=max(end, cut.trims_end))
    stubbed = replace(trimmed, stubs_end=max(end, cut.stubs_end))
    stubs_end = max(cut.stubs_end, cut.first_kept)
    stubs = sums.stubbed[stubs_end] - sums.stubbed[cut.first_kept]
    trims = sums.trimmed[max(cut.trims_end, stubs_end)] - sums.trimmed[stubs_end]
    return [(trimmed, stubs + trims), (stubbed, stubs)]
