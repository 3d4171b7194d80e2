"""What decides whether a gang that is placed as a whole finds room, and which gangs found none lately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, final

from ..resources.resource import EMPTY, Resource, total_of
from ..values.allocation import Ask


class GangSizes(NamedTuple):
    """The members of a gang as far as the search for their room depends on them."""

    counts: frozenset[tuple[Resource, str, int]]
    """Sizes, the node that members of that size need or the empty text, and how many there are of each."""
    total: Resource

    @classmethod
    def of(cls, members: Iterable[Ask]) -> GangSizes:
        """Return the sizes of members."""
        counts = Counter((ask.resource, ask.required_node) for ask in members)
        total = total_of(size for (size, _), count in counts.items() for _ in range(count))
        return cls(frozenset((size, node, count) for (size, node), count in counts.items()), total)


NO_GANG = GangSizes(frozenset(), EMPTY)
"""Of a gang that is not complete: no change but one of the application itself gives it room."""


@final
class ClosedGangs:
    """Gangs for which no room was found since a node last gained room.

    Room that is taken gives no gang room. For several sizes the search is no proof, and might by chance find
    room after some was taken: this is not waited for.
    """

    __slots__ = ("_gains", "_sizes")

    def __init__(self) -> None:
        self._gains = -1
        self._sizes: set[GangSizes] = set()

    def has(self, sizes: GangSizes, gains: int) -> bool:
        """Return whether it is known that no room will be found; `gains` are those of the node order."""
        return gains == self._gains and sizes in self._sizes

    def note(self, sizes: GangSizes, gains: int) -> None:
        """Note that no room was found."""
        if gains != self._gains:
            self._gains = gains
            self._sizes.clear()
        self._sizes.add(sizes)
