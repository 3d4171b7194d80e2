"""An explanation as lines of text, most important first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ....model.configuration.durations import short_duration_text
from ....model.explanation import AskExplanation, AskStatus, Blocker, Explanation, NodeSummary, PlannedStart
from ....model.placement import RuleOutcome
from ....model.resources.resource import quantity_text, resource_text
from ....model.state.preemption_log import PreemptionRecord
from ....model.values.allocation import RefusalReason
from ...base.terminal.standard_output import counted
from ...si.arguments import check_type
from .sentences import (
    Where,
    changes_of,
    ending_text,
    lack_line,
    miss_line,
    place_line,
    place_of,
    planned_start_text,
    sentence,
    tally_line,
    what_blocks,
    withheld_lines,
)

_NAMES_MAX = 5
"""How many asks of one answer are named."""
LINE_CHARACTERS_MAX: Final = 1_024
_COUNTED: Final = (RefusalReason.WAITS_FOR_PLACEHOLDER, RefusalReason.PROTECTED, RefusalReason.WOULD_DELAY)
"""Whose details are counts."""
_CUT: Final = "..."
_ENDING: Final = "it has preempted, and waits until its victims have ended"
_TURN: Final = "it is placed when its turn comes"


class TextLine(NamedTuple):
    """One line; the style is one of rich, the depth how far it is indented."""

    text: str
    depth: int = 0
    style: str = ""


def lines_of(explanation: Explanation, where: Where) -> Iterator[TextLine]:
    """Write an explanation."""
    yield TextLine(headline(explanation), style="bold")
    if explanation.rejection:
        yield TextLine(f"rejected: {explanation.rejection}", 1, "red")
    yield from rule_lines(explanation.rules, where)
    yield from blocker_lines(explanation.blockers, where, explanation.time_ns, 1)
    if explanation.is_draining:
        yield TextLine(
            f"queue {explanation.queue_path} is draining: what it has goes on, nothing new comes in", 1
        )
    for place in explanation.places:
        yield TextLine(place_line(place, where), 1)
    yield from _gang_lines(explanation)
    yield from _waiting_lines(explanation, where)
    yield from other_asks(explanation)
    yield from _preemption_lines(explanation)


def headline(explanation: Explanation) -> str:
    """Return one line about the application."""
    since_ns = explanation.state_since_ns
    since = ""
    if since_ns is not None:
        since = f" for {short_duration_text(explanation.time_ns - since_ns)} ({explanation.state_text})"
    group = f", group {explanation.limit_group}" if explanation.limit_group else ""
    queue = f" in {explanation.queue_path}" if explanation.queue_path else ""
    user = f", user {explanation.user.name}" if explanation.user.name else ""
    return (
        f"{explanation.application_id}{queue} of {explanation.partition}{user}{group}: "
        f"{explanation.state.value}{since}"
    )


def rule_lines(rules: Sequence[RuleOutcome], where: Where) -> Iterator[TextLine]:
    """Write the answer of each placement rule."""
    for rule in rules:
        place = place_of(rule.position, where)
        yield TextLine(f"rule {rule.number} {rule.rule}: {rule.why}" + (f" ({place})" if place else ""), 1)


def blocker_lines(blockers: Iterable[Blocker], where: Where, now_ns: int, depth: int) -> Iterator[TextLine]:
    """Write what blocks, with the numbers and what would have to change."""
    for blocker in blockers:
        place = ""
        if not blocker.lacks and blocker.position is not None:
            place = where(blocker.position)
        yield TextLine(what_blocks(blocker, now_ns) + (f" ({place})" if place else ""), depth, "yellow")
        for lack in blocker.lacks:
            yield TextLine(lack_line(lack, where), depth + 1)
        for line in withheld_lines(blocker, where):
            yield TextLine(line, depth + 1)
        for change in changes_of(blocker, now_ns):
            yield TextLine(f"to change: {change}", depth + 1, "green")


def node_lines(nodes: NodeSummary, depth: int) -> Iterator[TextLine]:
    """Write the answers of the nodes."""
    for tally in nodes.tallies:
        yield TextLine(f"nodes: {tally_line(tally, nodes)}", depth)
    if nodes.with_room:
        yield TextLine(f"nodes: {nodes.with_room} of {nodes.total} with room, first {nodes.first}", depth)
    if nodes.nearest is not None and not nodes.with_room:
        yield TextLine(miss_line(nodes.nearest), depth)


def planned_start_lines(planned_start: PlannedStart | None, now_ns: int, depth: int) -> Iterator[TextLine]:
    """Write when an ask is expected to start, where that is planned."""
    if planned_start is not None:
        yield TextLine(planned_start_text(planned_start, now_ns), depth)


def _gang_lines(explanation: Explanation) -> Iterator[TextLine]:
    gang = explanation.gang
    if gang is None:
        return
    style = "Hard" if gang.hard else "Soft"
    text = f"gang ({style}): {resource_text(gang.placed)} placed of {resource_text(gang.announced)} announced"
    yield TextLine(text, 1)
    for group in gang.task_groups:
        placeholders = counted(group.placeholders, "placeholder")
        yield TextLine(
            f"task group {group.name}: {placeholders}, {group.waiting} waiting, {group.placed} placed, "
            f"{group.replaced} replaced, {group.ended} ended",
            2,
        )


# --------------------------------------------------------------------------------------------- asks
def _waiting_lines(explanation: Explanation, where: Where) -> Iterator[TextLine]:
    """Write the asks that wait; neighbours with the same answer share one."""
    for _, group in groupby(explanation.waiting, key=answer_of):
        asks = list(group)
        yield TextLine(ask_headline(asks, explanation), 0, "bold")
        ask = asks[0]
        ending = ending_text(ask, explanation.time_ns)
        if ending:
            yield TextLine(ending, 1, "yellow")
        elif not ask.blockers and not explanation.blockers:
            yield TextLine("nothing blocks it: it is placed when its turn comes", 1, "green")
        if ask.reserved_node:
            yield TextLine(f"node {ask.reserved_node} is reserved for it", 1)
        yield from blocker_lines(ask.blockers, where, explanation.time_ns, 1)
        if ask.nodes is not None:
            yield from node_lines(ask.nodes, 1)
        yield from planned_start_lines(ask.planned_start, explanation.time_ns, 1)
        for noted in ask.noted:
            times = "once" if noted.count == 1 else f"{noted.count} times"
            ago = short_duration_text(explanation.time_ns - noted.last_ns)
            whose = f" on {ask.allocation_key}" if len(asks) > 1 else ""
            yield TextLine(f"noted{whose} {times}, last {ago} ago: {noted.text}", 1, "dim")


def answer_of(ask: AskExplanation) -> tuple[object, ...]:
    """Return all that is written of an ask but its name, age, place, and what was noted on it.

    The first of those with equal answers is the one that is tried for all of them.
    """
    shape = (ask.resource, ask.priority, ask.placeholder, ask.task_group_name, ask.required_node)
    return (*shape, ask.reserved_node, ask.blockers, ask.nodes, ask.planned_start, ask.ending)


def ask_headline(asks: Sequence[AskExplanation], explanation: Explanation) -> str:
    """Return one line about waiting asks that have the same answer."""
    ask = asks[0]
    names = ", ".join(one.allocation_key for one in asks[:_NAMES_MAX])
    more = f" and {len(asks) - _NAMES_MAX} more" if len(asks) > _NAMES_MAX else ""
    parts = [resource_text(ask.resource), f"priority {ask.priority}"]
    if ask.placeholder:
        parts.append("placeholder")
    if ask.task_group_name:
        parts.append(f"task group {ask.task_group_name}")
    if ask.required_node:
        parts.append(f"for node {ask.required_node} only")
    first, last = asks[0].place, asks[-1].place
    assert first is not None, "an ask that waits has a place: please report"
    assert last is not None, "an ask that waits has a place: please report"
    numbers = f"{first.number}" if first is last else f"{first.number} to {last.number}"
    parts.append(f"place {numbers} of {first.of}")
    age = short_duration_text(max(0, explanation.time_ns - ask.created_at_ns))
    verb = "waits" if len(asks) == 1 else "wait"
    return f"{names}{more} {verb} for {age}: {'; '.join(parts)}"


def other_asks(explanation: Explanation) -> Iterator[TextLine]:
    """Write what does not wait, by what has become of it."""
    for status in AskStatus:
        asks = [ask for ask in explanation.asks if ask.status is status]
        if status is AskStatus.WAITING or not asks:
            continue
        names = [f"{ask.allocation_key} on {ask.node_id}" for ask in asks[:_NAMES_MAX]]
        more = f" and {len(asks) - _NAMES_MAX} more" if len(asks) > _NAMES_MAX else ""
        yield TextLine(f"{status.value}: {', '.join(names)}{more}", 0, "bold")


# --------------------------------------------------------------------------------------- preemptions
def _preemption_lines(explanation: Explanation) -> Iterator[TextLine]:
    for record in explanation.preemptions:
        yield TextLine(preemption_headline(record, explanation), 0, "bold")
        for text in record.explain():
            yield TextLine(text, 1)
    if explanation.loops:
        yield TextLine(f"preemptions that repeat one without result: {explanation.loops}", 0, "red")


def preemption_headline(record: PreemptionRecord, explanation: Explanation) -> str:
    """Return one line about a preemption that the application took part in."""
    ago = short_duration_text(explanation.time_ns - record.time_ns)
    serves = "as preemptor" if record.application_id == explanation.application_id else ""
    suffers = any(victim.application_id == explanation.application_id for victim in record.victims)
    role = " and ".join(part for part in (serves, "as victim" if suffers else "") if part)
    return f"preemption {ago} ago, {role}: {record.cause.value} ({record.queue_path})"


def explanation_line(explanation: Explanation) -> str:
    """Return why an application waits, or the ask that an explanation is of, in one line.

    It names all blockers of the application and of its first waiting ask, with what is asked and what the
    limit is. It has no times, no counts and no usage: while the same blocks, it is the same line.

    Returns:
        At most 1,024 characters; a longer line is cut and ends with `...`.
    """
    check_type("explanation", explanation, Explanation)
    text = "; ".join(_parts(explanation)) or _TURN
    text = " ".join(text.split())
    return text if len(text) <= LINE_CHARACTERS_MAX else text[: LINE_CHARACTERS_MAX - len(_CUT)] + _CUT


def _parts(explanation: Explanation) -> Iterator[str]:
    if explanation.rejection:
        yield explanation.rejection
        return
    ask = next((each for each in explanation.asks if each.status is AskStatus.WAITING), None)
    if ask is None and explanation.asks:
        first = explanation.asks[0]
        yield f"it {first.status.value}" + (f" on {first.node_id}" if first.node_id else "")
        return
    yield from (_part(blocker, None) for blocker in explanation.blockers)
    if ask is not None:
        if ask.ending:
            yield _ENDING
        yield from (_part(blocker, ask) for blocker in ask.blockers)


def _part(blocker: Blocker, ask: AskExplanation | None) -> str:
    text = sentence(blocker)
    if blocker.reason is RefusalReason.NO_NODE_FITS and ask is not None:
        text = f"{text} for {resource_text(ask.resource)}"
    lacks = ", ".join(
        f"{lack.name} {quantity_text(lack.name, lack.asked)} asked, at most "
        f"{quantity_text(lack.name, lack.limit)}"
        for lack in blocker.lacks
    )
    detail = "" if blocker.reason in _COUNTED else blocker.detail
    return ": ".join(part for part in (text, lacks, detail) if part)
