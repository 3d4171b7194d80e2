"""Small programs of threads that take locks: what they are made of, and families of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations, product
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from licorne.lockcheck.findings.terms import Mode, RWPolicy
    from licorne.lockcheck.holding.chains import Attempt

LOCKS_MAX: Final = 3
MODES: Final[tuple[Mode, ...]] = ("R", "W")
ATTEMPTS: Final[tuple[Attempt, ...]] = ("block", "timed", "try")


@dataclass(frozen=True)
class Take:
    """One acquisition."""

    lock: int
    mode: Mode = "W"
    attempt: Attempt = "block"


LEAVE: Final = "leave"
"""Releases what was taken last."""

DROP: Final = "drop"
"""Releases what was taken first, and is still held; only for those that wait for ever."""

Act: TypeAlias = "Take | int | Literal['leave', 'drop']"
"""What a thread does; a number is that of a thread whose end is waited for."""

Nest: TypeAlias = "tuple[Act, ...]"
"""Acquisitions inside each other; where one fails, what is inside of it is left out.

Whatever is held at the end is released there.
"""

Policies: TypeAlias = "RWPolicy | Literal['mixed'] | None"
MIXED: Final[tuple[RWPolicy | None, ...]] = ("writer", "reader", None, "writer")

Thread: TypeAlias = "tuple[Nest | int, ...]"


@dataclass(frozen=True)
class Program:
    """Threads that begin together.

    Where the policy is `mixed` the first lock lets writers go first, the second one readers; the third one,
    and any lock without a policy, is re-entrant and never read.
    """

    threads: tuple[Thread, ...]
    policy: Policies = "writer"

    def policy_of(self, lock: int) -> RWPolicy | None:
        """Return the policy of a lock; none for one that is re-entrant."""
        return MIXED[lock] if self.policy == "mixed" else self.policy


# ------------------------------------------------------------------------------ chosen families


def nests(locks: int, depth: int, attempts: tuple[Attempt, ...] = ("block",)) -> list[Nest]:
    """Return all nests of up to so many different locks."""
    ways: list[tuple[Mode, Attempt]] = [(mode, attempt) for mode in MODES for attempt in attempts]
    return [
        tuple(Take(lock, *way) for lock, way in zip(chosen, each, strict=True))
        for length in range(1, depth + 1)
        for chosen in permutations(range(locks), length)
        for each in product(ways, repeat=length)
    ]


def threads_of(parts: Sequence[Nest], count: int, policy: Policies = "writer") -> Iterator[Program]:
    """Yield all programs of so many threads with one nest each, but for their order."""
    for chosen in combinations_with_replacement(parts, count):
        yield Program(tuple((nest,) for nest in chosen), policy)


def unread(parts: Sequence[Nest]) -> list[Nest]:
    """Return those parts of mixed programs that do not read the lock that cannot be read."""
    return [
        part
        for part in parts
        if not any(isinstance(act, Take) and act.mode == "R" and MIXED[act.lock] is None for act in part)
    ]


def chains() -> list[Nest]:
    """Return all ways to take two or three locks and release them out of turn, such as hand over hand."""
    ways: list[Nest] = []
    for chosen in permutations(range(LOCKS_MAX)):
        for modes in product(MODES, repeat=LOCKS_MAX):
            one, two, three = (Take(lock, mode) for lock, mode in zip(chosen, modes, strict=True))
            ways += [(one, two, DROP, three, DROP), (one, two, three, DROP, DROP), (one, two, DROP, three)]
    return ways


def random_programs(
    chance: random.Random, *, joins_inside: bool = False, mixed: bool = False
) -> Iterator[Program]:
    """Yield programs without end: up to three threads and locks, four acquisitions a thread, all attempts.

    Args:
        chance: where they come from.
        joins_inside: whether a thread may wait for the end of another one while it holds locks.
        mixed: whether each lock has a policy of its own.
    """
    while True:
        threads: list[Thread] = []
        for number in range(chance.choice((2, 3, 3))):
            parts: list[Nest | int] = []
            left = chance.randint(1, 4)
            while left:
                length = chance.randint(1, min(3, left))
                left -= length
                nest: list[Act] = [
                    _random_take(lock, chance, MODES if not mixed or MIXED[lock] else ("W",))
                    for lock in chance.sample(range(3), length)
                ]
                if joins_inside and number and chance.random() < 0.3:
                    nest.insert(chance.randint(1, length), chance.randrange(number))
                parts.append(tuple(nest))
            if number and chance.random() < 0.3:
                parts.insert(chance.randint(0, len(parts)), chance.randrange(number))
            threads.append(tuple(parts))
        policies: tuple[Policies, ...] = ("mixed",) if mixed else ("writer", "writer", "reader")
        yield Program(tuple(threads), chance.choice(policies))


def _random_take(lock: int, chance: random.Random, modes: Sequence[Mode]) -> Take:
    attempts: tuple[Attempt, ...] = ("block", "block", "block", "timed", "try")
    return Take(lock, chance.choice(modes), chance.choice(attempts))


# ------------------------------------------------------------------------- every small program


def small_programs(size: int, policy: RWPolicy | None) -> Iterator[Program]:
    """Yield every program of so many acts: acquisitions, and joins that hold nothing.

    Two or three threads, up to three locks, all modes, attempts and edges, recursion and upgrades
    included. Of programs that differ only in the numbers of locks and threads one is yielded, and with
    readers that go first only programs that read.
    """
    for count in (2, 3):
        for sizes in _partitions(size, count):
            threads = [list(_threads(acts, me, count, policy)) for me, acts in enumerate(sizes)]
            for chosen in product(*threads):
                if _numbered_in_order(chosen) and _is_first(chosen, sizes) and _ends(chosen):
                    if policy == "reader" and not any(act.mode == "R" for act in _takes(chosen)):
                        continue
                    yield Program(tuple((nest,) if nest else () for nest in chosen), policy)


def _partitions(size: int, count: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the ways to share acts among threads, the longest thread first."""
    if count == 1:
        if size <= (most or size):
            yield (size,)
        return
    for first in range(size - count + 1, 0, -1):
        if first <= (most or first):
            for rest in _partitions(size - first, count - 1, first):
                yield (first, *rest)


def _threads(size: int, me: int, count: int, policy: RWPolicy | None) -> Iterator[Nest]:
    """Yield all that one thread can do in so many acts, with at least one acquisition."""
    modes: tuple[Mode, ...] = ("W",) if policy is None else MODES
    takes = [Take(*way) for way in product(range(LOCKS_MAX), modes, ATTEMPTS)]
    joins = [other for other in range(count) if other != me]
    for acts in _acts(size, takes, joins):
        if any(isinstance(act, Take) for act in acts):
            yield acts


def _acts(size: int, takes: Sequence[Take], joins: Sequence[int]) -> Iterator[Nest]:
    if size == 0:
        yield ()
        return
    for join in joins:
        for rest in _acts(size - 1, takes, joins):
            yield (join, *rest)
    for inner in range(size):
        for take in takes:
            for within in _acts(inner, takes, ()):
                for rest in _acts(size - 1 - inner, takes, joins):
                    yield (take, *within, LEAVE, *rest)


def _takes(threads: Sequence[Nest]) -> Iterator[Take]:
    return (act for acts in threads for act in acts if isinstance(act, Take))


def _numbered_in_order(threads: Sequence[Nest]) -> bool:
    """Return whether locks have their numbers in the order in which they come up."""
    known = 0
    for take in _takes(threads):
        if take.lock > known:
            return False
        known = max(known, take.lock + 1)
    return True


def _is_first(threads: tuple[Nest, ...], sizes: tuple[int, ...]) -> bool:
    """Return whether no other order of the threads gives the same program earlier."""
    mine = _sorted_by(threads)
    return all(
        mine <= _sorted_by(_renamed(threads, order))
        for order in permutations(range(len(threads)))
        if order != tuple(range(len(threads))) and all(sizes[at] == sizes[to] for at, to in enumerate(order))
    )


def _renamed(threads: tuple[Nest, ...], order: tuple[int, ...]) -> tuple[Nest, ...]:
    """Return a program with its threads in another order, and locks numbered as they come up."""
    locks: dict[int, int] = {}
    renamed: list[Nest] = []
    for place in order:
        acts: list[Act] = []
        for act in threads[place]:
            if isinstance(act, Take):
                acts.append(Take(locks.setdefault(act.lock, len(locks)), act.mode, act.attempt))
            else:
                acts.append(order.index(act) if isinstance(act, int) else act)
        renamed.append(tuple(acts))
    return tuple(renamed)


def _sorted_by(threads: tuple[Nest, ...]) -> list[list[str]]:
    return [[str(act) for act in acts] for acts in threads]


def _ends(threads: Sequence[Nest]) -> bool:
    """Return whether no threads wait for each other's end."""
    waits = {number: {act for act in acts if isinstance(act, int)} for number, acts in enumerate(threads)}
    ended: set[int] = set()
    while free := {number for number in waits if number not in ended and waits[number] <= ended}:
        ended |= free
    return len(ended) == len(waits)
