"""The answers about one thing: why an application waits, what runs on a node, how locks nest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, final

from ....actors.locks.guards import LOCK_ORDER
from ....lockcheck.checking.watch import current
from ....lockcheck.sessions.summaries import summary_of
from ....model.configuration.durations import short_duration_text
from ....model.configuration.problems import Position
from ....model.explanation import AskExplanation, AskStatus, Blocker, Explanation
from ....model.explanation.dry_run import Prospect
from ....model.nodes.node import NodeFacts
from ....model.resources.resource import resource_text
from ....model.values.allocation import Allocation
from ...core.documents.explanations import (
    BlockerLineDocument,
    ProspectLinesDocument,
    SentencesDocument,
    SettingDocument,
    WaitingDocument,
)
from ...core.documents.monitoring import LocksDocument, PageAllocationDocument, PageNodeDocument
from ...core.explanation.one_line import ask_line
from ...core.explanation.text import (
    answer_of,
    ask_headline,
    changes_of,
    ending_text,
    headline,
    lack_line,
    node_lines,
    other_asks,
    place_line,
    planned_start_text,
    preemption_headline,
    what_blocks,
)

_GROUPS_MAX: Final = 50
"""Groups of asks with one answer beyond this number are counted, not shown."""
_ALLOCATIONS_MAX: Final = 500


@final
class ConfigurationLines:
    """The lines of a configuration, by their positions."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def where(self, position: Position) -> str:
        """Return a position as other errors and answers name it, the empty text for what is in no text."""
        return f"configuration:{position}" if self._line(position) else ""

    def document(self, position: Position | None) -> SettingDocument | None:
        """Return the line at a position, `None` for what is in no text."""
        text = "" if position is None else self._line(position)
        if position is None or not text:
            return None
        return {"line": position.line, "column": position.column, "path": position.path, "text": text.strip()}

    def _line(self, position: Position) -> str:
        return self._lines[position.line - 1] if position.line <= len(self._lines) else ""


def explanation_document(
    explanation: Explanation, prospects: Sequence[Prospect], lines: ConfigurationLines
) -> SentencesDocument:
    """Return why an application waits, in sentences, each with the line of the configuration behind it."""
    groups = [list(group) for _, group in groupby(explanation.waiting, key=answer_of)]
    return {
        "applicationID": explanation.application_id,
        "headline": headline(explanation),
        "state": explanation.state.value,
        "rejection": explanation.rejection,
        "draining": explanation.is_draining,
        "rules": [
            {"text": f"rule {rule.number} {rule.rule}: {rule.why}", "setting": lines.document(rule.position)}
            for rule in explanation.rules
        ],
        "blockers": [_blocker(each, lines, explanation.time_ns) for each in explanation.blockers],
        "places": [
            {"text": place_line(place, _nowhere), "setting": lines.document(place.position)}
            for place in explanation.places
        ],
        "waiting": [_waiting(group, explanation, lines) for group in groups[:_GROUPS_MAX]],
        "more": max(0, len(groups) - _GROUPS_MAX),
        "victims": [_prospect(each, explanation.time_ns) for each in prospects],
        "others": [line.text for line in other_asks(explanation)],
        "preemptions": [
            {"text": preemption_headline(record, explanation), "lines": [*record.explain()]}
            for record in explanation.preemptions
        ],
        "loops": explanation.loops,
    }


def _prospect(prospect: Prospect, now_ns: int) -> ProspectLinesDocument:
    """Return who would be preempted for one ask, or why nothing would be."""
    record = prospect.record
    if record is None:
        return {"text": prospect.allocation_key, "why": prospect.why_not, "victims": []}
    due_ns = prospect.due_ns or 0
    when = f", from in {short_duration_text(due_ns - now_ns)} on" if due_ns > now_ns else ""
    return {
        "text": f"{prospect.allocation_key} on {record.node_id}{when}",
        "why": record.reason,
        "victims": [
            {
                "title": f"{victim.allocation_key} of {victim.application_id} on {victim.node_id}",
                "why": f"{victim.queue_path}: {victim.reason}",
            }
            for victim in record.victims
        ],
    }


def _nowhere(_: Position) -> str:
    return ""


def _waiting(
    asks: Sequence[AskExplanation], explanation: Explanation, lines: ConfigurationLines
) -> WaitingDocument:
    ask = asks[0]
    assert ask.status is AskStatus.WAITING, f"{ask.allocation_key} does not wait: please report"
    ending = ending_text(ask, explanation.time_ns)
    free = not (ask.blockers or explanation.blockers or ending)
    document: WaitingDocument = {
        "key": ask.allocation_key,
        "text": ask_headline(asks, explanation),
        "sentence": ask_line(ask, explanation),
        "free": free,
        "reserved": ask.reserved_node,
        "blockers": [_blocker(each, lines, explanation.time_ns) for each in ask.blockers],
        "nodes": [line.text for line in node_lines(ask.nodes, 0)] if ask.nodes is not None else [],
        "noted": [
            f"noted {'once' if noted.count == 1 else f'{noted.count} times'}: {noted.text}"
            for noted in ask.noted
        ],
    }
    if ending:
        document["ending"] = ending
    if ask.planned_start is not None:
        document["start"] = planned_start_text(ask.planned_start, explanation.time_ns)
    return document


def _blocker(blocker: Blocker, lines: ConfigurationLines, now_ns: int) -> BlockerLineDocument:
    return {
        "text": what_blocks(blocker, now_ns),
        "setting": lines.document(blocker.position),
        "lacks": [
            {"text": lack_line(lack, _nowhere), "setting": lines.document(lack.position)}
            for lack in blocker.lacks
        ],
        "changes": [*changes_of(blocker, now_ns)],
    }


def node_document(facts: NodeFacts) -> PageNodeDocument:
    """Return all of a node: its capacity, the work on it, and its reservations."""
    return {
        "nodeID": facts.node_id,
        "attributes": dict(facts.attributes.items()),
        "schedulable": facts.schedulable,
        "capacity": resource_text(facts.capacity),
        "allocated": resource_text(facts.allocated),
        "occupied": resource_text(facts.occupied),
        "available": resource_text(facts.available),
        "allocations": [_allocation(each) for each in facts.allocations[:_ALLOCATIONS_MAX]],
        "allocationsTotal": len(facts.allocations),
        "foreign": [_allocation(each) for each in facts.foreign[:_ALLOCATIONS_MAX]],
        "foreignTotal": len(facts.foreign),
        "reservations": [*facts.reservations],
    }


def _allocation(allocation: Allocation) -> PageAllocationDocument:
    ask = allocation.ask
    return {
        "allocationKey": ask.allocation_key,
        "applicationID": ask.application_id,
        "resource": resource_text(ask.resource),
        "priority": ask.priority,
        "placeholder": ask.placeholder,
    }


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
