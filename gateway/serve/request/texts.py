"""The text of a request, each line with whether it was sent: stored only if the operator switched `observe.text` on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gateway.context.life import ladder
from gateway.context.life.states import State
from gateway.serve.request import outcome
from gateway.serve.request.served import ServedRequest
from gateway.wire.message import Message, text_of

if TYPE_CHECKING:
    from gateway.context.write.explain import Fate

LONGEST_LINE: Final = 4000
"""Characters of one line that are kept. Chosen: a screen."""
MOST_LINES: Final = 4000
"""Lines of one request that are kept, the newest. Chosen: 200 KB in the store."""


def keep(served: ServedRequest, state: State) -> None:
    """Keep the lines of a request that has ended, in the background."""
    if served.setup.settings.observe.text:
        served.gateway.tasks.start(_keep(served, state), "text", must_finish=True)


async def _keep(served: ServedRequest, state: State) -> None:
    gateway = served.gateway
    try:
        lines = await gateway.threads.run_later(lambda: lines_of(state), size_bytes=len(state.life.conversation.raw))
    except Exception as error:  # noqa: BLE001  # promise 6: this record has no text
        gateway.failed("text", error)
        return
    await gateway.records.put_text(served.request_id, lines)


def lines_of(state: State) -> list[dict[str, Any]]:
    """Return each line of a request: whether it was sent, and why. Slow for a long conversation."""
    from gateway.context.write.explain import explain_lines  # noqa: PLC0415  # loads the fold, which a start does not need

    ended = outcome.of(state)
    task, attempt, messages = ended.task, ended.shown, state.life.conversation.messages
    if task is None or attempt is None or attempt.draft is None:
        fates: Sequence[Fate] = tuple(_sent_whole(index, message) for index, message in enumerate(messages))
    else:
        budget = ladder.budget_of(task)
        fates = explain_lines(messages, budget, task.counter, task.policy, summary=task.summary)
    return [
        {"index": one.index, "role": one.role, "text": one.text[:LONGEST_LINE], "kept": one.kept, "why": one.why}
        for one in fates[-MOST_LINES:]
    ]


def _sent_whole(index: int, message: Message) -> "Fate":
    """Return the fate of a message that was sent as it came."""
    from gateway.context.write.explain import UNCHANGED, Fate  # noqa: PLC0415  # see `lines_of`

    return Fate(index, str(message.get("role")), text_of(message), kept=True, why=UNCHANGED)
