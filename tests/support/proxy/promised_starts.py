"""A cluster in which one job is promised a start, another would delay it, and a third has no time."""

from __future__ import annotations

from typing import Final

from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import ResourceManager, Scheduler

SECOND_NS: Final = 1_000_000_000
PROMISING: Final = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {backfill.reservations: "1"}
        queues: [{name: leaf}]
"""


def promise_starts(scheduler: Scheduler) -> None:
    """Register a manager with a node of 10: `now` has 6 for an hour, `big` waits for 8, `small` for 4.

    `wide` wants more than there is: it has no expected start.
    """
    scheduler.register("rm", ResourceManager(), configuration=PROMISING)
    scheduler.update_node(node_request("n1", memory=10))
    for name, memory, walltime in (("now", 6, "1h"), ("big", 8, "1h"), ("small", 4, "2h"), ("wide", 11, "")):
        send_job(scheduler, name, memory, walltime)


def send_job(scheduler: Scheduler, name: str, memory: int, walltime: str) -> None:
    """Submit an application with one ask of its name, and schedule."""
    scheduler.update_application(application_request(name))
    request = ask_request(name, application=name, memory=memory)
    if walltime:
        request.allocations[0].allocationTags["walltime"] = walltime
    scheduler.update_allocation(request)
    scheduler.run_until_idle()
