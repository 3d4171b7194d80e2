"""Resources: how much of each type something has, wants or uses, the arithmetic on the hot path, and texts.

A resource is a sparse map from type name to quantity. Three similar things are different, because the rules
of the scheduler distinguish them: no resource at all (``None``: nothing was given), a resource without types
(``EMPTY``), and a resource with explicit zeros (that type was named).

Resources never change once made, so any number of owners and threads may share one, and an operation
whose other operand is missing returns the object that it was given instead of a copy. The results
here take the dict that they were computed in without a copy; the constructor checks and copies the
values of others.

Values from outside fit 64 bits, see ``quantities``. Sums and differences are exact, whatever their
size: one that stopped at the bound of the range would be too small once something is subtracted.

Rarer comparisons and combinations are in `comparisons`. Texts are written as messages have them, as users
write quotas, and as people read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Final, final, overload

from ..identifiers import names_refusal
from .quantities import INT64_MAX, INT64_MIN, QuantityError, parse_quantity, parse_vcore

# ruff: noqa: SLF001 - the functions of this module are the operations of the class; only they see its dict.


@final
class Resource:
    """An immutable map from resource type to quantity; types may be present with the value zero.

    Args:
        quantities: The quantity of each type; copied. Units are those of the type: milli-cores, bytes
            or a count.
        owned: The resource gets the dict itself, whose entries are known to be right; for this module alone.

    Raises:
        QuantityError: A type is not a text, or a quantity is not an integer.
    """

    __slots__ = ("_hash", "_quantities")

    _hash: int
    _quantities: dict[str, int]

    def __init__(self, quantities: Mapping[str, int], owned: bool = False) -> None:  # noqa: FBT001, FBT002 - quicker
        if owned:
            self._quantities = quantities  # type: ignore[assignment] # this module makes them of dicts alone
            return
        entries: Iterable[tuple[object, object]] = quantities.items()
        for name, quantity in entries:
            _check_entry(name, quantity)
        self._quantities = dict(quantities)

    def items(self) -> ItemsView[str, int]:
        """View the (type, quantity) pairs, in the order in which the types were first named."""
        return self._quantities.items()

    def values(self) -> ValuesView[int]:
        """View the quantities, in the order of ``items``."""
        return self._quantities.values()

    def get(self, name: str, default: int = 0) -> int:
        """Return the quantity of a type, or the default when the type is absent."""
        return self._quantities.get(name, default)

    def as_dict(self) -> dict[str, int]:
        """Return a fresh dict of the quantities, sorted by type; the caller owns it."""
        return dict(sorted(self._quantities.items()))

    def has(self, name: str) -> bool:
        """Return whether a type is named.

        It has no operator `in`: mypyc would use that for `resource in sizes` as well, and look for
        the sizes in the resource.
        """
        return name in self._quantities

    def __getitem__(self, name: str) -> int:
        return self._quantities[name]

    def __len__(self) -> int:
        return len(self._quantities)

    def __iter__(self) -> Iterator[str]:
        return iter(self._quantities)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return self is other or self._quantities == other._quantities

    def __hash__(self) -> int:
        # The hash is computed when it is first asked for: most resources are never a key, and leaving the
        # slot unset is cheaper than writing a marker into each new object.
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self._quantities.items()))
            return self._hash

    def __repr__(self) -> str:
        return f"Resource({self.as_dict()!r})"

    def __reduce__(self) -> tuple[type[Resource], tuple[dict[str, int]]]:
        # A cached hash must not travel: the hashes of texts differ from one process to the next.
        return Resource, (self._quantities,)


EMPTY: Final = Resource({})


def _check_entry(name: object, quantity: object) -> None:
    """Refuse an invalid entry of a resource."""
    if type(name) is not str:
        raise QuantityError(f"the resource type {name!r} is not a text")
    if type(quantity) is not int:
        raise QuantityError(f"the quantity {quantity!r} of resource type {name!r} is not an integer")


def add(left: Resource | None, right: Resource | None) -> Resource:
    """Add type by type over all types of both sides."""
    if right is None or not right._quantities:
        return EMPTY if left is None else left
    if left is None or not left._quantities:
        return right
    base = left._quantities
    total = base.copy()
    for name, quantity in right._quantities.items():
        total[name] = base[name] + quantity if name in base else quantity
    return Resource(total, True)


def total_of(resources: Iterable[Resource]) -> Resource:
    """Add any number of resources, type by type."""
    total: dict[str, int] = {}
    times = 0
    last = EMPTY
    for resource in resources:
        if resource is last:  # Asks that come together mostly have one size: all of a row are added at once.
            times += 1
            continue
        if times:
            _add_times(total, last, times)
        last, times = resource, 1
    if times == 1 and not total:
        return last  # As it is: a resource never changes.
    if times:
        _add_times(total, last, times)
    return Resource(total, True)


def _add_times(total: dict[str, int], resource: Resource, times: int) -> None:
    for name, quantity in resource._quantities.items():
        quantities = quantity * times
        total[name] = total[name] + quantities if name in total else quantities


def subtract(left: Resource | None, right: Resource | None) -> Resource:
    """Subtract type by type over all types of both sides; results may be negative."""
    if right is None or not right._quantities:
        return EMPTY if left is None else left
    rest = {} if left is None else left._quantities.copy()
    for name, quantity in right._quantities.items():
        rest[name] = rest.get(name, 0) - quantity
    return Resource(rest, True)


def take_away(left: Resource, right: Resource) -> Resource | None:
    """Subtract what is contained in the left side; types of which nothing is left are dropped.

    Returns:
        `None` if some type would fall below zero. A type with quantity zero on the right is ignored.
    """
    if left is right:  # The only ask of an application, for example.
        return EMPTY
    rest = left._quantities.copy()
    for name, quantity in right._quantities.items():
        value = rest[name] - quantity if name in rest else -quantity
        if value > 0:
            rest[name] = value
        elif value == 0:
            rest.pop(name, None)
        elif quantity:
            return None
    if not rest:
        return EMPTY  # One shared object, not an empty dict for each of the many without use.
    return Resource(rest, True)


@overload
def subtract_only_existing(base: Resource, delta: Resource | None) -> Resource: ...
@overload
def subtract_only_existing(base: None, delta: Resource | None) -> None: ...
def subtract_only_existing(base: Resource | None, delta: Resource | None) -> Resource | None:
    """Subtract from the types of the base only; types that only the delta names are ignored."""
    if base is None or delta is None:
        return base
    rest = base._quantities.copy()
    for name, quantity in delta._quantities.items():
        if name in rest:
            rest[name] -= quantity
    return Resource(rest, True)


def subtract_eliminating_negative(left: Resource | None, right: Resource | None) -> Resource:
    """Subtract, and raise negative results among the types of the right side to zero."""
    return subtract_reporting_negative(left, right)[0]


def subtract_reporting_negative(
    left: Resource | None, right: Resource | None
) -> tuple[Resource, tuple[str, ...]]:
    """Subtract, raise negative results among the types of the right side to zero, and name these types.

    A quantity that was negative before and that the right side does not name is not changed.

    Returns:
        The difference, and the sorted names of the types that were raised to zero.
    """
    difference = subtract(left, right)
    if right is None:
        return difference, ()
    rest = difference._quantities
    negative = tuple(sorted(name for name in right._quantities if rest[name] < 0))
    if not negative:
        return difference, ()
    return Resource(rest | dict.fromkeys(negative, 0), True), negative


@overload
def component_wise_min(left: Resource, right: Resource | None) -> Resource: ...
@overload
def component_wise_min(left: None, right: Resource) -> Resource: ...
@overload
def component_wise_min(left: None, right: None) -> None: ...
def component_wise_min(left: Resource | None, right: Resource | None) -> Resource | None:
    """Take the lower quantity of each type; a type that one side does not name is unlimited there."""
    if right is None or left is right:
        return left
    if left is None:
        return right
    lowest = left._quantities.copy()
    for name, quantity in right._quantities.items():
        if name not in lowest or quantity < lowest[name]:
            lowest[name] = quantity
    return Resource(lowest, True)


def fits(limit: Resource | None, wanted: Resource | None) -> bool:
    """Return whether the limit covers the request; of a type without a limit nothing is available.

    A negative limit counts as zero, and a request of zero or less always fits.
    """
    if wanted is None:
        return True
    have = (EMPTY if limit is None else limit)._quantities
    for name, quantity in wanted._quantities.items():
        if quantity > 0 and (name not in have or quantity > have[name]):
            return False
    return True


def is_at_least(most: Resource, resource: Resource) -> bool:
    """Return whether the first one names every type of the second one, with no lower quantity."""
    have = most._quantities
    for name, quantity in resource._quantities.items():
        if name not in have or quantity > have[name]:
            return False
    return True


def fits_undefined_unlimited(limit: Resource | None, wanted: Resource | None) -> bool:
    """Return whether the limit covers what is asked for; a type without a limit is unlimited.

    A negative limit counts as zero, and a request of zero or less always fits.
    """
    if limit is None or wanted is None:
        return True
    have = limit._quantities
    for name, quantity in wanted._quantities.items():
        if quantity > 0 and name in have and quantity > have[name]:
            return False
    return True


def fits_in_addition(limit: Resource, used: Resource, wanted: Resource, *, undefined_unlimited: bool) -> bool:
    """Return whether the limit covers what is used and what is asked for, for the types that are asked for.

    A type without a limit is unlimited, or nothing of it is available. A quantity of zero asks for nothing:
    it fits even if more is used than the limit.
    """
    have, taken = limit._quantities, used._quantities
    for name, quantity in wanted._quantities.items():
        if quantity <= 0:
            continue
        total = taken[name] + quantity if name in taken else quantity
        if name in have:
            if total > have[name] and total > 0:
                return False
        elif total > 0 and not undefined_unlimited:
            return False
    return True


def weighted_usage(capacity: Resource, available: Resource, weights: Iterable[tuple[str, float]]) -> float:
    """Return the weighted mean of how much of each type is used, from 0.0 to 1.0.

    A type without a weight, or without a quantity, does not count; without any the usage is 0.0.
    """
    totals, rest = capacity._quantities, available._quantities
    used = 0.0
    counted = 0.0
    for name, weight in weights:
        if name in totals and (total := totals[name]):
            used += weight * (1.0 - rest[name] / total) if name in rest else weight
            counted += weight
    return used / counted if counted else 0.0


def is_any_positive(resource: Resource) -> bool:
    """Return whether a quantity is above zero: a quick `strictly_greater_than_zero` without negative ones."""
    for quantity in resource._quantities.values():  # noqa: SIM110 - a generator takes twice as long
        if quantity > 0:
            return True
    return False


def strictly_greater_than_zero(resource: Resource | None) -> bool:
    """Return whether no quantity is negative and at least one is positive."""
    if resource is None:
        return False
    positive = False
    for quantity in resource._quantities.values():
        if quantity < 0:
            return False
        if quantity:
            positive = True
    return positive


_VCORE: Final = "vcore"
_BINARY: Final = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))


def describe(resource: Resource | None) -> str:
    """Write a resource as the messages of the scheduler show it: ``map[memory:10 vcore:1]``."""
    if resource is None:
        return "nil resource"
    return f"map[{' '.join(f'{name}:{quantity}' for name, quantity in sorted(resource.items()))}]"


def resource_from_texts(texts: Mapping[str, str] | None) -> Resource:
    """Read the resources of a configuration: ``vcore`` in cores or milli-cores, all others plain.

    No map, or an empty one, gives the resource without types.

    Raises:
        QuantityError: A text is not a quantity; the first one, with its type, is named.
    """
    if not texts:
        return EMPTY
    return Resource({name: _parse_entry(name, text) for name, text in texts.items()})


def resource_from_json(text: str) -> Resource:
    """Read a quota from the JSON in a namespace tag: ``{"resources":{"memory":{"value":100}}}``.

    The values are raw quantities. ``null``, or an object without ``resources``, gives the resource without
    types. Field names are found whatever their case and unknown fields are ignored, as in the recorded core.

    Raises:
        QuantityError: The text is not JSON, has another shape, a name
            is not one, or a value is not a signed 64-bit integer.
    """
    # Deep nesting ends in a `RecursionError`; a number with thousands of digits in a `ValueError`.
    try:
        message: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise QuantityError(f"invalid resource JSON: {text!r}: {error}") from error
    entries = _field(message, "resources", text)
    if entries is None:
        return EMPTY
    quantities = {name: _value(entry, text) for name, entry in _object(entries, text).items()}
    refusal = names_refusal("a resource type", quantities)
    if refusal is not None:
        raise QuantityError(f"invalid resource JSON: {text!r}: {refusal}")
    return Resource(quantities)


def negative_text(what: str, resource: Resource | None) -> str | None:
    """Return a sentence about what is negative in a resource, `None` if nothing is; `what` names it."""
    below = [(kind, amount) for kind, amount in (resource or EMPTY).items() if amount < 0]
    lacks = ", ".join(f"{kind} is {amount}" for kind, amount in below)
    return f"{what} is negative: {lacks}" if lacks else None


def _parse_entry(name: str, text: str) -> int:
    """Read one entry of the configuration with the parser of its type."""
    try:
        return parse_vcore(text) if name == _VCORE else parse_quantity(text)
    except QuantityError as error:
        raise QuantityError(f"{error} for resource type {name!r}") from error


def _value(entry: object, text: str) -> int:
    """Return the quantity of one entry; an entry that leaves it out means zero."""
    if entry is None:
        raise QuantityError(f"invalid resource JSON: {text!r}: a quantity is null")
    value = _field(entry, "value", text)
    if value is None:
        return 0
    if type(value) is str and re.fullmatch(r"-?[0-9]{1,19}", value):
        value = int(value)  # As protobuf writes what has 64 bits.
    if type(value) is not int:
        raise QuantityError(f"invalid resource JSON: {text!r}: {value!r} is not an integer")
    if not INT64_MIN <= value <= INT64_MAX:
        raise QuantityError(f"invalid resource JSON: {text!r}: {value} exceeds 64 bits")
    return value


def _field(message: object, name: str, text: str) -> object:
    """Return the last field of that name, whatever its case; ``None`` when it is absent or null."""
    if message is None:
        return None
    fields = _object(message, text)
    return next((fields[key] for key in reversed(fields) if key.lower() == name), None)


def _object(value: object, text: str) -> dict[str, object]:
    """Require a JSON object."""
    if not isinstance(value, dict):
        raise QuantityError(f"invalid resource JSON: {text!r}: {value!r} is not an object")
    return value


def quantity_text(name: str, quantity: int) -> str:
    """Write a quantity: cores or thousandths of one, or whole binary units, or the plain number."""
    if name == _VCORE:
        return f"{quantity}m" if quantity % 1000 else f"{quantity // 1000}"
    for bits, unit in _BINARY:
        if quantity and quantity % (1 << bits) == 0:
            return f"{quantity >> bits}{unit}"
    return f"{quantity}"


def resource_text(resource: Resource | None) -> str:
    """Write a resource, its types in order: `memory 4Gi, vcore 500m`; `nothing` for an empty or unset one."""
    kinds = sorted(resource.items()) if resource is not None else ()
    parts = [f"{name} {quantity_text(name, quantity)}" for name, quantity in kinds]
    return ", ".join(parts) or "nothing"
