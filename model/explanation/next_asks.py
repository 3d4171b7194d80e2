"""Which asks the next cycles would try, in their order, as long as nothing changes.

Each cycle has three passes: asks with a reservation, members of gangs that replace placeholders, and all
others. A cycle ends with its first placement, and what is placed may change the order of the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..applications.ask_walk import NextTry, TryingPass
from ..applications.state import ApplicationState
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.ranks import ranked_leaves
from ..state.partition_state import PartitionState
from ..values.allocation import Ask
from .blockers import Blocker
from .explain import partition_blockers
from .quotas import application_count_blockers

NEXT_ASKS_MAX: Final = 250
"""How many asks one question is answered with at most."""
_APPLICATIONS_MAX: Final = 1_000
"""How many applications each pass looks at: the partition does nothing else meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAsk:
    """An ask that would be tried, where it is, and in which pass."""

    ask: Ask
    queue_path: str
    trying_pass: TryingPass
    reserved_node: str
    """The node that is reserved for it, or the empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAsks:
    """The asks that would be tried next in one partition, as of one moment."""

    time_ns: int
    partition: str
    """The full name, `[rm]default`."""
    blockers: tuple[Blocker, ...]
    """Why no ask of the partition is tried now; empty if they are."""
    asks: tuple[NextAsk, ...]


def next_asks(state: PartitionState, count: int) -> NextAsks:
    """Return the asks that would be tried next; nothing is changed.

    Asks that the last walk found no room for are in the list as well: a cycle skips them until something
    changes that they wait for. Left out are those that are not tried: of applications that may not start
    or that wait for a back-off, and members of gangs before any of their placeholders is placed.

    Args:
        state: The partition.
        count: How many at most, up to `NEXT_ASKS_MAX`.
    """
    assert 0 < count <= NEXT_ASKS_MAX, f"{count} asks are too many: please report"
    return NextAsks(
        time_ns=state.now_ns(),
        partition=state.name,
        blockers=tuple(partition_blockers(state)),
        asks=tuple(islice(_walk(state, count), count)),
    )


def _walk(state: PartitionState, count: int) -> Iterator[NextAsk]:
    if state.reservations:
        for leaf, entry in _visited(state, TryingPass.RESERVED):
            for reservation, record in entry.application.reservations.with_asks():
                if record is not None:
                    found = NextTry(record.ask, TryingPass.RESERVED, reservation.node_id)
                    yield _next_ask(leaf, found)
    passes = [TryingPass.PLACEHOLDER] if state.placed.placeholders else []
    for trying_pass in (*passes, TryingPass.REGULAR):
        for leaf, entry in _visited(state, trying_pass):
            for found in entry.application.asks.first_waiting(count):
                if found.trying_pass is trying_pass:
                    yield _next_ask(leaf, found)


def _next_ask(leaf: Queue, found: NextTry) -> NextAsk:
    return NextAsk(
        ask=found.ask,
        queue_path=leaf.path,
        trying_pass=found.trying_pass,
        reserved_node=found.reserved_node,
    )


def _visited(state: PartitionState, trying_pass: TryingPass) -> Iterator[tuple[Queue, ApplicationEntry]]:
    """Walk the applications that a pass visits, with their leaves."""
    visits = ((leaf, entry) for leaf in ranked_leaves(state.tree) for entry in _entries(leaf, trying_pass))
    for leaf, entry in islice(visits, _APPLICATIONS_MAX):
        if trying_pass is TryingPass.PLACEHOLDER:
            if entry.facts.placeholder_allocated:
                yield leaf, entry
        elif _may_run(state, leaf, entry):
            backs_off = entry.backoff_until_ns is not None and entry.backoff_until_ns > state.now_ns()
            if trying_pass is TryingPass.RESERVED or not backs_off:
                yield leaf, entry


def _entries(leaf: Queue, trying_pass: TryingPass) -> Iterator[ApplicationEntry]:
    entries = leaf.entries
    if trying_pass is TryingPass.RESERVED:
        reserved = entries.reserved_entries.values()
        return iter([entry for entry in reserved if not entry.facts.gang_waits])
    if trying_pass is TryingPass.PLACEHOLDER and not entries.placeholder_entries:
        return iter(())
    return entries.ranked(leaf)


def _may_run(state: PartitionState, leaf: Queue, entry: ApplicationEntry) -> bool:
    if entry.facts.state is not ApplicationState.ACCEPTED:
        return True
    return not any(application_count_blockers(state, leaf, entry.application_id, entry.user))
