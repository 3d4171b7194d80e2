"""What an explanation needs of an application, copied in one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from ..resources.resource import Resource
from ..values.allocation import Ask
from ..values.refusals import Refusal
from .core import ApplicationCore
from .holdings import Placed
from .pending_asks import AskRecord
from .state import ApplicationState


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingAsk:
    """An ask that waits, and what its application has noted of it.

    `reserved_node` is the empty text without a reservation. `refusals` are those of the last walk that
    tried all asks of the application.
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
    held: tuple[Placed, ...]
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
    for refusal in core.refusals:
        refusals.setdefault(refusal.allocation_key, []).append(refusal)
    return ApplicationReport(
        queue_path=core.queue_path,
        state=life.state,
        state_text=life.last_text,
        state_since_ns=life.log[-1][0] if life.log else None,
        submitted_at_ns=core.submitted_at_ns,
        finished_at_ns=core.finished_at_ns,
        rejection=core.rejection,
        waiting_keys=tuple(record.ask.allocation_key for record in waiting),
        waiting=tuple(_waiting_ask(core, record, refusals) for record in wanted),
        held=tuple(
            placed.copy()
            for placed in core.holdings.placed.values()
            if only_key is None or _is(placed, only_key)
        ),
        task_groups=tuple(_task_groups(core)),
        placeholder_allocated=core.holdings.placeholder_allocated,
    )


def _is(placed: Placed, key: str) -> bool:
    """Return whether an allocation, or the one that is to replace it, has a key."""
    return placed.allocation.allocation_key == key or (
        placed.swap is not None and placed.swap.allocation_key == key
    )


def _waiting_ask(core: ApplicationCore, record: AskRecord, refusals: dict[str, list[Refusal]]) -> WaitingAsk:
    ask = record.ask
    task_groups = core.task_groups
    log = record.log or {}
    return WaitingAsk(
        ask=ask,
        waits_for_placeholder=not ask.placeholder and task_groups.waits_for_placeholder(ask.task_group_name),
        reserved_node=core.reservations.node_of(ask.allocation_key),
        refusals=tuple(refusals.get(ask.allocation_key, ())),
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
    """What cycles have noted on an ask: a text, how often, and when last."""

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
