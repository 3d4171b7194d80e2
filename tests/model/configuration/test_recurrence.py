"""Spans by the clock of a zone: both clock changes of the year, repeats, and the time between spans."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from licorne.model.configuration.recurrence import Recurrence, Spans, TimeError, find_zone, parse_time

HOUR_NS = 3600 * 10**9


def daily(begin: str, end: str, every_days: int = 1, zone: str = "Europe/Stockholm") -> Recurrence:
    """Return spans by the clock of Stockholm."""
    return Recurrence(parse_time(begin), parse_time(end), zone, every_days)


def utc(span: tuple[int, int] | None) -> list[str]:
    """Return the moments of a span by UTC."""
    assert span is not None
    return [datetime.fromtimestamp(at_ns // 10**9, UTC).strftime("%d %H:%M") for at_ns in span]


def test_a_begin_that_does_not_exist_is_the_moment_of_the_change() -> None:
    """On 29 March 2026 the clock goes from 02:00 to 03:00, which is 01:00 UTC."""
    spans = daily("2026-03-28T02:30", "2026-03-28T04:00")
    found = [utc(spans.span(number)) for number in range(3)]
    assert found == [["28 01:30", "28 03:00"], ["29 01:00", "29 02:00"], ["30 00:30", "30 02:00"]]
    assert utc(daily("2026-03-28T01:00", "2026-03-28T02:30").span(1)) == ["29 00:00", "29 01:00"]


def test_what_exists_twice_begins_at_the_first_and_ends_at_the_second() -> None:
    """On 25 October 2026 the clock goes from 03:00 back to 02:00, which is 01:00 UTC."""
    spans = daily("2026-10-24T02:30", "2026-10-24T02:45")
    found = [utc(spans.span(number)) for number in range(3)]
    assert found == [["24 00:30", "24 00:45"], ["25 00:30", "25 01:45"], ["26 01:30", "26 01:45"]]


def test_other_changes_than_of_one_hour() -> None:
    """On Lord Howe Island clocks change by half an hour, at 2:00 on 4 October 2026."""
    spans = daily("2026-10-04T02:15", "2026-10-04T03:00", zone="Australia/Lord_Howe")
    assert utc(spans.span(0)) == ["03 15:30", "03 16:00"]


@pytest.mark.parametrize("zone", ["Europe/Stockholm", "America/New_York", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("every_days", [0, 1, 7, 30])
def test_the_first_span_after_a_moment_is_that_of_a_walk_over_all(zone: str, every_days: int) -> None:
    recurrence = daily("2026-03-20T22:30", "2026-03-21T02:30", every_days, zone)
    walked = [span for number in range(400) if (span := recurrence.span(number)) is not None]
    dice = random.Random(zone)  # noqa: S311 - no secret
    spans = Spans(recurrence)
    for _ in range(300):
        at_ns = walked[0][0] + int((dice.random() * 360 - 5) * 24) * HOUR_NS // 2
        expected = next((span for span in walked if span[1] > at_ns), None)
        assert spans.after(at_ns) == expected
        assert Spans(recurrence).after(at_ns) == expected
        length_ns = int(dice.random() * 19) * HOUR_NS  # Less than the time between daily spans.
        free_ns = spans.free_from_ns(at_ns, length_ns)
        starts = [at_ns, *(span[1] for span in walked if span[1] > at_ns)]
        assert free_ns == next((start for start in starts if fits(walked, start, length_ns)), None)


def fits(walked: list[tuple[int, int]], start_ns: int, length_ns: int) -> bool:
    """Return whether work from a moment on is over before the next span."""
    end_ns = start_ns + max(1, length_ns)
    return not any(begin < end_ns and start_ns < end for begin, end in walked)


def test_what_is_longer_than_the_time_between_never_starts() -> None:
    spans = Spans(daily("2026-06-01T06:00", "2026-06-01T18:00", zone="UTC"))
    (begin_ns, end_ns) = spans.after(0) or (0, 0)
    assert spans.free_from_ns(begin_ns, 12 * HOUR_NS) == end_ns
    assert spans.free_from_ns(begin_ns, 12 * HOUR_NS + 1) is None
    assert spans.free_from_ns(begin_ns - HOUR_NS, HOUR_NS) == begin_ns - HOUR_NS


def test_there_is_no_span_beyond_the_last_year() -> None:
    recurrence = daily("9999-12-30T00:00", "9999-12-30T01:00", zone="UTC")
    assert recurrence.span(0) is not None
    assert recurrence.span(2) is None
    assert recurrence.span(-1) is None


@pytest.mark.parametrize(
    "text", ["", "today", "2026-02-30T01:00", "2026-01-01", "2026-01-01T24:30", "2026-W01-1T00:00"]
)
def test_texts_that_are_no_times_are_refused(text: str) -> None:
    with pytest.raises(TimeError, match="is no time as"):
        parse_time(text)


@pytest.mark.parametrize("name", ["Europe/Nowhere", "../passwd", "Europe", "/etc/passwd"])
def test_zones_that_do_not_exist_are_refused(name: str) -> None:
    with pytest.raises(TimeError, match="does not exist"):
        find_zone(name)
