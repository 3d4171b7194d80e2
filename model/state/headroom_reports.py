"""The events of asks and applications that quotas hold back, and no longer do."""

from __future__ import annotations

from ..applications.ask_walk import AskWalk
from ..applications.pending_asks import QUEUE_CHECK, USER_CHECK
from ..queues.application_entry import ApplicationEntry
from ..values.allocation import Ask
from ..values.events import ChangeDetail, ChangeType
from ..values.facts import HeadroomFact
from .partition_state import PartitionState


def report_checks(state: PartitionState, walk: AskWalk) -> None:
    """Report which asks of a walk fit the headroom no longer, or again; the walk forgets them."""
    checks, walk.checks = walk.checks, []
    report = state.events.sink.report
    if report is None:
        return
    for ask, check, available in checks:
        path = walk.queue_path if check == QUEUE_CHECK else None
        report(HeadroomFact(1, state.rm_id, walk.now_ns, ask, path, available))


def report_passed(state: PartitionState, entry: ApplicationEntry, ask: Ask, failed_checks: int) -> None:
    """Report that an ask which was placed fits what it had not fitted before."""
    report = state.events.sink.report
    if report is None:
        return
    now_ns = state.now_ns()
    if failed_checks & USER_CHECK:
        report(HeadroomFact(1, state.rm_id, now_ns, ask, None, None))
    if failed_checks & QUEUE_CHECK:
        report(HeadroomFact(1, state.rm_id, now_ns, ask, entry.queue.path, None))


def set_runnable(state: PartitionState, entry: ApplicationEntry, *, in_queue: bool, by_user: bool) -> None:
    """Note whether the maxima of applications let an application start, and report what has changed."""
    name = entry.application_id
    if in_queue is not entry.runnable_in_queue:
        entry.runnable_in_queue = in_queue
        detail = ChangeDetail.APP_RUNNABLE_QUEUE if in_queue else ChangeDetail.APP_CANNOTRUN_QUEUE
        state.events.note(ChangeType.NONE, detail, name)
    if by_user is not entry.runnable_by_user:
        entry.runnable_by_user = by_user
        detail = ChangeDetail.APP_RUNNABLE_QUOTA if by_user else ChangeDetail.APP_CANNOTRUN_QUOTA
        state.events.note(ChangeType.NONE, detail, name)
