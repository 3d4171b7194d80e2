"""What the queues used and wanted in the last hour: a bounded ring of readings, kept whether anybody looks.

A reading of the queues alone takes a fraction of a millisecond, and is made every ten seconds. What it keeps
are references to resources that the queues have had.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, final

from ...model.errors import RequestError
from .rows import Types

if TYPE_CHECKING:
    from ...model.resources.resource import Resource
    from ...model.values.documents import Document, Json
    from ..scheduler.live_view import LiveQueues, LiveView

__all__ = ["INTERVAL_SECONDS", "POINTS_MAX", "QUEUES_MAX", "Timeline"]

INTERVAL_SECONDS: Final = 10
POINTS_MAX: Final = 360
QUEUES_MAX: Final = 500
"""Queues of a partition beyond this number are not kept: the first in the order of the tree are."""


class _Point(NamedTuple):
    time_ns: int
    queues: dict[str, tuple[Resource, Resource]]
    """Path -> what is allocated, and what is pending."""


@final
class Timeline:
    """The last hour of each partition. One thread at a time may use it: that of the event loop."""

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._rings: dict[str, deque[_Point]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read, on the running event loop; once is enough."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Read no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            with suppress(RequestError):  # Stopped, or a predicate asks: the next reading may succeed.
                self.take(await asyncio.to_thread(self._view.queues))
            await asyncio.sleep(INTERVAL_SECONDS)

    def take(self, reading: tuple[LiveQueues, ...]) -> None:
        """Add a reading of all partitions; what a partition that has gone had is dropped."""
        rings = {}
        for each in reading:
            ring = self._rings.get(each.partition)
            rings[each.partition] = ring = deque(maxlen=POINTS_MAX) if ring is None else ring
            kept = {row.path: (row.allocated, row.pending) for row in each.queues[:QUEUES_MAX]}
            ring.append(_Point(each.time_ns, kept))
        self._rings = rings

    def document(self, partition: str, parent: str, since_ms: int) -> Document:
        """Return the points after a time, for a queue and the queues right below it.

        Each queue has a list a point; `null` where it did not exist.
        """
        points = [point for point in self._rings.get(partition, ()) if point.time_ns // 1_000_000 > since_ms]
        prefix = f"{parent}."
        paths = dict.fromkeys(
            path
            for point in points
            for path in point.queues
            if path == parent or (path.startswith(prefix) and "." not in path[len(prefix) :])
        )
        types = Types()
        queues: dict[str, Json] = {path: [_values(point, path, types) for point in points] for path in paths}
        return {
            "interval": INTERVAL_SECONDS * 1000,
            "span": INTERVAL_SECONDS * 1000 * POINTS_MAX,
            "types": [*types.names],
            "times": [point.time_ns // 1_000_000 for point in points],
            "queues": queues,
        }


def _values(point: _Point, path: str, types: Types) -> Json:
    found = point.queues.get(path)
    return None if found is None else [types.quantities(found[0]), types.quantities(found[1])]
