"""The life of an application: submitted, accepted, its gang reserved, running, and how it ends."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final, Protocol, final

import msgspec

from ...si import si_pb2 as si
from ..mapping.applications import add_application_request, application_id, application_warnings
from ..mapping.gangs import DeclaredTaskGroup, RefusedTaskGroups, missing_placeholders, task_groups
from ..mapping.names import PARTITION
from ..mapping.placeholders import placeholder_manifest
from ..mapping.pods import is_placeholder, task_group_name
from ..objects import Namespace, Pod
from .shared_parts import SharedParts
from .tasks import ApplicationPhase, PodApplication, Task, TaskState

__all__ = ["Applications", "TaskSide"]

_GANG_TIMEOUT: Final = "ResourceReservationTimeout"
_GANG_TIMEOUT_TEXT: Final = "Scheduling has timed out due to insufficient resources"


class TaskSide(Protocol):
    """What an application needs of the life of its tasks."""

    def ask(self, task: Task) -> None:
        """Ask for a task, if that is possible now."""
        ...

    def add_virtual(self, task: Task) -> None:
        """Take a placeholder that has no pod in the cluster."""
        ...

    def send_again(self, task: Task) -> None:
        """Tell the scheduler anew of a task that it has lost."""
        ...

    def end(self, task: Task) -> None:
        """End a task, and its pod if it has one."""
        ...


@final
class Applications:
    """The applications of pods; used by one thread."""

    def __init__(self, parts: SharedParts, tasks: TaskSide) -> None:
        self._settings = parts.settings
        self._cache = parts.cache
        self._requests = parts.requests
        self._actions = parts.actions
        self._reporter = parts.reporter
        self._tasks = tasks
        self._by_id: dict[str, PodApplication] = {}
        self._random = random.Random()  # noqa: S311 - ends of names

    # ------------------------------------------------------------------------------------- from pods

    def of_pod(self, pod: Pod) -> PodApplication:
        """Return the application of a pod; one that is new is submitted."""
        identity = application_id(pod, self._settings)
        application = self._by_id.get(identity)
        if application is None:
            groups = task_groups(pod, self._settings)
            application = PodApplication(
                identity, pod, groups=() if isinstance(groups, RefusedTaskGroups) else groups
            )
            self._by_id[identity] = application
            self._warn(pod)
            self._submit(application)
        return application

    def _warn(self, pod: Pod) -> None:
        """Tell people what is ignored of what the first pod of an application says."""
        warnings = application_warnings(pod, self._namespace(pod), self._settings)
        for action, sentences in warnings.items():
            reason = "GangScheduling" if action == "TaskGroupsError" else "Scheduling"
            for sentence in sentences:
                self._reporter.event(pod, reason, action, sentence, is_warning=True)

    def _namespace(self, pod: Pod) -> Namespace | None:
        return self._cache.namespaces.get(pod.metadata.namespace)

    def _submit(self, application: PodApplication) -> None:
        first = application.first
        application.phase = ApplicationPhase.SUBMITTED
        self._requests.add(add_application_request(first, self._namespace(first), self._settings))

    def submit_again(self, application: PodApplication) -> None:
        """Submit an application that the scheduler does not have any more, with the pods that run."""
        if application.phase is ApplicationPhase.SUBMITTED:
            return
        self._submit(application)
        for task in application.tasks.values():
            self._tasks.send_again(task)

    def new_task(self, application: PodApplication, pod: Pod) -> Task:
        """Return the task of a pod, as one of the application."""
        is_gang = bool(application.groups)
        task = Task(
            pod.metadata.uid,
            application,
            pod,
            group=task_group_name(pod, self._settings) if is_gang else "",
            is_placeholder=is_gang and is_placeholder(pod),
        )
        application.tasks[task.key] = task
        return task

    def task_bound(self, task: Task) -> None:
        """Take that a task runs on a node: with the last placeholder the gang is complete."""
        application = task.application
        if task.is_placeholder and application.phase is ApplicationPhase.RESERVING:
            self._look_at_gang(application)

    def task_ended(self, task: Task) -> None:
        """Take that a task has ended."""
        application = task.application
        application.tasks.pop(task.key, None)
        if application.phase is ApplicationPhase.RESUMING and not application.placeholders:
            self._run(application)
        if not application.members:
            self._end_placeholders(application)
        if not application.tasks and not (application.has_asked and application.phase in _LIVE):
            self._drop(application)

    def _drop(self, application: PodApplication) -> None:
        """Forget an application without tasks, which the scheduler would keep for ever or has ended."""
        self._by_id.pop(application.application_id, None)
        if application.phase in {*_LIVE, ApplicationPhase.SUBMITTED}:
            self._requests.add(
                si.RemoveApplicationRequest(applicationID=application.application_id, partitionName=PARTITION)
            )

    # ------------------------------------------------------------------------------------- from the scheduler

    def accepted(self, identity: str) -> None:
        """Take that an application is accepted: its gang is reserved first, if it has one."""
        application = self._by_id.get(identity)
        if application is None or application.phase is not ApplicationPhase.SUBMITTED:
            return
        if application.groups and not any(_runs(task) for task in application.members):
            application.phase = ApplicationPhase.RESERVING
            self._reserve(application)
            for task in application.placeholders:
                self._tasks.ask(task)
            self._look_at_gang(application)
        else:
            self._run(application)

    def rejected(self, identity: str, reason: str) -> None:
        """Take that an application is rejected: its pods fail."""
        application = self._by_id.get(identity)
        if application is not None:
            application.phase, application.reason = ApplicationPhase.REJECTED, reason
            self._fail(application, "ApplicationRejected", reason)

    def changed(self, identity: str, state: str, message: str) -> None:
        """Take that an application is in another state."""
        application = self._by_id.get(identity)
        if application is None:
            return
        match state:
            case "Completed":
                self._completed(application)
            case "Resuming" if application.phase is ApplicationPhase.RESERVING:
                application.phase = ApplicationPhase.RESUMING
                self._gang_event(application, "GangSchedulingFailed", message or "the gang has timed out")
                if not application.placeholders:
                    self._run(application)
            case "Failing" | "Failed" if application.phase is not ApplicationPhase.REJECTED:
                self._failing(application, message)

    def _completed(self, application: PodApplication) -> None:
        """Forget an application; pods of it that came meanwhile make it anew."""
        if application.tasks:
            application.phase = ApplicationPhase.RUNNING
            self.submit_again(application)
        else:
            self._by_id.pop(application.application_id, None)

    def _failing(self, application: PodApplication, message: str) -> None:
        if application.phase is ApplicationPhase.FAILING:
            return
        application.phase, application.reason = ApplicationPhase.FAILING, message
        self._end_placeholders(application)
        if _GANG_TIMEOUT in message:
            self._fail(application, _GANG_TIMEOUT, _GANG_TIMEOUT_TEXT)
        else:
            self._reporter.event(
                application.first, "ApplicationFailed", "Scheduling", message, is_warning=True
            )
        if not application.tasks:
            self._drop(application)

    def _fail(self, application: PodApplication, reason: str, message: str) -> None:
        """Write that the pods have failed that are on no node."""
        for task in list(application.members):
            if not _runs(task):
                self._reporter.event(task.pod, "TaskFailed", "Scheduling", message, is_warning=True)
                self._actions.fail(task, reason, message)

    # ------------------------------------------------------------------------------------- gangs

    def _reserve(self, application: PodApplication) -> None:
        """Create the placeholders that a gang lacks."""
        existing = [task.pod for task in application.placeholders]
        for group, count in missing_placeholders(application.groups, existing):
            for _ in range(count):
                manifest = placeholder_manifest(application.first, group, self._settings, self._random)
                if self._settings.placeholder_pods:
                    self._actions.create_placeholder(application.application_id, manifest)
                else:
                    self._add_virtual(application, group, manifest)

    def _add_virtual(self, application: PodApplication, group: DeclaredTaskGroup, manifest: object) -> None:
        pod = msgspec.convert(manifest, Pod)
        key = f"{application.first.metadata.uid}-{pod.metadata.name}"
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=key))
        task = Task(key, application, pod, group=group.name, is_placeholder=True, is_virtual=True)
        application.tasks[key] = task
        self._tasks.add_virtual(task)

    def placeholder_refused(self, identity: str, reason: str) -> None:
        """Take that a placeholder cannot be created: the application runs without a gang."""
        application = self._by_id.get(identity)
        if application is None or application.phase is not ApplicationPhase.RESERVING:
            return
        self._gang_event(application, "PlaceholderCreateFailed", reason)
        application.phase = ApplicationPhase.RESUMING
        self._end_placeholders(application)
        if not application.placeholders:
            self._run(application)

    def _look_at_gang(self, application: PodApplication) -> None:
        """Let the members of a gang be asked for once all of its placeholders are on nodes."""
        placed = Counter(task.group for task in application.placeholders if task.state is TaskState.BOUND)
        if all(placed[group.name] >= group.min_member for group in application.groups):
            self._gang_event(application, "GangReservationComplete", "all placeholders are on nodes")
            self._run(application)

    def _run(self, application: PodApplication) -> None:
        application.phase = ApplicationPhase.RUNNING
        for task in list(application.tasks.values()):
            self._tasks.ask(task)

    def _end_placeholders(self, application: PodApplication) -> None:
        """End the placeholders that nothing will replace any more."""
        for task in application.placeholders:
            if task.ending is None:
                self._tasks.end(task)

    def _gang_event(self, application: PodApplication, action: str, note: str) -> None:
        is_warning = action != "GangReservationComplete"
        self._reporter.event(application.first, "GangScheduling", action, note, is_warning=is_warning)


_LIVE: Final = frozenset({ApplicationPhase.RESERVING, ApplicationPhase.RUNNING, ApplicationPhase.RESUMING})


def _runs(task: Task) -> bool:
    """Return whether a task has a node already."""
    return task.state in {TaskState.BINDING, TaskState.BOUND, TaskState.ORPHAN}
