"""The graph of the locks: the order that the engine declares, and what is learned while they are checked."""

from __future__ import annotations

from ....actors.locks.guards import LOCK_ORDER
from ....lockcheck.checking.active import current
from ....lockcheck.sessions.summaries import summary_of
from ...core.documents.monitoring import LocksDocument


def locks_document() -> LocksDocument:
    """Return the classes of locks, the declared order between them, and the edges that were observed.

    The locks are those of the engine `threads`. Edges are observed in a process that
    checks its locks, such as one started with `LOCKCHECK=full`; `observed` is `None` in others.
    """
    order = LOCK_ORDER
    own = [name for name in order.classes if not name.endswith("-actor")]
    declared = dict.fromkeys(
        (outer, inner)
        for chain in order.chains
        for outer, inner in zip(chain.names, chain.names[1:], strict=False)
        if outer in own and inner in own
    )
    edges = [[outer, inner] for outer, inner in declared]
    return {
        "classes": [
            {"name": name, "leaf": name in order.leaves, "exclusive": name in order.exclusive} for name in own
        ],
        "declared": edges,
        "observed": _observed(frozenset(own)),
    }


def _observed(own: frozenset[str]) -> list[list[str | int]] | None:
    watch = current()
    if watch is None:
        return None
    counts: dict[tuple[str, str], int] = {}
    for edge in summary_of(watch).class_edges:
        if edge.held in own and edge.wanted in own:
            ends = (edge.held, edge.wanted)
            counts[ends] = counts.get(ends, 0) + edge.count
    return [[held, wanted, count] for (held, wanted), count in sorted(counts.items())]
