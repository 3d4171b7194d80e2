"""Jobs that have room and wait, since they would delay a promised start: what lets them start."""

from __future__ import annotations

import pytest
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    node_request,
    release_request,
)
from support.proxy.promised_starts import PROMISING

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si


class _Manager(ResourceManager):
    """A resource manager that keeps what was placed."""

    def __init__(self) -> None:
        self.placed: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.placed += [allocation.allocationKey for allocation in response.new]


def _submit(scheduler: Scheduler, name: str, memory: int, walltime: str, application: str = "") -> None:
    request = ask_request(name, application=application or name, memory=memory)
    request.allocations[0].allocationTags["walltime"] = walltime
    scheduler.update_application(application_request(application or name))
    scheduler.update_allocation(request)
    scheduler.run_until_idle()


def _waiting(scheduler: Scheduler, manager: _Manager) -> None:
    """Let `big` be promised the room of `early` in an hour, and `long` wait, which would delay it."""
    scheduler.register("rm", manager, configuration=PROMISING)
    scheduler.update_node(node_request("node", memory=100))
    _submit(scheduler, "early", 50, "1h")
    _submit(scheduler, "big", 80, "1h")
    _submit(scheduler, "long", 30, "2h")
    assert ["early"] == manager.placed


@pytest.mark.parametrize(("walltime", "placed"), [("30m", ["early", "late"]), ("3h", ["early"])])
def test_another_job_starts_if_it_is_shorter_than_those_that_wait(walltime: str, placed: list[str]) -> None:
    manager = _Manager()
    with Scheduler(engine="direct") as scheduler:
        _waiting(scheduler, manager)
        _submit(scheduler, "late", 30, walltime)

        assert placed == manager.placed


def test_a_job_starts_that_is_to_end_sooner_than_it_was() -> None:
    manager = _Manager()
    with Scheduler(engine="direct") as scheduler:
        _waiting(scheduler, manager)
        _submit(scheduler, "long", 30, "30m")

        assert ["early", "long"] == manager.placed


def test_a_job_starts_once_the_promised_one_is_withdrawn() -> None:
    manager = _Manager()
    with Scheduler(engine="direct") as scheduler:
        _waiting(scheduler, manager)
        scheduler.update_application(
            si.ApplicationRequest(
                rmID="rm", remove=[si.RemoveApplicationRequest(applicationID="big", partitionName="default")]
            )
        )
        scheduler.run_until_idle()

        assert ["early", "long"] == manager.placed


def test_a_job_starts_when_work_ends_early() -> None:
    manager = _Manager()
    with Scheduler(engine="direct") as scheduler:
        _waiting(scheduler, manager)
        scheduler.update_allocation(release_request("early", application="early"))
        scheduler.run_until_idle()

        assert ["early", "big"] == manager.placed
