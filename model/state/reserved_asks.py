"""The reservations of a partition, by node and by leaf: what the pass over reserved asks looks up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple, final

from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..resources.resource import Resource
from ..values.allocation import Ask


class ReservedAsk(NamedTuple):
    """An ask that has a reservation, as it is now."""

    entry: ApplicationEntry
    node_id: str
    ask: Ask


@final
class ReservedAsks:
    """The asks of a partition that have a reservation. Owned by the partition."""

    __slots__ = ("_by_node", "_sizes", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[str, ReservedAsk] = {}
        self._by_node: dict[str, dict[str, ReservedAsk]] = {}
        self._sizes: dict[Queue, Counter[Resource]] = {}

    def __len__(self) -> int:
        return len(self.by_key)

    def get(self, allocation_key: str) -> ReservedAsk | None:
        """Return the ask of that key, `None` if it has no reservation."""
        return self.by_key.get(allocation_key)

    def all(self) -> Collection[ReservedAsk]:
        """Return all of them."""
        return self.by_key.values()

    def on_node(self, node_id: str) -> Collection[ReservedAsk]:
        """Return those that a node is reserved for."""
        return self._by_node.get(node_id, {}).values()

    def sizes_by_leaf(self) -> Iterable[tuple[Queue, Collection[Resource]]]:
        """Return the leaves of these asks, each with the sizes of its asks."""
        return self._sizes.items()

    def add(self, reserved: ReservedAsk) -> None:
        """Note a reservation."""
        ask, leaf = reserved.ask, reserved.entry.queue
        key = ask.allocation_key
        assert key not in self.by_key, f"{key} has a reservation: please report"
        self.by_key[key] = reserved
        self._by_node.setdefault(reserved.node_id, {})[key] = reserved
        self._sizes.setdefault(leaf, Counter())[ask.resource] += 1

    def remove(self, allocation_key: str) -> ReservedAsk:
        """Forget a reservation, and return it."""
        reserved = self.by_key.pop(allocation_key)
        on_node = self._by_node[reserved.node_id]
        del on_node[allocation_key]
        if not on_node:
            del self._by_node[reserved.node_id]
        leaf = reserved.entry.queue
        sizes = self._sizes[leaf]
        sizes[reserved.ask.resource] -= 1
        if not sizes[reserved.ask.resource]:
            del sizes[reserved.ask.resource]
        if not sizes:
            del self._sizes[leaf]
        return reserved
