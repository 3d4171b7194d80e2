"""What several threads bring where the manager takes its time."""

from __future__ import annotations

import json
import threading

import pytest
from listening import WAIT_SECONDS

from licorne.proxy.bench.judged_pace import JUDGEMENT_SECONDS, JudgedPace, measure_judged_pace
from licorne.proxy.bench.report import judged_pace_table, lock_costs_json


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

    one, two = measure_judged_pace(clock, sleep, counts=(1, 2), asks=2)

    assert [JUDGEMENT_SECONDS] * 4 == asked
    assert (1, 2) == (one.threads, two.threads)
    assert 1.0 == one.ratio
    assert pytest.approx(2.0) == two.ratio


def test_the_table_and_the_document_have_a_row_a_count() -> None:
    """With the pace and the ratio."""
    paces = (JudgedPace(1, 400.0, 1.0), JudgedPace(4, 1400.0, 3.5))

    assert ["1.00", "3.50"] == list(judged_pace_table(paces).columns[2].cells)
    assert [1, 4] == [entry["threads"] for entry in json.loads(lock_costs_json((), paces))["judged_pace"]]
