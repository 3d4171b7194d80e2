"""What a door costs: the same work in one process, and over workers, each a process of its own.

    python -m support.door.pace [PARTITIONS ...]

Each partition has 1,000 nodes and gets 10,000 asks in requests of 50; the resource manager is in the process
of the door. Then one ask at a time says how long it takes to its placement; then a worker is killed, and
one ask at a time of the other partitions says what they notice of it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.proxy.processes import children, start_server

from licorne import RemoteScheduler, ResourceManager, Scheduler
from licorne.proxy.base.process import prepare_process
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.launchers.local import LocalLauncher
from licorne.proxy.wire.door.workers import LaunchedWorker, LinkState

NODES: Final = 1_000
ASKS: Final = 10_000
REQUEST: Final = 50
SINGLE: Final = 300
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MIB: Final = 1 << 20
_HEAD: Final = (
    "| | ready s | placed a second | CPU us an allocation: here | workers | "
    "one ask p50 / p99 ms | MiB: here / workers | gap s | p99 ms of others beside it |"
)


class _Counting(ResourceManager):
    """A resource manager that counts, and lets the main thread wait."""

    def __init__(self) -> None:
        self.placed: dict[str, float] = {}
        self.doubled = 0
        self._changed = threading.Condition()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Note placements."""
        now = time.perf_counter()
        with self._changed:
            for new in response.new:
                self.doubled += new.allocationKey in self.placed
                self.placed[new.allocationKey] = now
            self._changed.notify_all()

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Look at nothing."""

    def update_node(self, response: si.NodeResponse) -> None:
        """Look at nothing."""

    def wait(self, count: int) -> None:
        """Wait until so many are placed."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.placed) >= count, 300), len(self.placed)

    def wait_for(self, key: str) -> float:
        """Wait until an ask is placed; return when it was."""
        with self._changed:
            assert self._changed.wait_for(lambda: key in self.placed, 300), key
            return self.placed[key]


@dataclass
class _Row:
    """What was measured."""

    name: str
    ready_seconds: float = 0.0
    placed_a_second: float = 0.0
    own_us: float = 0.0
    workers_us: float = 0.0
    single_ms: list[float] = field(default_factory=list)
    own_mib: int = 0
    workers_mib: list[int] = field(default_factory=list)
    gap_seconds: float | None = None
    others_ms: list[float] = field(default_factory=list)
    """Of single asks of the other partitions, from the kill of one worker on."""

    def __str__(self) -> str:
        middle, late = _percentile(self.single_ms, 50), _percentile(self.single_ms, 99)
        gap = "" if self.gap_seconds is None else f"{self.gap_seconds:.2f}"
        others = f"{_percentile(self.others_ms, 99):.1f}" if self.others_ms else ""
        workers = ",".join(str(size) for size in self.workers_mib)
        return (
            f"| {self.name} | {self.ready_seconds:.1f} | {self.placed_a_second:,.0f} | {self.own_us:.0f} | "
            f"{self.workers_us:.0f} | {middle:.1f} / {late:.1f} | {self.own_mib} / {workers} | {gap} | "
            f"{others} |"
        )


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100]


def configuration(names: Sequence[str]) -> str:
    """Return a configuration with partitions of these names."""
    entries = [
        f'  - name: {name}\n    queues:\n      - {{name: root, submitacl: "*", queues: [{{name: leaf}}]}}\n'
        for name in names
    ]
    return "partitions:\n" + "".join(entries)


def _asks(name: str, first: int, count: int) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID="rm")
    for number in range(first, first + count):
        entry = request.allocations.add(
            allocationKey=f"{name}-{number}", applicationID=f"app-{name}", partitionName=name
        )
        entry.resourcePerAlloc.resources["vcore"].value = 1
    return request


def _fill(core: Scheduler | Door | RemoteScheduler, names: Sequence[str]) -> None:
    for name in names:
        request = si.NodeRequest(rmID="rm")
        for number in range(NODES):
            node = request.nodes.add(nodeID=f"{name}-n{number}", action=si.NodeInfo.CREATE)
            node.attributes["si/node-partition"] = name
            node.schedulableResource.resources["vcore"].value = 1_000
        core.update_node(request)
        application = si.ApplicationRequest(rmID="rm")
        new = application.new.add(applicationID=f"app-{name}", queueName="root.leaf", partitionName=name)
        new.ugi.user = "bob"
        core.update_application(application)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _mib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 // _MIB


def _measure(
    row: _Row,
    core: Scheduler | Door | RemoteScheduler,
    names: Sequence[str],
    launcher: LocalLauncher | None = None,
    door: int | None = None,
) -> _Counting:
    """Do the work; measure this process, or that of a door, and the workers."""
    manager = _Counting()
    begin = time.perf_counter()
    core.register("rm", manager, configuration=configuration(names))
    row.ready_seconds = time.perf_counter() - begin
    _fill(core, names)
    pids = [] if launcher is None else _pids(core, launcher)
    if door is not None:
        pids = children(door)
    here = os.getpid() if door is None else door
    own, others = _cpu_seconds(here), sum(map(_cpu_seconds, pids))
    begin = time.perf_counter()
    for first in range(0, ASKS, REQUEST):
        for name in names:
            core.update_allocation(_asks(name, first, REQUEST))
    count = ASKS * len(names)
    manager.wait(count)
    row.placed_a_second = count / (time.perf_counter() - begin)
    row.own_us = (_cpu_seconds(here) - own) / count * 1e6
    row.workers_us = (sum(map(_cpu_seconds, pids)) - others) / count * 1e6
    row.single_ms = _singles_ms(core, manager, names, ASKS)
    row.own_mib, row.workers_mib = _mib(here), [_mib(pid) for pid in pids]
    return manager


def _singles_ms(
    core: Scheduler | Door | RemoteScheduler, manager: _Counting, names: Sequence[str], first: int
) -> list[float]:
    """Ask for one allocation at a time, of the partitions in turns; return the milliseconds of each."""
    taken = []
    for number in range(first, first + SINGLE):
        name = names[number % len(names)]
        begin = time.perf_counter()
        core.update_allocation(_asks(name, number, 1))
        taken.append((manager.wait_for(f"{name}-{number}") - begin) * 1e3)
    return taken


def _pids(door: Scheduler | Door | RemoteScheduler, launcher: LocalLauncher) -> list[int]:
    """Return the processes of the workers, in the order of their partitions."""
    assert isinstance(door, Door)
    workers = [LaunchedWorker(each.partition, each.address, each.worker_number) for each in door.places()]
    return [process.pid for worker in workers if (process := launcher.process_of(worker)) is not None]


def _kill_one(
    row: _Row, door: Door, launcher: LocalLauncher, manager: _Counting, names: Sequence[str]
) -> None:
    """Kill the worker of the first partition, and wait for the placement of an ask that comes right after."""
    killed, *others = names
    begin = time.perf_counter()
    os.kill(_pids(door, launcher)[0], signal.SIGKILL)
    door.update_allocation(_asks(killed, ASKS + SINGLE, 1))
    if others:
        row.others_ms = _singles_ms(door, manager, others, ASKS + SINGLE)
    row.gap_seconds = manager.wait_for(f"{killed}-{ASKS + SINGLE}") - begin
    assert [LinkState.RUNNING] * len(door.places()) == [place.state for place in door.places()]
    door.validate()
    assert manager.doubled == 0


def _say(row: object) -> None:
    sys.stdout.write(f"{row}\n")
    sys.stdout.flush()


def main() -> None:
    """Print one row for each number of partitions, in one process and over workers."""
    prepare_process()
    _say(_HEAD)
    _say("|---|---|---|---|---|---|---|---|")
    for count in [int(each) for each in sys.argv[1:]] or [1, 2, 4]:
        names = [f"part{number}" for number in range(count)]
        row = _Row(f"one process, {count}")
        with Scheduler() as scheduler:
            _measure(row, scheduler, names)
        _say(row)
        row = _Row(f"door, {count}")
        launcher = LocalLauncher(spare_after_seconds=0)  # It is there when the worker is killed.
        with Door(launcher) as door:
            manager = _measure(row, door, names, launcher)
            _kill_one(row, door, launcher, manager, names)
        _say(row)
        row = _Row(f"`licorne door`, {count}")
        server = start_server("--no-rest", name="door")
        with RemoteScheduler(server.address) as client:
            _measure(row, client, names, door=server.process.pid)
        _say(row)
        server.process.terminate()
        server.process.communicate()
    _say(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
