"""An application at one moment, copied: for explanations, and to be shown; and its invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from ..resources.comparisons import equals
from ..resources.resource import Resource, total_of
from ..values.allocation import Allocation, Ask, Refusal
from ..values.messages import User
from .core import ApplicationCore, application_facts
from .effects import ApplicationState
from .holdings import HeldAllocation
from .pending_asks import AskRecord, AskShape, shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingAsk:
    """An ask that waits, and what its application has noted of it.

    `reserved_node` is the empty text without a reservation. `refusals` are those of the last walk that
    tried all asks of the application; asks that share the answers of predicates share them too.
    """

    ask: Ask
    waits_for_placeholder: bool
    reserved_node: str
    refusals: tuple[Refusal, ...]
    noted: tuple[Noted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationReport:
    """One application at one moment.

    `waiting_keys` are the keys of all asks that wait, in the order in which they are tried. `waiting` are
    those of them that the report is about, in the same order, and `held` the allocations.
    """

    queue_path: str
    state: ApplicationState
    state_text: str
    state_since_ns: int | None
    submitted_at_ns: int
    finished_at_ns: int | None
    rejection: str
    waiting_keys: tuple[str, ...]
    waiting: tuple[WaitingAsk, ...]
    held: tuple[HeldAllocation, ...]
    task_groups: tuple[TaskGroupCounts, ...]
    placeholder_allocated: Resource


def application_report(
    core: ApplicationCore, *, only_key: str | None, first_of_shapes: bool
) -> ApplicationReport:
    """Copy what an explanation needs of an application; see `Application.report`."""
    life = core.life
    waiting = list(core.asks.waiting())
    wanted = waiting
    if first_of_shapes:
        firsts = (group.head() for group in core.asks.groups.values())
        wanted = sorted((first for first in firsts if first is not None), key=attrgetter("order"))
    if only_key is not None:
        wanted = [record for record in wanted if record.ask.allocation_key == only_key]
    refusals: dict[str, list[Refusal]] = {}
    shared: dict[AskShape, list[Refusal]] = {}
    for refusal in core.refusals:
        refusals.setdefault(refusal.allocation_key, []).append(refusal)
        record = core.asks.records.get(refusal.allocation_key)
        if record is not None and record.ask.predicate_class:
            shared.setdefault(shape_of(record.ask), []).append(refusal)
    return ApplicationReport(
        queue_path=core.queue_path,
        state=life.state,
        state_text=life.last_text,
        state_since_ns=life.log[-1][0] if life.log else None,
        submitted_at_ns=core.submitted_at_ns,
        finished_at_ns=core.finished_at_ns,
        rejection=core.rejection,
        waiting_keys=tuple(record.ask.allocation_key for record in waiting),
        waiting=tuple(
            _waiting_ask(core, record, refusals.get(record.ask.allocation_key) or _shared(record, shared))
            for record in wanted
        ),
        held=tuple(
            placed.copy()
            for placed in core.holdings.placed.values()
            if only_key is None or _is(placed, only_key)
        ),
        task_groups=tuple(_task_groups(core)),
        placeholder_allocated=core.holdings.placeholder_allocated,
    )


def _is(placed: HeldAllocation, key: str) -> bool:
    """Return whether an allocation, or the one that is to replace it, has a key."""
    return placed.allocation.allocation_key == key or (
        placed.swap is not None and placed.swap.allocation_key == key
    )


def _shared(record: AskRecord, shared: Mapping[AskShape, Sequence[Refusal]]) -> Sequence[Refusal]:
    """Return the refusals of the ask that was tried for all of a shape."""
    return shared.get(shape_of(record.ask), ())


def _waiting_ask(core: ApplicationCore, record: AskRecord, refusals: Sequence[Refusal]) -> WaitingAsk:
    ask = record.ask
    task_groups = core.task_groups
    log = record.log or {}
    return WaitingAsk(
        ask=ask,
        waits_for_placeholder=not ask.placeholder and task_groups.waits_for_placeholder(ask.task_group_name),
        reserved_node=core.reservations.node_of(ask.allocation_key),
        refusals=tuple(refusals),
        noted=tuple(Noted(text=text, count=entry[0], last_ns=entry[1]) for text, entry in log.items()),
    )


def _task_groups(core: ApplicationCore) -> Iterator[TaskGroupCounts]:
    """Walk the task groups with the counts of their placeholders; each ask is visited once."""
    records = core.asks.records.values()
    waiting = Counter(
        record.ask.task_group_name for record in records if record.ask.placeholder and not record.placed
    )
    asks = (entry.allocation.ask for entry in core.holdings.placed.values())
    placed = Counter(ask.task_group_name for ask in asks if ask.placeholder)
    for group in core.task_groups.by_name.values():
        yield TaskGroupCounts(
            name=group.name,
            placeholders=group.count,
            waiting=waiting[group.name],
            placed=placed[group.name],
            replaced=group.replaced,
            ended=group.timed_out,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A note of cycles on an ask: a text, how often, and when last."""

    text: str
    count: int
    last_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroupCounts:
    """The placeholders of a task group: how many there ever were, and how many are in which state."""

    name: str
    placeholders: int
    waiting: int
    placed: int
    replaced: int
    ended: int
    """They ended without having been replaced."""


class ShownAsk(NamedTuple):
    """All that the document of a waiting ask is made of."""

    ask: Ask
    log: tuple[tuple[str, int, int], ...]
    """Text, how often, when last; the oldest first."""
    preemption_triggered: bool
    attempted: bool
    scale_up_triggered: bool


class ShownTaskGroup(NamedTuple):
    """A task group of a gang, and how many of its placeholders were replaced or timed out."""

    name: str
    minimum: Resource
    placeholders: int
    replaced: int
    timed_out: int


class ApplicationSummary(NamedTuple):
    """The use of an application, by type of instance, in resource-seconds; and its times."""

    application_id: str
    queue_path: str
    user: User
    state: ApplicationState
    submitted_at_ns: int
    started_at_ns: int | None
    finished_at_ns: int | None
    used: Mapping[str, Mapping[str, int]]
    used_preempted: Mapping[str, Mapping[str, int]]
    used_by_placeholders: Mapping[str, Mapping[str, int]]


class ShownApplication(NamedTuple):
    """The values of the document of an application, at one moment."""

    summary: ApplicationSummary
    partition: str
    """The full name."""
    allocated: Resource
    most_used: Resource
    pending: Resource
    rejection: str
    log: tuple[tuple[int, ApplicationState], ...]
    """When it came into each of its states, in order."""
    task_groups: tuple[ShownTaskGroup, ...]
    reserved_keys: tuple[str, ...]
    max_priority: int
    backoff_until_ns: int | None
    asks: tuple[ShownAsk, ...]
    allocations: tuple[tuple[Allocation, bool], ...]
    """With whether each has been chosen as a victim."""


def application_summary(core: ApplicationCore) -> ApplicationSummary:
    """Return what an application has used, and its times."""
    holdings = core.holdings
    return ApplicationSummary(
        application_id=core.application_id,
        queue_path=core.queue_path,
        user=core.user,
        state=core.life.state,
        submitted_at_ns=core.submitted_at_ns,
        started_at_ns=core.life.started_at_ns,
        finished_at_ns=core.finished_at_ns,
        used=holdings.used.as_dict(),
        used_preempted=holdings.used_preempted.as_dict(),
        used_by_placeholders=holdings.used_placeholder.as_dict(),
    )


def shown_application(core: ApplicationCore) -> ShownApplication:
    """Copy what the document of an application is made of.

    Asks and allocations are copied. Making documents of them takes longer; the caller does that.
    """
    return ShownApplication(
        summary=application_summary(core),
        partition=core.partition,
        allocated=core.holdings.allocated,
        most_used=core.holdings.most_used,
        pending=core.pending,
        rejection=core.rejection,
        log=tuple(core.life.log),
        task_groups=tuple(
            ShownTaskGroup(group.name, group.minimum, group.count, group.replaced, group.timed_out)
            for group in core.task_groups.by_name.values()
        ),
        reserved_keys=tuple(reservation.allocation_key for reservation in core.reservations.all()),
        max_priority=application_facts(core).max_priority,
        backoff_until_ns=core.backoff_until_ns,
        asks=tuple(_shown_ask(record) for record in core.asks.waiting()),
        allocations=tuple((placed.allocation, placed.preempted) for placed in core.holdings.placed.values()),
    )


def _shown_ask(record: AskRecord) -> ShownAsk:
    """Return what is shown of an ask that waits."""
    assert record.group is not None, f"ask {record.ask.allocation_key} waits in no group: please report"
    log = sorted((record.log or {}).items(), key=lambda item: item[1][1])
    return ShownAsk(
        record.ask,
        tuple((text, count, last_ns) for text, (count, last_ns) in log),
        record.preemption_triggered,
        record.group.was_attempted(record),
        record.scale_up_triggered,
    )


def validate_application(core: ApplicationCore) -> None:
    """Assert that the sums equal what they sum up, and that no key is counted twice."""
    name = core.application_id
    core.asks.validate()
    pending = total_of(record.ask.resource for record in core.asks.waiting())
    assert equals(pending, core.pending), (
        f"application {name}: pending {core.pending!r} is not the sum {pending!r}"
    )
    core.holdings.validate(name)
    for key in core.holdings.placed:
        record = core.asks.get(key)
        assert record is None or record.placed, f"application {name}: {key} is placed and waits"
    if core.execution is not None:
        strays = core.execution.running().difference(core.holdings.placed)
        assert not strays, f"application {name}: the time of {sorted(strays)} runs, and they do not"
