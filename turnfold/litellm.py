"""A callback for LiteLLM's proxy and router: requests are folded for the deployment that was chosen.

    litellm_settings: {callbacks: turnfold.litellm.hook}

It runs after the router has chosen a deployment, because deployments of one name may have different windows. When the upstream says "too
long" nevertheless, LiteLLM raises ContextWindowExceededError and asks its ``context_window_fallbacks``; the attempt there is folded smaller by
the numbers of the refusal. A failure in here is logged and sends the request as it came.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakKeyDictionary

from litellm.integrations.custom_logger import CustomLogger

from gateway.config import catalogue
from gateway.wire.format import FormatName
from turnfold import Memory, Policy, Refusal
from turnfold.library import Folded, fold, read_refusal, smaller

FORMATS: Final[Mapping[str, FormatName]] = {
    "acompletion": "chat",
    "completion": "chat",
    "aresponses": "responses",
    "responses": "responses",
    "anthropic_messages": "messages",
}
"""The wire format of each kind of call that is folded."""
LISTS: Final[Mapping[FormatName, str]] = {"chat": "messages", "responses": "input", "messages": "messages"}
BESIDE: Final = (
    *(
        "tools",
        "tool_choice",
        "functions",
        "response_format",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
    ),
    *(
        "instructions",
        "system",
        "text",
        "thinking",
        "reasoning",
        "reasoning_effort",
        "previous_response_id",
        "output_config",
    ),
)
"""Members of a call that cost tokens or limit the answer."""
LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
REMEMBERED: Final = 1000
"""Refused calls that wait for their fallback. Bounded because most have none."""

log: Final = logging.getLogger("turnfold.litellm")


class TurnfoldHook(CustomLogger):  # type: ignore[misc]  # litellm is not typed
    """Folds calls for their deployments. ``window`` in tokens holds for all; without it each deployment's own is used."""

    def __init__(self, *, window: int | None = None, policy: Policy | None = None) -> None:
        super().__init__()
        self._window = window
        self._policy = policy
        self._memory = Memory()
        self._refused: OrderedDict[_Call, Refusal] = OrderedDict()
        self._conversations: WeakKeyDictionary[object, object] = WeakKeyDictionary()
        """What the caller sent, by the logging object of an attempt: after a refusal LiteLLM shows only what was sent on."""

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Return the call with a conversation that fits its deployment; None to leave it as it is."""
        format = FORMATS.get(str(getattr(call_type, "value", call_type)))
        if format is None or not kwargs.get(LISTS[format]):
            return None
        try:
            if (attempt := kwargs.get("litellm_logging_obj")) is not None:
                self._conversations[attempt] = kwargs[LISTS[format]]
            return await asyncio.to_thread(self._fitting, kwargs, format)
        except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the caller its answer
            log.warning("turnfold could not fold a call: %s", type(error).__name__)
            return None

    async def async_post_call_failure_deployment_hook(
        self, request_data: Mapping[str, Any], exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """Remember what a refusal says about size for the next attempt of the same call."""
        status = getattr(exception, "status_code", None)
        attempt = request_data.get("litellm_logging_obj")
        conversation = None if attempt is None else self._conversations.get(attempt)
        if not isinstance(status, int) or conversation is None:
            return
        refusal = read_refusal(status, {}, str(exception).encode("utf-8", "replace"))
        if refusal is not None:
            call = await asyncio.to_thread(_call, request_data, conversation)
            self._refused[call] = refusal
            while len(self._refused) > REMEMBERED:
                self._refused.popitem(last=False)

    def _fitting(self, kwargs: dict[str, Any], format: FormatName) -> dict[str, Any] | None:
        model = str(kwargs.get("model", ""))
        body = {
            "model": model,
            **{name: kwargs[name] for name in (LISTS[format], *BESIDE) if kwargs.get(name) is not None},
        }
        refusal = self._refused.pop(_call(kwargs, kwargs[LISTS[format]]), None) if self._refused else None
        window = (
            self._window or _window(kwargs, model) or (getattr(refusal.numbers, "limit", None) if refusal else None)
        )
        if window is None:
            return None
        folded: Folded[Any] | None = fold(body, window=window, format=format, policy=self._policy, memory=self._memory)
        if refusal is not None and folded is not None:
            folded = smaller(folded, refusal) or folded
        if folded is None or folded.body is body:
            return None
        changed = {**kwargs, LISTS[format]: folded.body[LISTS[format]]}
        for name in ("system", "instructions", *LIMITS):
            if name in kwargs and name in folded.body:
                changed[name] = folded.body[name]
        return changed


_Call = tuple[str, bytes]
"""A call with all its attempts: its trace, and a hash of what the caller sent. A caller may choose its trace itself, so the trace alone could
be that of another caller, or of an earlier call."""


def _call(kwargs: Mapping[str, Any], conversation: object) -> _Call:
    """Return the call of an attempt. Slow for a long conversation."""
    written = repr(conversation).encode("utf-8", "surrogatepass")
    return str(kwargs.get("litellm_trace_id")), blake2b(written, digest_size=16).digest()


def _window(kwargs: Mapping[str, Any], model: str) -> int | None:
    """Return the deployment's window: from its ``model_info``, else from the catalogue."""
    info = kwargs.get("model_info")
    stated = info.get("max_input_tokens") if isinstance(info, Mapping) else None
    if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0:
        return stated
    catalogued = catalogue.load().find(model)
    return catalogued.context_window if catalogued else None


hook: Final = TurnfoldHook()
"""What ``litellm_settings.callbacks`` names."""
