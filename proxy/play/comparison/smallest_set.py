"""The smallest set of changes that has an effect, found by leaving out what is not needed (delta debugging).

It begins with all changes, and goes on with a part of them for as long as that part has the effect too:
halves first, then smaller parts. The result is smallest in that no single change of it can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, final

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class SmallestSet(Generic[T]):
    """The changes that are left, in their order.

    `runs` is how often the effect was looked for; `is_proved` whether none of the changes can be left out:
    not so where the bound of runs was reached.
    """

    changes: tuple[T, ...]
    runs: int
    is_proved: bool


def smallest_set(
    changes: Sequence[T], has_effect: Callable[[Sequence[T]], bool], *, runs_max: int
) -> SmallestSet[T]:
    """Return a smallest set of changes with the effect.

    Args:
        changes: All changes, which together have it; at least one.
        has_effect: Whether some of them have it, in the order of `changes`.
        runs_max: How often that is asked at most.
    """
    left, parts, runs = list(changes), 2, 0
    while len(left) > 1:
        for smaller in _smaller(left, parts):
            if runs == runs_max:
                return SmallestSet(tuple(left), runs, is_proved=False)
            runs += 1
            if has_effect(smaller):
                parts = 2 if len(smaller) * 2 <= len(left) else max(parts - 1, 2)
                left = smaller
                break
        else:
            if parts >= len(left):
                break
            parts = min(2 * parts, len(left))
    return SmallestSet(tuple(left), runs, is_proved=True)


def _smaller(changes: list[T], parts: int) -> Iterator[list[T]]:
    """Walk the parts of some changes, then what is left without each of them."""
    parts = min(parts, len(changes))
    bounds = [len(changes) * at // parts for at in range(parts + 1)]
    cuts = [(bounds[at], bounds[at + 1]) for at in range(parts)]
    for begin, end in cuts:
        yield changes[begin:end]
    if parts > 2:
        for begin, end in cuts:
            yield changes[:begin] + changes[end:]
