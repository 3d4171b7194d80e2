"""Questions about an application, put to the partitions that may know it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...actors.errors import ActorEndedError
from ...model.configuration.words import did_you_mean
from ...model.errors import RequestError
from ...model.requests.quarantining import BrokenKind
from ...model.values.allocation import FOREIGN_TAG
from ...model.values.messages import short_partition_name
from ..resolvers.look_up import with_groups
from ..si import si_pb2 as si

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ...model.explanation import Explanation
    from ...model.explanation.dry_run import DryRun
    from ...model.partition import Partition
    from ...model.requests.quarantining import Quarantined
    from ...model.values.messages import AllocationSubmission
    from ..si.reading import RequestReader
    from .managers import Manager

__all__ = [
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
    """Return the partitions of a resource manager with a short name; `None` for either is any.

    Raises:
        RequestError: There is none.
    """
    found = [
        partition
        for partition in partitions
        if rm_id in (None, partition.rm_id) and name in (None, short_partition_name(partition.name))
    ]
    if not found:
        known = ", ".join(partition.name for partition in partitions) or "none"
        wanted = f"[{'any' if rm_id is None else rm_id}]{'any' if name is None else name}"
        raise RequestError(f"there is no partition {wanted}; the partitions are: {known}")
    return found


def quarantined(partitions: Sequence[Partition]) -> tuple[Quarantined, ...]:
    """Return what has broken, by partition."""
    return tuple(entry for _, entries in ask_each(partitions, _quarantined) for entry in entries)


def explain(partitions: Sequence[Partition], application_id: str) -> Explanation:
    """Return the explanation of an application.

    Raises:
        RequestError: None of the partitions knows it, or more than one do.
    """
    return _only(partitions, lambda entry: entry.explain(application_id), application_id)


def explain_ask(partitions: Sequence[Partition], application_id: str, allocation_key: str) -> Explanation:
    """Return the explanation of one ask, or of an allocation that was a victim and is gone.

    Raises:
        RequestError: None of the partitions knows the application, more than one do, or it has no such ask.
    """
    explanation = _only(
        partitions, lambda entry: entry.explain_ask(application_id, allocation_key), application_id
    )
    if explanation.ask(allocation_key) is None and not explanation.preemptions_of(allocation_key):
        keys = [ask.allocation_key for ask in explain(partitions, application_id).asks]
        hint = did_you_mean(allocation_key, keys)
        raise RequestError(f"application {application_id} has no ask or allocation {allocation_key!r}{hint}")
    return explanation


def queue_and_user(partitions: Sequence[Partition], application_id: str) -> QueueAndUser | None:
    """Return where an application is and whose, `None` if none of the partitions has it."""
    # No ask has an empty key: none is judged.
    for _, known in ask_each(partitions, lambda partition: partition.explain_ask(application_id, "")):
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
        RequestError: Neither is given, they do not belong together, or nobody can be asked about them.
    """
    wanted = _read_ask(manager, reader, ask) if ask is not None else None
    if application is None:
        if wanted is None:
            raise RequestError("a dry run needs an application, an ask, or both")
        run = _partition_of(manager, wanted.partition).dry_run_ask(wanted)
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
    return partition.dry_run_application(submission, wanted)


def _read_ask(manager: Manager, reader: RequestReader, ask: si.Allocation) -> AllocationSubmission:
    (wanted,) = reader.allocation_submissions(si.AllocationRequest(rmID=manager.rm_id, allocations=[ask]))
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
        raise RequestError(
            f"application {application_id!r} is not known: it was never submitted, was removed, "
            f"or ended more than three days ago{hint}"
        )
    if len(found) > 1:
        names = ", ".join(explanation.partition for explanation in found)
        raise RequestError(f"application {application_id!r} is in several partitions, name one: {names}")
    return found[0]


def _quarantined(partition: Partition) -> tuple[Quarantined, ...]:
    return partition.quarantined()


def _application_ids(partition: Partition) -> tuple[str, ...]:
    return partition.application_ids()
