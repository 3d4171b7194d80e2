"""The life of an application: submitted, accepted, its gang reserved, running, and how it ends."""

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
"""When an application is submitted again whose id is still in use."""
_EMPTY_SECONDS: Final = 90.0
"""When an application without pods is removed that the scheduler has not completed by itself."""
_LIVE: Final = frozenset(
    {PodApplicationPhase.RESERVING, PodApplicationPhase.RUNNING, PodApplicationPhase.RESUMING}
)
_UNKNOWN_TO_THE_SCHEDULER: Final = frozenset({PodApplicationPhase.WAITING, PodApplicationPhase.REJECTED})
_LATER: Final = frozenset({RejectionCode.APPLICATION_EXISTS.value, RejectionCode.PARTITION_STOPPED.value})
"""Why an application is rejected now that may be accepted in a moment."""


class TaskSide(GangTasks, Protocol):
    """What an application needs of the life of its tasks."""

    def send_again(self, task: PodTask) -> None:
        """Tell the scheduler anew of a task that it has lost."""
        ...

    def fail(self, task: PodTask, reason: str, message: str) -> None:
        """Write that the pod of a task has failed."""
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
        """Whether more may come than was listed at the start: a namespace that is not known, for example."""
        self.gangs = GangLife(parts, tasks, self)

    @property
    def by_id(self) -> Mapping[str, PodApplication]:
        """The applications that have pods, or that the scheduler has not completed yet, by id."""
        return self._by_id

    # ------------------------------------------------------------------------------------- from pods

    def of_pod(self, pod: Pod) -> PodApplication:
        """Return the application of a pod; one that is new is submitted as soon as possible."""
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
        """Take the first pod after those that have ended: its gang is reserved as that of a new one."""
        self._set_first(application, pod)
        if application.groups and not application.tasks and application.phase is PodApplicationPhase.RUNNING:
            application.has_given_up_gang = False
            self._remove(application)
            self.submit(application)

    def _set_first(self, application: PodApplication, pod: Pod) -> None:
        """Take a pod as the first of an application, which says how it is."""
        groups = task_groups(pod, self._settings)
        application.first = pod
        application.groups = () if isinstance(groups, RefusedTaskGroups) else groups

    def new_task(self, application: PodApplication, pod: Pod) -> PodTask:
        """Return the task of a pod, as one of the application."""
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
        """Take that a task has been added, and asked for if that is possible."""
        application = task.application
        if application.phase is PodApplicationPhase.FAILED:
            self._begin_failed(application)
        reason = self._rejections.reason(application.application_id)
        if reason and application.phase in _UNKNOWN_TO_THE_SCHEDULER:
            self._hold(task, reason)
        self._compare_namespaces(task.pod, application.first)
        self.gangs.joined(task)

    def _compare_namespaces(self, pod: Pod, first: Pod) -> None:
        """Tell people that an application has pods in two namespaces: the first decides queue and quotas."""
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
        """Submit what has waited for a namespace, and have the queues of others take its quotas."""
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
        """Submit an application; whatever its queue says if one of its pods runs already."""
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
        """Tell people what is ignored of what the first pod of an application says."""
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
        """Submit an application that the scheduler does not have any more, with the pods that run."""
        if application.phase not in {PodApplicationPhase.SUBMITTED, *_UNKNOWN_TO_THE_SCHEDULER}:
            self._resubmit(application)

    def begin_anew(self, application: PodApplication) -> None:
        """Have the scheduler forget what it has counted of an application, and tell it again."""
        application.is_miscounted = False
        self._remove(application)
        self._resubmit(application)

    def _resubmit(self, application: PodApplication) -> None:
        self.submit(application)
        for task in list(application.tasks.values()):
            self._tasks.send_again(task)

    def task_bound(self, task: PodTask) -> None:
        """Take that a task is on a node: with the last placeholder the gang is complete."""
        self.gangs.task_bound(task)

    def task_ended(self, task: PodTask) -> None:
        """Take that a task has ended."""
        application = task.application
        application.tasks.pop(task.key, None)
        if task.is_placeholder:
            self.gangs.placeholder_ended(task)
        if not application.has_members:
            self.gangs.end_placeholders(application)
        if not application.tasks and self._is_known(application):
            self._emptied(application)

    # ------------------------------------------------------------------------------------- how it ends

    def _emptied(self, application: PodApplication) -> None:
        """Take that the last task has ended.

        The scheduler completes an application by itself, after a time in which more pods may come. One of
        which it has got no pod it would keep for ever, and a gang begins anew with the next pod.
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
        """Forget an application without tasks; the scheduler, too, unless it has ended it."""
        del self._by_id[application.application_id]
        if application.phase in {*_LIVE, PodApplicationPhase.SUBMITTED}:
            self._remove(application)

    def _remove(self, application: PodApplication) -> None:
        identity = application.application_id
        self._requests.add(si.RemoveApplicationRequest(applicationID=identity, partitionName=PARTITION))

    def end_without(self, application: PodApplication, reason: str, message: str) -> None:
        """Have the pods of an application fail, or wait, that the scheduler has accepted."""
        self._remove(application)
        self._fail(application, reason, message)
        self._try_later(application, message)

    # ------------------------------------------------------------------------------------- from the scheduler

    def accepted(self, identity: str) -> None:
        """Take that an application is accepted: its gang is reserved first, if it has one."""
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
        """Ask for the pods of an application; placeholders without a node are not needed any more."""
        application.phase = PodApplicationPhase.RUNNING
        for task in list(application.tasks.values()):
            self._tasks.ask(task)

    def rejected(self, identity: str, reason: str, code: str = "") -> None:
        """Take that an application is rejected: its pods wait, and it is tried again after a while."""
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
        """Have a pod say why its application is not taken; it waits, as a new pod would not be taken."""
        self._reporter.condition(task.pod, "SchedulingSkipped", reason)
        self._reporter.event(task.pod, "ApplicationRejected", "Scheduling", reason, is_warning=True)

    def refused(self, application: PodApplication) -> None:
        """Submit an application again in a while: the request could not be made."""
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
        """Take that an application is in another state."""
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
        """Forget an application; pods of it that came meanwhile make it anew."""
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
        """Take that the scheduler has ended an application: pods that are left begin it anew."""
        application.phase = PodApplicationPhase.FAILED
        if GANG_TIMEOUT in application.reason:
            self._try_later(application, GANG_TIMEOUT_TEXT)
        else:
            self._begin_failed(application)

    def _begin_failed(self, application: PodApplication) -> None:
        """Begin an application that has failed anew, with the first pod that is left."""
        left = [task for task in application.tasks.values() if _is_left(task)]
        if left:
            self._set_first(application, left[0].pod)
            application.has_given_up_gang = False
            self._resubmit(application)

    def _fail(self, application: PodApplication, reason: str, message: str) -> None:
        """Write that the pods have failed that are on no node; those wait that a controller makes again."""
        for task in list(application.members):
            if task.is_made_again and not task.has_node:
                self._hold(task, message)
            elif not task.has_node:
                self._tasks.fail(task, reason, message)


def _is_left(task: PodTask) -> bool:
    """Return whether a task goes on when its application has failed."""
    return task.state is not TaskState.FAILED and task.ending is None and not task.is_placeholder
