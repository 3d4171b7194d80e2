"""How long a state dump keeps a partition from scheduling: workload `d`, dumped while its asks are placed.

    python tests/bench/state_dumps.py

It prints the longest turn of a partition in which something was copied for the dump, in processor time, and
the longest time from one allocation to the next, as the resource manager sees it, during the dump and before.
The garbage collector is off: it stops everything for longer than any turn, with and without a dump.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import threading
from time import perf_counter, thread_time
from typing import Any

from workload_requests import (
    application_request,
    ask_requests,
    node_request,
    registration_request,
)
from workloads import workload_named

from licorne import ResourceManager, Scheduler
from licorne.model.partition import Partition
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.dumps import state_dump_file

_BEFORE = 50_000
"""How many asks are placed before the dump begins."""


class _Times(ResourceManager):
    """Notes when each allocation came."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.times += [perf_counter()] * len(response.new)

    def longest_gap(self, start: float, end: float) -> float:
        """Return the longest time between two allocations within a period, in seconds."""
        inside = [start, *(time for time in self.times if start <= time <= end)]
        return max(later - earlier for earlier, later in itertools.pairwise(inside))


def _time_turns() -> list[tuple[float, str]]:
    """Have every question to the reports of a partition timed, in processor time of the partition's turn."""
    turns: list[tuple[float, str]] = []

    def timed(method: Any) -> Any:
        @functools.wraps(method)
        def run(*arguments: Any, **named: Any) -> Any:
            began = thread_time()
            try:
                return method(*arguments, **named)
            finally:
                turns.append((thread_time() - began, getattr(arguments[1], "__name__", "?")))

        return run

    Partition.read = timed(Partition.read)  # type: ignore[method-assign]
    return turns


def main() -> None:
    """Measure once."""
    turns = _time_turns()
    workload = workload_named("d")
    manager = _Times()
    sys.setswitchinterval(0.001)  # As `licorne serve` does.
    gc.disable()
    with Scheduler() as scheduler:
        scheduler.register_resource_manager(registration_request(workload), manager)
        scheduler.update_node(node_request(workload))
        scheduler.update_application(application_request(workload))
        requests = [
            request for wave in range(workload.wave_count) for request in ask_requests(workload, wave)
        ]
        began = perf_counter()

        def send() -> None:
            for request in requests:
                scheduler.update_allocation(request)

        sender = threading.Thread(target=send)
        sender.start()
        while len(manager.times) < _BEFORE:
            threading.Event().wait(0.01)
        start = perf_counter()
        turns.clear()
        with state_dump_file(scheduler) as file:
            end = perf_counter()
            size = file.seek(0, 2)
        placed = sum(start <= time <= end for time in manager.times)
        sender.join()
        before, during = manager.longest_gap(began, start), manager.longest_gap(start, end)
        seconds, name = max(turns)
        print(f"before: {_BEFORE / (start - began):,.0f} placed a second, longest gap {before * 1000:.1f} ms")
        print(f"dump: {end - start:.2f} s, {size / 2**20:.1f} MiB, {len(turns)} turns")
        print(f"longest turn: {seconds * 1000:.1f} ms of processor time ({name})")
        pace = placed / (min(end, manager.times[-1]) - start)
        print(f"meanwhile: {pace:,.0f} placed a second, longest gap {during * 1000:.1f} ms")


if __name__ == "__main__":
    main()
