"""Quantities, ages and times as short texts for narrow columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ("k", "M", "G", "T", "P", "E")
_BINARY_UNITS: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BYTES: Final = ("memory", "ephemeral-storage", "storage")
_SECOND_NS: Final = 10**9
_TIME_NS_MAX: Final = 253_402_300_799 * _SECOND_NS
"""The end of the year 9999, the last that the calendar of Python has."""


def short_quantity(name: str, quantity: int | None) -> str:
    """Return a quantity in seven characters at most: `7.75` cores, `14.5Gi`, `2.5M`; a dash if there is none.

    Bytes have the units of configurations and explanations, powers of 1,024; all else has powers of ten.
    """
    if quantity is None:
        return "-"
    in_bytes = name in _BYTES or name.startswith("hugepages")
    step, units = (1_024, _BINARY_UNITS) if in_bytes else (1_000, _UNITS)
    size = abs(quantity) / (1_000 if name == "vcore" else 1)
    unit = -1
    while size >= step - 0.0005 and unit < len(units) - 1:
        size, unit = size / step, unit + 1
    digits = f"{size:.3f}" if unit < 0 else f"{size:.3g}" if size < 999.5 else f"{size:.0f}"
    text = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{'-' if quantity < 0 else ''}{text}{units[unit] if unit >= 0 else ''}"


def short_resource(quantities: dict[str, int]) -> str:
    """Return all quantities by name: `memory 14.5Gi, vcore 7.75`; a dash if there are none."""
    parts = (f"{name} {short_quantity(name, value)}" for name, value in sorted(quantities.items()))
    return ", ".join(parts) or "-"


def percent(part: int, whole: int) -> int | None:
    """Return a part in percent, rounded down; `None` without a whole."""
    return part * 100 // whole if whole > 0 else None


def time_text(time_ns: int) -> str:
    """Return a time of day where the program runs: `13:05:59`; a dash if there is none."""
    if not 0 < time_ns <= _TIME_NS_MAX:
        return "-"
    return datetime.fromtimestamp(time_ns // _SECOND_NS, tz=UTC).astimezone().strftime("%H:%M:%S")
