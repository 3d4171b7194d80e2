"""Make the explanation of an application, with what blocks a gang that is placed whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from ..applications.effects import ApplicationState
from ..applications.gang import whole_members
from ..applications.handle import ApplicationHandle
from ..applications.report import ApplicationReport, Noted, WaitingAsk
from ..configuration.problems import Position
from ..configuration.queue_properties import BACKOFF, GANG_PLACING
from ..nodes.gang_room import NodeRoom, plan_on, slots, slots_of_each, usable_rooms
from ..nodes.topology import Domains
from ..placement.rules import RuleOutcome
from ..planning.planned_jobs import JobOwner
from ..preemption.guarantee.attempt import PRECONDITIONS
from ..preemption.guarantee.attempt_budget import NoPreemption
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..resources.comparisons import is_zero
from ..resources.resource import resource_text, total_of
from ..state.claims import EndingVictim
from ..state.partition_state import PartitionState
from ..state.preemption_log import PreemptionRecord, VictimRecord
from ..values.allocation import Ask, RefusalReason
from ..values.messages import User
from ..values.states import ObjectState
from .asks import (
    ATTEMPT_TEXTS,
    NOT_ASKED,
    AskChecker,
    ProtectionChecker,
    RefusedNodes,
    attempting,
    not_entitled,
)
from .blockers import (
    Blocker,
    SubjectKind,
    admission_blockers,
    application_count_blockers,
    queue_quota_blockers,
    user_quota_blockers,
    wait_blockers,
)
from .planned_starts import StartChecker
from .shared_summaries import SharedSummaries
from .values import AskExplanation, AskStatus, Explanation, Gang, application_place, place_in, queue_places

_DOMAINS_MAX: Final = 5
"""How many domains of nodes are named."""
_SHAPES_MAX: Final = 16
"""About how many shapes of one application its resource manager is asked for an explanation."""
_ASK_ORDER = "the higher priority first, then the earlier creation"


def explain(
    state: PartitionState,
    application_id: str,
    *,
    only_key: str | None = None,
    refused: RefusedNodes = NOT_ASKED,
    summaries: SharedSummaries | None = None,
) -> Explanation | None:
    """Explain an application, or one ask of it; `None` if the partition does not know the application.

    Args:
        state: The partition; nothing of it is changed.
        application_id: An application that is active, or was rejected or ended within three days.
        only_key: Explain this ask alone: the others cost time where there are many.
        refused: The nodes that the resource manager refuses, by the keys that `first_keys` returned.
        summaries: The summaries of nodes of earlier explanations, `None` to ask every node.
    """
    entry = state.entries.get(application_id)
    if entry is None:
        return _explain_past(state, application_id, only_key)
    report = entry.application.report(only_key=only_key)
    leaf = entry.queue
    place = application_place(leaf, entry)
    checker = AskChecker(
        state, leaf, application_id, entry.user, refused, summaries=summaries, tags=entry.tags
    )
    basis = _basis(state, entry.application, report, only_key)
    return replace(
        basis,
        user=entry.user,
        queue_path=leaf.path,
        limit_group=state.limits.group_of(leaf.path, application_id, entry.user) or "",
        is_draining=leaf.is_draining,
        blockers=tuple(entry_blockers(state, entry)) if report.waiting_keys else (),
        places=() if place is None else (place, *queue_places(state.tree, leaf)),
        gang=_gang(entry.application, report),
        asks=(*_waiting(state, entry, report, checker), *_held(report, only_key)),
    )


def first_keys(state: PartitionState, application_id: str, only_key: str | None) -> tuple[str, ...]:
    """Return the first waiting ask of each shape of an application, or the only key if that ask waits."""
    entry = state.entries.get(application_id)
    if entry is None:
        return ()
    report = entry.application.report(only_key=only_key, first_of_shapes=only_key is None)
    keys = (waiting.ask.allocation_key for waiting in report.waiting)
    return tuple(islice(keys, _SHAPES_MAX))


# ------------------------------------------------------------------------------------ applications


def partition_blockers(state: PartitionState) -> Iterator[Blocker]:
    """Walk the blockers of the whole partition."""
    found = {
        RefusalReason.PARTITION_STOPPED: state.state is ObjectState.STOPPED,
        RefusalReason.NO_CAPACITY: state.tree.root.maximum is None,
    }
    for reason, stands_in_the_way in found.items():
        if stands_in_the_way:
            yield Blocker(reason=reason, kind=SubjectKind.PARTITION, subject=state.name)
    halt = state.host.placement_halt()
    if halt is not None:
        yield Blocker(
            reason=halt.reason,
            kind=SubjectKind.PARTITION,
            subject=state.name,
            detail=halt.detail,
            since_ns=halt.since_ns,
        )


def _queue_blockers(leaf: Queue) -> Iterator[Blocker]:
    """Walk the queues at which the path to a leaf ends; what a draining queue has continues."""
    for level in leaf.above[:-1]:
        if level.state is ObjectState.STOPPED:
            reason = RefusalReason.QUEUE_STOPPED
            yield Blocker(reason=reason, kind=SubjectKind.QUEUE, subject=level.path)
        if level.is_leaf is not (level is leaf):
            is_now = "a leaf, and no queue below it is visited" if level.is_leaf else "a parent of queues"
            settings = [level.positions.get(key) for key in ("parent", "queues", "name")]
            yield Blocker(
                reason=RefusalReason.QUEUE_KIND,
                kind=SubjectKind.QUEUE,
                subject=level.path,
                detail=f"it is {is_now}",
                position=next((position for position in settings if position is not None), None),
            )


def entry_blockers(
    state: PartitionState, entry: ApplicationEntry, *, is_starting: bool = False
) -> Iterator[Blocker]:
    """Walk what blocks all asks of an application.

    Args:
        state: The partition.
        entry: The application; it need not be in its leaf yet.
        is_starting: It would start with its first ask.
    """
    leaf = entry.queue
    yield from partition_blockers(state)
    yield from _queue_blockers(leaf)
    yield from wait_blockers(state, entry)
    if is_starting or entry.facts.state is ApplicationState.ACCEPTED:
        yield from application_count_blockers(state, leaf, entry.application_id, entry.user)
    if is_starting or entry.facts.state is ApplicationState.ACCEPTED or entry.held is not None:
        yield from admission_blockers(state, entry)
    if entry.facts.gang_waits:
        yield from gang_blockers(state, entry)
    until_ns = entry.backoff_until_ns
    if until_ns is not None and until_ns > state.now_ns():
        yield Blocker(
            reason=RefusalReason.BACKOFF,
            kind=SubjectKind.APPLICATION,
            subject=entry.application_id,
            detail=f"{leaf.settings.backoff_count} of its asks found no node",
            position=leaf.positions.get(f"properties.{BACKOFF}"),
            until_ns=until_ns,
        )


def _gang(application: ApplicationHandle, report: ApplicationReport) -> Gang | None:
    settings = application.gang_settings
    if is_zero(settings.placeholder_ask) and not report.task_groups:
        return None
    return Gang(
        announced=settings.placeholder_ask,
        placed=report.placeholder_allocated,
        hard=settings.hard,
        task_groups=report.task_groups,
    )


def _preemptions(
    state: PartitionState, application_id: str, only_key: str | None
) -> Iterator[PreemptionRecord]:
    """Walk the preemptions that an application, or one ask of it, took part in."""
    for record in state.preemptions:
        taking_part = [(record.application_id, record.allocation_key)]
        taking_part += [(victim.application_id, victim.allocation_key) for victim in record.victims]
        if any(name == application_id and only_key in (None, key) for name, key in taking_part):
            yield record


def _explain_past(state: PartitionState, application_id: str, only_key: str | None) -> Explanation | None:
    """Explain the last application of that id that was rejected or has ended."""
    past = _last_past(state, application_id)
    if past is None:
        return None
    application, rules = past
    return replace(_basis(state, application, application.report(), only_key), rules=rules)


def _last_past(
    state: PartitionState, application_id: str
) -> tuple[ApplicationHandle, tuple[RuleOutcome, ...]] | None:
    """Return the last application of that id that was rejected or has ended, with the results of rules."""
    past: dict[int, tuple[ApplicationHandle, tuple[RuleOutcome, ...]]] = {
        serial: (ended.application, ())
        for serial, ended in state.completed.items()
        if ended.application.application_id == application_id
    }
    rejected = state.rejected.get(application_id)
    if rejected is not None:
        past[rejected.serial] = (rejected.application, rejected.rules)
    return past[max(past)] if past else None


def queue_and_user_of(state: PartitionState, application_id: str) -> tuple[str, User] | None:
    """Return the path of the queue of an application that can be explained, and its user.

    The path is empty for one that was rejected before it had a queue.
    """
    entry = state.entries.get(application_id)
    if entry is not None:
        return entry.queue.path, entry.user
    past = _last_past(state, application_id)
    return None if past is None else (past[0].report(only_key="").queue_path, past[0].user)


def _basis(
    state: PartitionState, application: ApplicationHandle, report: ApplicationReport, only_key: str | None
) -> Explanation:
    """Return an explanation with the facts and the report of an application, and no blockers."""
    return Explanation(
        time_ns=state.now_ns(),
        partition=state.name,
        application_id=application.application_id,
        state=report.state,
        state_text=report.state_text,
        state_since_ns=report.state_since_ns,
        submitted_at_ns=report.submitted_at_ns,
        finished_at_ns=report.finished_at_ns,
        user=application.user,
        queue_path=report.queue_path,
        rejection=report.rejection,
        preemptions=tuple(_preemptions(state, application.application_id, only_key)),
    )


# -------------------------------------------------------------------------------------------- asks


def _waiting(
    state: PartitionState, entry: ApplicationEntry, report: ApplicationReport, checker: AskChecker
) -> Iterator[AskExplanation]:
    protection = ProtectionChecker(state, entry)
    starts = StartChecker(state, JobOwner.of(entry))
    keys = report.waiting_keys
    places = {key: index for index, key in enumerate(keys)}
    for waiting in report.waiting:
        ask = waiting.ask
        obstacles = protection.add_to(waiting, checker.check_waiting(waiting, report))
        delay, planned_start = starts.check(ask)
        explained = AskExplanation(
            allocation_key=ask.allocation_key,
            status=AskStatus.WAITING,
            resource=ask.resource,
            priority=ask.priority,
            created_at_ns=ask.created_at_ns,
            placeholder=ask.placeholder,
            task_group_name=ask.task_group_name,
            required_node=ask.required_node,
            reserved_node=waiting.reserved_node,
            place=place_in(keys, places[ask.allocation_key], entry.application_id, _ASK_ORDER),
            blockers=obstacles.blockers if delay is None else (*obstacles.blockers, delay),
            nodes=obstacles.nodes,
            planned_start=planned_start,
            noted=tuple(_with_shortage(state, entry, ask, noted) for noted in waiting.noted),
            preemption=_why_nothing_is_preempted(state, entry, waiting),
        )
        yield _with_ending(state, entry, explained)


def _with_ending(state: PartitionState, entry: ApplicationEntry, explained: AskExplanation) -> AskExplanation:
    """Return the explanation of an ask with the victims that it waits for.

    Attempts that failed before it preempted are not shown: they would mean that preemption does not help.
    """
    claim = state.claims.find(explained.allocation_key)
    if claim is None or not claim.ending:
        return explained
    record = state.preemptions.last_for(claim.ask.allocation_key, entry.application_id)
    chosen = {} if record is None else {victim.allocation_key: victim for victim in record.victims}
    return replace(
        explained,
        ending=tuple(chosen.get(each.allocation_key) or _taken_over(each) for each in claim.ending.values()),
        ending_since_ns=None if record is None else record.time_ns,
        noted=tuple(noted for noted in explained.noted if noted.text not in ATTEMPT_TEXTS),
        preemption="",
    )


def _taken_over(victim: EndingVictim) -> VictimRecord:
    return VictimRecord(
        allocation_key=victim.allocation_key,
        application_id=victim.application_id,
        queue_path=victim.queue.path,
        node_id=victim.node_id,
        resource=victim.resource,
        reason="it was preempted for an ask that was withdrawn",
    )


def _with_shortage(state: PartitionState, entry: ApplicationEntry, ask: Ask, noted: Noted) -> Noted:
    """Return what was noted; where a guarantee forbids to preempt, with what it has too little of now."""
    if noted.text != NoPreemption.GUARANTEE.text:
        return noted
    whole, _ = attempting(entry, ask)
    return replace(noted, text=f"{noted.text}; now {not_entitled(state, entry.queue, whole)}")


def _why_nothing_is_preempted(state: PartitionState, entry: ApplicationEntry, waiting: WaitingAsk) -> str:
    """Return why the last attempt to preempt for an ask failed; the empty text without an attempt."""
    attempts = [noted for noted in waiting.noted if noted.text in ATTEMPT_TEXTS - {PRECONDITIONS}]
    if not attempts:
        return ""
    text = max(attempts, key=lambda each: each.last_ns).text
    if text != NoPreemption.GUARANTEE.text:
        return text
    return not_entitled(state, entry.queue, attempting(entry, waiting.ask)[0])


def _held(report: ApplicationReport, only_key: str | None) -> Iterator[AskExplanation]:
    """Walk the allocations, and the asks that are to replace a placeholder."""
    for held in report.held:
        status = AskStatus.LEAVING if held.is_leaving else AskStatus.PLACED
        placements = [(held.allocation, status)]
        if held.swap is not None:
            placements.append((held.swap, AskStatus.REPLACING))
        for allocation, state in placements:
            if only_key in (None, allocation.allocation_key):
                yield replace(described(allocation.ask, state), node_id=allocation.node_id)


def described(ask: Ask, status: AskStatus) -> AskExplanation:
    """Return an explanation with the facts of an ask, and nothing else."""
    return AskExplanation(
        allocation_key=ask.allocation_key,
        status=status,
        resource=ask.resource,
        priority=ask.priority,
        created_at_ns=ask.created_at_ns,
        placeholder=ask.placeholder,
        task_group_name=ask.task_group_name,
        required_node=ask.required_node,
    )


def gang_blockers(state: PartitionState, entry: ApplicationEntry) -> Iterator[Blocker]:
    """Walk what blocks all asks of an application because its gang is placed whole, or not at all."""
    waiting = [record.ask for record in entry.application.asks.waiting()]
    members = whole_members(entry.application.gang_settings, waiting)
    if not members:
        yield _blocker(entry, RefusalReason.GANG_INCOMPLETE, _missing(entry, waiting))
        return
    leaf = entry.queue
    whole = members[0].resized(total_of(ask.resource for ask in members))
    quotas = (
        *user_quota_blockers(state, leaf.path, entry.application_id, entry.user, whole),
        *queue_quota_blockers(leaf, leaf.above, whole, state.claims.find(whole.allocation_key)),
    )
    yield from (*quotas, *_node_blockers(state, entry, members, are_asked=not quotas))


def _node_blockers(
    state: PartitionState, entry: ApplicationEntry, members: Sequence[Ask], *, are_asked: bool
) -> Iterator[Blocker]:
    """Walk the answers of nodes for a gang; with `are_asked` no quota refuses it: the RM's refusals count."""

    def may_run(member: int, node_id: str) -> bool:
        return members[member].required_node in {"", node_id}

    own = {each.reserved_node for each in entry.application.report().waiting if each.reserved_node}
    domains = state.topology.domains(entry.application.gang_settings.domains)
    if plan_on(state.nodes, [ask.resource for ask in members], may_run, own=own, domains=domains) is None:
        if domains is not None and domains.terms.needed:
            yield _blocker(entry, RefusalReason.DOMAIN_ROOM, _domains_text(state, members, domains))
        else:
            yield _blocker(entry, RefusalReason.GANG_ROOM, _rooms_text(state, members))
        return
    for refusal in entry.application.asks.refusals():
        if are_asked and refusal.reason in {RefusalReason.PREDICATES, RefusalReason.WINDOW}:
            yield Blocker(
                reason=refusal.reason,
                kind=SubjectKind.NODES,
                subject=refusal.subject,
                detail=refusal.detail,
                until_ns=refusal.until_ns,
            )


def _rooms_text(state: PartitionState, members: Sequence[Ask]) -> str:
    """Return for how many members of each kind there is room, where they may run, without others."""
    rooms = usable_rooms(state.nodes)
    kinds = Counter((ask.task_group_name, ask.resource, ask.required_node) for ask in members)
    texts = []
    has_each_room = True
    for (name, size, needed), count in kinds.items():
        room = slots(size, [each for each in rooms if needed in {"", each.node_id}])
        where = f" on {needed}, which it needs" if needed else ""
        texts.append(f"{name or resource_text(size)}{where}: room for {room} of {count}")
        has_each_room = has_each_room and room >= count
    return "; ".join((*texts, "not together") if has_each_room else texts)


def _domains_text(state: PartitionState, members: Sequence[Ask], domains: Domains) -> str:
    """Return for how many members each domain has room, now and when it is empty."""
    level, slice_size = domains.terms.needed, domains.terms.slice_size
    if not domains.depths:
        return f"the partition has no level {level}"
    size, count = Counter(ask.resource for ask in members).most_common(1)[0]
    if domains.slice_depth and count < len(members):
        return f"its slices of {slice_size} members need one size, and they have several"
    empty = [NodeRoom(node.node_id, node.capacity) for node in state.nodes]
    free, whole = (
        domains.slots_by_name([room.node_id for room in rooms], slots_of_each(size, rooms))
        for rooms in (usable_rooms(state.nodes), empty)
    )
    can_hold = domains.has_slots([room.node_id for room in empty], slots_of_each(size, empty), count)
    most_first = sorted(whole, key=lambda name: (-free.get(name, 0), name))
    texts = [f"{name} {free.get(name, 0)} of {whole[name]}" for name in most_first[:_DOMAINS_MAX]]
    if len(whole) > _DOMAINS_MAX:
        texts.append(f"{len(whole) - _DOMAINS_MAX} more with no more room")
    if not can_hold:
        texts.append("they can never hold all" if domains.slice_depth else f"no {level} can ever hold them")
    different = "" if count == len(members) else f" of {resource_text(size)}"
    return f"{domains.text(count, different)}: " + ", ".join(texts)


def _blocker(entry: ApplicationEntry, reason: RefusalReason, detail: str) -> Blocker:
    return Blocker(
        reason=reason,
        kind=SubjectKind.APPLICATION,
        subject=entry.application_id,
        detail=detail,
        position=_setting(entry),
    )


def _setting(entry: ApplicationEntry) -> Position | None:
    """Return where the configuration makes gangs whole, `None` if the application asks for it."""
    tags = entry.application.tags
    if "gangSize" in tags or "gangPlacing" in tags:
        return None
    key = f"properties.{GANG_PLACING}"
    return next((level.positions[key] for level in entry.queue.above if key in level.positions), None)


def _missing(entry: ApplicationEntry, waiting: Sequence[Ask]) -> str:
    """Return how much of a gang has been asked for."""
    settings = entry.application.gang_settings
    if settings.size:
        count = sum(not ask.placeholder for ask in waiting)
        return f"{count} of {settings.size} asks wait"
    asked = total_of(ask.resource for ask in waiting if ask.placeholder)
    return f"placeholders for {resource_text(asked)} of {resource_text(settings.placeholder_ask)} wait"
