"""The effects of events on a task: requests to the scheduler, actions on its pod, and reports to people.

Each is called after the change of the state, with a node or a reason.
"""

from __future__ import annotations

from typing import Final

from ....model.resources.quantities import QuantityError
from ...si import si_pb2 as si
from ..mapping.applications import refused_user
from ..mapping.asks import ask as ask_message
from ..mapping.asks import foreign_allocation, foreign_release
from ..mapping.asks import release as release_message
from ..mapping.settings import KubernetesSettings
from ..objects import Pod
from ..predicates.cluster_view import anti_affinity_terms
from ..predicates.verdicts import predicate_class
from ..predicates.volume_filters import refused_on_every_node
from .cache import ClusterCache
from .pod_actions import why_not_bind
from .reporting import SKIPPED
from .shared_parts import SharedParts
from .tasks import PhaseEvent, PodApplicationPhase, PodTask, TaskEvent, TaskState

GANG_TIMEOUT: Final = "ResourceReservationTimeout"
_REJECTED_PAUSE_SECONDS: Final = 10
_REJECTED_PAUSE_MAX_SECONDS: Final = 300
_BINDS_IN_A_ROW: Final = 3
"""After this many consecutive failures a pod waits before it is asked for again."""
_NO_PLACEHOLDERS: Final = frozenset(PodApplicationPhase) - {
    PodApplicationPhase.WAITING,
    PodApplicationPhase.SUBMITTED,
    PodApplicationPhase.RESERVING,
}

# ------------------------------------------------------------------------------------------------- asking


def ask(parts: SharedParts, task: PodTask, _: str = "") -> None:
    """Ask for a new task, if its application may ask and nothing else blocks it."""
    if task.state is not TaskState.NEW or task.ending is not None:
        return
    if task.is_placeholder and task.application.phase in _NO_PLACEHOLDERS:
        end(parts, task, si.STOPPED_BY_RM)
    elif task.application.may_ask(task):
        reason = "" if task.is_virtual else why_blocked(task.pod, parts.cache, parts.settings)
        if not reason:
            parts.blocked.pop(task.key, None)
        parts.task_event(task, TaskEvent.BLOCK if reason else TaskEvent.ASK, reason)


def why_blocked(pod: Pod, cache: ClusterCache, settings: KubernetesSettings) -> str:
    """Return why a pod cannot be asked for yet, empty if it can."""
    return refused_user(pod, settings) or refused_on_every_node(pod, cache) or ""


def hold_back(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Try the task again with each change of claims."""
    parts.blocked[task.key] = task
    _report(parts, task, "FailedScheduling", reason)


def watch(parts: SharedParts, task: PodTask, _: str) -> None:
    """Explain later why the task waits, if it still does."""
    parts.on_asked(task)


def send(parts: SharedParts, task: PodTask, _: str = "") -> None:
    """Send the present state of a task to the scheduler; an unchanged task has no effect."""
    application = task.application
    _classify(parts, task)
    try:
        message = ask_message(
            task.pod,
            application.application_id,
            parts.cache.priority_classes,
            parts.settings,
            originator=task.key == application.first.metadata.uid,
            predicate_class=task.predicate_class,
        )
    except QuantityError as error:
        parts.task_event(task, TaskEvent.REJECTED, str(error))
        return
    message.nodeID = task.node_name if task.state in {TaskState.BOUND, TaskState.RESERVED} else ""
    parts.requests.add(message)
    application.has_asked = True


def _classify(parts: SharedParts, task: PodTask) -> None:
    """Find the class of pods that share answers; a waiting task without one gets separate answers."""
    task.predicate_class = ""
    if task.state is not TaskState.ASKED:
        return
    if not parts.filters.is_kept_away(task.pod):
        task.predicate_class = predicate_class(task.pod)
    if task.predicate_class:
        parts.reconsidering.waiting.pop(task.key, None)
    else:
        parts.reconsidering.waiting[task.key] = task


def neighbour_came(parts: SharedParts, pod: Pod) -> None:
    """Handle a pod that is on a node now: pods that it excludes no longer share answers."""
    if anti_affinity_terms(pod):
        parts.reconsidering.kept_away(lambda: _judge_alone(parts))


def _judge_alone(parts: SharedParts) -> None:
    """Take tasks out of their classes that a pod excludes, since it may not exclude the others."""
    for task in list(parts.tasks.values()):
        waits = task.state is TaskState.ASKED and task.ending is None
        if waits and task.predicate_class and parts.filters.is_kept_away(task.pod):
            parts.task_event(task, TaskEvent.JUDGED_ANEW, "the pod is judged as others now")


# ------------------------------------------------------------------------------------------------- releases


def release(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Take back a request or an allocation."""
    _release(parts, task, si.STOPPED_BY_RM, reason)


def miscount(_: SharedParts, task: PodTask, _reason: str) -> None:
    """Note that the scheduler still counts a placeholder as not placed yet, whose request is taken back."""
    if task.is_placeholder and task.ending in {None, si.STOPPED_BY_RM}:
        task.application.is_miscounted = True


def release_elsewhere(parts: SharedParts, task: PodTask, node_name: str) -> None:
    """Take back the allocation on another node."""
    if task.node_name != node_name:
        release(parts, task, f"the pod is on node {node_name}")


def give_back(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Make the scheduler place the task again from its old place, and avoid the node for a while."""
    _release(parts, task, si.SCHEDULING_FAILED_ON_RM, reason)
    _classify(parts, task)


def confirm_time_out(parts: SharedParts, task: PodTask, _: str) -> None:
    """Confirm the end of a request; the pod has never run, and need not end."""
    _release(parts, task, si.TIMEOUT, "the pod waits again")


def confirm_end(parts: SharedParts, task: PodTask, _: str) -> None:
    """Confirm an end that the scheduler has requested."""
    if task.ending is not None:
        release_ended(parts, task)


def release_ended(parts: SharedParts, task: PodTask, _: str = "") -> None:
    """Take back the request or allocation of a pod that is gone."""
    _release(parts, task, task.ending or si.STOPPED_BY_RM, "task completed")


def _release(parts: SharedParts, task: PodTask, termination: si.TerminationType, message: str) -> None:
    identity = task.application.application_id
    parts.requests.add(release_message(identity, task.key, termination, message))


# ------------------------------------------------------------------------------------------------- nodes


def find(parts: SharedParts, task: PodTask, node_name: str = "") -> None:
    """Handle a pod that is on a node already, bound by us earlier or by others."""
    node_name = node_name or task.node_name
    is_known = node_name in parts.cache.nodes
    parts.task_event(task, TaskEvent.FOUND if is_known else TaskEvent.FOUND_NOWHERE, node_name)


def find_again(parts: SharedParts, task: PodTask, _: str) -> None:
    """Try to count the pod for its application, unless that is rejected: it tries again when accepted."""
    if task.application.phase is not PodApplicationPhase.REJECTED:
        find(parts, task)


def take_node(parts: SharedParts, task: PodTask, node_name: str) -> None:
    """Record the node, on which the task no longer waits."""
    stop_waiting(parts, task)
    task.node_name = node_name


def leave_node(parts: SharedParts, task: PodTask, _: str) -> None:
    """Forget the node, on which the pod does not run."""
    parts.cache.forget_assumption(task.key)
    task.node_name = ""


def stop_waiting(parts: SharedParts, task: PodTask, _: str = "") -> None:
    """Forget why the task has waited."""
    parts.blocked.pop(task.key, None)
    parts.reconsidering.waiting.pop(task.key, None)
    parts.reporter.forget(task.key)
    if task.is_foreign:
        task.is_foreign = False
        parts.requests.add(foreign_release(task.pod))


def submit_application(parts: SharedParts, task: PodTask, _: str) -> None:
    """Submit the application if it waits: one of its pods is on a node."""
    parts.application_event(task.application, PhaseEvent.SUBMIT)


# ------------------------------------------------------------------------------------------------- binding


def place(parts: SharedParts, task: PodTask, node_name: str) -> None:
    """Bind a placed pod as soon as its claims have volumes, unless a filter refuses the node by now."""
    take_node(parts, task, node_name)
    task.rejections = 0
    task.placement += 1
    refusal = why_not_bind(task, parts.cache) or parts.filters.why_refused(
        task.pod, node_name, allocate=not task.is_virtual
    )
    if refusal:
        parts.task_event(task, TaskEvent.PUT_BACK, refusal)
        return
    parts.cache.assume(task.key, node_name)
    neighbour_came(parts, task.pod)
    if task.is_virtual:
        parts.task_event(task, TaskEvent.RESERVED)
    elif not parts.volumes.bind(task):
        parts.actions.bind(task)


def report_bound(parts: SharedParts, task: PodTask, _: str) -> None:
    """Report a pod that is on its node."""
    task.bind_failures = 0
    note = f"Successfully assigned {task.pod.full_name} to node {task.node_name}"
    parts.reporter.event(task.pod, "Scheduled", "Binding", note)


def fail_bind(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Report a failed bind: the task waits again, after a pause if it has failed too often."""
    _fail_bind(parts, task, "PodBindFailure", reason)


def fail_volumes(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Report a claim that gets no volume on the node."""
    _fail_bind(parts, task, "PodVolumesBindFailure", reason)


def _fail_bind(parts: SharedParts, task: PodTask, event_reason: str, reason: str) -> None:
    note = f"the pod could not be assigned to node {task.node_name}: {reason}"
    parts.reporter.event(task.pod, event_reason, "Binding", note, is_warning=True)
    task.bind_failures += 1
    task.rejections = max(0, task.bind_failures - _BINDS_IN_A_ROW)
    is_often = task.bind_failures >= _BINDS_IN_A_ROW
    parts.task_event(task, TaskEvent.GIVE_UP if is_often else TaskEvent.PUT_BACK, note)


# ------------------------------------------------------------------------------------------------- rejections


def count_as_foreign(parts: SharedParts, task: PodTask, _: str) -> None:
    """Count the pod on its node like one of another scheduler, until its application is accepted."""
    if not task.is_virtual:
        task.is_foreign = True
        parts.requests.add(foreign_allocation(task.pod, parts.settings))


def report_rejection(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Report why the pod waits, or why the scheduler does not count a pod that is on a node."""
    _report(parts, task, "TaskRejected", reason)


def _report(parts: SharedParts, task: PodTask, event_reason: str, reason: str) -> None:
    if task.is_virtual:
        return
    if task.state is not TaskState.ORPHAN:
        parts.reporter.condition(task.pod, SKIPPED, reason)  # another node would not help
    parts.reporter.event(task.pod, event_reason, "Scheduling", reason, is_warning=True)


def retry_later(parts: SharedParts, task: PodTask, _: str) -> None:
    """Try a rejected task again after a pause that doubles each time."""
    parts.reconsidering.waiting.pop(task.key, None)
    task.rejections += 1
    pause = min(_REJECTED_PAUSE_SECONDS * 2 ** (task.rejections - 1), _REJECTED_PAUSE_MAX_SECONDS)
    parts.loop.later(pause, parts.task_event, task, TaskEvent.RETRY)


# ------------------------------------------------------------------------------------------------- ends


def end(parts: SharedParts, task: PodTask, ending: si.TerminationType, message: str = "") -> None:
    """End a task, and its pod if it has one; the scheduler, or nothing, needs it now.

    A task that ends stays in its state until its pod is gone.
    """
    is_ending, task.ending = task.ending is not None, ending
    if not is_ending:
        parts.figures.endings[si.TerminationType.Name(ending)] += 1
    if ending == si.PREEMPTED_BY_SCHEDULER and not (is_ending or task.is_virtual):
        note = message or "it makes room for another pod"
        parts.reporter.event(task.pod, "Preempted", "Preempting", note, is_warning=True)
    if task.is_virtual or not is_ending:
        end_pod(parts, task)


def end_pod(parts: SharedParts, task: PodTask) -> None:
    """End the pod of a task that ends; without a pod the task has ended."""
    if task.is_virtual:
        parts.lose_pod(task)
    else:
        parts.actions.end(task)


def fail(parts: SharedParts, task: PodTask, reason: str) -> None:
    """Mark the pod of a task, which was never on a node, as failed."""
    parts.reporter.event(task.pod, "TaskFailed", "Scheduling", reason, is_warning=True)
    parts.actions.fail(task, GANG_TIMEOUT, reason)


def forget(parts: SharedParts, task: PodTask, _: str) -> None:
    """Forget a task whose pod is gone."""
    stop_waiting(parts, task)
    del parts.tasks[task.key]
