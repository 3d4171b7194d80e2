"""Asks, existing and foreign allocations, and releases that an RM sends."""

from __future__ import annotations

import pytest
from support.model.builders import FIVE, PARTITION, SECOND_NS, START_NS, TEN, TWENTY, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.messages import (
    AllocationRejection,
    AllocationsRejected,
    AllocationsReleased,
    NodeAction,
    Release,
    TerminationType,
)
from licorne.model.values.states import ObjectState

FOREIGN = {"foreign": "default"}
STOPPED = TerminationType.STOPPED_BY_RM


def record_of(h: Harness, key: str) -> object:
    return h.application().asks.record(key)


@pytest.fixture
def h() -> Harness:
    """Return a partition with an application."""
    return a_running_partition()


# ---------------------------------------------------------------------------------------- rejections


@pytest.mark.parametrize(
    ("resource", "why"),
    [
        (EMPTY, "allocation contains no resources"),
        (a_resource(memory=0), "allocation contains no resources"),
        (a_resource(memory=5, gpu=-1), "allocation contains negative resources"),
    ],
)
def test_an_ask_must_ask_for_something(h: Harness, resource: Resource, why: str) -> None:
    """For nothing and for less than nothing it is rejected."""
    (rejection,) = h.ask("a", resource=resource)

    assert ("a", "app", why) == (rejection.allocation_key, rejection.application_id, rejection.reason)


def test_an_ask_of_an_unknown_application_is_rejected() -> None:
    """Also of one that is completed."""
    h = a_running_partition("a")
    h.release("a")
    h.advance(31)

    reasons = [h.ask("b", application_id=name)[0].reason for name in ("unknown", "app")]

    assert ["failed to find application unknown", "failed to find application app"] == reasons


def test_an_allocation_on_an_unknown_node_is_rejected(h: Harness) -> None:
    """The application is looked for first."""
    assert "failed to find node nowhere" == h.ask("a", node_id="nowhere")[0].reason
    assert "failed to find application x" == h.ask("a", application_id="x", node_id="nowhere")[0].reason


HUGE = a_resource(memory=2**63 - 1)


def test_existing_allocations_may_exceed_64_bits_together(h: Harness) -> None:
    """No other one is rejected for it, and what is released leaves what remains."""
    h.ask("a", "b", node_id="one", resource=HUGE)

    rejections = h.ask("c", node_id="one", resource=FIVE)
    together = h.queue().allocated
    h.release("a")
    h.release("b")

    assert () == rejections
    assert (a_resource(memory=2**64 + 3), FIVE) == (together, h.queue().allocated)


def test_an_allocation_may_be_resized_beyond_64_bits_together_with_others(h: Harness) -> None:
    """And back again."""
    h.ask("a", node_id="one", resource=HUGE)
    h.ask("b", node_id="one", resource=FIVE)

    h.ask("b", resource=HUGE)
    grown = h.queue().allocated
    h.ask("b", resource=TEN)
    h.release("a")

    assert (a_resource(memory=2**64 - 2), TEN) == (grown, h.queue().allocated)


def test_a_stopped_partition_takes_nothing(h: Harness) -> None:
    """With the words of the interface."""
    h.state.state = ObjectState.STOPPED

    assert "partition [rm]default is stopped; cannot process allocation a" == h.ask("a")[0].reason


def test_a_placeholder_without_a_task_group_is_rejected(h: Harness) -> None:
    """Nothing that an RM says is dropped without an answer."""
    (rejection,) = h.ask("p", placeholder=True)

    assert "task group" in rejection.reason


def test_the_good_asks_of_a_message_are_taken(h: Harness) -> None:
    """Whatever stands beside them."""
    h.ask("a")

    rejections = h.ask("b", "c", resource=EMPTY)

    assert ["b", "c"] == [rejection.allocation_key for rejection in rejections]
    assert TEN == h.queue().pending


# ---------------------------------------------------------------------------------------------- asks


def test_an_ask_waits_in_its_queues(h: Harness) -> None:
    """In the leaf and in each above; the application is Accepted."""
    h.ask("a", "b")

    assert {TWENTY} == {level.pending for level in h.queue().above}
    assert ["Accepted"] == h.states()


@pytest.mark.parametrize(("tag", "seconds"), [("946684700", -100), ("later", 0), ("-5", 0)])
def test_the_age_of_an_ask_is_a_tag(h: Harness, tag: str, seconds: int) -> None:
    """In whole seconds since 1970; without it the time of arrival counts."""
    h.ask("a", tags={"creationTime": tag})

    record = h.application().asks.record("a")
    assert record is not None
    assert START_NS + seconds * SECOND_NS == record.ask.created_at_ns


def test_a_known_ask_is_resized(h: Harness) -> None:
    """What waits changes by the difference; priority and tags stay."""
    h.ask("a", resource=FIVE, priority=3)

    h.ask("a", resource=TWENTY, priority=9)

    record = h.application().asks.record("a")
    assert record is not None
    assert (TWENTY, 3, TWENTY) == (record.ask.resource, record.ask.priority, h.queue().pending)


def test_the_same_ask_again_changes_nothing() -> None:
    """Waiting or placed."""
    h = a_running_partition("a")
    h.ask("b")
    h.forget()

    h.ask("a", "b")

    assert ([], TEN, TEN) == (h.announcements, h.queue().pending, h.queue().allocated)


def test_a_known_allocation_is_resized_in_place() -> None:
    """On its node, in its queues and for its user, whatever the quotas and the room. There is no message."""
    h = a_running_partition("a", queues="- name: leaf\n  resources: {max: {memory: 12}}")

    h.ask("a", resource=TWENTY)

    assert {TWENTY} == {level.allocated for level in h.queue().above}
    assert (TWENTY, TWENTY, a_resource(memory=-10)) == (
        h.user_usage(),
        h.node("one").allocated,
        h.node("one").available,
    )
    assert [] == h.announcements


def test_a_known_allocation_stays_on_its_node() -> None:
    """Another node in the message is ignored."""
    h = a_running_partition("a")

    h.ask("a", node_id="two")

    assert (TEN, EMPTY, []) == (h.node("one").allocated, h.node("two").allocated, h.announcements)


# --------------------------------------------------------------------------------- existing allocations


def test_an_existing_allocation_is_taken_over() -> None:
    """Whatever the quotas and the room; the RM gets it back, and the application runs."""
    h = a_running_partition(queues="- name: leaf\n  resources: {max: {memory: 5}}")

    h.ask("a", "b", node_id="one")

    assert (a_resource(memory=-10), TWENTY, TWENTY) == (
        h.node("one").available,
        h.queue().allocated,
        h.user_usage(),
    )
    assert ({"a": "one", "b": "one"}, ["Accepted", "Running"]) == (h.placements, h.states())


def test_a_waiting_ask_may_be_placed_by_the_rm(h: Harness) -> None:
    """It waits no longer, counts as allocated, and is announced; its new size counts."""
    h.ask("a")

    h.ask_and_run("a", resource=FIVE, node_id="two")

    assert ({"a": "two"}, EMPTY, FIVE) == (h.placements, h.queue().pending, h.queue().allocated)
    assert ["Accepted", "Running"] == h.states()


def test_recovered_placeholders_time_out_as_others_do() -> None:
    """Their timer starts when they are taken over."""
    h = a_running_partition(nodes=("one",), placeholder_ask=TWENTY, timeout_seconds=60)
    h.ask("p", node_id="one", task_group_name="g", placeholder=True)

    h.advance(61)

    assert [("p", TerminationType.TIMEOUT)] == h.releases
    assert ["Accepted", "Resuming"] == h.states()


# -------------------------------------------------------------------------------------------- foreign


def test_a_foreign_allocation_occupies_its_node(h: Harness) -> None:
    """It counts for no queue and no user, and there is no message for the RM."""
    h.ask("f", application_id="", node_id="one", resource=FIVE, tags=FOREIGN)

    assert (FIVE, FIVE, EMPTY) == (h.node("one").occupied, h.node("one").available, h.queue().allocated)
    assert ([], ["f"]) == (h.announcements, list(h.state.foreign))


@pytest.mark.parametrize(
    ("node_id", "why"),
    [
        ("", "trying to add a foreign request (non-allocation) f"),
        ("nowhere", "failed to find node nowhere for allocation f"),
    ],
)
def test_a_foreign_allocation_must_be_on_a_known_node(node_id: str, why: str) -> None:
    """There are no foreign asks."""
    (rejection,) = a_running_partition().ask("f", application_id="", node_id=node_id, tags=FOREIGN)

    assert why == rejection.reason


def test_a_foreign_allocation_may_use_nothing(h: Harness) -> None:
    """It is listed all the same."""
    assert () == h.ask("f", application_id="", node_id="one", resource=EMPTY, tags=FOREIGN)
    assert 1 == len(h.node("one").foreign)


def test_a_foreign_allocation_changes_its_size_and_its_node(h: Harness) -> None:
    """Nothing is left of it on the node it has left."""
    h.ask("f", application_id="", node_id="one", resource=FIVE, tags=FOREIGN)

    h.ask("f", application_id="", node_id="one", tags=FOREIGN)
    resized = h.node("one").occupied
    h.ask("f", application_id="", node_id="two", resource=FIVE, tags=FOREIGN)

    assert (TEN, EMPTY, FIVE) == (resized, h.node("one").occupied, h.node("two").occupied)


@pytest.mark.parametrize(("tag", "preemptable"), [("static", False), ("default", True), ("other", True)])
def test_only_static_foreign_allocations_may_not_be_preempted(
    h: Harness, tag: str, *, preemptable: bool
) -> None:
    """Any other word is as good as `default`."""
    h.ask("f", application_id="", node_id="one", tags={"foreign": tag})

    assert preemptable is h.state.foreign["f"].ask.allow_preempt_self


def test_room_that_something_foreign_leaves_is_used(h: Harness) -> None:
    """The ask that waited for it is placed."""
    h.update_node("two", NodeAction.DRAIN_NODE)
    h.ask("f", application_id="", node_id="one", resource=FIVE, tags=FOREIGN)
    h.ask("a")
    held = h.run_until_idle()

    h.release("f", application_id="")
    h.release("unknown", application_id="")

    assert (0, 1, {}) == (held, h.run_until_idle(), h.state.foreign)


@pytest.mark.parametrize("what", ["foreign", "resized"])
def test_what_is_foreign_or_resized_does_not_move_its_node(what: str) -> None:
    """Nodes keep their places until the next placement or release there. Kept, see the decisions."""
    h = Harness(partition="nodesortpolicy: {type: fair}")
    h.nodes("one", "two", capacity=a_resource(memory=100))
    h.submit()
    h.ask("a", resource=a_resource(memory=1), node_id="two")
    before = [entry.node_id for entry in h.state.nodes]
    if what == "foreign":
        h.ask("f", application_id="", node_id="one", tags={"foreign": "default"}, resource=TEN)
    else:
        h.ask("a", resource=a_resource(memory=50), node_id="two")
        h.ask("b", resource=a_resource(memory=2), node_id="one")
        before = ["two", "one"]
    after = [entry.node_id for entry in h.state.nodes]
    h.ask_and_run("next", resource=a_resource(memory=1))

    assert (before, before[0]) == (after, h.placements["next"])


# -------------------------------------------------------------------------------------------- releases


@pytest.mark.parametrize(
    ("termination", "echoed", "ask_kept"),
    [
        (TerminationType.STOPPED_BY_RM, True, False),
        (TerminationType.UNKNOWN_TERMINATION_TYPE, True, False),
        (TerminationType.TIMEOUT, False, True),
        (TerminationType.PREEMPTED_BY_SCHEDULER, False, False),
        (TerminationType.PLACEHOLDER_REPLACED, False, False),
    ],
)
def test_what_the_rm_ends_is_ended(termination: TerminationType, *, echoed: bool, ask_kept: bool) -> None:
    """Everywhere it was counted; what the RM ended by itself is echoed, its confirmations are not."""
    h = a_running_partition("a", "b")

    h.release("a", termination=termination)

    assert (TEN, TEN, EMPTY, 1) == (
        h.queue().allocated,
        h.user_usage(),
        h.node("one").allocated,
        h.state.placed.allocations,
    )
    assert ([("a", STOPPED)] if echoed else []) == h.releases
    assert ask_kept is (record_of(h, "a") is not None)


def test_an_echo_says_that_the_rm_wanted_it() -> None:
    """With the words of the interface."""
    h = a_running_partition("a")

    h.release("a")

    (echo,) = h.heard(AllocationsReleased)
    assert "allocation remove as per RM request" == echo.releases[0].message


def test_an_ask_that_ends_is_not_echoed(h: Harness) -> None:
    """It waits no longer; the application completes, as nothing else is left."""
    h.ask("a")
    h.forget()

    h.release("a")

    assert (EMPTY, [], ["Completing"]) == (h.queue().pending, h.releases, h.states())


def test_a_waiting_ask_does_not_time_out(h: Harness) -> None:
    """A confirmation of a timeout ends allocations alone."""
    h.ask("a")

    h.release("a", termination=TerminationType.TIMEOUT)

    assert TEN == h.queue().pending


@pytest.mark.parametrize(("key", "application_id"), [("x", "app"), ("a", "unknown"), ("", "unknown")])
def test_what_is_not_known_has_ended_already(key: str, application_id: str) -> None:
    """Nothing changes, and there is no message."""
    h = a_running_partition("a")

    h.release(key, application_id=application_id)

    assert ([], TEN) == (h.announcements, h.queue().allocated)


def test_everything_of_an_application_is_ended_at_once() -> None:
    """Its allocations, echoed, then its asks; the application completes and is kept."""
    h = a_running_partition("a", "b", "c")

    h.release("")

    assert [("a", STOPPED), ("b", STOPPED)] == h.releases
    assert (EMPTY, EMPTY, EMPTY, ["app"]) == (
        h.queue().allocated,
        h.queue().pending,
        h.user_usage(),
        list(h.state.entries),
    )
    assert ["Completing"] == h.states()


def test_a_key_that_ended_may_be_used_again() -> None:
    """As a new ask."""
    h = a_running_partition("a", "b")
    h.release("a")

    h.ask_and_run("a", resource=FIVE)

    assert ("one", FIVE) == (h.placements["a"], h.node("one").allocated)


def test_a_release_that_is_refused_is_answered_and_the_others_are_carried_out() -> None:
    """One entry that this version does not know costs no other one."""
    h = a_running_partition("x", "y")
    refused, good = (
        Release(
            partition=PARTITION,
            application_id="app",
            allocation_key=key,
            termination=TerminationType.STOPPED_BY_RM,
            refusal=refusal,
        )
        for key, refusal in (("x", "not known"), ("y", ""))
    )
    h.partition.update_allocations([], [refused, good])
    h.validate()

    rejected = AllocationsRejected((AllocationRejection("x", "app", "not known"),))
    assert [rejected] == h.heard(AllocationsRejected)
    assert {"x"} == {placed.allocation.ask.allocation_key for placed in h.application().allocations.all()}


def test_a_foreign_allocation_with_negative_resources_is_rejected(h: Harness) -> None:
    """It would give its node more than it has."""
    (rejection,) = h.ask("f", application_id="", node_id="one", tags=FOREIGN, resource=a_resource(memory=-5))

    assert "the resource of the foreign allocation f is negative: memory is -5" == rejection.reason
    assert not h.state.foreign
