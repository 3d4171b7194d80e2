"""Asks of the older generation are read; its other fields that are not supported are refused by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from licorne.model.errors import RequestError
from licorne.model.resources.resource import Resource
from licorne.model.values.messages import (
    AllocationSubmission,
    AskRelease,
    ExecutionLimit,
    Release,
    TerminationType,
)
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.older_answers import Generation
from licorne.proxy.si.older_generation import execution_limits
from licorne.proxy.si.reading import RequestReader, releases

if TYPE_CHECKING:
    from collections.abc import Callable

IN_ALLOCATION_REQUESTS: Final = {
    "asks.maxAllocations (2 of ask 'a2')": si.AllocationRequest(
        asks=[si.AllocationAsk(allocationKey="a1"), si.AllocationAsk(allocationKey="a2", maxAllocations=2)]
    ),
    "asks.maxAllocations (-1 of ask 'a1')": si.AllocationRequest(
        asks=[si.AllocationAsk(allocationKey="a1", maxAllocations=-1)]
    ),
    "releases.allocationsToRelease.UUID ('u2' of 'k2')": si.AllocationRequest(
        releases=si.AllocationReleasesRequest(
            allocationsToRelease=[
                si.AllocationRelease(allocationKey="k"),
                si.AllocationRelease(allocationKey="k2", UUID="u2"),
            ]
        )
    ),
}

IN_NODE_REQUESTS: Final = {
    "nodes.existingAllocations (of node 'n2')": si.NodeInfo(
        nodeID="n2", existingAllocations=[si.Allocation()]
    ),
}


def _submissions(request: si.AllocationRequest) -> list[AllocationSubmission]:
    return RequestReader().allocation_submissions(request, Generation())


def _releases(request: si.AllocationRequest) -> tuple[Release, ...]:
    return releases(request, Generation())


@pytest.mark.parametrize("read", [_submissions, _releases])
@pytest.mark.parametrize("field", IN_ALLOCATION_REQUESTS)
def test_an_allocation_request_of_the_older_generation_is_refused_whichever_part_is_read(
    read: Callable[[si.AllocationRequest], object], field: str
) -> None:
    """The error names the resource manager, the field and its first value."""
    request = si.AllocationRequest(rmID="rm", allocations=[si.Allocation(allocationKey="fine")])
    request.MergeFrom(IN_ALLOCATION_REQUESTS[field])

    with pytest.raises(RequestError, match=re.escape(f"resource manager 'rm' uses {field}: a field of")):
        read(request)


def test_an_allocation_with_a_name_of_the_scheduler_is_refused() -> None:
    """The older generation's second name of an allocation is not overlooked."""
    allocations = [si.Allocation(allocationKey="k"), si.Allocation(allocationKey="l", UUID="u")]

    with pytest.raises(RequestError, match=re.escape("allocations.UUID ('u')")):
        RequestReader().allocation_submissions(si.AllocationRequest(allocations=allocations), Generation())


@pytest.mark.parametrize("field", IN_NODE_REQUESTS)
def test_a_node_request_of_the_older_generation_is_refused(field: str) -> None:
    """The error names the resource manager, the field and the node."""
    request = si.NodeRequest(rmID="rm", nodes=[si.NodeInfo(nodeID="n1"), IN_NODE_REQUESTS[field]])

    with pytest.raises(RequestError, match=re.escape(f"resource manager 'rm' uses {field}: a field of")):
        RequestReader().node_updates(request, Generation())


def _older(*asks: si.AllocationAsk) -> si.AllocationRequest:
    return si.AllocationRequest(rmID="rm", asks=asks)


def test_an_ask_of_the_older_generation_is_read_whole() -> None:
    """It says what an ask of the current one says, but for the limit of its allocation."""
    ask = si.AllocationAsk(
        allocationKey="k",
        applicationID="app",
        partitionName="gpu",
        resourceAsk=si.Resource(resources={"vcore": si.Quantity(value=1000)}),
        maxAllocations=1,
        priority=-7,
        executionTimeoutMilliSeconds=5_000,
        tags={"z": "1", "a": "2"},
        taskGroupName="tg",
        placeholder=True,
        Originator=True,
        preemptionPolicy=si.PreemptionPolicy(allowPreemptSelf=True, allowPreemptOther=True),
    )

    expected = AllocationSubmission(
        allocation_key="k",
        application_id="app",
        partition="[rm]gpu",
        resource=Resource({"vcore": 1000}),
        priority=-7,
        tags={"a": "2", "z": "1"},
        node_id="",
        task_group_name="tg",
        placeholder=True,
        originator=True,
        allow_preempt_self=True,
        allow_preempt_other=True,
    )
    assert [expected] == RequestReader().allocation_submissions(_older(ask), Generation())
    assert (
        ExecutionLimit(partition="[rm]gpu", application_id="app", allocation_key="k", timeout_ms=5_000),
    ) == execution_limits(_older(ask))


@pytest.mark.parametrize("count", [0, 1])
def test_an_older_ask_is_for_one_allocation(count: int) -> None:
    """Also one that does not say how many: on the wire that is zero."""
    request = _older(si.AllocationAsk(allocationKey="k", maxAllocations=count))

    (submission,) = RequestReader().allocation_submissions(request, Generation())

    assert ("k", "[rm]default", 0) == (submission.allocation_key, submission.partition, len(submission.tags))


def test_every_older_ask_says_how_long_its_allocation_may_run() -> None:
    """Also where that is for ever: a limit that was there is taken away by it."""
    request = _older(
        si.AllocationAsk(allocationKey="k"),
        si.AllocationAsk(allocationKey="l", executionTimeoutMilliSeconds=-1),
    )

    assert [0, -1] == [limit.timeout_ms for limit in execution_limits(request)]


def test_an_older_placeholder_without_a_task_group_is_a_plain_ask() -> None:
    """As that generation says; in the current one it is rejected."""
    request = _older(si.AllocationAsk(allocationKey="k", placeholder=True))

    (submission,) = RequestReader().allocation_submissions(request, Generation())

    assert not submission.placeholder


def test_asks_of_both_generations_come_in_one_request() -> None:
    """The older ones first."""
    request = _older(si.AllocationAsk(allocationKey="old"))
    request.allocations.add(allocationKey="new")

    keys = [entry.allocation_key for entry in RequestReader().allocation_submissions(request, Generation())]

    assert ["old", "new"] == keys


@pytest.mark.parametrize(
    "release",
    [
        si.AllocationRelease(UUID="k"),
        si.AllocationRelease(UUID="k", allocationKey="k"),
        si.AllocationRelease(allocationKey="k"),
    ],
)
def test_a_release_names_its_allocation_by_key_or_by_uuid(release: si.AllocationRelease) -> None:
    """The key is given as the UUID."""
    request = si.AllocationRequest(rmID="rm")
    request.releases.allocationsToRelease.append(release)

    (read,) = releases(request, Generation())

    assert "k" == read.allocation_key


def test_releases_of_asks_are_read_after_those_of_allocations() -> None:
    """In the full name of their partition; their resource manager is one of the older generation."""
    request, generation = si.AllocationRequest(rmID="rm"), Generation()
    request.releases.allocationAsksToRelease.add(applicationID="app", allocationKey="k", partitionName="gpu")
    request.releases.allocationsToRelease.add(applicationID="app", allocationKey="l")

    first, second = releases(request, generation)

    expected = AskRelease(
        partition="[rm]gpu",
        application_id="app",
        allocation_key="k",
        termination=TerminationType.STOPPED_BY_RM,
    )
    assert ("l", expected, True) == (first.allocation_key, second, generation.is_older)


def test_a_release_of_asks_names_an_ask_or_an_application() -> None:
    """One that names neither would end everything: the request is refused."""
    request = si.AllocationRequest(rmID="rm")
    request.releases.allocationAsksToRelease.add(partitionName="gpu")

    with pytest.raises(RequestError, match="with neither allocationKey nor applicationID"):
        releases(request, Generation())
