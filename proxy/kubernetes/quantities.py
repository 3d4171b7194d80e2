"""Quantities of Kubernetes: exact conversion from their texts to the whole numbers of the scheduler.

A text such as `500m`, `1.5Gi` or `2e3` becomes a number of billionths, which is the finest step that
Kubernetes knows: sums of billionths are sums of integers. They become thousandths of a core or whole bytes
and pieces at the end, rounded up. Rounding up in Kubernetes means rounding away from zero.

Sums are made in billionths and rounded up once, at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from ...model.resources.quantities import QuantityError, saturate
from ..si import constants
from .objects import KubernetesNode

Quantities: TypeAlias = Mapping[str, str | float]
"""Quantities in the notation of Kubernetes, by resource."""
_KUBERNETES_CPU: Final = "cpu"
_NANO: Final = 10**9
_NANO_OF_MILLI: Final = 10**6
_SUFFIXES: Final = {
    "n": 1,
    "u": 10**3,
    "m": 10**6,
    "": _NANO,
    "k": 10**3 * _NANO,
    "M": 10**6 * _NANO,
    "G": 10**9 * _NANO,
    "T": 10**12 * _NANO,
    "P": 10**15 * _NANO,
    "E": 10**18 * _NANO,
    "Ki": 2**10 * _NANO,
    "Mi": 2**20 * _NANO,
    "Gi": 2**30 * _NANO,
    "Ti": 2**40 * _NANO,
    "Pi": 2**50 * _NANO,
    "Ei": 2**60 * _NANO,
}
"""The value of each suffix in billionths."""
_TEXT: Final = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([numkMGTPE]|[KMGTPE]i|[eE]([+-]?[0-9]+)|)"
)
_LENGTH_MAX: Final = 256
"""A reasonable quantity is shorter."""
_EXPONENT_MAX: Final = 2 * _LENGTH_MAX
"""A larger exponent leads out of the range, or below a billionth, with any digits."""
PODS: Final = "pods"
"""The resource that counts pods; each needs one."""


@lru_cache(maxsize=65536)
def quantity_nano(text: str | float) -> int:
    """Return a quantity in billionths; finer fractions are rounded up.

    Its size is not limited to 64 bits: `rounded_up` and `milli_value` limit it.

    Raises:
        QuantityError: The text is not a quantity of Kubernetes.
    """
    written = str(text)
    match = _TEXT.fullmatch(written) if len(written) <= _LENGTH_MAX else None
    if match is None:
        raise QuantityError(f"{written[:_LENGTH_MAX]!r} is not a quantity such as 500m, 2 or 1.5Gi")
    sign, whole, fraction, suffix, exponent = match.groups(default="")
    shift = -len(fraction)
    if exponent:
        shift += max(-_EXPONENT_MAX, min(int(exponent), _EXPONENT_MAX))
    digits = int(whole + fraction) * _SUFFIXES["" if exponent else suffix]
    size: int = digits * 10**shift if shift >= 0 else _divided(digits, 10**-shift)
    return -size if sign == "-" else size


def rounded_up(nano: int) -> int:
    """Return billionths as a whole number, at most 2**63-1."""
    return saturate(_divided(nano, _NANO))


def milli_value(nano: int) -> int:
    """Return billionths as thousandths, at most 2**63-1."""
    return saturate(_divided(nano, _NANO_OF_MILLI))


def exact_amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Return billionths by resource as amounts of the scheduler, which may exceed 64 bits.

    `cpu` becomes `vcore` in thousandths; the others keep their names, rounded up to whole numbers.

    Raises:
        QuantityError: There are both `cpu` and `vcore`.
    """
    if _KUBERNETES_CPU in nanos and constants.CPU in nanos:
        raise QuantityError("cpu and vcore mean one resource: name one of them")
    return {
        constants.CPU if name == _KUBERNETES_CPU else name: _divided(
            nano, _NANO_OF_MILLI if name == _KUBERNETES_CPU else _NANO
        )
        for name, nano in nanos.items()
    }


def amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Return billionths by resource as amounts of the scheduler, each at most 2**63-1.

    Raises:
        QuantityError: There are both `cpu` and `vcore`.
    """
    return {name: saturate(amount) for name, amount in exact_amounts(nanos).items()}


def _divided(number: int, divisor: int) -> int:
    """Divide and round away from zero."""
    return -(-number // divisor) if number >= 0 else number // divisor


def node_resource(node: KubernetesNode) -> dict[str, int]:
    """Return the room for pods on a node, in the same units, with the maximum number of pods.

    Raises:
        QuantityError: A quantity of the node cannot be read.
    """
    nanos = {name: quantity_nano(text) for name, text in node.status.allocatable.items()}
    return amounts(nanos)
