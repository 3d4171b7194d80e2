"""Streams of events: history first, nothing twice or missing, and an end for a reader that is too slow."""

from __future__ import annotations

import threading

import pytest
from support.proxy.event_rows import records_of
from support.proxy.manager_requests import ONE, node_request

from licorne import ResourceManager, Scheduler
from licorne.model.errors import RequestError
from licorne.model.resources.resource import EMPTY
from licorne.model.values.events import ChangeDetail, ChangeType, EventType
from licorne.model.values.facts import SingleFact
from licorne.proxy.core.events.ring import FactRing
from licorne.proxy.core.events.streams import KEPT_MAX, EventStream, RecentRecords


def report(ring: FactRing, *numbers: int) -> None:
    """Report events whose times are numbers."""
    for number in numbers:
        ring.report(
            SingleFact(
                *(1, "rm", number, EventType.NODE, ChangeType.ADD, ChangeDetail.NONE, "n", "", "", EMPTY)
            )
        )


def stream_of(ring: FactRing, next_id: int = 0) -> EventStream:
    """Return a stream from an id on."""
    return EventStream(RecentRecords(ring), next_id, lambda _: None)


def taken(stream: EventStream, count: int = 1000) -> list[int]:
    """Return the numbers of the events that are there."""
    return [record.time_ns for record in stream.take(count)]


def scheduler_with_nodes(count: int, **extra: str) -> Scheduler:
    """Return a stepped scheduler with nodes."""
    scheduler = Scheduler(engine="direct")
    extra_configuration = {f"event.{name}": text for name, text in extra.items()}
    scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra_configuration)
    for number in range(count):
        scheduler.update_node(node_request(f"n{number}"))
    return scheduler


def test_a_stream_goes_on_where_it_was() -> None:
    """However few are taken at a time."""
    ring = FactRing(100)
    stream = stream_of(ring)
    report(ring, 0, 1, 2, 3)
    first = taken(stream, 3)
    report(ring, 4)

    assert ([0, 1, 2], [3, 4], []) == (first, taken(stream), taken(stream))
    assert 5 == stream.next_id


@pytest.mark.parametrize(("history", "expected"), [(0, 0), (2, 2), (1_000, 9)])
def test_history_comes_before_what_is_new(history: int, expected: int) -> None:
    """As much as there is: the recorded core gave none at all where some of it was overwritten."""
    with scheduler_with_nodes(4, ringBufferCapacity="9") as scheduler:
        earlier = records_of(scheduler)
        stream = scheduler.events.stream(history)
        scheduler.update_node(node_request("last"))
        added = scheduler.events.batch().highest_id + 1 - stream.next_id - expected

        if history > 2:  # What is not read yet is overwritten by what is new.
            assert [] == stream.take()
            assert stream.is_over
        else:
            records = stream.take()
            assert earlier[len(earlier) - expected :] == tuple(records[:expected])
            assert ["last"] == sorted({each.object_id for each in records[expected:] if each.type == 3})
            assert added == len(records) - expected


def test_recent_events_are_those_that_are_kept() -> None:
    """Not none of them."""
    with scheduler_with_nodes(4, ringBufferCapacity="9") as scheduler:
        stream = scheduler.events.stream(1_000)

        assert 9 == len(stream.take()) == len(records_of(scheduler))


def test_a_stream_that_is_too_slow_is_over_and_what_it_lost_is_counted() -> None:
    """It gives no event after the gap."""
    with scheduler_with_nodes(1, ringBufferCapacity="4") as scheduler:
        stream = scheduler.events.stream()
        first = stream.next_id
        for number in range(4):
            scheduler.update_node(node_request(f"more{number}"))

        counters = scheduler.events.counters()
        assert (1, 0) == (counters.streams, counters.streams_dropped)
        assert [] == stream.take()
        assert stream.is_over
        counters = scheduler.events.counters()
        lost = scheduler.events.batch().highest_id + 1 - first
        assert (0, 1, lost) == (counters.streams, counters.streams_dropped, counters.lost_to_streams)


def test_a_reader_that_waits_gets_the_next_event() -> None:
    """It waits on another thread than the one that reports."""
    ring = FactRing(100)
    stream = stream_of(ring)
    got: list[int | None] = []

    def read() -> None:
        record = stream.next(60)
        got.append(None if record is None else record.time_ns)

    thread = threading.Thread(target=read)
    thread.start()
    report(ring, 7)
    thread.join(60)

    assert [7] == got


def test_a_reader_that_waits_for_nothing_gets_nothing() -> None:
    """After its time; the stream goes on."""
    ring = FactRing(100)
    stream = stream_of(ring)

    assert stream.next(0) is None
    assert not stream.is_over


def test_a_stream_that_is_closed_gives_no_more() -> None:
    """And says so once."""
    ring = FactRing(100)
    ended: list[EventStream] = []
    stream = EventStream(RecentRecords(ring), 0, ended.append)
    report(ring, 0)

    stream.close()
    stream.close()

    assert [stream] == ended
    assert stream.next(60) is None
    assert [] == list(stream)


def test_a_stream_ends_with_the_scheduler_after_what_has_happened() -> None:
    """Nothing that was reported before is lost."""
    scheduler = scheduler_with_nodes(2)
    everything = len(records_of(scheduler))
    stream = scheduler.events.stream(1_000)

    scheduler.stop()

    assert len(list(stream)) >= everything
    assert stream.is_over
    with pytest.raises(RequestError, match="stopped"):
        scheduler.events.stream()


def test_events_that_one_reader_takes_are_all_that_threads_report() -> None:
    """In order, each once."""
    ring = FactRing(1_000_000)
    stream = stream_of(ring)
    reporter = threading.Thread(target=report, args=(ring, *range(30_000)))
    reporter.start()
    numbers: list[int] = []
    while len(numbers) < 30_000:
        record = stream.next(60)
        assert record is not None
        numbers += [record.time_ns, *taken(stream)]
    reporter.join()

    assert list(range(30_000)) == numbers


def test_streams_share_the_records_that_are_new() -> None:
    """However many read, each record is made once; a reader that is far behind gets the same ones."""
    ring = FactRing(3 * KEPT_MAX)
    recent = RecentRecords(ring)
    streams = [EventStream(recent, 0, lambda _: None) for _ in range(3)]
    report(ring, *range(10))
    first, second = (stream.take(7) for stream in streams[:2])
    assert all(one is other for one, other in zip(first, second, strict=True))
    assert list(range(10)) == [*(record.time_ns for record in first), *taken(streams[0])]
    report(ring, *range(10, 2 * KEPT_MAX + 20))
    last = [record.time_ns for _ in range(100) for record in streams[0].take()]
    assert list(range(10, 2 * KEPT_MAX + 20)) == last

    behind = [number for _ in range(100) for number in taken(streams[2])]
    assert list(range(2 * KEPT_MAX + 20)) == behind


def test_a_stream_says_how_far_behind_it_is() -> None:
    """As a part of the room that events have."""
    ring = FactRing(10)
    stream = stream_of(ring)
    assert 0 == stream.behind
    report(ring, *range(8))
    stream.take(3)

    assert 0.5 == stream.behind
