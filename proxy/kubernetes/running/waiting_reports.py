"""Conditions of pods that wait: when to explain one, and what the explanation means for autoscalers."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, final

from ....model.errors import LicorneError
from ....model.explanation import Blocker, Explanation
from ....model.preemption.acts import FOR_ASK
from ....model.values.allocation import NO_GANG_ROOM, RefusalReason
from ...core.explanation.one_line import explanation_line, is_of_nodes
from ...si import si_pb2 as si
from ..predicates.cluster_view import ClusterView
from ..predicates.volume_filters import is_bound_to_node
from .event_loop import EventLoop
from .reporting import SKIPPED, Reporter
from .tasks import PodTask, TaskState

_UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of the condition of a pod that waits for a node: autoscalers read it."""
_BESIDE: Final = (RefusalReason.PROTECTED, RefusalReason.BACKOFF)
"""Blockers that follow from others."""
_NUMBERS: Final = re.compile(r"-?[0-9][\w./]*")
_AT_ONCE: Final = 4
_IDLE_SHARE: Final = 9
"""How many times as long as an explanation the pause behind it is."""
_PAUSE_SECONDS: Final = 0.05
_AGAIN_SECONDS: Final = 30.0
_NEW_SECONDS: Final = 3.0
"""When to ask about a pod without a report of the scheduler that it lacks room: a quota holds it back."""
_AGAIN_PAUSE_SECONDS: Final = 0.2
"""The pause between two pods that are asked about again: with many pods each is asked about less often."""


def _condition_of(explanation: Explanation, *, is_bound: bool) -> tuple[str, str]:
    """Return the reason of the condition of a waiting pod, and the node on which others end for it.

    Autoscalers add nodes for `Unschedulable` pods: the reason is used only if another node would help.

    Args:
        explanation: Why the pod waits.
        is_bound: Whether the pod waits for a certain node, since a volume of it is there.
    """
    ask = next(iter(explanation.waiting), None)
    blockers = [*explanation.blockers, *(ask.blockers if ask is not None else ())]
    deciding = [each for each in blockers if each.reason not in _BESIDE]
    is_bound = is_bound or (ask is not None and bool(ask.required_node))
    would_help = bool(deciding) and not is_bound and all(map(_is_helped_by_nodes, deciding))
    nodes = {victim.node_id for victim in ask.ending} if ask is not None else set()
    return _UNSCHEDULABLE if would_help else SKIPPED, nodes.pop() if len(nodes) == 1 else ""


def _is_helped_by_nodes(blocker: Blocker) -> bool:
    return blocker.reason in NO_GANG_ROOM or is_of_nodes(blocker)


@final
class WaitingReports:
    """Writes conditions; used by one thread.

    Explanations take a tenth of the time at most, however many pods wait.

    Args:
        loop: The thread.
        reporter: Writes them.
        tasks: All tasks by key.
        explain: Explains why a task of an application waits; called on workers.
        view: The cluster. Without nodes the reason is known at once.
    """

    def __init__(
        self,
        loop: EventLoop,
        reporter: Reporter,
        tasks: Mapping[str, PodTask],
        explain: Callable[[str, str], Explanation],
        view: ClusterView,
    ) -> None:
        self._loop = loop
        self._reporter = reporter
        self._tasks = tasks
        self._explain = explain
        self._view = view
        self._due: dict[str, str] = {}
        """The pods to ask about by key, in the order of arrival, and the kind of their last reason."""
        self._again: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """When to ask again, and the kind of the last reason, by key, in the order of the times."""
        self._new: deque[tuple[float, str]] = deque()
        """When to check whether a pod still waits, and its key, in the order of the times."""
        self._open_count = 0
        self._pause_seconds = _PAUSE_SECONDS
        self._is_planned = False
        self._is_again_planned = False

    @property
    def count(self) -> int:
        """The number of pods to ask about, now or later."""
        return len(self._due) + len(self._again) + len(self._new)

    def asked(self, task: PodTask) -> None:
        """Handle a task that is asked for."""
        if not self._new:
            self._loop.later(_NEW_SECONDS, self._look_at_new)
        self._new.append((self._loop.now() + _NEW_SECONDS, task.key))
        if not self._view.nodes:
            self.waits(task.key)

    def _look_at_new(self) -> None:
        while self._new and self._new[0][0] <= self._loop.now():
            _, key = self._new.popleft()
            if key not in self._due and key not in self._again:
                self.waits(key)
        if self._new:
            self._loop.later(self._new[0][0] - self._loop.now(), self._look_at_new)

    def preempted(self, releases: Iterable[si.AllocationRelease]) -> None:
        """Handle ends that the scheduler requests: the pods for which others end have another reason."""
        for message in {release.message for release in releases}:
            if message.startswith(FOR_ASK):
                self.waits(message.removeprefix(FOR_ASK))

    def waits(self, key: str) -> None:
        """Handle a task that waits, perhaps for another reason than before."""
        if self._waiting(key) is not None:
            _, kind = self._again.pop(key, (0.0, ""))
            self._due.setdefault(key, kind)
            self._plan(_PAUSE_SECONDS)

    def _waiting(self, key: str) -> PodTask | None:
        """Return a task that matters to people: it waits for a node, and has a pod."""
        task = self._tasks.get(key)
        return task if task is not None and task.state is TaskState.ASKED and not task.is_virtual else None

    def _plan(self, seconds: float) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._loop.later(seconds, self._ask)

    def _ask(self) -> None:
        self._is_planned = False
        while self._due and self._open_count < _AT_ONCE:
            key = next(iter(self._due))
            kind = self._due.pop(key)
            task = self._waiting(key)
            if task is not None:
                self._open_count += 1
                self._explain_one(task, kind)
        if self._due:
            self._plan(self._pause_seconds)

    def _explain_one(self, task: PodTask, kind: str) -> None:
        application_id, began = task.application.application_id, self._loop.now()

        def then(answer: Explanation | Exception) -> None:
            self._open_count -= 1
            self._pause_seconds = max(_PAUSE_SECONDS, _IDLE_SHARE * (self._loop.now() - began))
            if self._waiting(task.key) is not task:
                return
            new_kind = self._report(task, kind, answer) if isinstance(answer, Explanation) else kind
            if task.key not in self._due:
                self._again[task.key] = (self._loop.now() + _AGAIN_SECONDS, new_kind)
                self._plan_again(_AGAIN_SECONDS)
            else:
                self._due[task.key] = new_kind
            if isinstance(answer, Exception) and not isinstance(answer, LicorneError):
                raise answer

        self._loop.work(lambda: self._explain(application_id, task.key), then, is_urgent=False)

    def _report(self, task: PodTask, kind: str, explanation: Explanation) -> str:
        """Write a condition, and an event if another kind of reason applies; return the kind."""
        is_bound = is_bound_to_node(task.pod, self._view)
        reason, nominated_node = _condition_of(explanation, is_bound=is_bound)
        line = explanation_line(explanation)
        self._reporter.condition(task.pod, reason, line, nominated_node)
        new_kind = f"{reason}: {_NUMBERS.sub('', line)}"
        if new_kind != kind:
            event_reason = "PodUnschedulable" if reason == _UNSCHEDULABLE else reason
            self._reporter.event(task.pod, event_reason, "Scheduling", line)
        return new_kind

    def _plan_again(self, seconds: float) -> None:
        if not self._is_again_planned:
            self._is_again_planned = True
            self._loop.later(seconds, self._ask_again)

    def _ask_again(self) -> None:
        """Ask about the pod with the oldest answer, and drop the pods that no longer wait."""
        self._is_again_planned = False
        while self._again:
            key, (due, _) = next(iter(self._again.items()))
            if self._waiting(key) is None:
                del self._again[key]
            elif due > self._loop.now():
                self._plan_again(due - self._loop.now())
                return
            else:
                self.waits(key)
                self._plan_again(_AGAIN_PAUSE_SECONDS)
                return
