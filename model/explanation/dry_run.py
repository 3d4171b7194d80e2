"""Dry runs: where a new application or a new ask would go if it were submitted now; nothing changes.

The decisions are those that a submission meets (`requests.applications.decide`, the placement rules, the
checks of asks), then every check of the cycle. What does not exist yet is made outside of the partition: a
preview of the queue, and the application. Both are dropped with the answer.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from ..applications.report import ApplicationReport, WaitingAsk
from ..applications.state import ApplicationState
from ..placement.requests import RuleOutcome
from ..planning.planned_jobs import JobOwner
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue, stand_in_for
from ..requests.allocations import ask_of, submission_refusal
from ..requests.applications import QuotaTags, Refused, decide, make_application, queue_refusal, quota_tags
from ..requests.walltimes import walltime_refusal
from ..state.partition_state import PartitionState
from ..values.allocation import Ask
from ..values.messages import AllocationSubmission, ApplicationSubmission
from ..values.users import User
from .asks import AskChecker
from .blockers import Blocker
from .explain import described, entry_blockers
from .places import Place, application_place, place_in
from .planned_starts import StartChecker
from .protections import ProtectionChecker
from .values import AskExplanation, AskStatus


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
    if isinstance(decision, Refused):
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
    """Return where a new ask of an active application would go, `None` if there is no such application."""
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
    checker = AskChecker(state, entry.queue, entry.application_id, entry.user)
    obstacles = ProtectionChecker(state, entry).add_to(waiting, checker.check_waiting(waiting, report))
    delay, planned_start = StartChecker(state, JobOwner.of(entry)).check(waiting.ask)
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
    """Return a queue as it would be with the quotas of a namespace; the queue itself stays as it is."""
    tags = quota_tags(submission, queue)
    if tags == QuotaTags():
        return queue
    stand_in = stand_in_for(queue)
    tags.apply(stand_in)
    return stand_in
