from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.proxy.simulation_builders import tally_of

from licorne.proxy.play.simulation.accounts import Owner
from licorne.proxy.play.simulation.record import AskEntry, SimulationRecord


def _entry(
    record: SimulationRecord,
    asked_at_ns: int = 0,
    *,
    is_placeholder: bool = False,
    is_recovered: bool = False,
    is_repeated: bool = False,
    was_placed: bool = False,
) -> AskEntry:
    return AskEntry(
        account=record.accounts.opened(Owner(queue="root.q", user="u")),
        application_id="a",
        resources={"vcore": 2},
        asked_at_ns=asked_at_ns,
        is_placeholder=is_placeholder,
        is_recovered=is_recovered,
        is_repeated=is_repeated,
        was_placed=was_placed,
    )


def test_work_is_followed_from_its_submission_to_its_end() -> None:
    """It waits, runs and is completed, and its wait is from asking to placing."""
    record = SimulationRecord()
    record.asked("k", _entry(record, 5), 5)
    record.placed("k", 8)
    record.completed("k", 20)

    tally = tally_of(record)

    assert (1, 1, 0, 0, 1) == (tally.submitted, tally.placed, tally.waiting, tally.running, tally.completed)
    assert [3] == tally.waits_ns


def test_work_that_is_asked_for_again_is_submitted_and_placed_once() -> None:
    """A preempted task waits again, but not for its first node."""
    record = SimulationRecord()
    record.asked("k", _entry(record), 0)
    record.placed("k", 1)
    record.preempted("k", 5)
    record.asked("k-r1", _entry(record, is_repeated=True, was_placed=True), 5)
    record.placed("k-r1", 9)

    tally = tally_of(record)

    assert (1, 1, 1, 1) == (tally.submitted, tally.placed, tally.preempted, tally.running)
    assert [1] == tally.waits_ns


def test_work_that_is_preempted_is_lost_since_its_placement() -> None:
    """What it had, times how long it had it; a placeholder loses nothing."""
    record = SimulationRecord()
    for key, is_placeholder in (("k", False), ("ph", True)):
        record.asked(key, _entry(record, is_placeholder=is_placeholder), 0)
        record.placed(key, 3)
        record.preempted(key, 10)

    assert {"vcore": 2 * 7} == tally_of(record).lost


def test_a_placeholder_uses_room_and_counts_as_no_work() -> None:
    """What is reserved is in use."""
    record = SimulationRecord()
    record.asked("ph", _entry(record, is_placeholder=True), 0)
    record.placed("ph", 1)

    tally = tally_of(record)

    assert (0, 0, 0) == (tally.submitted, tally.placed, tally.running)
    assert 2 == tally.used["vcore"].value


def test_a_placeholder_on_a_node_keeps_the_record_open() -> None:
    """A timer of the scheduler may still take it away."""
    record = SimulationRecord()
    record.asked("ph", _entry(record, is_placeholder=True), 0)
    record.placed("ph", 1)
    assert record.is_anything_open()

    record.stopped("ph", 2)

    assert not record.is_anything_open()


def test_an_allocation_that_the_manager_already_had_did_not_wait() -> None:
    """It is placed, and its wait would say nothing."""
    record = SimulationRecord()
    record.asked("k", _entry(record, is_recovered=True), 0)
    record.placed("k", 0)

    assert (1, []) == (tally_of(record).placed, tally_of(record).waits_ns)


def test_a_new_size_changes_what_is_in_use_from_then_on() -> None:
    """The peak is that of the larger size."""
    record = SimulationRecord()
    record.asked("k", _entry(record), 0)
    record.placed("k", 0)
    record.resized("k", {"vcore": 7}, 10)
    record.completed("k", 20)

    used = tally_of(record).used["vcore"]

    assert (7, 0, [2 * 10 + 7 * 10]) == (used.peak, used.value, used.integrals([0, 20]))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("apcsrtwg")), max_size=60))
def test_submitted_work_is_always_somewhere(steps: list[tuple[int, str]]) -> None:
    """Waiting, running, completed, rejected and withdrawn add up to submitted, and nothing is left in use."""
    record = SimulationRecord()
    for moment, (number, step) in enumerate(steps):
        _take(record, f"k{number}", step, moment)
        tallies = list(record.accounts.tallies().values())

        expected = sum(t.waiting + t.running + t.completed + t.rejected + t.withdrawn for t in tallies)
        in_use = sum(t.used["vcore"].value for t in tallies if t.used)

        assert expected == sum(t.submitted for t in tallies)
        assert 2 * len(record.running) == in_use


def _take(record: SimulationRecord, key: str, step: str, moment: int) -> None:
    """Write one step if it is possible for that key."""
    if step == "a" and key not in record.waiting and key not in record.running:
        record.asked(key, _entry(record, moment), moment)
    elif key in record.waiting and step in "prt":
        if step == "p":
            record.placed(key, moment)
        elif step == "r":
            record.rejected(key, moment, "no")
        else:
            record.given_up(record.taken_back(key, moment))
    elif key in record.running and step in "csw":
        if step == "c":
            record.completed(key, moment)
        elif step == "s":
            record.given_up(record.stopped(key, moment))
        else:
            record.preempted(key, moment)
            again = _entry(record, moment, is_repeated=True, was_placed=True)
            record.asked(key, again, moment)
