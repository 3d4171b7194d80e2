"""A dry run as lines of text, and as a document."""

from __future__ import annotations

from collections.abc import Iterator

from ...model.explanation.dry_run import DryRun
from ...model.resources.quantity_texts import resource_text
from ..documents.explanations import DryRunAnswerDocument, DryRunDocument
from .documents import blocker_document, nodes_document, place_document, rule_document
from .sentences import Where, place_line
from .text import TextLine, blocker_lines, node_lines, rule_lines

__all__ = ["dry_run_document", "dry_run_lines"]


def dry_run_lines(run: DryRun, where: Where) -> Iterator[TextLine]:
    """Write where an application, and an ask of it, would go."""
    kind = "new application" if run.is_new else "application"
    group = f", group {run.limit_group}" if run.limit_group else ""
    user = f" of user {run.user.name}" if run.user.name else ""
    yield TextLine(f"{kind} {run.application_id}{user}{group} in {run.partition}", style="bold")
    yield from rule_lines(run.rules, where)
    if run.rejection:
        yield TextLine(f"rejected: {run.rejection}", 1, "red")
        return
    made = f" (made for it: {', '.join(run.creates)})" if run.creates else ""
    yield TextLine(f"queue: {run.queue_path}{made}", 1, "green")
    if run.place is not None:
        yield TextLine(place_line(run.place, where), 1)
    yield from blocker_lines(run.blockers, where, run.time_ns, 1)
    ask = run.ask
    if ask is None:
        return
    yield TextLine(
        f"ask {ask.allocation_key}: {resource_text(ask.resource)}; priority {ask.priority}", 0, "bold"
    )
    if ask.place is not None:
        yield TextLine(place_line(ask.place, where), 1)
    yield from blocker_lines(ask.blockers, where, run.time_ns, 1)
    if run.node_id:
        yield TextLine(f"node: {run.node_id}", 1, "green")
    if ask.nodes is not None:
        yield from node_lines(ask.nodes, 1)


def dry_run_document(run: DryRun, where: Where) -> DryRunDocument:
    """Return the document of a dry run."""
    ask: DryRunAnswerDocument | None = None
    if run.ask is not None:
        ask = {
            "allocationKey": run.ask.allocation_key,
            "resource": dict(sorted(run.ask.resource.items())),
            "priority": run.ask.priority,
            "place": place_document(run.ask.place, where) if run.ask.place is not None else None,
            "blockers": [blocker_document(blocker, where, run.time_ns) for blocker in run.ask.blockers],
            "nodes": nodes_document(run.ask.nodes) if run.ask.nodes is not None else None,
        }
    return {
        "time": run.time_ns,
        "partition": run.partition,
        "applicationID": run.application_id,
        "isNew": run.is_new,
        "user": run.user.name,
        "groups": [*run.user.groups],
        "limitGroup": run.limit_group,
        "queueName": run.queue_path,
        "queuesMade": [*run.creates],
        "rejection": run.rejection,
        "rules": [rule_document(rule, where) for rule in run.rules],
        "place": place_document(run.place, where) if run.place is not None else None,
        "blockers": [blocker_document(blocker, where, run.time_ns) for blocker in run.blockers],
        "ask": ask,
        "nodeID": run.node_id or None,
    }
