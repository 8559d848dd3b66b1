"""Read context windows from model lists; every server has its own name for this number."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from providers.model_list import ANY_MODEL, Entry, name_of, read_entries

WINDOW_FIELDS: Final = (
    "loaded_context_length",  # LM Studio /api/v0/models: the window of the loaded instance
    "n_ctx",  # llama.cpp: the window it was started with
    "max_model_len",  # vLLM, SGLang, and servers built on them
    "context_length",  # OpenRouter, Together, Fireworks, Nebius, Ollama /api/ps, most others
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio: the largest possible window
    "context_size",  # Novita
    "contextLength",
    "inputTokenLimit",  # Gemini's own list
    "max_input_tokens",
    "max_prompt_tokens",  # GitHub Copilot
    "max_context_window_tokens",
    "max_sequence_length",
    "max_total_tokens",  # TGI /info
    "n_ctx_train",  # llama.cpp: the window of training, an upper bound
)
"""The first field found is used: the window of a running server comes before the model's largest possible window."""

RUNNING_FIELDS: Final = ("loaded_context_length", "n_ctx", "max_model_len")
"""Fields that state the window a server was started with. They take precedence over any catalogue."""

NESTED: Final = (
    "meta",
    "default_generation_settings",
    "metadata",
    "limits",
    "capabilities",
    "model_info",
    "model_extra",
    "config",
    "top_provider",
)
"""Objects inside an entry that may hold the window; ``capabilities.limits`` (Copilot) is two levels deep."""

LARGEST_WINDOW: Final = 100_000_000
"""Tokens. Chosen far above every known window: a larger number is a mistake or bytes."""


def read_windows(body: bytes) -> dict[str, int]:
    """Return the context windows of a model list by model id; {} when it states none."""
    windows: dict[str, int] = {}
    for model in read_entries(body):
        window, name = _window(model), name_of(model)
        if window is not None and name:
            windows.setdefault(name.removeprefix("models/"), window)
    return windows


def running_windows(body: bytes) -> dict[str, int]:
    """Return the windows that servers are running with, by model id; {} when the list states none.

    llama.cpp serves one model and accepts every name, so its window stands under `ANY_MODEL`; its ``/props`` is read
    too.
    """
    windows: dict[str, int] = {}
    models = read_entries(body)
    for model in models:
        window = _loaded_window(model) or _first(model, RUNNING_FIELDS) or _first_nested(model, RUNNING_FIELDS)
        if window is not None:
            any_name = len(models) == 1 and (
                "default_generation_settings" in model or model.get("owned_by") == "llamacpp"
            )
            names = [ANY_MODEL if any_name else "", name_of(model)]
            windows.update({name: window for name in names if name})
    return windows | _adapters(models, windows)


def _adapters(models: Sequence[Entry], windows: dict[str, int]) -> dict[str, int]:
    """Return the windows of adapters (LoRA in vLLM): their entries state none, but name the model that runs them."""
    pairs = ((model.get("id"), model.get("parent")) for model in models)
    return {
        name: windows[parent]
        for name, parent in pairs
        if isinstance(name, str) and isinstance(parent, str) and name not in windows and parent in windows
    }


class RunningList(NamedTuple):
    """Where a server states the windows that it runs with, if its model list does not."""

    path: str
    """Below the server's root, not below ``/v1``."""
    read: Callable[[bytes], dict[str, int]]
    on_demand: bool = False
    """Whether models are loaded at their first request, and unloaded when they are idle: only loaded ones are stated."""


def _loaded_in_ollama(body: bytes) -> dict[str, int]:
    """Return the windows of the loaded models. Clients may leave out ``:latest``."""
    windows = read_windows(body)
    return {**{name.removesuffix(":latest"): window for name, window in windows.items()}, **windows}


PROPS: Final = RunningList("/props", running_windows)
"""llama.cpp, whose older lists state the window of training alone."""
BY_OWNER: Final = {
    "library": RunningList("/api/ps", _loaded_in_ollama, on_demand=True),  # Ollama
    "organization_owner": RunningList("/api/v0/models", running_windows, on_demand=True),  # LM Studio
}
"""Servers that load models on demand, by ``owned_by`` in their model lists."""


def running_list(body: bytes) -> RunningList | None:
    """Return where the server of a model list states its running windows; None where the list itself does, or nothing is known."""
    if b'"n_ctx_train"' in body and b'"n_ctx"' not in body:
        return PROPS
    owners = (model.get("owned_by") for model in read_entries(body))
    return next((BY_OWNER[owner] for owner in owners if isinstance(owner, str) and owner in BY_OWNER), None)


def _window(model: Entry) -> int | None:
    """Return the window of an entry; the smallest one when a router serves a model with less than its full window
    (OpenRouter)."""
    if loaded := _loaded_window(model):
        return loaded
    own = _first(model)
    inner = [_first(model[name]) or _first_nested(model[name]) for name in NESTED if isinstance(model.get(name), dict)]
    served = [number for number in inner if number]
    if own and isinstance(model.get("top_provider"), dict):
        return min([own, *served])
    return own or next(iter(served), None)


def _loaded_window(model: Entry) -> int | None:
    """Return the window of the first loaded instance that states one (LM Studio)."""
    loaded = model.get("loaded_instances")
    instances = loaded if isinstance(loaded, list) else []
    return next((found for each in instances if isinstance(each, dict) and (found := _first(each.get("config")))), None)


def _first_nested(value: dict[str, Any], fields: tuple[str, ...] = WINDOW_FIELDS) -> int | None:
    """Return the first window stated in an object inside this one."""
    return next((found for name in NESTED if (found := _first(value.get(name), fields))), None)


def _first(value: Any, fields: tuple[str, ...] = WINDOW_FIELDS) -> int | None:
    """Return the window in the first of the fields that states one; None for anything but an object with such a field."""
    if not isinstance(value, dict):
        return None
    for name in fields:
        number = value.get(name)
        if isinstance(number, str) and number.isdecimal() and len(number) <= 9:
            number = int(number)
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= LARGEST_WINDOW:
            return number
    return None
