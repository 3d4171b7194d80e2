"""The terms of what an RM submits, its gang and its walltimes: which are taken, and why others are not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from ..applications.gang import DEFAULT_PLACEHOLDER_TIMEOUT_MS, GangSettings
from ..applications.life import tag_refusal, walltime_of
from ..configuration.durations import DurationError, duration_text, parse_duration_ns
from ..configuration.names import flag_of
from ..configuration.policies import GangPlacing
from ..configuration.queue_properties import GANG_PLACING, RUNTIME_MAX, RuntimeSettings, read_gang_placing
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import maximum_below_root
from ..queues.tree import QueueTree
from ..resources.comparisons import equals, is_zero
from ..resources.resource import EMPTY, Resource, describe, fits_undefined_unlimited, negative_text
from ..state.applying import apply
from ..state.expected_ends import assumed_walltime_ns
from ..state.partition_state import PartitionState
from ..state.rates import report_of_ask
from ..values.allocation import WALLTIME_TAG, Ask
from ..values.dependencies import TermsError, terms_of
from ..values.domains import DomainTerms
from ..values.messages import ApplicationSubmission, RejectionCode, RejectionReason, User, invalid

APPLICATION_CREATION_TAG: Final = "yunikorn.apache.org/creationTime"
GANG_PLACING_TAG: Final = "gangPlacing"
GANG_SIZE_TAG: Final = "gangSize"
GANG_WAIT_TAG: Final = "gangWait"
TOPOLOGY_REQUIRED_TAG: Final = "topologyRequired"
TOPOLOGY_PREFERRED_TAG: Final = "topologyPreferred"
TOPOLOGY_BALANCED_TAG: Final = "topologyBalanced"
TOPOLOGY_SLICE_TAG: Final = "topologySlice"
TOPOLOGY_SLICE_SIZE_TAG: Final = "topologySliceSize"
GANG_TAGS: Final = frozenset({GANG_PLACING_TAG, GANG_SIZE_TAG, GANG_WAIT_TAG})
TOPOLOGY_TAGS: Final = (
    *(TOPOLOGY_REQUIRED_TAG, TOPOLOGY_PREFERRED_TAG, TOPOLOGY_BALANCED_TAG),
    *(TOPOLOGY_SLICE_TAG, TOPOLOGY_SLICE_SIZE_TAG),
)
_LEVEL_TAGS: Final = (TOPOLOGY_REQUIRED_TAG, TOPOLOGY_PREFERRED_TAG, TOPOLOGY_SLICE_TAG)
"""Those that name a level, the one that must be the widest first."""
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
    rule = queue.application_order
    is_whole = (_placing_of(submission.tags) or queue.settings.gang_placing).is_whole
    if not (rule.takes_placeholders or (is_whole and rule.policy is not None)):
        text = (
            f"queue {queue.path} cannot run application {name} with task group request: unsupported sort type"
        )
        if rule.policy is not None:
            text += f" {rule.word}: it could put others between its members, unless {GANG_PLACING} is whole"
        return RejectionReason(RejectionCode.NO_QUEUE, text)
    limit = maximum_below_root(queue)
    if not fits_undefined_unlimited(limit, wanted):
        text = (
            f"queue {queue.path} cannot fit application {name}: task group request {describe(wanted)} "
            f"larger than max queue allocation {describe(limit)}"
        )
        return RejectionReason(RejectionCode.OVER_MAXIMUM, text)
    return None


def domains_refusal(
    submission: ApplicationSubmission, levels: Sequence[str], placing: GangPlacing
) -> RejectionReason | None:
    """Return why the domains of nodes that an application names are refused, `None` if they are not.

    Args:
        submission: The submission.
        levels: The levels of the topology of its partition, the widest first.
        placing: How its queue places gangs that do not choose it themselves.
    """
    if not any(tag in submission.tags for tag in TOPOLOGY_TAGS):
        return None
    text = _terms_refusal(submission.tags, levels) or _domains_refusal(
        gang_settings(submission, None, placing)
    )
    return invalid(text and f"application {submission.application_id} asks for a domain of nodes: {text}")


def _terms_refusal(tags: Mapping[str, str], levels: Sequence[str]) -> str | None:
    known = f"its levels are {', '.join(levels)}" if levels else "it has no topology"
    for tag in _LEVEL_TAGS:
        if tag in tags and tags[tag] not in levels:
            return f"the tag {tag} is {tags[tag][:60]!r}, no level of the partition: {known}"
    balanced = tags.get(TOPOLOGY_BALANCED_TAG)
    if balanced is not None and flag_of(balanced) is None:
        return f"the tag {TOPOLOGY_BALANCED_TAG} is {balanced[:60]!r}: it must be true or false"
    size = tags.get(TOPOLOGY_SLICE_SIZE_TAG)
    if size is not None and _number_of(size) is None:
        return (
            f"the tag {TOPOLOGY_SLICE_SIZE_TAG} is {size[:60]!r}: it must be a number from 1 to {_SIZE_MAX}"
        )
    if (TOPOLOGY_SLICE_TAG in tags) != (size is not None):
        return f"the tags {TOPOLOGY_SLICE_TAG} and {TOPOLOGY_SLICE_SIZE_TAG} need each other"
    named = [(tag, tags[tag]) for tag in _LEVEL_TAGS if tag in tags]
    if not named:
        return f"the tag {TOPOLOGY_BALANCED_TAG} needs {' or '.join(_LEVEL_TAGS)}"
    for (wide, wider), (narrow, level) in pairwise(named):
        if levels.index(level) < levels.index(wider):
            return f"the level {level} of {narrow} is wider than the level {wider} of {wide}"
    return None


def _domains_refusal(settings: GangSettings) -> str | None:
    if not settings.whole:
        return f"only gangs that are placed whole can have one: see {GANG_SIZE_TAG} and {GANG_PLACING_TAG}"
    if settings.needed_level and settings.wait_ns is not None and not settings.hard:
        return (
            f"after {GANG_WAIT_TAG} a Soft gang is placed ask by ask, outside of the domain that it requires"
        )
    each = 1 if settings.domains is None else settings.domains.slice_size
    if settings.size % each:
        return f"its {settings.size} members by {GANG_SIZE_TAG} are no slices of {each}"
    return None


def _domains_of(tags: Mapping[str, str]) -> DomainTerms | None:
    terms = DomainTerms(
        tags.get(TOPOLOGY_REQUIRED_TAG, ""),
        tags.get(TOPOLOGY_PREFERRED_TAG, ""),
        flag_of(tags.get(TOPOLOGY_BALANCED_TAG, "")) is True,
        tags.get(TOPOLOGY_SLICE_TAG, ""),
        _number_of(tags.get(TOPOLOGY_SLICE_SIZE_TAG, "")) or 1,
    )
    return terms if terms.needed or terms.preferred else None


def slices_refusal(whose: str, settings: GangSettings, first: Ask, ask: Ask) -> RejectionReason | None:
    """Return why an ask can be no member of a gang in slices, `None` if it can: all have one size.

    Args:
        whose: The id of the application.
        settings: Its gang.
        first: The first member.
        ask: A member.
    """
    if settings.domains is None or not settings.domains.slice_level:
        return None
    each, size, announced = settings.domains.slice_size, first.resource, settings.placeholder_ask
    gang = f"the gang of application {whose} is placed in slices of {each} members of one size"
    if not equals(ask.resource, size):
        return invalid(f"{gang}: {ask.allocation_key} needs {describe(ask.resource)}, not {describe(size)}")
    if is_zero(announced):
        return None
    count = min(
        (announced.get(name) // quantity for name, quantity in size.items() if quantity > 0), default=0
    )
    multiple = Resource({name: quantity * count for name, quantity in size.items()})
    if not count % each and equals(announced, multiple):
        return None
    return invalid(f"{gang}: the announced {describe(announced)} is no multiple of {each} x {describe(size)}")


def waits_refusal(state: PartitionState, submission: ApplicationSubmission) -> RejectionReason | None:
    """Return why what an application waits for is refused, `None` if it is not."""
    terms = terms_of(submission.tags)
    name = submission.application_id
    if isinstance(terms, TermsError):
        return invalid(f"application {name} cannot wait for others: {terms.text}")
    cycle = state.dependencies.cycle_of(name, terms)
    return invalid(f"application {name} would wait for itself: {' after '.join(cycle)}" if cycle else None)


def gang_sum_refusal(
    state: PartitionState, whose: str, user: User, queue: Queue, total: Resource
) -> RejectionReason | None:
    """Return why a gang that is placed whole can never get what it needs in all, `None` if it can.

    Usage does not matter, nor which nodes there are: only the maxima and limits of now.

    Args:
        state: The partition.
        whose: The id of its application.
        user: The user of that.
        queue: Its queue.
        total: The request of all members together.
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
    if GANG_TAGS.isdisjoint(tags):
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
    return _number_of(tags.get(GANG_SIZE_TAG, ""))


def _number_of(text: str) -> int | None:
    number = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
    return number if 0 < number <= _SIZE_MAX else None


def _wait_ns_of(tags: Mapping[str, str]) -> int | None:
    text = tags.get(GANG_WAIT_TAG)
    try:
        return None if text is None else parse_duration_ns(text) or None
    except DurationError:
        return None


def gang_settings(
    submission: ApplicationSubmission, limit_ns: int | None, placing: GangPlacing
) -> GangSettings:
    """Return the gang terms of a submission; those without a gang share one value.

    Args:
        submission: The submission.
        limit_ns: Its execution timeout in nanoseconds, which is also how long placeholders may be unused.
        placing: How its queue places gangs that do not choose it themselves.
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
        domains=_domains_of(tags),
    )


def walltime_refusal(whose: str, tags: Mapping[str, str], queue: Queue | None) -> RejectionReason | None:
    """Return why the walltime in tags is refused, `None` if it is not or is missing.

    Args:
        whose: The owner of the tags, for the text.
        tags: Its tags.
        queue: The leaf that it goes to, `None` if that is not known.
    """
    refusal = invalid(tag_refusal(whose, tags))
    walltime_ns = walltime_of(tags)
    if refusal is not None or walltime_ns is None or queue is None:
        return refusal
    longest_ns = queue.settings.runtime.max_ns
    if longest_ns is None or walltime_ns <= longest_ns:
        return None
    text = (
        f"the walltime {duration_text(walltime_ns)} of {whose} is longer than {RUNTIME_MAX} "
        f"{duration_text(longest_ns)} of queue {queue.path}{_place(queue)}"
    )
    return RejectionReason(RejectionCode.OVER_MAXIMUM, text)


def _place(queue: Queue) -> str:
    """Return where the maximum of a queue is in the configuration, as far as that is known."""
    for level in queue.above:
        position = level.positions.get(f"properties.{RUNTIME_MAX}")
        if position is not None:
            return f" (line {position.line} of the configuration)"
    return ""


def watch_walltimes(state: PartitionState, entry: ApplicationEntry, keys: Sequence[str] | None) -> None:
    """Set when asks and allocations have run for their walltimes, where their queue ends such work.

    `None` for the keys stands for all that the application has.
    """
    if entry.queue.settings.runtime.ends_overruns:
        _follow(state, entry, keys)


def runtime_settings(tree: QueueTree) -> dict[str, RuntimeSettings]:
    """Return the run times of leaf queues, by their paths."""
    return {queue.path: queue.settings.runtime for queue in tree if queue.is_leaf}


def runtimes_changed(state: PartitionState, before: Mapping[str, RuntimeSettings]) -> None:
    """Apply the current run times of leaf queues to all their allocations.

    Args:
        state: The partition, with the new settings.
        before: The settings before, by path; a queue that was not there has the defaults.
    """
    for queue in state.tree:
        old, new = before.get(queue.path, RuntimeSettings()), queue.settings.runtime
        if not queue.is_leaf or old == new or not (old.ends_overruns or new.ends_overruns):
            continue
        for entry in list(queue.entries.by_id.values()):
            _follow(state, entry, None)


def names_another(tags: Mapping[str, str], known: Mapping[str, str]) -> bool:
    """Return whether tags name a walltime, and not the one that known tags name."""
    return WALLTIME_TAG in tags and tags[WALLTIME_TAG] != known.get(WALLTIME_TAG)


def change_walltime(
    state: PartitionState, entry: ApplicationEntry, key: str, tags: Mapping[str, str]
) -> None:
    """Give a known ask or allocation the walltime that tags name, if they name another one.

    All that follows from a walltime follows from the new one at once: when a queue ends what runs, and when
    starts are planned. Other tags are not changed. A known ask is not rejected: a walltime that its queue
    does not take changes nothing, and an event of the ask has the reason.
    """
    ask = _known_ask(entry, key)
    if ask is None or not names_another(tags, ask.tags):
        return
    refusal = walltime_refusal(f"ask {key}", tags, entry.queue)
    if refusal is not None:
        message = f"It keeps the walltime that it has: {refusal.text}"
        report_of_ask(state, "walltime", (entry.application_id, key), ask.resource, message)
        return
    before_ns = assumed_walltime_ns(ask, entry.tags, entry.queue)
    answer = entry.application.retag(key, {**ask.tags, WALLTIME_TAG: tags[WALLTIME_TAG]})
    for allocation in answer.allocations:
        node = state.nodes.get(allocation.node_id)
        if node is not None:
            node.node.replace(key, allocation)
    reserved = state.reserved.get(key)
    if reserved is not None and answer.asks:
        state.reserved.remove(key)
        state.reserved.add(reserved._replace(ask=answer.asks[0].ask))
    apply(state, entry, answer)
    _changed(state, entry, {key: before_ns}, [key])


def change_application_walltime(
    state: PartitionState, entry: ApplicationEntry, tags: Mapping[str, str]
) -> None:
    """Give a known application the walltime that tags name: for all its work without a specific one."""
    waiting = [record.ask for record in entry.application.asks.waiting()]
    before_ns = {ask.allocation_key: assumed_walltime_ns(ask, entry.tags, entry.queue) for ask in waiting}
    entry.tags = {**entry.tags, WALLTIME_TAG: tags[WALLTIME_TAG]}
    if entry.submission is not None:
        entry.submission = replace(entry.submission, tags=entry.tags)
    _changed(state, entry, before_ns, None)


def _known_ask(entry: ApplicationEntry, key: str) -> Ask | None:
    """Return the ask of a key that waits or is placed."""
    record = entry.application.asks.record(key)
    if record is not None:
        return record.ask
    placed = entry.application.allocations.get(key)
    return None if placed is None else placed.ask


def _changed(
    state: PartitionState,
    entry: ApplicationEntry,
    before_ns: Mapping[str, int | None],
    keys: Sequence[str] | None,
) -> None:
    """Plan anew, and end what runs too long.

    A job whose walltime has grown is promised a start as if it came now: others were promised theirs
    with the shorter one.

    Args:
        state: The partition.
        entry: The application.
        before_ns: The walltimes of asks before, by key.
        keys: Those of asks and allocations with another walltime; `None` for all.
    """
    state.ends.run_times.ask_anew(*(keys or ()))
    state.ends.forget()
    state.ends.unplanned += 1
    state.changes += 1
    entry.queue.entries.refresh(entry)
    waiting = {record.ask.allocation_key: record.ask for record in entry.application.asks.waiting()}
    if any(
        was_ns is not None
        and key in waiting
        and (assumed_walltime_ns(waiting[key], entry.tags, entry.queue) or 0) > was_ns
        for key, was_ns in before_ns.items()
    ):
        state.ends.forget_promises(waiting if entry.facts.gang_waits else before_ns)
    watch_walltimes(state, entry, keys)


def _follow(state: PartitionState, entry: ApplicationEntry, keys: Sequence[str] | None) -> None:
    """Apply the settings of its queue to some asks and allocations of an application, or to all."""
    runtime = entry.queue.settings.runtime
    default_ns = walltime_of(entry.tags) or runtime.assumed_ns
    answer = entry.application.follow_walltimes(keys, default_ns, ends=runtime.ends_overruns)
    apply(state, entry, answer)
