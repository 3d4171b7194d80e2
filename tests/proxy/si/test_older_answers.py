"""The callbacks of a resource manager of the older generation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Allocation, Ask
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationRejection,
    AllocationsRejected,
    AllocationsReleased,
    Announcement,
    ApplicationChanged,
    AskRelease,
    Release,
    SchedulingStateChanged,
    TerminationType,
)
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager
from licorne.proxy.si.writing import dispatch

RELEASE = Release(
    partition="[rm]default", application_id="app", allocation_key="k", termination=TerminationType.TIMEOUT
)


class Ear(ResourceManager):
    """Keeps its callbacks."""

    def __init__(self) -> None:
        self.heard: list[si.AllocationResponse | si.ApplicationResponse] = []
        self.hints: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.heard.append(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.heard.append(response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self.hints.append(request.allocationKey)


def answers_of(announcement: Announcement, *, older: bool = True) -> list[si.AllocationResponse]:
    """Return what a resource manager hears."""
    ear = Ear()
    dispatch(announcement, ear, older=older)
    return [entry for entry in ear.heard if isinstance(entry, si.AllocationResponse)]


def placed(key: str) -> AllocationPlaced:
    ask = Ask(allocation_key=key, application_id="app", resource=Resource({"vcore": 1}), created_at_ns=0)
    return AllocationPlaced(Allocation(ask, "n1", 0))


@pytest.mark.parametrize(
    ("key", "uuid"), [("k", "k"), ("k#allocation-2", "k#allocation-2"), ("k#allocation:u", "u")]
)
def test_an_allocation_has_the_key_of_its_ask_and_a_uuid(key: str, uuid: str) -> None:
    """When it is placed, and when it ends; by the UUID it is released. The current generation hears none."""
    ended = AllocationsReleased((replace(RELEASE, allocation_key=key),))
    (new,) = answers_of(placed(key))[0].new
    (released,) = answers_of(ended)[0].released
    (current,) = answers_of(placed(key), older=False)[0].new

    assert ("k", uuid) == (new.allocationKey, new.UUID) == (released.allocationKey, released.UUID)
    assert (key, "") == (current.allocationKey, current.UUID)


@pytest.mark.parametrize("key", ["k", "k#allocation:u"])
def test_a_rejection_is_sent_in_both_generations(key: str) -> None:
    """With the same words, and the key of the ask."""
    (response,) = answers_of(AllocationsRejected((AllocationRejection(key, "app", "because"),)))

    (older,), (current,) = response.rejected, response.rejectedAllocations
    words = ("k", "app", "because")
    assert words == (older.allocationKey, older.applicationID, older.reason)
    assert words == (current.allocationKey, current.applicationID, current.reason)


@pytest.mark.parametrize(
    "announcement",
    [
        AllocationsReleased(()),
        AllocationsRejected(()),
        ApplicationChanged("app", "Running", 1, "runApplication"),
    ],
)
def test_what_both_generations_read_alike_is_sent_alike(announcement: Announcement) -> None:
    """What answers nothing is not sent, and applications have one form."""
    older, current = Ear(), Ear()
    dispatch(announcement, older, older=True)
    dispatch(announcement, current)

    assert current.heard == older.heard


def given_up(key: str) -> AskRelease:
    return AskRelease(
        partition="[rm]default",
        application_id="app",
        allocation_key=key,
        termination=TerminationType.TIMEOUT,
        message="why",
    )


def test_an_ask_that_was_given_up_is_no_allocation() -> None:
    """The older generation has a list for it; the current one has it among the allocations that end."""
    announcement = AllocationsReleased((given_up("ask"), RELEASE))
    (older,), (current,) = answers_of(announcement), answers_of(announcement, older=False)

    expected = si.AllocationAskRelease(
        partitionName="[rm]default",
        applicationID="app",
        allocationKey="ask",
        terminationType=si.TIMEOUT,
        message="why",
    )
    assert [expected] == list(older.releasedAsks)
    assert ["k"] == [entry.allocationKey for entry in older.released]
    assert ["ask", "k"] == [entry.allocationKey for entry in current.released]
    assert [] == list(current.releasedAsks)


def test_an_ask_that_was_given_up_is_named_once() -> None:
    """However many of its allocations were still wanted."""
    keys = ("k", "k#allocation-2", "k#allocation:u", "other")

    (answer,) = answers_of(AllocationsReleased(tuple(map(given_up, keys))))

    assert ["k", "other"] == [entry.allocationKey for entry in answer.releasedAsks]


@pytest.mark.parametrize(("older", "key"), [(True, "k"), (False, "k#allocation-2")])
def test_a_hint_for_an_autoscaler_names_the_ask(older: bool, key: str) -> None:  # noqa: FBT001 - a table
    """A key of the current generation is the resource manager's own, whatever is in it."""
    ear = Ear()

    dispatch(SchedulingStateChanged("app", "k#allocation-2", "no room"), ear, older=older)

    assert [key] == ear.hints
