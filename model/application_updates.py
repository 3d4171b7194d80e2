"""New applications and applications that the RM removes, carried out on a partition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from .application import Application
from .errors import LicorneError
from .gang import DEFAULT_PLACEHOLDER_TIMEOUT_MS, GangSettings
from .messages import AllocationsReleased, ApplicationsAnswered, Rejection, Release, TerminationType
from .object_state import ObjectState
from .placement.requests import PlacementRefusal, PlacementRequest
from .quantities import INT64_MAX
from .queue_properties import SortPolicy
from .queue_quota import maximum_below_root
from .queue_tree import RECOVERY_QUEUE
from .resource_comparisons import is_zero
from .resource_texts import describe, resource_from_json
from .resources import EMPTY, fits_undefined_unlimited, strictly_greater_than_zero
from .user_resolution import resolve
from .users import User

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .allocation import Allocation
    from .messages import ApplicationRemoval, ApplicationSubmission
    from .partition_state import PartitionState
    from .queue import Queue
    from .resources import Resource

__all__ = ["add_applications", "remove_application"]

CREATE_FORCE_TAG: Final = "application.create.force"
APPLICATION_CREATION_TAG: Final = "yunikorn.apache.org/creationTime"
QUOTA_TAG: Final = "namespace.resourcequota"
GUARANTEED_TAG: Final = "namespace.resourceguaranteed"
APPLICATIONS_TAG: Final = "namespace.resourcemaxapps"
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_UINT64_MAX: Final = 2**64 - 1
_MS_NS: Final = 1_000_000
_SECOND_NS: Final = 1_000_000_000


def add_applications(
    state: PartitionState,
    submissions: Sequence[ApplicationSubmission],
) -> ApplicationsAnswered:
    """Take new applications in, in order; return which were accepted and why others were not."""
    accepted: list[str] = []
    rejected: list[Rejection] = []
    for submission in submissions:
        reason = _add(state, submission)
        if reason is None:
            accepted.append(submission.application_id)
        else:
            rejected.append(Rejection(submission.application_id, reason))
    return ApplicationsAnswered(tuple(accepted), tuple(rejected))


def _add(state: PartitionState, submission: ApplicationSubmission) -> str | None:
    forced = _tag(submission, CREATE_FORCE_TAG) in _TRUE
    user = resolve(
        submission.user,
        submission.groups,
        forced=forced,
        resolver=state.around.resolver,
    )
    if isinstance(user, str):
        return _reject(state, submission, User(""), submission.queue_name, user)
    reason = _closed(state, submission)
    if reason is not None:
        return _reject(state, submission, user, submission.queue_name, reason)
    queue = _choose_queue(state, submission, user, forced=forced)
    if isinstance(queue, _Refused):
        return _reject(state, submission, user, queue.path, queue.reason)
    _take_quota_tags(state, submission, queue)
    reason = _gang_refusal(submission, queue)
    if reason is not None:
        return _reject(state, submission, user, queue.path, reason)
    application = _application(state, submission, user, queue.path)
    state.seat_application(application, state.around.adopt_application(application), queue)
    return None


class _Refused(NamedTuple):
    """No queue for an application: where it had come to, and why it goes no further."""

    path: str
    reason: str


def _closed(state: PartitionState, submission: ApplicationSubmission) -> str | None:
    """Return why the partition takes no application of that id, `None` if it does."""
    name = submission.application_id
    if state.state is not ObjectState.ACTIVE:
        return f"partition {state.name} is stopped cannot add a new application {name}"
    if name in state.seats:
        return f"adding application {name} to partition {state.name}, but application already existed"
    return None


def _choose_queue(
    state: PartitionState,
    submission: ApplicationSubmission,
    user: User,
    *,
    forced: bool,
) -> Queue | _Refused:
    """Find or create the leaf for an application."""
    name = submission.application_id
    request = PlacementRequest(
        queue_name=submission.queue_name,
        user=user,
        tags=submission.tags,
        forced=forced,
    )
    placed = state.rules.place(request, state.tree)
    if isinstance(placed, PlacementRefusal):
        return _Refused("", f"failed to place application {name}: {placed.reason}")
    path = placed.queue_path
    queue = state.tree.find(path)
    if queue is None and forced and path == RECOVERY_QUEUE:
        queue = state.tree.recovery_queue()
    if queue is None:
        created = state.tree.create(path)
        if isinstance(created, str):
            return _Refused(
                path, f"failed to create rule based queue {path} for application {name}\n{created}"
            )
        queue = created
        state.clean_later()
    if not queue.is_leaf:
        return _Refused(path, f"failed to find queue {path} for application {name}")
    return queue


def _gang_refusal(submission: ApplicationSubmission, queue: Queue) -> str | None:
    wanted = submission.placeholder_ask
    if is_zero(wanted):
        return None
    name = submission.application_id
    if queue.settings.application_sort_policy is not SortPolicy.FIFO:
        return (
            f"queue {queue.path} cannot run application {name} with task group request: unsupported sort type"
        )
    limit = maximum_below_root(queue)
    if not fits_undefined_unlimited(limit, wanted):
        return (
            f"queue {queue.path} cannot fit application {name}: task group request {describe(wanted)} "
            f"larger than max queue allocation {describe(limit)}"
        )
    return None


def _take_quota_tags(state: PartitionState, submission: ApplicationSubmission, queue: Queue) -> None:
    """Give a dynamic leaf the quotas of its namespace; the last application to come has the say.

    The tags of an application are all that its namespace says: a quota that it no longer names is gone.
    """
    if queue.managed or queue.path == RECOVERY_QUEUE:
        return
    maximum = _quota(submission, QUOTA_TAG)
    guaranteed = _quota(submission, GUARANTEED_TAG)
    if maximum is not None or guaranteed is not None:
        queue.set_quota(guaranteed, maximum)
        state.tree.limits_changed()
        state.changes += 1
    count = _tag(submission, APPLICATIONS_TAG)
    if re.fullmatch(r"[0-9]+", count) and int(count) <= _UINT64_MAX:
        queue.max_applications = int(count)


def _quota(submission: ApplicationSubmission, tag: str) -> Resource | None:
    text = _tag(submission, tag)
    if not text:
        return None
    try:
        resource = resource_from_json(text)
    except LicorneError:
        return None
    return resource if strictly_greater_than_zero(resource) else None


def _application(
    state: PartitionState,
    submission: ApplicationSubmission,
    user: User,
    queue_path: str,
) -> Application:
    timeout_ms = submission.execution_timeout_ms
    if not 0 < timeout_ms <= INT64_MAX // _MS_NS:
        timeout_ms = DEFAULT_PLACEHOLDER_TIMEOUT_MS
    created = submission.tags.get(APPLICATION_CREATION_TAG, "")
    return Application(
        submission.application_id,
        partition=state.name,
        queue_path=queue_path,
        user=user,
        tags=submission.tags,
        submitted_at_ns=state.now_ns(),
        gang_settings=GangSettings(
            placeholder_ask=submission.placeholder_ask or EMPTY,
            hard=submission.gang_scheduling_style == "Hard",
            timeout_ms=timeout_ms,
            created_at_ns=int(created) * _SECOND_NS if re.fullmatch(r"[0-9]{1,10}", created) else None,
        ),
    )


def _reject(
    state: PartitionState,
    submission: ApplicationSubmission,
    user: User,
    queue_path: str,
    reason: str,
) -> str:
    """Keep a rejected application to be looked at, unless the partition has ended; return the reason."""
    if state.state is ObjectState.STOPPED:
        return reason
    application = _application(state, submission, user, queue_path)
    state.keep_rejected(application, state.around.adopt_application(application), reason)
    return reason


def _tag(submission: ApplicationSubmission, name: str) -> str:
    """Return a tag whatever the case of its name."""
    return next((text for key, text in submission.tags.items() if key.lower() == name), "")


def remove_application(state: PartitionState, removal: ApplicationRemoval) -> None:
    """Take an application away with all that it has; an unknown one is gone already."""
    seat = state.seats.get(removal.application_id)
    if seat is None:
        return
    now_ns = state.now_ns()
    answer = seat.application.remove_all_asks(now_ns)
    for record in answer.asks:
        if not record.placed:
            state.remove_pending(seat, record.ask)
    state.drop_reservations(answer.reservations)
    state.settle(seat, answer)
    if removal.application_id in state.seats:
        answer = seat.application.remove_all_allocations(now_ns, leaving=True)
        for allocation in (*answer.allocations, *answer.swaps):
            state.leave_node(allocation)
        state.count_ended(seat, answer)
        state.settle(seat, answer)
        _announce_end(state, removal.application_id, answer.allocations)
    state.forget(seat)


def _announce_end(state: PartitionState, application_id: str, allocations: Sequence[Allocation]) -> None:
    releases = [
        Release(
            partition=state.name,
            application_id=application_id,
            allocation_key=allocation.ask.allocation_key,
            termination=TerminationType.STOPPED_BY_RM,
            message=f"Application {application_id} Removed",
        )
        for allocation in allocations
    ]
    if releases:
        state.around.announce(AllocationsReleased(tuple(releases)))
