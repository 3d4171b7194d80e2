"""A partition as its owner uses it: working in slices, timers, new configurations, and its end."""

from __future__ import annotations

import pytest
from support.model.builders import SECOND_NS, START_NS, FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.applications.application import Application
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.allocation import PlacementHalt, RefusalReason
from licorne.model.values.messages import (
    ApplicationChanged,
    NodeAction,
    SchedulingStateChanged,
    TerminationType,
)
from licorne.model.views.shown import partition_values

NOTHING, PREPARED, RESULT = CycleOutcome.NOTHING, CycleOutcome.PREPARED, CycleOutcome.RESULT
SECONDS_OF_THREE_DAYS = 3 * 24 * 3600


def busy(*keys: str) -> Harness:
    """Return a partition with a node of a hundred and an application whose asks wait."""
    h = Harness()
    h.nodes("one", capacity=a_resource(memory=100))
    h.submit()
    h.ask(*keys)
    return h


# ------------------------------------------------------------------------------------------- working


def test_work_is_done_in_slices() -> None:
    """The answer is what the last cycle did."""
    h = busy("a", "b", "c")

    outcomes = [h.partition.work(2) for _ in range(3)]

    assert ([RESULT, NOTHING, NOTHING], 3) == (outcomes, len(h.placements))


def test_a_slice_ends_with_a_cycle_that_reserves_a_node() -> None:
    """There may be many, and requests wait meanwhile."""
    h = busy("a", "b", "c")
    h.nodes("two", "three", capacity=a_resource(memory=100))
    h.partition.work(5)
    h.ask("old", "older", resource=a_resource(memory=95), created_at_seconds=0)

    outcomes = [h.partition.work(5) for _ in range(3)]

    assert [PREPARED, PREPARED, NOTHING] == outcomes


def test_nothing_is_placed_for_an_rm_that_is_far_behind() -> None:
    """Work begins again when it has caught up."""
    h = busy("a")
    h.halt = PlacementHalt(reason=RefusalReason.CONGESTED)
    held = (h.partition.work(5), dict(h.placements))

    h.halt = None
    h.partition.work(5)

    assert ((NOTHING, {}), {"a": "one"}) == (held, h.placements)


def test_an_idle_partition_sets_no_timer() -> None:
    """Nothing waits, so nothing has to be looked at."""
    h = busy("a")

    h.partition.work(5)

    assert (None, None) == (h.clock.next_due_ns(), h.partition.next_retry_ns())


def test_a_partition_at_rest_wakes_when_a_reservation_is_due() -> None:
    """Two seconds after the ask came, and a moment."""
    h = Harness()
    h.nodes("spare", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.nodes("one")
    h.submit()
    h.ask("used", node_id="one", resource=a_resource(memory=1))
    h.ask("a")

    h.partition.work(5)

    assert START_NS + 2 * SECOND_NS + 1 == h.partition.next_retry_ns()


def test_a_partition_at_rest_asks_the_predicates_again_after_a_second() -> None:
    """What they refused everywhere may be allowed later."""
    h = Harness(predicates=FakePredicates(refused={("a", "one"): "taint"}))
    h.nodes("one")
    h.submit()
    h.ask("a")

    h.partition.work(5)

    assert START_NS + SECOND_NS == h.partition.next_retry_ns()


def test_a_partition_without_nodes_is_not_tried_again_until_there_is_one() -> None:
    """What was due meanwhile would be due again at once, and once more, without end."""
    h = Harness(predicates=FakePredicates(refused={("a", "one"): "taint"}))
    h.nodes("one")
    h.submit()
    h.ask("a")
    h.partition.work(5)
    h.update_node("one", NodeAction.DECOMISSION)
    h.advance(5)

    h.partition.work(5)

    assert None is h.partition.next_retry_ns()


def test_running_until_idle_counts_results() -> None:
    """And ends when nothing more can be done."""
    h = busy("a", "b")

    assert [2, 0] == [h.partition.run_until_idle(), h.partition.run_until_idle()]


# -------------------------------------------------------------------------------------------- timers


def test_a_rejected_application_that_comes_again_is_kept_for_its_own_three_days() -> None:
    """The timer of the first one does not end the second."""
    h = Harness()
    h.submit(queue_name="root.nowhere")
    h.advance(100)
    h.submit(queue_name="root.nowhere")

    h.advance(SECONDS_OF_THREE_DAYS - 50)
    kept = list(h.state.rejected)
    h.advance(50)

    assert (["app"], {}) == (kept, h.state.rejected)


def test_applications_are_counted_without_asking_those_that_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There may be many of them, for three days."""
    h = busy("a")
    h.run_until_idle()
    h.submit("lost", "root.nowhere")
    h.release("a")
    h.advance(30)
    h.submit("next")
    asked: list[Application] = []

    def noted(application: Application) -> None:
        asked.append(application)

    handles = [ended.application for ended in h.state.completed.values()]
    handles += [ended.application for ended in h.state.rejected.values()]
    monkeypatch.setattr(Application, "facts", noted)

    counts = partition_values(h.state).applications

    assert {"Completed": 1, "Rejected": 1, "New": 1} == counts
    assert (2, []) == (len(handles), asked)


def test_an_application_goes_through_its_end_by_itself() -> None:
    """Completing for half a minute, Completed for three days; then it is unknown."""
    h = busy("a")
    h.run_until_idle()
    h.release("a")
    h.advance(29)
    completing = list(h.state.entries)
    h.advance(1)
    completed = (list(h.state.entries), len(h.state.completed))
    h.advance(SECONDS_OF_THREE_DAYS)

    assert (["app"], ([], 1), {}) == (completing, completed, h.state.completed)
    assert ["Accepted", "Running", "Completing", "Completed", "Expired"] == h.states()
    assert 1 == len(h.released_handles)


def test_states_are_reported_with_the_time_and_the_event() -> None:
    """An RM reads them."""
    h = busy("a")
    h.advance(5)
    h.run_until_idle()

    changes = h.heard(ApplicationChanged)

    assert [
        ApplicationChanged("app", "Accepted", START_NS, "runApplication"),
        ApplicationChanged("app", "Running", START_NS + 5 * SECOND_NS, "runApplication"),
    ] == changes


def test_a_timer_of_an_earlier_application_of_that_id_does_nothing() -> None:
    """The second one has its own half minute."""
    h = busy("a")
    h.run_until_idle()
    h.release("a")
    h.advance(20)
    h.withdraw()
    h.submit()
    h.ask("b")
    h.run_until_idle()
    h.release("b")

    h.advance(15)

    assert "Completing" == h.application().facts().state.value


def test_a_gang_that_times_out_is_reported_in_one_message_for_all_releases() -> None:
    """Placed ones and waiting ones; the state comes first, with its reason."""
    h = Harness()
    h.nodes("one")
    h.submit(placeholder_ask=a_resource(memory=20), timeout_seconds=60)
    h.ask("p1", "p2", task_group_name="g", placeholder=True)
    h.run_until_idle()
    h.forget()

    h.advance(60)

    assert [("p1", TerminationType.TIMEOUT), ("p2", TerminationType.TIMEOUT)] == h.releases
    assert ["Resuming"] == h.states()
    assert ["ResourceReservationTimeout"] == [change.message for change in h.heard(ApplicationChanged)]
    h.release("p1", termination=TerminationType.TIMEOUT)
    assert ["Resuming", "Accepted"] == h.states()


# -------------------------------------------------------------------------------------- configuration


def test_a_new_configuration_counts_from_the_next_cycle() -> None:
    """An ask that a maximum has barred is placed when the maximum is raised."""
    h = Harness("- name: leaf\n  resources: {max: {memory: 5}}")
    h.nodes("one")
    h.submit()
    h.ask("a")
    held = h.run_until_idle()

    h.reload("- name: leaf\n  resources: {max: {memory: 10}}")

    assert (0, 1) == (held, h.run_until_idle())


def test_a_new_configuration_may_turn_the_orders_round() -> None:
    """Of nodes and of applications."""
    h = Harness()
    h.nodes("a", "b")
    h.submit()
    h.ask("first", resource=a_resource(memory=1))
    h.run_until_idle()

    h.reload("- name: leaf", partition="nodesortpolicy: {type: binpacking}")
    h.ask("second", resource=a_resource(memory=1))
    h.run_until_idle()

    assert {"first": "a", "second": "a"} == h.placements


def test_a_queue_that_left_the_configuration_is_removed_when_it_is_empty() -> None:
    """Its applications go on until they end."""
    h = Harness("- name: a\n- name: b")
    h.nodes("one")
    h.submit(queue_name="root.b")
    h.ask("x")
    h.run_until_idle()

    h.reload("- name: a")
    h.advance(20)
    held = h.state.tree.find("root.b")
    h.withdraw()
    h.advance(10)

    assert held is not None
    assert h.state.tree.find("root.b") is None


# ------------------------------------------------------------------------------------------- its end


def test_a_partition_that_is_shut_down_fails_its_applications() -> None:
    """Its nodes go, what ran there is reported, and nothing happens any more."""
    h = busy("a")
    h.run_until_idle()
    h.submit("asking")
    h.ask("b", application_id="asking")
    h.forget()

    h.partition.shut_down()
    count_before = len(h.announcements)
    while h.clock.advance_to(START_NS + SECONDS_OF_THREE_DAYS * SECOND_NS):
        pass

    assert count_before == len(h.announcements)
    failing = h.heard(ApplicationChanged)
    assert {"PartitionRemoved"} == {change.message for change in failing if change.state == "Failing"}
    assert {"app", "asking"} == {change.application_id for change in failing if change.state == "Failing"}
    assert [("a", TerminationType.STOPPED_BY_RM)] == h.releases
    assert (0, {}) == (len(h.state.nodes), h.placements)


def test_a_partition_that_is_shut_down_takes_nothing() -> None:
    """Neither nodes nor applications."""
    h = Harness()
    h.partition.shut_down()

    assert 1 == len(h.nodes("one").rejected)
    assert h.submit() is not None


def test_a_partition_that_is_shut_down_tells_of_no_outstanding_asks() -> None:
    """They would wait for ever."""
    h = busy()
    h.ask("huge", resource=a_resource(memory=1000))
    h.run_until_idle()
    h.partition.shut_down()

    h.partition.inspect_outstanding()

    assert [] == h.heard(SchedulingStateChanged)
