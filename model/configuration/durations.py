"""Durations as text, in the form the recorded core reads and writes: `30s`, `1h2m3.5s`, `500ms`.

Days are read too, as reports write them: `1d`, `3d21h`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ..errors import LicorneError

_INT64_MAX: Final = 2**63 - 1
_SECOND: Final = 10**9
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": _MINUTE,
    "h": _HOUR,
    "d": _DAY,
}
"""Both characters for micro, the sign and the Greek letter, are in use."""

_SHORT_UNITS: Final = tuple((unit, _UNITS[unit]) for unit in ("d", "h", "m", "s", "ms", "us", "ns"))

_PART: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?(ns|us|µs|μs|ms|s|m|h|d)")
_DIGITS_MAX: Final = 19
"""As many digits as the largest number of nanoseconds has."""


class DurationError(LicorneError):
    """A text that is not a duration, or a duration beyond 292 years."""


@lru_cache(maxsize=1024)  # The walltime of a job is read whenever a plan looks at it.
def parse_duration_ns(text: str) -> int:
    """Read a duration in nanoseconds.

    A sign, then numbers with units, which may have a fraction; `0` alone needs no unit. Fractions of a
    nanosecond are dropped.

    Raises:
        DurationError: The text is not a duration, or its nanoseconds do not fit a signed 64-bit number.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part[1] or part[3]):
            break
        total += _part_ns(part, text)
        position = part.end()
    if position == 0 or position < len(rest):
        raise DurationError(f"invalid duration: {text!r}")
    # The lowest number has no positive counterpart.
    if total > _INT64_MAX + (sign < 0):
        raise DurationError(f"invalid duration: overflow: {text!r}")
    return sign * total


def _part_ns(part: re.Match[str], text: str) -> int:
    """Return the nanoseconds of a number with its unit."""
    unit = _UNITS[part[4]]
    whole = part[1].lstrip("0")
    if len(whole) > _DIGITS_MAX:
        raise DurationError(f"invalid duration: overflow: {text!r}")
    fraction = (part[3] or "")[:_DIGITS_MAX]
    below = int(fraction) * unit // 10 ** len(fraction) if fraction else 0
    return int(whole or "0") * unit + below


def duration_text(duration_ns: int) -> str:
    """Write a duration: hours, minutes and seconds from one second on, below in the unit that fits."""
    sign = "-" if duration_ns < 0 else ""
    size = abs(duration_ns)
    if size == 0:
        return "0s"
    if size < _SECOND:
        unit = next(name for name in ("ms", "µs", "ns") if size >= _UNITS[name])
        return f"{sign}{_decimal(size, _UNITS[unit])}{unit}"
    hours, rest = divmod(size, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    text = f"{_decimal(rest, _SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def short_duration_text(duration_ns: int) -> str:
    """Write a duration or an age for a person, in its two largest units: `3d4h`, `2m30s`, `250ms`, `0s`.

    Units below the second one are cut off; a negative duration is shown as zero.
    """
    for index, (unit, unit_ns) in enumerate(_SHORT_UNITS):
        if duration_ns >= unit_ns:
            whole, rest = divmod(duration_ns, unit_ns)
            if unit_ns <= _SECOND:
                return f"{whole}{unit}"
            smaller, smaller_ns = _SHORT_UNITS[index + 1]
            part = rest // smaller_ns
            return f"{whole}{unit}{part}{smaller}" if part else f"{whole}{unit}"
    return "0s"


def _decimal(size: int, unit: int) -> str:
    """Write a number of units with as many decimals as it needs."""
    whole, rest = divmod(size, unit)
    digits = len(str(unit)) - 1
    fraction = f"{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else f"{whole}"
