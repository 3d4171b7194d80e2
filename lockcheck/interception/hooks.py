"""Hooks in the standard library: installed while they are needed, and removed after the last use."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import TYPE_CHECKING, Final, TypeVar, final

from ..holding.runtime import LATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DONE", "IS_SET", "Hooks", "passed_on"]

Result = TypeVar("Result")

IS_SET: Final = threading.Event.is_set
DONE: Final = concurrent.futures.Future.done
"""The methods as they are while nothing is checked: what the checker asks is no event of the program."""

_MISSING: Final = object()


def passed_on(found: Iterator[Result], note: Callable[[Result], object]) -> Iterator[Result]:
    """Yield what is found, after a note of each; meanwhile only the program has it, and may drop it."""
    while True:
        try:
            one = [next(found)]
        except StopIteration:
            return
        note(one[0])
        yield one.pop()


@final
class Hooks:
    """Replaced functions and methods, and a count of their users.

    Args:
        put_all: replaces them, by `put`.
    """

    def __init__(self, put_all: Callable[[], None]) -> None:
        self._put_all = put_all
        self._wanted = 0
        self._before: list[tuple[object, str, object]] = []

    def put(self, owner: object, name: str, method: object) -> None:
        """Replace a function or method, and remember the one that was there."""
        self._before.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, method)

    def put_late(self, owner: object, name: str, put: Callable[[], None]) -> None:
        """Replace more, by `put`, if the hooks are in use and this one is not replaced already."""
        with LATCH:
            if self._wanted and not any(one[:2] == (owner, name) for one in self._before):
                put()

    def install(self) -> None:
        """Install the hooks, unless they are installed already."""
        with LATCH:
            self._wanted += 1
            if self._wanted == 1:
                self._put_all()

    def uninstall(self) -> None:
        """Remove the hooks, if nothing else needs them."""
        with LATCH:
            self._wanted -= 1
            if self._wanted == 0:
                for owner, name, method in reversed(self._before):
                    if method is _MISSING:
                        delattr(owner, name)
                    else:
                        setattr(owner, name, method)
                self._before.clear()
