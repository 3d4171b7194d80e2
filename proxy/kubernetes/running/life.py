"""The life of a pod and of its application: two tables, and the events of the cluster and the scheduler.

A task is New until its application may ask for it and its claims exist, Asked until the scheduler places it,
Binding until the API server assigns its pod, and Bound until the pod ends. After a failed bind it is Asked
again, in its old place; after several it is Rejected, and New again after a pause. A pod on an unknown node
is an Orphan until the node arrives. An end that the scheduler requests does not change the state: the task
ends when its pod is gone.

An application waits for its namespace, is Submitted, and is Running when the scheduler accepts it. One with
task groups is Reserving first: its placeholders are asked for, and its other pods when these are on nodes. A
gang that gives up is Resuming until its placeholders have ended.

A row has the states, the event, the next state, and the effects in their order. An event that has no row for
a state comes too late, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar, final

from ....model.values.messages import RejectionCode
from ...si import si_pb2 as si
from ..mapping.applications import application_id, separate_id
from ..mapping.asks import release as release_message
from ..mapping.pod_sizes import pod_resource
from ..mapping.settings import gate_names, is_placeholder, task_group_name
from ..objects import Pod
from ..predicates.verdicts import predicate_class
from . import application_effects as apps
from . import gang_effects as gangs
from . import task_effects as tasks
from .shared_parts import ApplicationEffect, ApplicationTable, SharedParts, TaskEffect, TaskTable
from .tasks import PhaseEvent, PodApplication, PodApplicationPhase, PodTask, TaskEvent, TaskState

State = TypeVar("State")
Event = TypeVar("Event")
Effect = TypeVar("Effect")
Rows: TypeAlias = tuple[tuple[Sequence[State], Event, State | None, tuple[Effect, ...]], ...]
"""The states, the event, the next state, `None` if it stays, and the effects."""


def _table(
    rows: Rows[State, Event, Effect],
) -> dict[tuple[State, Event], tuple[State, tuple[Effect, ...]]]:
    """Return the next state and the effects by state and event."""
    return {
        (state, event): (state if target is None else target, effects)
        for states, event, target, effects in rows
        for state in states
    }


_T, _E = TaskState, TaskEvent
_ON_NODE: Final = (tasks.take_node, tasks.submit_application, tasks.send, gangs.count_reserved)
_REPORT: Final = (tasks.report_rejection, tasks.retry_later)
_PAUSE: Final = (tasks.leave_node, *_REPORT)
_ASK_AGAIN: Final = (tasks.leave_node, tasks.ask)
_ENDED: Final = (tasks.release_ended, gangs.leave_application)

TASK_ROWS: Final[Rows[TaskState, TaskEvent, TaskEffect]] = (
    # It is asked for, placed and bound.
    ([_T.NEW], _E.BLOCK, None, (tasks.hold_back,)),
    ([_T.NEW], _E.ASK, _T.ASKED, (tasks.send, tasks.watch)),
    ([_T.ASKED], _E.PLACED, _T.BINDING, (tasks.place,)),
    ([_T.BINDING], _E.BOUND, _T.BOUND, (tasks.report_bound, gangs.count_reserved)),
    ([_T.BINDING], _E.RESERVED, _T.RESERVED, (gangs.count_reserved,)),
    # It is not bound.
    ([_T.BINDING], _E.BIND_FAILED, None, (tasks.fail_bind,)),
    ([_T.BINDING], _E.VOLUMES_FAILED, None, (tasks.fail_volumes,)),
    ([_T.BINDING], _E.PUT_BACK, _T.ASKED, (tasks.leave_node, tasks.give_back, tasks.watch)),
    ([_T.BINDING], _E.GIVE_UP, _T.REJECTED, (tasks.release, *_PAUSE)),
    # Its pod is on a node, by an earlier bind or by others.
    ([_T.BINDING], _E.TAKEN, None, (tasks.find,)),
    ([_T.ORPHAN], _E.NODE_ADDED, None, (tasks.find,)),
    ([_T.NEW, _T.ASKED, _T.REJECTED, _T.ORPHAN, _T.FAILED], _E.FOUND, _T.BOUND, _ON_NODE),
    ([_T.BINDING, _T.BOUND], _E.FOUND, _T.BOUND, (tasks.release_elsewhere, *_ON_NODE)),
    ([_T.NEW, _T.REJECTED, _T.ORPHAN, _T.FAILED], _E.FOUND_NOWHERE, _T.ORPHAN, (tasks.take_node,)),
    ([_T.BINDING, _T.BOUND], _E.FOUND_NOWHERE, _T.ORPHAN, (tasks.release_elsewhere, tasks.take_node)),
    ([_T.ASKED], _E.FOUND_NOWHERE, _T.ORPHAN, (tasks.miscount, tasks.release_elsewhere, tasks.take_node)),
    # It changes.
    ([_T.ASKED, _T.BINDING, _T.BOUND, _T.RESERVED], _E.CHANGED, None, (tasks.send,)),
    ([_T.ASKED], _E.JUDGED_ANEW, None, (tasks.miscount, tasks.release, tasks.send)),
    # The scheduler places it although it is elsewhere, or no longer has it.
    ([_T.NEW, _T.REJECTED, _T.ORPHAN, _T.FAILED], _E.MISPLACED, None, (tasks.release,)),
    ([_T.BINDING], _E.MISPLACED, _T.NEW, (tasks.release, *_ASK_AGAIN)),
    ([_T.BOUND, _T.RESERVED], _E.MISPLACED, None, (tasks.release, tasks.send)),
    ([_T.ASKED], _E.DROPPED, None, (tasks.send,)),
    ([_T.BINDING, _T.RESERVED], _E.DROPPED, _T.NEW, _ASK_AGAIN),
    ([_T.BOUND], _E.DROPPED, None, (tasks.find,)),
    ([_T.ASKED, _T.BINDING, _T.RESERVED], _E.LOST, _T.NEW, (tasks.leave_node,)),
    ([_T.BOUND, _T.ORPHAN], _E.LOST, None, (tasks.find,)),
    ([_T.ASKED], _E.TIMED_OUT, _T.NEW, (tasks.confirm_time_out, *_ASK_AGAIN)),
    # The scheduler rejects it, or its request cannot be made.
    ([_T.ASKED, _T.BINDING, _T.RESERVED], _E.REJECTED, _T.REJECTED, _PAUSE),
    ([_T.BOUND], _E.REJECTED, _T.ORPHAN, (tasks.count_as_foreign, *_REPORT)),
    ([_T.REJECTED], _E.RETRY, _T.NEW, (tasks.ask,)),
    ([_T.ORPHAN], _E.RETRY, None, (tasks.find_again,)),
    # It ends.
    ([_T.NEW, _T.ASKED, _T.REJECTED], _E.FAIL, _T.FAILED, (tasks.stop_waiting, tasks.fail)),
    ([_T.NEW, _T.FAILED], _E.END, _T.ENDED, (tasks.forget, tasks.confirm_end, gangs.leave_application)),
    ([_T.ASKED], _E.END, _T.ENDED, (tasks.forget, tasks.miscount, *_ENDED)),
    ([_T.BINDING, _T.BOUND, _T.RESERVED], _E.END, _T.ENDED, (tasks.forget, *_ENDED)),
    ([_T.REJECTED, _T.ORPHAN], _E.END, _T.ENDED, (tasks.forget, *_ENDED)),
)
TASK_TABLE: Final[TaskTable] = _table(TASK_ROWS)

_P, _A = PodApplicationPhase, PhaseEvent
_SUBMITTED: Final = [_P.SUBMITTED, _P.RESERVING, _P.RUNNING, _P.RESUMING]
_NOT_SUBMITTED: Final = [_P.WAITING, _P.REJECTED]
_FAILED: Final = [_P.FAILING, _P.FAILED]
_ACCEPTED: Final = [_P.RESERVING, _P.RUNNING, _P.RESUMING]
_SUBMIT_AGAIN: Final = (apps.submit, apps.send_tasks)
_END_GANG: Final = (gangs.end_placeholders, gangs.run_without)

APPLICATION_ROWS: Final[Rows[PodApplicationPhase, PhaseEvent, ApplicationEffect]] = (
    # It is submitted, and accepted.
    ([_P.WAITING], _A.SUBMIT, _P.SUBMITTED, (apps.submit,)),
    ([_P.SUBMITTED], _A.RUN, _P.RUNNING, (apps.ask_for_tasks,)),
    ([_P.SUBMITTED], _A.RUN_EMPTY, _P.RUNNING, (gangs.end_placeholders,)),
    # Its gang is reserved, or gives up.
    ([_P.SUBMITTED], _A.RESERVE, _P.RESERVING, (gangs.reserve,)),
    ([_P.RESERVING], _A.PLACEHOLDER_MISSING, None, (gangs.create_missing,)),
    ([_P.RESERVING], _A.PLACEHOLDERS_ENDED, None, (gangs.create_missing,)),
    ([_P.RESERVING], _A.COMPLETE, _P.RUNNING, (gangs.report_complete, apps.ask_for_tasks)),
    ([_P.SUBMITTED], _A.COME_LATE, _P.RUNNING, (gangs.give_up, apps.ask_for_tasks)),
    ([_P.RESERVING], _A.GANG_TIMED_OUT, _P.RESUMING, (gangs.give_up, *_END_GANG)),
    ([_P.RESERVING], _A.GANG_REFUSED, _P.RESUMING, (gangs.give_up_refused, *_END_GANG)),
    ([_P.RESUMING], _A.PLACEHOLDERS_ENDED, _P.RUNNING, (apps.ask_for_tasks,)),
    # It is submitted again.
    ([_P.WAITING], _A.RESUBMIT, _P.SUBMITTED, _SUBMIT_AGAIN),
    ([_P.REJECTED], _A.RETRY, _P.SUBMITTED, _SUBMIT_AGAIN),
    (_ACCEPTED + _FAILED, _A.LOST, _P.SUBMITTED, _SUBMIT_AGAIN),
    (_ACCEPTED, _A.BEGIN_ANEW, _P.SUBMITTED, (apps.remove, *_SUBMIT_AGAIN)),
    # It is rejected, or fails.
    (_NOT_SUBMITTED + _SUBMITTED + _FAILED, _A.POSTPONE, _P.WAITING, (apps.resubmit_later,)),
    ([_P.SUBMITTED], _A.REJECT, _P.REJECTED, (apps.hold_tasks, apps.retry_later, gangs.end_placeholders)),
    ([_P.SUBMITTED], _A.COME_TOO_LATE, _P.REJECTED, (apps.remove, apps.fail_tasks, apps.retry_later)),
    (_SUBMITTED, _A.FAIL, _P.FAILING, (gangs.end_placeholders, apps.report_failing)),
    (_FAILED, _A.FAILED, _P.FAILED, (apps.begin_failed,)),
    (_FAILED, _A.GANG_FAILED, _P.REJECTED, (apps.retry_later,)),
    # It ends.
    (_SUBMITTED, _A.DROP, _P.ENDED, (apps.forget, apps.remove)),
    (_NOT_SUBMITTED + _FAILED, _A.DROP, _P.ENDED, (apps.forget,)),
    (_SUBMITTED + _FAILED, _A.COMPLETED, _P.ENDED, (apps.forget,)),
)
APPLICATION_TABLE: Final[ApplicationTable] = _table(APPLICATION_ROWS)

_LATER: Final = frozenset({RejectionCode.APPLICATION_EXISTS.value, RejectionCode.PARTITION_STOPPED.value})
"""The reasons for rejections after which an application may be accepted soon."""


@final
class PodLife:
    """Makes events of tasks and applications from changes of pods and messages of the scheduler.

    Args:
        parts: Carries out the events.
    """

    def __init__(self, parts: SharedParts) -> None:
        self._parts = parts
        self._gated: set[str] = set()
        """The uids of pods that wait for their scheduling gates, and have been reported."""

    # ------------------------------------------------------------------------------------- pods

    def pod_seen(self, pod: Pod) -> None:
        """Handle one of our pods that has not ended, new or changed; the cache has it already."""
        uid = pod.metadata.uid
        task = self._parts.tasks.get(uid)
        if _ends_unbound(pod) and (task is None or task.state not in _ON_NODES):
            self._parts.cache.forget_assumption(uid)
            self.pod_gone(uid)
        elif task is not None:
            before, task.pod = task.pod, pod
            self._pod_changed(task, before)
        elif pod.spec.scheduling_gates and not pod.spec.node_name:
            self._report_gates(pod)
        else:
            self._gated.discard(uid)
            self._add(pod)

    def _report_gates(self, pod: Pod) -> None:
        if pod.metadata.uid not in self._gated:
            self._gated.add(pod.metadata.uid)
            note = f"waits for scheduling gates: {', '.join(gate_names(pod))}"
            self._parts.reporter.event(pod, "Scheduling", "GatesWait", note)

    def _add(self, pod: Pod) -> None:
        parts, application = self._parts, self._application_of(pod)
        is_gang = bool(application.groups)
        task = PodTask(
            pod.metadata.uid,
            application,
            pod,
            group=task_group_name(pod, parts.settings) if is_gang else "",
            is_placeholder=is_gang and is_placeholder(pod),
            since=parts.loop.now(),
        )
        application.tasks[task.key] = parts.tasks[task.key] = task
        if pod.spec.node_name:
            tasks.find(parts, task, pod.spec.node_name)
        else:
            tasks.ask(parts, task)
        apps.join(parts, task)
        gangs.join(parts, task)

    def _application_of(self, pod: Pod) -> PodApplication:
        """Return the application of a pod; a new one is submitted as soon as possible."""
        parts = self._parts
        named = identity = application_id(pod, parts.settings)
        while (application := parts.applications.get(identity)) is not None:
            first, is_gang = application.first, bool(application.groups)
            addition = separate_id(pod, first, parts.settings, is_gang=is_gang)
            if not addition:
                break
            identity += addition
        if identity != named:
            note = (
                f"application {named!r} is of another user in namespace "
                f"{parts.applications[named].first.metadata.namespace!r}: the pod belongs to application "
                f"{identity!r} instead"
            )
            parts.reporter.event(pod, "Scheduling", "OtherApplication", note, is_warning=True)
        if application is None:
            application = parts.applications[identity] = PodApplication(identity, pod)
            apps.set_first(parts, application, pod)
            apps.submit_when_possible(parts, application)
        elif not application.has_members and not is_placeholder(pod):
            apps.set_first(parts, application, pod)
            starts_whole = application.groups or apps.gang_group(parts, application) is not None
            if starts_whole and not application.tasks:
                application.has_given_up_gang = False
                parts.application_event(application, PhaseEvent.BEGIN_ANEW)
        return application

    def _pod_changed(self, task: PodTask, before: Pod) -> None:
        parts, node_name = self._parts, task.pod.spec.node_name
        if node_name and (node_name != task.node_name or task.state not in _ON_NODES):
            if task.state is TaskState.BINDING and node_name == task.node_name:
                parts.task_event(task, TaskEvent.BOUND)
            else:
                tasks.find(parts, task, node_name)
        else:
            tasks.ask(parts, task)
        if pod_resource(before) != pod_resource(task.pod):
            parts.task_event(task, TaskEvent.CHANGED)
        elif predicate_class(before) != predicate_class(task.pod):
            parts.task_event(task, TaskEvent.JUDGED_ANEW, "the pod is judged as others now")

    def adopt(self, node_name: str) -> None:
        """Report the pods on a node that is new to the scheduler."""
        for pod in self._parts.cache.pods_on(node_name):
            task = self._parts.tasks.get(pod.metadata.uid)
            if task is not None:
                self._parts.task_event(task, TaskEvent.NODE_ADDED, node_name)

    def pod_gone(self, uid: str) -> None:
        """Handle a pod that has ended, ours or not; the cache no longer has it."""
        self._gated.discard(uid)
        task = self._parts.tasks.get(uid)
        if task is not None:
            self._parts.task_event(task, TaskEvent.END)

    def storage_changed(self) -> None:
        """Continue with the tasks whose claims now exist, or are bound."""
        self._parts.volumes.claims_changed()
        for task in list(self._parts.blocked.values()):
            tasks.ask(self._parts, task)

    def groups_changed(self) -> None:
        """Submit applications that have waited for the object of their group."""
        for application in list(self._parts.applications.values()):
            apps.group_changed(self._parts, application)

    def namespace_seen(self, name: str) -> None:
        """Submit applications that wait for a namespace, and update the quotas of the other queues."""
        for application in list(self._parts.applications.values()):
            if application.first.metadata.namespace == name:
                apps.namespace_changed(self._parts, application)

    # ------------------------------------------------------------------------------ messages of the scheduler

    def placed(self, allocation: si.Allocation) -> None:
        """Handle a placement: bind the pod, unless it is elsewhere or ends."""
        key, node_name = allocation.allocationKey, allocation.nodeID
        task = self._parts.tasks.get(key)
        if task is None:
            message = "the pod has ended meanwhile"
            self._parts.requests.add(
                release_message(allocation.applicationID, key, si.STOPPED_BY_RM, message)
            )
        elif task.state is TaskState.ASKED:
            if task.ending is None:
                self._parts.task_event(task, TaskEvent.PLACED, node_name)
        elif not (task.node_name == node_name and task.has_node):
            self._parts.task_event(task, TaskEvent.MISPLACED, "the pod is no longer requested")

    def released(self, release: si.AllocationRelease) -> None:
        """Handle an end that the scheduler requests: end the pod, and confirm it when it is gone.

        A release without an end is a task that the scheduler has dropped with its node, or the confirmation
        of a release. The two cases need no distinction: sending the task again has no effect if it was sent
        meanwhile.
        """
        kind, key = release.terminationType, release.allocationKey
        task = self._parts.tasks.get(key)
        if task is None:
            if kind != si.STOPPED_BY_RM:
                message = release_message(release.applicationID, key, kind, "task completed")
                self._parts.requests.add(message)
        elif kind == si.STOPPED_BY_RM:
            self._parts.task_event(task, TaskEvent.DROPPED)
        elif kind == si.TIMEOUT and task.state is TaskState.ASKED and not task.is_placeholder:
            self._parts.task_event(task, TaskEvent.TIMED_OUT)
        else:
            tasks.end(self._parts, task, kind, release.message)

    def rejected(self, rejection: si.RejectedAllocation) -> None:
        """Handle the rejection of an ask or an allocation, also because the application is unknown."""
        task = self._parts.tasks.get(rejection.allocationKey)
        if task is None or not task.is_in_core or task.state is TaskState.BINDING:
            return
        is_unknown = rejection.code == RejectionCode.APPLICATION_UNKNOWN.value
        is_lost = is_unknown and task.state is TaskState.ASKED
        self._parts.task_event(task, TaskEvent.LOST if is_lost else TaskEvent.REJECTED, rejection.reason)
        if is_unknown:
            self._parts.application_event(task.application, PhaseEvent.LOST)

    def refused(self, entry: object, reason: str) -> None:
        """Handle a request that could not be made: it is repeated later."""
        if isinstance(entry, si.AddApplicationRequest):
            application = self._parts.applications.get(entry.applicationID)
            if application is not None:
                self._parts.application_event(application, PhaseEvent.POSTPONE)
        elif isinstance(entry, si.Allocation):
            task = self._parts.tasks.get(entry.allocationKey)
            if task is not None:
                self._parts.task_event(task, TaskEvent.REJECTED, reason)

    def application_accepted(self, identity: str) -> None:
        """Handle the acceptance of an application: its gang is reserved first, if it has one."""
        application = self._parts.applications.get(identity)
        if application is not None and application.phase is PodApplicationPhase.SUBMITTED:
            self._parts.rejections.pop(identity, None)
            gangs.accept(self._parts, application)
            for task in list(application.tasks.values()):
                if task.is_foreign:
                    self._parts.task_event(task, TaskEvent.RETRY)

    def application_rejected(self, identity: str, reason: str, code: str = "") -> None:
        """Handle the rejection of an application: its pods wait, and it is submitted again later."""
        application = self._parts.applications.get(identity)
        if application is not None and application.phase is PodApplicationPhase.SUBMITTED:
            event = PhaseEvent.POSTPONE if code in _LATER else PhaseEvent.REJECT
            self._parts.application_event(application, event, reason)

    def application_changed(self, identity: str, state: str, message: str) -> None:
        """Handle a new state of an application."""
        application = self._parts.applications.get(identity)
        if application is None:
            return
        match state:
            case "Completed":  # pods that arrived meanwhile create it again
                event = PhaseEvent.LOST if application.tasks else PhaseEvent.COMPLETED
                self._parts.application_event(application, event)
            case "Resuming":
                self._parts.application_event(application, PhaseEvent.GANG_TIMED_OUT, message)
            case "Failing":
                self._parts.application_event(application, PhaseEvent.FAIL, message)
            case "Failed":
                self._parts.application_event(application, PhaseEvent.FAIL, message)
                is_gang = tasks.GANG_TIMEOUT in application.reason
                event = PhaseEvent.GANG_FAILED if is_gang else PhaseEvent.FAILED
                self._parts.application_event(application, event, apps.GANG_TIMEOUT_TEXT)


_ON_NODES: Final = frozenset({TaskState.BOUND, TaskState.ORPHAN})


def _ends_unbound(pod: Pod) -> bool:
    """Return whether a pod is being deleted before it was on a node: the API server does not bind it."""
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
