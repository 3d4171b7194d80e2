"""What is shown of an application: its values at one moment, copied; and its invariants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..resources.comparisons import equals
from ..resources.resource import Resource, total_of
from ..values.allocation import Allocation, Ask
from ..values.users import User
from .core import ApplicationCore, application_facts
from .pending_asks import AskRecord
from .state import ApplicationState


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
    """What an application has used, by type of instance, in resource-seconds; and its times."""

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
    """All that the document of an application is made of, as it was at one moment."""

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

    Asks and allocations are copied as they are. Making documents of them takes longer; the caller does that.
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
