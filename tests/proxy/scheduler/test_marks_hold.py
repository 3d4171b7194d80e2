"""What is marked as reading changes nothing: the engine `threads` takes a lock for reading there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest
from support.actors.mark_audit import MARKED, watching
from support.transcripts.simulated_transcripts import simulated_transcript
from support.transcripts.transcript_witness import make_replay

from licorne import RequestError, Scheduler
from licorne.model.build_kind import is_compiled
from licorne.model.marks import marked_methods
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.transcripts.transcript import Line, read_transcript

SEEDS = (0, 20)
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
    assert readers() == audit.called


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
    return {
        f"{entity.__name__}.{name}"
        for entity in MARKED
        for name, mark in marked_methods(entity).items()
        if mark == "reads"
    }


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
    partition.reports.shown()
    partition.reports.values()
    partition.monitor.next_asks(10)
    watch_everything(partition)
    partition.reports.placement_rules()
    users = partition.reports.holder_names("user")
    partition.reports.holders(users=users, groups=partition.reports.holder_names("group"))
    partition.reports.queue("root", subtree=True)
    partition.reports.nodes(partition.reports.node_ids())
    listed = partition.reports.listed_applications()
    partition.reports.active([entry.application_id for entry in listed.active])
    partition.reports.completed(listed.completed)
    partition.reports.rejected(listed.rejected)
    partition.monitor.figures()
    partition.monitor.unknown_to_nodes([])
    partition.monitor.unknown_to_applications([])
    for application_id in partition.reports.application_ids():
        explanation = partition.reports.explain(application_id)
        assert explanation is not None
        for one in explanation.asks:
            partition.reports.explain_ask(application_id, one.allocation_key)
        dry_run(scheduler, partition, ask=si.Allocation(allocationKey="new", applicationID=application_id))
    dry_run(scheduler, partition, application=si.AddApplicationRequest(applicationID="new"))
    for entry in partition._state.entries.values():
        entry.application.asks.refusals()
        entry.application.swaps.onto("anything")


def watch_everything(partition: Partition) -> None:
    monitor = partition.monitor
    monitor.figures()
    names = monitor.live_names()
    for application_id in names.applications:
        monitor.prospects(application_id)
    monitor.live_nodes(names.nodes, {})
    for name in names.nodes:
        monitor.live_node_facts(name)
    monitor.live_applications(names.applications, {})
    monitor.live_reasons(names.applications)
    monitor.live_ended(names.ended)
    monitor.live_queues(names.queues)
    monitor.live_usages(names.users, names.groups)


def dry_run(
    scheduler: Scheduler,
    partition: Partition,
    *,
    application: si.AddApplicationRequest | None = None,
    ask: si.Allocation | None = None,
) -> None:
    with suppress(RequestError):  # Some of them are refused.
        scheduler.dry_run(application=application, ask=ask, rm_id=partition.rm_id)
