"""The resource manager that the scheduler sees: it judges nodes itself, and hands everything else over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, final

import msgspec

from ....model.errors import LicorneError
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ..objects import ObjectMeta, Pod
from ..predicates.verdicts import PodFilters
from .cache import ClusterCache
from .state_dump import state_dump

__all__ = ["NodeRefusedError", "PodManager"]


_GONE: Final = Pod(metadata=ObjectMeta())
"""Stands for a victim that is gone: its end changes nothing."""


class NodeRefusedError(LicorneError):
    """A filter refuses a node for a pod; the text says which, and why."""


@final
class PodManager(ResourceManager):
    """The callback; the scheduler calls it on threads of its own.

    Args:
        cache: What the filters read.
        hand_over: Is called with the name of what has been said, and the message.
    """

    def __init__(self, cache: ClusterCache, hand_over: Callable[[str, object], None]) -> None:
        self._cache = cache
        self._filters = PodFilters(cache)
        self._lock = threading.Lock()
        """One thread at a time asks the filters; the engine `threads` calls from several."""
        self._hand_over = hand_over

    def update_node(self, response: si.NodeResponse) -> None:
        """Hand over which nodes were rejected."""
        if response.rejected:
            self._hand_over("nodes", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Hand over what has become of applications."""
        self._hand_over("applications", response)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Hand over what was placed, what is to end and what was rejected."""
        self._hand_over("allocations", response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Hand over why an ask is not placed."""
        self._hand_over("scheduling state", request)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Hand over what has happened."""
        self._hand_over("events", events)

    def get_state_dump(self) -> str:
        """Return the cluster as it is known here, as a JSON document."""
        return msgspec.json.encode(state_dump(self._cache)).decode()

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Refuse a node for a pod if a filter does.

        Raises:
            NodeRefusedError: A filter refuses it, or the pod or the node is gone.
        """
        pod = self._cache.pods.get(args.allocationKey)
        if pod is None:
            raise NodeRefusedError(f"pod {args.allocationKey} is gone")
        if args.nodeID not in self._cache.nodes:
            raise NodeRefusedError(f"node {args.nodeID} is gone")
        with self._lock:
            reason = self._filters.why_refused(pod, args.nodeID, allocate=args.allocate)
        if reason is not None:
            raise NodeRefusedError(reason)

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> si.PreemptionPredicatesResponse:
        """Return how many victims have to end before a pod may run on a node."""
        pod = self._cache.pods.get(args.allocationKey)
        victims = [self._cache.pods.get(key, _GONE) for key in args.preemptAllocationKeys]
        if pod is None or args.nodeID not in self._cache.nodes:
            return si.PreemptionPredicatesResponse(success=False, index=-1)
        with self._lock:
            index = self._filters.first_index_that_fits(pod, args.nodeID, victims, args.startIndex)
        return si.PreemptionPredicatesResponse(
            success=index is not None, index=-1 if index is None else index
        )
