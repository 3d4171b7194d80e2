"""A resource manager on virtual time: it submits a workload and does what the scheduler says.

An application is submitted at its time, and its asks follow once it is accepted. A placed task runs for
its duration and is then released with `STOPPED_BY_RM`. What the scheduler wants back (a preempted task, a
placeholder) is confirmed with the same type of release; work that was taken off its node or out of its
queue is asked for again at once under a new key, `key-r1`, and starts from the beginning.

A gang asks for its placeholders first, `key-ph`, and for its tasks when it runs or was given up as a gang.

Callbacks only write the record and add to the pending requests; `send` sends those.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ..si import si_pb2 as si
from ..si.api import ResourceManager
from .accounts import Owner
from .callback_guard import CallbackGuard
from .event_queue import EventQueue
from .pending_requests import PendingRequests
from .reasons import without_names
from .record import AskEntry
from .rm_state import ApplicationPhase, SubmittedApplication, Work
from .si_messages import (
    ask_message,
    new_application_message,
    node_request,
    release_message,
    resource_message,
)

if TYPE_CHECKING:
    from .accounts import Accounts
    from .core import Core
    from .record import SimulationRecord
    from .workloads.workload import SimulatedApplication, SimulatedTask, Workload

__all__ = ["RM_ID", "SimulatedRM"]

RM_ID: Final = "simulation"

_RUNNING_STATES: Final = frozenset({"Running", "Resuming"})
_FAILED_STATES: Final = frozenset({"Failing", "Failed", "Rejected"})


@final
class SimulatedRM(ResourceManager):
    """The resource manager of one simulation; a `Traffic`.

    Args:
        workload: What it submits.
        core: The scheduler it registers with; virtual time starts at the time of the core's clock.
        record: The record that it writes.
        configuration: The queue YAML.
    """

    def __init__(self, workload: Workload, core: Core, record: SimulationRecord, configuration: str) -> None:
        self._workload = workload
        self._core = core
        self._record = record
        self._configuration = configuration
        self._origin_ns = core.now_ns()
        self._tasks_total = workload.task_count()
        self._steps_done = 0
        self._nodes = {node.node_id: node for node in workload.nodes}
        self._applications: dict[str, SubmittedApplication] = {}
        self._work: dict[str, Work] = {}
        self._event_queue = EventQueue(workload)
        self._pending_requests = PendingRequests(core.api, RM_ID)
        self._guard = CallbackGuard(self)

    # ----------------------------------------------------------------------------------- traffic

    def start(self) -> None:
        """Register and bring the nodes."""
        request = si.RegisterResourceManagerRequest(
            rmID=RM_ID, version="1", policyGroup="queues", config=self._configuration
        )
        self._core.api.register_resource_manager(request, self._guard)
        self._core.api.update_node(node_request(RM_ID, self._workload.nodes))

    def next_event_ns(self) -> int | None:
        """Return when something is submitted or ends next."""
        return self._event_queue.next_ns()

    def deliver(self, now_ns: int) -> None:
        """End the tasks whose time is over, then submit what is due: ended tasks free their room first."""
        while (key := self._event_queue.pop_end(now_ns)) is not None:
            self._end(key, now_ns)
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
        """Send the requests that were kept."""
        self._pending_requests.send()

    def is_anything_open(self) -> bool:
        """Return whether something waits that a timer of the core could change."""
        return self._record.is_anything_open()

    def progress(self) -> tuple[int, int]:
        """Return the tasks that were submitted and that ended, of twice their number."""
        return self._steps_done, 2 * self._tasks_total

    # --------------------------------------------------------------------------------- callbacks

    def update_node(self, response: si.NodeResponse) -> None:
        """Write the capacity of the nodes that the scheduler takes."""
        for accepted in response.accepted:
            resources = self._nodes[accepted.nodeID].resources
            self._record.capacity_changed(self._now_ns(), resources, 1, node_id=accepted.nodeID)
        for rejected in response.rejected:
            reason = without_names(rejected.reason, rejected.nodeID)
            self._record.remarks.refusals[f"node rejected: {reason}"] += 1

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Ask for the tasks of accepted applications; give up those of rejected and failed ones."""
        for accepted in response.accepted:
            self._accepted(self._applications[accepted.applicationID])
        for rejected in response.rejected:
            self._over(self._applications[rejected.applicationID], rejected.reason)
        for updated in response.updated:
            state = self._applications[updated.applicationID]
            if updated.state in _FAILED_STATES:
                self._over(state, f"application {updated.state}: {updated.message}")
            elif updated.state in _RUNNING_STATES and state.phase is ApplicationPhase.WAITING_FOR_GANG:
                self._ask_for_held(state)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Start what is placed, confirm what is to be released, give up what is rejected."""
        for allocation in response.new:
            self._placed(allocation.allocationKey, allocation.nodeID)
        for release in response.released:
            self._released(release)
        for rejection in response.rejectedAllocations:
            self._rejected(rejection)

    # ------------------------------------------------------------------------------------ inside

    def _now_ns(self) -> int:
        """Return the virtual time from the start."""
        return self._core.now_ns() - self._origin_ns

    def _submit_task(self, application: SimulatedApplication, task: SimulatedTask, now_ns: int) -> None:
        """Write every piece of a task into the record, and ask for it or hold it back."""
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
            self._steps_done += 1
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
        self._pending_requests.add_ask(message)

    def _accepted(self, state: SubmittedApplication) -> None:
        """Count an application where it was placed, and ask for its tasks, or the placeholders of a gang."""
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
        """Ask for everything that was held back."""
        state.phase = ApplicationPhase.OPEN
        held, state.held = state.held, []
        for key in held:
            self._send_ask(key, self._work[key], self._record.waiting[key])

    def _over(self, state: SubmittedApplication, reason: str) -> None:
        """Give up everything of an application that waits."""
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
        """Write that an ask is refused."""
        self._steps_done += 1
        self._record.rejected(key, self._now_ns(), reason)
        del self._work[key]

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

    def _end(self, key: str, now_ns: int) -> None:
        """End a task whose time is over, if it still runs under this key."""
        entry = self._record.running.get(key)
        if entry is not None:
            self._steps_done += 1
            self._record.completed(key, now_ns)
            self._pending_requests.add_release(release_message(key, entry.application_id))
            del self._work[key]

    def _released(self, release: si.AllocationRelease) -> None:
        """Confirm what the scheduler wants back, and ask again for work that it took."""
        key = release.allocationKey
        if release.terminationType != si.STOPPED_BY_RM:
            self._pending_requests.add_release(release)
        if key in self._record.running:
            if release.terminationType == si.PREEMPTED_BY_SCHEDULER:
                entry = self._record.preempted(key, self._now_ns(), message=release.message)
            else:
                entry = self._record.stopped(key, self._now_ns())
            self._ask_again(key, replace(entry, was_placed=True, node_id=""))
        elif key in self._record.waiting:
            self._ask_again(key, self._record.taken_back(key, self._now_ns()))

    def _ask_again(self, key: str, entry: AskEntry) -> None:
        """Ask again for work that was taken back, under a new key; not for a placeholder."""
        work = self._work.pop(key)
        if entry.is_placeholder:
            return
        if self._applications[entry.application_id].phase is ApplicationPhase.ENDED:
            self._record.given_up(entry)
            return
        again = replace(work, repetition=work.repetition + 1)
        self._ask(again, replace(entry, is_repeated=True))

    def _rejected(self, rejection: si.RejectedAllocation) -> None:
        """Give up an ask that the scheduler refuses."""
        key = rejection.allocationKey
        if key not in self._record.waiting:
            self._record.remarks.surprises["rejection of something that does not wait"] += 1
            return
        self._drop(key, without_names(rejection.reason, key, rejection.applicationID))


def _opened(application: SimulatedApplication, accounts: Accounts) -> SubmittedApplication:
    """Return the state of an application that is submitted now, with an account for what it asks for."""
    asked = Owner(queue=application.queue, user=application.user, groups=application.groups)
    return SubmittedApplication(application, accounts.opened(asked))
