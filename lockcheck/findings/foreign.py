"""Objects of the program, such as keys of locks: shown and remembered without relying on them.

To show, hash or compare them runs code of the program. It may raise anything, take locks, or wait for another
thread. So it never runs while the checker holds one of its locks.
"""

from __future__ import annotations

import contextvars
import functools
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar, final

Kept = TypeVar("Kept")


def shown(thing: object, by: Callable[[object], str] = str) -> str:
    """Return an object of the program as text; if it cannot be shown, the text reports that."""
    try:
        return by(thing)
    except Exception as error:  # noqa: BLE001 - it is the program's, and only its text is missing
        return f"<{type(thing).__name__}, which raises {type(error).__name__} when it is shown>"


def name_of_work(work: object) -> str:
    """Return the name of a function that runs as a task, also inside of a partial one or a context."""
    while isinstance(work, functools.partial):
        in_context = isinstance(getattr(work.func, "__self__", None), contextvars.Context)
        work = work.args[0] if in_context and work.args else work.func
    return str(getattr(work, "__qualname__", "a task"))


@final
class ByIdentity(Generic[Kept]):
    """A mapping from objects, while they live, to values, whether or not the objects can be hashed.

    A `weakref.WeakKeyDictionary` calls `__hash__` and `__eq__` of its keys. A class that has only the second
    has no hash, and two objects that are equal are still two.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[object], Kept]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, thing: object) -> Kept | None:
        """Return the value of an object, if it has one."""
        found = self._kept.get(id(thing))
        return found[1] if found is not None and found[0]() is thing else None

    def values(self) -> list[Kept]:
        """Return the values of all objects that live."""
        return [kept for _, kept in list(self._kept.values())]

    def put(self, thing: object, kept: Kept) -> None:
        """Set the value of an object, until the object ends."""
        number = id(thing)
        self._kept[number] = weakref.ref(thing, lambda _: self._kept.pop(number, None)), kept
