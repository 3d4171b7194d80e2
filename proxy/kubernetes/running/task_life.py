"""The life of a task: from the first sight of its pod to the end of the pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ....model.resources.quantities import QuantityError
from ....model.values.messages import RejectionCode
from ...si import si_pb2 as si
from ..mapping.applications import refused_user
from ..mapping.asks import ask as ask_message
from ..mapping.asks import release as release_message
from ..mapping.pod_sizes import pod_resource
from ..mapping.settings import gate_names
from ..objects import Pod
from ..predicates.cluster_view import anti_affinity_terms
from ..predicates.verdicts import PodFilters, predicate_class
from .applications import Applications
from .pod_actions import VolumeBinding
from .shared_parts import SharedParts
from .tasks import PodApplication, PodApplicationPhase, PodTask, TaskState

_REJECTED_PAUSE_SECONDS: Final = 10
_REJECTED_PAUSE_MAX_SECONDS: Final = 300
_BINDS_IN_A_ROW: Final = 3
"""After this many consecutive failures a pod waits before it is asked for again."""
_NO_PLACEHOLDERS: Final = frozenset(PodApplicationPhase) - {
    PodApplicationPhase.WAITING,
    PodApplicationPhase.SUBMITTED,
    PodApplicationPhase.RESERVING,
}


@final
class TaskLife:
    """Changes tasks after events of pods and messages of the scheduler; used by one thread."""

    def __init__(self, parts: SharedParts) -> None:
        self._settings = parts.settings
        self._cache = parts.cache
        self._filters = PodFilters(parts.cache)
        self._loop = parts.loop
        self._requests = parts.requests
        self._actions = parts.actions
        self._reporter = parts.reporter
        self._reconsidering = parts.reconsidering
        self._volumes = VolumeBinding(
            parts.loop, parts.cache, parts.calls, parts.settings.volume_bind_timeout_ns, self
        )
        self.tasks: dict[str, PodTask] = {}
        """All tasks that have not ended, by key."""
        self._blocked: dict[str, PodTask] = {}
        """The tasks that wait for claims."""
        self._gated: set[str] = set()
        """The uids of pods that wait for their scheduling gates, and have been reported."""
        self.applications = Applications(parts, self)
        self.on_asked: Callable[[PodTask], None] = _nothing
        """Is called with each requested task."""
        self._actions.answers = self

    # ------------------------------------------------------------------------------------- pods

    def pod_seen(self, pod: Pod) -> None:
        """Handle one of our pods that has not ended, new or changed; the cache has it already."""
        uid = pod.metadata.uid
        task = self.tasks.get(uid)
        if _ends_unbound(pod) and (task is None or task.state not in _ON_NODES):
            self._cache.forget_assumption(uid)
            self.pod_gone(uid)
            return
        if task is not None:
            before, task.pod = task.pod, pod
            self._pod_changed(task, before)
        elif pod.spec.scheduling_gates and not pod.spec.node_name:
            self._tell_gates(pod)
        else:
            self._gated.discard(uid)
            self._add(pod)

    def _tell_gates(self, pod: Pod) -> None:
        if pod.metadata.uid not in self._gated:
            self._gated.add(pod.metadata.uid)
            names = ", ".join(gate_names(pod))
            self._reporter.event(pod, "Scheduling", "GatesWait", f"waits for scheduling gates: {names}")

    def _add(self, pod: Pod) -> None:
        application = self.applications.of_pod(pod)
        task = self.applications.new_task(application, pod)
        self.tasks[task.key] = task
        if pod.spec.node_name:
            self._take_assigned(task, pod.spec.node_name)
        else:
            self.ask(task)
        self.applications.joined(task)

    def add_virtual(self, task: PodTask) -> None:
        """Add a placeholder that has no pod in the cluster, and ask for it."""
        self.tasks[task.key] = task
        self._cache.put_pod(task.pod)
        self.ask(task)

    def _pod_changed(self, task: PodTask, before: Pod) -> None:
        node_name = task.pod.spec.node_name
        if node_name and (node_name != task.node_name or task.state not in _ON_NODES):
            if task.state is TaskState.BINDING and node_name == task.node_name:
                self.bound(task)
            else:
                self._take_assigned(task, node_name)
        elif task.state is TaskState.NEW:
            self.ask(task)
        if not task.is_in_core:
            return
        if pod_resource(before) != pod_resource(task.pod):
            self._send(task)
        elif task.state is TaskState.ASKED and predicate_class(before) != predicate_class(task.pod):
            self._ask_anew(task)

    def _ask_anew(self, task: PodTask) -> None:
        """Make the scheduler decide about a task again, as one of another class."""
        self._release(task, si.STOPPED_BY_RM, "the pod is judged as others now")
        self._send(task)

    def _take_assigned(self, task: PodTask, node_name: str) -> None:
        """Report a pod that is on a node already, bound by us earlier or by others, to the scheduler."""
        if task.state in {TaskState.BINDING, TaskState.BOUND} and task.node_name != node_name:
            self._release(task, si.STOPPED_BY_RM, f"the pod is on node {node_name}")
        self._no_longer_waits(task)
        task.node_name = node_name
        if node_name not in self._cache.nodes:
            if task.state is TaskState.ASKED:
                self._release(task, si.STOPPED_BY_RM, f"the pod is on node {node_name}, which is not known")
            task.state = TaskState.ORPHAN
            return
        self.applications.submit_at_once(task.application)
        task.state = TaskState.BOUND
        self._send(task)
        self.applications.task_bound(task)

    def _no_longer_waits(self, task: PodTask) -> None:
        self._blocked.pop(task.key, None)
        self._reconsidering.waiting.pop(task.key, None)
        self._reporter.forget(task.key)

    def adopt(self, node_name: str) -> None:
        """Report the pods on a node that is new to the scheduler."""
        for pod in self._cache.pods_on(node_name):
            task = self.tasks.get(pod.metadata.uid)
            if task is not None and task.state is TaskState.ORPHAN:
                self._take_assigned(task, node_name)

    def is_virtual(self, key: str) -> bool:
        """Return whether a key belongs to a placeholder that has no pod in the cluster."""
        task = self.tasks.get(key)
        return task is not None and task.is_virtual

    def send_again(self, task: PodTask) -> None:
        """Send a task again that the scheduler has lost with its application."""
        match task.state:
            case TaskState.BOUND | TaskState.ORPHAN if not task.is_virtual:
                self._take_assigned(task, task.node_name)
            case TaskState.ASKED | TaskState.BINDING | TaskState.BOUND:
                self._cache.forget_assumption(task.key)
                task.state, task.node_name = TaskState.NEW, ""  # asked for when the application is accepted

    def pod_gone(self, uid: str) -> None:
        """Handle a pod that has ended, ours or not; the cache no longer has it."""
        self._gated.discard(uid)
        task = self.tasks.pop(uid, None)
        if task is None:
            return
        task.is_gone = True
        self._no_longer_waits(task)
        if task.ending is not None or task.state not in {TaskState.NEW, TaskState.FAILED}:
            self._release(task, task.ending or si.STOPPED_BY_RM, "task completed")
        self.applications.task_ended(task)

    # ------------------------------------------------------------------------------------- asking

    def ask(self, task: PodTask) -> None:
        """Ask for a task, if its application may ask and nothing else blocks it."""
        if task.state is not TaskState.NEW or task.ending is not None:
            return
        if task.is_placeholder and task.application.phase in _NO_PLACEHOLDERS:
            self.end(task)
            return
        if not task.application.may_ask(task):
            return
        reason = "" if task.is_virtual else self.why_blocked(task.pod)
        if reason:
            self._blocked[task.key] = task
            self._tell_waiting(task, "FailedScheduling", reason)
            return
        self._blocked.pop(task.key, None)
        task.state = TaskState.ASKED
        self._send(task)
        self.on_asked(task)

    def storage_changed(self) -> None:
        """Continue with the tasks whose claims now exist, or are bound."""
        self._volumes.claims_changed()
        for task in list(self._blocked.values()):
            self.ask(task)

    def why_blocked(self, pod: Pod) -> str:
        """Return why a pod cannot be asked for yet, empty if it can."""
        refusal = refused_user(pod, self._settings)
        if refusal:
            return refusal
        for name in pod.claim_names:
            claim = self._cache.claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                return f"persistentvolumeclaim {name!r} not found"
            if claim.metadata.deletion_timestamp is not None:
                return f"persistentvolumeclaim {name!r} is being deleted"
        return ""

    def _send(self, task: PodTask) -> None:
        """Send the present state of a task to the scheduler; an unchanged task has no effect."""
        application = task.application
        task.predicate_class = self._class_of(task)
        try:
            message = ask_message(
                task.pod,
                application.application_id,
                self._cache.priority_classes,
                self._settings,
                originator=task.key == application.first.metadata.uid,
                predicate_class=task.predicate_class,
            )
        except QuantityError as error:
            self._pause(task, str(error))
            return
        message.nodeID = task.node_name if task.state is TaskState.BOUND else ""
        self._requests.add(message)
        application.has_asked = True

    def _class_of(self, task: PodTask) -> str:
        """Return the class of pods that share answers; a task without one gets separate answers."""
        if task.state is not TaskState.ASKED:
            return ""
        found = "" if self._filters.is_kept_away(task.pod) else predicate_class(task.pod)
        if found:
            self._reconsidering.waiting.pop(task.key, None)
        else:
            self._reconsidering.waiting[task.key] = task
        return found

    def neighbour_came(self, pod: Pod) -> None:
        """Handle a pod that is on a node now: pods that it excludes no longer share answers."""
        if anti_affinity_terms(pod):
            self._reconsidering.kept_away(self._judge_alone)

    def _judge_alone(self) -> None:
        """Take tasks out of their classes that a pod excludes, since it may not exclude the others."""
        for task in list(self.tasks.values()):
            waits = task.state is TaskState.ASKED and task.ending is None
            if waits and task.predicate_class and self._filters.is_kept_away(task.pod):
                self._ask_anew(task)

    def _release(self, task: PodTask, termination: si.TerminationType, message: str) -> None:
        if task.is_placeholder and task.state is TaskState.ASKED and termination == si.STOPPED_BY_RM:
            task.application.is_miscounted = True  # the scheduler still counts it as not placed yet
        self._requests.add(release_message(task.application.application_id, task.key, termination, message))

    def _tell_waiting(self, task: PodTask, event_reason: str, reason: str) -> None:
        """Report to people why a pod waits."""
        if not task.is_virtual:
            self._reporter.condition(task.pod, "SchedulingSkipped", reason)  # another node would not help
            self._reporter.event(task.pod, event_reason, "Scheduling", reason, is_warning=True)

    # ------------------------------------------------------------------------------ messages of the scheduler

    def placed(self, allocation: si.Allocation) -> None:
        """Handle a placement: bind the pod, unless a filter refuses the node by now."""
        key, node_name = allocation.allocationKey, allocation.nodeID
        task = self.tasks.get(key)
        if task is None:
            message = "the pod has ended meanwhile"
            self._requests.add(release_message(allocation.applicationID, key, si.STOPPED_BY_RM, message))
        elif task.state is TaskState.ASKED:
            if task.ending is None:
                self._bind(task, node_name)
        elif not (task.node_name == node_name and task.has_node):
            self._misplaced(task)

    def _misplaced(self, task: PodTask) -> None:
        """Handle a placement of a task that is elsewhere, or no longer requested."""
        self._release(task, si.STOPPED_BY_RM, "the pod is not asked for any more")
        if task.state is TaskState.BOUND:
            self._send(task)
        elif task.state is TaskState.BINDING:
            self._ask_again(task)

    def _bind(self, task: PodTask, node_name: str) -> None:
        self._no_longer_waits(task)
        task.state, task.node_name, task.rejections = TaskState.BINDING, node_name, 0
        task.placement += 1
        refusal = self.why_not_bind(task) or self._filters.why_refused(
            task.pod, node_name, allocate=not task.is_virtual
        )
        if refusal:
            self._put_back(task, refusal)
            return
        self._cache.assume(task.key, node_name)
        self.neighbour_came(task.pod)
        if task.is_virtual:
            self.bound(task)
        elif not self._volumes.bind(task):
            self._actions.bind(task)

    def why_not_bind(self, task: PodTask) -> str:
        """Return why a pod may not be bound now: the API server accepts any name of a node."""
        return "" if task.node_name in self._cache.nodes else f"node {task.node_name} is gone"

    def _put_back(self, task: PodTask, reason: str) -> None:
        """Make a task wait again in its old place, and avoid the node for a while."""
        self._cache.forget_assumption(task.key)
        task.state, task.node_name = TaskState.ASKED, ""
        self._release(task, si.SCHEDULING_FAILED_ON_RM, reason)
        self._class_of(task)
        self.on_asked(task)

    def _ask_again(self, task: PodTask) -> None:
        """Ask again for a task that the scheduler no longer has."""
        self._cache.forget_assumption(task.key)
        task.state, task.node_name = TaskState.NEW, ""
        self.ask(task)

    def released(self, release: si.AllocationRelease) -> None:
        """Handle an end that the scheduler requests: end the pod, and confirm it when it is gone."""
        kind = release.terminationType
        task = self.tasks.get(release.allocationKey)
        if kind == si.STOPPED_BY_RM:
            if task is not None:
                self._dropped(task)
        elif task is None:
            message = release_message(release.applicationID, release.allocationKey, kind, "task completed")
            self._requests.add(message)
        elif kind == si.TIMEOUT and task.state is TaskState.ASKED and not task.is_placeholder:
            self._release(task, kind, "the pod waits again")  # it has never run: it need not end
            self._ask_again(task)
        else:
            self._end_because(task, kind, release.message)

    def _end_because(self, task: PodTask, kind: si.TerminationType, message: str) -> None:
        is_ending, task.ending = task.ending is not None, kind
        if kind == si.PREEMPTED_BY_SCHEDULER and not (is_ending or task.is_virtual):
            note = message or "it makes room for another pod"
            self._reporter.event(task.pod, "Preempted", "Preempting", note, is_warning=True)
        if task.is_virtual:
            self.found_gone(task)
        elif not is_ending:
            self._actions.end(task)

    def end(self, task: PodTask) -> None:
        """End a placeholder that nothing will replace."""
        task.ending = task.ending or si.STOPPED_BY_RM
        if task.is_virtual:
            self.found_gone(task)
        else:
            self._actions.end(task)

    def _dropped(self, task: PodTask) -> None:
        """Handle a task that the scheduler has dropped with its node, or whose release it confirms.

        The two cases need no distinction: sending the task again has no effect if it was sent meanwhile.
        """
        match task.state:
            case TaskState.BOUND if not task.is_virtual:
                self._take_assigned(task, task.node_name)
            case TaskState.BINDING | TaskState.BOUND:
                self._ask_again(task)
            case TaskState.ASKED:
                self._send(task)

    def rejected(self, rejection: si.RejectedAllocation) -> None:
        """Handle the rejection of an ask or an allocation."""
        task = self.tasks.get(rejection.allocationKey)
        if task is None or not task.is_in_core or task.state is TaskState.BINDING:
            return
        if rejection.code == RejectionCode.APPLICATION_UNKNOWN.value and task.state is TaskState.ASKED:
            task.state = TaskState.NEW
            self.applications.submit_again(task.application)
            return
        self._pause(task, rejection.reason)
        if rejection.code == RejectionCode.APPLICATION_UNKNOWN.value:
            self.applications.submit_again(task.application)

    def refused(self, entry: object, reason: str) -> None:
        """Handle a request that could not be made: it is repeated later."""
        if isinstance(entry, si.AddApplicationRequest):
            application = self.applications.by_id.get(entry.applicationID)
            if application is not None:
                self.applications.refused(application)
        elif isinstance(entry, si.Allocation):
            task = self.tasks.get(entry.allocationKey)
            if task is not None and task.is_in_core:
                self._pause(task, reason)

    def _pause(self, task: PodTask, reason: str) -> None:
        """Make a rejected task wait, and try it again later."""
        if task.state is TaskState.BOUND and not task.is_virtual:
            task.state = TaskState.ORPHAN
            self._reporter.event(task.pod, "TaskRejected", "Scheduling", reason, is_warning=True)
        else:
            self._cache.forget_assumption(task.key)
            task.state, task.node_name = TaskState.REJECTED, ""
            self._tell_waiting(task, "TaskRejected", reason)
        self._reconsidering.waiting.pop(task.key, None)
        task.rejections += 1
        pause = min(_REJECTED_PAUSE_SECONDS * 2 ** (task.rejections - 1), _REJECTED_PAUSE_MAX_SECONDS)
        self._loop.later(pause, self._try_again, task)

    def _try_again(self, task: PodTask) -> None:
        if task.is_gone:
            return
        if task.state is TaskState.REJECTED:
            task.state = TaskState.NEW
            self.ask(task)
        elif task.state is TaskState.ORPHAN:
            self._take_assigned(task, task.node_name)

    # ------------------------------------------------------------------------------- outcomes of actions

    def bound(self, task: PodTask) -> None:
        """Handle a task whose pod is on its node."""
        task.state, task.bind_failures = TaskState.BOUND, 0
        if not task.is_virtual:
            note = f"Successfully assigned {task.pod.full_name} to node {task.node_name}"
            self._reporter.event(task.pod, "Scheduled", "Binding", note)
        self.applications.task_bound(task)

    def volumes_bound(self, task: PodTask) -> None:
        """Handle a pod whose claims all have volumes."""
        self._actions.bind(task)

    def volumes_failed(self, task: PodTask, reason: str) -> None:
        """Handle a pod with a claim that gets no volume on its node."""
        self.bind_failed(task, reason, "PodVolumesBindFailure")

    def bind_failed(self, task: PodTask, reason: str, event: str = "PodBindFailure") -> None:
        """Handle a failed bind: the task waits again, and avoids the node for a while."""
        note = f"the pod could not be assigned to node {task.node_name}: {reason}"
        self._reporter.event(task.pod, event, "Binding", note, is_warning=True)
        task.bind_failures += 1
        if task.bind_failures < _BINDS_IN_A_ROW:
            self._put_back(task, note)
            return
        self._release(task, si.STOPPED_BY_RM, note)
        task.rejections = task.bind_failures - _BINDS_IN_A_ROW
        self._pause(task, note)

    def found_assigned(self, task: PodTask, seen: Pod) -> None:
        """Handle a pod that is on another node than intended; the watch reports it too."""
        self._cache.put_pod(seen)
        task.pod = seen
        self._take_assigned(task, seen.spec.node_name)

    def found_gone(self, task: PodTask) -> None:
        """Handle a pod that the API server no longer has; the watch reports it too, sooner or later."""
        if not task.is_gone:
            self._cache.remove_pod(task.key)
            self.pod_gone(task.key)

    def fail(self, task: PodTask, reason: str, message: str) -> None:
        """Mark the pod of a task, which was never on a node, as failed."""
        if task.state is not TaskState.FAILED:
            self._no_longer_waits(task)
            task.state = TaskState.FAILED
            self._reporter.event(task.pod, "TaskFailed", "Scheduling", message, is_warning=True)
            self._actions.fail(task, reason, message)

    def placeholder_created(self, application: PodApplication, name: str) -> None:
        """Handle a placeholder that was created."""
        self.applications.gangs.placeholder_created(application, name)

    def placeholder_refused(self, application: PodApplication, name: str, reason: str) -> None:
        """Handle a placeholder that cannot be created."""
        self.applications.gangs.placeholder_refused(application, name, reason)


_ON_NODES: Final = frozenset({TaskState.BOUND, TaskState.ORPHAN})


def _ends_unbound(pod: Pod) -> bool:
    """Return whether a pod is being deleted before it was on a node: the API server does not bind it."""
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


def _nothing(_: PodTask) -> None:
    """Do nothing."""
