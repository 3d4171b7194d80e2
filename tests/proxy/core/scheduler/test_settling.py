"""A stepped scheduler settles in one pass where its callbacks only listen."""

from __future__ import annotations

from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

ONE_LEAF = """
partitions:
- name: default
  queues: [{name: root, submitacl: "*", queues: [{name: leaf}]}]
"""


class _Asking(ResourceManager):
    """Asks once more when something is placed, from inside the callback."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.placed: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for allocation in response.new:
            self.placed.append(allocation.allocationKey)
            if len(self.placed) == 1:
                self.scheduler.update_allocation(ask_request("second", application="a"))


def _with_one_ask() -> tuple[Scheduler, _Asking]:
    scheduler = Scheduler(engine="direct")
    manager = _Asking(scheduler)
    scheduler.register_resource_manager(
        si.RegisterResourceManagerRequest(rmID="rm", config=ONE_LEAF), manager
    )
    scheduler.update_node(node_request("n"))
    scheduler.update_application(application_request("a"))
    scheduler.update_allocation(ask_request("first", application="a"))
    return scheduler, manager


def test_a_scheduler_that_settles_has_delivered_what_it_placed() -> None:
    """And what a callback asked for meanwhile is placed the next time."""
    scheduler, manager = _with_one_ask()

    assert (1, ["first"]) == (scheduler.settle(), manager.placed)
    assert (1, ["first", "second"]) == (scheduler.settle(), manager.placed)
    assert 0 == scheduler.settle()


def test_a_scheduler_that_runs_until_idle_places_what_callbacks_ask_for_as_well() -> None:
    """Nothing is left for the next time."""
    scheduler, manager = _with_one_ask()

    assert (2, ["first", "second"]) == (scheduler.run_until_idle(), manager.placed)
