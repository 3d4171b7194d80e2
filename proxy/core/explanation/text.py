"""An explanation for people: a blocker as sentences, and the whole as lines, most important first.

A sentence names what blocks, gives each number with its place, and tells what would have to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from ....model.configuration.durations import short_duration_text
from ....model.configuration.problems import Position
from ....model.explanation import (
    AskExplanation,
    AskStatus,
    Blocker,
    Explanation,
    Lack,
    NearMiss,
    NodeSummary,
    NodeTally,
    Place,
    PlannedStart,
    SubjectKind,
)
from ....model.placement import RuleOutcome
from ....model.resources.resource import quantity_text, resource_text
from ....model.state.preemption_log import PreemptionRecord
from ....model.values.allocation import RefusalReason
from ...base.terminal.standard_output import counted
from .one_line import ask_line, sentence

Where: TypeAlias = "Callable[[Position], str]"
"""Returns where a position of the configuration is in a file; the empty text if it is not in a file."""


_REGISTER_AGAIN: Final = (
    "the resource manager must register again, and begins anew: until then nothing is placed"
)
_AGREEING: Final = "the resource manager, or the policy, must agree"
_CHANGES: Final = {
    RefusalReason.NO_NODE_FITS: "a node must gain room, or one with enough must come",
    RefusalReason.GANG_ROOM: "nodes must gain room for all of it at once, or nodes with enough must come",
    RefusalReason.DOMAIN_ROOM: "domains must gain room for all of it at once, or nodes must come there",
    RefusalReason.GANG_INCOMPLETE: "the rest of the gang must be asked for",
    RefusalReason.PREDICATES: f"{_AGREEING}: asked again in every cycle",
    RefusalReason.WINDOW: "the window must end, or a node without one must gain room, or it must run shorter",
    RefusalReason.WAITS_FOR_PLACEHOLDER: "a placeholder must be placed, or all of them must end",
    RefusalReason.POLICY: "the policy must let it start: it is asked again after each change",
    RefusalReason.NO_CAPACITY: "a node must come",
    RefusalReason.CONGESTED: "the resource manager must take what it is told",
    RefusalReason.MANAGER_PAUSED: _REGISTER_AGAIN,
    RefusalReason.MANAGER_STOPPED: _REGISTER_AGAIN,
}
"""The necessary change, for reasons that determine it alone."""

_VICTIMS_MAX: Final = 5
"""How many victims that an ask waits for are named."""

_SETTINGS_OF_OLDER: Final = {RefusalReason.QUEUE_QUOTA: "max", RefusalReason.USER_QUOTA: "maxresources"}
"""The name of the limit, if an older scheduler in another process does not send it."""


def place_of(position: Position | None, where: Where) -> str:
    """Return the place of a setting; the empty text for one that is in no file."""
    return where(position) if position is not None else ""


def what_blocks(blocker: Blocker, now_ns: int) -> str:
    """Return one line about the blocker."""
    detail = f": {blocker.detail}" if blocker.detail else ""
    since = "" if blocker.since_ns is None else f" {short_duration_text(now_ns - blocker.since_ns)} ago"
    until = "" if blocker.until_ns is None else f" (until {_in_time(blocker.until_ns - now_ns)})"
    return f"{sentence(blocker)}{since}{detail}{until}"


def lack_line(lack: Lack, where: Where) -> str:
    """Return what was asked, what is left, the limit and its place."""
    place = place_of(lack.position, where)
    name = lack.name
    line = (
        f"{name}: asked {quantity_text(name, lack.asked)}, left {quantity_text(name, lack.available)} "
        f"of {quantity_text(name, lack.limit)}"
    )
    return f"{line} ({place})" if place else line


def withheld_lines(blocker: Blocker, where: Where) -> Iterator[str]:
    """Return what other queues keep back of their guarantees, with the places of the settings."""
    for each in blocker.withheld:
        place = place_of(each.position, where)
        kept, unused = (quantity_text(each.name, number) for number in (each.kept, each.quantity))
        line = f"queue {each.path} keeps {kept} {each.name} back of its guarantee, {unused} of it unused"
        yield f"{line} ({place})" if place else line


# ----------------------------------------------------------------------------- what would have to change


def changes_of(blocker: Blocker, now_ns: int) -> tuple[str, ...]:
    """Return what would have to change, one sentence for each quantity or one for the blocker."""
    return tuple(_changes(blocker, now_ns))


def _changes(blocker: Blocker, now_ns: int) -> Iterator[str]:
    match blocker.reason:
        case RefusalReason.QUEUE_QUOTA | RefusalReason.USER_QUOTA:
            for lack in blocker.lacks:
                yield _quota_change(blocker, lack)
        case RefusalReason.QUEUE_APPLICATIONS | RefusalReason.USER_APPLICATIONS:
            where = blocker.queue_path or blocker.subject
            needed = 1 - blocker.lacks[0].available
            yield (
                f"{counted(needed, 'application')} must end there, or maxapplications of {where} must rise "
                f"from {blocker.lacks[0].limit} to {blocker.lacks[0].limit + needed}"
            )
        case RefusalReason.REQUIRED_NODE_FULL:
            for lack in blocker.lacks:
                amount = quantity_text(lack.name, lack.missing)
                yield f"{lack.name} {amount} more must be free on {blocker.subject}"
            if not blocker.lacks:
                yield f"the reservation of {blocker.subject} must go"
        case _:
            yield _other_change(blocker, now_ns)


def _quota_change(blocker: Blocker, lack: Lack) -> str:
    name = lack.name
    missing = quantity_text(name, lack.missing)
    if blocker.kind is SubjectKind.QUEUE and lack.position is None and "." not in blocker.subject:
        return f"nodes with {name} {missing} more must come, or as much must end anywhere"
    setting = blocker.setting or _SETTINGS_OF_OLDER[blocker.reason]
    queue = blocker.queue_path or blocker.subject
    rise = (
        f"{setting}.{name} of {queue} must rise from {quantity_text(name, lack.limit)} "
        f"to {quantity_text(name, lack.limit + lack.missing)}"
    )
    if lack.asked > lack.limit:
        return f"{rise}: the ask alone is larger"
    whose = f" of {blocker.kind.value} {blocker.subject}" if blocker.queue_path else ""
    return f"{name} {missing}{whose} must end in {queue}, or {rise}"


def _other_change(blocker: Blocker, now_ns: int) -> str:
    match blocker.reason:
        case RefusalReason.REQUIRED_NODE_UNKNOWN:
            return f"node {blocker.subject} must come"
        case RefusalReason.BACKOFF:
            assert blocker.until_ns is not None, "a back-off has an end: please report"
            return f"nothing: its asks are tried again {_in_time(blocker.until_ns - now_ns)}"
        case RefusalReason.POLICY if blocker.until_ns is not None:
            return f"nothing: the policy is asked again {_in_time(blocker.until_ns - now_ns)}"
        case RefusalReason.PROTECTED:
            assert blocker.until_ns is not None, "protection has an end: please report"
            return f"nothing: preemption is tried again {_in_time(blocker.until_ns - now_ns)}"
        case RefusalReason.WOULD_DELAY | RefusalReason.DEPENDENCY | RefusalReason.ARRAY_LIMIT:
            return blocker.change
        case RefusalReason.QUEUE_STOPPED:
            return f"queue {blocker.subject} must be started"
        case RefusalReason.QUEUE_KIND:
            return f"the configuration must make queue {blocker.subject} what it was"
        case RefusalReason.PREDICATES if blocker.kind is SubjectKind.NODES and blocker.until_ns is None:
            return f"{_AGREEING}: asked again when the resource manager says that its answers change"
        case _:
            return _CHANGES.get(blocker.reason, "nothing can: it ends")


def _in_time(duration_ns: int) -> str:
    return f"in {short_duration_text(duration_ns)}" if duration_ns > 0 else "now"


# ------------------------------------------------------------------------------------ nodes and orders


def tally_line(tally: NodeTally, summary: NodeSummary) -> str:
    """Return how many nodes refuse for one reason."""
    types = ", ".join(f"{name} on {count}" for name, count in tally.types)
    more = "" if tally.nodes <= len(tally.examples) else ", ..."
    held = f", held for {', '.join(tally.reserved_for)}" if tally.reserved_for else ""
    lacking = f", short of {types}" if types else ""
    names = ", ".join(tally.examples)
    foreign = f", but for other schedulers with room: {', '.join(tally.foreign)}" if tally.foreign else ""
    return f"{tally.nodes} of {summary.total} {tally.obstacle.value}{lacking} ({names}{more}){held}{foreign}"


def miss_line(miss: NearMiss) -> str:
    """Return which node lacks least, what it lacks, and what other schedulers use of that."""
    lacks = ", ".join(f"{lack.name} {quantity_text(lack.name, lack.missing)}" for lack in miss.lacks)
    foreign = f"; other schedulers use {resource_text(miss.foreign)} there" if miss.foreign else ""
    return f"nearest: {miss.node_id} lacks {lacks}{foreign}"


def ending_text(ask: AskExplanation, now_ns: int) -> str:
    """Return for which victims an ask waits, and since when; the empty text if it does not wait for any."""
    if not ask.ending:
        return ""
    since_ns = ask.ending_since_ns
    since = "" if since_ns is None else f" {short_duration_text(now_ns - since_ns)} ago"
    names = [f"{each.allocation_key} of {each.application_id} on {each.node_id}" for each in ask.ending]
    more = f" and {len(names) - _VICTIMS_MAX} more" if len(names) > _VICTIMS_MAX else ""
    return (
        f"it preempted{since}, and waits until the resource manager confirms the end of "
        f"{', '.join(names[:_VICTIMS_MAX])}{more}"
    )


def planned_start_text(planned_start: PlannedStart, now_ns: int) -> str:
    """Return when an ask is expected to start, or why that is unknown."""
    if planned_start.start_ns is None:
        return f"no expected start: {planned_start.reason}"
    when = short_duration_text(planned_start.start_ns - now_ns)
    start = "promised a start" if planned_start.is_promised else "expected to start"
    return f"{start} on {planned_start.node_id} in {when}{_passes_text(planned_start)}"


def _passes_text(planned_start: PlannedStart) -> str:
    """Return how many later comers may delay a promise for the sake of shares, and how many have."""
    passed, left = planned_start.passed, planned_start.passes_left
    if left is None:
        return ""
    if not left:
        return f"; {passed} later comers went first: it stands now" if passed else "; it stands"
    went = f"{passed} went first, " if passed else ""
    return f"; {went}at most {left}{' more' if passed else ''} may go first for their shares"


def place_line(place: Place, where: Where) -> str:
    """Return the place of something in an order, and what is ahead of it."""
    behind = ""
    if place.ahead:
        rest = place.number - 1 - len(place.ahead)
        behind = f", behind {', '.join(place.ahead)}" + (f" and {rest} more" if rest else "")
    setting = place_of(place.position, where)
    rule = f"{place.order} ({setting})" if setting else place.order
    return f"{place.subject}: place {place.number} of {place.of} in {place.among}{behind}: {rule}"


_NAMES_MAX = 5
"""How many asks of one answer are named."""


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
        first = f", first {nodes.first}" if nodes.first else ""
        yield TextLine(f"nodes: {nodes.with_room} of {nodes.total} with room{first}", depth)
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
        else:
            yield TextLine(ask_line(ask, explanation), 1)
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
