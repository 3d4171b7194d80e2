"""What the submission of an application says about its gang: its settings, and why it is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..applications.gang import DEFAULT_PLACEHOLDER_TIMEOUT_MS, GangSettings
from ..configuration.durations import DurationError, parse_duration_ns
from ..configuration.policies import GangPlacing
from ..configuration.queue_properties import read_gang_placing
from ..queues.queue import Queue
from ..queues.quota import maximum_below_root
from ..resources.comparisons import is_zero
from ..resources.resource import EMPTY, Resource, fits_undefined_unlimited
from ..resources.texts import describe, negative_text
from ..state.partition_state import PartitionState
from ..values.messages import ApplicationSubmission
from ..values.rejections import RejectionCode, RejectionReason, invalid
from ..values.users import User

APPLICATION_CREATION_TAG: Final = "yunikorn.apache.org/creationTime"
GANG_PLACING_TAG: Final = "gangPlacing"
GANG_SIZE_TAG: Final = "gangSize"
GANG_WAIT_TAG: Final = "gangWait"
_GANG_TAGS: Final = frozenset({GANG_PLACING_TAG, GANG_SIZE_TAG, GANG_WAIT_TAG})
_NO_GANG: Final = GangSettings()
_SECOND_NS: Final = 1_000_000_000
_SIZE_MAX: Final = 1_000_000


def gang_refusal(submission: ApplicationSubmission, queue: Queue) -> RejectionReason | None:
    """Return why a queue cannot run the gang of an application, `None` if it can."""
    refusal = invalid(_tags_refusal(submission))
    wanted = submission.placeholder_ask
    if refusal is not None or is_zero(wanted):
        return refusal
    name = submission.application_id
    refusal = invalid(negative_text(f"the placeholder ask of application {name}", wanted))
    if refusal is not None:
        return refusal
    if not queue.settings.application_sort_policy.takes_placeholders:
        text = (
            f"queue {queue.path} cannot run application {name} with task group request: unsupported sort type"
        )
        return RejectionReason(RejectionCode.NO_QUEUE, text)
    limit = maximum_below_root(queue)
    if not fits_undefined_unlimited(limit, wanted):
        text = (
            f"queue {queue.path} cannot fit application {name}: task group request {describe(wanted)} "
            f"larger than max queue allocation {describe(limit)}"
        )
        return RejectionReason(RejectionCode.OVER_MAXIMUM, text)
    return None


def gang_sum_refusal(
    state: PartitionState, whose: str, user: User, queue: Queue, total: Resource
) -> RejectionReason | None:
    """Return why a gang that is placed whole can never get what it needs in all, `None` if it can.

    What is in use does not matter, nor which nodes there are: only the maxima and limits of now.

    Args:
        state: The partition.
        whose: The id of its application.
        user: The user of that.
        queue: Its queue.
        total: What its members need together.
    """
    needs = f"the gang of application {whose} needs {describe(total)} at once, more than"
    limit = maximum_below_root(queue)
    if not fits_undefined_unlimited(limit, total):
        text = f"{needs} the maximum {describe(limit)} of queue {queue.path}"
        return RejectionReason(RejectionCode.OVER_MAXIMUM, text)
    for blocker in state.limits.blockers(queue.path, whose, user, total, if_unused=True):
        text = (
            f"{needs} the limit {describe(blocker.limit)} of {blocker.kind} {blocker.name} "
            f"in queue {blocker.queue_path}"
        )
        return RejectionReason(RejectionCode.OVER_MAXIMUM, text)
    return None


def _tags_refusal(submission: ApplicationSubmission) -> str | None:
    """Return which tag of a gang makes no sense, and why; `None` if all do."""
    tags = submission.tags
    if _GANG_TAGS.isdisjoint(tags):
        return None
    whose = f"of application {submission.application_id}"
    forms = {
        GANG_PLACING_TAG: (_placing_of(tags), "whole or stepwise"),
        GANG_SIZE_TAG: (_size_of(tags), f"a number from 1 to {_SIZE_MAX}"),
        GANG_WAIT_TAG: (_wait_ns_of(tags), "a duration above zero, as 30m is"),
    }
    for tag, (value, form) in forms.items():
        if tag in tags and value is None:
            return f"the tag {tag} {whose} is {tags[tag][:60]!r}: it must be {form}"
    if GANG_SIZE_TAG not in tags:
        return None
    placing = _placing_of(tags)
    if placing is not None and not placing.is_whole:
        return f"the tags {whose} contradict each other: {GANG_SIZE_TAG} is for gangs that are placed whole"
    if not is_zero(submission.placeholder_ask):
        return (
            f"the tag {GANG_SIZE_TAG} {whose} is for a gang without placeholders, and it announces "
            f"{describe(submission.placeholder_ask)} of them"
        )
    return None


def _placing_of(tags: Mapping[str, str]) -> GangPlacing | None:
    text = tags.get(GANG_PLACING_TAG)
    return None if text is None else read_gang_placing(text)


def _size_of(tags: Mapping[str, str]) -> int | None:
    text = tags.get(GANG_SIZE_TAG, "")
    size = int(text) if text and re.fullmatch(r"[0-9]{1,7}", text) else 0
    return size if 0 < size <= _SIZE_MAX else None


def _wait_ns_of(tags: Mapping[str, str]) -> int | None:
    text = tags.get(GANG_WAIT_TAG)
    try:
        return None if text is None else parse_duration_ns(text) or None
    except DurationError:
        return None


def gang_settings(
    submission: ApplicationSubmission, limit_ns: int | None, placing: GangPlacing
) -> GangSettings:
    """Return what a submission says about a gang; those that say nothing share one value.

    Args:
        submission: The submission.
        limit_ns: Its execution timeout in nanoseconds, which is also how long placeholders may be unused.
        placing: How its queue places gangs that do not say it themselves.
    """
    tags = submission.tags
    created = tags.get(APPLICATION_CREATION_TAG, "")
    hard = submission.gang_scheduling_style == "Hard"
    announced = not is_zero(submission.placeholder_ask)
    size = _size_of(tags) or 0
    if limit_ns is None and not (announced or hard or created or size):
        return _NO_GANG
    whole = (_placing_of(tags) or placing).is_whole
    timeout_ms = DEFAULT_PLACEHOLDER_TIMEOUT_MS if limit_ns is None else submission.execution_timeout_ms
    return GangSettings(
        placeholder_ask=submission.placeholder_ask or EMPTY,
        hard=hard,
        timeout_ms=timeout_ms,
        created_at_ns=int(created) * _SECOND_NS if re.fullmatch(r"[0-9]{1,10}", created) else None,
        whole=bool(size) or (announced and whole),
        size=size,
        wait_ns=_wait_ns_of(tags),
    )
