"""Domains of nodes, such as blocks and racks: which one a gang gets, and which nodes of it.

The levels are attributes of nodes, the widest first. A domain is known by its *path*: the values of these
attributes down to its own level; the root, with the empty path, has all nodes. A node without an attribute is
in no domain of that level, but it is in the domains above.

The *slots* of a node are the members that it has room for, the slots of a domain the sum of its nodes'.
A gang may consist of *slices* of some members, each in one domain of a level. Above this level slots are the
number of slices, and a domain has the sum of its parts' slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias, final

from ..values.domains import DomainTerms
from .entry import NodeEntry

Path: TypeAlias = "tuple[str, ...]"


def path_of(levels: Sequence[str], attributes: Mapping[str, str]) -> Path:
    """Return the path of the narrowest domain of a node; a missing attribute is the empty text."""
    return tuple(attributes.get(level, "") for level in levels)


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
        path = path_of(self.levels, attributes)
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
            path = self.paths[node_id] = path_of(self.levels, attributes)
            self._count(path, 1)

    def remove(self, node_id: str) -> None:
        """Remove a node."""
        path = self.paths.pop(node_id, None)
        if path is not None:
            self._count(path, -1)

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
    """The domain of nodes that a gang runs in, or those in which slices of it lack members."""

    domains: tuple[Path, ...]
    paths: Mapping[str, Path]
    """The path of each node."""
    text: str
    """Why other nodes are refused."""

    def has(self, node_id: str) -> bool:
        """Return whether a node is in one of the domains."""
        path = self.paths.get(node_id, ())
        return any(path[: len(domain)] == domain for domain in self.domains)


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
        if not {required, preferred, self.terms.slice_level} <= {"", *self.levels}:
            return ()
        return range(self._depth_of(preferred or required), self._depth_of(required) - 1, -1)

    @property
    def slice_depth(self) -> int:
        """The level of which each slice gets one domain, 0 if a gang has no slices."""
        return self._depth_of(self.terms.slice_level)

    def _depth_of(self, level: str) -> int:
        return self.levels.index(level) + 1 if level in self.levels else 0

    def slice_domain(self, node_id: str) -> Path | None:
        """Return the domain of a slice with a member on this node, `None` if no slice can be there."""
        domain = self.paths[node_id][: self.slice_depth]
        return domain if domain and domain[-1] else None

    def required_domain(self, node_id: str) -> Path | None:
        """Return the domain of the required level that a node is in, `None` if it is in none."""
        domain = self.paths[node_id][: self.depths[-1]] if self.depths else ("",)
        return None if domain[-1:] == ("",) else domain

    def kept(self, node_ids: Iterable[str], swapping: Iterable[str] = ()) -> KeptDomain | None:
        """Return the domains that a further member may have, `None` for any.

        These are the ones where slices lack members, if there are any, else the one of the required level.

        Args:
            node_ids: The node of each member that runs.
            swapping: The nodes where the member may replace a placeholder.
        """
        ids = list(node_ids)
        size, level = self.terms.slice_size, self.terms.slice_level
        members = Counter(self.slice_domain(node_id) for node_id in ids) if self.slice_depth else Counter()
        lacking = [domain for domain, count in members.items() if domain is not None and count % size]
        if lacking:
            names = " or ".join(domain[-1] for domain in lacking)
            text = f"it is not in {level} {names}, where a slice of the gang lacks members"
            lacking += [self.paths[node_id][: self.slice_depth] for node_id in swapping]
            return KeptDomain(tuple(lacking), self.paths, text)
        for node_id in ids if self.terms.required else ():
            domain = self.required_domain(node_id)
            if domain is not None:
                text = f"it is not in {self.terms.required} {domain[-1]}, where the gang runs"
                return KeptDomain((domain,), self.paths, text)
        return None

    def slots_by_name(self, node_ids: Sequence[str], slots: Sequence[int]) -> dict[str, int]:
        """Return the slots of the domains of the needed level by their names, see `orders`.

        For a gang in slices these are the slots for slices.
        """
        sums: dict[str, int] = {}
        for node_id, count in zip(node_ids, slots, strict=True):
            domain = self.slice_domain(node_id) if self.slice_depth else self.required_domain(node_id)
            if domain is not None:
                sums[domain[-1]] = sums.get(domain[-1], 0) + count
        return {name: count // self.terms.slice_size for name, count in sums.items()}

    def text(self, members: int, of_size: str = "") -> str:
        """Return what a gang of some members needs, in words."""
        required, preferred, _, level, size = self.terms
        if level:
            inside = f" of one {required}" if required else ""
            return f"{members // size} slices of {size} members, each in one {level}{inside}"
        return f"{members} members{of_size} in one {required or preferred}"

    def has_slots(self, node_ids: Sequence[str], slots: Sequence[int], members: int) -> bool:
        """Return whether some domain has slots for all members, see `orders`."""
        return next(self.orders(node_ids, slots, members, only_used=True), None) is not None

    def orders(
        self, node_ids: Sequence[str], slots: Sequence[int], members: int, *, only_used: bool = False
    ) -> Iterator[Order]:
        """Walk the domains that have slots for all members of a gang, the best first.

        The first choice is the narrowest level that the gang may have; there the domain with the fewest
        slots, then the one where the fewest nodes are needed, then, for a balanced gang, the one with the
        smallest difference between its parts, then the first name.

        Args:
            node_ids: The nodes.
            slots: The slots of each of them.
            members: The number of members.
            only_used: Leave out the nodes that no member gets by the slots.
        """
        if self.depths and not members % self.terms.slice_size:
            tree = _SlotTree(self, node_ids, slots, only_used=only_used)
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

    def __init__(
        self, domains: Domains, node_ids: Sequence[str], slots: Sequence[int], *, only_used: bool
    ) -> None:
        self._terms = domains.terms
        self._slice_depth = domains.slice_depth
        self._only_used = only_used
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
                if depth >= self._slice_depth:
                    self._of_domain[domain] = self._of_domain.get(domain, 0) + count
                if depth < len(path):
                    self._parts.setdefault(domain, {})[path[depth]] = None
        if self._slice_depth:
            self._add_slices()

    def _add_slices(self) -> None:
        """Count the slots of the domains above the slices."""
        of_slices = [path for path in self._of_domain if len(path) == self._slice_depth]
        for path in of_slices:
            count = self._of_domain[path] // self._terms.slice_size if path[-1] else 0
            for depth in range(len(path)):
                self._of_domain[path[:depth]] = self._of_domain.get(path[:depth], 0) + count

    def orders_at(self, depth: int, members: int) -> Iterator[Order]:
        """Walk the domains of one level that hold all members, the best first."""
        if depth < self._slice_depth:
            members //= self._terms.slice_size
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
        needed = 0
        if len(domain) < self._slice_depth:
            needed = sum(1 for _, count in self._order(domain, members) if count)
        else:
            left = members
            counts = sorted((self._slots[index] for index in self._below(domain)), reverse=True)
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
        parts = {name: self._of_domain[*domain, name] for name in self._parts[domain]}
        if len(domain) + 1 == self._slice_depth:
            return {name: count // self._terms.slice_size if name else 0 for name, count in parts.items()}
        return parts

    def _order(self, domain: Path, members: int) -> Order:
        """Return the nodes of a domain: those that members get, then the others.

        Above the slices `members` are the slices.
        """
        order: Order = []
        spread = evenly if self._terms.balanced else fewest
        counts = dict(spread(self._parts_of(domain), members))
        if domain in self._nodes:
            index_of = {self._node_ids[index]: index for index in self._nodes[domain]}
            order = [(index_of.pop(node_id), count) for node_id, count in counts.items()]
            if self._only_used:
                return order
            rest = sorted(index_of.values(), key=lambda index: (-self._slots[index], self._node_ids[index]))
            return order + [(index, 0) for index in rest]
        unused = [] if self._only_used else [name for name in self._parts[domain] if name not in counts]
        each = self._terms.slice_size if len(domain) + 1 == self._slice_depth else 1
        for name in (*counts, *sorted(unused)):
            order += self._order((*domain, name), counts.get(name, 0) * each)
        return order
