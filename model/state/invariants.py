"""The invariants of a partition, which hold after every step."""

from __future__ import annotations

from ..applications.effects import ApplicationState
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue, waits
from ..resources.comparisons import equals
from ..resources.resource import EMPTY, Resource, add, fits, fits_undefined_unlimited, total_of
from .charges import room_at
from .partition_state import PartitionState


def validate_partition(state: PartitionState) -> None:
    """Assert that nothing is lost or counted twice between nodes, applications, queues and users."""
    state.tree.validate()
    state.nodes.validate()
    state.limits.validate()
    _validate_nodes(state)
    _validate_queues(state)
    _validate_bars(state)
    _validate_users(state)
    _validate_counters(state)
    waiting = {
        key
        for key, claim in state.claims.by_key.items()
        if (record := claim.entry.application.asks.record(key)) and not record.placed
    }
    state.claims.validate(state.tree, waiting)
    running = [
        placed.allocation.ask.allocation_key
        for entry in state.entries.values()
        for placed in entry.application.allocations.all()
    ]
    state.ends.validate(running)
    if not state.quarantine.applications:
        gone = {*state.ends.run_times.keys}
        for entry in state.entries.values():
            gone.difference_update(entry.application.asks.known_among(state.ends.run_times.keys))
        assert not gone, f"run times of asks that are gone: {sorted(gone)}"


def _validate_nodes(state: PartitionState) -> None:
    """Assert that each allocation of an application is on its node, and that each node holds nothing else."""
    held: dict[str, dict[str, str]] = {}
    moving: dict[str, set[str]] = {}
    for entry in state.entries.values():
        entry.application.validate()
        for placed in entry.application.allocations.all():
            held.setdefault(placed.allocation.node_id, {})[placed.allocation.ask.allocation_key] = (
                entry.application_id
            )
            if placed.swap is not None and placed.swap.node_id != placed.allocation.node_id:
                moving.setdefault(placed.swap.node_id, set()).add(placed.swap.ask.allocation_key)
    for node in state.nodes:
        node.node.validate()
        facts = node.node.facts()
        assert equals(facts.available, node.available), f"node {node.node_id}: the mirror is stale"
        assert bool(facts.reservations) == node.reserved, f"node {node.node_id}: reserved or not?"
        here = {
            allocation.ask.allocation_key
            for allocation in facts.allocations
            if allocation.ask.application_id not in state.quarantine.applications
        }
        wanted = set(held.pop(node.node_id, {})) | moving.pop(node.node_id, set())
        assert here == wanted, f"node {node.node_id} holds {here}, applications say {wanted}"
    held = {name: keys for name, keys in held.items() if name not in state.quarantine.nodes}
    assert not held, f"allocations on unknown nodes: {held}"
    capacity = total_of(node.capacity for node in state.nodes)
    assert equals(capacity, state.capacity), "the partition's capacity is not the sum of its nodes'"


def _validate_queues(state: PartitionState) -> None:
    """Assert that a queue uses and waits for the sum of its children or of its applications."""
    for queue in state.tree:
        facts = [entry.facts for entry in _entries(queue)]
        children = list(queue.children.values())
        allocated = total_of(
            [child.allocated for child in children]
            + [fact.allocated for fact in facts]
            + [fact.placeholder_allocated for fact in facts],
        )
        assert equals(allocated, queue.allocated), (
            f"{queue}: allocated {queue.allocated!r} is not the sum {allocated!r}"
        )
        pending = total_of([child.pending for child in children] + [fact.pending for fact in facts])
        assert equals(pending, queue.pending), (
            f"{queue}: pending {queue.pending!r} is not the sum {pending!r}"
        )
        _validate_running(queue)
        if queue.is_leaf and waits(queue):
            asleep = queue in queue.awake.asleep
            assert asleep != (queue in queue.awake.leaves), f"{queue} is neither awake nor asleep, or both"
            assert not asleep or queue.entries.sleep is not None, f"{queue} sleeps for no reason"


def _validate_bars(state: PartitionState) -> None:
    """Assert that what bars the applications that rest still does, unless it is about to be looked at."""
    changes, nodes = (state.changes, state.node_changes), state.nodes
    for resting in state.tree.bars:
        for bar, size in () if resting.is_in_doubt(changes) else resting.bars:
            if bar is None:
                waits_no_longer = size not in resting.leaf.entries.sizes
                is_barred = size in nodes.closed or size in nodes.opened or waits_no_longer
            else:
                has_room = fits_undefined_unlimited(room_at(state, bar), size)
                is_barred = bar in state.tree.bars.freed or not has_room
            assert is_barred, f"{resting.leaf}: {size!r} rests for {bar or 'the nodes'}, which has room"


def _entries(queue: Queue) -> list[ApplicationEntry]:
    return [*queue.entries.by_id.values(), *queue.entries.suspended.values()]


def _validate_running(queue: Queue) -> None:
    below = sum(child.running for child in queue.children.values())
    here = sum(entry.facts.state is ApplicationState.RUNNING for entry in _entries(queue))
    assert queue.running == below + here, f"{queue}: {queue.running} applications run, not {below + here}"


def _validate_users(state: PartitionState) -> None:
    """Assert that a user uses the sum of all that runs for that user."""
    usage: dict[str, Resource] = {}
    for entry in (*state.entries.values(), *state.quarantine.applications.values()):
        own = add(entry.facts.allocated, entry.facts.placeholder_allocated)
        usage[entry.user.name] = add(usage.get(entry.user.name), own)
    known = state.limits.usages()
    for name in sorted(usage.keys() | known.keys()):
        counted = known.get(name, EMPTY)
        summed = usage.get(name, EMPTY)
        assert equals(counted, summed), f"user {name}: usage {counted!r} is not the sum {summed!r}"


def _validate_counters(state: PartitionState) -> None:
    asks = [
        placed.allocation.ask
        for entry in state.entries.values()
        for placed in entry.application.allocations.all()
    ]
    asks += [
        allocation.ask
        for node in state.nodes
        for allocation in node.node.facts().allocations
        if allocation.ask.application_id in state.quarantine.applications
    ]
    counted = state.placed
    assert counted.allocations == len(asks), (
        f"{counted.allocations} allocations counted, {len(asks)} are there"
    )
    placeholders = sum(ask.placeholder for ask in asks)
    assert counted.placeholders == placeholders, (
        f"{counted.placeholders} placeholders counted, {placeholders} are there"
    )
    _validate_reservations(state)


def _validate_reservations(state: PartitionState) -> None:
    """Assert that the partition knows each reservation, and that no reserved ask fits its node unnoticed."""
    wanted = {
        (reservation.node_id, record.ask)
        for entry in state.entries.values()
        if entry.facts.reserved
        for reservation, record in entry.application.reservations.with_asks()
        if record is not None
    }
    counted = {(reserved.node_id, reserved.ask) for reserved in state.reserved.all()}
    assert wanted == counted, f"reservations counted: {counted}, there are: {wanted}"
    reservations = sum(entry.facts.reserved for entry in state.entries.values())
    assert state.reservations == reservations, (
        f"{state.reservations} reservations counted, {reservations} are there"
    )
    for _, node_id, ask in state.reserved.all():
        node = state.nodes.get(node_id)
        if node is None or node_id in state.nodes.reserved_gains or not node.schedulable:
            continue
        fits_there = fits(node.available, ask.resource) and fits(node.capacity, ask.resource)
        assert not fits_there, (
            f"{ask.allocation_key} fits its reserved node {node_id}, and would not be tried"
        )
