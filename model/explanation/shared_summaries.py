"""Summaries of the nodes that explanations share, until a node changes.

Thousands of asks may wait that are of a few sizes and are refused by the same nodes. To ask every node takes
most of the time of an explanation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, final

from ..nodes.order import NodeOrder
from ..resources.resource import Resource
from ..state.partition_state import PartitionState
from .blockers import NodeSummary, summarise

_KEPT_MAX: Final = 64
"""How many summaries of a partition are kept; at the bound all are made again."""
_Key: TypeAlias = "tuple[Resource, frozenset[tuple[str, str]]]"


@final
class SharedSummaries:
    """The summaries by partition, size, and the nodes that the resource manager refuses, with the reasons."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[NodeOrder, tuple[int, int], dict[_Key, NodeSummary]]] = {}
        """By the name of the partition: its nodes, the counts of their changes, and the summaries since."""

    def of(self, state: PartitionState, resource: Resource, refused: Mapping[str, str]) -> NodeSummary:
        """Return the summary of the nodes for an ask without a reserved node.

        Args:
            state: The partition; nothing changes it meanwhile.
            resource: The request of the ask.
            refused: The nodes that the resource manager refuses to the ask, and why.
        """
        nodes, counts = state.nodes, (state.nodes.changes, len(state.reserved))
        kept = self._kept.get(state.name)
        if kept is None or kept[0] is not nodes or kept[1] != counts or len(kept[2]) >= _KEPT_MAX:
            kept = self._kept[state.name] = (nodes, counts, {})
        key = (resource, frozenset(refused.items()))
        summary = kept[2].get(key)
        if summary is None:
            summary = kept[2][key] = summarise(nodes, resource, refused=refused)
        return summary
