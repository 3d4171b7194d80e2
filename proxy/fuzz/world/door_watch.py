"""The comparison of a door's records of its partitions with the state of their workers.

Messages are in transit between them, so a short difference is not a fault. A lasting one is a fault, if the
worker runs, its messages arrive, and nothing waits for it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias, final

from ....model.errors import LicorneError
from ...si import si_pb2 as si
from ...wire.door.door import Door
from ...wire.door.link import PartitionLink
from ...wire.door.workers import LinkState
from ..manager.cluster_record import OVER, RecordError

_Facts: TypeAlias = "set[tuple[str, ...]]"
_LOOK_SECONDS: Final = 3.0
_LOOKS: Final = 5
"""How many times in a row a lasting difference is seen: callbacks may take 5 s."""
_SHOWN: Final = 40
"""The length of the shown part of a difference, and the number of shown differences."""
LASTING_SECONDS: Final = _LOOK_SECONDS * (_LOOKS + 1)
"""The time without faults after which a difference was seen often enough."""


@final
class DoorWatch:
    """Compares a door with its workers repeatedly, on a separate thread.

    Args:
        door: Returns the present door.
        worker_at: Returns the scheduler of a worker by its address, `None` if it has ended, or receives no
            messages.
        fail: Receives a lasting difference.
    """

    def __init__(
        self,
        door: Callable[[], Door],
        worker_at: Callable[[str], Any],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._door = door
        self._worker_at = worker_at
        self._fail = fail
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the comparison."""
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        seen: Counter[tuple[str, ...]] = Counter()
        while not self._ends.wait(_LOOK_SECONDS):
            seen = Counter({each: seen[each] + 1 for each in self._differences()})
            lasting = sorted(each for each, count in seen.items() if count >= _LOOKS)
            if lasting:
                shown = [[part[:_SHOWN] for part in each] for each in lasting[:_SHOWN]]
                self._fail(RecordError(f"the door and its worker differ for long: {shown}"))
                return

    def _differences(self) -> Iterator[tuple[str, ...]]:
        """Yield the facts that only the door or only the worker has, with the session."""
        for link in self._door()._links():  # noqa: SLF001 - its public methods show less
            place = link.place
            if place.state is not LinkState.RUNNING or place.waiting:
                continue
            worker = self._worker_at(place.address)
            with suppress(LicorneError):  # It may be ending.
                if worker is not None:
                    recorded, held = _recorded(link, self._door()), _held(worker, place.rm_id)
                    where = (place.rm_id, place.partition, place.address, str(place.since_ns))
                    yield from ((*where, "recorded", *fact) for fact in sorted(recorded - held))
                    yield from ((*where, "held", *fact) for fact in sorted(held - recorded))


def _recorded(link: PartitionLink, door: Any) -> _Facts:
    """Return the door's facts of a partition."""
    record: Any = link._record  # noqa: SLF001 - as above
    nodes, applications, allocations = record._nodes, record._applications, record._allocations  # noqa: SLF001
    facts: _Facts = {("application", name) for name in applications.there}
    for name, entry in nodes.there.items():
        is_drained = si.NodeInfo.FromString(entry).action == si.NodeInfo.CREATE_DRAIN
        facts.add(("node", name, "drained" if is_drained else ""))
    for _, key, entry in allocations._all():  # noqa: SLF001
        ask = None if entry.node else si.Allocation.FromString(entry.ask)
        if ask is None or ask.placeholder or not ask.taskGroupName:  # It may replace a placeholder soon.
            facts.add(("task", key, entry.node))
    facts |= {("foreign", key, node) for key, node in allocations._foreign_nodes.items()}  # noqa: SLF001
    open_answers = (nodes._due, applications._due, allocations._ending, allocations._refusals)  # noqa: SLF001
    facts |= {("unanswered", str(each)) for answers in open_answers for each in answers}
    return facts | _of_manager(door, link.place.rm_id)


def _of_manager(scheduler: Any, rm_id: str) -> _Facts:
    """Return the state and the configuration of a resource manager at a door or a worker."""
    states = {("state", each.state.value) for each in scheduler.resource_managers() if each.rm_id == rm_id}
    return {*states, ("configuration", scheduler.configuration_text(rm_id))}


def _held(worker: Any, rm_id: str) -> _Facts:
    """Return a worker's facts of a resource manager."""
    snapshot = worker.snapshot(rm_id=rm_id)
    facts = _of_manager(worker, rm_id)
    for documents in snapshot["applications"].values():
        for document in documents:
            if document["applicationState"] not in OVER:
                facts.add(("application", document["applicationID"]))
            asks = document.get("requests") or ()
            tasks = {
                each["allocationKey"]: ""
                for each in asks
                if each.get("placeholder") or not each.get("taskGroupName")
            }
            tasks |= {each["allocationKey"]: each["nodeId"] for each in document.get("allocations") or ()}
            facts |= {("task", key, node) for key, node in tasks.items()}
    for nodes in snapshot["nodes"].values():
        for node in nodes:
            facts.add(("node", node["nodeID"], "" if node["schedulable"] else "drained"))
            foreign = node.get("foreignAllocations") or ()
            facts |= {("foreign", each["allocationKey"], node["nodeID"]) for each in foreign}
    return facts
