"""Properties of queues: the text pairs in the configuration, what they mean, and what children inherit.

A property that cannot be read has its default value, where the recorded core knows it; a configuration with
one that it does not know and that cannot be read is refused. Unknown ones
are kept and inherited like the others, and have no effect. Only queues in the configuration inherit from
their parents; dynamic queues have the properties of the template they are made from and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from ..policies.policies import is_policy_word
from .durations import DurationError, parse_duration_ns, short_duration_text
from .policies import (
    APPLICATION_ORDER_WORDS,
    QUEUE_ORDER_WORDS,
    BackfillOrder,
    FairCount,
    GangPlacing,
    MinRuntimeScope,
    Overrun,
    PreemptionPolicy,
    PreemptionWithin,
    PriorityPolicy,
)
from .problems import RuleFinding
from .schema import QueueConfig

_Value = TypeVar("_Value")
_Default = TypeVar("_Default")
_Kind = TypeVar("_Kind", bound=Enum)
APPLICATION_SORT_POLICY: Final = "application.sort.policy"
QUEUE_SORT_POLICY: Final = "queue.sort.policy"
APPLICATION_SORT_PRIORITY: Final = "application.sort.priority"
PRIORITY_POLICY: Final = "priority.policy"
PRIORITY_OFFSET: Final = "priority.offset"
PREEMPTION_POLICY: Final = "preemption.policy"
PREEMPTION_DELAY: Final = "preemption.delay"
PREEMPTION_MIN_RUNTIME: Final = "preemption.min-runtime"
PREEMPTION_MIN_RUNTIME_SCOPE: Final = "preemption.min-runtime.scope"
PREEMPTION_VICTIMS_MAX: Final = "preemption.victims-max"
PREEMPTION_WITHIN: Final = "preemption.within"
BACKOFF: Final = "application.unschedasks.backoff"
BACKOFF_DELAY: Final = "application.unschedasks.backoff.delay"
QUOTA_PREEMPTION_DELAY: Final = "quota.preemption.delay"
FAIR_COUNT: Final = "fair.count"
FAIR_HALF_LIFE: Final = "fair.half-life"
FAIR_WEIGHT: Final = "fair.weight"
GANG_PLACING: Final = "gang.placing"
BACKFILL_RESERVATIONS: Final = "backfill.reservations"
BACKFILL_ORDER: Final = "backfill.order"
BACKFILL_PASSES: Final = "backfill.passes"
BACKFILL_PROMISES: Final = "backfill.promises"
RUNTIME_DEFAULT: Final = "runtime.default"
RUNTIME_MAX: Final = "runtime.max"
RUNTIME_OVERRUN: Final = "runtime.overrun"
RUNTIME_EXPECTED: Final = "runtime.expected"
_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1
_WEIGHT_MAX: Final = 1_000_000
_RESERVATIONS_MAX: Final = 1000
_PASSES: Final = 3
_ALL: Final = "all"
_UINT64_MAX: Final = 2**64 - 1
_DEFAULT_DELAY_NS: Final = 30 * 10**9
_SIGNED: Final = re.compile(r"[-+]?[0-9]{1,40}")
_UNSIGNED: Final = re.compile(r"[0-9]{1,40}")


class DisruptionBudget(NamedTuple):
    """How many allocations a queue, with all below it, may lose to other asks in any time so long."""

    victims: int
    within_ns: int


@dataclass(frozen=True, slots=True)
class BackfillSettings:
    """How many of the first jobs below a queue are promised a start, and the order of those behind them."""

    reservations: int
    order: BackfillOrder
    keeps: bool = False
    """A promise is made when a job comes, and it is kept: conservative backfilling."""
    passes: int = _PASSES
    """How many later comers may pass a promise for the sake of shares."""
    order_word: str = ""
    """The policy, with its prefix, that orders the jobs behind promises; empty for `order`."""
    promises_word: str = ""
    """The policy, with its prefix, that says which jobs are promised a start; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """The run times of a queue, in nanoseconds; `None` where they are not set."""

    default_ns: int | None = None
    max_ns: int | None = None
    ends_overruns: bool = False
    expected_word: str = ""
    """The policy, with its prefix, that says how long work runs in plans; empty for the walltime."""

    @property
    def assumed_ns(self) -> int | None:
        """The walltime of work without a specific one: the default, else the maximum."""
        return self.max_ns if self.default_ns is None else self.default_ns


_NO_RUNTIME: Final = RuntimeSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueProperties:
    """The meaning of the properties of one queue.

    A backoff count, a quota preemption delay or a minimum run time of 0 is off.
    """

    application_sort_policy: str = "fifo"
    """One of `APPLICATION_ORDER_WORDS`, or a policy with its prefix."""
    queue_sort_policy: str = "fair"
    """One of `QUEUE_ORDER_WORDS`, or a policy with its prefix: of the queues below."""
    priority_sorting: bool = True
    priority_policy: PriorityPolicy = PriorityPolicy.DEFAULT
    priority_offset: int = 0
    preemption_policy: PreemptionPolicy = PreemptionPolicy.DEFAULT
    preemption_delay_ns: int = _DEFAULT_DELAY_NS
    min_runtime_ns: int = 0
    min_runtime_scope: MinRuntimeScope = MinRuntimeScope.ALL
    victims_max: DisruptionBudget | None = None
    preemption_within: PreemptionWithin = PreemptionWithin.NEVER
    backoff_count: int = 0
    backoff_delay_ns: int = _DEFAULT_DELAY_NS
    quota_preemption_delay_ns: int = 0
    fair_half_life_ns: int | None = None
    """Of the use of the queues below, or of the users of a leaf; `None` where the past does not count."""
    fair_count: FairCount = FairCount.ABOVE_GUARANTEE
    """How the priorities of queues below count."""
    fair_weight: int | None = None
    runtime: RuntimeSettings = _NO_RUNTIME
    gang_placing: GangPlacing = GangPlacing.STEPWISE
    """For applications that announce placeholders and do not set it themselves."""
    backfill: BackfillSettings | None = None
    """`None` where nothing is promised and nothing waits for a promise."""


def _sort_policy(text: str) -> str | None:
    if text in APPLICATION_ORDER_WORDS or is_policy_word(text):
        return text
    # `stateaware` was a separate policy once; it means the order of submission now.
    return "fifo" if text in {"", "stateaware"} else None


def _policy_word(text: str) -> str | None:
    return text if is_policy_word(text) else None


def _queue_sort_policy(text: str) -> str | None:
    return text if text in QUEUE_ORDER_WORDS or is_policy_word(text) else None


def _switch(text: str) -> bool | None:
    return {"enabled": True, "disabled": False}.get(text.lower())


def _one_of(kind: type[_Kind]) -> Callable[[str], _Kind | None]:
    """Return what reads a word of an enumeration, whatever the case of its letters."""
    words = {str(each.value): each for each in kind}
    return lambda text: words.get(text.lower())


_priority_policy: Final = _one_of(PriorityPolicy)
_preemption_policy: Final = _one_of(PreemptionPolicy)
_min_runtime_scope: Final = _one_of(MinRuntimeScope)
_within: Final = _one_of(PreemptionWithin)
read_gang_placing: Final = _one_of(GangPlacing)
_overrun: Final = _one_of(Overrun)
_built_in_backfill_order: Final = _one_of(BackfillOrder)
_fair_count: Final = _one_of(FairCount)


def _victims_max(text: str) -> DisruptionBudget | None:
    number, _, within = text.partition("/")
    within_ns = _delay_ns(within)
    if within_ns is None or not _UNSIGNED.fullmatch(number) or not 0 < int(number) <= _INT32_MAX:
        return None
    return DisruptionBudget(int(number), within_ns)


def _small_count(text: str) -> int | None:
    number = int(text) if _UNSIGNED.fullmatch(text) else -1
    return number if 0 <= number <= _RESERVATIONS_MAX else None


def _reservations(text: str) -> int | None:
    return _RESERVATIONS_MAX if text.lower() == _ALL else _small_count(text)


def _backfill_order(text: str) -> BackfillOrder | str | None:
    return _policy_word(text) or _built_in_backfill_order(text)


def _backfill(properties: Mapping[str, str]) -> BackfillSettings | None:
    text = properties.get(BACKFILL_RESERVATIONS, "")
    count = _reservations(text)
    if not count:
        return None
    order = _built_in_backfill_order(properties.get(BACKFILL_ORDER, "")) or BackfillOrder.QUEUE
    passes = _small_count(properties.get(BACKFILL_PASSES, ""))
    return BackfillSettings(
        count,
        order,
        keeps=text.lower() == _ALL,
        passes=_PASSES if passes is None else passes,
        order_word=_policy_word(properties.get(BACKFILL_ORDER, "")) or "",
        promises_word=_policy_word(properties.get(BACKFILL_PROMISES, "")) or "",
    )


def _offset(text: str) -> int | None:
    number = int(text) if _SIGNED.fullmatch(text) else None
    return number if number is not None and _INT32_MIN <= number <= _INT32_MAX else None


def _backoff_count(text: str) -> int | None:
    number = int(text) if _UNSIGNED.fullmatch(text) else None
    return number if number is not None and number <= _UINT64_MAX else None


def read_weight(text: str) -> int | None:
    """Return a weight of a queue or a user, `None` for a text that is not one."""
    number = int(text) if _UNSIGNED.fullmatch(text) else 0
    return number if 0 < number <= _WEIGHT_MAX else None


def _duration_ns(text: str) -> int | None:
    try:
        duration_ns = parse_duration_ns(text)
    except DurationError:
        return None
    return duration_ns if duration_ns >= 0 else None


def _delay_ns(text: str) -> int | None:
    return _duration_ns(text) or None


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    APPLICATION_SORT_POLICY: _sort_policy,
    QUEUE_SORT_POLICY: _queue_sort_policy,
    APPLICATION_SORT_PRIORITY: _switch,
    PRIORITY_POLICY: _priority_policy,
    PRIORITY_OFFSET: _offset,
    PREEMPTION_POLICY: _preemption_policy,
    PREEMPTION_DELAY: _delay_ns,
    PREEMPTION_MIN_RUNTIME: _duration_ns,
    PREEMPTION_MIN_RUNTIME_SCOPE: _min_runtime_scope,
    PREEMPTION_VICTIMS_MAX: _victims_max,
    PREEMPTION_WITHIN: _within,
    BACKOFF: _backoff_count,
    BACKOFF_DELAY: _delay_ns,
    QUOTA_PREEMPTION_DELAY: _delay_ns,
    FAIR_COUNT: _fair_count,
    FAIR_HALF_LIFE: _delay_ns,
    FAIR_WEIGHT: read_weight,
    GANG_PLACING: read_gang_placing,
    BACKFILL_RESERVATIONS: _reservations,
    BACKFILL_ORDER: _backfill_order,
    BACKFILL_PASSES: _small_count,
    BACKFILL_PROMISES: _policy_word,
    RUNTIME_DEFAULT: _delay_ns,
    RUNTIME_MAX: _delay_ns,
    RUNTIME_OVERRUN: _overrun,
    RUNTIME_EXPECTED: _policy_word,
}
PROPERTIES: Final = tuple(_READERS)
"""The names of all properties that mean something."""
REFUSED_IF_UNREADABLE: Final = (
    *(PREEMPTION_MIN_RUNTIME, PREEMPTION_MIN_RUNTIME_SCOPE, PREEMPTION_VICTIMS_MAX, PREEMPTION_WITHIN),
    *(RUNTIME_DEFAULT, RUNTIME_MAX, RUNTIME_OVERRUN, RUNTIME_EXPECTED),
    *(FAIR_COUNT, FAIR_HALF_LIFE, FAIR_WEIGHT),
    *(GANG_PLACING, QUEUE_SORT_POLICY),
    *(BACKFILL_RESERVATIONS, BACKFILL_ORDER, BACKFILL_PASSES, BACKFILL_PROMISES),
)
"""Properties that the recorded core does not know: a configuration with an invalid value is refused."""


def reads(name: str, text: str) -> bool:
    """Return whether a property has a readable value; one that is unreadable counts as not set."""
    return _READERS[name](text) is not None


def evaluate(properties: Mapping[str, str], *, is_leaf: bool) -> QueueProperties:
    """Read the properties of a queue.

    Args:
        properties: The properties of the queue, those it inherited included.
        is_leaf: Whether the queue holds applications. A parent always serves its queues fairly and has the
            default preemption delay, whatever its properties are for the leaves below it.
    """
    if not properties:  # As most queues: these values never change, so that they share one.
        return _LEAF_DEFAULTS if is_leaf else _PARENT_DEFAULTS

    def read(name: str, reader: Callable[[str], _Value | None], default: _Default) -> _Value | _Default:
        value = reader(properties[name]) if name in properties else None
        return default if value is None else value

    return QueueProperties(
        application_sort_policy=(read(APPLICATION_SORT_POLICY, _sort_policy, "fifo") if is_leaf else "fair"),
        queue_sort_policy="fair" if is_leaf else read(QUEUE_SORT_POLICY, _queue_sort_policy, "fair"),
        priority_sorting=read(APPLICATION_SORT_PRIORITY, _switch, default=True),
        priority_policy=read(PRIORITY_POLICY, _priority_policy, PriorityPolicy.DEFAULT),
        priority_offset=read(PRIORITY_OFFSET, _offset, 0),
        preemption_policy=read(PREEMPTION_POLICY, _preemption_policy, PreemptionPolicy.DEFAULT),
        preemption_delay_ns=(
            read(PREEMPTION_DELAY, _delay_ns, _DEFAULT_DELAY_NS) if is_leaf else _DEFAULT_DELAY_NS
        ),
        min_runtime_ns=read(PREEMPTION_MIN_RUNTIME, _duration_ns, 0),
        min_runtime_scope=read(PREEMPTION_MIN_RUNTIME_SCOPE, _min_runtime_scope, MinRuntimeScope.ALL),
        victims_max=read(PREEMPTION_VICTIMS_MAX, _victims_max, None),
        preemption_within=read(PREEMPTION_WITHIN, _within, PreemptionWithin.NEVER),
        backoff_count=read(BACKOFF, _backoff_count, 0),
        backoff_delay_ns=read(BACKOFF_DELAY, _delay_ns, _DEFAULT_DELAY_NS),
        quota_preemption_delay_ns=read(QUOTA_PREEMPTION_DELAY, _delay_ns, 0),
        fair_half_life_ns=read(FAIR_HALF_LIFE, _delay_ns, None),
        fair_count=read(FAIR_COUNT, _fair_count, FairCount.ABOVE_GUARANTEE),
        fair_weight=read(FAIR_WEIGHT, read_weight, None),
        runtime=RuntimeSettings(
            default_ns=read(RUNTIME_DEFAULT, _delay_ns, None),
            max_ns=read(RUNTIME_MAX, _delay_ns, None),
            ends_overruns=read(RUNTIME_OVERRUN, _overrun, Overrun.EXTEND).is_ended,
            expected_word=read(RUNTIME_EXPECTED, _policy_word, ""),
        ),
        gang_placing=read(GANG_PLACING, read_gang_placing, GangPlacing.STEPWISE),
        backfill=None if is_leaf else _backfill(properties),
    )


_LEAF_DEFAULTS: Final = QueueProperties()
_PARENT_DEFAULTS: Final = QueueProperties(application_sort_policy="fair")
_NOT_INHERITED: Final = (
    *(FAIR_WEIGHT, BACKFILL_RESERVATIONS, BACKFILL_ORDER),
    *(BACKFILL_PASSES, BACKFILL_PROMISES),
)


def inherit(parent: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a queue in the configuration: those of its parent under its own.

    Properties of the parent alone are inherited with their default values: the priority policy, the priority
    offset, and the preemption policy unless that is `disabled`. The weight and backfilling are not inherited.
    Everything else is inherited unchanged, unknown properties too.
    """
    inherited = {name: _inherited(name, text) for name, text in parent.items() if name not in _NOT_INHERITED}
    return inherited | dict(own)


def _inherited(name: str, text: str) -> str:
    """Return a property as a child inherits it."""
    match name:
        case "priority.policy":
            return PriorityPolicy.DEFAULT.value
        case "priority.offset":
            return "0"
        case "preemption.policy":
            policy = _preemption_policy(text)
            return text if policy is not None and policy.is_disabled else PreemptionPolicy.DEFAULT.value
        case _:
            return text


def starvation_bounds(queue: QueueConfig, above: Mapping[str, str] = {}) -> Iterator[RuleFinding]:
    """Walk what each queue promises that backfills, of a queue and all below it.

    Args:
        queue: The queue.
        above: The properties that it inherits.
    """
    properties = inherit(above, queue.properties)
    settings = evaluate(properties, is_leaf=queue.is_leaf)
    if settings.backfill is not None:
        passes, half_life_ns = settings.backfill.passes, settings.fair_half_life_ns
        later = "1 later comer" if passes == 1 else f"{passes} later comers"
        until = ""
        if passes and half_life_ns is not None:
            until = f", within {short_duration_text(half_life_ns)} of the first"
        position = queue.positions.get(f"properties.{BACKFILL_RESERVATIONS}", queue.position)
        yield RuleFinding(position, f"at most {later} may delay a promised start by their shares{until}")
    for child in queue.queues:
        yield from starvation_bounds(child, properties)
