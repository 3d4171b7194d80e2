"""Work of bob that is preempted for the guarantee of another queue, on a stepped scheduler."""

from __future__ import annotations

from typing import Final

from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import ResourceManager, Scheduler

SECOND_NS: Final = 10**9
GUARANTEED: Final = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: leaf}, {name: entitled, resources: {guaranteed: {memory: 100}}}]
"""


def start_victim(scheduler: Scheduler) -> None:
    """Register a manager whose node is full: `victim` of `app` in `root.leaf` uses 90 of 100."""
    scheduler.register("rm", ResourceManager(), configuration=GUARANTEED)
    scheduler.update_node(node_request("n1"))
    scheduler.update_application(application_request("app"))
    scheduler.update_allocation(ask_request("victim", memory=90))
    scheduler.run_until_idle()


def preempt(scheduler: Scheduler, after_seconds: int) -> None:
    """Preempt it for `ask` of `urgent` in `root.entitled`, when it has run for so long."""
    scheduler.advance_to(scheduler.now_ns() + after_seconds * SECOND_NS)
    scheduler.update_application(application_request("urgent", queue="root.entitled"))
    request = ask_request("ask", application="urgent", memory=80)
    request.allocations[0].preemptionPolicy.allowPreemptOther = True
    scheduler.update_allocation(request)
    scheduler.run_until_idle()
    scheduler.advance_to(scheduler.now_ns() + 60 * SECOND_NS)
    scheduler.run_until_idle()
