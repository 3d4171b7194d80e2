"""The client of `tests/bench/server_pace.py`, a process of its own: it writes figures as one line of JSON.

server_client.py pace WORKLOAD ADDRESS
server_client.py latency ADDRESS
server_client.py connections ADDRESS COUNT SERVER_PID
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from driver import SelfRunning
from figures import BenchError, Gauges, percentile
from measurement import measure
from workloads import workload_named

from licorne import RemoteScheduler, ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

_LATENCY_SECONDS: Final = 4.0
_FULL_LOAD_COUNT: Final = 5_000
_WAITING_MAX: Final = 32
_NODES: Final = 1_000
_SETTLING_SECONDS: Final = 10.0
_QUEUES: Final = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
_NODE: Final = {"resources": {"vcore": {"value": 1_000_000}}}
_TASK: Final = {"resources": {"vcore": {"value": 10}}}


def main(arguments: Sequence[str]) -> int:
    """Run one measurement and write its figures; return the exit status."""
    kind, *details = arguments
    measurements: dict[str, Callable[..., dict[str, float]]] = {
        "pace": _pace,
        "latency": _latency,
        "connections": _connections,
    }
    sys.stdout.write(json.dumps(measurements[kind](*details)) + "\n")
    return 0


def _pace(workload: str, address: str) -> dict[str, float]:
    """Return the pace of a workload."""
    gauges = Gauges()
    with RemoteScheduler(address) as scheduler:
        found = measure(workload_named(workload), SelfRunning(scheduler, gauges), gauges).pace_per_second
    if found is None:
        raise BenchError(f"{workload} has no pace")
    return {"per_second": found}


class _Latencies(ResourceManager):
    """Notes when each task was placed."""

    def __init__(self) -> None:
        self.placed_at: dict[str, float] = {}
        self.begun = threading.Event()

    def update_application(self, response: si.ApplicationResponse) -> None:
        if response.accepted:
            self.begun.set()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        now = time.perf_counter()
        for allocation in response.new:
            self.placed_at[allocation.allocationKey] = now


def _latency(address: str) -> dict[str, float]:
    """Return the latencies of asks at half load, one in each request.

    Full load is the pace at which such asks are placed when the next one comes as soon as fewer than 32 wait.
    """
    with RemoteScheduler(address) as scheduler:
        full = LatencyRun(scheduler, "full", _FULL_LOAD_COUNT)
        start = time.perf_counter()
        full.send(None)
        pace = _FULL_LOAD_COUNT / (max(full.manager.placed_at.values()) - start)
    with RemoteScheduler(address) as scheduler:
        half = LatencyRun(scheduler, "half", int(pace / 2 * _LATENCY_SECONDS))
        times = half.send(pace / 2)
    return {"offered_per_second": pace / 2, "p50": percentile(times, 50), "p99": percentile(times, 99)}


class LatencyRun:
    """A cluster with room for all of its asks, which are built before the clock starts."""

    def __init__(self, scheduler: RemoteScheduler | Scheduler, rm_id: str, count: int) -> None:
        self._scheduler = scheduler
        self.manager = _Latencies()
        scheduler.register(rm_id, self.manager, configuration=_QUEUES)
        nodes = [
            {"nodeID": f"n{number}", "action": "CREATE", "schedulableResource": _NODE}
            for number in range(_NODES)
        ]
        scheduler.update_node(si.NodeRequest(rmID=rm_id, nodes=nodes))
        application = {"applicationID": "app", "queueName": "root.a", "ugi": {"user": "bench"}}
        scheduler.update_application(si.ApplicationRequest(rmID=rm_id, new=[application]))
        self.manager.begun.wait()  # The nodes are in then, too.
        self._asks = {
            f"t{number}": si.AllocationRequest(
                rmID=rm_id,
                allocations=[
                    {"allocationKey": f"t{number}", "applicationID": "app", "resourcePerAlloc": _TASK}
                ],
            )
            for number in range(count)
        }

    def send(self, pace: float | None) -> list[float]:
        """Send the asks at a pace, or so that a few of them wait all the time; return latencies in seconds.

        A latency counts from when an ask was due: what the client itself is late is part of it.

        Raises:
            BenchError: Not all were placed.
        """
        due_at: dict[str, float] = {}
        placed_at = self.manager.placed_at
        start = time.perf_counter()
        for number, (key, ask) in enumerate(self._asks.items()):
            due = start if pace is None else start + number / pace
            while (wait := due - time.perf_counter()) > 0:
                time.sleep(min(wait, 0.001))
            while pace is None and number - len(placed_at) >= _WAITING_MAX:
                time.sleep(0.0002)
            due_at[key] = due
            self._scheduler.update_allocation(ask)
        deadline = time.perf_counter() + _SETTLING_SECONDS
        while len(placed_at) < len(due_at) and time.perf_counter() < deadline:
            time.sleep(0.01)
        if len(placed_at) < len(due_at):
            raise BenchError(f"only {len(placed_at)} of {len(due_at)} asks were placed")
        return [placed_at[key] - at for key, at in due_at.items()]


def _connections(address: str, count: str, server: str) -> dict[str, float]:
    """Return the memory of the server while it holds so many sessions."""
    with ExitStack() as sessions:
        for _ in range(int(count)):
            sessions.enter_context(RemoteScheduler(address))
        return {"resident_bytes": resident_bytes_of(int(server))}


def cpu_seconds_of(pid: int) -> float:
    """Return the processor time that a process has used; 0 on a system without `/proc`."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes_of(pid: int) -> int:
    """Return the memory that a process occupies; 0 on a system without `/proc`."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    lines = status.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
