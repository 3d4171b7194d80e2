"""The effects of events on a gang: its placeholders are created and asked for, then its members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from ...si import constants
from ...si import si_pb2 as si
from ..mapping.applications import placeholder_manifest
from ..mapping.gangs import DeclaredTaskGroup, missing_placeholders, scheduling_policy
from ..mapping.pod_sizes import pod_resource
from ..mapping.settings import creation_seconds
from ..objects import Pod
from .application_effects import GANG_TIMEOUT_TEXT, tasks_ended
from .shared_parts import SharedParts
from .task_effects import ask, end, end_pod
from .tasks import PhaseEvent, PodApplication, PodApplicationPhase, PodTask, TaskState

_TIMEOUT_SECONDS: Final = 15 * 60
"""How long the scheduler waits for a gang without a timeout."""
_AGAIN_SECONDS: Final = 5.0
"""After how long placeholders are recreated that have ended before the gang was complete."""
_WAITS: Final = "the pod waits until the placeholders of its gang are on nodes"

# ------------------------------------------------------------------------------------------------- reserving


def accept(parts: SharedParts, application: PodApplication) -> None:
    """Begin with an accepted application: its gang is reserved first, if it has one."""
    detail = ""
    has_members_on_nodes = any(task.has_node for task in application.members)
    if not application.groups or application.has_given_up_gang or has_members_on_nodes:
        event = PhaseEvent.RUN
    elif not application.has_members:
        event = PhaseEvent.RUN_EMPTY
    elif application.placeholders or not _is_too_late(parts, application):
        event = PhaseEvent.RESERVE
    elif scheduling_policy(application.first).style == "Hard":
        event, detail = PhaseEvent.COME_TOO_LATE, GANG_TIMEOUT_TEXT
    else:
        event, detail = PhaseEvent.COME_LATE, "the time for its placeholders is over already"
    parts.application_event(application, event, detail)


def _is_too_late(parts: SharedParts, application: PodApplication) -> bool:
    """Return whether placeholders would time out at once, since the gang began too long ago."""
    first = application.first
    if not first.metadata.creation_timestamp:
        return False
    seconds = scheduling_policy(first).placeholder_timeout_seconds or _TIMEOUT_SECONDS
    begun = max(creation_seconds(first.metadata.creation_timestamp), application.tried_again_at)
    return parts.loop.unix_seconds() - begun > seconds


def reserve(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Create the missing placeholders of a gang, and ask for all; the members wait."""
    for task in application.placeholders:
        _end_if_surplus(parts, task)
    create_missing(parts, application)
    for task in application.placeholders:
        ask(parts, task)
    for task in application.members:
        parts.reporter.skipped(task.pod, _WAITS)
    _look(parts, application)


def create_missing(parts: SharedParts, application: PodApplication, _: str = "") -> None:
    """Create the missing placeholders of a gang; they belong to an existing pod."""
    owner = _owner(application)
    if owner is None:
        return
    existing = [task.pod for task in application.placeholders if task.ending is None]
    creating = Counter(application.creating.values())
    for group, count in missing_placeholders(application.groups, existing):
        for _number in range(count - creating[group.name]):
            manifest = placeholder_manifest(owner, group, parts.settings, parts.random)
            if parts.settings.placeholder_pods:
                _create(parts, application, group, manifest)
            else:
                _add_virtual(parts, application, group, manifest)


def _owner(application: PodApplication) -> Pod | None:
    """Return the owner of placeholders: the first pod as long as it exists."""
    first = application.tasks.get(application.first.metadata.uid)
    members = application.members
    if first is not None and not first.is_placeholder:
        return first.pod
    return members[0].pod if members else None


def _create(
    parts: SharedParts, application: PodApplication, group: DeclaredTaskGroup, manifest: dict[str, object]
) -> None:
    name = msgspec.convert(manifest, Pod).metadata.name
    application.creating[name] = group.name
    parts.actions.create_placeholder(application, name, manifest)


def _add_virtual(
    parts: SharedParts, application: PodApplication, group: DeclaredTaskGroup, manifest: object
) -> None:
    """Add a placeholder that has no pod in the cluster, and ask for it."""
    pod = msgspec.convert(manifest, Pod)
    key = f"{application.first.metadata.uid}-{pod.metadata.name}"
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=key))
    task = PodTask(key, application, pod, group=group.name, is_placeholder=True, is_virtual=True)
    task.since = parts.loop.now()
    application.tasks[key] = parts.tasks[key] = task
    parts.cache.put_pod(pod)
    ask(parts, task)


def join(parts: SharedParts, task: PodTask) -> None:
    """Handle a new pod of an application: a placeholder, or a member of a gang."""
    application = task.application
    if task.is_placeholder:
        application.creating.pop(task.pod.metadata.name, None)
        if application.phase is PodApplicationPhase.RESERVING:
            _end_if_surplus(parts, task)
    elif application.groups:
        if application.phase is PodApplicationPhase.RESERVING and not task.has_node:
            parts.reporter.skipped(task.pod, _WAITS)
        _compare(parts, task)


def _end_if_surplus(parts: SharedParts, task: PodTask) -> None:
    """End a placeholder that its task group does not need; one on a node stays."""
    application = task.application
    if task.has_node or task.ending is not None:
        return
    wanted = {group.name: group.min_member for group in application.groups}
    there = sum(each.group == task.group and each.ending is None for each in application.placeholders)
    if there > wanted.get(task.group, 0):
        end(parts, task, si.STOPPED_BY_RM)


def _compare(parts: SharedParts, task: PodTask) -> None:
    """Warn people if a member has another size than its placeholders."""
    group = next((each for each in task.application.groups if each.name == task.group), None)
    if group is None:
        if task.group:
            _tell(parts, task, f"the application has no task group {task.group!r}")
        return
    own, declared = pod_resource(task.pod), group.resource
    names = sorted(name for name in {*own, *declared} if own.get(name, 0) != declared.get(name, 0))
    if names:
        sizes = (f"{name} {_text(name, own)} and not {_text(name, declared)}" for name in names)
        _tell(parts, task, f"the pod needs other resources than its task group says: {', '.join(sizes)}")


def _tell(parts: SharedParts, task: PodTask, note: str) -> None:
    parts.reporter.event(task.pod, "GangScheduling", "TaskGroupMatch", note, is_warning=True)


def _text(name: str, sizes: Mapping[str, int]) -> str:
    return f"{sizes.get(name, 0)}{'m' if name == constants.CPU else ''}"


# ------------------------------------------------------------------------------------------------- progress


def count_reserved(parts: SharedParts, task: PodTask, _: str) -> None:
    """Handle a task that is on a node: with the last placeholder the gang is complete."""
    if task.is_placeholder and task.application.phase is PodApplicationPhase.RESERVING:
        _look(parts, task.application)


def _look(parts: SharedParts, application: PodApplication) -> None:
    on_nodes = {TaskState.BOUND, TaskState.RESERVED}
    placed = Counter(task.group for task in application.placeholders if task.state in on_nodes)
    if all(placed[group.name] >= group.min_member for group in application.groups):
        parts.application_event(application, PhaseEvent.COMPLETE)


def leave_application(parts: SharedParts, task: PodTask, _: str) -> None:
    """Handle the end of a task: the last member ends the placeholders, the last task the application."""
    application = task.application
    application.tasks.pop(task.key, None)
    if task.is_placeholder:
        _placeholder_ended(parts, application)
    if not application.has_members:
        end_placeholders(parts, application)
    if not application.tasks:
        tasks_ended(parts, application)


def _placeholder_ended(parts: SharedParts, application: PodApplication) -> None:
    """Handle the last placeholder of a gang that has timed out, or a premature end."""
    match application.phase:
        case PodApplicationPhase.RESERVING if application.has_members:
            parts.loop.later(_AGAIN_SECONDS, _reserve_again, parts, application)
        case PodApplicationPhase.RESUMING:
            run_without(parts, application)
        case PodApplicationPhase.RUNNING if not application.placeholders:
            application.has_given_up_gang = True
            if application.has_members:
                _go_on(parts, application)


def _reserve_again(parts: SharedParts, application: PodApplication) -> None:
    if application.phase is PodApplicationPhase.RESERVING and application.has_members:
        _go_on(parts, application)


def run_without(parts: SharedParts, application: PodApplication, _: str = "") -> None:
    """Ask for the members of a gang that has given up, when its last placeholder has ended."""
    if application.phase is PodApplicationPhase.RESUMING and not application.placeholders:
        _go_on(parts, application)


def _go_on(parts: SharedParts, application: PodApplication) -> None:
    """Continue after the end of placeholders, with new counts of the scheduler if it counts too many."""
    is_miscounted, application.is_miscounted = application.is_miscounted, False
    event = PhaseEvent.BEGIN_ANEW if is_miscounted else PhaseEvent.PLACEHOLDERS_ENDED
    parts.application_event(application, event)


def end_placeholders(parts: SharedParts, application: PodApplication, _: str = "") -> None:
    """End the placeholders that nothing will replace."""
    ending = [task for task in application.placeholders if task.ending is None]
    for task in ending:
        task.ending = si.STOPPED_BY_RM
    for task in ending:
        end_pod(parts, task)


# ------------------------------------------------------------------------------------------------- reports


def report_complete(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Report a gang whose placeholders are all on nodes."""
    note = "all placeholders are on nodes"
    parts.reporter.event(application.first, "GangScheduling", "GangReservationComplete", note)


def give_up(parts: SharedParts, application: PodApplication, message: str) -> None:
    """Report a gang that was not complete in time, and is to run without placeholders."""
    _give_up(parts, application, "GangSchedulingFailed", message or "the gang has timed out")


def give_up_refused(parts: SharedParts, application: PodApplication, reason: str) -> None:
    """Report a placeholder that cannot be created: the gang is to run without."""
    _give_up(parts, application, "PlaceholderCreateFailed", reason)


def _give_up(parts: SharedParts, application: PodApplication, action: str, note: str) -> None:
    parts.reporter.event(application.first, "GangScheduling", action, note, is_warning=True)
    application.has_given_up_gang = True
