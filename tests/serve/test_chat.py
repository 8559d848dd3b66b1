"""The driver of a request's life knows what to do in each state."""

from typing import get_args

from gateway.context.life.states import Ended, State
from gateway.serve.chat import WORK


def test_each_state_has_work_or_ends_the_request() -> None:
    assert WORK.keys() | {*get_args(Ended)} == {*get_args(State)}
    assert WORK.keys().isdisjoint(get_args(Ended))
