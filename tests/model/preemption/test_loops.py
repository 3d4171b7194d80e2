"""The detector of preemptions that repeat each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.model.builders import START_NS
from support.model.preemption_scenes import a_preemption

from licorne.model.preemption.acts import LOOP_WINDOW_NS, repetition_of
from licorne.model.state.preemption_log import (
    PreemptionCause,
    PreemptionLog,
    PreemptionRecord,
)


def never(_: PreemptionRecord) -> bool:
    return False


def always(_: PreemptionRecord) -> bool:
    return True


def last_of(records: list[PreemptionRecord], waits: Callable[[PreemptionRecord], bool] = never) -> str:
    """Return what is said of the last record after the others."""
    log = PreemptionLog()
    for record in records[:-1]:
        log.add(record, always)
    repetition = repetition_of(records[-1], log, waits)
    return "" if repetition is None else repetition.why


NO_LOOPS = {
    # A queue takes what it is entitled to, ask by ask.
    "one after the other, whose asks do not wait": (
        never,
        [a_preemption("a1", "b1"), a_preemption("a2", "b2")],
    ),
    # That is progress.
    "one that takes from another application": (
        always,
        [a_preemption("a1", "b1"), a_preemption("a1", "c1", taken_from="third")],
    ),
    "one for another queue": (
        always,
        [a_preemption("a1", "b1"), a_preemption("c1", "b2", queue_path="root.c")],
    ),
    "one for an ask whose first one is longer ago than the window": (
        always,
        [a_preemption("a1", "b1"), a_preemption("a1", "b2", time_ns=START_NS + LOOP_WINDOW_NS + 1)],
    ),
    # It is enforced once a change.
    "one for a quota": (always, [a_preemption("", "b1", cause=PreemptionCause.QUOTA)] * 2),
}


@pytest.mark.parametrize(("waits", "records"), NO_LOOPS.values(), ids=NO_LOOPS)
def test_no_loop_is_made_by(
    waits: Callable[[PreemptionRecord], bool], records: list[PreemptionRecord]
) -> None:
    """What does not repeat another preemption."""
    assert last_of(records, waits) == ""


def test_two_that_take_turns_are_a_loop() -> None:
    """What was placed for a victim was preempted for the victim's successor, which is preempted again."""
    turns = [
        a_preemption("a1", "b1"),
        a_preemption("b2", "a1", queue_path="root.b", taken_from="app"),
        a_preemption("a2", "b2"),
    ]

    assert "a1" in last_of(turns)
    assert "preempted itself, for root.b" in last_of(turns)


def test_what_a_queue_below_takes_stays_with_the_queue_above() -> None:
    """The guarantee of root.a is served all the same; a name that only begins alike is another queue."""
    within = [
        a_preemption("a1", "b1"),
        a_preemption("x1", "a1", queue_path="root.a.x", taken_from="app"),
        a_preemption("a2", "b2"),
    ]
    outside = [within[0], a_preemption("x1", "a1", queue_path="root.ax", taken_from="app"), within[2]]

    assert last_of(within) == ""
    assert last_of(outside) != ""


def test_an_ask_whose_room_was_given_away_makes_the_next_one_a_loop() -> None:
    """The victim was admitted again and the ask still waits."""
    assert "given to somebody else" in last_of([a_preemption("a1", "b1"), a_preemption("a1", "b2")], always)


def test_a_loop_waits_twice_as_long_each_time() -> None:
    """Else an ask whose room is given away again and again would end somebody's tasks for ever."""
    log, waits_seconds = PreemptionLog(), []
    time_ns = START_NS
    for number in range(7):
        record = a_preemption("a1", f"b{number}", time_ns=time_ns)
        repetition = repetition_of(record, log, always)
        if repetition is not None:
            record = replace(record, time_ns=repetition.until_ns, loop=repetition.why)
            waits_seconds.append((repetition.until_ns - time_ns) // 1_000_000_000)
        log.add(record, always)
        time_ns = record.time_ns

    assert [15, 30, 60, 120, 240, 480] == waits_seconds
