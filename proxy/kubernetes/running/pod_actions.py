"""Actions on pods: bind, end, create, fail. Each call ends in an answer, or in another attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, final

from ...si import si_pb2 as si
from ..client.api_calls import ApiCalls
from ..client.errors import ApiError
from ..objects import SELECTED_NODE, ObjectMeta, PersistentVolumeClaim, Pod
from ..predicates.volume_filters import claim_keys, is_to_be_provided
from .cache import ClusterCache
from .event_loop import EventLoop
from .tasks import PhaseEvent, PodApplication, PodApplicationPhase, PodTask, TaskEvent, TaskState

if TYPE_CHECKING:
    from .shared_parts import SharedParts

BIND_DELAYS_SECONDS: Final = (1, 2, 4, 8, 16, 30, 30, 30)
"""The pauses after the attempts of a bind; after the last one it has failed."""
_PAUSE_MAX_SECONDS: Final = 30
_NOT_DONE: Final = frozenset({401, 403, 429})
"""The API server has not carried out the call, and may do so later."""
_NOT_CREATED_YET: Final = frozenset({401, 409, 429})
"""The same for a new pod, or its name is taken. With 403 a quota forbids it: waiting does not help."""
_SEEN_SECONDS: Final = 60.0
"""After how long a created placeholder counts as lost that the watch has not shown."""
_NANOSECONDS: Final = 1e9


class BindOutcome(Enum):
    """The outcome of a bind."""

    BOUND = "The pod is on the node"
    GONE = "There is no such pod any more"
    TAKEN = "The pod is on another node"
    REFUSED = "It would be refused again"
    AGAIN = "Nothing has been done"
    LOOK = "It may have been done: look at the pod"


def bind_outcome(error: Exception | None) -> BindOutcome:
    """Return the outcome of a bind from its answer, `None` if the answer is not an error."""
    if error is None:
        return BindOutcome.BOUND
    if not isinstance(error, ApiError):
        return BindOutcome.LOOK
    match error.status:
        case 404:
            return BindOutcome.GONE
        case 409:  # it is assigned already, or another pod now has its name
            return BindOutcome.LOOK
        case status if status in _NOT_DONE:
            return BindOutcome.AGAIN
        case status if status < 500:
            return BindOutcome.REFUSED
        case _:
            return BindOutcome.LOOK


def seen_outcome(seen: Pod | Exception, uid: str, node_name: str) -> BindOutcome:
    """Return the outcome of a bind from the present state of the pod."""
    if isinstance(seen, Exception):
        is_gone = isinstance(seen, ApiError) and seen.status == 404
        return BindOutcome.GONE if is_gone else BindOutcome.LOOK
    if seen.metadata.uid != uid:
        return BindOutcome.GONE
    if not seen.spec.node_name:
        return BindOutcome.AGAIN
    return BindOutcome.BOUND if seen.spec.node_name == node_name else BindOutcome.TAKEN


def why_not_bind(task: PodTask, cache: ClusterCache) -> str:
    """Return why a pod may not be bound now, empty if it may: the API server accepts any name of a node."""
    return "" if task.node_name in cache.nodes else f"node {task.node_name} is gone"


@final
class PodActions:
    """Carries out actions on workers, and repeats those that may succeed later.

    Args:
        loop: The thread for everything else.
        calls: The API server.
    """

    def __init__(self, loop: EventLoop, calls: ApiCalls) -> None:
        self._loop = loop
        self._calls = calls
        self.evicts = False
        """Whether preempted pods are evicted, which disruption budgets may delay, instead of deleted."""
        self.may_act = True
        """Whether actions are carried out; false when another process schedules."""
        self.events: SharedParts
        """Set once, before the first action."""

    def bind(self, task: PodTask) -> None:
        """Assign the pod of a task to its node."""
        self._bind(task, task.placement, 0)

    def _bind(self, task: PodTask, placement: int, attempt: int) -> None:
        if not (self.may_act and _is_binding(task, placement)) or task.ending is not None:
            return
        reason = why_not_bind(task, self.events.cache)
        if reason:
            self.events.task_event(task, TaskEvent.BIND_FAILED, reason)
            return
        meta, node_name = task.pod.metadata, task.node_name

        def then(answer: object) -> None:
            error = answer if isinstance(answer, Exception) else None
            self._take(task, placement, attempt, bind_outcome(error), error)

        self._loop.work(lambda: self._calls.bind(meta.namespace, meta.name, meta.uid, node_name), then)

    def _take(
        self, task: PodTask, placement: int, attempt: int, outcome: BindOutcome, error: Exception | None
    ) -> None:
        """Handle the outcome of an attempt."""
        if not _is_binding(task, placement):
            return
        match outcome:
            case BindOutcome.BOUND:
                self.events.task_event(task, TaskEvent.BOUND)
            case BindOutcome.GONE:
                self.events.lose_pod(task)
            case _ if task.ending is not None:
                pass  # its pod is being deleted
            case BindOutcome.REFUSED:
                self.events.task_event(task, TaskEvent.BIND_FAILED, str(error))
            case BindOutcome.LOOK if attempt == 0 and isinstance(error, ApiError) and error.status == 409:
                self._look(task, placement, attempt, error)
            case _ if attempt >= len(BIND_DELAYS_SECONDS):
                reason = f"{attempt + 1} attempts, the last one: {error}"
                self.events.task_event(task, TaskEvent.BIND_FAILED, reason)
            case _:
                call = self._look if outcome is BindOutcome.LOOK else self._bind_again
                self._loop.later(_pause(attempt, error), call, task, placement, attempt + 1, error)

    def _bind_again(self, task: PodTask, placement: int, attempt: int, _: Exception | None) -> None:
        self._bind(task, placement, attempt)

    def _look(self, task: PodTask, placement: int, attempt: int, error: Exception | None) -> None:
        """Read a pod that may or may not be assigned."""
        meta = task.pod.metadata

        def then(seen: Pod | Exception) -> None:
            if not _is_binding(task, placement):
                return
            outcome = seen_outcome(seen, meta.uid, task.node_name)
            if outcome is BindOutcome.TAKEN and isinstance(seen, Pod):
                self.events.cache.put_pod(seen)
                task.pod = seen
                self.events.task_event(task, TaskEvent.TAKEN, seen.spec.node_name)
            elif outcome is BindOutcome.AGAIN and attempt > 0:
                self._bind(task, placement, attempt)
            else:
                self._take(task, placement, attempt, outcome, seen if isinstance(seen, Exception) else error)

        self._loop.work(lambda: self._calls.get_pod(meta.namespace, meta.name), then)

    # ------------------------------------------------------------------------------------- ends

    def end(self, task: PodTask) -> None:
        """Delete or evict the pod of a task, and repeat it until the pod is gone."""
        meta = task.pod.metadata

        def call() -> bool:
            evicts = self.evicts and task.ending == si.PREEMPTED_BY_SCHEDULER
            end_pod = self._calls.evict_pod if evicts else self._calls.delete_pod
            try:
                return end_pod(meta.namespace, meta.name, meta.uid)
            except ApiError as error:
                if error.status == 409 and self._is_gone(meta):
                    return False  # another pod now has its name
                raise

        def is_done(answer: object) -> bool:
            if answer is False:
                self.events.lose_pod(task)
            return not isinstance(answer, Exception)

        self._repeat(call, is_done, lambda: task.state is not TaskState.ENDED)

    def _is_gone(self, meta: ObjectMeta) -> bool:
        """Return whether the API server no longer has a pod; on a worker."""
        try:
            return self._calls.get_pod(meta.namespace, meta.name).metadata.uid != meta.uid
        except ApiError as error:
            return error.status == 404

    def fail(self, task: PodTask, reason: str, message: str) -> None:
        """Mark a pod that was never placed as failed."""
        meta = task.pod.metadata

        def call() -> None:
            self._calls.patch_pod_phase(
                meta.namespace, meta.name, meta.uid, phase="Failed", reason=reason, message=message
            )

        def is_done(answer: object) -> bool:
            is_gone = isinstance(answer, ApiError) and answer.status in {404, 409}  # the watch reports it
            return is_gone or not isinstance(answer, Exception)

        self._repeat(call, is_done, lambda: task.state is TaskState.FAILED)

    def create_placeholder(self, application: PodApplication, name: str, manifest: Mapping[str, Any]) -> None:
        """Create the pod of a placeholder; its name ensures that it is created once.

        Args:
            application: The application of its gang; nothing is created when it is no longer being reserved.
            name: The name of the pod.
            manifest: Its document.
        """
        namespace = str(manifest["metadata"]["namespace"])

        def is_needed() -> bool:
            is_reserved = application.phase is PodApplicationPhase.RESERVING and application.has_members
            if not is_reserved:
                application.creating.pop(name, None)
            return is_reserved

        def is_done(answer: object) -> bool:
            match answer:
                case ApiError(status=status) if status < 500 and status not in _NOT_CREATED_YET:
                    application.creating.pop(name, None)
                    self.events.application_event(application, PhaseEvent.GANG_REFUSED, str(answer))
                case Exception() if not (isinstance(answer, ApiError) and answer.status == 409):
                    return False
                case _:
                    self._loop.later(_SEEN_SECONDS, self._miss, application, name)
            return True

        self._repeat(lambda: self._calls.create_pod(namespace, manifest), is_done, is_needed)

    def _miss(self, application: PodApplication, name: str) -> None:
        """Create a placeholder again that the watch has not shown."""
        if application.creating.pop(name, None) is not None:
            self.events.application_event(application, PhaseEvent.PLACEHOLDER_MISSING)

    def _repeat(
        self,
        call: Callable[[], object],
        is_done: Callable[[object], bool],
        is_needed: Callable[[], bool],
        pause_seconds: int = 1,
    ) -> None:
        """Make a call until its answer is final, after pauses that double, as long as it is needed."""
        if not (is_needed() and self.may_act):
            return

        def then(answer: object) -> None:
            if not is_done(answer):
                pause = min(2 * pause_seconds, _PAUSE_MAX_SECONDS)
                self._loop.later(pause_seconds, self._repeat, call, is_done, is_needed, pause)

        self._loop.work(call, then)


def _is_binding(task: PodTask, placement: int) -> bool:
    """Return whether a task is still to be bound after this placement."""
    return task.state is TaskState.BINDING and task.placement == placement


def _pause(attempt: int, error: Exception | None) -> float:
    """Return the pause after an attempt, or the pause that the API server asks for if it is longer."""
    asked = error.retry_after_seconds if isinstance(error, ApiError) else None
    return max(BIND_DELAYS_SECONDS[attempt], asked or 0.0)


@dataclass(slots=True)
class _Binding:
    """The claims for which a pod waits."""

    task: PodTask
    placement: int
    asked: set[str] = field(default_factory=set)
    """The claims with the selected node, as the watch has shown them."""


@final
class VolumeBinding:
    """Requests volumes; used by one thread.

    Args:
        loop: The thread.
        cache: The claims, as the watch shows them.
        calls: The API server.
        timeout_ns: How long a pod waits for its volumes.
        events: The receiver of the outcomes.
    """

    def __init__(
        self, loop: EventLoop, cache: ClusterCache, calls: ApiCalls, timeout_ns: int, events: SharedParts
    ) -> None:
        self._loop = loop
        self._cache = cache
        self._calls = calls
        self._timeout_seconds = timeout_ns / _NANOSECONDS
        self._events = events
        self._waiting: dict[str, _Binding] = {}

    def bind(self, task: PodTask) -> bool:
        """Request the missing volumes of a pod on its node; return whether it has to wait for any."""
        lacking = list(self._lacking(task))
        if not lacking:
            return False
        self._waiting[task.key] = _Binding(task, task.placement)
        for claim in lacking:
            self._select(task, claim)
        self._loop.later(self._timeout_seconds, self._time_out, task, task.placement)
        return True

    def claims_changed(self) -> None:
        """Check the claims of the waiting pods."""
        for binding in list(self._waiting.values()):
            self._look(binding)

    def _lacking(self, task: PodTask) -> Iterable[PersistentVolumeClaim]:
        for key in claim_keys(task.pod):
            claim = self._cache.claims.get(key)
            if claim is not None and is_to_be_provided(claim, self._cache):
                yield claim

    def _select(self, task: PodTask, claim: PersistentVolumeClaim) -> None:
        meta, node_name, placement = claim.metadata, task.node_name, task.placement

        def then(answer: object) -> None:
            if isinstance(answer, Exception) and self._is_current(task, placement):
                self._fail(task, f"the claim {meta.namespace}/{meta.name}: {answer}")

        self._loop.work(lambda: self._calls.select_node(meta.namespace, meta.name, meta.uid, node_name), then)

    def _look(self, binding: _Binding) -> None:
        task = binding.task
        if not self._is_current(task, binding.placement):
            self._waiting.pop(task.key, None)
            return
        is_complete = True
        for key in claim_keys(task.pod):
            claim = self._cache.claims.get(key)
            if claim is None:
                self._fail(task, f"the claim {key} is gone")
                return
            if claim.spec.volume_name and claim.status.phase == "Bound":
                continue
            is_complete = False
            if claim.metadata.annotations.get(SELECTED_NODE) == task.node_name:
                binding.asked.add(key)
            elif key in binding.asked:
                self._fail(task, f"no volume can be made for the claim {key} on node {task.node_name}")
                return
        if is_complete:
            del self._waiting[task.key]
            self._events.actions.bind(task)

    def _time_out(self, task: PodTask, placement: int) -> None:
        if self._is_current(task, placement):
            self._fail(task, f"its volumes were not there after {self._timeout_seconds:g} s")
        elif (binding := self._waiting.get(task.key)) is not None and binding.placement == placement:
            del self._waiting[task.key]  # the pod has ended, or is elsewhere

    def _is_current(self, task: PodTask, placement: int) -> bool:
        """Return whether a pod waits for its volumes since that placement."""
        binding = self._waiting.get(task.key)
        return (
            binding is not None
            and binding.placement == task.placement == placement
            and task.state is TaskState.BINDING
        )

    def _fail(self, task: PodTask, reason: str) -> None:
        del self._waiting[task.key]
        self._events.task_event(task, TaskEvent.VOLUMES_FAILED, reason)
