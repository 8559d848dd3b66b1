"""What one record says of its request."""

from gateway.observe.shape import Shown


def asked(one: Shown) -> int | None:
    """Return the prompt tokens as the client sent them: counted, or where the size was proof enough, as billed."""
    found: int | None = one["tokens_before"] if one["tokens_before"] is not None else one["prompt_tokens"]
    return found


def folded(one: Shown) -> bool:
    """Return whether a request was folded and sent so."""
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


def loses(one: Shown) -> bool:
    """Return whether whole turns, lines, images or a part of the question did not reach the model."""
    return any(one["lost"].values())
