"""Looks at entities before and after each method marked as reading: such a method changes nothing.

What an entity, or a part of one with marks of its own, holds is followed through slots, dictionaries and
containers, but not into other entities, which have marks and locks of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import chain
from types import FunctionType
from typing import Any, Final

from licorne.actors.engines.handles import PARTS
from licorne.model.applications.application import Application
from licorne.model.cluster import Cluster
from licorne.model.marks import marked_methods
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition

__all__ = ["MARKED", "Audit", "differences", "watching"]

ENTITIES: Final = (Application, Cluster, Node, Partition)
MARKED: Final = (*ENTITIES, *(part for parts in PARTS.values() for part in parts.values()))
_PLAIN: Final = (str, bytes, int, float, bool, type(None), Enum)


class Audit:
    """Which readers were called, and what they changed."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.changed: dict[str, set[str]] = {}
        """By reader, the places where something was other than before."""


@contextmanager
def watching(entities: tuple[type, ...] = MARKED) -> Iterator[Audit]:
    """Have every reader of some entities looked at."""
    audit = Audit()
    before = [
        (entity, name, vars(entity).get(name))
        for entity in entities
        for name, mark in marked_methods(entity).items()
        if mark == "reads"
    ]
    try:
        for entity, name, _ in before:
            setattr(entity, name, _watched(f"{entity.__name__}.{name}", getattr(entity, name), audit))
        yield audit
    finally:
        for entity, name, method in before:
            if method is None:
                delattr(entity, name)
            else:
                setattr(entity, name, method)


def _watched(label: str, method: Callable[..., Any], audit: Audit) -> Callable[..., Any]:
    @functools.wraps(method)
    def watched(entity: object, *args: object, **kwargs: object) -> object:
        before = _places(entity)
        result = method(entity, *args, **kwargs)
        audit.called.add(label)
        audit.called.update(f"{label} of {each.__name__}" for each in args if isinstance(each, FunctionType))
        changed = differences(before, _places(entity))
        if changed:
            audit.changed.setdefault(label, set()).update(changed)
        return result

    return watched


def differences(before: dict[str, object], after: dict[str, object]) -> set[str]:
    """Return the places that are not the same, each up to the first container."""
    return {
        place.partition("[")[0]
        for place in chain(before, after)
        if before.get(place, _MISSING) != after.get(place, _MISSING)
    }


_MISSING: Final = object()


def _places(entity: object) -> dict[str, object]:
    """Return everything that an entity holds, by where it stands."""
    found: dict[str, object] = {}
    seen = {id(entity)}
    todo = [(name, value) for name, value in _attributes(entity)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, _PLAIN):
            found[place] = value
            continue
        found[place] = id(value)
        if id(value) in seen or isinstance(value, ENTITIES) or callable(value):
            continue
        seen.add(id(value))
        todo += [(f"{place}{step}", below) for step, below in _below(value)]
    return found


def _below(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for number, (key, below) in enumerate(value.items()):
            yield f"[key {number}]", key
            yield f"[{key!r}]", below
    elif isinstance(value, list | tuple):
        yield from ((f"[{number}]", below) for number, below in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield "[]", ",".join(sorted(map(repr, value)))
    else:
        yield from ((f".{name}", below) for name, below in _attributes(value))


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    names = dict.fromkeys(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        names.update(dict.fromkeys([slots] if isinstance(slots, str) else slots))
    for name in names:
        if name not in {"__dict__", "__weakref__"} and hasattr(value, name):
            yield name, getattr(value, name)
