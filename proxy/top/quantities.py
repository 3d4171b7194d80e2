"""Quantities, ages and times as short texts for narrow columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

__all__ = ["age_text", "percent", "short_quantity", "short_resource", "time_text"]

_UNITS: Final = "kMGTPE"
_AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_SECOND_NS: Final = 10**9
_TIME_NS_MAX: Final = 253_402_300_799 * _SECOND_NS
"""The end of the year 9999, the last that the calendar of Python has."""


def short_quantity(name: str, quantity: int | None) -> str:
    """Return a quantity in seven characters at most: `7.75` cores, `14.5G`; a dash if there is none."""
    if quantity is None:
        return "-"
    size = abs(quantity) / (1_000 if name == "vcore" else 1)
    unit = -1
    while size >= 999.9995 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    digits = f"{size:.3f}" if unit < 0 else f"{size:.3g}" if size < 999.5 else f"{size:.0f}"
    text = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{'-' if quantity < 0 else ''}{text}{_UNITS[unit] if unit >= 0 else ''}"


def short_resource(quantities: dict[str, int]) -> str:
    """Return all quantities by name: `memory 14.5G, vcore 7.75`; a dash if there are none."""
    parts = (f"{name} {short_quantity(name, value)}" for name, value in sorted(quantities.items()))
    return ", ".join(parts) or "-"


def percent(part: int, whole: int) -> int | None:
    """Return a part in percent, rounded down; `None` without a whole."""
    return part * 100 // whole if whole > 0 else None


def age_text(age_ns: int) -> str:
    """Return an age in its two largest units: `3h12m`, `45s`; `0s` for what is to come."""
    seconds = max(0, age_ns // _SECOND_NS)
    for place, (size, unit) in enumerate(_AGES):
        if seconds >= size:
            smaller = seconds % size // _AGES[place + 1][0] if place + 1 < len(_AGES) else 0
            return f"{seconds // size}{unit}" + (f"{smaller}{_AGES[place + 1][1]}" if smaller else "")
    return "0s"


def time_text(time_ns: int) -> str:
    """Return a time of day where the program runs: `13:05:59`; a dash if there is none."""
    if not 0 < time_ns <= _TIME_NS_MAX:
        return "-"
    return datetime.fromtimestamp(time_ns // _SECOND_NS, tz=UTC).astimezone().strftime("%H:%M:%S")
