"""What `licorne dry-run` asks, as a resource manager would send it; the answer as text and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ....model.errors import LicorneError
from ....model.explanation.dry_run import DryRun
from ....model.resources.quantities import QuantityError
from ....model.resources.texts import resource_from_texts, resource_text
from ....model.values.allocation import REQUIRED_NODE_TAG
from ...si import si_pb2 as si
from ..documents.explanations import DryRunAnswerDocument, DryRunDocument
from .documents import blocker_document, nodes_document, place_document, planned_start_document, rule_document
from .sentences import Where, place_line
from .text import TextLine, blocker_lines, node_lines, planned_start_lines, rule_lines


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
    yield from planned_start_lines(ask.planned_start, run.time_ns, 1)


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
        if run.ask.planned_start is not None:
            ask["plannedStart"] = planned_start_document(run.ask.planned_start)
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


_NAME: Final = "dry-run"
"""The name of a new application and of a new ask."""


def new_application(
    user: str, groups: Sequence[str], queue: str, tags: Sequence[str], partition: str
) -> si.AddApplicationRequest:
    """Return a new application; tags are texts of the form `NAME=VALUE`.

    Raises:
        LicorneError: A tag is of another form.
    """
    return si.AddApplicationRequest(
        applicationID=_NAME,
        queueName=queue,
        partitionName=partition,
        ugi=si.UserGroupInformation(user=user, groups=groups),
        tags=_pairs("--tag", tags),
    )


def new_ask(
    of: str | None, resources: Sequence[str], priority: int, required_node: str, partition: str
) -> si.Allocation:
    """Return a new ask of an application.

    Args:
        of: The id of the application; `None` for that of `new_application`.
        resources: What it wants, texts of the form `TYPE=QUANTITY`.
        priority: Its priority.
        required_node: The one node that it may run on; empty for any.
        partition: The partition of the application; empty for `default`.

    Raises:
        LicorneError: A resource is of another form, or no quantity.
    """
    try:
        wanted = resource_from_texts(_pairs("--resource", resources))
    except QuantityError as error:
        raise LicorneError(f"--resource: {error}") from error
    quantities = {name: si.Quantity(value=quantity) for name, quantity in wanted.items()}
    return si.Allocation(
        allocationKey=_NAME,
        applicationID=of or _NAME,
        partitionName=partition,
        resourcePerAlloc=si.Resource(resources=quantities),
        priority=priority,
        allocationTags={REQUIRED_NODE_TAG: required_node} if required_node else {},
    )


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise LicorneError(f"{option} {text}: expected NAME=VALUE")
        pairs[name] = value
    return pairs
