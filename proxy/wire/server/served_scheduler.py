"""The scheduler that a server needs: one in this process, or a door to many."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from ....model.values.documents import Json
from ...core.metrics.figures import Metrics
from ...core.scheduler.answering.questions import QueueAndUser
from ...core.scheduler.managers.manager_life import ManagerStatus
from ...core.scheduler.prepared_configuration import PreparedConfiguration
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback, SchedulerAPI


class AnswersQuestions(Protocol):
    """Answers questions that are messages."""

    def answer(self, question: v1.Question) -> Any:
        """Return the answer to a question."""


@runtime_checkable
class WorksElsewhere(Protocol):
    """A scheduler whose partitions are in other processes: a call may wait for one that is silent."""

    works_elsewhere: bool


class ServedScheduler(SchedulerAPI, Protocol):
    """A scheduler that a server can serve; the methods are those of `Scheduler`."""

    metrics: Metrics
    """The counts of configurations, among others."""

    @property
    def stepped(self) -> bool:
        """Whether it does nothing by itself."""

    @property
    def one_caller(self) -> AbstractContextManager[object]:
        """Held by each thread that uses a stepped scheduler, where several do."""

    @property
    def answers(self) -> AnswersQuestions:
        """The function that answers questions in messages."""

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        *,
        partitions: Collection[str] | None = None,
    ) -> si.RegisterResourceManagerResponse:
        """Register a resource manager; with `partitions`, only these of its configuration are made."""

    def prepare_configuration(self, request: si.UpdateConfigurationRequest) -> PreparedConfiguration:
        """Check a configuration as a whole, and change nothing yet."""

    def request_reconsideration(self, request: v1.Reconsideration) -> None:
        """Try again what the predicates of a resource manager have refused."""

    def take_kept_use(self, rm_id: str, usage: Json) -> None:
        """Let partitions that are made from now on continue from an earlier use."""

    def resource_managers(self) -> tuple[ManagerStatus, ...]:
        """Return the resource managers and their states."""

    def callbacks_waiting(self, rm_id: str) -> int:
        """Return how many callbacks wait for a resource manager."""

    def queue_and_user(self, application_id: str, *, rm_id: str | None = None) -> QueueAndUser | None:
        """Return where an application is and whose, `None` if it is nowhere."""

    def pause_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """Place nothing new for a resource manager whose connection is lost."""

    def stop_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """Refuse the requests of a resource manager until it registers again."""

    def forget_manager(self, rm_id: str) -> None:
        """Forget a resource manager that has stopped."""

    def stop(self) -> None:
        """End all scheduling."""

    def now_ns(self) -> int:
        """Return the time, nanoseconds since 1970."""

    def deliver(self) -> int:
        """Deliver all announcements."""

    def schedule(self, cycles: int | None = None) -> int:
        """Run cycles."""

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens."""

    def advance_to(self, time_ns: int) -> None:
        """Move the virtual clock."""

    def next_deadline_ns(self) -> int | None:
        """Return when the next timer or check is due."""

    def next_timer_ns(self) -> int | None:
        """Return when the next timer is due."""

    def fire_next(self) -> None:
        """Move the virtual clock to the next timer and fire it."""

    def inspect_outstanding(self) -> None:
        """Look for asks that wait for room in the cluster."""

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due."""

    def deliver_events(self) -> None:
        """Queue events for the callbacks of resource managers."""

    def record_history(self) -> None:
        """Add to the history."""
