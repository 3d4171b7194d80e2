"""Allocations that only one side knows: the node, or the application."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..state.partition_state import PartitionState


class PlacedOn(NamedTuple):
    """An allocation, by names."""

    application_id: str
    allocation_key: str
    node_id: str


def unknown_to_applications(state: PartitionState, suspects: Iterable[PlacedOn]) -> tuple[PlacedOn, ...]:
    """Return those that are on their node now, and that their application does not have.

    The member of a swap is on its node before it counts for its application, which knows of the swap.
    """
    sides = _Sides(state)
    return tuple(
        placed
        for placed in suspects
        if sides.on_node(placed) and not sides.in_application(placed) and not _is_swapped_in(state, placed)
    )


def unknown_to_nodes(state: PartitionState, suspects: Iterable[PlacedOn]) -> tuple[PlacedOn, ...]:
    """Return those that their application has now, and that their node does not have."""
    sides = _Sides(state)
    return tuple(placed for placed in suspects if sides.in_application(placed) and not sides.on_node(placed))


def _is_swapped_in(state: PartitionState, placed: PlacedOn) -> bool:
    entry = state.entries.get(placed.application_id)
    return entry is not None and bool(entry.application.swaps.onto(placed.allocation_key))


class _Sides:
    """What the nodes and applications of some allocations have; each is asked once."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._nodes: dict[str, frozenset[PlacedOn]] = {}
        self._applications: dict[str, frozenset[PlacedOn]] = {}

    def on_node(self, placed: PlacedOn) -> bool:
        """Return whether the node has the allocation."""
        name = placed.node_id
        if name not in self._nodes:
            node = self._state.nodes.get(name)
            allocations = () if node is None else node.node.facts().allocations
            self._nodes[name] = frozenset(
                PlacedOn(each.ask.application_id, each.ask.allocation_key, name) for each in allocations
            )
        return placed in self._nodes[name]

    def in_application(self, placed: PlacedOn) -> bool:
        """Return whether the application has the allocation."""
        name = placed.application_id
        if name not in self._applications:
            entry = self._state.entries.get(name)
            rows = () if entry is None else entry.application.allocations.all()
            self._applications[name] = frozenset(
                PlacedOn(name, row.allocation.ask.allocation_key, row.allocation.node_id) for row in rows
            )
        return placed in self._applications[name]
