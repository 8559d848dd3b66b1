"""Questions about one stored record: its prompt tokens, and whether its request was folded, refused or failed."""

from gateway.observe.shape import Shown


def prompt_tokens_of(one: Shown) -> int | None:
    """Return the prompt tokens of a request as the client sent it: our count, else the bill. None when neither is known."""
    found: int | None = one["tokens_before"] if one["tokens_before"] is not None else one["prompt_tokens"]
    return found


def folded(one: Shown) -> bool:
    """Return whether a request was folded and sent in that form."""
    return one["mode"] == "enforce" and one["action"] in ("fold", "retry")


def would_fold(one: Shown) -> bool:
    """Return whether a request in mode observe would have been folded."""
    return one["mode"] == "observe" and bool(one["steps"])


def failed(one: Shown) -> bool:
    """Return whether a request ended in an error."""
    return one["status"] >= 400 or bool(one["error"])


def refused(one: Shown) -> bool:
    """Return whether the client saw a request refused as too long."""
    return one["status"] >= 400 and (bool(one["refusals"]) or one["why"] == "too_large")


def lost_something(one: Shown) -> bool:
    """Return whether whole turns, lines, images or a part of the question did not reach the model."""
    return any(one["lost"].values())
