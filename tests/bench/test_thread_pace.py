"""What several threads bring in one partition."""

from __future__ import annotations

import json
import threading

import pytest
from locks import costs_json, threads_table
from support.waiting import WAIT_SECONDS
from thread_pace import PREDICATE_SECONDS, ThreadPace, measure_predicate_pace, measure_shared_pace

from licorne.proxy.base.process import is_compiled


def test_two_threads_place_twice_as_much() -> None:
    """On a clock that two questions move by the time of one where both are asked at once."""
    now = 0.0
    asked: list[float] = []
    pairs = threading.Barrier(2)
    is_pairing = False

    def sleep(seconds: float) -> None:
        nonlocal now
        asked.append(seconds)
        if not is_pairing or pairs.wait(WAIT_SECONDS) == 0:
            now += seconds

    def clock() -> float:
        nonlocal is_pairing
        is_pairing = len(asked) >= 2  # The first run, on one thread, has been measured.
        return now

    one, two = measure_predicate_pace(clock, sleep, counts=(1, 2), asks=2)

    assert [PREDICATE_SECONDS] * 4 == asked
    assert (1, 2) == (one.threads, two.threads)
    assert 1.0 == one.ratio
    assert pytest.approx(2.0) == two.ratio


@pytest.mark.skipif(is_compiled(), reason="threads share partitions of the pure build alone")
def test_all_asks_of_a_shared_partition_are_placed() -> None:
    """On a clock that goes on by a second at each look: one before, and one when all are placed."""
    looks = iter(range(4))

    paces = measure_shared_pace(lambda: float(next(looks)), counts=(1, 3), asks=40)

    assert (ThreadPace(1, 40.0, 1.0), ThreadPace(3, 40.0, 1.0)) == paces


def test_the_tables_and_the_document_have_a_row_a_count() -> None:
    """With the pace and the ratio."""
    judged = (ThreadPace(1, 400.0, 1.0), ThreadPace(4, 1400.0, 3.5))
    shared = (ThreadPace(1, 4000.0, 1.0), ThreadPace(2, 3000.0, 0.75))
    document = json.loads(costs_json((), predicate_paces=judged, shared_paces=shared))

    assert ["1.00", "3.50"] == list(threads_table("judged", judged).columns[2].cells)
    assert ["1.00", "0.75"] == list(threads_table("shared", shared).columns[2].cells)
    assert [1, 4] == [entry["threads"] for entry in document["judged_pace"]]
    assert [1, 2] == [entry["threads"] for entry in document["shared_pace"]]
