"""Quantities and priorities: exact integers, their bounds, and the texts that quantities are written as.

A quantity crosses the scheduler interface as a signed 64-bit integer, so values from outside are within
that range. Sums inside are exact and may leave it; a document shows such a sum as the bound of
the range, by ``saturate``. Quantities have no unit with them: milli-cores for ``vcore``, bytes for
``memory``, counts for everything else.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import LicorneError

INT32_MIN: Final = -(2**31)
"""The lowest priority; also that of a queue or an application in which nothing waits."""
INT32_MAX: Final = 2**31 - 1
"""The highest priority: priorities are signed 32-bit numbers, as on the wire."""

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_DIGITS_MAX: Final = len(str(INT64_MAX))
_MILLIS_IN_ONE: Final = 1000
_MILLI_SUFFIX: Final = "m"
_TEXT_PATTERN: Final = re.compile(r"([0-9]+)[ \t\n\f\r]*([mkKMGTPE]i?)?")

# The pattern accepts a few suffixes that this table does not have (``K``, ``ki``, ``mi``): they have an
# error of their own, as in the recorded core.
_MULTIPLIERS: Final = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}


class QuantityError(LicorneError):
    """A quantity, or the text of one, that is not a signed 64-bit integer."""


def saturate(exact: int) -> int:
    """Return the 64-bit quantity nearest to an exact integer."""
    if exact > INT64_MAX:
        return INT64_MAX
    return max(exact, INT64_MIN)


def parse_quantity(text: str) -> int:
    """Read a plain quantity such as ``12``, ``500M`` or ``2 Gi``.

    Raises:
        QuantityError: The text is not an unsigned whole number, has an unknown suffix, or is too large.
    """
    number, suffix = _split(text)
    return _scale(number, suffix, 1, text)


def parse_vcore(text: str) -> int:
    """Read an amount of processor time in milli-cores: ``500m`` is 500 and ``2`` is 2000.

    Raises:
        QuantityError: The text is not an unsigned whole number, has an unknown suffix, or is too large.
    """
    number, suffix = _split(text)
    if suffix == _MILLI_SUFFIX:
        return _scale(number, "", 1, text)
    return _scale(number, suffix, _MILLIS_IN_ONE, text)


def _split(text: str) -> tuple[str, str]:
    """Split a text into its significant digits and its suffix (empty without one)."""
    match = _TEXT_PATTERN.fullmatch(text.strip())
    if match is None:
        raise QuantityError(f"invalid quantity: {text!r}")
    # Leading zeros go first: the digits that remain can be counted instead of converted, which keeps
    # a text of a million digits from costing time or tripping the interpreter's limit.
    return match[1].lstrip("0") or "0", match[2] or ""


def _scale(number: str, suffix: str, factor: int, text: str) -> int:
    """Multiply the digits by their suffix and a further factor, exactly, and check the range at the end."""
    multiplier = _MULTIPLIERS.get(suffix)
    if multiplier is None:
        raise QuantityError(f"invalid suffix: {text!r}")
    if len(number) > _DIGITS_MAX:
        raise QuantityError(f"invalid quantity: overflow: {text!r}")
    quantity = int(number) * multiplier * factor
    if quantity > INT64_MAX:
        raise QuantityError(f"invalid quantity: overflow: {text!r}")
    return quantity
