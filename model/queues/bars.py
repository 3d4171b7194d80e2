"""The bars of applications that rest: an end leads to new tries only of those that it may help.

Of resting applications of one kind each size is barred by one of these, its *bar*:

* The nodes: none has room for the size.
* A queue on the path of the leaf: its maximum leaves too little. Of several the one that is nearest to the
  leaf.
* A limit of the user or of the group, in one of these queues.

Nothing else has to end for a size to have room. So the kind is not looked at until one of its bars has room
for the size that it bars; then it is *in doubt*, until a visit of the leaf has tried it or found its bars
anew. A kind that waits for more than room, such as for an attempt to preempt, stays in doubt. A change that
is not the end of something, such as of a configuration, puts all kinds in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from ..limits.limits import HolderKind
from ..resources.resource import Resource
from ..resources.size_index import SizeIndex

if TYPE_CHECKING:
    from .queue import Queue
    from .waiting import RestingKind


class LimitBar(NamedTuple):
    """A limit of a user or a group in one queue."""

    kind: HolderKind
    """Whether it is of a `user` or of a `group`."""
    name: str
    queue_path: str


Bar: TypeAlias = "Queue | LimitBar | None"
"""What has no room for a size; `None` for the nodes."""


@final
class _Barred:
    """The sizes that have no room at one bar, each with the kinds that wait for it."""

    __slots__ = ("index", "kinds")

    def __init__(self) -> None:
        self.index = SizeIndex()
        self.kinds: dict[Resource, dict[RestingKind, None]] = {}


@final
class Bars:
    """The bars of all that rests in a queue tree."""

    __slots__ = ("_barred", "freed", "gone", "open")

    def __init__(self) -> None:
        self._barred: dict[Bar, _Barred] = {}
        self.gone: list[RestingKind] = []
        """Kinds of which none rests now: threads that share the partition leave them here."""
        self.freed: dict[Queue | LimitBar, None] = {}
        """Those that may have more room since kinds were last woken."""
        self.open: dict[tuple[Queue | LimitBar, Resource], None] = {}
        """Queues and limits that had room when kinds were last woken, each with a size that fitted."""

    def __len__(self) -> int:
        return len(self._barred)

    def __iter__(self) -> Iterator[RestingKind]:
        """Walk the kinds of which it is known what bars them, once for each of their sizes."""
        gone = set(self.gone)
        noted = (kinds for barred in self._barred.values() for kinds in barred.kinds.values())
        return (each for kinds in noted for each in kinds if each not in gone)

    def free(self, levels: Iterable[Queue], user: str, group: str | None) -> None:
        """Note that something has ended: in some queues, of a user and perhaps of a group."""
        for level in levels:
            bars: list[Queue | LimitBar] = [level, LimitBar("user", user, level.path)]
            if group is not None:
                bars.append(LimitBar("group", group, level.path))
            self.freed.update((bar, None) for bar in bars if bar in self._barred)

    def bar(self, resting: RestingKind, bars: tuple[tuple[Bar, Resource], ...]) -> None:
        """Note what bars a kind that has been in doubt: each bar with the size that has no room there."""
        if resting.barred_by is not None:
            if resting.bars == bars:
                return  # Others have got the room before it.
            self._lift(resting)
        resting.bars = bars
        resting.barred_by = self
        for bar, size in bars:
            barred = self._barred.get(bar)
            if barred is None:
                barred = self._barred[bar] = _Barred()
            barred.index.add(size)
            barred.kinds.setdefault(size, {})[resting] = None

    def forget_gone(self) -> None:
        """Forget the kinds of which none rests now."""
        while self.gone:
            self._lift(self.gone.pop())

    def doubt(self, bar: Bar, sizes: Iterable[Resource]) -> None:
        """Put the kinds in doubt that wait for sizes for which one bar has room now."""
        barred = self._barred.get(bar)
        if barred is not None:
            for size in sizes:
                if bar is not None:
                    self.open[bar, size] = None
                for resting in barred.kinds.get(size, ()):
                    resting.doubt()

    def doubt_fitting(self, bar: Bar, room: Resource | None) -> None:
        """Put the kinds in doubt that wait for sizes that fit the room of a bar now."""
        barred = self._barred.get(bar)
        if barred is not None:
            self.doubt(bar, barred.index.fitting(room, undefined_unlimited=True))

    def close(self, bar: Queue | LimitBar, size: Resource) -> None:
        """End the doubt of the kinds that one bar alone bars: it has no room for the size again."""
        del self.open[bar, size]
        barred = self._barred.get(bar)
        for resting in () if barred is None else barred.kinds.get(size, ()):
            if len(resting.bars) == 1:
                resting.end_doubt()

    def _lift(self, resting: RestingKind) -> None:
        for bar, size in resting.bars:
            barred = self._barred[bar]
            kinds = barred.kinds[size]
            kinds.pop(resting, None)
            if kinds:
                continue
            del barred.kinds[size]
            barred.index.remove(size)
            if not barred.kinds:
                del self._barred[bar]
        resting.bars = ()
        resting.barred_by = None
