"""Permits of semaphores: how many of them the dependencies of a cycle hold together.

A semaphore of one permit is like any lock. One of several is in the way only where all of its permits are
held, and it guards a cycle of which more executions would have to hold one than there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..holding.chains import LockIdentity
    from .graph import Dependency

__all__ = ["held_permits", "obstacles_of_permits", "overdrawn"]


def held_permits(members: Sequence[Dependency], lock: LockIdentity) -> int:
    """Return how often dependencies hold a lock, all together."""
    return sum(held.acquisition.lock is lock for one in members for held in one.held)


def overdrawn(members: Sequence[Dependency]) -> LockIdentity | None:
    """Return a semaphore of several permits of which dependencies hold more than it has."""
    for one in members:
        for held in one.held:
            lock = held.acquisition.lock
            if (lock.permits or 1) > 1 and held_permits(members, lock) > (lock.permits or 1):
                return lock
    return None


def obstacles_of_permits(members: Sequence[Dependency]) -> Iterator[str]:
    """Yield why dependencies do not wait for semaphores of several permits, or never come so far together."""
    guarding = overdrawn(members)
    if guarding is not None:
        yield f"guarded by {guarding}, of which these would hold more than its {guarding.permits} permits"
    for lock in dict.fromkeys(one.wanted.lock for one in members if (one.wanted.lock.permits or 1) > 1):
        held = held_permits(members, lock)
        if held < (lock.permits or 1):
            are = "is" if held == 1 else "are"
            yield f"{lock} has {lock.permits} permits, and {held} of them {are} held here"
