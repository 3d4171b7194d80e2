"""The end of a run: with all faults over, everything is placed; then everything ends, and nothing is left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, final

from ..si import si_pb2 as si
from .cluster_record import KnownNode, RecordError
from .configurations import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..scheduler.scheduler import Scheduler
    from .manager import SimulatedManager

__all__ = ["RunEnding"]

_LIMITING: Final = frozenset({"resources", "limits", "maxapplications", "properties", "childtemplate"})
"""What a configuration has none of, where everything is to be placed."""
_LARGE: Final = {"memory": 100_000, "vcore": 1_000_000}
_FIGURES: Final = ("allocatedResource", "pendingResource", "preemptingResource")


@final
class RunEnding:
    """The end, and the checks that belong to it.

    Args:
        managers: All managers.
        scheduler: Where they are registered.
        quiet: Lets time pass until nothing is under way.
        note: Writes down what the operator does.
    """

    def __init__(
        self,
        managers: Sequence[SimulatedManager],
        scheduler: Scheduler,
        quiet: Callable[[], None],
        note: Callable[[str, str, Any], None],
    ) -> None:
        self._managers = managers
        self._scheduler = scheduler
        self._quiet = quiet
        self._note = note

    def run(self) -> None:
        """Let all come to its end.

        Raises:
            RecordError: Something is lost, or left over.
        """
        self._end_faults()
        self._make_room()
        self._check_that_all_is_placed()
        self._end_tasks()
        self._end_nodes()

    def _end_faults(self) -> None:
        for manager in self._managers:
            manager.raises, manager.blocks_seconds, manager.is_strict = 0, 0.0, False
            manager.confirm_all()
        self._quiet()
        for manager in self._managers:
            if manager.must_connect or not manager.is_answered:
                manager.connect()
        self._settle()

    def _make_room(self) -> None:
        """Lift all limits, and add more nodes than are needed."""
        self._note("operator", "makes room", None)
        for manager in self._managers:
            manager.load(_without_limits(manager.configuration))
            for node in manager.record.nodes.values():
                manager.grow_node(node, dict.fromkeys(node.size, 100_000))
                if node.drained:
                    manager.change_drained(node)
            for partition in manager.partitions:
                manager.report_node(KnownNode(manager.new_name("large"), partition, dict(_LARGE)))
        self._quiet()
        self._settle()

    def _check_that_all_is_placed(self) -> None:
        for manager in self._managers:
            snapshot: Any = self._scheduler.snapshot(rm_id=manager.rm_id)
            held_back = _applications_that_are_held_back(snapshot)
            for task in manager.record.waiting.values():
                if task.required_node in manager.record.gone_nodes or task.application in held_back:
                    continue
                why = self._scheduler.explain_ask(
                    task.application, task.key, rm_id=manager.rm_id, partition=task.partition
                )
                raise RecordError(f"{manager.rm_id} waits for {task} with all room there is: {why}")

    def _end_tasks(self) -> None:
        self._note("operator", "ends all", None)
        for manager in self._managers:
            manager.release([*manager.record.waiting, *manager.record.running], si.STOPPED_BY_RM)
            for key in [*manager.record.foreign]:
                manager.end_foreign(key)
            for name in [*manager.record.applications]:
                manager.give_up(name)
        self._settle()

    def _end_nodes(self) -> None:
        for manager in self._managers:
            for name in [*manager.record.nodes]:
                manager.lose_node(name)
        self._settle()
        snapshot: Any = self._scheduler.snapshot()
        for partition, root in snapshot["queues"].items():
            for figure in _FIGURES:
                if any((root.get(figure) or {}).values()):
                    raise RecordError(f"{figure} of {partition} at the end: {root[figure]}")

    def _settle(self) -> None:
        """Let all that is under way come to its end, and compare the records."""
        self._quiet()
        self._scheduler.validate()
        if self._scheduler.quarantined():
            raise RecordError(f"in quarantine: {self._scheduler.quarantined()}")
        for manager in self._managers:
            snapshot: Any = self._scheduler.snapshot(rm_id=manager.rm_id)
            manager.record.check(snapshot)


def _applications_that_are_held_back(snapshot: Any) -> set[str]:
    """Return the applications in queues that hold them back for good, see `_closed`."""
    return {
        document["applicationID"]
        for partition, documents in snapshot["applications"].items()
        for document in documents
        if document["queueName"] in {*_closed(snapshot["queues"][partition])}
    }


def _closed(queue: Any, *, above: bool = False) -> Iterator[str]:
    """Return the queues that place nothing, or not all, though the configuration has no limits.

    Dynamic queues keep their limits, and so do draining ones; a leaf that has become a parent places nothing,
    nor do queues below a parent that has become a leaf.
    """
    children = queue.get("children") or ()
    is_limited = not queue["isManaged"] and bool(queue.get("maxResource") or queue.get("maxRunningApps"))
    above = above or is_limited or queue["status"] != "Active" or (queue["isLeaf"] and bool(children))
    if above or not queue["isLeaf"]:
        yield queue["queuename"]
    for child in children:
        yield from _closed(child, above=above)


def _without_limits(configuration: Configuration) -> Configuration:
    """Return a configuration with the same queues and no limits."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: stripped(each) for name, each in value.items() if name not in _LIMITING}
        return [stripped(each) for each in value] if isinstance(value, list) else value

    return Configuration(json.dumps(stripped(json.loads(configuration.text))), configuration.leaves)
