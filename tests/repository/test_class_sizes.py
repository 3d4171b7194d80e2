"""How many methods the objects of the model have: twenty at most, whatever they inherit."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

import pytest

import licorne.model
from licorne.model.applications.pending_asks import AskGroup
from licorne.model.build_kind import is_compiled
from licorne.model.values.ordered_list import OrderedList

METHODS_MAX: Final = 20
SOURCES: Final = Path(licorne.model.__file__).parent
LARGER: Final = {
    "NodeOrder": 27,
    "Queue": 28,
    "QueueTree": 25,
    "UsageTree": 22,
    "UserLimits": 25,
}
"""Collections with an order to keep, and a queue, which is charged and ordered. They do not grow."""


def classes() -> Iterator[type]:
    for found in pkgutil.walk_packages([str(SOURCES)], "licorne.model."):
        module: ModuleType = import_module(found.name)
        yield from (
            value
            for value in vars(module).values()
            if isinstance(value, type) and value.__module__ == module.__name__
        )


def methods(kind: type) -> set[str]:
    """Return the names of the methods and properties that are written down for a class and its bases."""
    return {name for base in kind.__mro__ for name, member in vars(base).items() if is_written(member)}


def is_written(member: object) -> bool:
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, cached_property):
        member = member.func
    elif isinstance(member, classmethod | staticmethod):
        member = member.__func__
    if not callable(member):
        return False
    function = inspect.unwrap(member)
    return isinstance(function, FunctionType) and Path(function.__code__.co_filename).is_relative_to(SOURCES)


pytestmark = pytest.mark.skipif(
    is_compiled(), reason="machine code does not say in which file it was written"
)


def test_an_object_has_twenty_methods_at_most() -> None:
    """Mixins count: who reads a method has to know all that it may call."""
    sizes = {kind.__name__: len(methods(kind)) for kind in classes()}

    assert LARGER == {name: size for name, size in sizes.items() if size > METHODS_MAX}


def test_what_is_inherited_counts() -> None:
    """So that no class is cut up into files, and remains one object."""
    assert methods(OrderedList) < methods(AskGroup)
