"""The effects of events on an application: it is submitted, asks for its pods, waits, and ends.

Each is called after the change of the phase, with a reason.
"""

from __future__ import annotations

from typing import Final

from ....model.requests.submission_terms import GANG_SIZE_TAG
from ....model.values.dependencies import ApplicationOutcome, Terms, terms_of
from ...si import si_pb2 as si
from ..mapping.applications import (
    add_application_request,
    application_warnings,
    topology_tags,
    waiting_tags,
)
from ..mapping.gangs import RefusedTaskGroups, task_groups
from ..mapping.pod_groups import PodGroupName, gang_of, gang_size, missing_group
from ..mapping.settings import PARTITION
from ..objects import Namespace, Pod
from .reporting import SKIPPED
from .shared_parts import SharedParts
from .task_effects import GANG_TIMEOUT, ask
from .tasks import (
    LastRejection,
    PhaseEvent,
    PodApplication,
    PodApplicationPhase,
    PodTask,
    TaskEvent,
    TaskState,
)

GANG_TIMEOUT_TEXT: Final = "Scheduling has timed out due to insufficient resources"
_REJECTED_PAUSE_SECONDS: Final = 10.0
_REJECTED_PAUSE_MAX_SECONDS: Final = 300.0
_NAMESPACE_SECONDS: Final = 5.0
"""How long an application waits for its namespace to be known; then it is submitted without quotas."""
_LATER_SECONDS: Final = 5.0
"""After how long an application is submitted again whose id is still in use."""
_EMPTY_SECONDS: Final = 90.0
"""After how long an application without pods is removed that the scheduler has not completed itself."""
_FAILED_MAX: Final = 10_000
"""How many of the last applications that failed are known."""

# ------------------------------------------------------------------------------------------------- submitting


def set_first(parts: SharedParts, application: PodApplication, pod: Pod) -> None:
    """Make a pod the first of an application; it decides the properties of the application."""
    groups = task_groups(pod, parts.settings)
    application.first = pod
    application.groups = () if isinstance(groups, RefusedTaskGroups) else groups


def submit_when_possible(parts: SharedParts, application: PodApplication) -> None:
    """Submit a new application when its namespace and its group are known, and it is not rejected."""
    if why_groupless(parts, application):
        return
    pause = _pause(parts, application)
    if not pause and parts.has_begun and _namespace(parts, application.first) is None:
        pause = _NAMESPACE_SECONDS
    if pause:
        parts.loop.later(pause, parts.application_event, application, PhaseEvent.SUBMIT)
    else:
        parts.application_event(application, PhaseEvent.SUBMIT)


def namespace_changed(parts: SharedParts, application: PodApplication) -> None:
    """Submit an application that waits for its namespace, or update the quotas of its queue."""
    if application.is_live and application.tasks:
        parts.requests.add(_request_of(parts, application))
    elif not _pause(parts, application) and not why_groupless(parts, application):
        parts.application_event(application, PhaseEvent.SUBMIT)


def why_groupless(parts: SharedParts, application: PodApplication) -> str:
    """Return why an application waits for the object of its group, empty if it does not."""
    if application.phase is not PodApplicationPhase.WAITING or application.has_assigned():
        return ""
    return missing_group(gang_group(parts, application), parts.cache.groups)


def group_changed(parts: SharedParts, application: PodApplication) -> None:
    """Submit an application that has waited for the object of its group."""
    if application.phase is PodApplicationPhase.WAITING and gang_group(parts, application) is not None:
        submit_when_possible(parts, application)


def gang_group(parts: SharedParts, application: PodApplication) -> PodGroupName | None:
    """Return the object whose pods an application contains, if they may start together."""
    return gang_of(application.first, application.application_id, parts.settings)


def submit(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Submit an application.

    It is not forced, also if pods of it run: a pod that names its node must not admit the others.
    """
    _warn(parts, application.first)
    for name in _waits_for_outcome(application.first):
        if name in parts.failed and name not in parts.applications:
            parts.requests.add(_removal(name, ApplicationOutcome.FAILED.value))
    parts.requests.add(_request_of(parts, application))


def _waits_for_outcome(pod: Pod) -> frozenset[str]:
    """Return the applications that must end in a certain way before that of a pod starts."""
    terms = terms_of(waiting_tags(pod))
    names = terms.names.items() if isinstance(terms, Terms) else ()
    return frozenset(name for name, outcome in names if outcome is not None)


def _is_awaited(parts: SharedParts, application_id: str) -> bool:
    return any(application_id in _waits_for_outcome(each.first) for each in parts.applications.values())


def _request_of(parts: SharedParts, application: PodApplication) -> si.AddApplicationRequest:
    first, identity = application.first, application.application_id
    request = add_application_request(first, _namespace(parts, first), parts.settings, identity)
    size = gang_size(gang_group(parts, application), parts.cache.groups)
    # Pods of a gang that has begun do not wait for each other.
    if size and not application.has_assigned():
        request.tags.update({**topology_tags(application.first), GANG_SIZE_TAG: str(size)})
    return request


def _warn(parts: SharedParts, pod: Pod) -> None:
    """Warn people about ignored parts of the first pod of an application."""
    warnings = application_warnings(pod, _namespace(parts, pod), parts.settings)
    for action, sentences in warnings.items():
        reason = "GangScheduling" if action == "TaskGroupsError" else "Scheduling"
        for sentence in sentences:
            parts.reporter.event(pod, reason, action, sentence, is_warning=True)


def _namespace(parts: SharedParts, pod: Pod) -> Namespace | None:
    return parts.cache.namespaces.get(pod.metadata.namespace)


def send_tasks(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Send the tasks again that the scheduler has lost with the application."""
    for task in list(application.tasks.values()):
        parts.task_event(task, TaskEvent.LOST)


def ask_for_tasks(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Ask for the pods of an application; placeholders without a node are no longer needed."""
    for task in list(application.tasks.values()):
        ask(parts, task)


def join(parts: SharedParts, task: PodTask) -> None:
    """Handle a new task: it waits if its application is rejected, and starts a failed one again."""
    application = task.application
    groupless = why_groupless(parts, application)
    if groupless:
        parts.reporter.skipped(task.pod, groupless)
    if application.phase is PodApplicationPhase.FAILED:
        begin_failed(parts, application)
    is_unknown = application.phase in {PodApplicationPhase.WAITING, PodApplicationPhase.REJECTED}
    if is_unknown and _pause(parts, application):
        hold(parts, task, parts.rejections[application.application_id].reason)
    own, first = task.pod.metadata.namespace, application.first.metadata.namespace
    if own != first:  # the first pod decides queue and quotas
        note = f"the application has pods in namespace {first!r} as well, whose queue and quotas it has"
        parts.reporter.event(task.pod, "Scheduling", "SharedApplication", note, is_warning=True)


# ------------------------------------------------------------------------------------------------- rejected


def hold_tasks(parts: SharedParts, application: PodApplication, reason: str) -> None:
    """Report on the pods without a node why their application is rejected; the others use room."""
    for task in list(application.tasks.values()):
        if task.state is TaskState.BOUND:
            parts.task_event(task, TaskEvent.REJECTED, reason)
        elif not (task.has_node or task.is_placeholder):
            hold(parts, task, reason)


def hold(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Report on a pod why its application is rejected; it waits, since a new pod would be rejected."""
    parts.reporter.condition(task.pod, SKIPPED, reason)
    parts.reporter.event(task.pod, "ApplicationRejected", "Scheduling", reason, is_warning=True)


def retry_later(parts: SharedParts, application: PodApplication, reason: str) -> None:
    """Submit a rejected application again after a pause that doubles each time, also for later pods of it."""
    identity, earlier = application.application_id, parts.rejections.get(application.application_id)
    times = 1 if earlier is None else earlier.times + 1
    pause = min(_REJECTED_PAUSE_SECONDS * 2.0 ** (times - 1), _REJECTED_PAUSE_MAX_SECONDS)
    application.reason = reason
    parts.rejections[identity] = LastRejection(times, parts.loop.now() + pause, reason)
    parts.loop.later(2 * _REJECTED_PAUSE_MAX_SECONDS, _forget_rejection, parts, identity, times)
    parts.loop.later(pause, _retry, parts, application, pause)


def _forget_rejection(parts: SharedParts, identity: str, times: int) -> None:
    if identity in parts.rejections and parts.rejections[identity].times == times:
        del parts.rejections[identity]


def _pause(parts: SharedParts, application: PodApplication) -> float:
    """Return how many more seconds an application waits after a rejection, 0 if it does not."""
    rejection = parts.rejections.get(application.application_id)
    return 0.0 if rejection is None else max(0.0, rejection.until - parts.loop.now())


def _retry(parts: SharedParts, application: PodApplication, pause: float) -> None:
    """Submit a rejected application again, unless all of its pods have failed."""
    if application.phase is not PodApplicationPhase.REJECTED:
        return
    if any(task.state is not TaskState.FAILED for task in application.members):
        application.tried_again_at = parts.loop.unix_seconds()
        parts.application_event(application, PhaseEvent.RETRY)
    else:
        parts.loop.later(pause, _retry, parts, application, pause)


def resubmit_later(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Submit an application again whose request could not be made."""
    parts.loop.later(_LATER_SECONDS, parts.application_event, application, PhaseEvent.RESUBMIT)


# ------------------------------------------------------------------------------------------------- failed


def report_failing(parts: SharedParts, application: PodApplication, message: str) -> None:
    """Make the waiting pods of a gang fail that has timed out; report another failure on the first pod."""
    application.reason = message
    if GANG_TIMEOUT in message:
        fail_tasks(parts, application, GANG_TIMEOUT_TEXT)
    else:
        note = message or "the application has failed"
        parts.reporter.event(application.first, "ApplicationFailed", "Scheduling", note, is_warning=True)


def fail_tasks(parts: SharedParts, application: PodApplication, message: str) -> None:
    """Mark the pods without a node as failed; pods that a controller recreates wait instead."""
    for task in list(application.members):
        if task.is_made_again and not task.has_node:
            hold(parts, task, message)
        elif not task.has_node:
            parts.task_event(task, TaskEvent.FAIL, message)


def begin_failed(parts: SharedParts, application: PodApplication, _: str = "") -> None:
    """Start a failed application again, with the first remaining pod."""
    left = [task for task in application.tasks.values() if _is_left(task)]
    if left:
        set_first(parts, application, left[0].pod)
        application.has_given_up_gang = False
        parts.application_event(application, PhaseEvent.LOST)


def _is_left(task: PodTask) -> bool:
    """Return whether a task continues after the failure of its application."""
    return task.state is not TaskState.FAILED and task.ending is None and not task.is_placeholder


# ------------------------------------------------------------------------------------------------- the end


def tasks_ended(parts: SharedParts, application: PodApplication) -> None:
    """Handle the end of the last task.

    The scheduler completes an application itself, after a time in which more pods may arrive. It would
    keep an application without any pod for ever, and a gang starts again with the next pod. An application
    that has failed, and whose outcome others wait for, is removed at once: the scheduler would complete it.
    """
    application.emptied += 1
    if application.has_failed and _is_awaited(parts, application.application_id):
        parts.application_event(application, PhaseEvent.DROP)
    elif application.phase is PodApplicationPhase.RUNNING and application.has_asked:
        parts.loop.later(_EMPTY_SECONDS, _drop_if_empty, parts, application, application.emptied)
    else:
        parts.application_event(application, PhaseEvent.DROP)


def _drop_if_empty(parts: SharedParts, application: PodApplication, emptied: int) -> None:
    if not application.tasks and application.emptied == emptied:
        parts.application_event(application, PhaseEvent.DROP)


def forget(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Forget an application without tasks, but not that it has failed."""
    name, failed = application.application_id, parts.failed
    del parts.applications[name]
    failed.pop(name, None)
    if application.has_failed:
        failed[name] = None
        if len(failed) > _FAILED_MAX:
            del failed[next(iter(failed))]


def remove(parts: SharedParts, application: PodApplication, _: str) -> None:
    """Make the scheduler forget an application."""
    outcome = ApplicationOutcome.FAILED.value if application.has_failed else ""
    parts.requests.add(_removal(application.application_id, outcome))


def _removal(name: str, outcome: str) -> si.RemoveApplicationRequest:
    return si.RemoveApplicationRequest(applicationID=name, partitionName=PARTITION, outcome=outcome)
