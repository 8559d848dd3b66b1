"""The shape of OpenAI's errors, which its chat completions and its Responses share."""

from gateway.wire.message import dumps


def error(message: str, code: str, kind: str, param: str | None) -> bytes:
    """Return an error in the shape that OpenAI documents: https://platform.openai.com/docs/guides/error-codes."""
    return dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})
