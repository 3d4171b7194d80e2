"""Why pods wait, as conditions: asked of the scheduler for few pods at a time, and again while they wait."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Final, final

from ....model.errors import LicorneError
from .event_loop import EventLoop
from .reporting import Reporter
from .tasks import PodTask, TaskState

_AT_ONCE: Final = 4
_PAUSE_SECONDS: Final = 0.05
_AGAIN_SECONDS: Final = 30.0
_NEW_SECONDS: Final = 3.0
"""When a pod is asked about of which the scheduler has not said that it lacks room: then a quota keeps it."""
_AGAIN_PAUSE_SECONDS: Final = 0.2
"""Between two pods that are asked about again: with many of them each is asked about less often."""


@final
class WaitingReports:
    """Writes conditions; used by one thread.

    Args:
        loop: The thread.
        reporter: Who writes them.
        tasks: All tasks by key.
        explain: Returns in one line why a task of an application waits; called on workers.
    """

    def __init__(
        self,
        loop: EventLoop,
        reporter: Reporter,
        tasks: Mapping[str, PodTask],
        explain: Callable[[str, str], str],
    ) -> None:
        self._loop = loop
        self._reporter = reporter
        self._tasks = tasks
        self._explain = explain
        self._due: dict[str, str] = {}
        """The reason of the condition to be written, by key, in the order in which they came."""
        self._again: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """When to ask again, and the reason, by key, in the order of the times."""
        self._new: deque[tuple[float, str]] = deque()
        """When to look whether a pod waits still, and its key, in the order of the times."""
        self._open_count = 0
        self._is_planned = False
        self._is_again_planned = False

    @property
    def count(self) -> int:
        """How many pods are asked about, now or later."""
        return len(self._due) + len(self._again) + len(self._new)

    def asked(self, task: PodTask) -> None:
        """Take that a task is asked for."""
        if not self._new:
            self._loop.later(_NEW_SECONDS, self._look_at_new)
        self._new.append((self._loop.now() + _NEW_SECONDS, task.key))

    def _look_at_new(self) -> None:
        while self._new and self._new[0][0] <= self._loop.now():
            _, key = self._new.popleft()
            if key not in self._due and key not in self._again:
                self.waits(key, "SchedulingSkipped")
        if self._new:
            self._loop.later(self._new[0][0] - self._loop.now(), self._look_at_new)

    def waits(self, key: str, reason: str) -> None:
        """Take that a task waits, `Unschedulable` or `SchedulingSkipped`."""
        if self._waiting(key) is not None:
            self._again.pop(key, None)
            self._due[key] = reason
            self._plan(_PAUSE_SECONDS)

    def _waiting(self, key: str) -> PodTask | None:
        """Return a task that people want to know about: it waits for a node, and has a pod."""
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
            reason = self._due.pop(key)
            task = self._waiting(key)
            if task is not None:
                self._open_count += 1
                self._explain_one(task, reason)
        if self._due:
            self._plan(_PAUSE_SECONDS)

    def _explain_one(self, task: PodTask, reason: str) -> None:
        application_id = task.application.application_id

        def then(answer: str | Exception) -> None:
            self._open_count -= 1
            if self._waiting(task.key) is not task:
                return
            if task.key not in self._due:
                self._again[task.key] = (self._loop.now() + _AGAIN_SECONDS, reason)
                self._plan_again(_AGAIN_SECONDS)
            if isinstance(answer, str):
                self._reporter.condition(task.pod, reason, answer)
                self._reporter.event(task.pod, "PodUnschedulable", "Scheduling", answer)
            elif not isinstance(answer, LicorneError):
                raise answer

        self._loop.work(lambda: self._explain(application_id, task.key), then, is_urgent=False)

    def _plan_again(self, seconds: float) -> None:
        if not self._is_again_planned:
            self._is_again_planned = True
            self._loop.later(seconds, self._ask_again)

    def _ask_again(self) -> None:
        """Ask about the pod that was asked about longest ago, and drop those that do not wait any more."""
        self._is_again_planned = False
        while self._again:
            key, (due, reason) = next(iter(self._again.items()))
            if self._waiting(key) is None:
                del self._again[key]
            elif due > self._loop.now():
                self._plan_again(due - self._loop.now())
                return
            else:
                self.waits(key, reason)
                self._plan_again(_AGAIN_PAUSE_SECONDS)
                return
