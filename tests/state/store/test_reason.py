"""A failure of a store is named by its kind, so that an operator knows what to look at."""

import sqlite3

import pytest
from redis.exceptions import AuthenticationError, ResponseError

from gateway.state.store.reason import reason_of


def full_disk() -> Exception:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorname = "SQLITE_FULL"
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (full_disk(), "SQLITE_FULL"),
        (ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"), "WRONGTYPE"),
        (ResponseError("Command # 2 (ZADD exchanges 1 a) of pipeline caused error: WRONGTYPE Operation against"), "WRONGTYPE"),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots, but it's unable to persist"), "MISCONF"),
        (ResponseError("Command # 1 (SET MYSECRET words) of pipeline caused error: ERR syntax error"), "ResponseError"),
        (AuthenticationError("WRONGPASS invalid username-password pair"), "AuthenticationError"),
        (TimeoutError(), "TimeoutError"),
        (ValueError("WRONGTYPE quoted"), "ValueError"),
    ],
)  # fmt: skip
def test_the_reason_is_the_kind_of_failure_and_never_its_text(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
