"""The ring of facts: ids by the counts of facts, and what is overwritten."""

from __future__ import annotations

import threading

import pytest

from licorne.model.resources.resource import EMPTY
from licorne.model.values.events import ChangeDetail, ChangeType, EventType
from licorne.model.values.facts import LeftFact, SingleFact
from licorne.proxy.core.events import ring as ring_module
from licorne.proxy.core.events.ring import FactRing


def single(number: int) -> SingleFact:
    """Return a fact of one record."""
    return SingleFact(
        *(1, "rm", number, EventType.NODE, ChangeType.ADD, ChangeDetail.NONE, f"node-{number}"),
        *("", "", EMPTY),
    )


def double(number: int) -> LeftFact:
    """Return a fact of two records."""
    return LeftFact(2, "rm", number, f"app-{number}", "root.a")


def filled(capacity: int, count: int) -> FactRing:
    """Return a ring that has got facts of one record."""
    ring = FactRing(capacity)
    for number in range(count):
        ring.report(single(number))
    return ring


def test_a_ring_without_facts_has_no_ids() -> None:
    """The next one is 0."""
    ring = FactRing(10)

    assert (0, 0) == ring.bounds()
    assert [] == ring.read(0, 10).facts


def test_a_fact_gets_as_many_ids_as_it_has_records() -> None:
    """The next fact begins after them."""
    ring = FactRing(10)
    for fact in (double(0), single(1), double(2)):
        ring.report(fact)

    assert (0, 5) == ring.bounds()
    assert (2, [single(1)]) == ring.read(2, 1)[2:]
    assert (0, [double(0), single(1)]) == ring.read(1, 2)[2:]


@pytest.mark.parametrize("count", [9, 10, 11, 1023, 1024, 1025, 5000])
def test_the_oldest_ids_are_overwritten(count: int) -> None:
    """As many are kept as the capacity says."""
    ring = filled(10, count)
    lowest = max(0, count - 10)

    assert (lowest, count) == ring.bounds()
    assert [single(number) for number in range(lowest, count)] == ring.read(lowest, 100).facts
    assert not lowest or ring.read(lowest - 1, 100).facts == []


def test_a_fact_of_which_one_record_is_overwritten_is_kept_for_the_other() -> None:
    """Its first id is below the lowest one."""
    ring = FactRing(3)
    ring.report(double(0))
    ring.report(double(1))

    assert (1, 4) == ring.bounds()
    assert (0, [double(0), double(1)]) == ring.read(1, 3)[2:]


def test_a_range_over_many_blocks_is_read_as_a_whole() -> None:
    """From the middle of one block to the middle of a later one."""
    ring = filled(100_000, 5_000)

    span = ring.read(700, 3_300)

    assert (700, [single(number) for number in range(700, 4_000)]) == span[2:]


def test_another_capacity_keeps_the_newest_ids() -> None:
    """A smaller one at once; a larger one brings nothing back."""
    ring = filled(100, 100)

    ring.set_capacity(10)
    smaller = ring.bounds()
    ring.set_capacity(1000)

    assert (90, 100) == smaller == ring.bounds()


def test_a_reporter_never_waits_and_drops_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another thread holds the ring, facts wait in the channel; those without room are counted."""
    monkeypatch.setattr(ring_module, "CHANNEL_FACTS_MAX", 2000)
    ring = FactRing(100_000)

    with ring._lock:
        for number in range(2_500):
            ring.report(double(number))

    assert (0, 4_000) == ring.bounds()
    assert 1_000 == ring.dropped


def test_facts_of_several_threads_are_all_kept() -> None:
    """Each thread's in its order."""
    ring = FactRing(1_000_000)

    def report(first: int) -> None:
        for number in range(first, first + 5_000):
            ring.report(single(number))

    threads = [threading.Thread(target=report, args=(thread * 5_000,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    facts = ring.read(0, 100_000).facts
    numbers = [fact.time_ns for fact in facts]

    assert list(range(20_000)) == sorted(numbers)
    for first in range(0, 20_000, 5_000):
        own = [number for number in numbers if first <= number < first + 5_000]
        assert own == sorted(own)
