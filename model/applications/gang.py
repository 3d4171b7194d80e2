"""Gangs: what an application does with its placeholders.

A gang announces the total of its placeholders, asks for them by task group, and becomes Running when they
are all placed. Its members then replace them one by one; a placeholder that is not needed is released
when it times out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING, Final, NamedTuple, final

from ..resources.comparisons import has_negative, is_zero
from ..resources.resource import EMPTY, Resource, fits, subtract, total_of
from ..values.allocation import Allocation, Ask, Refusal, RefusalReason
from ..values.domains import DomainTerms
from ..values.messages import TerminationType
from .effects import ApplicationEvent, Effect, ReleaseWanted, TimerKind
from .holdings import HeldAllocation
from .pending_asks import AskRecord, AskShape, PendingAsks

if TYPE_CHECKING:
    from .core import ApplicationCore

DEFAULT_PLACEHOLDER_TIMEOUT_MS: Final = 15 * 60 * 1000
PLACED_TIMEOUT_TEXT: Final = "releasing allocated placeholders on placeholder timeout"
WAITING_TIMEOUT_TEXT: Final = "releasing pending placeholders on placeholder timeout"
WAIT_TEXT: Final = "releasing ask on gang wait timeout"
INCOMPLETE_TEXT: Final = "releasing ask on placeholder timeout: not all announced placeholders were asked for"
_MS_NS: Final = 1_000_000
_NOT_SEARCHED: Final = (RefusalReason.GANG_INCOMPLETE, RefusalReason.USER_QUOTA)


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSettings:
    """The gang in the submission of an application."""

    placeholder_ask: Resource = EMPTY
    hard: bool = False
    timeout_ms: int = DEFAULT_PLACEHOLDER_TIMEOUT_MS
    created_at_ns: int | None = None
    """The application's own creation time: it shortens the timeout."""
    whole: bool = False
    """All that the gang needs at first is placed in one result; until then nothing of it is placed."""
    size: int = 0
    """How many asks make up a gang that is placed whole without placeholders; 0 for one with them."""
    wait_ns: int | None = None
    """How long a gang that is placed whole waits for that, from its first ask on; `None` for any time."""
    domains: DomainTerms | None = None
    """The domains of nodes that a gang which is placed whole may have; `None` for all nodes."""

    @property
    def needed_level(self) -> str:
        """The level of which it, or each slice of it, needs one domain; the empty text for none."""
        return "" if self.domains is None else self.domains.needed

    @property
    def is_announced(self) -> bool:
        """Whether there is a gang: a sum of placeholders, or a number of asks."""
        return self.size > 0 or not is_zero(self.placeholder_ask)

    @property
    def timeout_event(self) -> ApplicationEvent:
        """The fate of an application whose placeholders time out before it runs."""
        return ApplicationEvent.FAIL if self.hard else ApplicationEvent.RESUME

    def placeholder_due_ns(self, now_ns: int) -> int:
        """Return when placeholders that are placed now time out."""
        timeout_ns = self.timeout_ms * _MS_NS
        if self.created_at_ns is not None:
            timeout_ns = max(_MS_NS, timeout_ns - (now_ns - self.created_at_ns))
        return now_ns + timeout_ns

    def is_complete(self, placeholders: Resource) -> bool:
        """Return whether the placeholders that are placed are at least what was announced."""
        return not is_zero(self.placeholder_ask) and fits(placeholders, self.placeholder_ask)


def whole_members(settings: GangSettings, waiting: Iterable[Ask]) -> tuple[Ask, ...]:
    """Return the asks of a gang that are placed in one result; none while some have not been asked for.

    Args:
        settings: Of a gang that is placed whole.
        waiting: The waiting asks of the application, in order.
    """
    if settings.size:
        members = tuple(ask for ask in waiting if not ask.placeholder)
        return members[: settings.size] if len(members) >= settings.size else ()
    placeholders = tuple(ask for ask in waiting if ask.placeholder)
    return placeholders if settings.is_complete(total_of(ask.resource for ask in placeholders)) else ()


def count_end(task_groups: TaskGroups, ask: Ask, termination: TerminationType) -> None:
    """Count a placeholder allocation that ended."""
    replaced = termination is TerminationType.PLACEHOLDER_REPLACED
    task_groups.count_end(ask.task_group_name, replaced=replaced)


def was_searched(refusal: Refusal) -> bool:
    """Return whether room in the queues or on nodes was looked for, by what refused a whole gang."""
    return refusal.reason not in _NOT_SEARCHED


def watch_wait(core: ApplicationCore, now_ns: int, effects: list[Effect]) -> None:
    """Begin the time that a gang which is placed whole may wait, with its first ask.

    Without a specific time one with placeholders waits for all of them as long as these may be unused.
    """
    settings = core.gang_settings
    if core.life.has_timer(TimerKind.GANG):
        return
    if settings.wait_ns is not None:
        core.life.start_timer(TimerKind.GANG, now_ns + settings.wait_ns, effects)
    elif not settings.size:
        core.life.start_timer(TimerKind.GANG, settings.placeholder_due_ns(now_ns), effects)


# ----------------------------------------------------------------------------------- replacement
class SwapOffer(NamedTuple):
    """A member that waits and a placeholder of its task group.

    `fits` is false if the member is larger: the placeholder is of no use for it.
    """

    ask: Ask
    placeholder: Allocation
    fits: bool


@final
class SwapWalk:
    """How far the partition has come with the pairs of one application."""

    __slots__ = ("offers",)

    def __init__(self) -> None:
        self.offers: Iterator[SwapOffer] | None = None


def next_swap(
    walk: SwapWalk, asks: PendingAsks, placeholders: Mapping[str, Mapping[str, HeldAllocation]]
) -> SwapOffer | None:
    """Return the next pair, asks in order, placeholders of a task group in the order they were placed."""
    if walk.offers is None:
        walk.offers = _offers(asks, placeholders)
    return next(walk.offers, None)


def _offers(
    asks: PendingAsks, placeholders: Mapping[str, Mapping[str, HeldAllocation]]
) -> Iterator[SwapOffer]:
    groups = [
        group
        for shape, group in asks.groups.items()
        if not shape.placeholder and shape.task_group_name in placeholders
    ]
    for record in merge(*groups, key=lambda record: record.order):
        for entry in tuple(placeholders.get(record.ask.task_group_name, {}).values()):
            if record.placed or entry.is_leaving:
                continue
            placeholder = entry.allocation
            lacks = has_negative(subtract(placeholder.ask.resource, record.ask.resource))
            yield SwapOffer(record.ask, placeholder, not lacks)


# --------------------------------------------------------------------------------------- timeouts
def release_placeholders(placed: Mapping[str, HeldAllocation], text: str, effects: list[Effect]) -> bool:
    """Ask the RM to end every placeholder that is not ending yet; return whether any is left at all."""
    left = False
    for key, entry in placed.items():
        if not entry.allocation.ask.placeholder:
            continue
        left = True
        if not entry.released and not entry.preempted:
            entry.released = True
            effects.append(ReleaseWanted(key, TerminationType.TIMEOUT, text))
    return left


def give_up(
    asks: PendingAsks,
    placed: Mapping[str, HeldAllocation],
    task_groups: TaskGroups,
    effects: list[Effect],
    *,
    texts: tuple[str, str] = (PLACED_TIMEOUT_TEXT, WAITING_TIMEOUT_TEXT),
    swapping: Container[str] = (),
    dropped: Container[str] = (),
) -> tuple[AskRecord, ...]:
    """Give up an application whose time is over: end what is placed, drop what waits.

    Real asks are dropped too, as in the recorded core, and counted for no task group: the recorded core
    counts them as timed-out placeholders, and crashes where their task group is unknown.

    Args:
        asks: The asks of the application.
        placed: Its allocations.
        task_groups: Its task groups.
        effects: Takes what the RM is to be asked to end.
        texts: The messages for the RM, about what is placed and about what waits.
        swapping: The keys of members whose swaps continue: these are not dropped.
        dropped: The keys of members whose swaps were cancelled: these count as waiting.
    """
    placed_text, waiting_text = texts
    for key, entry in placed.items():
        if not entry.released and not entry.preempted:
            entry.released = True
            effects.append(ReleaseWanted(key, TerminationType.TIMEOUT, placed_text))
    removed = tuple(record for key, record in asks.records.items() if key not in swapping)
    for record in removed:
        key = record.ask.allocation_key
        if not record.placed or key in dropped:
            if record.ask.placeholder:
                task_groups.count_end(record.ask.task_group_name, replaced=False)
            effects.append(ReleaseWanted(key, TerminationType.TIMEOUT, waiting_text, of_ask=True))
        asks.remove(key)
    return removed


def outstanding(asks: PendingAsks, task_groups: TaskGroups) -> tuple[tuple[Ask, bool], ...]:
    """Return the attempted asks in order, and whether each is to be reported to an autoscaler now.

    An ask is not reported twice, nor if more nodes would not help (it can run on one node only), nor if it
    is to replace a placeholder.
    """
    rows: list[tuple[AskRecord, bool]] = []
    for group in asks.groups.values():
        shape = group.shape
        helps = not shape.required_node and not task_groups.makes_wait(shape)
        rows.extend(
            (record, helps and not record.scale_up_triggered)
            for record in group
            if group.was_attempted(record)
        )
    rows.sort(key=lambda row: row[0].order)
    return tuple((record.ask, tells) for record, tells in rows)


@final
class TaskGroup:
    """How many placeholders a task group has had, and how many of them were replaced or ended."""

    __slots__ = ("count", "minimum", "name", "replaced", "timed_out")

    def __init__(self, name: str, minimum: Resource) -> None:
        self.name = name
        self.minimum = minimum
        self.count = 0
        self.replaced = 0
        self.timed_out = 0


@final
class TaskGroups:
    """The task groups of one application. Owned by the application."""

    def __init__(self) -> None:
        self.by_name: dict[str, TaskGroup] = {}

    def count_placeholder(self, ask: Ask) -> None:
        """Count one more placeholder; the first one of a group gives its size."""
        group = self.by_name.get(ask.task_group_name)
        if group is None:
            group = self.by_name[ask.task_group_name] = TaskGroup(ask.task_group_name, ask.resource)
        group.count += 1

    def count_end(self, task_group_name: str, *, replaced: bool) -> None:
        """Count a placeholder that was replaced, or that ended unused."""
        group = self.by_name.get(task_group_name)
        if group is None:
            return
        if replaced:
            group.replaced += 1
        else:
            group.timed_out += 1

    def makes_wait(self, shape: AskShape) -> bool:
        """Return whether asks of this shape are to replace placeholders."""
        return (
            bool(self.by_name) and not shape.placeholder and self.waits_for_placeholder(shape.task_group_name)
        )

    def waits_for_placeholder(self, task_group_name: str) -> bool:
        """Return whether a member of the group is to replace a placeholder."""
        group = self.by_name.get(task_group_name)
        return group is not None and group.count > group.replaced + group.timed_out
