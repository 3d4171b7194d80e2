"""Dry runs: where new work would go, which asks come next, and the victims of preemption for them.

The decisions are those that a submission meets (`requests.applications.decide`, the placement rules, the
checks of asks), then every check of the cycle. Missing objects are made outside of the partition: a
preview of the queue, and the application. Both are dropped with the answer.

Each cycle has three passes: asks with a reservation, members of gangs that replace placeholders, and all
others. A cycle ends with its first placement, and what is placed may change the order of the rest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from ..applications.ask_walk import NextTry, TryingPass
from ..applications.effects import ApplicationState
from ..applications.report import ApplicationReport, WaitingAsk
from ..placement.rules import RuleOutcome
from ..planning.planned_jobs import JobOwner
from ..preemption.acts import is_still_ending
from ..preemption.guarantee.attempt_budget import NoPreemption
from ..preemption.protection import ProtectedVictims
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue, stand_in_for
from ..queues.quota import may_preempt, ranked_leaves
from ..requests.allocations import ask_of, submission_refusal
from ..requests.applications import (
    QuotaTags,
    RefusedSubmission,
    decide,
    make_application,
    queue_refusal,
    quota_tags,
)
from ..requests.submission_terms import walltime_refusal
from ..state.partition_state import PartitionState
from ..state.preemption_log import PreemptionRecord
from ..values.allocation import Ask, RefusalReason
from ..values.dependencies import Terms, terms_of
from ..values.messages import AllocationSubmission, ApplicationSubmission, User
from .asks import (
    AskChecker,
    ProtectionChecker,
    attempting,
    helped_by_preemption,
    not_entitled,
    plan_for,
    protected_text,
)
from .blockers import Blocker, application_count_blockers
from .explain import described, entry_blockers, partition_blockers
from .planned_starts import StartChecker
from .values import AskExplanation, AskStatus, Place, application_place, place_in

NEXT_ASKS_MAX: Final = 250
"""How many asks one question is answered with at most."""
_APPLICATIONS_MAX: Final = 1_000
"""How many applications each pass looks at: the partition does nothing else meanwhile."""
ASKS_MAX = 5
"""How many asks of different shapes are decided: a decision looks at all that may be preempted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Where an application, and an ask of it, would go.

    `rejection` is why the application or the ask would be rejected, the empty text if it would be accepted.
    `rules` are the placement rules that were asked, of a new application; the last one decided. `creates`
    are the queues that would be made. `blockers` block all asks of the application. `ask` is
    `None` if none was given or the application would be rejected.
    """

    time_ns: int
    partition: str
    application_id: str
    is_new: bool
    user: User
    limit_group: str = ""
    queue_path: str = ""
    creates: tuple[str, ...] = ()
    rejection: str = ""
    rules: tuple[RuleOutcome, ...] = ()
    place: Place | None = None
    blockers: tuple[Blocker, ...] = ()
    ask: AskExplanation | None = None

    @property
    def node_id(self) -> str:
        """The node that the ask would be tried on first; the empty text if something blocks it.

        The RM's predicates are not asked: they do not know an ask that has not been submitted.
        """
        ask = self.ask
        if ask is None or self.rejection or self.blockers or ask.blockers:
            return ""
        return ask.required_node or ("" if ask.nodes is None else ask.nodes.first)


def dry_run_application(
    state: PartitionState, submission: ApplicationSubmission, ask: AllocationSubmission | None = None
) -> DryRun:
    """Return where a new application would go, and its first ask if one is given."""
    decision = decide(state, submission)
    run = DryRun(
        time_ns=state.now_ns(),
        partition=state.name,
        application_id=submission.application_id,
        is_new=True,
        user=decision.user,
    )
    if isinstance(decision, RefusedSubmission):
        return replace(run, queue_path=decision.path, rejection=decision.reason, rules=decision.rules)
    path = decision.placed.queue_path
    queue = _with_quotas(_queue_for(state, path), submission)
    refused = queue_refusal(state, submission, decision.user, queue)
    run = replace(
        run,
        queue_path=path,
        rules=decision.placed.tried,
        creates=tuple(level.path for level in reversed(queue.above) if state.tree.find(level.path) is None),
        limit_group=state.limits.group_of(path, submission.application_id, decision.user) or "",
        rejection="" if refused is None else refused.text,
    )
    application = make_application(state, submission, decision.user, path, queue.settings.gang_placing)
    entry = ApplicationEntry(
        application, application.application_id, decision.user, queue, application.facts()
    )
    terms = terms_of(submission.tags)
    entry.waits = state.dependencies.waits_of(terms) if isinstance(terms, Terms) else None
    if run.rejection or ask is None:
        return replace(run, blockers=tuple(entry_blockers(state, entry, is_starting=True)))
    refusal = submission_refusal(state, ask, is_application_new=True)
    whose = f"ask {ask.allocation_key} of application {ask.application_id}"
    refusal = refusal or walltime_refusal(whose, ask.tags, queue)
    if refusal is not None:
        return replace(run, rejection=refusal.text)
    answer, _ = application.asks.add([ask_of(ask, state.now_ns())], state.now_ns())
    entry.facts = answer.facts
    report = application.report()
    return replace(
        run,
        place=application_place(queue, entry, is_new=True),
        blockers=tuple(entry_blockers(state, entry)),
        ask=_checked(state, entry, report.waiting[0], report),
    )


def dry_run_ask(state: PartitionState, submission: AllocationSubmission) -> DryRun | None:
    """Return where a new ask of an active application would go, `None` if it does not exist."""
    entry = state.entries.get(submission.application_id)
    if entry is None:
        return None
    path = entry.queue.path
    run = DryRun(
        time_ns=state.now_ns(),
        partition=state.name,
        application_id=entry.application_id,
        is_new=False,
        user=entry.user,
        limit_group=state.limits.group_of(path, entry.application_id, entry.user) or "",
        queue_path=path,
        place=application_place(entry.queue, entry),
    )
    refusal = submission_refusal(state, submission)
    if refusal is not None:
        return replace(run, rejection=refusal.text)
    if entry.application.asks.knows(submission.allocation_key):
        text = f"application {entry.application_id} has {submission.allocation_key} already"
        return replace(run, rejection=text)
    report = entry.application.report()
    ask = ask_of(submission, state.now_ns())
    waits = not ask.placeholder and any(
        group.name == ask.task_group_name and group.placeholders > group.replaced + group.ended
        for group in report.task_groups
    )
    waiting = WaitingAsk(ask=ask, waits_for_placeholder=waits, reserved_node="", refusals=(), noted=())
    is_starting = entry.facts.state is ApplicationState.NEW
    return replace(
        run,
        blockers=tuple(entry_blockers(state, entry, is_starting=is_starting)),
        ask=_checked(state, entry, waiting, report),
    )


def _checked(
    state: PartitionState, entry: ApplicationEntry, waiting: WaitingAsk, report: ApplicationReport
) -> AskExplanation:
    checker = AskChecker(state, entry.queue, entry.application_id, entry.user, tags=entry.tags)
    obstacles = ProtectionChecker(state, entry).add_to(waiting, checker.check_waiting(waiting, report))
    starts = None if entry.waits is not None else StartChecker(state, JobOwner.of(entry))
    delay, planned_start = (None, None) if starts is None else starts.check(waiting.ask)
    return replace(
        described(waiting.ask, AskStatus.WAITING),
        place=_place_among(waiting.ask, report),
        blockers=obstacles.blockers if delay is None else (*obstacles.blockers, delay),
        nodes=obstacles.nodes,
        planned_start=planned_start,
    )


def _place_among(ask: Ask, report: ApplicationReport) -> Place:
    """Return the place that an ask has, or would have, among those of its application; see `PendingAsks`."""
    others = [entry.ask for entry in report.waiting if entry.ask.allocation_key != ask.allocation_key]
    ages = [(-other.priority, other.created_at_ns) for other in others]
    age = (-ask.priority, ask.created_at_ns)
    index = len(ages) if not ages or age >= ages[-1] else bisect_left(ages, age)
    keys = [other.allocation_key for other in others]
    keys.insert(index, ask.allocation_key)
    return place_in(keys, index, ask.application_id, "the higher priority first, then the earlier creation")


def _queue_for(state: PartitionState, path: str) -> Queue:
    """Return a queue, or a preview of one that does not exist."""
    queue = state.tree.find(path) or state.tree.preview(path)
    assert not isinstance(queue, str), f"{queue}: please report"
    return queue


def _with_quotas(queue: Queue, submission: ApplicationSubmission) -> Queue:
    """Return a queue as it would be with the quotas of a namespace; the queue itself is not changed."""
    tags = quota_tags(submission, queue)
    if tags == QuotaTags():
        return queue
    stand_in = stand_in_for(queue)
    tags.apply(stand_in)
    return stand_in


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAsk:
    """An ask that would be tried, where it is, and in which pass."""

    ask: Ask
    queue_path: str
    trying_pass: TryingPass
    reserved_node: str
    """The node that is reserved for it, or the empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAsks:
    """The asks that would be tried next in one partition, as of one moment."""

    time_ns: int
    partition: str
    """The full name, `[rm]default`."""
    blockers: tuple[Blocker, ...]
    """Why no ask of the partition is tried now; empty if they are."""
    asks: tuple[NextAsk, ...]


def next_asks(state: PartitionState, count: int) -> NextAsks:
    """Return the asks that would be tried next; nothing is changed.

    Asks that the last walk found no room for are in the list as well: a cycle skips them until something
    changes that they wait for. Left out are those that are not tried: of applications that may not start
    or that wait for a back-off, and members of gangs before any of their placeholders is placed.

    Args:
        state: The partition.
        count: How many at most, up to `NEXT_ASKS_MAX`.
    """
    assert 0 < count <= NEXT_ASKS_MAX, f"{count} asks are too many: please report"
    return NextAsks(
        time_ns=state.now_ns(),
        partition=state.name,
        blockers=tuple(partition_blockers(state)),
        asks=tuple(islice(_walk(state, count), count)),
    )


def _walk(state: PartitionState, count: int) -> Iterator[NextAsk]:
    if state.reservations:
        for leaf, entry in _visited(state, TryingPass.RESERVED):
            for reservation, record in entry.application.reservations.with_asks():
                if record is not None:
                    found = NextTry(record.ask, TryingPass.RESERVED, reservation.node_id)
                    yield _next_ask(leaf, found)
    passes = [TryingPass.PLACEHOLDER] if state.placed.placeholders else []
    for trying_pass in (*passes, TryingPass.REGULAR):
        for leaf, entry in _visited(state, trying_pass):
            for found in entry.application.asks.first_waiting(count):
                if found.trying_pass is trying_pass:
                    yield _next_ask(leaf, found)


def _next_ask(leaf: Queue, found: NextTry) -> NextAsk:
    return NextAsk(
        ask=found.ask,
        queue_path=leaf.path,
        trying_pass=found.trying_pass,
        reserved_node=found.reserved_node,
    )


def _visited(state: PartitionState, trying_pass: TryingPass) -> Iterator[tuple[Queue, ApplicationEntry]]:
    """Walk the applications that a pass visits, with their leaves."""
    visits = ((leaf, entry) for leaf in ranked_leaves(state.tree) for entry in _entries(leaf, trying_pass))
    for leaf, entry in islice(visits, _APPLICATIONS_MAX):
        if trying_pass is TryingPass.PLACEHOLDER:
            if entry.facts.placeholder_allocated:
                yield leaf, entry
        elif _may_run(state, leaf, entry):
            backs_off = entry.backoff_until_ns is not None and entry.backoff_until_ns > state.now_ns()
            if trying_pass is TryingPass.RESERVED or not backs_off:
                yield leaf, entry


def _entries(leaf: Queue, trying_pass: TryingPass) -> Iterator[ApplicationEntry]:
    entries = leaf.entries
    if trying_pass is TryingPass.RESERVED:
        reserved = entries.reserved_entries.values()
        return iter([entry for entry in reserved if not entry.facts.gang_waits])
    if trying_pass is TryingPass.PLACEHOLDER and not entries.placeholder_entries:
        return iter(())
    return entries.ranked(leaf)


def _may_run(state: PartitionState, leaf: Queue, entry: ApplicationEntry) -> bool:
    if entry.facts.state is not ApplicationState.ACCEPTED:
        return True
    counts = application_count_blockers(state, leaf, entry.application_id, entry.user)
    return entry.held is None and not any(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """The preemption for an ask, and from when on; or why there would be none.

    The resource manager's predicates are not asked, which may refuse a node when it is decided.
    """

    allocation_key: str
    record: PreemptionRecord | None
    why_not: str
    due_ns: int | None
    """When the ask has waited for the delay of its queue; `None` if nothing would be preempted."""


def prospects(state: PartitionState, application_id: str) -> tuple[Prospect, ...]:
    """Return a prospect for the first waiting ask of each shape; nothing is changed."""
    entry = state.entries.get(application_id)
    if entry is None:
        return ()
    report = entry.application.report(first_of_shapes=True)
    blocked = {blocker.reason for blocker in entry_blockers(state, entry)} if report.waiting else set()
    checker = AskChecker(state, entry.queue, application_id, entry.user, tags=entry.tags)
    shapes: dict[object, WaitingAsk] = {}
    for waiting in report.waiting:
        ask = waiting.ask
        shapes.setdefault((ask.resource, ask.priority, ask.required_node), waiting)
    found = []
    if entry.facts.gang_waits:  # One decision for all members.
        shapes = dict(list(shapes.items())[:1])
    for waiting in list(shapes.values())[:ASKS_MAX]:
        ask, members = attempting(entry, waiting.ask)
        key = ask.allocation_key
        reasons = blocked.copy()
        if not members:
            reasons |= {blocker.reason for blocker in checker.check_waiting(waiting, report).blockers}
        if not reasons:
            continue
        why = "" if may_preempt(entry.queue) else "no queue of its path has a guarantee"
        if _is_ending(state, key, application_id):
            why = "it has preempted already, and what it chose is still ending"
        why = why or _why_not(state, entry.queue, reasons, ask)
        if why:
            found.append(Prospect(allocation_key=key, record=None, why_not=why, due_ns=None))
            continue
        found.append(_prospect(state, entry, ask, plan_for(state, entry, waiting, reasons)))
    return tuple(found)


def _prospect(
    state: PartitionState,
    entry: ApplicationEntry,
    ask: Ask,
    planned: PreemptionRecord | NoPreemption | ProtectedVictims,
) -> Prospect:
    key = ask.allocation_key
    if isinstance(planned, PreemptionRecord):
        due_ns = ask.created_at_ns + entry.queue.settings.preemption_delay_ns
        return Prospect(allocation_key=key, record=planned, why_not="", due_ns=due_ns)
    if isinstance(planned, ProtectedVictims):
        why = f"{NoPreemption.PROTECTED.text}: {protected_text(planned)}"
    else:
        why = planned.text
        if planned is NoPreemption.GUARANTEE:
            why += f": {not_entitled(state, entry.queue, ask)}"
    return Prospect(allocation_key=key, record=None, why_not=why, due_ns=None)


def _is_ending(state: PartitionState, allocation_key: str, application_id: str) -> bool:
    """Return whether something ends for the ask already, so that a cycle would not preempt for it again."""
    before = state.preemptions.last_for(allocation_key, application_id)
    return before is not None and is_still_ending(state, before)


def _why_not(state: PartitionState, leaf: Queue, reasons: set[RefusalReason], ask: Ask) -> str:
    """Return why preemption is not tried at all, the empty text if it is."""
    if not state.preemption_enabled:
        return "preemption is disabled in this partition"
    if ask.required_node:
        return "it can run on one node only: victims there are chosen when that node is reserved for it"
    if not ask.allow_preempt_other:
        return "the ask does not allow others to be preempted for it"
    others = sorted(reason.value for reason in reasons - helped_by_preemption(leaf))
    return f"preemption does not change this: {', '.join(others)}" if others else ""
