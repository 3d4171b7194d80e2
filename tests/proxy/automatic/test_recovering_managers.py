"""A resource manager that recovers while threads schedule, and while others send requests of it."""

from __future__ import annotations

import threading
from functools import partial

from support.proxy.knowing_manager import KnowingManager, a_node, an_allocation, an_application
from support.proxy.running_scheduler import in_threads, placed_in
from support.waiting import WAIT_SECONDS

from licorne import Recovery, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import RecoveryState

ASKS = 40


class WaitingManager(KnowingManager):
    """Lets a test wait until so many asks are placed."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def _hear(self, text: str) -> None:
        with self._changed:
            super()._hear(text)
            self._changed.notify_all()

    def wait_for_placed(self, count: int) -> None:
        """Wait until so many asks are placed."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: sum(text.startswith("placed ") for text in self.heard) >= count, WAIT_SECONDS
            )


def busy_manager() -> WaitingManager:
    manager = WaitingManager()
    manager.know(
        nodes=[a_node(f"n{number}", 20) for number in range(10)],
        applications=[an_application(f"app{number}", "root.gangs", user=f"u{number}") for number in range(5)],
        allocations=[
            an_allocation(f"runs{number}", f"app{number % 5}", 5, node_id=f"n{number % 10}")
            for number in range(10)
        ],
    )
    return manager


def send(recovery: Recovery, number: int) -> None:
    for count in range(ASKS // 2):
        ask = an_allocation(f"ask{number}-{count}", f"app{number}", 1)
        recovery.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))


def test_what_threads_send_while_a_manager_recovers_is_sent_once_and_in_order(scheduler: Scheduler) -> None:
    """Each thread's requests stay in its order, whether they were held back or not."""
    manager = busy_manager()
    recovery = manager.recovery(scheduler, batch_max=2)
    sent: list[str] = []
    forward = scheduler.update_allocation

    def noting(request: si.AllocationRequest) -> None:
        sent.extend(entry.allocationKey for entry in request.allocations if not entry.nodeID)
        forward(request)

    scheduler.update_allocation = noting  # type: ignore[method-assign]
    in_threads(recovery.start, partial(send, recovery, 0), partial(send, recovery, 1))
    state = recovery.wait(WAIT_SECONDS)
    send(recovery, 2)
    manager.wait_for_placed(3 * ASKS // 2)
    by_thread = [[key for key in sent if key.startswith(f"ask{number}-")] for number in range(3)]

    assert (RecoveryState.RUNNING, ()) == (state, recovery.rejections)
    assert [[f"ask{number}-{count}" for count in range(ASKS // 2)] for number in range(3)] == by_thread


def test_a_manager_recovers_from_every_state_of_its_life(scheduler: Scheduler) -> None:
    """Paused or stopped, its partitions begin anew with what it knows."""
    manager = busy_manager()
    recovery: Recovery | None = None
    for lost in (None, scheduler.pause_manager, scheduler.stop_manager):
        if lost is not None:
            lost("rm", "the stream broke")
        recovery = manager.recovery(scheduler, replaces=recovery)
        recovery.start()

        assert RecoveryState.RUNNING is recovery.wait(WAIT_SECONDS)
        assert 10 == placed_in(scheduler)
