"""How large files and classes are: 500 lines; in the model twenty methods, whatever is inherited."""

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
LINES_MAX: Final = 500
ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("actors", "lockcheck", "model", "proxy")
SOURCES: Final = Path(licorne.model.__file__).parent
LARGER: Final = {
    "NodeOrder": 27,
    "Queue": 28,
    "QueueTree": 25,
    "UsageTree": 21,
    "UserLimits": 21,
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


in_python = pytest.mark.skipif(is_compiled(), reason="machine code does not say in which file it was written")


def test_a_file_tells_one_story() -> None:
    """What is longer than 500 lines has a seam."""
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "_pb2" not in path.name]
    sizes = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in files}

    assert len(files) > 500
    assert {} == {name: size for name, size in sizes.items() if size > LINES_MAX}


@in_python
def test_an_object_has_twenty_methods_at_most() -> None:
    """Mixins count: who reads a method has to know all that it may call."""
    sizes = {kind.__name__: len(methods(kind)) for kind in classes()}

    assert LARGER == {name: size for name, size in sizes.items() if size > METHODS_MAX}


@in_python
def test_what_is_inherited_counts() -> None:
    """So that no class is cut up into files, and remains one object."""
    assert methods(OrderedList) < methods(AskGroup)
