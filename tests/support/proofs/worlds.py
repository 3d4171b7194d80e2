"""Small worlds of queues, nodes, allocations and asks: every one of a family, one of each symmetric set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, islice, permutations, product
from typing import Final, NamedTuple

TYPES: Final = ("memory", "gpu")
"""What sizes are made of, in order; a world of one type has sizes of one number."""

Size = tuple[int, ...]


class QueueIn(NamedTuple):
    """A queue below the root; zero is no guarantee of a type."""

    path: str
    guaranteed: Size
    properties: tuple[tuple[str, str], ...] = ()
    """Further properties: name and value."""
    maximum: int | None = None
    """Of the first type."""


class LimitIn(NamedTuple):
    """What a user may use of the first type in a queue."""

    queue: str
    user: str
    amount: int


class RunningIn(NamedTuple):
    """An allocation that exists when a world begins."""

    leaf: str
    node: int
    size: Size
    priority: int = 0
    objection: int = 0
    """0 if it is willing to end, 1 if it opted out, 2 if it is an originator."""
    user: str = "ann"
    needs_node: bool = False


class AskIn(NamedTuple):
    """An ask; one with a node needs that node."""

    leaf: str
    size: Size
    node: int = -1
    priority: int = 0
    may_preempt: bool = True
    user: str = "ann"
    gang: int = 0
    """How many members the gang has that it is one of; 0 for none. The first asks of a world are its gang."""


@dataclass(frozen=True)
class World:
    """What exists at the beginning; allocations and asks are ordered by age, the oldest first."""

    queues: tuple[QueueIn, ...]
    nodes: tuple[Size, ...]
    running: tuple[RunningIn, ...]
    asks: tuple[AskIn, ...]
    late: bool = False
    """The last ask comes at any time; otherwise all are there from the beginning."""
    lowered: tuple[str, int] | None = None
    """A queue, and the maximum of the first type to which it is lowered at the beginning."""
    reloaded: tuple[QueueIn, ...] = ()
    """The queues as they are once the configuration is loaded anew, at any time; empty if it never is."""
    lost: int = -1
    """A node that may be removed, at any time; -1 for none."""
    limits: tuple[LimitIn, ...] = ()
    refused: tuple[int, ...] = ()
    """The nodes that the predicates of the RM refuse to all asks."""
    demands: bool = False
    """The predicates want two victims or more on a node, or none."""

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its sizes."""
        return TYPES[: len(self.nodes[0])]


@dataclass(frozen=True)
class Family:
    """Worlds of one kind, and how many steps are made in each."""

    name: str
    candidates: Callable[[], Iterator[World]]
    depth: int = 4

    def worlds(self, every: int = 1) -> Iterator[World]:
        """Yield every so many-th candidate in which something can happen, one of each symmetric set."""
        return filter(_is_chosen, islice(self.candidates(), 0, None, every))


def path_of(queue: str) -> tuple[str, ...]:
    """Return a queue and those above it, the root last."""
    parts = queue.split(".")
    return tuple(".".join(parts[:count]) for count in range(len(parts), 0, -1))


def have_room(sizes: Sequence[Size], rooms: Mapping[int, Sequence[int]], types: Iterable[int]) -> bool:
    """Return whether nodes, each with what it has left, have room for some sizes together."""
    checked = [*types]
    for nodes in product(rooms, repeat=len(sizes)):
        left = {node: list(room) for node, room in rooms.items()}
        for size, node in zip(sizes, nodes, strict=True):
            left[node] = [one - less for one, less in zip(left[node], size, strict=True)]
        if all(left[node][index] >= 0 for node in nodes for index in checked):
            return True
    return False


# ---------------------------------------------------------------------------------------- symmetry


def _is_first(world: World) -> bool:
    """Return whether a world is the first of those that differ in the names of siblings and equal nodes."""
    own = _form(world, {}, tuple(range(len(world.nodes))))
    for names in _renamings(world.queues):
        for order in permutations(range(len(world.nodes))):
            if all(world.nodes[order[index]] == world.nodes[index] for index in order) and (
                _form(world, names, order) < own
            ):
                return False
    return True


def _renamings(queues: tuple[QueueIn, ...]) -> Iterator[dict[str, str]]:
    """Yield every renaming of the leaves that keeps the tree."""
    paths = [queue.path for queue in queues]
    leaves = [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]
    for order in permutations(leaves):
        if all(
            one.rpartition(".")[0] == other.rpartition(".")[0]
            for one, other in zip(leaves, order, strict=True)
        ):
            yield dict(zip(leaves, order, strict=True))


def _form(world: World, names: dict[str, str], order: tuple[int, ...]) -> tuple[object, ...]:
    """Return a world under other names; asks come first, as some families have them in one leaf alone."""
    place = {-1: -1, **dict(enumerate(order))}

    def renamed(each: tuple[QueueIn | LimitIn, ...]) -> list[tuple[object, ...]]:
        return sorted((names.get(one[0], one[0]), *map(str, one[1:])) for one in each)

    return (
        [ask._replace(leaf=names.get(ask.leaf, ask.leaf), node=place[ask.node]) for ask in world.asks],
        renamed(world.queues),
        sorted(
            ran._replace(leaf=names.get(ran.leaf, ran.leaf), node=place[ran.node]) for ran in world.running
        ),
        *(renamed(world.reloaded), renamed(world.limits), place[world.lost]),
        sorted(place[node] for node in world.refused),
    )


def _is_possible(world: World) -> bool:
    """Return whether the nodes hold what runs, and the first ask finds no room: otherwise nothing happens."""
    free = [list(size) for size in world.nodes]
    for ran in world.running:
        for index, quantity in enumerate(ran.size):
            free[ran.node][index] -= quantity
            if free[ran.node][index] < 0:
                return False
    ask = world.asks[0]
    if world.lowered is not None or _is_full(world, ask):
        return True
    nodes = range(len(free)) if ask.node < 0 else (ask.node,)
    rooms = {node: free[node] for node in nodes if node not in world.refused}
    sizes = [each.size for each in world.asks[: ask.gang or 1]]
    return not have_room(sizes, rooms, range(len(ask.size)))


def _is_full(world: World, ask: AskIn) -> bool:
    """Return whether a maximum or a limit has no room for an ask."""
    bounds = [(each.path, "", each.maximum) for each in world.queues if each.maximum is not None]
    bounds += [(each.queue, each.user, each.amount) for each in world.limits]
    return any(
        path in path_of(ask.leaf)
        and user in ("", ask.user)
        and ask.size[0]
        + sum(ran.size[0] for ran in world.running if path in path_of(ran.leaf) and user in ("", ran.user))
        > amount
        for path, user, amount in bounds
    )


def _is_chosen(world: World) -> bool:
    return _is_possible(world) and _is_first(world)


def running_in(
    leaves: tuple[str, ...], nodes: int, sizes: tuple[Size, ...], most: int
) -> Iterator[tuple[RunningIn, ...]]:
    """Yield up to so many allocations, one of each set that differs in their order."""
    places = [RunningIn(*place) for place in product(leaves, range(nodes), sizes)]
    for count in range(1, most + 1):
        yield from combinations_with_replacement(places, count)


# ---------------------------------------------------------------------------------------- families

_TREES: Final = (
    (("root.a", "root.b"), ()),
    (("root.a", "root.b", "root.c"), ()),
    (("root.p.a", "root.b"), ("root.p",)),
    (("root.p.a", "root.p.b"), ("root.p",)),
)
"""Leaves, and the queues above them."""

_ONE_TYPE: Final[tuple[Size, ...]] = ((1,), (2,))


def _queues(paths: tuple[str, ...], guarantees: tuple[Size, ...]) -> tuple[QueueIn, ...]:
    return tuple(QueueIn(*each) for each in zip(paths, guarantees, strict=True))


def _is_valid(paths: tuple[str, ...], guarantees: tuple[Size, ...]) -> bool:
    """Return whether no queue of a family with one type guarantees less than those below it."""
    amounts = {path: amount for path, (amount,) in zip(paths, guarantees, strict=True)}
    below = sum(amount for path, amount in amounts.items() if path.startswith("root.p."))
    return below <= (amounts.get("root.p") or below)


def _of_one_type() -> Iterator[World]:
    for leaves, parents in _TREES:
        paths = parents + leaves
        for guarantees in product(((0,), (1,), (2,)), repeat=len(paths)):
            if not any(map(any, guarantees)) or not _is_valid(paths, guarantees):
                continue
            queues = _queues(paths, guarantees)
            for nodes in (((3,),), ((2,), (2,))) if len(leaves) == 2 else (((3,),),):
                for running in running_in(leaves, len(nodes), _ONE_TYPE, 3):
                    for leaf, size in product(leaves, _ONE_TYPE):
                        first = AskIn(leaf, size)
                        yield World(queues, nodes, running, (first,))
                        if len(paths) == 2:
                            for other, late in product(leaves, (False, True)):
                                yield World(queues, nodes, running, (first, AskIn(other, (1,))), late)


def _shared_guarantee() -> Iterator[World]:
    """Yield worlds in which a leaf has the guarantee of its parent alone, beside a leaf without any."""
    leaves = ("root.p.a", "root.p.b", "root.c")
    for guaranteed, own in product((1, 2, 3), (0, 1)):
        queues = _queues(("root.p", *leaves), ((guaranteed,), (0,), (own,), (0,)))
        for nodes in (((3,),), ((2,), (2,))):
            for running in running_in(leaves, len(nodes), _ONE_TYPE, 3):
                for size in _ONE_TYPE:
                    yield World(queues, nodes, running, (AskIn("root.p.a", size),))


def _of_two_types() -> Iterator[World]:
    leaves = ("root.a", "root.b")
    sizes = ((1, 0), (1, 1), (0, 1))
    named = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 1))
    for own, other in product(named, repeat=2):
        queues = _queues(leaves, (own, other))
        for nodes in (((2, 2),), ((2, 1), (1, 2))):
            for running in running_in(leaves, len(nodes), sizes, 3):
                for size in ((1, 0), (1, 1), (2, 1)):
                    yield World(queues, nodes, running, (AskIn("root.a", size),))


def _with_required_node() -> Iterator[World]:
    leaves = ("root.a", "root.b")
    for own, other in product((0, 1, 2), repeat=2):
        if not own:
            continue
        queues = _queues(leaves, ((own,), (other,)))
        for nodes in (((3,),), ((2,), (2,))):
            for running in running_in(leaves, len(nodes), _ONE_TYPE, 3):
                for size, daemon, leaf, late in product(_ONE_TYPE, _ONE_TYPE, leaves, (False, True)):
                    asks = (AskIn("root.a", size), AskIn(leaf, daemon, 0))
                    yield World(queues, nodes, running, asks, late)


def _with_lowered_maximum() -> Iterator[World]:
    leaves, paths = ("root.p.a", "root.p.b"), ("root.p", "root.p.a", "root.p.b")
    for guarantees in product(((0,), (1,), (2,)), repeat=3):
        if not _is_valid(paths, guarantees):
            continue
        queues = _queues(paths, guarantees)
        for nodes in (((4,),), ((2,), (2,))):
            for running in running_in(leaves, len(nodes), _ONE_TYPE, 3):
                for lowered, size in product((1, 2, 3), _ONE_TYPE):
                    if lowered < max(guarantees[0][0], guarantees[1][0] + guarantees[2][0]):
                        continue  # No configuration may say so.
                    yield World(
                        queues, nodes, running, (AskIn("root.p.a", size),), lowered=("root.p", lowered)
                    )


FAMILIES: Final = (
    Family("one type", _of_one_type),
    Family("a shared guarantee", _shared_guarantee),
    Family("two types", _of_two_types),
    Family("an ask that needs its node", _with_required_node, depth=3),
    Family("a lowered maximum", _with_lowered_maximum),
)
