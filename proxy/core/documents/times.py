"""Times as texts, and numbers as JSON of Go has them."""

from __future__ import annotations

from datetime import UTC, datetime

_SECOND_NS = 1_000_000_000


def time_text(time_ns: int) -> str:
    """Return a time, nanoseconds since 1970, in the form of RFC 3339, in UTC and with all its digits."""
    seconds, rest_ns = divmod(time_ns, _SECOND_NS)
    fraction = f".{rest_ns:09d}".rstrip("0") if rest_ns else ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


def whole(number: float) -> float:
    """Return a number that has no fraction as an integer, others as they are."""
    return int(number) if number == int(number) else number
