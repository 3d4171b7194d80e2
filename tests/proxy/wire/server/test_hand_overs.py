"""How many threads take part in one ask: each hand-over costs more than the scheduling."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from support.proxy.manager_requests import application_request, ask_request, node_request
from support.waiting import WAIT_SECONDS

from licorne import RemoteScheduler, ResourceManager
from licorne.actors.runtime.pool import WorkerPool
from licorne.proxy.wire.server.remote_managers import RemoteManager

if TYPE_CHECKING:
    import pytest

    from licorne.proxy.si import si_pb2 as si

    from .conftest import Served

_QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]"
_ASKS = 40


class _Manager(ResourceManager):
    """Counts what is placed."""

    def __init__(self) -> None:
        self.heard = threading.Semaphore(0)

    def update_application(self, response: si.ApplicationResponse) -> None:
        if response.accepted:
            self.heard.release()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for _ in response.new:
            self.heard.release()


def test_an_ask_that_finds_its_partition_idle_is_placed_and_sent_by_the_thread_of_its_session(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker and no link takes part, unless the machine stops the thread for longer than a turn."""
    pushed: list[str] = []
    sent: list[str] = []
    push, end_burst = WorkerPool.push, RemoteManager.end_burst

    def note_push(pool: WorkerPool, runnable: object) -> None:
        pushed.append(threading.current_thread().name)
        push(pool, runnable)  # type: ignore[arg-type] # what it was called with

    def note_burst(manager: RemoteManager) -> None:
        sent.append(threading.current_thread().name)
        end_burst(manager)

    manager = _Manager()
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", manager, configuration=_QUEUES)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        assert manager.heard.acquire(timeout=WAIT_SECONDS)
        monkeypatch.setattr(WorkerPool, "push", note_push)
        monkeypatch.setattr(RemoteManager, "end_burst", note_burst)
        for number in range(_ASKS):
            scheduler.update_allocation(ask_request(f"t{number}"))
            assert manager.heard.acquire(timeout=WAIT_SECONDS)

    assert _ASKS // 2 > len(pushed)
    assert _ASKS // 2 < sent.count("licorne-session")
