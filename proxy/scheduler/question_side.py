"""The side of a scheduler that answers questions: why something waits, and where something would go.

A question changes nothing. It is put to the partitions it is about, which ask their applications and nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from ...actors.errors import ActorEndedError
from ...model.errors import RequestError
from .questions import dry_run, explain, explain_ask, matching, queue_and_user

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...actors.engine import Engine
    from ...model.cluster import Cluster
    from ...model.explanation import Explanation
    from ...model.explanation.dry_run import DryRun
    from ...model.partition import Partition
    from ..si import si_pb2 as si
    from ..si.reading import RequestReader
    from .managers import Managers
    from .questions import QueueAndUser

__all__ = ["QuestionSide"]

T = TypeVar("T")


class QuestionSide(ABC):
    """What `Scheduler` offers to those who ask; it has the rest."""

    _cluster: Cluster
    _engine: Engine
    _managers: Managers
    _reader: RequestReader

    @abstractmethod
    def _check_running(self) -> None:
        """Refuse a question to a scheduler that has been stopped."""

    @abstractmethod
    def _whole(self, function: Callable[[], T]) -> T:
        """Run what an interrupt must not tear apart."""

    def explain(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> Explanation:
        """Explain why an application waits: what stands in its way and in that of each of its asks.

        Args:
            application_id: An application that is active, or was rejected or ended within three days.
            rm_id: Its resource manager; needed only where several have an application of that id.
            partition: The short name of its partition; likewise.

        Raises:
            RequestError: No such application is known, or more than one; or a predicate asks.
        """
        return self._look(
            "an explanation", lambda known: explain(matching(known, rm_id, partition), application_id)
        )

    def explain_ask(
        self,
        application_id: str,
        allocation_key: str,
        *,
        rm_id: str | None = None,
        partition: str | None = None,
    ) -> Explanation:
        """Explain one ask of an application, waiting or placed: the explanation has no other.

        Raises:
            RequestError: No such application or ask is known, or more than one application.
        """
        return self._look(
            "an explanation",
            lambda known: explain_ask(matching(known, rm_id, partition), application_id, allocation_key),
        )

    def queue_and_user(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> QueueAndUser | None:
        """Return the queue that placement put an application in, and its user; `None` if nobody has it.

        Raises:
            RequestError: There is no such partition; or a predicate asks.
        """
        return self._look(
            "a look at an application",
            lambda known: queue_and_user(matching(known, rm_id, partition), application_id),
        )

    def dry_run(
        self,
        *,
        application: si.AddApplicationRequest | None = None,
        ask: si.Allocation | None = None,
        rm_id: str | None = None,
    ) -> DryRun:
        """Find out where a new application, or a new ask, would go if it came now; nothing comes.

        The RM's predicates are not asked: they do not know an ask that has not been made.

        Args:
            application: A new application, or `None` for an ask of one that is active.
            ask: A new ask; with a new application it is its first one.
            rm_id: The resource manager that would send them; needed only where several have registered.

        Raises:
            RequestError: Neither is given, they do not belong together, or nobody can be asked about them.
        """

        def run(_: Sequence[Partition]) -> DryRun:
            manager = self._managers.get(self._managers.only_id() if rm_id is None else rm_id, "dry run")
            return dry_run(manager, self._reader, self._engine.blocking, application, ask)

        return self._look("a dry run", run)

    def _look(self, question: str, look: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions.

        Raises:
            RequestError: the scheduler has been stopped, or a predicate asks.
        """
        self._check_running()
        self._managers.inside.refuse(question)
        try:
            return self._whole(lambda: look(self._cluster.partitions()))
        except ActorEndedError as error:
            self._check_running()
            raise RequestError(f"{question} met what has just ended: {error}") from error
