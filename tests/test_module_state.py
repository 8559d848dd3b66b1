"""The core keeps nothing of a conversation in its modules: what changes is made by the shell and handed in."""

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from enum import Enum
from types import FunctionType, ModuleType

import pytest

ROOMS = ("gateway.context", "gateway.wire", "providers")

ALLOWED = {
    "gateway.context.count.vocabularies._LOADED": "the vocabularies that were loaded: at most fourteen names",
    "gateway.context.count.vocabularies._exact_count": "the vocabularies themselves: loaded once, fourteen at most",
    "gateway.context.count.vocabularies._classes": "one constant pattern, made when it is first needed",
    "gateway.context.read.learned.weights": "the weights of words in a file of this package, which are constants",
    "gateway.context.read.learned.request_weights": "the same for requests",
    "gateway.context.choose.embedding._loaded": "the vectors of the extra `semantic`, loaded once",
    "providers.overflow.wording._word_pattern": "patterns of the wordings in this package, which are constants",
}
"""What may change in a module, and why it stays small whatever is served."""

CACHE = type(functools.lru_cache(lambda: None))


def modules() -> Iterator[ModuleType]:
    for room in ROOMS:
        package = importlib.import_module(room)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            yield importlib.import_module(found.name)


CONSTANTS = frozenset(
    id(value)
    for module in modules()
    for name, value in vars(module).items()
    if name in vars(module).get("__annotations__", {})
)
"""Values that their own module declares, so that others may import them."""


def changing(module: ModuleType) -> Iterator[str]:
    """The names in a module whose values may change while requests are served."""
    names = module.__dict__
    annotations = names.get("__annotations__", {})
    for name, value in names.items():
        if name.startswith("__") or getattr(value, "__module__", module.__name__) != module.__name__:
            continue
        whole = f"{module.__name__}.{name}"
        if isinstance(value, CACHE):
            yield whole
        elif isinstance(value, (dict, list, set, bytearray)):
            # A table that is filled where it stands, as `Final` says, is a constant; one that begins empty is there to be filled.
            if whole in ALLOWED or not value or not (name in annotations or id(value) in CONSTANTS):
                yield whole
        elif type(value).__module__ == module.__name__ and not isinstance(value, (type, Enum)) and _changes(value):
            yield whole


def _changes(value: object) -> bool:
    """Whether an instance of a class of ours may be changed."""
    if isinstance(value, (FunctionType, tuple)):
        return False
    kind = type(value)
    settled = getattr(kind, "__dataclass_params__", None) or getattr(kind, "__struct_config__", None)
    return not (settled is not None and settled.frozen)


@pytest.mark.parametrize("module", list(modules()), ids=lambda module: module.__name__)
def test_no_module_of_the_core_has_a_state_of_its_own(module: ModuleType) -> None:
    found = set(changing(module)) - ALLOWED.keys()

    assert not found, f"{found}: give it to gateway.wire.memory.Memory, or say in ALLOWED why it stays small"


def test_what_is_allowed_is_still_there() -> None:
    assert set(ALLOWED) <= {name for module in modules() for name in changing(module)}


def test_a_module_with_a_table_to_fill_is_found() -> None:
    module = ModuleType("sample")
    exec(
        "from functools import cache\nfrom typing import Final\nclass Table:\n    pass\n"
        "A: Final = {}\nB: Final = {1: 2}\nC = [1]\nD: Final = Table()\n@cache\ndef e(): ...\nF: Final = (1,)",
        module.__dict__,
    )

    assert set(changing(module)) == {"sample.A", "sample.C", "sample.D", "sample.e"}
