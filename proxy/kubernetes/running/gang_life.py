"""The life of a gang: its placeholders are created and asked for, then its members."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol, final

import msgspec

from ...si import constants
from ...si import si_pb2 as si
from ..mapping.applications import placeholder_manifest
from ..mapping.gangs import DeclaredTaskGroup, missing_placeholders, scheduling_policy
from ..mapping.pod_sizes import pod_resource
from ..mapping.settings import creation_seconds
from ..objects import Pod
from .shared_parts import SharedParts
from .tasks import PodApplication, PodApplicationPhase, PodTask, TaskState

GANG_TIMEOUT: Final = "ResourceReservationTimeout"
GANG_TIMEOUT_TEXT: Final = "Scheduling has timed out due to insufficient resources"
_TIMEOUT_SECONDS: Final = 15 * 60
"""How long the scheduler waits for a gang without a timeout."""
_AGAIN_SECONDS: Final = 5.0
"""After how long placeholders are recreated that have ended before the gang was complete."""
_SEEN_SECONDS: Final = 60.0
"""After how long a created placeholder counts as lost that the watch has not shown."""
_WAITS: Final = "the pod waits until the placeholders of its gang are on nodes"


class GangTasks(Protocol):
    """The operations of the life of tasks that a gang needs."""

    def ask(self, task: PodTask) -> None:
        """Ask for a task, if it is possible now."""
        ...

    def add_virtual(self, task: PodTask) -> None:
        """Add a placeholder that has no pod in the cluster."""
        ...

    def end(self, task: PodTask) -> None:
        """End a task, and its pod if it has one."""
        ...


class GangApplications(Protocol):
    """The operations of the life of its application that a gang needs."""

    def run(self, application: PodApplication) -> None:
        """Ask for the members."""
        ...

    def begin_anew(self, application: PodApplication) -> None:
        """Make the scheduler forget its counts of an application, and submit it again."""
        ...

    def end_without(self, application: PodApplication, reason: str, message: str) -> None:
        """Make the pods of an application fail."""
        ...


@final
class GangLife:
    """The gangs of applications; used by one thread."""

    def __init__(self, parts: SharedParts, tasks: GangTasks, applications: GangApplications) -> None:
        self._settings = parts.settings
        self._loop = parts.loop
        self._actions = parts.actions
        self._reporter = parts.reporter
        self._tasks = tasks
        self._applications = applications
        self._random = random.Random()  # noqa: S311 - ends of names

    # ------------------------------------------------------------------------------------- reserving

    def begin(self, application: PodApplication) -> None:
        """Reserve the missing room of an application that was accepted."""
        if not application.has_members:
            application.phase = PodApplicationPhase.RUNNING
            self.end_placeholders(application)
            return
        if not application.placeholders and self._is_too_late(application):
            self._give_up_late(application)
            return
        application.phase = PodApplicationPhase.RESERVING
        for task in application.placeholders:
            self._end_if_surplus(task)
        self._reserve(application)
        for task in application.placeholders:
            self._tasks.ask(task)
        for task in application.members:
            self._reporter.condition(task.pod, "SchedulingSkipped", _WAITS)
        self._look(application)

    def _is_too_late(self, application: PodApplication) -> bool:
        """Return whether placeholders would time out at once, since the gang began too long ago."""
        first = application.first
        if not first.metadata.creation_timestamp:
            return False
        seconds = scheduling_policy(first).placeholder_timeout_seconds or _TIMEOUT_SECONDS
        begun = max(creation_seconds(first.metadata.creation_timestamp), application.tried_again_at)
        return self._loop.unix_seconds() - begun > seconds

    def _give_up_late(self, application: PodApplication) -> None:
        if scheduling_policy(application.first).style == "Hard":
            self._applications.end_without(application, GANG_TIMEOUT, GANG_TIMEOUT_TEXT)
            return
        self._event(application, "GangSchedulingFailed", "the time for its placeholders is over already")
        application.has_given_up_gang = True
        self._applications.run(application)

    def _reserve(self, application: PodApplication) -> None:
        """Create the missing placeholders of a gang; they belong to an existing pod."""
        owner = _owner(application)
        if application.phase is not PodApplicationPhase.RESERVING or owner is None:
            return
        existing = [task.pod for task in application.placeholders if task.ending is None]
        creating = Counter(application.creating.values())
        for group, count in missing_placeholders(application.groups, existing):
            for _ in range(count - creating[group.name]):
                manifest = placeholder_manifest(owner, group, self._settings, self._random)
                if self._settings.placeholder_pods:
                    self._create(application, group, manifest)
                else:
                    self._add_virtual(application, group, manifest)

    def _create(
        self, application: PodApplication, group: DeclaredTaskGroup, manifest: dict[str, object]
    ) -> None:
        name = msgspec.convert(manifest, Pod).metadata.name
        application.creating[name] = group.name
        self._actions.create_placeholder(application, name, manifest)

    def _add_virtual(self, application: PodApplication, group: DeclaredTaskGroup, manifest: object) -> None:
        pod = msgspec.convert(manifest, Pod)
        key = f"{application.first.metadata.uid}-{pod.metadata.name}"
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=key))
        task = PodTask(key, application, pod, group=group.name, is_placeholder=True, is_virtual=True)
        application.tasks[key] = task
        self._tasks.add_virtual(task)

    def placeholder_created(self, application: PodApplication, name: str) -> None:
        """Handle the creation of a placeholder; the watch will show it."""
        self._loop.later(_SEEN_SECONDS, self._miss, application, name)

    def _miss(self, application: PodApplication, name: str) -> None:
        if application.creating.pop(name, None) is not None:
            self._reserve(application)

    def placeholder_refused(self, application: PodApplication, name: str, reason: str) -> None:
        """Handle a placeholder that cannot be created: the application runs without a gang."""
        application.creating.pop(name, None)
        if application.phase is PodApplicationPhase.RESERVING:
            self._resume(application, "PlaceholderCreateFailed", reason)

    def joined(self, task: PodTask) -> None:
        """Handle a new pod of an application: a placeholder, or a member of a gang."""
        application = task.application
        if task.is_placeholder:
            application.creating.pop(task.pod.metadata.name, None)
            if application.phase is PodApplicationPhase.RESERVING:
                self._end_if_surplus(task)
        elif application.groups:
            if application.phase is PodApplicationPhase.RESERVING and not task.has_node:
                self._reporter.condition(task.pod, "SchedulingSkipped", _WAITS)
            self._compare(task)

    def _end_if_surplus(self, task: PodTask) -> None:
        """End a placeholder that its task group does not need; one on a node stays."""
        application = task.application
        if task.has_node or task.ending is not None:
            return
        wanted = {group.name: group.min_member for group in application.groups}
        there = sum(each.group == task.group and each.ending is None for each in application.placeholders)
        if there > wanted.get(task.group, 0):
            self._tasks.end(task)

    def _compare(self, task: PodTask) -> None:
        """Warn people if a member has another size than its placeholders."""
        group = next((each for each in task.application.groups if each.name == task.group), None)
        if group is None:
            if task.group:
                self._tell(task, f"the application has no task group {task.group!r}")
            return
        own, declared = pod_resource(task.pod), group.resource
        names = sorted(name for name in {*own, *declared} if own.get(name, 0) != declared.get(name, 0))
        if names:
            parts = (f"{name} {_text(name, own)} and not {_text(name, declared)}" for name in names)
            self._tell(task, f"the pod needs other resources than its task group says: {', '.join(parts)}")

    def _tell(self, task: PodTask, note: str) -> None:
        self._reporter.event(task.pod, "GangScheduling", "TaskGroupMatch", note, is_warning=True)

    # ------------------------------------------------------------------------------------- progress

    def task_bound(self, task: PodTask) -> None:
        """Handle a task that is on a node: with the last placeholder the gang is complete."""
        if task.is_placeholder and task.application.phase is PodApplicationPhase.RESERVING:
            self._look(task.application)

    def _look(self, application: PodApplication) -> None:
        """Ask for the members of a gang if all of its placeholders are on nodes."""
        placed = Counter(task.group for task in application.placeholders if task.state is TaskState.BOUND)
        if all(placed[group.name] >= group.min_member for group in application.groups):
            self._event(application, "GangReservationComplete", "all placeholders are on nodes")
            self._applications.run(application)

    def placeholder_ended(self, task: PodTask) -> None:
        """Handle the end of a placeholder: the last one of a gang that has timed out, or a premature end."""
        application = task.application
        if application.phase is PodApplicationPhase.RESUMING and not application.placeholders:
            self._run_without(application)
        elif application.phase is PodApplicationPhase.RESERVING and application.has_members:
            self._loop.later(_AGAIN_SECONDS, self._reserve_again, application)
        elif application.phase is PodApplicationPhase.RUNNING and not application.placeholders:
            application.has_given_up_gang = True
            if application.is_miscounted and application.has_members:
                self._applications.begin_anew(application)

    def _reserve_again(self, application: PodApplication) -> None:
        if application.phase is not PodApplicationPhase.RESERVING or not application.has_members:
            return
        if application.is_miscounted:
            self._applications.begin_anew(application)
        else:
            self._reserve(application)

    def timed_out(self, application: PodApplication, message: str) -> None:
        """Handle a gang that was not complete in time, and is to run without placeholders."""
        if application.phase is PodApplicationPhase.RESERVING:
            self._resume(application, "GangSchedulingFailed", message or "the gang has timed out")

    def _resume(self, application: PodApplication, action: str, note: str) -> None:
        """End the placeholders; afterwards the members are ordinary pods."""
        self._event(application, action, note)
        application.phase = PodApplicationPhase.RESUMING
        application.has_given_up_gang = True
        if application.placeholders:
            self.end_placeholders(application)
        else:
            self._run_without(application)

    def _run_without(self, application: PodApplication) -> None:
        if application.is_miscounted:
            self._applications.begin_anew(application)
        else:
            self._applications.run(application)

    def end_placeholders(self, application: PodApplication) -> None:
        """End the placeholders that nothing will replace."""
        ending = [task for task in application.placeholders if task.ending is None]
        for task in ending:
            task.ending = si.STOPPED_BY_RM
        for task in ending:
            self._tasks.end(task)

    def _event(self, application: PodApplication, action: str, note: str) -> None:
        is_warning = action != "GangReservationComplete"
        self._reporter.event(application.first, "GangScheduling", action, note, is_warning=is_warning)


def _text(name: str, sizes: Mapping[str, int]) -> str:
    return f"{sizes.get(name, 0)}{'m' if name == constants.CPU else ''}"


def _owner(application: PodApplication) -> Pod | None:
    """Return the owner of placeholders: the first pod as long as it exists."""
    first = application.tasks.get(application.first.metadata.uid)
    members = application.members
    if first is not None and not first.is_placeholder:
        return first.pod
    return members[0].pod if members else None
