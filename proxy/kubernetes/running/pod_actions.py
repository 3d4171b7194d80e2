"""What is done to pods: bind, end, create, fail. Each call ends in an answer, or in another attempt."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol, final

from ...si import si_pb2 as si
from ..client.api_calls import ApiCalls
from ..client.errors import ApiError
from ..objects import Pod
from .event_loop import EventLoop
from .tasks import Task, TaskState

__all__ = [
    "BIND_DELAYS_SECONDS",
    "ActionAnswers",
    "BindOutcome",
    "PodActions",
    "bind_outcome",
    "seen_outcome",
]

BIND_DELAYS_SECONDS: Final = (1, 2, 4, 8, 16, 30, 30, 30)
"""The pauses after the attempts of a bind; after the last one it has failed."""
_PAUSE_MAX_SECONDS: Final = 30
_NOT_DONE: Final = frozenset({401, 403, 429})
"""The API server has done nothing, and may do it later."""


class BindOutcome(Enum):
    """What has become of a bind."""

    BOUND = "The pod is on the node"
    GONE = "There is no such pod any more"
    TAKEN = "The pod is on another node"
    REFUSED = "It would be refused again"
    AGAIN = "Nothing has been done"
    LOOK = "It may have been done: look at the pod"


def bind_outcome(error: Exception | None) -> BindOutcome:
    """Return what has become of a bind from its answer, `None` if it is no error."""
    if error is None:
        return BindOutcome.BOUND
    if not isinstance(error, ApiError):
        return BindOutcome.LOOK
    match error.status:
        case 404:
            return BindOutcome.GONE
        case 409:  # it is assigned already, or another pod has its name now
            return BindOutcome.LOOK
        case status if status in _NOT_DONE:
            return BindOutcome.AGAIN
        case status if status < 500:
            return BindOutcome.REFUSED
        case _:
            return BindOutcome.LOOK


def seen_outcome(seen: Pod | Exception, uid: str, node_name: str) -> BindOutcome:
    """Return what has become of a bind from the pod that was looked at."""
    if isinstance(seen, Exception):
        is_gone = isinstance(seen, ApiError) and seen.status == 404
        return BindOutcome.GONE if is_gone else BindOutcome.LOOK
    if seen.metadata.uid != uid:
        return BindOutcome.GONE
    if not seen.spec.node_name:
        return BindOutcome.AGAIN
    return BindOutcome.BOUND if seen.spec.node_name == node_name else BindOutcome.TAKEN


class ActionAnswers(Protocol):
    """Who is told what has become of the actions."""

    def bound(self, task: Task) -> None:
        """Take that the pod is assigned to its node."""
        ...

    def bind_failed(self, task: Task, reason: str) -> None:
        """Take that the pod cannot be assigned to its node."""
        ...

    def found_gone(self, task: Task) -> None:
        """Take that the API server has no such pod any more."""
        ...

    def placeholder_refused(self, application_id: str, reason: str) -> None:
        """Take that a placeholder of an application cannot be created."""
        ...


@final
class PodActions:
    """Carries out actions on workers, and repeats those that may succeed later.

    Args:
        loop: The thread on which everything else happens.
        calls: The API server.
    """

    def __init__(self, loop: EventLoop, calls: ApiCalls) -> None:
        self._loop = loop
        self._calls = calls
        self.evicts = False
        """Whether preempted pods are evicted, which disruption budgets may put off, not deleted."""
        self.may_act = True
        """Whether anything is done; not when another process schedules."""
        self.answers: ActionAnswers
        """Set once, before the first action."""

    def bind(self, task: Task) -> None:
        """Assign the pod of a task to its node."""
        self._bind(task, task.placement, 0)

    def _bind(self, task: Task, placement: int, attempt: int) -> None:
        pod = task.pod
        if not (self.may_act and _is_binding(task, placement)):
            return
        meta, node_name = pod.metadata, task.node_name

        def then(answer: object) -> None:
            error = answer if isinstance(answer, Exception) else None
            self._take(task, placement, attempt, bind_outcome(error), error)

        self._loop.work(lambda: self._calls.bind(meta.namespace, meta.name, meta.uid, node_name), then)

    def _take(
        self, task: Task, placement: int, attempt: int, outcome: BindOutcome, error: Exception | None
    ) -> None:
        """Go on with what has become of an attempt."""
        if not _is_binding(task, placement):
            return
        match outcome:
            case BindOutcome.BOUND:
                self.answers.bound(task)
            case BindOutcome.GONE:
                self.answers.found_gone(task)
            case BindOutcome.TAKEN | BindOutcome.REFUSED:
                self.answers.bind_failed(task, str(error))
            case BindOutcome.LOOK if attempt == 0 and isinstance(error, ApiError) and error.status == 409:
                self._look(task, placement, attempt, error)
            case _:
                if attempt >= len(BIND_DELAYS_SECONDS):
                    self.answers.bind_failed(task, f"{attempt + 1} attempts, the last one: {error}")
                    return
                call = self._look if outcome is BindOutcome.LOOK else self._bind_again
                self._loop.later(BIND_DELAYS_SECONDS[attempt], call, task, placement, attempt + 1, error)

    def _bind_again(self, task: Task, placement: int, attempt: int, _: Exception | None) -> None:
        self._bind(task, placement, attempt)

    def _look(self, task: Task, placement: int, attempt: int, error: Exception | None) -> None:
        """Look at the pod, of which it is not known whether it is assigned."""
        meta = task.pod.metadata

        def then(seen: Pod | Exception) -> None:
            outcome = seen_outcome(seen, meta.uid, task.node_name)
            if outcome is BindOutcome.AGAIN and attempt > 0:
                self._bind(task, placement, attempt)
                return
            self._take(task, placement, attempt, outcome, seen if isinstance(seen, Exception) else error)

        self._loop.work(lambda: self._calls.get_pod(meta.namespace, meta.name), then)

    def end(self, task: Task) -> None:
        """Delete or evict the pod of a task, and try again until it is gone."""
        self._end(task, 1)

    def _end(self, task: Task, pause_seconds: int) -> None:
        meta = task.pod.metadata
        evicts = self.evicts and task.ending == si.PREEMPTED_BY_SCHEDULER
        call = self._calls.evict_pod if evicts else self._calls.delete_pod

        def then(answer: object) -> None:
            match answer:
                case False | ApiError(status=409):  # there is none, or another pod has its name
                    self.answers.found_gone(task)
                case Exception():
                    self._loop.later(pause_seconds, again)

        def again() -> None:
            if self.may_act and task.ending is not None and not task.is_gone:
                self._end(task, min(2 * pause_seconds, _PAUSE_MAX_SECONDS))

        self._loop.work(lambda: call(meta.namespace, meta.name, meta.uid), then)

    def create_placeholder(self, application_id: str, manifest: Mapping[str, Any]) -> None:
        """Create the pod of a placeholder; its name makes sure that it is created once."""
        self._create(application_id, manifest, 1)

    def _create(self, application_id: str, manifest: Mapping[str, Any], pause_seconds: int) -> None:
        namespace = str(manifest["metadata"]["namespace"])

        def then(answer: object) -> None:
            match answer:
                case ApiError(status=409):
                    pass
                case ApiError(status=status) if status < 500 and status not in _NOT_DONE:
                    self.answers.placeholder_refused(application_id, str(answer))
                case Exception():
                    pause = min(2 * pause_seconds, _PAUSE_MAX_SECONDS)
                    self._loop.later(pause_seconds, self._create, application_id, manifest, pause)

        self._loop.work(lambda: self._calls.create_pod(namespace, manifest), then)

    def fail(self, task: Task, reason: str, message: str) -> None:
        """Write that a pod that was never placed has failed."""
        self._fail(task, reason, message, 1)

    def _fail(self, task: Task, reason: str, message: str, pause_seconds: int) -> None:
        meta = task.pod.metadata

        def then(answer: object) -> None:
            match answer:
                case ApiError(status=404 | 409):
                    pass
                case Exception() if not task.is_gone:
                    pause = min(2 * pause_seconds, _PAUSE_MAX_SECONDS)
                    self._loop.later(pause_seconds, self._fail, task, reason, message, pause)

        self._loop.work(
            lambda: self._calls.patch_pod_phase(
                meta.namespace, meta.name, meta.uid, phase="Failed", reason=reason, message=message
            ),
            then,
        )


def _is_binding(task: Task, placement: int) -> bool:
    """Return whether a task is still to be bound where it was placed by that placement."""
    return task.state is TaskState.BINDING and task.placement == placement
