"""The callbacks of a resource manager of the older generation."""

from __future__ import annotations

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

ASK = Ask(allocation_key="k", application_id="app", resource=Resource({"vcore": 1}), created_at_ns=0)
RELEASE = Release(
    partition="[rm]default", application_id="app", allocation_key="k", termination=TerminationType.TIMEOUT
)
ALL: list[Announcement] = [
    AllocationPlaced(Allocation(ASK, "n1", 0)),
    AllocationsReleased((RELEASE,)),
    AllocationsRejected((AllocationRejection("k", "app", "because"),)),
    AllocationsReleased(()),
    AllocationsRejected(()),
    ApplicationChanged("app", "Running", 1, "runApplication"),
]


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


def test_a_placement_has_its_key_as_its_uuid() -> None:
    """By it the allocation is released."""
    (response,) = answers_of(ALL[0])

    assert [("k", "k")] == [(entry.allocationKey, entry.UUID) for entry in response.new]


def test_a_release_names_the_uuid() -> None:
    """Beside the key, which the current generation names."""
    (response,) = answers_of(ALL[1])

    assert [("k", "k")] == [(entry.allocationKey, entry.UUID) for entry in response.released]


def test_a_rejection_is_sent_in_both_generations() -> None:
    """With the same words."""
    (response,) = answers_of(ALL[2])

    (older,), (current,) = response.rejected, response.rejectedAllocations
    words = ("k", "app", "because")
    assert words == (older.allocationKey, older.applicationID, older.reason)
    assert words == (current.allocationKey, current.applicationID, current.reason)


@pytest.mark.parametrize("announcement", ALL[3:])
def test_what_both_generations_read_alike_is_sent_alike(announcement: Announcement) -> None:
    """What answers nothing is not sent, and applications have one form."""
    older, current = Ear(), Ear()
    dispatch(announcement, older, older=True)
    dispatch(announcement, current)

    assert current.heard == older.heard


def test_the_current_generation_hears_no_uuid() -> None:
    """Nothing that it does not look for."""
    (response,) = answers_of(ALL[0], older=False)

    assert [""] == [entry.UUID for entry in response.new]


def test_an_ask_that_was_given_up_is_no_allocation() -> None:
    """The older generation has a list for it; the current one has it among the allocations that end."""
    names = ("[rm]default", "app", "ask", si.TIMEOUT, "why")
    ask = AskRelease(
        partition="[rm]default",
        application_id="app",
        allocation_key="ask",
        termination=TerminationType.TIMEOUT,
        message="why",
    )

    (older,) = answers_of(AllocationsReleased((ask, RELEASE)))
    (current,) = answers_of(AllocationsReleased((ask, RELEASE)), older=False)

    (given_up,) = older.releasedAsks
    assert names == (
        given_up.partitionName,
        given_up.applicationID,
        given_up.allocationKey,
        given_up.terminationType,
        given_up.message,
    )
    assert ["k"] == [entry.allocationKey for entry in older.released]
    assert (["ask", "k"], 0) == (
        [entry.allocationKey for entry in current.released],
        len(current.releasedAsks),
    )


PARTS = ("k", "k#allocation-2", "k#allocation:u")
"""The keys of the model for three allocations of the ask `k`."""
NAMES = [("k", "k"), ("k", "k#allocation-2"), ("k", "u")]
"""What its resource manager knows them by: the key and the UUID."""


def of_part(key: str) -> list[Announcement]:
    """Return what may be said about an allocation, or an ask, with a key of the model."""
    ask = Ask(allocation_key=key, application_id="app", resource=Resource({"vcore": 1}), created_at_ns=0)
    release = Release(
        partition="p", application_id="app", allocation_key=key, termination=TerminationType.TIMEOUT
    )
    return [AllocationPlaced(Allocation(ask, "n1", 0)), AllocationsReleased((release,))]


def test_allocations_of_one_ask_have_its_key_and_a_uuid_each() -> None:
    """When they are placed, and when they end."""
    placed = [answers_of(of_part(key)[0])[0].new[0] for key in PARTS]
    ended = [answers_of(of_part(key)[1])[0].released[0] for key in PARTS]

    assert NAMES == [(entry.allocationKey, entry.UUID) for entry in placed]
    assert NAMES == [(entry.allocationKey, entry.UUID) for entry in ended]


def test_an_ask_that_was_given_up_is_named_once() -> None:
    """However many of its allocations were still wanted."""
    releases = tuple(
        AskRelease(
            partition="p", application_id="app", allocation_key=key, termination=TerminationType.TIMEOUT
        )
        for key in (*PARTS, "other")
    )

    (answer,) = answers_of(AllocationsReleased(releases))

    assert ["k", "other"] == [entry.allocationKey for entry in answer.releasedAsks]


def test_a_rejected_allocation_has_the_key_of_its_ask() -> None:
    """In both lists."""
    (answer,) = answers_of(AllocationsRejected((AllocationRejection("k#allocation:u", "app", "because"),)))

    assert ["k"] == [entry.allocationKey for entry in answer.rejected]
    assert ["k"] == [entry.allocationKey for entry in answer.rejectedAllocations]


@pytest.mark.parametrize(("older", "key"), [(True, "k"), (False, "k#allocation-2")])
def test_a_hint_for_an_autoscaler_names_the_ask(older: bool, key: str) -> None:  # noqa: FBT001 - a table
    """A key of the current generation is the resource manager's own, whatever is in it."""
    ear = Ear()

    dispatch(SchedulingStateChanged("app", "k#allocation-2", "no room"), ear, older=older)

    assert [key] == ear.hints
