"""What is marked as reading changes nothing: the engine `threads` takes a lock for reading there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from inspect import isfunction

import pytest
from support.actors.mark_audit import MARKED, watching
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcript_witness import make_replay

from licorne import RequestError, Scheduler
from licorne.model.build_kind import is_compiled
from licorne.model.explanation.explain import explain
from licorne.model.explanation.next_asks import next_asks
from licorne.model.explanation.victims import prospects
from licorne.model.marks import marked_methods
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition
from licorne.model.views import figures, orphans, rows, shown
from licorne.model.views.figures import partition_figures
from licorne.model.views.orphans import unknown_to_applications, unknown_to_nodes
from licorne.model.views.rows import (
    live_applications,
    live_ended,
    live_names,
    live_node_facts,
    live_nodes,
    live_queues,
    live_reasons,
)
from licorne.model.views.saved import saved_partition
from licorne.model.views.shown import (
    application_ids,
    holder_names_of,
    holders,
    listed_applications,
    node_ids,
    partition_values,
    placement_rules,
    shown_active,
    shown_completed,
    shown_nodes,
    shown_partition,
    shown_queue,
    shown_rejected,
)
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.transcripts.transcript import Line, read_transcript

SEEDS = (2, 20)
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
    named = [getattr(room, name) for room in (figures, orphans, rows, shown) for name in room.__all__]
    read = {each.__name__ for each in named if isfunction(each)} | {"explain", "prospects", "next_asks"}
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
    partition.read(live_reasons, names.applications)
    partition.read(live_ended, names.ended)
    partition.read(live_queues, names.queues)


def dry_run(
    scheduler: Scheduler,
    partition: Partition,
    *,
    application: si.AddApplicationRequest | None = None,
    ask: si.Allocation | None = None,
) -> None:
    with suppress(RequestError):  # Some of them are refused.
        scheduler.dry_run(application=application, ask=ask, rm_id=partition.rm_id)
