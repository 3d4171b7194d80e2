"""The side of a scheduler that answers questions: why something waits, and where something would go.

A question changes nothing. It is put to the partitions it is about, which ask their applications and nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .questions import dry_run, explain, explain_ask, matching

if TYPE_CHECKING:
    from ..actors.engine import Engine
    from ..model.cluster import Cluster
    from ..model.explanation import Explanation
    from ..model.explanation.dry_run import DryRun
    from ..model.partition import Partition
    from .managers import Managers
    from .si import si_pb2 as si
    from .si.reading import RequestReader

__all__ = ["QuestionSide"]


class QuestionSide(ABC):
    """What `Scheduler` offers to those who ask; it has the rest."""

    _cluster: Cluster
    _engine: Engine
    _managers: Managers
    _reader: RequestReader

    @abstractmethod
    def _check_running(self) -> None:
        """Refuse a question to a scheduler that has been stopped."""

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
        return explain(self._matching("an explanation", rm_id, partition), application_id)

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
        partitions = self._matching("an explanation", rm_id, partition)
        return explain_ask(partitions, application_id, allocation_key)

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
        self._check_running()
        self._managers.judging.refuse("a dry run")
        manager = self._managers.get(self._managers.only_id() if rm_id is None else rm_id, "dry run")
        return dry_run(manager, self._reader, self._engine.blocking, application, ask)

    def _matching(self, question: str, rm_id: str | None, partition: str | None) -> list[Partition]:
        """Return the partitions that a question is for."""
        self._check_running()
        self._managers.judging.refuse(question)
        return matching(self._cluster.partitions(), rm_id, partition)
