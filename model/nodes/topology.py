"""Domains of nodes, such as blocks and racks: which one a gang gets, and which nodes of it.

The levels are attributes of nodes, the widest first. A domain is known by its *path*: the values of these
attributes down to its own level; the root, with the empty path, has all nodes. A node without an attribute is
in no domain of that level, but it is in the domains above.

The *slots* of a node are the members that it has room for, the slots of a domain the sum of its nodes'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias, final

from ..values.domains import DomainTerms
from .entry import NodeEntry

Path: TypeAlias = "tuple[str, ...]"


@final
class Topology:
    """The domains of the nodes of a partition. Owned by the partition.

    Args:
        levels: The attributes of nodes that name their domains, the widest level first.
    """

    __slots__ = ("_parents", "levels", "paths")

    def __init__(self, levels: Sequence[str] = ()) -> None:
        self.levels = tuple(levels)
        self.paths: dict[str, Path] = {}
        """The path of the narrowest domain of each node; a missing attribute is the empty text."""
        self._parents: dict[tuple[int, str], tuple[Path, int]] = {}
        """Of each domain below the first level, by the place of its level and its name: the path above it,
        and the number of its nodes."""

    @staticmethod
    def of(levels: Sequence[str], nodes: Iterable[NodeEntry]) -> Topology:
        """Return the domains of nodes that are there already; a node that is refused is in none."""
        topology = Topology(levels)
        for node in nodes:
            refused = topology.refusal(node.node_id, node.attributes)
            topology.add(node.node_id, {} if refused else node.attributes)
        return topology

    def refusal(self, node_id: str, attributes: Mapping[str, str]) -> str | None:
        """Return why the attributes of a node make the domains no tree, `None` if they do not."""
        path = self._path(attributes)
        for place in range(1, len(path)):
            parent, _ = self._parents.get((place, path[place]), (path[:place], 0))
            if parent != path[:place]:
                level, wider, name = self.levels[place], self.levels[place - 1], path[place]
                return (
                    f"node {node_id} is in {level} {name!r} of {wider} {path[place - 1]!r}, but other nodes "
                    f"of {level} {name!r} are in {wider} {parent[-1]!r}: a {level} is part of one {wider}"
                )
        return None

    def add(self, node_id: str, attributes: Mapping[str, str]) -> None:
        """Add a node that was not refused."""
        if self.levels:
            path = self.paths[node_id] = self._path(attributes)
            self._count(path, 1)

    def remove(self, node_id: str) -> None:
        """Remove a node."""
        path = self.paths.pop(node_id, None)
        if path is not None:
            self._count(path, -1)

    def _path(self, attributes: Mapping[str, str]) -> Path:
        return tuple(attributes.get(level, "") for level in self.levels)

    def _count(self, path: Path, more: int) -> None:
        for place in range(1, len(path)):
            if path[place]:
                _, count = self._parents.get((place, path[place]), ((), 0))
                if count + more:
                    self._parents[place, path[place]] = (path[:place], count + more)
                else:
                    del self._parents[place, path[place]]

    def domains(self, terms: DomainTerms | None) -> Domains | None:
        """Return the domains for a gang, `None` if it names none."""
        return None if terms is None else Domains(self.levels, self.paths, terms)


class KeptDomain(NamedTuple):
    """The domain of nodes that a gang runs in."""

    domain: Path
    paths: Mapping[str, Path]
    """The path of each node."""
    text: str
    """Why other nodes are refused."""

    def has(self, node_id: str) -> bool:
        """Return whether a node is in the domain."""
        return self.paths.get(node_id, ())[: len(self.domain)] == self.domain


class Domains(NamedTuple):
    """The domains of the nodes of a partition, and which of them a gang may have."""

    levels: Path
    paths: Mapping[str, Path]
    """The path of each node."""
    terms: DomainTerms

    @property
    def depths(self) -> Sequence[int]:
        """The levels of which a gang may have one domain, the first choice first; 0 is the root.

        It is empty if the partition has no such level.
        """
        required, preferred = self.terms.required, self.terms.preferred
        if not {required, preferred} <= {"", *self.levels}:
            return ()
        narrowest = self.levels.index(preferred or required) + 1
        widest = self.levels.index(required) + 1 if required else 0
        return range(narrowest, widest - 1, -1)

    def required_domain(self, node_id: str) -> Path | None:
        """Return the domain of the required level that a node is in, `None` if it is in none."""
        domain = self.paths[node_id][: self.depths[-1]] if self.depths else ("",)
        return None if domain[-1:] == ("",) else domain

    def kept(self, node_ids: Iterable[str]) -> KeptDomain | None:
        """Return the domain of the required level that nodes are in, `None` without such nodes."""
        for node_id in node_ids:
            domain = self.required_domain(node_id)
            if domain is not None:
                text = f"it is not in {self.terms.required} {domain[-1]}, where the gang runs"
                return KeptDomain(domain, self.paths, text)
        return None

    def slots_by_name(self, node_ids: Sequence[str], slots: Sequence[int]) -> dict[str, int]:
        """Return the slots of the domains of the required level by their names, see `orders`."""
        sums: dict[str, int] = {}
        for node_id, count in zip(node_ids, slots, strict=True):
            domain = self.required_domain(node_id)
            if domain is not None:
                sums[domain[-1]] = sums.get(domain[-1], 0) + count
        return sums

    def orders(self, node_ids: Sequence[str], slots: Sequence[int], members: int) -> Iterator[Order]:
        """Walk the domains that have slots for all members of a gang, the best first.

        The first choice is the narrowest level that the gang may have; there the domain with the fewest
        slots, then the one where the fewest nodes are needed, then, for a balanced gang, the one with the
        smallest difference between its parts, then the first name.

        Args:
            node_ids: The nodes.
            slots: The slots of each of them.
            members: The number of members.
        """
        if self.depths:
            tree = _SlotTree(self, node_ids, slots)
            for depth in self.depths:
                yield from tree.orders_at(depth, members)


Order: TypeAlias = "list[tuple[int, int]]"
"""The nodes of a domain in the order in which a gang uses them, by their positions, each with the number
of members that it gets."""


def fewest(slots: Mapping[str, int], members: int) -> list[tuple[str, int]]:
    """Return the fewest parts of a domain that hold all members, each with the members that it gets.

    The largest parts come first, and as soon as one holds all that is left, the smallest one that does. Of
    equal parts the first name comes first.
    """
    chosen: list[tuple[str, int]] = []
    parts = sorted((-count, name) for name, count in slots.items() if count and members)
    for index, (count, name) in enumerate(parts):
        if -count >= members:
            _, last = min((-count, name) for count, name in parts[index:] if -count >= members)
            return [*chosen, (last, members)]
        chosen.append((name, -count))
        members += count
    return chosen


def evenly(slots: Mapping[str, int], members: int) -> list[tuple[str, int]]:
    """Return the fewest parts that hold all members, with numbers as equal as their slots allow."""
    chosen = sorted((slots[name], name) for name, _ in fewest(slots, members))
    spread: list[tuple[str, int]] = []
    for index, (count, name) in enumerate(chosen):
        taken = min(count, members // (len(chosen) - index))
        spread.append((name, taken))
        members -= taken
    return spread[::-1]


@final
class _SlotTree:
    """The slots of all domains, for one search."""

    def __init__(self, domains: Domains, node_ids: Sequence[str], slots: Sequence[int]) -> None:
        self._terms = domains.terms
        self._node_ids = node_ids
        self._slots = slots
        paths = domains.paths
        self._nodes: dict[Path, list[int]] = {}
        """The positions of the nodes of each narrowest domain."""
        for index, node_id in enumerate(node_ids):
            path = paths[node_id]
            inside = self._nodes.get(path)
            if inside is None:
                self._nodes[path] = [index]
            else:
                inside.append(index)
        self._of_domain: dict[Path, int] = {}
        self._parts: dict[Path, dict[str, None]] = {}
        """The names of the domains that each domain consists of; a narrowest one has no entry."""
        for path, indices in self._nodes.items():
            count = sum([slots[index] for index in indices])
            for depth in range(len(path) + 1):
                domain = path[:depth]
                self._of_domain[domain] = self._of_domain.get(domain, 0) + count
                if depth < len(path):
                    self._parts.setdefault(domain, {})[path[depth]] = None

    def orders_at(self, depth: int, members: int) -> Iterator[Order]:
        """Walk the domains of one level that hold all members, the best first."""
        holding = sorted(
            (count, domain)
            for domain, count in self._of_domain.items()
            if len(domain) == depth and count >= members and (not depth or domain[-1])
        )
        for _, alike in groupby(holding, lambda each: each[0]):
            domains = [domain for _, domain in alike]
            if len(domains) > 1:
                domains.sort(key=lambda domain: (*self._cost(domain, members), domain[-1:], domain))
            for domain in domains:
                yield self._order(domain, members)

    def _cost(self, domain: Path, members: int) -> tuple[int, int]:
        """Return how many nodes are needed, and by how much the parts differ if they should not."""
        left = members
        counts = sorted((self._slots[index] for index in self._below(domain)), reverse=True)
        needed = 0
        while left > 0:
            left -= counts[needed]
            needed += 1
        if not self._terms.balanced:
            return needed, 0
        parts = [count for _, count in evenly(self._parts_of(domain), members)]
        return needed, max(parts) - min(parts)

    def _below(self, domain: Path) -> Iterator[int]:
        if domain in self._nodes:
            yield from self._nodes[domain]
        for name in self._parts.get(domain, ()):
            yield from self._below((*domain, name))

    def _parts_of(self, domain: Path) -> dict[str, int]:
        """Return the slots of the parts of a domain: of domains, or of nodes in a narrowest one."""
        if domain in self._nodes:
            return {self._node_ids[index]: self._slots[index] for index in self._nodes[domain]}
        return {name: self._of_domain[*domain, name] for name in self._parts[domain]}

    def _order(self, domain: Path, members: int) -> Order:
        """Return all nodes of a domain: those that members get, then the others."""
        order: Order = []
        spread = evenly if self._terms.balanced else fewest
        counts = dict(spread(self._parts_of(domain), members))
        if domain in self._nodes:
            index_of = {self._node_ids[index]: index for index in self._nodes[domain]}
            order = [(index_of.pop(node_id), count) for node_id, count in counts.items()]
            rest = sorted(index_of.values(), key=lambda index: (-self._slots[index], self._node_ids[index]))
            return order + [(index, 0) for index in rest]
        unused = [name for name in self._parts[domain] if name not in counts]
        for name in (*counts, *sorted(unused)):
            order += self._order((*domain, name), counts.get(name, 0))
        return order
