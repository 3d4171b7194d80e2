"""Locks of `threading` that a program made before its locks were adopted.

They are looked for in the modules of the scope: in the names of a module, in the attributes of its classes,
and in those of the instances of its classes that have a name in it. Each checked lock takes the place of such
a lock and takes the plain one inside, so that both exclude each other whatever a thread has loaded already;
the plain one comes back when adoption ends.
That is done if the lock is free and nothing else refers to it: a default argument, a closure or a condition
would go on with the plain lock. The others are listed: they are not watched.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, GetSetDescriptorType, ModuleType
from typing import Final, final

from ..checking.active import current
from ..environment.settings import level_for
from ..findings.levels import Level
from ..holding.runtime import fails_open, local
from .adopted import LOCKS, RLOCKS, AdoptedLock
from .scope import Scope, is_of_library

_PLAIN: Final = (type(_thread.allocate_lock()), type(threading.RLock()))
_OURS: Final = __name__.rpartition(".adoption.")[0]
"""The package of the checker; its own locks are not checked."""
_OWN_REFERENCES: Final = 2
"""How many references this module has to a lock that it looks at: its note of it, and an argument."""


_Put = Callable[[str, object], None]


@final
@dataclass(frozen=True, slots=True)
class _FoundAt:
    """Where a lock was found."""

    text: str
    names: Mapping[str, object]
    key: str
    put: _Put | None
    """Puts something under a name there; `None` where the lock cannot be replaced."""


@final
@dataclass(slots=True)
class _Existing:
    """A lock that was found, and the checked one in its place, if there is one."""

    lock: threading.Lock
    name: str
    """By the first place, as a lock that is made now is named."""
    places: list[_FoundAt] = field(default_factory=list)
    checked: AdoptedLock | None = None

    def replace(self, before: object, after: object) -> None:
        """Put one lock where the other one is still."""
        for place in self.places:
            if place.put is not None and place.names.get(place.key) is before:
                place.put(place.key, after)


@final
class ExistingLocks:
    """The locks that existed when an adoption began, and that are checked until it ends."""

    def __init__(self) -> None:
        self._replaced: list[_Existing] = []

    @fails_open(None)
    def take_over(self, scope: Scope) -> None:
        """Have the locks in the modules of a scope checked, as far as that is safe, and list the others."""
        level = level_for(None)
        watch = current()
        if level is Level.OFF or watch is None:
            return
        execution = local.execution
        inside, execution.inside = execution.inside, True
        try:
            for one in _existing(scope):
                if not _is_replaceable(one):
                    watch.unwatched.update((place.text, None) for place in one.places)
                    continue
                kinds = LOCKS if type(one.lock) is _PLAIN[0] else RLOCKS
                one.checked = kinds[min(level, Level.RECORD) - 1](one.name)
                one.checked.guard_with(one.lock)
                self._replaced.append(one)
                one.replace(one.lock, one.checked)
        finally:
            execution.inside = inside

    @fails_open(None)
    def give_back(self) -> None:
        """Put the plain locks back where the checked ones are still."""
        for one in self._replaced:
            one.replace(one.checked, one.lock)
        self._replaced.clear()


def _is_replaceable(one: _Existing) -> bool:
    """Return whether a lock is free, and known to all that refer to it by the places that were found."""
    if any(place.put is None for place in one.places):
        return False
    if sys.getrefcount(one.lock) != len(one.places) + _OWN_REFERENCES:
        return False
    if not one.lock.acquire(blocking=False):
        return False
    one.lock.release()
    owned: Callable[[], bool] | None = getattr(one.lock, "_is_owned", None)
    return owned is None or not owned()  # the caller could take its own re-entrant lock


def _existing(scope: Scope) -> list[_Existing]:
    """Return the plain locks in the modules of a scope."""
    found: dict[int, _Existing] = {}
    scoped = {name: module for name, module in list(sys.modules.items()) if _is_in(scope, name, module)}
    for name, module in sorted(scoped.items(), key=lambda item: item[0] == "__main__"):  # it gives no name
        if module.__dict__.get("__name__") != name:  # an alias
            continue
        for names, path, kind, put in _namespaces(module, scoped):
            for key, value in list(names.items()):
                for lock, where in _locks_of(value):
                    one = found.setdefault(id(lock), _Existing(lock, kind + key))
                    replaces = put if lock is value else None
                    if any(place.names is names and place.key == key for place in one.places):
                        continue  # of an instance that has several names
                    one.places.append(_FoundAt(f"{path}{key}{where}", names, key, replaces))
    return list(found.values())


def _locks_of(thing: object) -> list[tuple[threading.Lock, str]]:
    """Return the plain locks that are a thing, or that it has, with what their places are called there."""
    kind = type(thing)  # `isinstance` would ask the program for the class
    if kind in _PLAIN:
        return [(thing, "")]  # type: ignore[list-item] # it is a lock
    inside = _in_function(thing)
    if issubclass(kind, threading.Condition):
        inside = iter([((_attributes(thing) or {}).get("_lock"), "")])
    return [(lock, where) for lock, where in inside if type(lock) in _PLAIN]  # type: ignore[misc] # likewise


def _is_in(scope: Scope, name: str, module: object) -> bool:
    if type(module) is not ModuleType or name == _OURS or name.startswith(f"{_OURS}."):
        return False
    if module is threading:  # a thread takes its locks before it is known
        return False
    file = module.__dict__.get("__file__")
    return scope.has(name, of_library=not isinstance(file, str) or is_of_library(file))


_Namespace = tuple[Mapping[str, object], str, str, _Put]


def _namespaces(module: ModuleType, scoped: Mapping[str, ModuleType]) -> Iterator[_Namespace]:
    """Yield the names of a module, of its classes, and of instances of them, with what precedes its names.

    No code of the program is run for that.
    """
    names, path = module.__dict__, module.__dict__["__name__"]
    yield names, f"{path}.", "" if path == "__main__" else f"{path.rpartition('.')[2]}.", names.__setitem__
    for key, value in list(names.items()):
        if issubclass(type(value), type):
            if type.__getattribute__(value, "__module__") == path:
                inside = type.__getattribute__(value, "__dict__")
                yield inside, f"{path}.{key}.", f"{key}.", partial(type.__setattr__, value)
        elif type(value).__module__ in scoped and (inside := _attributes(value)) is not None:
            yield inside, f"{path}.{key}.", f"{type(value).__name__}.", inside.__setitem__


def _attributes(thing: object) -> dict[str, object] | None:
    """Return the dictionary of an instance, `None` if it has none of its own or a class that computes it."""
    for base in type(thing).__mro__:
        descriptor = vars(base).get("__dict__")
        if descriptor is not None:
            return descriptor.__get__(thing) if type(descriptor) is GetSetDescriptorType else None
    return None


def _in_function(thing: object) -> Iterator[tuple[object, str]]:
    """Yield the default arguments of a function and what is in its closure, with their names there."""
    function = thing.__func__ if type(thing) in {staticmethod, classmethod} else thing  # type: ignore[attr-defined]
    if type(function) is not FunctionType:
        return
    code, defaults = function.__code__, function.__defaults__ or ()
    last = code.co_argcount
    for name, value in zip(code.co_varnames[last - len(defaults) : last], defaults, strict=False):
        yield value, f"({name})"
    for name, value in (function.__kwdefaults__ or {}).items():
        yield value, f"({name})"
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield cell.cell_contents, f"({name})"
        except ValueError:  # nothing is in it yet
            continue
