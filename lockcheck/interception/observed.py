"""The hooks of a session at the level `full`: each function of the standard library has one, in one table.

What a function blocks for, what it begins, ends, gives and gets, stands in its hook, in the module of its
subject.
"""

from __future__ import annotations

import queue
from typing import Final

from . import events, futures, outside_calls, queues, threads
from .hooks import Hooks, Row


def rows() -> tuple[Row, ...]:
    """Return the functions that have a hook, with their hooks."""
    return (*threads.ROWS, *events.ROWS, *queues.ROWS, *futures.rows(), *outside_calls.ROWS)


_LIGHT: Final[tuple[Row, ...]] = (*events.LIGHT, *futures.LIGHT, *queues.LIGHT)


def _put_all() -> None:
    for owner, name, hook in rows():
        if hasattr(owner, name):  # older versions of Python lack some
            HOOKS.wrap(owner, name, hook)
    for owner, name, light in _LIGHT:
        HOOKS.skip(owner, name, light)
    HOOKS.put(queue, "SimpleQueue", queues.checked_simple_queue(queue.SimpleQueue))


HOOKS: Final = Hooks(_put_all)
