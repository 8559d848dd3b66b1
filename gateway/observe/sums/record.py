"""Questions about one stored record: its prompt tokens, and whether its request was folded, refused or failed."""

from gateway.observe.shape import RecordJson


def prompt_tokens_of(record: RecordJson) -> int | None:
    """Return the prompt tokens of a request as the client sent it: our count, else the bill. None when neither is known."""
    found: int | None = record["tokens_before"] if record["tokens_before"] is not None else record["prompt_tokens"]
    return found


def folded(record: RecordJson) -> bool:
    """Return whether a request was folded and sent in that form."""
    return record["mode"] == "enforce" and record["action"] in ("fold", "retry")


def would_fold(record: RecordJson) -> bool:
    """Return whether a request in mode observe would have been folded."""
    return record["mode"] == "observe" and bool(record["steps"])


def failed(record: RecordJson) -> bool:
    """Return whether a request ended in an error."""
    return record["status"] >= 400 or bool(record["error"])


def refused(record: RecordJson) -> bool:
    """Return whether the client saw a request refused as too long."""
    return record["status"] >= 400 and (bool(record["refusals"]) or record["why"] == "too_large")


def lost_something(record: RecordJson) -> bool:
    """Return whether whole turns, lines, images or a part of the question did not reach the model."""
    return any(record["lost"].values())
