"""Why pods wait, as conditions: asked of the scheduler for few pods at a time, and again while they wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from ....model.errors import LicorneError
from .event_loop import EventLoop
from .reporting import Reporter
from .tasks import Task, TaskState

__all__ = ["WaitingReports"]

_AT_ONCE: Final = 4
_PAUSE_SECONDS: Final = 0.05
_AGAIN_SECONDS: Final = 30.0


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
        tasks: Mapping[str, Task],
        explain: Callable[[str, str], str],
    ) -> None:
        self._loop = loop
        self._reporter = reporter
        self._tasks = tasks
        self._explain = explain
        self._due: dict[str, str] = {}
        """The reason of the condition to be written, by key, in the order in which they came."""
        self._open_count = 0
        self._is_planned = False

    def waits(self, key: str, reason: str) -> None:
        """Take that a task waits, `Unschedulable` or `SchedulingSkipped`."""
        self._due[key] = reason
        self._plan(_PAUSE_SECONDS)

    def _plan(self, seconds: float) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._loop.later(seconds, self._ask)

    def _ask(self) -> None:
        self._is_planned = False
        while self._due and self._open_count < _AT_ONCE:
            key = next(iter(self._due))
            reason = self._due.pop(key)
            task = self._tasks.get(key)
            if task is not None and task.state is TaskState.ASKED:
                self._open_count += 1
                self._explain_one(task, reason)
        if self._due:
            self._plan(_PAUSE_SECONDS)

    def _explain_one(self, task: Task, reason: str) -> None:
        application_id = task.application.application_id

        def then(answer: str | Exception) -> None:
            self._open_count -= 1
            if task.is_gone or task.state is not TaskState.ASKED:
                return
            if isinstance(answer, str) and not task.is_virtual:
                self._reporter.condition(task.pod, reason, answer)
                self._reporter.event(task.pod, "PodUnschedulable", "Scheduling", answer)
            elif not isinstance(answer, LicorneError | str):
                raise answer
            self._loop.later(_AGAIN_SECONDS, self._again, task, reason)

        self._loop.work(lambda: self._explain(application_id, task.key), then, is_urgent=False)

    def _again(self, task: Task, reason: str) -> None:
        if not task.is_gone and task.state is TaskState.ASKED and task.key not in self._due:
            self.waits(task.key, reason)
