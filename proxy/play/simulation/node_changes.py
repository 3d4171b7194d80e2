"""The nodes of a simulation while it runs: their past and future events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from ...si import si_pb2 as si
from ...si.api import SchedulerAPI
from .record import SimulationRecord, without_names
from .si_messages import node_request
from .workloads.workload import NodeChange, NodeEvent, SimulatedNode, SimulatedWorkload

_CREATE: Final = si.NodeInfo.CREATE


@final
class NodeChanges:
    """The nodes of one workload, created at the scheduler and changed at their times.

    Args:
        workload: The nodes, and the events that change them.
        api: The scheduler.
        record: The record of the capacity.
        rm_id: The resource manager of the nodes.
    """

    def __init__(
        self, workload: SimulatedWorkload, api: SchedulerAPI, record: SimulationRecord, rm_id: str
    ) -> None:
        self._workload = workload
        self._api = api
        self._record = record
        self._rm_id = rm_id
        self._resources = {node.node_id: node.resources for node in workload.all_nodes()}
        self._events_done = 0
        self._there: set[str] = set()
        """The nodes that the scheduler has accepted."""
        self._is_repeated: dict[str, bool] = {}
        """For each removed node, whether its work is asked for again."""

    def start(self) -> None:
        """Create the nodes that exist from the start."""
        self._send(self._workload.nodes, _CREATE)

    def next_ns(self) -> int | None:
        """Return the time of the next change of nodes, `None` without further changes."""
        events = self._workload.node_events
        return events[self._events_done].at_ns if self._events_done < len(events) else None

    def change(self, now_ns: int) -> None:
        """Send the changes of nodes that are due, in order."""
        while (at_ns := self.next_ns()) is not None and at_ns <= now_ns:
            event = self._workload.node_events[self._events_done]
            self._events_done += 1
            self._apply(event, now_ns)

    def is_asked_again(self, node_id: str) -> bool:
        """Return whether work that the scheduler ended on a node is asked for again."""
        return self._is_repeated.get(node_id, True)

    def answered(self, response: si.NodeResponse, now_ns: int) -> None:
        """Record the capacity of accepted nodes, and the reasons of refused ones."""
        for accepted in response.accepted:
            self._there.add(accepted.nodeID)
            resources = self._resources[accepted.nodeID]
            self._record.capacity_changed(now_ns, resources, 1, node_id=accepted.nodeID)
        for rejected in response.rejected:
            reason = without_names(rejected.reason, rejected.nodeID)
            self._record.remarks.refusals[f"node rejected: {reason}"] += 1

    def _apply(self, event: NodeEvent, now_ns: int) -> None:
        """Carry out one event."""
        match event.change:
            case NodeChange.ADD:
                self._send(event.nodes, _CREATE)
            case NodeChange.DRAIN:
                self._send(event.nodes, si.NodeInfo.DRAIN_NODE)
            case NodeChange.RESTORE:
                is_gone = [node.node_id in self._is_repeated for node in event.nodes]
                drained = [node for node, gone in zip(event.nodes, is_gone, strict=True) if not gone]
                removed = [node for node, gone in zip(event.nodes, is_gone, strict=True) if gone]
                for node in removed:
                    del self._is_repeated[node.node_id]
                self._send(drained, si.NodeInfo.DRAIN_TO_SCHEDULABLE)
                self._send(removed, _CREATE)
            case NodeChange.REMOVE:
                for node in event.nodes:
                    self._is_repeated[node.node_id] = event.is_repeated
                    if node.node_id in self._there:
                        self._there.remove(node.node_id)
                        self._record.capacity_changed(now_ns, node.resources, -1, node_id=node.node_id)
                self._send(event.nodes, si.NodeInfo.DECOMISSION)

    def _send(self, nodes: Iterable[SimulatedNode], action: si.NodeInfo.ActionFromRM) -> None:
        """Send one request about nodes, if there are any."""
        request = node_request(self._rm_id, nodes, action)
        if request.nodes:
            self._api.update_node(request)
