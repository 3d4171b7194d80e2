"""Questions about an application, put to the partitions that may know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.allocation import FOREIGN_TAG
from ..model.configuration.words import did_you_mean
from ..model.errors import RequestError
from ..model.messages import short_partition_name
from ..model.quarantine import BrokenKind
from .resolvers.look_up import with_groups
from .si import si_pb2 as si

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ..model.explanation import Explanation
    from ..model.explanation.dry_run import DryRun
    from ..model.messages import AllocationSubmission
    from ..model.partition import Partition
    from .managers import Manager
    from .si.reading import RequestReader

__all__ = ["dry_run", "explain", "explain_ask", "matching"]


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


def explain(partitions: Sequence[Partition], application_id: str) -> Explanation:
    """Return the explanation of an application.

    Raises:
        RequestError: None of the partitions knows it, or more than one do.
    """
    return _only(partitions, [entry.explain(application_id) for entry in partitions], application_id)


def explain_ask(partitions: Sequence[Partition], application_id: str, allocation_key: str) -> Explanation:
    """Return the explanation of one ask, or of an allocation that was a victim and is gone.

    Raises:
        RequestError: None of the partitions knows the application, more than one do, or it has no such ask.
    """
    found = [entry.explain_ask(application_id, allocation_key) for entry in partitions]
    explanation = _only(partitions, found, application_id)
    if explanation.ask(allocation_key) is None and not explanation.preemptions_of(allocation_key):
        keys = [ask.allocation_key for ask in explain(partitions, application_id).asks]
        hint = did_you_mean(allocation_key, keys)
        raise RequestError(f"application {application_id} has no ask or allocation {allocation_key!r}{hint}")
    return explanation


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
    partitions: Sequence[Partition], explanations: Sequence[Explanation | None], application_id: str
) -> Explanation:
    """Return the one explanation that there is."""
    for broken in (entry for partition in partitions for entry in partition.quarantined()):
        # Before all others: the partition may know an earlier application of that id.
        if (broken.kind, broken.name) == (BrokenKind.APPLICATION, application_id):
            raise RequestError(
                f"application {application_id!r} is quarantined: {broken.reason}; it broke by a bug "
                "of Licorne, and nothing is scheduled with it any more: "
                "please report it, and remove it to let it go"
            )
    found = [explanation for explanation in explanations if explanation is not None]
    if not found:
        known = [name for entry in partitions for name in entry.application_ids()]
        hint = did_you_mean(application_id, known)
        raise RequestError(
            f"application {application_id!r} is not known: it was never submitted, was removed, "
            f"or ended more than three days ago{hint}"
        )
    if len(found) > 1:
        names = ", ".join(explanation.partition for explanation in found)
        raise RequestError(f"application {application_id!r} is in several partitions, name one: {names}")
    return found[0]
