"""What is marked as reading changes nothing: the engine `threads` takes a lock for reading there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from inspect import isfunction, signature
from itertools import chain
from types import FunctionType
from typing import Any, Final

import pytest
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcript_witness import make_replay

from licorne import RequestError, Scheduler
from licorne.actors.engines.handles import PARTS
from licorne.model.applications.application import Application
from licorne.model.cluster import Cluster
from licorne.model.explanation.dry_run import next_asks, prospects
from licorne.model.explanation.explain import explain
from licorne.model.explanation.first_blockers import first_blockers, waiting_sums
from licorne.model.marks import marked_methods
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition
from licorne.model.views import rows, shown
from licorne.model.views.rows import (
    Seen,
    happened,
    live_applications,
    live_ended,
    live_names,
    live_node_facts,
    live_nodes,
    live_queues,
    partition_figures,
    recent_preemptions,
)
from licorne.model.views.shown import (
    application_ids,
    holder_names_of,
    holders,
    listed_applications,
    node_ids,
    partition_values,
    placement_rules,
    saved_partition,
    shown_active,
    shown_completed,
    shown_nodes,
    shown_partition,
    shown_queue,
    shown_rejected,
    unknown_to_applications,
    unknown_to_nodes,
    use_to_keep,
)
from licorne.proxy.base.process import is_compiled
from licorne.proxy.play.transcripts.transcript import Line, read_transcript
from licorne.proxy.si import si_pb2 as si

ENTITIES: Final = (Application, Cluster, Node, Partition)
MARKED: Final = (*ENTITIES, *(part for parts in PARTS.values() for part in parts.values()))
_PLAIN: Final = (str, bytes, int, float, bool, type(None), Enum)


class Audit:
    """Which readers were called, and what they changed."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.changed: dict[str, set[str]] = {}
        """By reader, the places where something was other than before."""


@contextmanager
def watching(entities: tuple[type, ...] = MARKED) -> Iterator[Audit]:
    """Have every reader of some entities looked at."""
    audit = Audit()
    before = [
        (entity, name, vars(entity).get(name))
        for entity in entities
        for name, mark in marked_methods(entity).items()
        if mark == "reads"
    ]
    try:
        for entity, name, _ in before:
            setattr(entity, name, _watched(f"{entity.__name__}.{name}", getattr(entity, name), audit))
        yield audit
    finally:
        for entity, name, method in before:
            if method is None:
                delattr(entity, name)
            else:
                setattr(entity, name, method)


def _watched(label: str, method: Callable[..., Any], audit: Audit) -> Callable[..., Any]:
    @functools.wraps(method)
    def watched(entity: object, *args: object, **kwargs: object) -> object:
        before = _places(entity)
        result = method(entity, *args, **kwargs)
        audit.called.add(label)
        audit.called.update(f"{label} of {each.__name__}" for each in args if isinstance(each, FunctionType))
        changed = differences(before, _places(entity))
        if changed:
            audit.changed.setdefault(label, set()).update(changed)
        return result

    return watched


def differences(before: dict[str, object], after: dict[str, object]) -> set[str]:
    """Return the places that are not the same, each up to the first container."""
    return {
        place.partition("[")[0]
        for place in chain(before, after)
        if before.get(place, _MISSING) != after.get(place, _MISSING)
    }


_MISSING: Final = object()


def _places(entity: object) -> dict[str, object]:
    """Return everything that an entity holds, by where it stands."""
    found: dict[str, object] = {}
    seen = {id(entity)}
    todo = [(name, value) for name, value in _attributes(entity)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, _PLAIN):
            found[place] = value
            continue
        found[place] = id(value)
        if id(value) in seen or isinstance(value, ENTITIES) or callable(value):
            continue
        seen.add(id(value))
        todo += [(f"{place}{step}", below) for step, below in _below(value)]
    return found


def _below(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for number, (key, below) in enumerate(value.items()):
            yield f"[key {number}]", key
            yield f"[{key!r}]", below
    elif isinstance(value, list | tuple):
        yield from ((f"[{number}]", below) for number, below in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield "[]", ",".join(sorted(map(repr, value)))
    else:
        yield from ((f".{name}", below) for name, below in _attributes(value))


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    names = dict.fromkeys(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        names.update(dict.fromkeys([slots] if isinstance(slots, str) else slots))
    for name in names:
        if name not in {"__dict__", "__weakref__"} and hasattr(value, name):
            yield name, getattr(value, name)


SEEDS = (2, 5, 20)
LINES_BETWEEN_QUESTIONS = 10


@pytest.mark.skipif(is_compiled(), reason="what compiled code calls directly is not seen by the audit")
def test_no_reader_changes_its_entity() -> None:
    """Each is looked at before and after, on random transcripts with all questions asked in between."""
    with watching() as audit:
        for seed in SEEDS:
            replay = make_replay("direct", [])
            lines = read_transcript("\n".join(simulated_transcript(seed)), "transcript")
            with replay.scheduler as scheduler:
                replay.run(questioned(scheduler, lines))

    assert {} == audit.changed
    assert set() == readers() - audit.called


def test_a_reader_that_keeps_what_it_found_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit can fail, however deep the change is."""
    facts = Node.facts

    def remembers(node: Node) -> object:
        node._reservations["remembered"] = True
        return facts(node)

    monkeypatch.setattr(Node, "facts", remembers)
    replay = make_replay("direct", [])
    with watching() as audit, replay.scheduler:
        replay.run(read_transcript("\n".join(simulated_transcript(SEEDS[0])), "transcript"))

    assert {"Node.facts": {"_reservations"}} == audit.changed


def readers() -> set[str]:
    """Return what reads: the marked methods, and the functions of `model.views` that a partition reads by."""
    marked = {
        f"{entity.__name__}.{name}"
        for entity in MARKED
        for name, mark in marked_methods(entity).items()
        if mark == "reads"
    }
    read = {"explain", "prospects", "next_asks"}
    for room in (rows, shown):
        read |= {
            name
            for name, each in vars(room).items()
            if isfunction(each) and each.__module__ == room.__name__ and not name.startswith("_")
            if next(iter(signature(each).parameters)) == "state"
        }
    return marked | {f"Partition.read of {name}" for name in read}


def questioned(scheduler: Scheduler, lines: Iterable[Line]) -> Iterator[Line]:
    """Ask everything now and then between the lines."""
    for number, line in enumerate(lines):
        if number % LINES_BETWEEN_QUESTIONS == LINES_BETWEEN_QUESTIONS - 1:
            scheduler.validate()
            scheduler.snapshot()
            scheduler.quarantined()
            scheduler.views.configurations()
            for partition in scheduler._cluster.partitions():
                ask_everything(scheduler, partition)
        yield line


def ask_everything(scheduler: Scheduler, partition: Partition) -> None:
    scheduler._cluster.configuration_text(partition.rm_id)
    partition.read(shown_partition)
    partition.read(saved_partition)
    partition.read(use_to_keep)
    partition.read(partition_values)
    partition.read(next_asks, 10)
    watch_everything(partition)
    partition.read(placement_rules)
    partition.read(holders, "user", partition.read(holder_names_of, "user"))
    partition.read(holders, "group", partition.read(holder_names_of, "group"))
    partition.read(shown_queue, "root", subtree=True)
    partition.read(shown_nodes, partition.read(node_ids))
    listed = partition.read(listed_applications)
    partition.read(shown_active, [entry.application_id for entry in listed.active])
    partition.read(shown_completed, listed.completed)
    partition.read(shown_rejected, listed.rejected)
    partition.read(partition_figures)
    partition.read(unknown_to_nodes, [])
    partition.read(unknown_to_applications, [])
    for application_id in partition.read(application_ids):
        explanation = partition.read(explain, application_id)
        assert explanation is not None
        for one in explanation.asks:
            partition.read(explain, application_id, only_key=one.allocation_key)
        dry_run(scheduler, partition, ask=si.Allocation(allocationKey="new", applicationID=application_id))
    dry_run(scheduler, partition, application=si.AddApplicationRequest(applicationID="new"))
    for entry in partition._state.entries.values():
        entry.application.asks.refusals()
        entry.application.swaps.onto("anything")


def watch_everything(partition: Partition) -> None:
    partition.read(partition_figures)
    names = partition.read(live_names)
    for application_id in names.applications:
        partition.read(prospects, application_id)
    partition.read(live_nodes, names.nodes, {})
    for name in names.nodes:
        partition.read(live_node_facts, name)
    partition.read(live_applications, names.applications, {})
    partition.read(first_blockers, names.applications)
    partition.read(waiting_sums)
    partition.read(live_ended, names.ended)
    partition.read(live_queues, names.queues)
    partition.read(happened, Seen())
    partition.read(recent_preemptions)


def dry_run(
    scheduler: Scheduler,
    partition: Partition,
    *,
    application: si.AddApplicationRequest | None = None,
    ask: si.Allocation | None = None,
) -> None:
    with suppress(RequestError):  # Some of them are refused.
        scheduler.dry_run(application=application, ask=ask, rm_id=partition.rm_id)
