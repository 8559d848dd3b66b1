"""Context windows as model lists tell them: every server has its own name for the same number."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

WINDOW_FIELDS: Final = (
    "loaded_context_length",  # LM Studio /api/v0/models: what the loaded instance really has
    "n_ctx",  # llama.cpp, as started
    "max_model_len",  # vLLM, SGLang, and everything built on them
    "context_length",  # OpenRouter, Together, Fireworks, Nebius, Ollama /api/ps, most others
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio: what the model could have
    "context_size",  # Novita
    "contextLength",
    "inputTokenLimit",  # Gemini's own list
    "max_input_tokens",
    "max_prompt_tokens",  # GitHub Copilot
    "max_context_window_tokens",
    "max_sequence_length",
    "max_total_tokens",  # TGI /info
    "n_ctx_train",  # llama.cpp: what the model was trained with, an upper bound at best
)
"""Which field is believed, first come first: what a running server has beats what the model could have."""

RUNNING_FIELDS: Final = ("loaded_context_length", "n_ctx", "max_model_len")
"""Those that say with what a server was started: no catalogue knows better."""

ANY_MODEL: Final = "*"
"""A server of one model that answers to every name."""

INNER: Final = (
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
"""Where lists nest the number one level down; two levels for Copilot's ``capabilities.limits``."""

LARGEST: Final = 100_000_000


def read_windows(body: bytes) -> dict[str, int]:
    """Read the context windows out of a model list, by model id; {} where it tells none."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    windows: dict[str, int] = {}
    for model in _models(value):
        window = _window(model)
        if window is None:
            continue
        for name in ("id", "key", "model", "name"):
            if isinstance(model.get(name), str):
                windows.setdefault(model[name].removeprefix("models/"), window)
                break
    return windows


def running_windows(body: bytes) -> dict[str, int]:
    """Read the windows with which a server says that it runs its models, by model id; {} where it tells none.

    llama.cpp serves one model under whatever name it is asked for: its window stands under `ANY_MODEL`, from its ``/props`` too.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    windows: dict[str, int] = {}
    models = list(_models(value))
    for model in models:
        instances = model.get("loaded_instances")
        loaded = instances if isinstance(instances, list) else []
        window = next(
            (found for each in loaded if isinstance(each, dict) and (found := _first(each.get("config")))), None
        )
        window = window or _first(model, RUNNING_FIELDS) or _first_within(model, RUNNING_FIELDS)
        if window is not None:
            any_name = len(models) == 1 and (
                "default_generation_settings" in model or model.get("owned_by") == "llamacpp"
            )
            names = [ANY_MODEL] if any_name else []
            names += [model[key] for key in ("id", "key", "model", "name") if isinstance(model.get(key), str)][:1]
            windows.update(dict.fromkeys(names, window))
    return windows


def says_props(body: bytes) -> bool:
    """Whether a model list is llama.cpp's and leaves out the running window, which its ``/props`` then tells."""
    return b'"n_ctx_train"' in body and b'"n_ctx"' not in body


def _models(value: Any) -> Iterator[dict[str, Any]]:
    """The entries of a list under ``data`` (OpenAI), ``models`` (Ollama, Gemini) or bare (Together)."""
    if isinstance(value, dict):
        value = next((value[name] for name in ("data", "models") if isinstance(value.get(name), list)), [value])
    if isinstance(value, list):
        yield from (model for model in value if isinstance(model, dict))


def _window(model: dict[str, Any]) -> int | None:
    """The smallest claim wins where a router serves a model with less than the model has (OpenRouter)."""
    loaded = model.get("loaded_instances")
    for instance in loaded if isinstance(loaded, list) else []:
        found = _first(instance.get("config")) if isinstance(instance, dict) else None
        if found:
            return found
    own = _first(model)
    inner = [_first(model[name]) or _first_within(model[name]) for name in INNER if isinstance(model.get(name), dict)]
    served = [number for number in inner if number]
    if own and isinstance(model.get("top_provider"), dict):
        return min([own, *served])
    return own or next(iter(served), None)


def _first_within(value: dict[str, Any], fields: tuple[str, ...] = WINDOW_FIELDS) -> int | None:
    return next((found for name in INNER if (found := _first(value.get(name), fields))), None)


def _first(value: Any, fields: tuple[str, ...] = WINDOW_FIELDS) -> int | None:
    if not isinstance(value, dict):
        return None
    for name in fields:
        number = value.get(name)
        if isinstance(number, str) and number.isdecimal() and len(number) <= 9:
            number = int(number)
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= LARGEST:
            return number
    return None
