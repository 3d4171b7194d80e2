"""Random days with a book between a resource manager (RM) and schedulers that are lost: all three agree."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.proxy.booked_link import ACTIONS, BookedLink, Sizes, a_manager, sizes_of
from support.proxy.knowing_manager import accounts

from licorne.proxy.fuzz.manager.cluster_record import OVER
from licorne.proxy.fuzz.manager.manager import SimulatedManager
from licorne.proxy.fuzz.plans import one_of
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import RecoveryState
from licorne.proxy.wire.door.record import PartsToRecover

_BEGINNING = ("add node", "add node", "submit", "ask", "submit", "ask")
_PAUSES_MS = (10, 1_000, 3_000, 11_000)
_LATER = {("Running", "Accepted"), ("Completing", "Accepted")}
"""The states of an application that the RM knows and that the scheduler has: see docs/recovery.md, States."""


class BookedDay:
    """One day; a seed gives the same on every machine.

    Attributes:
        link: the link with the book.
        manager: the RM.
        compared: how many recoveries were compared with the scheduler before.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"book {seed}")  # noqa: S311 - it plays, and keeps no secret
        self.manager: SimulatedManager = a_manager(self._rng)
        self.link = BookedLink()
        self.compared = 0
        self.manager.connect(self.link)

    def live(self, length: int = 40) -> None:
        """Act, lose the scheduler at random moments, and check what there is between."""
        rng = self._rng
        for number in range(length):
            action = _BEGINNING[number] if number < len(_BEGINNING) else one_of(rng, ACTIONS)
            if action == "resize":
                self._resize()
            else:
                self.manager.act(action, rng.getrandbits(32))
            self._pump()
            if rng.random() < 0.2:
                self.link.advance(one_of(rng, _PAUSES_MS))
            if rng.random() < 0.15:
                self.link.settle()
                self._confirm_perhaps()
                self.check()
            if rng.random() < 0.15:
                one_of(rng, (self.lose, self.lose_while_nothing_is_under_way))()
        self.link.settle()
        self.check()

    def end(self) -> None:
        """End all that there is: neither the scheduler nor the book has anything of it."""
        manager, link = self.manager, self.link
        for _ in range(3):
            manager.confirm_all()
            link.settle()
        for key in [*manager.record.foreign]:
            manager.end_foreign(key)
        manager.release([*manager.record.running, *manager.record.waiting], si.STOPPED_BY_RM)
        link.settle()
        self.check()
        for name in [*manager.record.applications]:
            manager.give_up(name)
        for name in [*manager.record.nodes]:
            manager.lose_node(name)
        link.settle()
        self.check()

    def _pump(self) -> None:
        for _ in range(self._rng.randrange(3)):
            self.link.pump(self._rng)

    def _confirm_perhaps(self) -> None:
        if self._rng.random() < 0.5:
            self.manager.confirm_all()
            self.link.settle()

    def _resize(self) -> None:
        """Change the size of something that waits or runs; what is in a gang may be about to be swapped."""
        record = self.manager.record
        tasks = [*record.waiting.values(), *record.running.values(), *record.foreign.values()]
        tasks = [task for task in tasks if not task.group and task.node in ("", *record.nodes)]
        if tasks:
            task = one_of(self._rng, tasks)
            task.size = {name: max(1, value // 2) for name, value in task.size.items()}
            request = si.AllocationRequest(rmID="rm", allocations=[task.message()])
            assert self.manager._recovery is not None
            self.manager._recovery.update_allocation(request)

    # -------------------------------------------------------------------------------- the losses

    def lose_while_nothing_is_under_way(self) -> None:
        """Lose the scheduler, and compare the next one with it."""
        self.link.settle()
        self.manager.confirm_all()
        self.link.settle()
        self.lose(quiet=True)

    def lose(self, *, quiet: bool = False) -> None:
        """Lose the scheduler, and perhaps the next one during the recovery.

        Args:
            quiet: Nothing is under way, so that the next one has to have what this one has.
        """
        before = accounts(self.link.scheduler)
        parts = self.link.lose()
        recovery = self.manager._recovery
        if recovery is not None and recovery.state is RecoveryState.RUNNING:
            self._agree(parts)
        if quiet and not self.manager.record.to_confirm:
            self.link.deliver()
            assert self._comparable(before) == self._comparable(accounts(self.link.scheduler))
            self.compared += 1
        elif self._rng.random() < 0.3:
            self._pump()
            self.link.lose()

    def _agree(self, parts: PartsToRecover) -> None:
        """Check that what another scheduler gets is what the RM knows."""
        record = self.manager.record
        runs = [*map(si.Allocation.FromString, parts.allocations)]
        for request in parts.late:
            if isinstance(request, si.AllocationRequest) and not request.releases.allocationsToRelease:
                runs += request.allocations
        known = (*record.running.values(), *record.foreign.values())
        assert {task.key: _short(task.message()) for task in known} == _by_key(runs)
        # An ask of an application that was rejected meanwhile is to be rejected as well.
        waiting = map(si.Allocation.FromString, parts.asks)
        asks = [ask for ask in waiting if ask.applicationID in record.applications]
        assert {task.key: _short(task.message()) for task in record.waiting.values()} == _by_key(asks)
        assert {*record.applications} == {entry.applicationID for entry in parts.applications}
        drained = si.NodeInfo.CREATE_DRAIN
        assert {name: node.drained for name, node in record.nodes.items()} == {
            node.nodeID: node.action == drained for node in parts.nodes
        }

    def _comparable(self, shown: dict[str, Any]) -> dict[str, Any]:
        """Return what is the same after a recovery, see docs/recovery.md."""
        alive = self.manager.record.applications
        nodes = [node for nodes in shown["nodes"].values() for node in nodes]
        for node in nodes:
            node.pop("isReserved"), node.pop("reservations", None)
        return {
            "queues": [_queue(queue) for queue in shown["queues"].values()],
            "users": _users(shown["users"]),
            "groups": _users(shown["groups"]),
            "nodes": nodes,
            "applications": [
                entry
                for entries in shown["applications"].values()
                for entry in entries.items()
                if entry[0] in alive
            ],
        }

    # -------------------------------------------------------------------------------- the checks

    def check(self) -> None:
        """Check that the RM, the book and the scheduler have the same, with nothing under way."""
        record, book = self.manager.record, self.link.book
        snapshot: Any = self.link.scheduler.snapshot()
        documents = [
            document
            for entries in snapshot["applications"].values()
            for document in entries
            if document["applicationState"] not in OVER
        ]
        runs = {
            each["allocationKey"]: each["nodeId"]
            for entry in documents
            for each in entry.get("allocations") or ()
        }
        waits = {each["allocationKey"] for entry in documents for each in entry.get("requests") or ()} - {
            *runs
        }
        states = {entry["applicationID"]: entry["applicationState"] for entry in documents}
        assert {key: task.node for key, task in record.running.items()} == runs
        if any(record.running[key].placeholder for key in record.to_confirm):
            assert waits <= {*record.waiting}  # A member that is about to replace a placeholder is not shown.
        else:
            assert {*record.waiting} == waits
        for name, application in record.applications.items():
            pair = (application.state, states[name])
            assert application.state == states[name] or pair in _LATER
        assert set() == record.to_hear
        assert sizes_of(book) == Sizes(
            nodes=len(record.nodes),
            applications=len(record.applications),
            allocations=len(record.running),
            of_others=len(record.foreign),
            asks=len(record.waiting),
            ending=0,
        )


def _short(message: si.Allocation) -> si.Allocation:
    """Return an allocation with the short name of its partition, which a recovery of the RM makes long."""
    message.partitionName = "default"
    return message


def _by_key(allocations: Any) -> dict[str, si.Allocation]:
    return {allocation.allocationKey: _short(allocation) for allocation in allocations}


def _queue(queue: Any) -> dict[str, Any]:
    """Return what a queue and those below it use; one that was made for an application may be gone."""
    below = [_queue(child) for child in queue.get("children") or ()]
    return {
        "queuename": queue["queuename"],
        "allocated": _not_zero(queue.get("allocatedResource")),
        "pending": _not_zero(queue.get("pendingResource")),
        "children": sorted(
            (child for child in below if child["allocated"] or child["pending"] or child["children"]),
            key=lambda child: str(child["queuename"]),
        ),
    }


def _not_zero(resource: dict[str, int] | None) -> dict[str, int]:
    return {name: quantity for name, quantity in (resource or {}).items() if quantity}


def _users(shown: dict[str, Any]) -> list[Any]:
    return [_used(owner["queues"]) for owners in shown.values() for owner in owners if _used(owner["queues"])]


def _used(level: dict[str, Any]) -> Any:
    """Return what a user or group uses in a queue and in those below it, `None` if nothing."""
    usage = level.get("resourceUsage")
    return usage and (
        level.get("queuePath", ""),
        usage,
        [_used(child) for child in level.get("children", ()) if _used(child)],
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_book_restores_what_the_rm_knows_whenever_a_scheduler_is_lost(seed: int) -> None:
    """Requests and answers that were under way are lost with it; in the end nothing is left anywhere."""
    day = BookedDay(seed)
    day.live()
    day.lose_while_nothing_is_under_way()
    day.link.settle()
    day.check()
    day.end()

    assert day.compared > 0
    assert 0 == sum(sizes_of(day.link.book))
    day.link.stop()
