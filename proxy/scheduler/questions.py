"""Questions: why something waits, and where something would go.

A question changes nothing. The partitions that it is about answer it; they ask their applications and nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...actors.errors import ActorEndedError
from ...model.configuration.words import did_you_mean
from ...model.errors import RequestError
from ...model.explanation import Explanation
from ...model.explanation.dry_run import DryRun
from ...model.explanation.next_asks import NEXT_ASKS_MAX, NextAsks
from ...model.explanation.victims import Prospect
from ...model.partition import Partition
from ...model.state.quarantine import BrokenKind, Quarantined
from ...model.values.allocation import FOREIGN_TAG
from ...model.values.messages import AllocationSubmission
from ..resolvers.look_up import with_groups
from ..si import si_pb2 as si
from ..si.older_answers import Generation
from ..si.reading import RequestReader
from .asking import NotKnownError, ask_each, matching
from .live_view import LiveView
from .managers import Manager, Managers

if TYPE_CHECKING:
    from ...actors.engine import Engine
    from ...model.cluster import Cluster

__all__ = [
    "QuestionSide",
    "QueueAndUser",
    "ask_each",
    "dry_run",
    "explain",
    "explain_ask",
    "matching",
    "quarantined",
    "queue_and_user",
]

T = TypeVar("T")


class QueueAndUser(NamedTuple):
    """The queue that an application was placed in, its user, and the groups that were found of that user."""

    queue: str
    user: str
    groups: tuple[str, ...]


class QuestionSide(ABC):
    """The methods of `Scheduler` that answer questions; `Scheduler` has the rest."""

    _cluster: Cluster
    _engine: Engine
    _managers: Managers
    _reader: RequestReader

    @abstractmethod
    def _check_running(self) -> None:
        """Refuse a question to a scheduler that has been stopped."""

    @abstractmethod
    def _uninterrupted(self, function: Callable[[], T]) -> T:
        """Run a function that an interrupt must not stop half-way."""

    def explain(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> Explanation:
        """Explain why an application waits: what blocks it, and what blocks each of its asks.

        Args:
            application_id: An application that is active, or was rejected or ended within three days.
            rm_id: Its resource manager; needed only where several have an application of that id.
            partition: The short name of its partition; likewise.

        Raises:
            RequestError: No such application is known, or more than one; or a predicate asks.
        """
        return self._answer_question(
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
        """Explain one ask of an application, waiting or placed; the explanation has this ask only.

        Raises:
            RequestError: No such application or ask is known, or more than one application.
        """
        return self._answer_question(
            "an explanation",
            lambda known: explain_ask(matching(known, rm_id, partition), application_id, allocation_key),
        )

    def would_preempt(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> tuple[Prospect, ...]:
        """Return who would be preempted for what an application waits for, if that was decided now.

        The resource manager's predicates are not asked.

        Raises:
            RequestError: There is no such partition; or a predicate asks.
        """

        def answer(known: Sequence[Partition]) -> tuple[Prospect, ...]:
            found = ask_each(
                matching(known, rm_id, partition), lambda each: each.monitor.prospects(application_id)
            )
            return tuple(prospect for _, prospects in found for prospect in prospects)

        return self._answer_question("a look at what would be preempted", answer)

    def queue_and_user(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> QueueAndUser | None:
        """Return the queue that placement put an application in, and its user; `None` if it is not known.

        Raises:
            RequestError: There is no such partition; or a predicate asks.
        """
        return self._answer_question(
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
        """Find out where a new application, or a new ask, would go if it came now; nothing changes.

        The RM's predicates are not asked: they do not know an ask that has not been made.

        Args:
            application: A new application, or `None` for an ask of one that is active.
            ask: A new ask; with a new application it is its first one.
            rm_id: The resource manager that would send them; needed only where several have registered.

        Raises:
            RequestError: Neither is given, they do not belong together, or no partition knows them.
        """

        def run(_: Sequence[Partition]) -> DryRun:
            manager = self._managers.get(self._managers.only_id() if rm_id is None else rm_id, "dry run")
            return dry_run(manager, self._reader, self._engine.blocking, application, ask)

        return self._answer_question("a dry run", run)

    def next_asks(
        self, count: int = 20, *, rm_id: str | None = None, partition: str | None = None
    ) -> tuple[NextAsks, ...]:
        """Return the asks that the next cycles of each partition would try, in order.

        Args:
            count: How many of each partition at most, from 1 to 250.
            rm_id: The partitions of this resource manager; of all unless said otherwise.
            partition: Those with this name, short or full; likewise.

        Raises:
            RequestError: The count is out of range; there is no such partition; or a predicate asks.
        """
        if not 1 <= count <= NEXT_ASKS_MAX:
            raise RequestError(f"count={count} is not from 1 to {NEXT_ASKS_MAX}")

        def answer(known: Sequence[Partition]) -> tuple[NextAsks, ...]:
            found = ask_each(matching(known, rm_id, partition), lambda each: each.monitor.next_asks(count))
            return tuple(asks for _, asks in found)

        return self._answer_question("a look at the next asks", answer)

    def configuration_text(self, rm_id: str) -> str:
        """Return the text of the queues that a resource manager runs with, empty for one that is unknown.

        Raises:
            RequestError: The scheduler has been stopped, or a predicate asks.
        """
        return self._answer_question(
            "a look at the configuration", lambda _: self._cluster.configuration_text(rm_id)
        )

    def live_view(self) -> LiveView:
        """Return what watchers read the state with, see `docs/page.md`."""
        return LiveView(self._answer_question, self._managers.life_of)

    def _answer_question(self, question: str, answer: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions.

        Raises:
            RequestError: the scheduler has been stopped, or a predicate asks.
        """
        self._check_running()
        self._managers.callback_threads.refuse(question)
        try:
            return self._uninterrupted(
                lambda: answer(self._managers.running_first(self._cluster.partitions()))
            )
        except ActorEndedError as error:
            self._check_running()
            raise RequestError(f"{question} met what has just ended: {error}") from error


def quarantined(partitions: Sequence[Partition]) -> tuple[Quarantined, ...]:
    """Return what has broken, by partition."""
    return tuple(entry for _, entries in ask_each(partitions, _quarantined) for entry in entries)


def explain(partitions: Sequence[Partition], application_id: str) -> Explanation:
    """Return the explanation of an application.

    Raises:
        RequestError: None of the partitions knows it, or more than one do.
    """
    return _only(partitions, lambda entry: entry.reports.explain(application_id), application_id)


def explain_ask(partitions: Sequence[Partition], application_id: str, allocation_key: str) -> Explanation:
    """Return the explanation of one ask, or of an allocation that was a victim and is gone.

    Raises:
        RequestError: None of the partitions knows the application, more than one do, or it has no such ask.
    """
    explanation = _only(
        partitions, lambda entry: entry.reports.explain_ask(application_id, allocation_key), application_id
    )
    if explanation.ask(allocation_key) is None and not explanation.preemptions_of(allocation_key):
        keys = [ask.allocation_key for ask in explain(partitions, application_id).asks]
        hint = did_you_mean(allocation_key, keys)
        raise NotKnownError(f"application {application_id} has no ask or allocation {allocation_key!r}{hint}")
    return explanation


def queue_and_user(partitions: Sequence[Partition], application_id: str) -> QueueAndUser | None:
    """Return where an application is and whose, `None` if no partition has it."""
    # No ask has an empty key: only the application itself is explained.
    for _, known in ask_each(partitions, lambda partition: partition.reports.explain_ask(application_id, "")):
        if known is not None and known.queue_path:
            return QueueAndUser(known.queue_path, known.user.name, known.user.groups)
    return None


def dry_run(
    manager: Manager,
    reader: RequestReader,
    blocking: Callable[[], AbstractContextManager[None]],
    application: si.AddApplicationRequest | None,
    ask: si.Allocation | None,
) -> DryRun:
    """Put an application, or an ask, to the partition that it would go to.

    Raises:
        RequestError: Neither is given, they do not belong together, or no partition knows them.
    """
    wanted = _read_ask(manager, reader, ask) if ask is not None else None
    if application is None:
        if wanted is None:
            raise RequestError("a dry run needs an application, an ask, or both")
        run = _partition_of(manager, wanted.partition).reports.dry_run_ask(wanted)
        if run is None:
            raise RequestError(f"application {wanted.application_id!r} is not active in {wanted.partition}")
        return run
    (submission,) = reader.application_submissions(
        si.ApplicationRequest(rmID=manager.rm_id, new=[application])
    )
    if wanted is not None and wanted.application_id != submission.application_id:
        raise RequestError(
            f"ask {wanted.allocation_key!r} is of application {wanted.application_id!r}, "
            f"not of {submission.application_id!r}"
        )
    partition = _partition_of(manager, submission.partition)
    (submission,) = with_groups((submission,), manager.resolver(submission.partition), blocking)
    return partition.reports.dry_run_application(submission, wanted)


def _read_ask(manager: Manager, reader: RequestReader, ask: si.Allocation) -> AllocationSubmission:
    request = si.AllocationRequest(rmID=manager.rm_id, allocations=[ask])
    (wanted,) = reader.allocation_submissions(request, Generation())
    if wanted.node_id or FOREIGN_TAG in wanted.tags:
        raise RequestError(f"a dry run is for asks: {wanted.allocation_key!r} is on a node already")
    return wanted


def _partition_of(manager: Manager, name: str) -> Partition:
    partition = manager.partitions.get(name)
    if partition is None:
        known = ", ".join(manager.partitions) or "none"
        raise RequestError(f"there is no partition {name}; the partitions are: {known}")
    return partition


def _only(
    partitions: Sequence[Partition], question: Callable[[Partition], Explanation | None], application_id: str
) -> Explanation:
    """Return the one explanation that there is."""
    answers = ask_each(partitions, question)
    for broken in quarantined(partitions):
        # Before all others: the partition may know an earlier application of that id.
        if (broken.kind, broken.name) == (BrokenKind.APPLICATION, application_id):
            raise RequestError(
                f"application {application_id!r} is quarantined: {broken.reason}; it broke by a bug "
                "of Licorne, and nothing is scheduled with it any more: "
                "please report it, and remove it to let it go"
            )
    found = [explanation for _, explanation in answers if explanation is not None]
    if not found:
        known = [name for _, names in ask_each(partitions, _application_ids) for name in names]
        hint = did_you_mean(application_id, known)
        raise NotKnownError(
            f"application {application_id!r} is not known: it was never submitted, was removed, "
            f"or ended more than three days ago{hint}"
        )
    if len(found) > 1:
        names = ", ".join(explanation.partition for explanation in found)
        raise RequestError(f"application {application_id!r} is in several partitions, name one: {names}")
    return found[0]


def _quarantined(partition: Partition) -> tuple[Quarantined, ...]:
    return partition.reports.quarantined()


def _application_ids(partition: Partition) -> tuple[str, ...]:
    return partition.reports.application_ids()
