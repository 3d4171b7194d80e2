"""The life of a task: from the first sight of its pod to the end of the pod."""

from __future__ import annotations

from typing import Final, final

from ....model.resources.quantities import QuantityError
from ....model.values.rejections import RejectionCode
from ...si import si_pb2 as si
from ..mapping.asks import ask as ask_message
from ..mapping.asks import release as release_message
from ..mapping.pod_sizes import pod_resource
from ..mapping.pods import claim_names, gate_names
from ..objects import Pod
from ..predicates.verdicts import PodFilters, predicate_class
from .applications import Applications
from .shared_parts import SharedParts
from .tasks import Task, TaskState

__all__ = ["TaskLife"]

_REJECTED_PAUSE_SECONDS: Final = 10
_REJECTED_PAUSE_MAX_SECONDS: Final = 300


@final
class TaskLife:
    """What happens to tasks because of pods, and of what the scheduler says; used by one thread."""

    def __init__(self, parts: SharedParts) -> None:
        self._settings = parts.settings
        self._cache = parts.cache
        self._filters = PodFilters(parts.cache)
        self._loop = parts.loop
        self._requests = parts.requests
        self._actions = parts.actions
        self._reporter = parts.reporter
        self._reconsidering = parts.reconsidering
        self.applications = Applications(parts, self)
        self.tasks: dict[str, Task] = {}
        """All tasks that have not ended, by key."""
        self._blocked: dict[str, Task] = {}
        """Those that wait for claims or namespaces."""
        self._actions.answers = self

    # ------------------------------------------------------------------------------------- pods

    def pod_seen(self, pod: Pod) -> None:
        """Take a pod of ours that has not ended, new or changed; the cache has it already."""
        task = self.tasks.get(pod.metadata.uid)
        if task is not None:
            before, task.pod = task.pod, pod
            self._pod_changed(task, before)
        elif pod.spec.scheduling_gates and not pod.spec.node_name:
            names = ", ".join(gate_names(pod))
            self._reporter.event(pod, "Scheduling", "GatesWait", f"waits for scheduling gates: {names}")
        else:
            self._add(pod)

    def _add(self, pod: Pod) -> None:
        application = self.applications.of_pod(pod)
        task = self.applications.new_task(application, pod)
        self.tasks[task.key] = task
        if pod.spec.node_name:
            self._take_assigned(task)
        else:
            self.ask(task)

    def add_virtual(self, task: Task) -> None:
        """Take a placeholder that has no pod in the cluster, and ask for it."""
        self.tasks[task.key] = task
        self._cache.put_pod(task.pod)
        self.ask(task)

    def _pod_changed(self, task: Task, before: Pod) -> None:
        node_name = task.pod.spec.node_name
        if node_name and not (task.state is TaskState.BOUND and node_name == task.node_name):
            if task.state is TaskState.BINDING and node_name == task.node_name:
                self.bound(task)
            elif task.state is not TaskState.ORPHAN:
                self._take_assigned(task)
        elif task.state is TaskState.NEW:
            self.ask(task)
        elif task.is_in_core and pod_resource(before) != pod_resource(task.pod):
            self._send(task)

    def _take_assigned(self, task: Task) -> None:
        """Tell the scheduler of a pod that is on a node already, bound by us earlier or by others."""
        node_name = task.pod.spec.node_name
        if task.state in {TaskState.BINDING, TaskState.BOUND} and task.node_name != node_name:
            self._release(task, si.STOPPED_BY_RM, f"the pod is on node {node_name}")
        task.node_name = node_name
        if node_name not in self._cache.nodes:
            if task.state is TaskState.ASKED:
                self._release(task, si.STOPPED_BY_RM, f"the pod is on node {node_name}, which is not known")
            task.state = TaskState.ORPHAN
            return
        task.state = TaskState.BOUND
        self._send(task)
        self.applications.task_bound(task)

    def adopt(self, node_name: str) -> None:
        """Tell the scheduler of the pods on a node that it has just been told of."""
        for pod in self._cache.pods_on(node_name):
            task = self.tasks.get(pod.metadata.uid)
            if task is not None and task.state is TaskState.ORPHAN:
                self._take_assigned(task)

    def is_virtual(self, key: str) -> bool:
        """Return whether a key is of a placeholder that has no pod in the cluster."""
        task = self.tasks.get(key)
        return task is not None and task.is_virtual

    def send_again(self, task: Task) -> None:
        """Tell the scheduler anew of a task that it has lost with its application."""
        if task.state in {TaskState.BOUND, TaskState.ORPHAN} and not task.is_virtual:
            self._take_assigned(task)
        elif task.state is TaskState.ASKED:
            task.state = TaskState.NEW  # asked for when the application is accepted

    def pod_gone(self, uid: str) -> None:
        """Take that a pod of ours has ended; the cache does not have it any more."""
        task = self.tasks.pop(uid, None)
        if task is None:
            return
        task.is_gone = True
        self._blocked.pop(uid, None)
        self._reconsidering.waiting.pop(uid, None)
        self._reporter.forget(uid)
        if task.is_in_core or task.ending is not None:
            self._release(task, task.ending or si.STOPPED_BY_RM, "task completed")
        self.applications.task_ended(task)

    # ------------------------------------------------------------------------------------- asking

    def ask(self, task: Task) -> None:
        """Ask for a task, if its application may ask and nothing else keeps it waiting."""
        if task.state is not TaskState.NEW or not task.application.may_ask(task):
            return
        reason = "" if task.is_virtual else self.why_blocked(task.pod)
        if reason:
            self._blocked[task.key] = task
            self._reporter.condition(task.pod, "Unschedulable", reason)
            self._reporter.event(task.pod, "FailedScheduling", "Scheduling", reason, is_warning=True)
            return
        self._blocked.pop(task.key, None)
        task.state = TaskState.ASKED
        try:
            self._send(task)
        except QuantityError as error:
            task.state = TaskState.REJECTED
            self._reporter.condition(task.pod, "Unschedulable", str(error))
            return
        task.application.has_asked = True

    def ask_blocked(self) -> None:
        """Ask for the tasks whose claims are there now."""
        for task in list(self._blocked.values()):
            self.ask(task)

    def why_blocked(self, pod: Pod) -> str:
        """Return why a pod cannot be asked for yet, empty if it can."""
        for name in claim_names(pod):
            claim = self._cache.claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                return f"persistentvolumeclaim {name!r} not found"
            if claim.metadata.deletion_timestamp is not None:
                return f"persistentvolumeclaim {name!r} is being deleted"
        return ""

    def _send(self, task: Task) -> None:
        """Tell the scheduler of a task, as it is now."""
        pod = task.pod
        self._requests.add(
            ask_message(
                pod,
                task.application.application_id,
                self._cache.priority_classes,
                self._settings,
                originator=task.key == task.application.first.metadata.uid,
                predicate_class=self._class_of(task),
            )
        )

    def _class_of(self, task: Task) -> str:
        """Return the class of pods that share answers; a task without one is to be asked about by itself."""
        found = "" if self._filters.is_kept_away(task.pod) else predicate_class(task.pod)
        if not found and task.state is TaskState.ASKED:
            self._reconsidering.waiting[task.key] = task
        return found

    def _release(self, task: Task, termination: si.TerminationType, message: str) -> None:
        self._requests.add(release_message(task.application.application_id, task.key, termination, message))

    # ------------------------------------------------------------------------------- what the scheduler says

    def placed(self, allocation: si.Allocation) -> None:
        """Take a placement: bind the pod, unless a filter refuses the node by now."""
        key, node_name = allocation.allocationKey, allocation.nodeID
        task = self.tasks.get(key)
        if task is not None and task.state is TaskState.BOUND and task.node_name == node_name:
            return
        if task is None or task.state is not TaskState.ASKED:
            self._requests.add(
                release_message(
                    allocation.applicationID, key, si.STOPPED_BY_RM, "the pod has ended meanwhile"
                )
            )
            return
        self._reconsidering.waiting.pop(key, None)
        task.state, task.node_name, task.rejections = TaskState.BINDING, node_name, 0
        task.placement += 1
        refusal = self._refusal(task)
        if refusal:
            self._put_back(task, refusal)
            return
        self._cache.assume(key, node_name)
        if task.is_virtual:
            self.bound(task)
        else:
            self._actions.bind(task)

    def _refusal(self, task: Task) -> str | None:
        """Return why a task may not run on its node, with all that was placed before it."""
        if task.node_name not in self._cache.nodes:
            return f"node {task.node_name} is gone"
        return self._filters.why_refused(task.pod, task.node_name, allocate=not task.is_virtual)

    def _put_back(self, task: Task, reason: str) -> None:
        """Have a task wait again in its old place, and avoid the node for a while."""
        self._cache.forget_assumption(task.key)
        task.state, task.node_name = TaskState.ASKED, ""
        self._release(task, si.SCHEDULING_FAILED_ON_RM, reason)

    def released(self, release: si.AllocationRelease) -> None:
        """Take that the scheduler has ended something: end the pod, and confirm when it is gone."""
        task = self.tasks.get(release.allocationKey)
        if release.terminationType == si.STOPPED_BY_RM:
            if task is not None and task.node_name and task.node_name not in self._cache.nodes:
                self._node_removed(task)
            return
        if task is None:
            key, kind = release.allocationKey, release.terminationType
            self._requests.add(release_message(release.applicationID, key, kind, "task completed"))
            return
        is_ending, task.ending = task.ending is not None, release.terminationType
        if release.terminationType == si.PREEMPTED_BY_SCHEDULER and not is_ending:
            message = release.message or "it makes room for another pod"
            self._reporter.event(task.pod, "Preempted", "Preempting", message, is_warning=True)
        self._end(task, is_ending=is_ending)

    def end(self, task: Task) -> None:
        """End a placeholder that nothing will replace any more."""
        is_ending = task.ending is not None
        task.ending = task.ending or si.STOPPED_BY_RM
        self._end(task, is_ending=is_ending)

    def _end(self, task: Task, *, is_ending: bool) -> None:
        if task.is_virtual:
            self.found_gone(task)
        elif not is_ending:
            self._actions.end(task)

    def _node_removed(self, task: Task) -> None:
        """Take that the scheduler has dropped a task with its node."""
        if task.state is TaskState.BOUND and not task.is_virtual:
            task.state = TaskState.ORPHAN
        elif task.state in {TaskState.BINDING, TaskState.BOUND}:
            self._cache.forget_assumption(task.key)
            task.state, task.node_name = TaskState.NEW, ""
            self.ask(task)

    def rejected(self, rejection: si.RejectedAllocation) -> None:
        """Take that the scheduler has rejected an ask or an allocation."""
        task = self.tasks.get(rejection.allocationKey)
        if task is None:
            return
        if rejection.code == RejectionCode.APPLICATION_UNKNOWN.value:
            task.state = TaskState.ORPHAN if task.state is TaskState.BOUND else TaskState.NEW
            self.applications.submit_again(task.application)
            return
        if task.state is TaskState.BOUND:
            task.state = TaskState.ORPHAN
        else:
            task.state = TaskState.REJECTED
        task.rejections += 1
        self._reporter.event(task.pod, "TaskRejected", "Scheduling", rejection.reason, is_warning=True)
        self._reporter.condition(task.pod, "Unschedulable", rejection.reason)
        pause = min(_REJECTED_PAUSE_SECONDS * 2 ** (task.rejections - 1), _REJECTED_PAUSE_MAX_SECONDS)
        self._loop.later(pause, self._try_rejected, task)

    def _try_rejected(self, task: Task) -> None:
        if task.is_gone:
            return
        if task.state is TaskState.REJECTED:
            task.state = TaskState.NEW
            self.ask(task)
        elif task.state is TaskState.ORPHAN:
            self._take_assigned(task)

    # ------------------------------------------------------------------------------- what actions have led to

    def bound(self, task: Task) -> None:
        """Take that the pod of a task is on its node."""
        task.state = TaskState.BOUND
        if not task.is_virtual:
            note = f"Successfully assigned {task.pod.full_name} to node {task.node_name}"
            self._reporter.event(task.pod, "Scheduled", "Binding", note)
        self.applications.task_bound(task)

    def bind_failed(self, task: Task, reason: str) -> None:
        """Take that a bind has failed: the task waits again, and avoids the node for a while."""
        note = f"the pod could not be assigned to node {task.node_name}: {reason}"
        self._reporter.event(task.pod, "PodBindFailure", "Binding", note, is_warning=True)
        self._put_back(task, note)

    def found_gone(self, task: Task) -> None:
        """Take that the API server has no such pod any more; the watch says so, too, sooner or later."""
        if not task.is_gone:
            self._cache.remove_pod(task.key)
            self.pod_gone(task.key)

    def placeholder_refused(self, application_id: str, reason: str) -> None:
        """Take that a placeholder cannot be created."""
        self.applications.placeholder_refused(application_id, reason)
