"""Families of small worlds in which rules of queues, users, time and the RM decide what may end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Final

from support.proofs.worlds import AskIn, Family, LimitIn, QueueIn, RunningIn, Size, World, running_in

_ONE: Final[Size] = (1,)
_ONE_OR_TWO: Final[tuple[Size, ...]] = ((1,), (2,))
_FULL: Final[tuple[Size, ...]] = ((3,),)
_PAIR: Final[tuple[Size, ...]] = ((2,), (2,))
_TEAM: Final = ("root.p.a", "root.p.b", "root.c")
_OUTSIDE: Final = ("root.p.b", "root.c")
_SIDES: Final = ("root.a", "root.b")
_SIBLINGS: Final = ("root.b", "root.c")
_FENCE: Final = ("priority.policy", "fence")


def _sets(kinds: list[RunningIn], most: int, least: int = 1) -> Iterator[tuple[RunningIn, ...]]:
    for count in range(least, most + 1):
        yield from combinations_with_replacement(kinds, count)


def _two_preemptors() -> Iterator[World]:
    """Yield worlds in which one queue asks twice for what it is guaranteed."""
    for own, other in product(_ONE_OR_TWO, ((0,), (1,))):
        queues = (QueueIn("root.a", own), QueueIn("root.b", other))
        for nodes in (_FULL, _PAIR):
            for running in running_in(("root.b",), len(nodes), _ONE_OR_TWO, 4):
                for size, later, late in product(_ONE_OR_TWO, _ONE_OR_TWO, (False, True)):
                    yield World(queues, nodes, running, (AskIn("root.a", size), AskIn("root.a", later)), late)


def _priorities() -> Iterator[World]:
    """Yield worlds in which offsets and priority fences decide whose priority is higher."""
    paths = ("root.p", *_TEAM)
    kinds = [RunningIn(leaf, 0, _ONE, priority) for leaf in _OUTSIDE for priority in (0, 1)]
    for offsets in product((0, 1), repeat=4):
        for fenced in ("", *paths):
            queues = tuple(
                QueueIn(
                    path,
                    _ONE if path == "root.p.a" else (0,),
                    (
                        *((("priority.offset", str(offset)),) if offset else ()),
                        *((_FENCE,) if path == fenced else ()),
                    ),
                )
                for path, offset in zip(paths, offsets, strict=True)
            )
            for running, priority in product(_sets(kinds, 2, 2), (0, 1)):
                yield World(queues, ((2,),), running, (AskIn("root.p.a", _ONE, priority=priority),))


def _fences() -> Iterator[World]:
    """Yield worlds in which a queue is a fence, or has no victims."""
    paths = ("root.p", *_TEAM)
    for guarantees in (((0,), (1,), (0,), (0,)), ((2,), (0,), (0,), (0,)), ((2,), (1,), (1,), (1,))):
        for path, policy in (*product(paths[:2], ("fence",)), *product(paths[2:], ("fence", "disabled"))):
            queues = tuple(
                QueueIn(each, guaranteed, (("preemption.policy", policy),) if each == path else ())
                for each, guaranteed in zip(paths, guarantees, strict=True)
            )
            for running, size in product(running_in(_OUTSIDE, 1, _ONE_OR_TWO, 3), _ONE_OR_TWO):
                yield World(queues, _FULL, running, (AskIn("root.p.a", size),))


def _objections() -> Iterator[World]:
    """Yield worlds in which some opted out of preemption, or are originators."""
    for own, nodes in product(((0,), (1,)), (_FULL, _PAIR)):
        queues = (QueueIn("root.a", (2,)), QueueIn("root.b", own))
        kinds = [
            RunningIn("root.b", node, size, objection=objection)
            for node in range(len(nodes))
            for size in _ONE_OR_TWO
            for objection in (0, 1, 2)
        ]
        for running, size, node in product(_sets(kinds, 3), _ONE_OR_TWO, (-1, 0)):
            yield World(queues, nodes, running, (AskIn("root.a", size, node),))


def _daemons() -> Iterator[World]:
    """Yield worlds of asks that need a node on which not everything may end for them."""
    queues = (QueueIn("root.a", (0,)), QueueIn("root.b", (2,)))
    for nodes, most in ((_FULL, 3), (_PAIR, 2)):
        kinds = [
            RunningIn("root.a", node, size, priority, needs_node=needs_node)
            for node in range(len(nodes))
            for size in _ONE_OR_TWO
            for priority, needs_node in ((0, False), (1, False), (0, True))
        ]
        for running, size in product(_sets(kinds, most), ((1,), (2,), (3,))):
            first = AskIn("root.a", size, 0)
            yield World(queues, nodes, running, (first._replace(priority=1),))
            for second in (AskIn("root.b", _ONE), AskIn("root.a", _ONE, 0)):
                yield World(queues, nodes, running, (first, second))
                yield World(queues, nodes, running, (first, second), late=True)


def _reserved_nodes() -> Iterator[World]:
    """Yield worlds in which an ask that may not preempt, or is not entitled, reserves a node first."""
    for own, other, may_preempt in (
        *(((2,), (0,), False), ((3,), (0,), False), ((4,), (0,), False), ((3,), (1,), False)),
        *(((0,), (2,), True), ((0,), (3,), True), ((1,), (2,), True)),
    ):
        queues = (QueueIn("root.a", own), QueueIn("root.b", other))
        leaf = "root.b" if may_preempt else "root.a"
        for nodes, running in product(
            (_PAIR, ((2,), (3,)), ((3,), (2,))), running_in(_SIDES, 2, _ONE_OR_TWO, 3)
        ):
            for late in (False, True):
                asks = (AskIn("root.a", (2,), may_preempt=may_preempt), AskIn(leaf, (2,)))
                yield World(queues, nodes, running, asks, late)


def _maximum() -> Iterator[World]:
    """Yield worlds in which a parent of the ask has a maximum."""
    for most, own, other in product((1, 2, 3), _ONE_OR_TWO, ((0,), (1,))):
        if own[0] + other[0] > most:
            continue
        queues = (
            QueueIn("root.p", (0,), maximum=most),
            QueueIn("root.p.a", own),
            QueueIn("root.p.b", other),
            QueueIn("root.c", (0,)),
        )
        for nodes, count in ((_FULL, 3), (_PAIR, 2)):
            for running, size in product(running_in(_OUTSIDE, len(nodes), _ONE_OR_TWO, count), _ONE_OR_TWO):
                first = AskIn("root.p.a", size)
                yield World(queues, nodes, running, (first,))
                for leaf in ("root.p.b", "root.p.a"):
                    yield World(queues, nodes, running, (first, AskIn(leaf, _ONE)), late=True)


def _limits() -> Iterator[World]:
    """Yield worlds in which a user is limited in a queue above the ask."""
    for own, above, most in product(_ONE_OR_TWO, ("root.p", "root.p.a"), (1, 2)):
        within = (
            (("preemption.within", "lower-priority"),) if most == 1 else ()
        )  # It lets those at a limit try.
        queues = (QueueIn("root.p", (0,)), QueueIn("root.p.a", own, within), QueueIn("root.p.b", (0,)))
        limits = (LimitIn(above, "ann", most),)
        for nodes in (((2,),), _PAIR):
            kinds = [
                RunningIn("root.p.b", node, size, user=user)
                for node in range(len(nodes))
                for size in _ONE_OR_TWO
                for user in ("ann", "bob")
            ]
            for running in _sets(kinds, 3 if len(nodes) == 1 else 2):
                for size in _ONE_OR_TWO[: len(nodes)]:
                    first = AskIn("root.p.a", size)
                    yield World(queues, nodes, running, (first,), limits=limits)
                    for leaf, user in product(("root.p.a", "root.p.b"), ("ann", "bob")):
                        asks = (first, AskIn(leaf, _ONE, user=user))
                        yield World(queues, nodes, running, asks, late=True, limits=limits)


def _inside() -> Iterator[World]:
    """Yield worlds in which a leaf lets asks end what has a lower priority in it."""
    within = (("preemption.within", "lower-priority"),)
    for most, limited, nodes in (
        *((None, 0, _FULL), (None, 0, _PAIR), (2, 0, _FULL), (2, 0, _PAIR)),
        *((None, 1, _FULL), (None, 2, _FULL)),
    ):
        queues = (QueueIn("root.p", (0,), maximum=most), QueueIn("root.p.a", (0,), within))
        limits = (LimitIn("root.p.a", "ann", limited),) if limited else ()
        kinds = [
            RunningIn("root.p.a", node, size, priority, user=user)
            for node in range(len(nodes))
            for size in _ONE_OR_TWO
            for priority in (0, 1)
            for user in (("ann", "bob") if limited else ("ann",))
        ]
        for running, size, priority in product(
            _sets(kinds, 3 if len(nodes) == 1 else 2), _ONE_OR_TWO, (1, 2)
        ):
            first = AskIn("root.p.a", size, priority=priority)
            yield World(queues, nodes, running, (first,), limits=limits)
            if size == _ONE and priority == 1:
                asks = (first, AskIn("root.p.a", _ONE))
                yield World(queues, nodes, running, asks, late=True, limits=limits)


def _time_and_number() -> Iterator[World]:
    """Yield worlds in which a minimum run time or a budget protects what runs."""
    properties = (
        (("preemption.min-runtime", "20s"),),
        (("preemption.min-runtime", "20s"), ("preemption.min-runtime.scope", "guarantee")),
        (("preemption.victims-max", "1/20s"),),
        (("preemption.victims-max", "2/20s"),),
    )
    for path, protected in product(("root.p", "root.p.b", "root.c"), properties):
        queues = tuple(
            QueueIn(each, (2,) if each == "root.p.a" else (0,), protected if each == path else ())
            for each in ("root.p", *_TEAM)
        )
        for running, size in product(running_in(_OUTSIDE, 1, _ONE_OR_TWO, 3), _ONE_OR_TWO):
            first = AskIn("root.p.a", size)
            yield World(queues, _FULL, running, (first,))
            yield World(queues, _FULL, running, (first, AskIn("root.p.a", _ONE)))
            yield World(queues, _FULL, running, (first._replace(node=0),))
    queues = (
        QueueIn("root.p", (0,), (("preemption.min-runtime", "20s"),)),
        QueueIn("root.p.b", (0,), (("preemption.min-runtime", "0s"),)),
        QueueIn("root.c", (2,)),
    )
    for running, size in product(running_in(("root.p.b",), 1, _ONE_OR_TWO, 3), _ONE_OR_TWO):
        yield World(queues, _FULL, running, (AskIn("root.c", size),))


def _predicates() -> Iterator[World]:
    """Yield worlds in which the predicates refuse nodes, or want two victims there."""
    for own, other in product(_ONE_OR_TWO, ((0,), (1,))):
        queues = (QueueIn("root.a", own), QueueIn("root.b", other))
        judged: tuple[tuple[tuple[Size, ...], tuple[int, ...], bool], ...] = (
            *((_PAIR, (0,), False), (_PAIR, (0, 1), False)),
            *((_PAIR, (), True), (_PAIR, (0,), True), (_FULL, (), True)),
        )
        for nodes, refused, demands in judged:
            for running, size in product(running_in(_SIDES, len(nodes), _ONE_OR_TWO, 3), _ONE_OR_TWO):
                ask = AskIn("root.a", size)
                yield World(queues, nodes, running, (ask,), refused=refused, demands=demands)


def _reloads() -> Iterator[World]:
    """Yield worlds in which a guarantee or a maximum is lowered or raised while victims end."""

    def queues(own: int, other: int, most: int | None) -> tuple[QueueIn, ...]:
        return (
            QueueIn("root.p", (0,), maximum=most),
            QueueIn("root.p.a", (own,)),
            QueueIn("root.p.b", (other,)),
        )

    changes = (
        *(((1, 0, None), (0, 0, None)), ((0, 0, None), (1, 0, None)), ((2, 0, None), (1, 0, None))),
        *(((1, 0, None), (1, 1, None)), ((1, 1, None), (1, 0, None)), ((1, 0, None), (0, 1, None))),
        *(((1, 0, 3), (1, 0, 1)), ((1, 0, 3), (1, 0, 2)), ((1, 0, 2), (1, 0, 3)), ((2, 0, 2), (2, 0, None))),
    )
    leaves = ("root.p.a", "root.p.b")
    for before, after in changes:
        for nodes, most in ((_FULL, 3), (_PAIR, 2)):
            for running, size in product(running_in(leaves, len(nodes), _ONE_OR_TWO, most), _ONE_OR_TWO):
                ask = AskIn("root.p.a", size)
                yield World(queues(*before), nodes, running, (ask,), reloaded=queues(*after))


def _lost_node() -> Iterator[World]:
    """Yield worlds in which a node is removed."""
    for own, other in product(_ONE_OR_TWO, ((0,), (1,))):
        queues = (QueueIn("root.a", own), QueueIn("root.b", other))
        for running, size in product(running_in(_SIDES, 2, _ONE_OR_TWO, 3), _ONE_OR_TWO):
            yield World(queues, _PAIR, running, (AskIn("root.a", size),), lost=0)


def _guarantees_above() -> Iterator[World]:
    """Yield worlds in which two queues above a leaf have guarantees, or each names another type."""
    paths = ("root.g", "root.g.p", "root.g.p.a", "root.g.q", "root.c")
    for top, own, leaf in product((0, 2, 3), (1, 2), (0, 1)):
        if 0 < top < own or leaf > own:
            continue
        queues = tuple(
            QueueIn(path, guaranteed)
            for path, guaranteed in zip(paths, ((top,), (own,), (leaf,), (0,), (0,)), strict=True)
        )
        for running, size in product(
            running_in(("root.g.p.a", "root.g.q", "root.c"), 1, _ONE_OR_TWO, 3), _ONE_OR_TWO
        ):
            yield World(queues, _FULL, running, (AskIn("root.g.p.a", size),))
    sizes = ((1, 0), (1, 1), (0, 1))
    for team, mine in product(((0, 1), (1, 1), (0, 2)), ((1, 0), (0, 1), (0, 0))):
        queues = (QueueIn("root.p", team), QueueIn("root.p.a", mine), QueueIn("root.p.b", (0, 0)))
        queues += (QueueIn("root.c", (0, 0)),)
        for running, size in product(running_in(_OUTSIDE, 1, sizes, 3), sizes):
            yield World(queues, ((2, 2),), running, (AskIn("root.p.a", size),))
    queues = (QueueIn("root.p", (0, 1)), QueueIn("root.p.a", (2, 0)), QueueIn("root.p.b", (0, 0)))
    queues += (QueueIn("root.c", (0, 0)),)
    for running in running_in(_OUTSIDE, 1, (*sizes, (2, 0)), 3):
        yield World(queues, ((3, 2),), running, (AskIn("root.p.a", (1, 1)),))


def _gangs() -> Iterator[World]:
    """Yield worlds in which a gang of two is placed whole, or nothing of it."""
    for own, other, pair in product((0, 2, 3, 4), (0, 1, 2), ((1, 1), (1, 2), (2, 2))):
        queues = (QueueIn("root.a", (own,)), QueueIn("root.b", (other,)))
        gang = tuple(AskIn("root.a", (size,), user="gil", gang=2) for size in pair)
        for running in running_in(("root.b",), 2, _ONE_OR_TWO, 4):
            yield World(queues, _PAIR, running, gang)
            if (own, other) == (4, 1):
                for later in (AskIn("root.a", _ONE), AskIn("root.b", _ONE), AskIn("root.b", _ONE, 0)):
                    yield World(queues, _PAIR, running, (*gang, later), late=True)
    for own, guaranteed, pair in product((2, 4), ((0, 0), (1, 0), (1, 1)), ((1, 1), (1, 2), (2, 2))):
        others = tuple(QueueIn(path, (amount,)) for path, amount in zip(_SIBLINGS, guaranteed, strict=True))
        gang = tuple(AskIn("root.a", (size,), user="gil", gang=2) for size in pair)
        for running in running_in(_SIBLINGS, 2, _ONE_OR_TWO, 4):
            yield World((QueueIn("root.a", (own,)), *others), _PAIR, running, gang)
    for team, pair in product((3, 4), ((1, 1), (1, 2))):
        shared = (QueueIn("root.p", (team,)), QueueIn("root.p.a", (0,)), QueueIn("root.p.b", (1,)))
        gang = tuple(AskIn("root.p.a", (size,), user="gil", gang=2) for size in pair)
        for running in running_in(("root.p.b",), 2, _ONE_OR_TWO, 4):
            yield World(shared, _PAIR, running, gang)


FAMILIES_OF_RULES: Final = (
    Family("two preemptors", _two_preemptors, depth=3),
    Family("priorities", _priorities, depth=1),
    Family("fences", _fences, depth=2),
    Family("objections", _objections, depth=2),
    Family("daemons", _daemons, depth=3),
    Family("reserved nodes", _reserved_nodes, depth=2),
    Family("a maximum", _maximum, depth=2),
    Family("limits of users", _limits, depth=2),
    Family("inside a queue", _inside, depth=2),
    Family("time and number", _time_and_number, depth=2),
    Family("predicates", _predicates, depth=2),
    Family("reloads", _reloads, depth=3),
    Family("a lost node", _lost_node, depth=3),
    Family("guarantees above guarantees", _guarantees_above, depth=2),
    Family("a gang of two", _gangs, depth=3),
)
