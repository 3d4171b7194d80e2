"""The questions that a scheduler answers: the same methods here and at a client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from .....actors.runtime.errors import ActorEndedError
from .....model.configuration.extra import ExtraConfig
from .....model.errors import RequestError
from .....model.explanation import Explanation
from .....model.explanation.dry_run import NEXT_ASKS_MAX, DryRun, NextAsks, Prospect
from .....model.partition import Partition
from .....model.state.partition_state import Quarantined
from .....model.values.documents import Document
from .....model.values.messages import short_partition_name
from ....si import licorne_v1_pb2 as v1
from ....si import si_pb2 as si
from ....si.arguments import check_message, check_type
from ...health import HealthReport
from ...metrics.figures import SchedulerFigures
from ..managers.manager_life import ManagerStatus

TITLES: Final[Mapping[str, str]] = {
    "explain": "an explanation",
    "dry_run": "a dry run",
    "snapshot": "a snapshot",
    "resource_managers": "a list of resource managers",
    "quarantined": "a question for what is in quarantine",
    "validate": "a validation",
    "queue_and_user": "a look at an application",
    "extra_configuration": "a question for the extra configuration",
    "would_preempt": "a look at what would be preempted",
    "next_asks": "a look at the next asks",
    "configuration_text": "a look at the configuration",
    "health": "a look at the health",
    "check_health": "a health check",
    "callbacks_waiting": "a look at the callbacks",
    "recorded_in": "a look at the recording",
    "figures": "a question for figures",
    "saved": "a save",
    "kept_use": "a question for the past use",
}
"""The name of each question in errors, by the name of its message in `licorne_v1.proto`."""
DOCUMENTS: Final = frozenset({"kept_use", "saved", "snapshot"})
"""The questions that are answered by a document, also to a client that reads values."""
T = TypeVar("T")


class QuestionSide(ABC):
    """The methods of `Scheduler` and of `RemoteScheduler` that answer questions.

    A question changes nothing. A predicate must not ask one, since its partition waits for it. Every
    method raises `RequestError` then, and if the scheduler has been stopped.
    """

    @abstractmethod
    def _question(self, question: v1.Question) -> Any:
        """Return the answer to a question."""

    def explain(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> Explanation:
        """Explain why an application waits: what blocks it, and what blocks each of its asks.

        Args:
            application_id: An application that is active, or was rejected or ended within three days.
            rm_id: Its resource manager; needed only where several have an application of that id.
            partition: The short name of its partition; needed in the same case.

        Raises:
            RequestError: No such application is known, or more than one.
        """
        asked = _explain(application_id, None, rm_id, partition)
        explanation: Explanation = self._question(v1.Question(explain=asked))
        return explanation

    def explain_ask(
        self,
        application_id: str,
        allocation_key: str,
        *,
        rm_id: str | None = None,
        partition: str | None = None,
    ) -> Explanation:
        """Explain one ask of an application, waiting or placed; the explanation has this ask only.

        Raises:
            RequestError: No such application or ask is known, or more than one application.
        """
        check_type("allocation_key", allocation_key, str)
        asked = _explain(application_id, allocation_key, rm_id, partition)
        explanation: Explanation = self._question(v1.Question(explain=asked))
        return explanation

    def would_preempt(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> tuple[Prospect, ...]:
        """Return who would be preempted for what an application waits for, if that was decided now.

        The resource manager's predicates are not asked.

        Raises:
            RequestError: The partition does not exist.
        """
        asked = _explain(application_id, None, rm_id, partition)
        prospects: tuple[Prospect, ...] = self._question(v1.Question(would_preempt=asked))
        return prospects

    def queue_and_user(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> QueueAndUser | None:
        """Return the queue that placement put an application in, and its user; `None` if it is not known.

        Raises:
            RequestError: The partition does not exist.
        """
        asked = _explain(application_id, None, rm_id, partition)
        found: QueueAndUser | None = self._question(v1.Question(queue_and_user=asked))
        return found

    def dry_run(
        self,
        *,
        application: si.AddApplicationRequest | None = None,
        ask: si.Allocation | None = None,
        rm_id: str | None = None,
    ) -> DryRun:
        """Find out where a new application, or a new ask, would go if it came now; nothing changes.

        The RM's predicates are not asked: they do not know an ask that has not been made.

        Args:
            application: A new application, or `None` for an ask of one that is active.
            ask: A new ask; with a new application it is its first one.
            rm_id: The resource manager that would send them; needed only where several have registered.

        Raises:
            RequestError: Neither is given, they do not belong together, or no partition knows them.
        """
        if application is not None:
            check_message("application", application, si.AddApplicationRequest)
        if ask is not None:
            check_message("ask", ask, si.Allocation)
        check_type("rm_id", rm_id, str, type(None))
        asked = v1.DryRun(application=application, ask=ask, rm_id=rm_id)
        run: DryRun = self._question(v1.Question(dry_run=asked))
        return run

    def next_asks(
        self, count: int = 20, *, rm_id: str | None = None, partition: str | None = None
    ) -> tuple[NextAsks, ...]:
        """Return the asks that the next cycles of each partition would try, in order.

        Args:
            count: How many of each partition at most, from 1 to 250.
            rm_id: The partitions of this resource manager; by default of all.
            partition: Those with this name, short or full; by default all.

        Raises:
            RequestError: The count is out of range; or the partition does not exist.
        """
        check_type("count", count, int)
        check_type("rm_id", rm_id, str, type(None))
        check_type("partition", partition, str, type(None))
        if not 1 <= count <= NEXT_ASKS_MAX:
            raise RequestError(f"count={count} is not from 1 to {NEXT_ASKS_MAX}")
        asked = v1.NextAsks(count=count, rm_id=rm_id, partition=partition)
        found: tuple[NextAsks, ...] = self._question(v1.Question(next_asks=asked))
        return found

    def snapshot(self, *, rm_id: str | None = None) -> Document:
        """Return the documents of all partitions, or of those of one RM, as the REST interface shows them.

        Each partition is shown as of one moment, without those that end meanwhile.
        """
        document: Document = self._question(v1.Question(snapshot=_snapshot(rm_id)))
        return document

    def saved(self, *, rm_id: str | None = None) -> Document:
        """Return what all partitions have, or those of one RM, as the requests that make it again.

        Each partition is as of one moment. `licorne save` makes a transcript of the document, see
        `docs/simulation.md`, which lists what it lacks.

        Raises:
            RequestError: No such resource manager has registered.
        """
        document: Document = self._question(v1.Question(saved=_snapshot(rm_id)))
        return document

    def kept_use(self, *, rm_id: str | None = None) -> Document:
        """Return what queues and users have used, as a usage file has it, see `docs/fair-share.md`.

        Of all partitions or of those of one RM, also of those that are not here now. The scheduler keeps it:
        a partition that is made again continues from it.
        """
        document: Document = self._question(v1.Question(kept_use=_snapshot(rm_id)))
        return document

    def resource_managers(self) -> tuple[ManagerStatus, ...]:
        """Return the state of each resource manager that has registered, sorted by id."""
        known: tuple[ManagerStatus, ...] = self._question(v1.Question(resource_managers=v1.Empty()))
        return known

    def callbacks_waiting(self, rm_id: str) -> int:
        """Return how many callbacks of a resource manager wait to be called; 0 for one that is not known."""
        waiting: int = self._question(v1.Question(callbacks_waiting=_manager_asked(rm_id)))
        return waiting

    def quarantined(self) -> tuple[Quarantined, ...]:
        """Return the applications and nodes that broke and are excluded from scheduling, by partition.

        Each is a bug of ours: please report it. Removing the application or node ends its quarantine.
        """
        found: tuple[Quarantined, ...] = self._question(v1.Question(quarantined=v1.Empty()))
        return found

    def configuration_text(self, rm_id: str) -> str:
        """Return the text of the queues that a resource manager runs with, empty for one that is unknown."""
        text: str = self._question(v1.Question(configuration_text=_manager_asked(rm_id)))
        return text

    def extra_configuration(self, rm_id: str) -> ExtraConfig:
        """Return the settings of a resource manager that are not in its queues, and are in effect now.

        Raises:
            RequestError: No such resource manager has registered.
        """
        check_type("rm_id", rm_id, str)
        found: ExtraConfig = self._question(
            v1.Question(extra_configuration=v1.ExtraConfiguration(rm_id=rm_id))
        )
        return found

    def health(self) -> HealthReport | None:
        """Return the report of the last health check, `None` before the first one."""
        report: HealthReport | None = self._question(v1.Question(health=v1.Empty()))
        return report

    def check_health(self) -> HealthReport:
        """Check the health now; `health` returns the report from now on."""
        report: HealthReport = self._question(v1.Question(check_health=v1.Empty()))
        return report

    def figures(self) -> SchedulerFigures:
        """Return all that its metrics are made of, each partition as of one moment."""
        figures: SchedulerFigures = self._question(v1.Question(figures=v1.Empty()))
        return figures

    @property
    def recorded_in(self) -> Path | None:
        """The folder of the scheduler's recording, on its machine; `None` if nothing is recorded."""
        folder: str | None = self._question(v1.Question(recorded_in=v1.Empty()))
        return None if folder is None else Path(folder)

    def validate(self) -> None:
        """Assert every invariant of every partition.

        Raises:
            AssertionError: One does not hold; the message names it.
        """
        self._question(v1.Question(validate=v1.Empty()))


def _explain(
    application_id: str, allocation_key: str | None, rm_id: str | None, partition: str | None
) -> v1.Explain:
    check_type("application_id", application_id, str)
    check_type("rm_id", rm_id, str, type(None))
    check_type("partition", partition, str, type(None))
    return v1.Explain(
        application_id=application_id, allocation_key=allocation_key, rm_id=rm_id, partition=partition
    )


def _snapshot(rm_id: str | None) -> v1.Snapshot:
    check_type("rm_id", rm_id, str, type(None))
    return v1.Snapshot(rm_id=rm_id)


def _manager_asked(rm_id: str) -> v1.ManagerAsked:
    check_type("rm_id", rm_id, str)
    return v1.ManagerAsked(rm_id=rm_id)


class QueueAndUser(NamedTuple):
    """The queue that an application was placed in, its user, and the groups that were found of that user."""

    queue: str
    user: str
    groups: tuple[str, ...]


class NotKnownError(RequestError):
    """A question about something that the scheduler does not know."""


class UnavailableError(RequestError):
    """A request that cannot be carried out now, for reasons outside of it: the same may succeed later."""


class StoppedError(UnavailableError):
    """A call of a scheduler that has been stopped."""


def ask_each(
    partitions: Sequence[Partition], question: Callable[[Partition], T]
) -> list[tuple[Partition, T]]:
    """Put a question to each partition; one that has ended meanwhile is left out."""
    answers = []
    for partition in partitions:
        with suppress(ActorEndedError):
            answers.append((partition, question(partition)))
    return answers


def matching(partitions: Sequence[Partition], rm_id: str | None, name: str | None) -> list[Partition]:
    """Return the partitions of an RM that have a name, short or full; `None` for either is any.

    Raises:
        NotKnownError: It does not exist.
    """
    found = [
        partition
        for partition in partitions
        if rm_id in (None, partition.rm_id)
        and name in (None, short_partition_name(partition.name), partition.name)
    ]
    if not found:
        known = ", ".join(each.name for each in partitions if rm_id in (None, each.rm_id)) or "none"
        wanted = f"[{'any' if rm_id is None else rm_id}]{'any' if name is None else name}"
        raise NotKnownError(f"there is no partition {wanted}; the partitions are: {known}")
    return found
