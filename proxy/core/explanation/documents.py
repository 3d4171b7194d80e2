"""An explanation as a document, plain data for programs; and the questions and answers of `licorne dry-run`.

Quantities and times are raw numbers. A dry run is asked as a resource manager would send it, and answered as
text and as a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, cast

from ....model.errors import LicorneError
from ....model.explanation import (
    AskExplanation,
    AskStatus,
    Blocker,
    Explanation,
    Lack,
    NodeSummary,
    NodeTally,
    Place,
)
from ....model.explanation.dry_run import DryRun, NextAsk, NextAsks, Prospect
from ....model.explanation.planned_starts import PlannedStart
from ....model.placement import RuleOutcome
from ....model.resources.quantities import QuantityError, saturate
from ....model.resources.resource import Resource, resource_from_texts, resource_text
from ....model.state.preemption_log import PreemptionRecord
from ....model.values.allocation import REQUIRED_NODE_TAG
from ....model.values.documents import quantities_shown
from ....model.views.rows import preemption_document, victim_document
from ...si import si_pb2 as si
from ..documents.applications import PreemptionDocument, VictimDocument
from ..documents.explanations import (
    BlockerDocument,
    DryRunAnswerDocument,
    DryRunDocument,
    ExplainedAskDocument,
    ExplainedDocument,
    GangDocument,
    LackDocument,
    NearestNodeDocument,
    NextAskDocument,
    NextAsksDocument,
    NodeAnswersDocument,
    PlaceDocument,
    PlannedStartDocument,
    ProspectDocument,
    RefusingNodesDocument,
    RuleAnswerDocument,
)
from .one_line import ask_line
from .text import (
    TextLine,
    Where,
    blocker_lines,
    changes_of,
    node_lines,
    place_line,
    place_of,
    planned_start_lines,
    rule_lines,
    what_blocks,
    withheld_lines,
)


def document_of(explanation: Explanation, where: Where) -> ExplainedDocument:
    """Return the document of an explanation."""
    now_ns = explanation.time_ns
    return {
        "time": now_ns,
        "partition": explanation.partition,
        "applicationID": explanation.application_id,
        "state": explanation.state.value,
        "stateText": explanation.state_text,
        "stateSince": explanation.state_since_ns,
        "submissionTime": explanation.submitted_at_ns,
        "finishedTime": explanation.finished_at_ns,
        "user": explanation.user.name,
        "groups": [*explanation.user.groups],
        "limitGroup": explanation.limit_group,
        "queueName": explanation.queue_path,
        "queueIsDraining": explanation.is_draining,
        "rejection": explanation.rejection,
        "rules": [rule_document(rule, where) for rule in explanation.rules],
        "blockers": [blocker_document(blocker, where, now_ns) for blocker in explanation.blockers],
        "places": [place_document(place, where) for place in explanation.places],
        "gang": _gang(explanation),
        "asks": [_ask(ask, explanation, where) for ask in explanation.asks],
        "preemptions": [_preemption(record) for record in explanation.preemptions],
        "preemptionLoops": explanation.loops,
    }


def prospect_document(prospect: Prospect) -> ProspectDocument:
    """Return the document of what would be preempted for an ask, or why nothing would be."""
    record = prospect.record
    return {
        "allocationKey": prospect.allocation_key,
        "whyNot": prospect.why_not or None,
        "due": prospect.due_ns,
        "preemption": _preemption(record) if record is not None else None,
    }


def rule_document(rule: RuleOutcome, where: Where) -> RuleAnswerDocument:
    """Return the document of a placement rule's answer."""
    place = place_of(rule.position, where)
    return {"number": rule.number, "rule": rule.rule, "why": rule.why, "position": place or None}


def blocker_document(blocker: Blocker, where: Where, now_ns: int) -> BlockerDocument:
    """Return the document of a blocker, with its sentences."""
    place = place_of(blocker.position, where)
    withheld = [*withheld_lines(blocker, where)]
    document: BlockerDocument = {
        "reason": blocker.reason.name,
        "kind": blocker.kind.value,
        "subject": blocker.subject,
        "queueName": blocker.queue_path,
        "text": what_blocks(blocker, now_ns),
        "lacks": [_lack(lack, where) for lack in blocker.lacks],
        "position": place or None,
        "until": blocker.until_ns,
        "changes": [*changes_of(blocker, now_ns)],
    }
    if withheld:
        document["withheld"] = withheld
    return document


def nodes_document(nodes: NodeSummary) -> NodeAnswersDocument:
    """Return the document of the nodes' answers."""
    nearest: NearestNodeDocument | None = None
    if nodes.nearest is not None:
        lacks = quantities_shown({lack.name: lack.missing for lack in nodes.nearest.lacks})
        nearest = {"nodeID": nodes.nearest.node_id, "missing": lacks}
        if nodes.nearest.foreign:
            nearest["foreign"] = _quantities(nodes.nearest.foreign)
    return {
        "total": nodes.total,
        "withRoom": nodes.with_room,
        "first": nodes.first or None,
        "refusing": [_refusing(tally) for tally in nodes.tallies],
        "nearest": nearest,
        "available": nodes.available,
        "reasons": dict(nodes.reasons),
    }


def _refusing(tally: NodeTally) -> RefusingNodesDocument:
    document: RefusingNodesDocument = {
        "reason": tally.obstacle.name,
        "nodes": tally.nodes,
        "types": dict(tally.types),
        "examples": [*tally.examples],
        "reservedFor": [*tally.reserved_for],
    }
    if tally.foreign:
        document["foreign"] = [*tally.foreign]
    return document


def planned_start_document(planned_start: PlannedStart) -> PlannedStartDocument:
    """Return the document of when an ask is expected to start, or of why that is unknown."""
    return {
        "time": planned_start.start_ns,
        "nodeID": planned_start.node_id or None,
        "isPromised": planned_start.is_promised,
        "passed": planned_start.passed,
        "passesLeft": planned_start.passes_left,
        "whyNot": planned_start.reason or None,
    }


def next_asks_document(found: NextAsks, where: Where) -> NextAsksDocument:
    """Return the document of the asks that are tried next."""
    return {
        "time": found.time_ns,
        "partition": found.partition,
        "blockers": [blocker_document(blocker, where, found.time_ns) for blocker in found.blockers],
        "asks": [_next_ask(each) for each in found.asks],
    }


def _next_ask(found: NextAsk) -> NextAskDocument:
    ask = found.ask
    return {
        "queueName": found.queue_path,
        "applicationID": ask.application_id,
        "allocationKey": ask.allocation_key,
        "pass": found.trying_pass.name,
        "resource": _quantities(ask.resource),
        "priority": ask.priority,
        "createTime": ask.created_at_ns,
        "placeholder": ask.placeholder,
        "taskGroupName": ask.task_group_name,
        "requiredNode": ask.required_node or None,
        "reservedNode": found.reserved_node or None,
    }


def _lack(lack: Lack, where: Where) -> LackDocument:
    place = place_of(lack.position, where)
    return {
        "type": lack.name,
        "asked": saturate(lack.asked),
        "available": saturate(lack.available),
        "limit": saturate(lack.limit),
        "missing": saturate(lack.missing),
        "position": place or None,
        "path": lack.position.path if lack.position is not None else None,
    }


def place_document(place: Place, where: Where) -> PlaceDocument:
    """Return the document of a place in an order."""
    position = place_of(place.position, where)
    return {
        "subject": place.subject,
        "among": place.among,
        "number": place.number,
        "of": place.of,
        "ahead": [*place.ahead],
        "order": place.order,
        "position": position or None,
    }


def _gang(explanation: Explanation) -> GangDocument | None:
    gang = explanation.gang
    if gang is None:
        return None
    return {
        "announced": _quantities(gang.announced),
        "placed": _quantities(gang.placed),
        "style": "Hard" if gang.hard else "Soft",
        "taskGroups": [
            {
                "taskGroupName": group.name,
                "placeholders": group.placeholders,
                "waiting": group.waiting,
                "placed": group.placed,
                "replaced": group.replaced,
                "ended": group.ended,
            }
            for group in gang.task_groups
        ],
    }


def _ask(ask: AskExplanation, explanation: Explanation, where: Where) -> ExplainedAskDocument:
    now_ns = explanation.time_ns
    document: ExplainedAskDocument = {
        "allocationKey": ask.allocation_key,
        "status": ask.status.name,
        "resource": _quantities(ask.resource),
        "priority": ask.priority,
        "createTime": ask.created_at_ns,
        "placeholder": ask.placeholder,
        "taskGroupName": ask.task_group_name,
        "requiredNode": ask.required_node,
        "nodeID": ask.node_id or None,
        "reservedNode": ask.reserved_node or None,
        "place": place_document(ask.place, where) if ask.place is not None else None,
        "blockers": [blocker_document(blocker, where, now_ns) for blocker in ask.blockers],
        "nodes": nodes_document(ask.nodes) if ask.nodes is not None else None,
        "noted": [{"text": noted.text, "count": noted.count, "last": noted.last_ns} for noted in ask.noted],
    }
    if ask.status is AskStatus.WAITING:
        document["sentence"] = ask_line(ask, explanation)
    if ask.planned_start is not None:
        document["plannedStart"] = planned_start_document(ask.planned_start)
    if ask.ending:
        document["ending"] = [cast("VictimDocument", victim_document(victim)) for victim in ask.ending]
        document["endingSince"] = ask.ending_since_ns
    return document


def _preemption(record: PreemptionRecord) -> PreemptionDocument:
    return cast("PreemptionDocument", preemption_document(record))


def _quantities(resource: Resource) -> dict[str, int]:
    return quantities_shown(resource.as_dict())


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
        resources: The requested resources, texts of the form `TYPE=QUANTITY`.
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
