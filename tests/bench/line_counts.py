"""What an ask of the bench costs in lines and calls of Python: exact, on any machine and under any load.

`make lines` prints both for the cycles of an ask, and for the whole ask, from the request to the callback, on
the engine `direct`. Of `f_lock` a release belongs to each ask.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from figures import Gauges
from recorder import Goal, Recorder, recorder_for
from support.proxy.counted_lines import Count, package_counts
from workload_requests import (
    application_request,
    ask_requests,
    node_request,
    placement_request,
    registration_request,
    release_request,
)
from workloads import BenchWorkload, Course, workload_named

from licorne import Scheduler
from licorne.model.scheduling.cycle import run_cycle
from licorne.proxy.si import si_pb2 as si

NAMES: Final = ("u1000", "a", "b", "e_fair", "f_lock", "k_pods")


def counts_of(workload: BenchWorkload) -> tuple[int, Count, list[Count]]:
    """Run a workload; return how many asks were placed, what they cost in all, and what their cycles cost."""
    with Scheduler(engine="direct") as scheduler:
        recorder = recorder_for(workload, Gauges(), scheduler.update_allocation)
        scheduler.register_resource_manager(registration_request(workload), recorder)
        scheduler.update_node(node_request(workload))
        scheduler.update_application(application_request(workload))
        scheduler.update_allocation(placement_request(workload))
        scheduler.run_until_idle()
        requests = ask_requests(workload, 0)
        if workload.course is Course.CHURN_LOCKED:
            _send(scheduler, [*requests, *ask_requests(workload, 1)])()
            scheduler.run_until_idle()
            asks = [ask for request in requests for ask in request.allocations]
            requests = [release_request(ask.applicationID, ask.allocationKey) for ask in asks]
        before = _placed(recorder)
        whole, cycles = package_counts(_send(scheduler, requests), run_cycle.__code__)
        return _placed(recorder) - before, whole, cycles


def _send(scheduler: Scheduler, requests: Sequence[si.AllocationRequest]) -> Callable[[], None]:
    def send() -> None:
        for request in requests:
            scheduler.update_allocation(request)
            scheduler.run_until_idle()

    return send


def _placed(recorder: Recorder) -> int:
    assert recorder.has_reached(Goal()), "something happened that makes the run worthless"
    return recorder.progress().allocations


def main(arguments: Sequence[str]) -> int:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=NAMES)
    sys.stdout.write(
        f"{'':8}{'a cycle':>22}{'a whole ask':>22}\n{'':8}" + 2 * f"{'lines':>11}{'calls':>11}" + "\n"
    )
    for name in parser.parse_args(arguments).workloads:
        asks, whole, cycles = counts_of(workload_named(name))
        lines, calls = sum(cycle.lines for cycle in cycles), sum(cycle.calls for cycle in cycles)
        figures = (lines, calls, whole.lines, whole.calls)
        sys.stdout.write(f"{name:8}" + "".join(f"{figure / asks:11.1f}" for figure in figures) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
