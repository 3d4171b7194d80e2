"""Decayed use: the mean amount that someone has used, where what is past counts half after each half-life.

Someone who uses an amount all the time has it as their mean; a half-life after they stop it is half of that.
With G(t) = 2**(t / half-life) the mean of one resource type is `amount + kept / G(t)`, where `amount` is the
current use, and `kept` changes only when that changes: by -change * G(now). So there is no tick and no
timer, the order of changes does not matter, and neither does when anyone looks.

G is an integer in fixed point, by integer square roots and shifts: it has the same bits on every machine. It
begins anew at each multiple of 64 half-lives since 1970, a *span*, with `kept` divided by 2**64, so that the
numbers stay small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import isqrt, log2
from typing import Final, NamedTuple, final

from .resource import EMPTY, Resource

_BITS: Final = 64
_SPAN_HALF_LIVES: Final = 64
_AHEAD_HALF_LIVES_MAX: Final = 20
"""The horizon for two to become level: then a millionth of the past use is left."""


def _roots() -> tuple[int, ...]:
    """Return 2**(1/2), 2**(1/4), ... in fixed point: 40 of them are exact to a millionth of a millionth."""
    roots = [2 << _BITS]
    for _ in range(40):
        roots.append(isqrt(roots[-1] << _BITS))
    return tuple(roots[1:])


_ROOTS: Final = _roots()


class TypeUse(NamedTuple):
    """The use of one resource type: what is in use now, and what is kept of the past, in 1 / 2**64 of it."""

    amount: int
    kept: int


_NOTHING: Final = TypeUse(0, 0)


class DecayedUse(NamedTuple):
    """The use of one holder by resource type; `kept` counts from the beginning of a span of 64 half-lives."""

    half_life_ns: int
    span: int
    types: Mapping[str, TypeUse]


def span_of(now_ns: int, half_life_ns: int) -> int:
    """Return the number of the span of 64 half-lives that a moment is in."""
    return now_ns // (half_life_ns * _SPAN_HALF_LIVES)


@lru_cache(maxsize=64)  # Siblings have one half-life and one moment, and this is half of the work.
def _growth(now_ns: int, half_life_ns: int, span: int) -> int:
    """Return 2**(half-lives since the beginning of a span), in units of 1 / 2**64.

    A moment before the span has a growth below one, which is exact to such a unit.
    """
    whole, rest = divmod(now_ns, half_life_ns)
    value = 1 << _BITS
    for root in _ROOTS:
        rest *= 2
        if rest >= half_life_ns:
            rest -= half_life_ns
            value = value * root >> _BITS
    return _shifted(value, whole - span * _SPAN_HALF_LIVES)


def _shifted(value: int, places: int) -> int:
    return value << places if places >= 0 else value >> -places


def no_use(half_life_ns: int, now_ns: int) -> DecayedUse:
    """Return the use of someone who has used nothing."""
    return DecayedUse(half_life_ns, span_of(now_ns, half_life_ns), {})


def changed(use: DecayedUse, changes: Mapping[str, int], now_ns: int) -> DecayedUse:
    """Return the use after the amounts in use have changed.

    Args:
        use: The use before.
        changes: Resource type -> how much more is in use from then on, negative for less.
        now_ns: The moment; it may lie before that of other changes that are counted already.
    """
    use = _in_span(use, max(use.span, span_of(now_ns, use.half_life_ns)))
    by = _growth(now_ns, use.half_life_ns, use.span)
    types = dict(use.types)
    for name, change in changes.items():
        amount, kept = types.get(name, _NOTHING)
        types[name] = TypeUse(amount + change, kept - change * by)
        if types[name] == _NOTHING:
            del types[name]
    return use._replace(types=types)


def raised_to(use: DecayedUse, amounts: Mapping[str, int], now_ns: int) -> DecayedUse:
    """Return the use with these amounts in use from now on; the same object if they are in use already."""
    changes = {}
    for name in {**use.types, **amounts}:
        change = amounts.get(name, 0) - use.types.get(name, _NOTHING).amount
        if change:
            changes[name] = change
    return changed(use, changes, now_ns) if changes else use


def with_past(use: DecayedUse, amounts: Mapping[str, int], since_ns: int, now_ns: int) -> DecayedUse:
    """Return the use of someone who has used these amounts as well from an earlier moment until now.

    The current use is not changed.
    """
    ended = {name: -amount for name, amount in amounts.items()}
    return changed(changed(use, amounts, since_ns), ended, now_ns)


def with_half_life(use: DecayedUse, half_life_ns: int, now_ns: int) -> DecayedUse:
    """Return the use with the same means now, that decays with another half-life from now on."""
    if half_life_ns == use.half_life_ns:
        return use
    return carried(use, now_ns, half_life_ns, now_ns)


def carried(use: DecayedUse, from_ns: int, half_life_ns: int, to_ns: int) -> DecayedUse:
    """Return the use that has at another moment, and with its half-life, the means that this one has."""
    now, before = _seen(use, from_ns)
    span = span_of(to_ns, half_life_ns)
    after = _growth(to_ns, half_life_ns, span)
    types = {name: TypeUse(amount, kept * after // before) for name, (amount, kept) in now.types.items()}
    return DecayedUse(half_life_ns, span, types)


def _seen(use: DecayedUse, now_ns: int) -> tuple[DecayedUse, int]:
    """Return the use counted from the span of a moment, and the growth since it began.

    Where a clock was set back before the span of what has happened since, the beginning of that is seen.
    """
    use = _in_span(use, max(use.span, span_of(now_ns, use.half_life_ns)))
    return use, max(_growth(now_ns, use.half_life_ns, use.span), 1 << _BITS)


def _in_span(use: DecayedUse, span: int) -> DecayedUse:
    """Return the same use, counted from the beginning of another span."""
    if span == use.span:
        return use
    places = (use.span - span) * _SPAN_HALF_LIVES
    types = {name: TypeUse(amount, _shifted(kept, places)) for name, (amount, kept) in use.types.items()}
    return DecayedUse(use.half_life_ns, span, types)


def decayed_means(use: DecayedUse, now_ns: int) -> dict[str, float]:
    """Return the mean amount of each resource type, in its own unit; empty for a moment before its use."""
    use, by = _seen(use, now_ns)
    return {name: max(amount * by + kept, 0) / by for name, (amount, kept) in sorted(use.types.items())}


def rounded(means: Mapping[str, float]) -> Resource:
    """Return means in whole units, to be shown; what is less than half a unit is left out."""
    return Resource({name: whole for name, mean in means.items() if (whole := round(mean))})


def decayed_share(means: Mapping[str, float], limits: Resource | None, weight: int) -> float:
    """Return the largest share of a limit that the means are, for a weight.

    As in `fair_share`, types without a limit do not count, and any use of a limit of nothing is all of it.
    """
    return max(_shares(means, limits), default=0.0) / weight


def grown_share(use: DecayedUse, limits: Resource | None, now_ns: int) -> tuple[float, bool]:
    """Return the largest share of a limit that the means are, times the growth since the span began.

    Those that share a half-life have the same growth, so this orders them as the share does. It is the same
    at each moment of a span for those that use nothing.

    Returns:
        The product, and whether time alone changes it within the span.
    """
    span = span_of(now_ns, use.half_life_ns)
    growth = _growth(now_ns, use.half_life_ns, span)
    if use.span > span:  # The clock was set back.
        return decayed_share(decayed_means(use, now_ns), limits, 1) * growth, True
    most, moves = 0.0, False
    for name, (amount, kept) in _in_span(use, span).types.items():
        if limits is None or not limits.has(name):
            continue
        limit, grown = limits.get(name), amount * growth + kept
        moves = moves or bool(amount) or limit <= 0
        if grown > 0:
            most = max(most, grown / limit if limit > 0 else float(growth))
    return most, moves


def _shares(means: Mapping[str, float], limits: Resource | None) -> Iterator[float]:
    if limits is None:
        return
    for name, mean in means.items():
        if limits.has(name) and mean > 0:
            limit = limits.get(name)
            yield mean / limit if limit > 0 else 1.0


def level_in_ns(
    uses: tuple[DecayedUse, DecayedUse], weights: tuple[int, int], limits: Resource | None, now_ns: int
) -> int | None:
    """Return after how long two that share a half-life are level, if their current use does not change.

    From then on the other one has the smaller share. It is to be shown, and no key of an order: it takes a
    logarithm, whose last digits are not the same on every machine.

    Returns:
        Nanoseconds from now; `None` if they do not become level, or not within 20 half-lives.
    """
    first, second = (_courses(use, limits, weight, now_ns) for use, weight in zip(uses, weights, strict=True))
    meetings = {
        (other.end - one.end) / slope
        for one in first
        for other in second
        if (slope := (one.now - one.end) - (other.now - other.end))
    }
    least = 1.0 / (1 << _AHEAD_HALF_LIVES_MAX)
    meetings_ahead = sorted((left for left in meetings if least < left < 1.0), reverse=True)
    stretches = pairwise([1.0, *meetings_ahead, least])
    middles = ((begin + end) / 2 for begin, end in stretches)
    differences = [_share_with(first, left) - _share_with(second, left) for left in middles]
    for left, (before, after) in zip(meetings_ahead, pairwise(differences), strict=True):
        if before and before * after <= 0.0:
            return round(-log2(left) * uses[0].half_life_ns)
    return None


class _Course(NamedTuple):
    """The share of one type now, and the one that it approaches if the current use does not change."""

    now: float
    end: float


def _courses(use: DecayedUse, limits: Resource | None, weight: int, now_ns: int) -> list[_Course]:
    return [
        _Course(
            decayed_share({name: mean}, limits, weight),
            decayed_share({name: float(use.types[name].amount)}, limits, weight),
        )
        for name, mean in decayed_means(use, now_ns).items()
    ] or [_Course(0.0, 0.0)]


def _share_with(courses: Sequence[_Course], left: float) -> float:
    """Return the share when a part of the past use is left: all of it now, half after a half-life."""
    return max(course.end + (course.now - course.end) * left for course in courses)


def above(allocated: Resource, guaranteed: Resource | None) -> dict[str, int]:
    """Return what is allocated above the guarantee, type by type; what is not guaranteed is all above."""
    promised = EMPTY if guaranteed is None else guaranteed
    return {
        name: quantity - max(promised.get(name), 0)
        for name, quantity in allocated.items()
        if quantity > max(promised.get(name), 0)
    }


@final
class TrackedResource:
    """Sums of quantity times seconds by instance type and resource type.

    The object belongs to one application, which alone aggregates into it; ``as_dict`` and ``copy`` are for
    handing the sums out. Sums are exact, where those of the recorded core wrap around at 64 bits and come out
    negative.

    Args:
        sums: The sums to start from, by instance type and resource type; copied.

    Raises:
        QuantityError: A sum is not an integer.
    """

    __slots__ = ("_sums",)

    __hash__ = None  # type: ignore[assignment] # It changes while its application runs.

    def __init__(self, sums: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self._sums: dict[str, dict[str, int]] = {}
        if sums:
            self._sums = {instance: Resource(usage).as_dict() for instance, usage in sums.items()}

    def aggregate(self, instance_type: str, resource: Resource | None, seconds: int) -> None:
        """Add what a released allocation has used.

        Args:
            instance_type: The instance type of the node; nodes without one share the type ``""``.
            resource: The resource of the allocation; without one nothing is added.
            seconds: The whole seconds from binding to release.
        """
        if resource is None:
            return
        usage = self._sums.setdefault(instance_type, {})
        for name, quantity in resource.items():
            usage[name] = usage.get(name, 0) + quantity * seconds

    def copy(self) -> TrackedResource:
        """Return an independent object with the same sums."""
        return TrackedResource(self._sums)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return fresh dicts of the sums, sorted by instance type and resource type; the caller owns them."""
        if not self._sums:
            return {}
        return {
            instance_type: dict(sorted(usage.items())) for instance_type, usage in sorted(self._sums.items())
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrackedResource):
            return NotImplemented
        return self._sums == other._sums

    def __repr__(self) -> str:
        entries = (
            f"{instance_type}:{name}={total}"
            for instance_type, usage in self.as_dict().items()
            for name, total in usage.items()
        )
        return f"TrackedResource{{{','.join(entries)}}}"
