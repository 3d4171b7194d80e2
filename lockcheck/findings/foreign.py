"""Objects of the program, such as keys of locks: shown and remembered without relying on them.

What they do when they are shown, hashed or compared is code of the program. It may raise whatever it likes,
take locks, or wait for another thread. So nothing of it runs while the checker holds a lock of its own.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Generic, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ByIdentity", "shown"]

Kept = TypeVar("Kept")


def shown(thing: object, by: Callable[[object], str] = str) -> str:
    """Return an object of the program as text; where it cannot be shown, the text says so."""
    try:
        return by(thing)
    except Exception as error:  # noqa: BLE001 - it is the program's, and only its text is missing
        return f"<{type(thing).__name__}, which raises {type(error).__name__} when it is shown>"


@final
class ByIdentity(Generic[Kept]):
    """What is kept of objects as long as they live, whether or not they can be hashed.

    A `weakref.WeakKeyDictionary` calls `__hash__` and `__eq__` of its keys. A class that has only the second
    has no hash, and two objects that are equal are still two.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[object], Kept]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, thing: object) -> Kept | None:
        """Return what is kept of an object, if anything."""
        found = self._kept.get(id(thing))
        return found[1] if found is not None and found[0]() is thing else None

    def put(self, thing: object, kept: Kept) -> None:
        """Keep something of an object until it ends, in the place of what was kept of it."""
        number = id(thing)
        self._kept[number] = weakref.ref(thing, lambda _: self._kept.pop(number, None)), kept
