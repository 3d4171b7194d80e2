"""Applying the answer of an application to its partition, and the expiry of ended applications.

There may be millions of them, for days. So the clock has one timer a partition: for the first to expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from ..applications.effects import (
    Answer,
    ApplicationFacts,
    ApplicationState,
    ReleaseWanted,
    StateEntered,
    TimerKind,
    TimerSet,
)
from ..queues.application_entry import ApplicationEntry, wake
from ..resources.comparisons import is_zero
from ..resources.resource import EMPTY
from ..values.events import ChangeDetail, ChangeType
from ..values.messages import AllocationsReleased, ApplicationChanged, AskRelease, Release
from .charges import drop_asks
from .host import ApplicationTimer, DueTimers, Expiry, PartitionHost

if TYPE_CHECKING:
    from .partition_state import PartitionState

_STARTING = (ApplicationState.ACCEPTED, ApplicationState.RESUMING)
_TERMINATED = (ApplicationState.COMPLETED, ApplicationState.FAILED)
_DETAILS: Final = {
    ApplicationState.ACCEPTED: ChangeDetail.APP_ACCEPTED,
    ApplicationState.RUNNING: ChangeDetail.APP_RUNNING,
    ApplicationState.REJECTED: ChangeDetail.APP_REJECT,
    ApplicationState.COMPLETING: ChangeDetail.APP_COMPLETING,
    ApplicationState.COMPLETED: ChangeDetail.APP_COMPLETED,
    ApplicationState.FAILING: ChangeDetail.APP_FAILING,
    ApplicationState.FAILED: ChangeDetail.APP_FAILED,
    ApplicationState.RESUMING: ChangeDetail.APP_RESUMING,
    ApplicationState.EXPIRED: ChangeDetail.APP_EXPIRED,
}


def apply(state: PartitionState, entry: ApplicationEntry, answer: Answer) -> None:
    """Bring order and timers up to date with what an application answered, and report it to the RM."""
    before = entry.facts
    entry.facts = facts = answer.facts
    queue = entry.queue
    if answer.effects:
        _follow(state, entry, answer)
    elif answer.happened:
        _report(state, answer)
    if entry.application_id not in state.entries:
        return
    if facts.pending is not before.pending or _may_move(before, facts):
        if entry.application_id in queue.accepted_allocating and not is_starting(facts):
            _stop_counting_as_starting(state, entry)
        queue.entries.refresh(entry)
        state.tree.refresh(queue)


def is_starting(facts: ApplicationFacts) -> bool:
    """Return whether an application that does not run yet counts for the maxima of its queues.

    It does while it has placeholders or a reserved node, until it runs or ends.
    """
    return facts.state in _STARTING and bool(
        facts.reserved or not is_zero(facts.placeholder_allocated) or not is_zero(facts.allocated)
    )


def _stop_counting_as_starting(state: PartitionState, entry: ApplicationEntry) -> None:
    """Free the place of an application that has lost what it began with: another one may start."""
    for level in entry.queue.above:
        level.forget_accepted(entry.application_id)
    state.local_changes += 1


def _may_move(before: ApplicationFacts, after: ApplicationFacts) -> bool:
    """Return whether other facts than what waits differ that the orders, or what may be placed, depend on.

    A sum that has not changed is the same object.
    """
    return (
        before.allocated is not after.allocated
        or before.placeholder_allocated is not after.placeholder_allocated
        or before.first is not after.first
        or before.state is not after.state
        or before.reserved != after.reserved
        or before.gang_waits is not after.gang_waits
        or before.max_priority != after.max_priority
        or before.submitted_at_ns != after.submitted_at_ns
    )


def _follow(state: PartitionState, entry: ApplicationEntry, answer: Answer) -> None:
    releases = []
    terminated = False
    reason = ""
    for effect in answer.effects:
        if isinstance(effect, StateEntered):
            _entered(state, entry, effect)
            terminated = effect.entered in _TERMINATED
            reason = effect.reason or effect.text
        elif isinstance(effect, TimerSet):
            serial = state.serials[entry.application_id]
            timer = ApplicationTimer(entry.application_id, serial, effect.kind, effect.generation)
            (state.expiries.add if terminated else state.timers.start)(effect.due_ns, timer)
        else:
            releases.append(_release(state, entry, effect))
    if answer.happened:
        _report(state, answer)
    if releases:
        state.host.announce(AllocationsReleased(tuple(releases)))
    if terminated:
        _retire(state, entry, reason)


def _report(state: PartitionState, answer: Answer) -> None:
    report = state.events.sink.report
    if report is not None:
        for fact in answer.happened:
            report(fact)


def _entered(state: PartitionState, entry: ApplicationEntry, effect: StateEntered) -> None:
    queue = entry.queue
    if effect.left is ApplicationState.RUNNING:
        state.local_changes += 1
        for level in queue.above:
            level.count_running(entry.application_id, -1)
    if effect.entered is ApplicationState.RUNNING:
        for level in queue.above:
            level.count_running(entry.application_id, 1)
    if effect.entered is ApplicationState.COMPLETING:
        _stop_counting_as_running(state, entry)
    ends_in_plan = effect.entered in _TERMINATED and any(level.settings.backfill for level in queue.above[1:])
    if not ends_in_plan:  # Otherwise a walk of what waits there would find nothing new.
        wake(queue)
    announce_state(state, entry.application_id, effect)


def announce_state(state: PartitionState, application_id: str, effect: StateEntered) -> None:
    """Report to the RM, and as an event, a state that an application has entered."""
    state.events.note(ChangeType.SET, _DETAILS[effect.entered], application_id, message=effect.reason)
    state.host.announce(ApplicationChanged(application_id, effect.entered.value, effect.time_ns, effect.text))


def _release(state: PartitionState, entry: ApplicationEntry, effect: ReleaseWanted) -> Release:
    kind = AskRelease if effect.of_ask else Release
    return kind(
        partition=state.name,
        application_id=entry.application_id,
        allocation_key=effect.allocation_key,
        termination=effect.termination,
        message=effect.text,
    )


def _retire(state: PartitionState, entry: ApplicationEntry, reason: str) -> None:
    """Move an application that has terminated to the completed ones."""
    answer = entry.application.finish(state.now_ns())
    drop_asks(state, entry, answer, is_reported=False)
    if answer.summary is not None:
        state.host.summarise(answer.summary)
    state.keep_terminated(entry, reason)


def _stop_counting_as_running(state: PartitionState, entry: ApplicationEntry) -> None:
    """Count an application no longer as running for its user that is Completing and has nothing left.

    Another one of the user may start then. It ended with an allocation, or with the withdrawal of an ask.
    While it has placeholders it still counts: they use the user's quota.
    """
    if is_zero(entry.facts.allocated) and is_zero(entry.facts.placeholder_allocated):
        path = entry.queue.path
        state.limits.decrease(path, entry.application_id, entry.user, EMPTY, remove_application=True)
        state.local_changes += 1


@final
class Expiries:
    """When the applications of a partition that have ended expire. Owned by the partition."""

    __slots__ = ("_due", "_host", "_watched_ns")

    def __init__(self, host: PartitionHost) -> None:
        self._host = host
        self._due = DueTimers()
        self._watched_ns: int | None = None
        """The time of the timer that is set."""

    def __len__(self) -> int:
        return len(self._due)

    def add(self, due_ns: int, timer: ApplicationTimer) -> None:
        """Have an application expire at a time, in nanoseconds since 1970."""
        self._due.add(due_ns, "", timer)
        self._watch()

    def forget(self, serial: int) -> None:
        """Drop an application that has not expired; it need not be here."""
        self._due.cancel("", (serial, TimerKind.STATE))

    def take_due(self, now_ns: int) -> Iterator[ApplicationTimer]:
        """Take those that expire now, in order of their times and then of their ends."""
        self._watched_ns = None
        while (due_ns := self._due.next_due_ns()) is not None and due_ns <= now_ns:
            timer = self._due.pop()[3]
            assert isinstance(timer, ApplicationTimer), f"{timer!r} expires: please report"
            yield timer
        self._watch()

    def _watch(self) -> None:
        """Set the timer for the first one to expire."""
        due_ns = self._due.next_due_ns()
        if due_ns is not None and (self._watched_ns is None or due_ns < self._watched_ns):
            self._watched_ns = due_ns
            self._host.cancel(Expiry)
            self._host.call_at(due_ns, Expiry())


def expire_due(state: PartitionState) -> None:
    """Forget the applications that expire now, and report it to the RM."""
    for timer in state.expiries.take_due(state.now_ns()):
        _expire(state, timer)


def _expire(state: PartitionState, timer: ApplicationTimer) -> None:
    name, serial = timer.application_id, timer.serial
    kept = state.rejected.get(name)
    rejected = kept is not None and kept.serial == serial
    ended = kept if rejected else state.completed.get(serial)
    if ended is None:
        return
    application = ended.application
    answer = application.on_timer(timer.kind, timer.generation, state.now_ns())
    if answer is not None and answer.facts.state is ApplicationState.EXPIRED:
        for effect in answer.effects:
            if isinstance(effect, StateEntered):
                announce_state(state, name, effect)
        state.host.release(application)
        if rejected:
            del state.rejected[name]
        else:
            del state.completed[serial]
