"""Where a new application or a new ask would go if it came now; nothing comes, and nothing changes.

The decisions are those that a submission meets (`application_updates.decide`, the placement rules, the
checks of asks), then every check of the cycle. What does not exist yet is made beside the partition: a
sketch of the queue, an application that nobody knows of. Both are dropped with the answer.
"""

from __future__ import annotations

from bisect import bisect_left
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..applications.report import WaitingAsk
from ..applications.state import ApplicationState
from ..queues.seat import Seat
from ..requests.allocations import ask_of, submission_refusal
from ..requests.applications import QuotaTags, Refused, decide, gang_refusal, make_application, quota_tags
from .asks import AskJudge
from .explain import described, seat_blockers
from .places import application_place, place_in
from .values import AskStatus

if TYPE_CHECKING:
    from ..applications.report import ApplicationReport
    from ..placement.requests import RuleOutcome
    from ..queues.queue import Queue
    from ..state.partition_state import PartitionState
    from ..values.allocation import Ask
    from ..values.messages import AllocationSubmission, ApplicationSubmission
    from ..values.users import User
    from .blockers import Blocker
    from .places import Place
    from .values import AskExplanation

__all__ = ["DryRun", "dry_run_application", "dry_run_ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Where an application, and an ask of it, would go.

    `rejection` is why the application or the ask would be turned away, the empty text if it would be taken.
    `rules` are the placement rules that were asked, of a new application; the last one decided. `creates`
    are the queues that would be made. `blockers` stand in the way of all asks of the application. `ask` is
    `None` where none was given or it was not come to.
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
        """The node that the ask would be tried on first; the empty text if something stands in its way.

        The RM's predicates have no say: they do not know an ask that has not been made.
        """
        ask = self.ask
        if ask is None or self.rejection or self.blockers or ask.blockers:
            return ""
        return ask.required_node or ("" if ask.nodes is None else ask.nodes.first)


def dry_run_application(
    state: PartitionState, submission: ApplicationSubmission, ask: AllocationSubmission | None = None
) -> DryRun:
    """Find out where a new application would go, and its first ask if one is given."""
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
    run = replace(
        run,
        queue_path=path,
        rules=decision.placed.tried,
        creates=tuple(level.path for level in reversed(queue.above) if state.tree.find(level.path) is None),
        limit_group=state.limits.group_of(path, submission.application_id, decision.user) or "",
        rejection=gang_refusal(submission, queue) or "",
    )
    application = make_application(state, submission, decision.user, path)
    seat = Seat(application, application.application_id, decision.user, queue, application.facts())
    if run.rejection or ask is None:
        return replace(run, blockers=tuple(seat_blockers(state, seat, is_starting=True)))
    refusal = submission_refusal(state, ask, is_application_new=True)
    if refusal is not None:
        return replace(run, rejection=refusal)
    answer, _ = application.asks.add([ask_of(ask, state.now_ns())], state.now_ns())
    seat.facts = answer.facts
    report = application.report()
    return replace(
        run,
        place=application_place(queue, seat, is_new=True),
        blockers=tuple(seat_blockers(state, seat)),
        ask=_judged(state, seat, report.waiting[0], report),
    )


def dry_run_ask(state: PartitionState, submission: AllocationSubmission) -> DryRun | None:
    """Find out where a new ask of an active application would go; `None` if there is no such application."""
    seat = state.seats.get(submission.application_id)
    if seat is None:
        return None
    path = seat.queue.path
    run = DryRun(
        time_ns=state.now_ns(),
        partition=state.name,
        application_id=seat.application_id,
        is_new=False,
        user=seat.user,
        limit_group=state.limits.group_of(path, seat.application_id, seat.user) or "",
        queue_path=path,
        place=application_place(seat.queue, seat),
    )
    refusal = submission_refusal(state, submission)
    if refusal is None and seat.application.asks.knows(submission.allocation_key):
        refusal = f"application {seat.application_id} has {submission.allocation_key} already"
    if refusal is not None:
        return replace(run, rejection=refusal)
    report = seat.application.report()
    ask = ask_of(submission, state.now_ns())
    waits = not ask.placeholder and any(
        group.name == ask.task_group_name and group.placeholders > group.replaced + group.ended
        for group in report.task_groups
    )
    waiting = WaitingAsk(ask=ask, waits_for_placeholder=waits, reserved_node="", refusals=(), noted=())
    is_starting = seat.facts.state is ApplicationState.NEW
    return replace(
        run,
        blockers=tuple(seat_blockers(state, seat, is_starting=is_starting)),
        ask=_judged(state, seat, waiting, report),
    )


def _judged(
    state: PartitionState, seat: Seat, waiting: WaitingAsk, report: ApplicationReport
) -> AskExplanation:
    judge = AskJudge(state, seat.queue, seat.application_id, seat.user)
    judgement = judge.judge_waiting(waiting, report)
    return replace(
        described(waiting.ask, AskStatus.WAITING),
        place=_place_among(waiting.ask, report),
        blockers=judgement.blockers,
        nodes=judgement.nodes,
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
    """Return a queue, or a sketch of one that does not exist."""
    queue = state.tree.find(path) or state.tree.sketch(path)
    assert not isinstance(queue, str), f"{queue}: please report"
    return queue


def _with_quotas(queue: Queue, submission: ApplicationSubmission) -> Queue:
    """Return a queue as it would be with the quotas of a namespace; the queue itself stays as it is."""
    tags = quota_tags(submission, queue)
    if tags == QuotaTags():
        return queue
    stand_in = copy(queue)
    stand_in.above = (stand_in, *queue.above[1:])
    tags.apply(stand_in)
    return stand_in
