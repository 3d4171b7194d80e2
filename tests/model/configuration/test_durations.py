"""Durations as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.configuration.durations import DurationError, duration_text, parse_duration_ns

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [
        ("30s", 30 * SECOND),
        ("500ms", SECOND // 2),
        ("1h2m3.5s", 3723 * SECOND + SECOND // 2),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("1d", 86_400 * SECOND),
        ("3d21h", 93 * 3600 * SECOND),
        ("1.5d", 36 * 3600 * SECOND),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("7ns", 7),
        ("0.3ns", 0),
        ("-1m", -60 * SECOND),
        ("+1m", 60 * SECOND),
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1s1s", 2 * SECOND),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("00000000000000000000000001s", SECOND),
    ],
)
def test_durations_are_read(text: str, duration_ns: int) -> None:
    """Numbers with units one after the other, exact to the nanosecond."""
    assert duration_ns == parse_duration_ns(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "30",
        "s",
        ".s",
        "1 s",
        " 1s",
        "1s ",
        "1D",
        "1w",
        "1S",
        "--1s",
        "1.5.5s",
        "1s2",
        "1e3s",
        "٣s",
        "00",
    ],
)
def test_other_texts_are_no_durations(text: str) -> None:
    """A number needs a unit, and nothing else may stand there."""
    with pytest.raises(DurationError, match=r"^invalid duration: "):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    "text", ["9223372036854775808ns", "-9223372036854775809ns", "3000000h", "106752d", "9" * 5000 + "s"]
)
def test_durations_beyond_64_bits_are_refused(text: str) -> None:
    """No nanoseconds are lost in silence."""
    with pytest.raises(DurationError, match=r"^invalid duration: overflow: "):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0s"),
        (30 * SECOND, "30s"),
        (90 * SECOND, "1m30s"),
        (3600 * SECOND, "1h0m0s"),
        (7384 * SECOND + SECOND // 4, "2h3m4.25s"),
        (SECOND // 2, "500ms"),
        (1_500_000, "1.5ms"),
        (1500, "1.5µs"),
        (1, "1ns"),
        (-90 * SECOND, "-1m30s"),
        (SECOND + 1, "1.000000001s"),
    ],
)
def test_durations_are_written_in_the_largest_units(duration_ns: int, text: str) -> None:
    """As the REST answers show them."""
    assert text == duration_text(duration_ns)


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_can_be_read_again(duration_ns: int) -> None:
    """Nothing is lost on the way."""
    assert duration_ns == parse_duration_ns(duration_text(duration_ns))
