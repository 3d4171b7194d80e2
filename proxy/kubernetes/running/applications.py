"""The life of an application: submitted, accepted, its gang reserved, running, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, final

from ....model.values.messages import RejectionCode
from ...si import constants
from ...si import si_pb2 as si
from ..mapping.applications import add_application_request, application_id, application_warnings
from ..mapping.gangs import RefusedTaskGroups, task_groups
from ..mapping.settings import PARTITION, is_placeholder, task_group_name
from ..objects import Namespace, Pod
from .gang_life import GANG_TIMEOUT, GANG_TIMEOUT_TEXT, GangLife, GangTasks
from .rejections import Rejections
from .shared_parts import SharedParts
from .tasks import PodApplication, PodApplicationPhase, PodTask, TaskState

_NAMESPACE_SECONDS: Final = 5.0
"""How long an application waits for its namespace to be known; then it is submitted without quotas."""
_LATER_SECONDS: Final = 5.0
"""After how long an application is submitted again whose id is still in use."""
_EMPTY_SECONDS: Final = 90.0
"""After how long an application without pods is removed that the scheduler has not completed itself."""
_LIVE: Final = frozenset(
    {PodApplicationPhase.RESERVING, PodApplicationPhase.RUNNING, PodApplicationPhase.RESUMING}
)
_UNKNOWN_TO_THE_SCHEDULER: Final = frozenset({PodApplicationPhase.WAITING, PodApplicationPhase.REJECTED})
_LATER: Final = frozenset({RejectionCode.APPLICATION_EXISTS.value, RejectionCode.PARTITION_STOPPED.value})
"""The reasons for rejections after which an application may be accepted soon."""


class TaskSide(GangTasks, Protocol):
    """The operations of the life of tasks that an application needs."""

    def send_again(self, task: PodTask) -> None:
        """Send a lost task to the scheduler again."""
        ...

    def fail(self, task: PodTask, reason: str, message: str) -> None:
        """Mark the pod of a task as failed."""
        ...


@final
class Applications:
    """The applications of pods; used by one thread."""

    def __init__(self, parts: SharedParts, tasks: TaskSide) -> None:
        self._settings = parts.settings
        self._cache = parts.cache
        self._requests = parts.requests
        self._reporter = parts.reporter
        self._loop = parts.loop
        self._tasks = tasks
        self._by_id: dict[str, PodApplication] = {}
        self._rejections = Rejections(parts.loop)
        self.has_begun = False
        """Whether objects may arrive that were not listed at the start: an unknown namespace, for example."""
        self.gangs = GangLife(parts, tasks, self)

    @property
    def by_id(self) -> Mapping[str, PodApplication]:
        """The applications with pods, and those that the scheduler has not completed yet, by id."""
        return self._by_id

    # ------------------------------------------------------------------------------------- from pods

    def of_pod(self, pod: Pod) -> PodApplication:
        """Return the application of a pod; a new one is submitted as soon as possible."""
        identity = application_id(pod, self._settings)
        application = self._by_id.get(identity)
        if application is None:
            application = self._by_id[identity] = PodApplication(identity, pod)
            self._set_first(application, pod)
            self._submit_when_possible(application)
        elif not application.has_members and not is_placeholder(pod):
            self._begin_again(application, pod)
        return application

    def _begin_again(self, application: PodApplication, pod: Pod) -> None:
        """Handle the first pod after all others have ended: its gang is reserved like a new one."""
        self._set_first(application, pod)
        if application.groups and not application.tasks and application.phase is PodApplicationPhase.RUNNING:
            application.has_given_up_gang = False
            self._remove(application)
            self.submit(application)

    def _set_first(self, application: PodApplication, pod: Pod) -> None:
        """Make a pod the first of an application; it decides the properties of the application."""
        groups = task_groups(pod, self._settings)
        application.first = pod
        application.groups = () if isinstance(groups, RefusedTaskGroups) else groups

    def new_task(self, application: PodApplication, pod: Pod) -> PodTask:
        """Add a task for the pod to the application, and return it."""
        is_gang = bool(application.groups)
        task = PodTask(
            pod.metadata.uid,
            application,
            pod,
            group=task_group_name(pod, self._settings) if is_gang else "",
            is_placeholder=is_gang and is_placeholder(pod),
        )
        application.tasks[task.key] = task
        return task

    def joined(self, task: PodTask) -> None:
        """Handle a task that has been added."""
        application = task.application
        if application.phase is PodApplicationPhase.FAILED:
            self._begin_failed(application)
        reason = self._rejections.reason(application.application_id)
        if reason and application.phase in _UNKNOWN_TO_THE_SCHEDULER:
            self._hold(task, reason)
        self._compare_namespaces(task.pod, application.first)
        self.gangs.joined(task)

    def _compare_namespaces(self, pod: Pod, first: Pod) -> None:
        """Warn people that an application has pods in two namespaces: the first decides queue and quotas."""
        own, other = pod.metadata.namespace, first.metadata.namespace
        if own != other:
            note = f"the application has pods in namespace {other!r} as well, whose queue and quotas it has"
            self._reporter.event(pod, "Scheduling", "SharedApplication", note, is_warning=True)

    def _submit_when_possible(self, application: PodApplication) -> None:
        pause = self._rejections.pause(application.application_id)
        if not pause and self.has_begun and self._namespace(application.first) is None:
            pause = _NAMESPACE_SECONDS
        if pause:
            self._loop.later(pause, self._submit_waiting, application)
        else:
            self.submit(application)

    def namespace_seen(self, name: str) -> None:
        """Submit applications that wait for a namespace, and update the quotas of the other queues."""
        for application in list(self._by_id.values()):
            if application.first.metadata.namespace != name:
                continue
            if application.phase in _LIVE and application.tasks:
                first = application.first
                self._requests.add(add_application_request(first, self._namespace(first), self._settings))
            elif not self._rejections.pause(application.application_id):
                self._submit_waiting(application)

    def _submit_waiting(self, application: PodApplication) -> None:
        if self._is_known(application) and application.phase is PodApplicationPhase.WAITING:
            self.submit(application)

    def submit(self, application: PodApplication) -> None:
        """Submit an application; if one of its pods runs already, even if its queue refuses it."""
        first = application.first
        application.phase = PodApplicationPhase.SUBMITTED
        self._warn(first)
        request = add_application_request(first, self._namespace(first), self._settings)
        if application.has_assigned():
            request.tags[constants.APP_TAG_CREATE_FORCE] = "true"
        self._requests.add(request)

    def submit_at_once(self, application: PodApplication) -> None:
        """Submit an application if it waits: one of its pods is on a node."""
        if application.phase is PodApplicationPhase.WAITING:
            self.submit(application)

    def _warn(self, pod: Pod) -> None:
        """Warn people about ignored parts of the first pod of an application."""
        warnings = application_warnings(pod, self._namespace(pod), self._settings)
        for action, sentences in warnings.items():
            reason = "GangScheduling" if action == "TaskGroupsError" else "Scheduling"
            for sentence in sentences:
                self._reporter.event(pod, reason, action, sentence, is_warning=True)

    def _namespace(self, pod: Pod) -> Namespace | None:
        return self._cache.namespaces.get(pod.metadata.namespace)

    def _is_known(self, application: PodApplication) -> bool:
        return self._by_id.get(application.application_id) is application

    def submit_again(self, application: PodApplication) -> None:
        """Submit an application that the scheduler no longer has, with the running pods."""
        if application.phase not in {PodApplicationPhase.SUBMITTED, *_UNKNOWN_TO_THE_SCHEDULER}:
            self._resubmit(application)

    def begin_anew(self, application: PodApplication) -> None:
        """Make the scheduler forget its counts of an application, and submit it again."""
        application.is_miscounted = False
        self._remove(application)
        self._resubmit(application)

    def _resubmit(self, application: PodApplication) -> None:
        self.submit(application)
        for task in list(application.tasks.values()):
            self._tasks.send_again(task)

    def task_bound(self, task: PodTask) -> None:
        """Handle a task that is on a node: with the last placeholder the gang is complete."""
        self.gangs.task_bound(task)

    def task_ended(self, task: PodTask) -> None:
        """Handle the end of a task."""
        application = task.application
        application.tasks.pop(task.key, None)
        if task.is_placeholder:
            self.gangs.placeholder_ended(task)
        if not application.has_members:
            self.gangs.end_placeholders(application)
        if not application.tasks and self._is_known(application):
            self._emptied(application)

    # ------------------------------------------------------------------------------------- the end

    def _emptied(self, application: PodApplication) -> None:
        """Handle the end of the last task.

        The scheduler completes an application itself, after a time in which more pods may arrive. It would
        keep an application without any pod for ever, and a gang starts again with the next pod.
        """
        application.emptied += 1
        if application.phase is PodApplicationPhase.RUNNING and application.has_asked:
            self._loop.later(_EMPTY_SECONDS, self._drop_if_empty, application, application.emptied)
        else:
            self._drop(application)

    def _drop_if_empty(self, application: PodApplication, emptied: int) -> None:
        if not application.tasks and application.emptied == emptied and self._is_known(application):
            self._drop(application)

    def _drop(self, application: PodApplication) -> None:
        """Forget an application without tasks; make the scheduler forget it too, unless it has ended it."""
        del self._by_id[application.application_id]
        if application.phase in {*_LIVE, PodApplicationPhase.SUBMITTED}:
            self._remove(application)

    def _remove(self, application: PodApplication) -> None:
        identity = application.application_id
        self._requests.add(si.RemoveApplicationRequest(applicationID=identity, partitionName=PARTITION))

    def end_without(self, application: PodApplication, reason: str, message: str) -> None:
        """Make the pods of an accepted application fail, or wait."""
        self._remove(application)
        self._fail(application, reason, message)
        self._try_later(application, message)

    # ------------------------------------------------------------------------------------- from the scheduler

    def accepted(self, identity: str) -> None:
        """Handle the acceptance of an application: its gang is reserved first, if it has one."""
        application = self._by_id.get(identity)
        if application is None or application.phase is not PodApplicationPhase.SUBMITTED:
            return
        self._rejections.accepted(identity)
        has_members_on_nodes = any(task.has_node for task in application.members)
        if application.groups and not (application.has_given_up_gang or has_members_on_nodes):
            self.gangs.begin(application)
        else:
            self.run(application)

    def run(self, application: PodApplication) -> None:
        """Ask for the pods of an application; placeholders without a node are no longer needed."""
        application.phase = PodApplicationPhase.RUNNING
        for task in list(application.tasks.values()):
            self._tasks.ask(task)

    def rejected(self, identity: str, reason: str, code: str = "") -> None:
        """Handle the rejection of an application: its pods wait, and it is submitted again later."""
        application = self._by_id.get(identity)
        if application is None or application.phase is not PodApplicationPhase.SUBMITTED:
            return
        if code in _LATER:
            self.refused(application)
            return
        for task in application.members:
            if not task.has_node:
                self._hold(task, reason)
        self._try_later(application, reason)
        self.gangs.end_placeholders(application)

    def _try_later(self, application: PodApplication, reason: str) -> None:
        application.phase, application.reason = PodApplicationPhase.REJECTED, reason
        pause = self._rejections.note(application.application_id, reason)
        self._loop.later(pause, self._try_rejected, application, pause)

    def _hold(self, task: PodTask, reason: str) -> None:
        """Report on a pod why its application is rejected; it waits, since a new pod would be rejected."""
        self._reporter.condition(task.pod, "SchedulingSkipped", reason)
        self._reporter.event(task.pod, "ApplicationRejected", "Scheduling", reason, is_warning=True)

    def refused(self, application: PodApplication) -> None:
        """Submit an application again later: the request could not be made."""
        application.phase = PodApplicationPhase.WAITING
        self._loop.later(_LATER_SECONDS, self._submit_again_later, application)

    def _submit_again_later(self, application: PodApplication) -> None:
        if self._is_known(application) and application.phase is PodApplicationPhase.WAITING:
            self._resubmit(application)

    def _try_rejected(self, application: PodApplication, pause: float) -> None:
        """Submit a rejected application again, unless all of its pods have failed."""
        if self._is_known(application) and application.phase is PodApplicationPhase.REJECTED:
            if any(task.state is not TaskState.FAILED for task in application.members):
                application.tried_again_at = self._loop.unix_seconds()
                self._resubmit(application)
            else:
                self._loop.later(pause, self._try_rejected, application, pause)

    def changed(self, identity: str, state: str, message: str) -> None:
        """Handle a new state of an application."""
        application = self._by_id.get(identity)
        if application is None or application.phase in _UNKNOWN_TO_THE_SCHEDULER:
            return
        match state:
            case "Completed":
                self._completed(application)
            case "Resuming":
                self.gangs.timed_out(application, message)
            case "Failing":
                self._failing(application, message)
            case "Failed":
                self._failing(application, message)
                self._failed(application)

    def _completed(self, application: PodApplication) -> None:
        """Forget a completed application; pods that arrived meanwhile create it again."""
        if application.tasks:
            self.submit_again(application)
        else:
            del self._by_id[application.application_id]

    def _failing(self, application: PodApplication, message: str) -> None:
        if application.phase in {PodApplicationPhase.FAILING, PodApplicationPhase.FAILED}:
            return
        application.phase, application.reason = PodApplicationPhase.FAILING, message
        self.gangs.end_placeholders(application)
        if GANG_TIMEOUT in message:
            self._fail(application, GANG_TIMEOUT, GANG_TIMEOUT_TEXT)
        else:
            note = message or "the application has failed"
            self._reporter.event(application.first, "ApplicationFailed", "Scheduling", note, is_warning=True)

    def _failed(self, application: PodApplication) -> None:
        """Handle a failure of an application: remaining pods start it again."""
        application.phase = PodApplicationPhase.FAILED
        if GANG_TIMEOUT in application.reason:
            self._try_later(application, GANG_TIMEOUT_TEXT)
        else:
            self._begin_failed(application)

    def _begin_failed(self, application: PodApplication) -> None:
        """Start a failed application again, with the first remaining pod."""
        left = [task for task in application.tasks.values() if _is_left(task)]
        if left:
            self._set_first(application, left[0].pod)
            application.has_given_up_gang = False
            self._resubmit(application)

    def _fail(self, application: PodApplication, reason: str, message: str) -> None:
        """Mark the pods without a node as failed; pods that a controller recreates wait instead."""
        for task in list(application.members):
            if task.is_made_again and not task.has_node:
                self._hold(task, message)
            elif not task.has_node:
                self._tasks.fail(task, reason, message)


def _is_left(task: PodTask) -> bool:
    """Return whether a task continues after the failure of its application."""
    return task.state is not TaskState.FAILED and task.ending is None and not task.is_placeholder
