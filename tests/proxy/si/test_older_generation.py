"""What only the older generation says is refused by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from licorne.model.errors import RequestError
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.reading import RequestReader, releases

if TYPE_CHECKING:
    from collections.abc import Callable

IN_ALLOCATION_REQUESTS: Final = {
    "asks (the first is 'a1')": si.AllocationRequest(
        asks=[si.AllocationAsk(allocationKey="a1"), si.AllocationAsk(allocationKey="a2")]
    ),
    "releases.allocationAsksToRelease (the first is 'a1')": si.AllocationRequest(
        releases=si.AllocationReleasesRequest(
            allocationAsksToRelease=[si.AllocationAskRelease(allocationKey="a1")]
        )
    ),
    "releases.allocationsToRelease.UUID ('u2')": si.AllocationRequest(
        releases=si.AllocationReleasesRequest(
            allocationsToRelease=[si.AllocationRelease(allocationKey="k"), si.AllocationRelease(UUID="u2")]
        )
    ),
}

IN_NODE_REQUESTS: Final = {
    "nodes.occupiedResource (of node 'n2')": si.NodeInfo(nodeID="n2", occupiedResource=si.Resource()),
    "nodes.existingAllocations (of node 'n2')": si.NodeInfo(
        nodeID="n2", existingAllocations=[si.Allocation()]
    ),
}


@pytest.mark.parametrize("read", [RequestReader().allocation_submissions, releases])
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
        RequestReader().allocation_submissions(si.AllocationRequest(allocations=allocations))


@pytest.mark.parametrize("field", IN_NODE_REQUESTS)
def test_a_node_request_of_the_older_generation_is_refused(field: str) -> None:
    """The error names the resource manager, the field and the node."""
    request = si.NodeRequest(rmID="rm", nodes=[si.NodeInfo(nodeID="n1"), IN_NODE_REQUESTS[field]])

    with pytest.raises(RequestError, match=re.escape(f"resource manager 'rm' uses {field}: a field of")):
        RequestReader().node_updates(request)
