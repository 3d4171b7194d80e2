"""How large files and classes are: 500 lines, 25 methods; in the model 20 methods, whatever is inherited."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

import pytest
from support.sources import ROOMS, Nodes, modules_of, nodes_of, text_of

import licorne.model
from licorne.model.applications.pending_asks import AskGroup
from licorne.model.values.ordered_list import OrderedList
from licorne.proxy.base.process import is_compiled

METHODS_MAX: Final = 20
LINES_MAX: Final = 500
SOURCES: Final = Path(licorne.model.__file__).parent
LARGER: Final = {
    "NodeOrder": 26,
    "Queue": 28,
    "QueueTree": 25,
    "UsageTree": 21,
    "UserLimits": 21,
}
"""Collections with an order to keep, and a queue, which is charged and ordered. They do not grow."""
WRITTEN_MAX: Final = 25
LARGER_OUTSIDE: Final = {
    # What a resource manager calls, in this process or by a connection; what a server needs of it.
    "Scheduler": 46,
    "RemoteScheduler": 43,
    "ServedScheduler": 30,
    # Actors have the methods of what they stand for.
    "EntityActor": 26,
    "PartitionActor": 34,
    # A partition at a door; the recovery of one resource manager, under one lock.
    "PartitionLink": 32,
    "Recovery": 31,
    # The simulator of clusters with its reference.
    "DoorWorld": 30,
    "ReferenceLife": 36,
    "ReferenceScheduler": 64,
    "SimulatedManager": 49,
    "_World": 37,
}
"""Classes outside the model with more than `WRITTEN_MAX` methods. They do not grow; a new one is split."""


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
    files = [path for room in ROOMS for path in modules_of(room)]
    sizes = {str(path): len(text_of(path).splitlines()) for path in files}

    assert len(files) > 500
    assert {} == {name: size for name, size in sizes.items() if size > LINES_MAX}


@in_python
def test_an_object_has_twenty_methods_at_most() -> None:
    """Mixins count: who reads a method has to know all that it may call."""
    sizes = {kind.__name__: len(methods(kind)) for kind in classes()}

    assert LARGER == {name: size for name, size in sizes.items() if size > METHODS_MAX}


def written_methods(definitions: Iterable[ast.ClassDef]) -> dict[str, set[str]]:
    """Return the methods that are written down for each class, and for its bases that no other class has.

    Such a base is a part of the class in a file of its own. No two classes have one name.
    """
    by_name = {definition.name: definition for definition in definitions}
    bases = {name: [*map(base_name, definition.bases)] for name, definition in by_name.items()}
    users = Counter(base for names in bases.values() for base in names)

    def of(name: str) -> set[str]:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        own = {node.name for node in by_name[name].body if isinstance(node, functions)}
        parts = (base for base in bases[name] if base in by_name and users[base] == 1)
        return own.union(*map(of, parts))

    return {name: of(name) for name in by_name}


def base_name(base: ast.expr) -> str:
    """Return the last part of the name of a base."""
    node = base.value if isinstance(base, ast.Subscript) else base
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def test_a_class_has_twenty_five_methods_at_most() -> None:
    """In all rooms: who reads a larger one reads two stories at once."""
    modules = [path for room in ROOMS for path in modules_of(room)]
    found = written_methods(node for path in modules for node in nodes_of(path).of(ast.ClassDef))
    larger = {name: len(methods) for name, methods in found.items() if len(methods) > WRITTEN_MAX}
    limits = LARGER | LARGER_OUTSIDE

    assert {} == {name: size for name, size in larger.items() if size > limits.get(name, WRITTEN_MAX)}
    assert LARGER_OUTSIDE.keys() <= larger.keys()


def test_a_part_of_a_class_in_another_file_counts() -> None:
    """A base of several classes does not: each of them is read without the others."""
    source = """
class Part:
    def a(self): ...
class Shared(Generic[T]):
    def b(self): ...
class Whole(Part, rooms.Shared[int]):
    def a(self): ...
    async def c(self): ...
class Other(Shared): ...
"""
    found = written_methods(Nodes(ast.parse(source)).of(ast.ClassDef))

    assert {"Part": {"a"}, "Shared": {"b"}, "Whole": {"a", "c"}, "Other": set()} == found


@in_python
def test_what_is_inherited_counts() -> None:
    """So that no class is cut up into files, and remains one object."""
    assert methods(OrderedList) < methods(AskGroup)
