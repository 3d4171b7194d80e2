"""A resource manager on virtual time: it submits a workload and follows the scheduler.

An application is submitted at its time, and its asks follow once it is accepted. A placed task runs for its
duration and is then released with `STOPPED_BY_RM`. Releases that the scheduler requests (of a preempted task
or a placeholder) are confirmed with the same type; work that was taken off its node or out of its queue is
asked for again at once under a new key, `key-r1`, and starts from the beginning.

A gang asks for its placeholders first, `key-ph`, and for its tasks when it runs or has stopped being a gang.

Callbacks only write the record and add to the pending requests, which `send` sends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final, final

from ....model.values.allocation import PREDICATE_CLASS_TAG
from ....model.values.dependencies import ApplicationOutcome
from ....model.values.messages import (
    AllocationPlaced,
    AllocationsReleased,
    Announcement,
    ApplicationChanged,
    TerminationType,
)
from ...si import si_pb2 as si
from ...si.older_generation import EventsHappened
from .accounts import Account, Accounts, Owner
from .core import AnnouncedManager, AnnouncementGuard, Core, PoolGuard
from .event_queue import EventQueue, PendingRequests, PiecesOfWork
from .node_changes import NodeChanges
from .record import AskEntry, SimulationRecord, without_names
from .si_messages import (
    ask_message,
    new_application_message,
    release_message,
    resource_message,
)
from .workloads.workload import SimulatedApplication, SimulatedTask, SimulatedWorkload


class ApplicationPhase(Enum):
    """The phase of an application for its resource manager."""

    SUBMITTED = auto()
    """The scheduler has not answered yet: no asks are allowed."""
    WAITING_FOR_GANG = auto()
    """A gang whose placeholders are not all placed: its tasks are held back."""
    OPEN = auto()
    """Each task is asked for at its time."""
    ENDED = auto()
    """Rejected or failed: no further asks follow."""


@dataclass(slots=True)
class SubmittedApplication:
    """One application and its account; `held` are the keys of the tasks that are held back.

    `reason` is the reason of its end.
    """

    application: SimulatedApplication
    account: Account
    phase: ApplicationPhase = ApplicationPhase.SUBMITTED
    held: list[str] = field(default_factory=list)
    reason: str = ""

    @property
    def outcome(self) -> ApplicationOutcome:
        """How it ends."""
        has_failed = self.application.fails or self.phase is ApplicationPhase.ENDED
        return ApplicationOutcome.FAILED if has_failed else ApplicationOutcome.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work, and the number of its repetitions."""

    base_key: str
    task: SimulatedTask
    message: si.Resource
    task_group: str
    repetition: int = 0

    def key(self) -> str:
        """Return the allocation key of this repetition."""
        return f"{self.base_key}-r{self.repetition}" if self.repetition else self.base_key


RM_ID: Final = "simulation"

_NO_EVENTS: Final = {"event.trackingEnabled": "false"}
"""The settings of a resource manager that reads no events."""
_RUNNING_STATES: Final = frozenset({"Running", "Resuming"})
_FAILED_STATES: Final = frozenset({"Failing", "Failed", "Rejected"})


@final
class SimulatedRM(AnnouncedManager):
    """The resource manager of one simulation; a `Traffic`.

    Args:
        workload: The workload that it submits.
        core: The scheduler it registers with; virtual time starts at the time of the core's clock.
        record: The record that it writes.
        configuration: The queue YAML.
    """

    def __init__(
        self, workload: SimulatedWorkload, core: Core, record: SimulationRecord, configuration: str
    ) -> None:
        self._workload = workload
        self._core = core
        self._record = record
        self._configuration = configuration
        self._origin_ns = core.now_ns()
        self._tasks_total = workload.task_count()
        self._nodes = NodeChanges(workload, core.api, record, RM_ID)
        self._applications: dict[str, SubmittedApplication] = {}
        self._work: dict[str, Work] = {}
        self._event_queue = EventQueue(workload)
        self._pending_requests = PendingRequests(core.api, RM_ID)
        self._pieces = PiecesOfWork(
            workload,
            self._event_queue,
            self._pending_requests,
            lambda name: self._applications[name].outcome,
        )
        self._guard = _guarded(self, workload, record)

    # ----------------------------------------------------------------------------------- traffic

    def start(self) -> None:
        """Register and create the nodes."""
        request = si.RegisterResourceManagerRequest(
            rmID=RM_ID,
            version="1",
            policyGroup="queues",
            config=self._configuration,
            extraConfig=_NO_EVENTS,
        )
        self._core.api.register_resource_manager(request, self._guard)
        self._nodes.start()

    def next_event_ns(self) -> int | None:
        """Return the time of the next submission, end or change of a node."""
        moments_ns = (self._event_queue.next_ns(), self._nodes.next_ns())
        return min((moment_ns for moment_ns in moments_ns if moment_ns is not None), default=None)

    def deliver(self, now_ns: int) -> None:
        """End the tasks whose time is over, change nodes, then make the due submissions.

        Tasks that end free their room first, and are not lost with a node that fails at the same time.
        """
        while (key := self._event_queue.pop_end(now_ns)) is not None:
            entry = self._record.running.get(key)
            if entry is not None:  # It still runs under this key.
                self._record.completed(key, now_ns)
                self._pending_requests.add_release(release_message(key, entry.application_id))
                del self._work[key]
                self._pieces.over(entry.application_id, now_ns)
        if self._nodes.next_ns() is not None:
            self._pending_requests.send()
            self._nodes.change(now_ns)
        while (submission := self._event_queue.pop_submission(now_ns)) is not None:
            application, task = submission
            if task is None:
                self._applications[application.application_id] = _opened(application, self._record.accounts)
                self._pending_requests.add_application(new_application_message(application))
            else:
                self._submit_task(application, task, now_ns)

    def has_to_send(self) -> bool:
        """Return whether there are requests to send; raise the error of a callback."""
        self._guard.raise_failure()
        return not self._pending_requests.is_empty()

    def send(self) -> None:
        """Send the kept requests."""
        self._pending_requests.send()

    def is_anything_open(self) -> bool:
        """Return whether a timer of the core could change the state of waiting work."""
        return self._record.is_anything_open()

    def progress(self) -> tuple[int, int]:
        """Return the number of submitted and ended tasks, and twice the number of all."""
        return self._pieces.steps_done, 2 * self._tasks_total

    def suppose(self, run_ns: Callable[[str, int], int | None]) -> None:
        """Submit nothing more, and let all work run as long as is expected.

        Args:
            run_ns: Returns how long a task of an application runs that has run for some time.
        """
        ends_ns = {}
        for key, entry in (*self._record.waiting.items(), *self._record.running.items()):
            runs = bool(entry.node_id) and not entry.is_placeholder
            duration_ns = run_ns(entry.application_id, self._now_ns() - entry.placed_at_ns if runs else 0)
            work = self._work[key]
            self._work[key] = replace(work, task=replace(work.task, duration_ns=duration_ns))
            if runs and duration_ns is not None:
                ends_ns[key] = entry.placed_at_ns + duration_ns
        self._event_queue.replace_by(ends_ns)

    # --------------------------------------------------------------------------------- callbacks

    def update_node(self, response: si.NodeResponse) -> None:
        """Record the capacity of accepted nodes."""
        self._nodes.answered(response, self._now_ns())

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Ask for the tasks of accepted applications; give up those of rejected and failed ones."""
        for accepted in response.accepted:
            self._accepted(self._applications[accepted.applicationID])
        for rejected in response.rejected:
            self._over(self._applications[rejected.applicationID], rejected.reason)
        for updated in response.updated:
            if updated.state in _FAILED_STATES:
                state = self._applications[updated.applicationID]
                self._over(state, f"application {updated.state}: {updated.message}")
            else:
                self.announced(ApplicationChanged(updated.applicationID, updated.state, 0, ""))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Start placed tasks, confirm requested releases, give up rejected asks."""
        for allocation in response.new:
            self._placed(allocation.allocationKey, allocation.nodeID)
        for release in response.released:
            self._released(release)
        for rejection in response.rejectedAllocations:
            key = rejection.allocationKey
            self._drop(key, without_names(rejection.reason, key, rejection.applicationID))

    def announced(self, announcement: Announcement | EventsHappened) -> bool:
        """Take a placement, a state that is no failure, and the end of what is recorded as completed."""
        if isinstance(announcement, ApplicationChanged) and announcement.state not in _FAILED_STATES:
            if announcement.state in _RUNNING_STATES:
                state = self._applications[announcement.application_id]
                if state.phase is ApplicationPhase.WAITING_FOR_GANG:
                    self._ask_for_held(state)
        elif isinstance(announcement, AllocationPlaced):
            allocation = announcement.allocation
            self._placed(allocation.ask.allocation_key, allocation.node_id)
        else:
            return isinstance(announcement, AllocationsReleased) and all(
                release.termination is TerminationType.STOPPED_BY_RM
                and release.allocation_key not in self._record.running
                and release.allocation_key not in self._record.waiting
                for release in announcement.releases
            )
        return True

    # ------------------------------------------------------------------------------------ inside

    def _now_ns(self) -> int:
        """Return the virtual time from the start."""
        return self._core.now_ns() - self._origin_ns

    def _submit_task(self, application: SimulatedApplication, task: SimulatedTask, now_ns: int) -> None:
        """Record every piece of a task, and ask for it or hold it back."""
        entry = AskEntry(
            account=self._applications[application.application_id].account,
            application_id=application.application_id,
            resources=task.resources,
            asked_at_ns=now_ns,
        )
        is_first = task.submit_at_ns == application.submit_at_ns
        group = task.key if application.gang is not None and is_first else ""
        message = resource_message(task.resources)
        for key in task.allocation_keys():
            self._pieces.steps_done += 1
            self._ask(Work(base_key=key, task=task, message=message, task_group=group), entry)

    def _ask(self, work: Work, entry: AskEntry) -> None:
        """Ask for one piece of work, now or when its application is ready for it."""
        key = work.key()
        self._record.asked(key, entry, self._now_ns())
        self._work[key] = work
        state = self._applications[entry.application_id]
        match state.phase:
            case ApplicationPhase.OPEN:
                self._send_ask(key, work, entry)
            case ApplicationPhase.ENDED:
                self._drop(key, state.reason)
            case ApplicationPhase.SUBMITTED | ApplicationPhase.WAITING_FOR_GANG:
                state.held.append(key)

    def _send_ask(self, key: str, work: Work, entry: AskEntry) -> None:
        """Add one ask to the pending requests."""
        message = ask_message(
            key,
            entry.application_id,
            work.message,
            priority=work.task.priority,
            task_group=work.task_group,
            is_placeholder=entry.is_placeholder,
        )
        pool = self._applications[entry.application_id].application.pool
        if pool:
            message.allocationTags[PREDICATE_CLASS_TAG] = pool
        self._pending_requests.add_ask(message)

    def _accepted(self, state: SubmittedApplication) -> None:
        """Count an application for the owner of its placement, and ask for its tasks, or its placeholders."""
        found = self._core.queue_and_user(state.application.application_id, RM_ID)
        if found is not None:
            self._record.accounts.assigned(state.account, Owner.of(found))
        if state.application.gang is None:
            self._ask_for_held(state)
            return
        state.phase = ApplicationPhase.WAITING_FOR_GANG
        for key in state.held:
            work = self._work[key]
            if work.task_group:
                placeholder_key = f"{key}-ph"
                entry = replace(self._record.waiting[key], is_placeholder=True)
                self._record.asked(placeholder_key, entry, self._now_ns())
                self._work[placeholder_key] = work
                self._send_ask(placeholder_key, work, entry)

    def _ask_for_held(self, state: SubmittedApplication) -> None:
        """Ask for all pieces that were held back."""
        state.phase = ApplicationPhase.OPEN
        held, state.held = state.held, []
        for key in held:
            self._send_ask(key, self._work[key], self._record.waiting[key])

    def _over(self, state: SubmittedApplication, reason: str) -> None:
        """Give up all waiting asks of an application."""
        if state.phase is ApplicationPhase.ENDED:
            return
        application_id = state.application.application_id
        state.phase = ApplicationPhase.ENDED
        state.held = []
        state.reason = without_names(reason, application_id)
        waiting = self._record.waiting.items()
        for key in [key for key, entry in waiting if entry.application_id == application_id]:
            self._drop(key, state.reason)

    def _drop(self, key: str, reason: str) -> None:
        """Give up an ask that the scheduler refuses."""
        if key not in self._record.waiting:
            self._record.remarks.surprises["rejection of something that does not wait"] += 1
            return
        application_id = self._record.waiting[key].application_id
        self._record.rejected(key, self._now_ns(), reason)
        del self._work[key]
        self._pieces.over(application_id, self._now_ns())

    def _placed(self, key: str, node_id: str) -> None:
        """Start a task; a placeholder does not run."""
        if key not in self._record.waiting:
            self._record.remarks.surprises["placement of something that does not wait"] += 1
            return
        now_ns = self._now_ns()
        entry = self._record.placed(key, now_ns, node_id=node_id)
        duration_ns = self._work[key].task.duration_ns
        if duration_ns is not None and not entry.is_placeholder:
            self._event_queue.add_end(key, now_ns + duration_ns)

    def _released(self, release: si.AllocationRelease) -> None:
        """Confirm a requested release, and ask again for work that the scheduler took."""
        key = release.allocationKey
        if release.terminationType != si.STOPPED_BY_RM:
            self._pending_requests.add_release(release)
        if key in self._record.running:
            is_over = release.terminationType == si.TIMEOUT
            if is_over and not self._record.running[key].is_placeholder:
                self._overran(key)
            elif release.terminationType == si.PREEMPTED_BY_SCHEDULER:
                entry = self._record.preempted(key, self._now_ns(), message=release.message)
                self._ask_again(key, replace(entry, was_placed=True, node_id=""))
            else:
                entry = self._record.stopped(key, self._now_ns())
                again = replace(entry, was_placed=True, node_id="")
                self._ask_again(key, again, is_due=self._nodes.is_asked_again(entry.node_id))
        elif key in self._record.waiting:
            self._ask_again(key, self._record.taken_back(key, self._now_ns()))

    def _overran(self, key: str) -> None:
        """Record the end of a task that has run for its walltime: it completed if it ends at this moment."""
        now_ns, duration_ns = self._now_ns(), self._work.pop(key).task.duration_ns
        self._pieces.over(self._record.running[key].application_id, now_ns)
        if duration_ns is not None and self._record.running[key].placed_at_ns + duration_ns <= now_ns:
            self._record.completed(key, now_ns)
        else:
            self._record.given_up(self._record.stopped(key, now_ns))

    def _ask_again(self, key: str, entry: AskEntry, *, is_due: bool = True) -> None:
        """Ask again, under a new key, for work that was taken back, if it is due; not for a placeholder."""
        work = self._work.pop(key)
        if entry.is_placeholder:
            return
        if not is_due or self._applications[entry.application_id].phase is ApplicationPhase.ENDED:
            self._record.given_up(entry)
            self._pieces.over(entry.application_id, self._now_ns())
            return
        again = replace(work, repetition=work.repetition + 1)
        self._ask(again, replace(entry, is_repeated=True))


def _opened(application: SimulatedApplication, accounts: Accounts) -> SubmittedApplication:
    """Return the state of a newly submitted application, with an account for its request."""
    asked = Owner(queue=application.queue, user=application.user, groups=application.groups)
    return SubmittedApplication(application, accounts.opened(asked, application.walltime_ns))


def _guarded(
    manager: AnnouncedManager, workload: SimulatedWorkload, record: SimulationRecord
) -> AnnouncementGuard:
    """Return the guard of the callbacks, with predicates only if the workload has pools."""
    pools = {each.application_id: each.pool for each in workload.applications if each.pool}
    if not pools:
        return AnnouncementGuard(manager)
    nodes = {node.node_id: node for node in workload.all_nodes()}

    def is_allowed(key: str, node_id: str) -> bool:
        return nodes[node_id].is_of(pools.get(record.waiting[key].application_id, ""))

    return PoolGuard(manager, is_allowed)
