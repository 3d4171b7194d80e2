"""Applications and nodes that broke: the rest goes on without them, and the books stay right."""

from __future__ import annotations

from typing import Any, Never

import pytest
from support.model.builders import FIVE, SECOND_NS, TEN, TWENTY, a_resource
from support.model.harness import Harness

from licorne.model.nodes.handle import NodeHandle
from licorne.model.resources.resource import EMPTY
from licorne.model.state.partition_state import BrokenKind, Quarantined
from licorne.model.values.messages import NodeAction, TerminationType
from licorne.model.views.shown import quarantined_entries

STOPPED = TerminationType.STOPPED_BY_RM


class Broken:
    """What has broken answers nothing any more."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of what is broken")


def a_partition(*node_ids: str) -> Harness:
    """Return a partition with nodes of ten, and a cordoned one: the queues have room enough."""
    h = Harness("- name: leaf\n- name: other")
    h.nodes("spare", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.nodes(*node_ids)
    h.submit()
    return h


def break_application(h: Harness, application_id: str = "app") -> None:
    """Put an application into quarantine that does not even answer."""
    h.entry(application_id).application = Broken()
    assert h.partition.quarantine(BrokenKind.APPLICATION, application_id, "a bug")
    h.validate()


def break_node(h: Harness, node_id: str) -> None:
    """Put a node into quarantine that does not even answer."""
    node = h.state.nodes.get(node_id)
    assert node is not None
    node.node = Broken()
    assert h.partition.quarantine(BrokenKind.NODE, node_id, "a bug")
    h.validate()


# ------------------------------------------------------------------------------------ applications


def test_nothing_is_placed_for_a_broken_application() -> None:
    """Others are served as if it were not there, also after a reload."""
    h = a_partition("one", "two")
    h.ask_and_run("a")
    h.ask("b")
    h.submit("other")
    h.ask("c", application_id="other")
    break_application(h)
    h.reload("- name: leaf\n- name: other")
    h.run_until_idle()

    assert {"a": "one", "c": "two"} == h.placements


def test_what_a_broken_application_has_counts_on() -> None:
    """For its node, its queues and its user, until the RM ends it."""
    h = a_partition("one")
    h.ask_and_run("a", resource=FIVE)
    break_application(h)

    assert (FIVE, FIVE, FIVE) == (h.node("one").allocated, h.queue("root").allocated, h.user_usage())
    assert 1 == h.queue().running


def test_a_broken_application_is_reported() -> None:
    """With the time and the error; the second time is no news."""
    h = a_partition("one")
    h.advance(5)
    since_ns = h.clock.now_ns()
    break_application(h)

    again = h.partition.quarantine(BrokenKind.APPLICATION, "app", "another bug")

    expected = Quarantined("[rm]default", BrokenKind.APPLICATION, "app", since_ns, "a bug")
    assert (False, (expected,)) == (again, h.partition.read(quarantined_entries))


def test_requests_for_a_broken_application_are_answered() -> None:
    """Its asks are rejected with the reason, and its id is in use."""
    h = a_partition("one")
    break_application(h)

    (rejection,) = h.ask("late")
    refused = h.submit()

    assert "failed to find application app: it is quarantined, a bug" == rejection.reason
    assert refused is not None
    assert refused.reason.endswith("application already existed")


def test_the_rm_may_end_what_a_broken_application_has() -> None:
    """One after the other; each is confirmed, and its room is used."""
    h = a_partition("one", "two")
    h.ask_and_run("a", "b")
    break_application(h)
    h.forget()
    h.release("a", "unknown")
    h.submit("other")
    h.ask_and_run("c", application_id="other")

    assert [("a", STOPPED)] == h.releases
    assert ({"c": "one"}, TWENTY) == (h.placements, h.queue("root").allocated)


def test_a_broken_application_that_is_removed_leaves_nothing() -> None:
    """Its id may be used again; what waited for it waits no longer."""
    h = a_partition("one", "two")
    h.ask_and_run("a")
    h.ask("waits-1", "waits-2", resource=a_resource(memory=50))
    break_application(h)
    h.forget()
    h.withdraw()

    assert [("a", STOPPED)] == h.releases
    assert (EMPTY, EMPTY, 0) == (h.queue("root").allocated, h.queue("root").pending, h.queue().running)
    assert (EMPTY, 0, ()) == (
        h.user_usage(),
        h.state.placed.allocations,
        h.partition.read(quarantined_entries),
    )
    assert h.submit() is None


def test_a_broken_application_with_a_swap_under_way_leaves_nothing() -> None:
    """Neither the placeholder nor what was to take its place."""
    h = a_partition("one", "two")
    h.submit("gang", placeholder_ask=TEN)
    h.ask_and_run("holder", application_id="gang", task_group_name="g", placeholder=True)
    h.update_node("one", NodeAction.DRAIN_NODE)
    h.ask_and_run("member", application_id="gang", task_group_name="g")
    break_application(h, "gang")
    h.withdraw("gang")

    assert (EMPTY, EMPTY, 0) == (
        h.node("one").allocated,
        h.node("two").allocated,
        h.state.placed.placeholders,
    )


def test_a_broken_application_lets_its_reservations_go() -> None:
    """The node is for others."""
    h = a_partition("one")
    h.submit("other")
    h.ask_and_run("busy", application_id="other")
    h.ask("waits")
    h.advance(3)
    h.run_until_idle()
    reserved = h.node("one").reservations
    break_application(h)

    assert (("waits",), (), 0) == (reserved, h.node("one").reservations, h.state.reservations)


def test_the_key_of_a_broken_application_is_in_use() -> None:
    """A second allocation of that key would be on the same node as the first."""
    h = a_partition("one")
    h.ask_and_run("a")
    break_application(h)
    h.submit("other")

    (rejection,) = h.ask("a", application_id="other", node_id="one")

    assert "allocation key a is in use by application app" == rejection.reason


def test_a_broken_application_loses_what_its_node_takes_along() -> None:
    """The RM hears of it as of any other."""
    h = a_partition("one", "two")
    h.ask_and_run("a", "b")
    break_application(h)
    h.forget()
    h.update_node("one", NodeAction.DECOMISSION)

    assert ([("a", STOPPED)], TEN) == (h.releases, h.queue("root").allocated)


def test_timers_of_a_broken_application_do_nothing() -> None:
    """It would have been Completed after thirty seconds."""
    h = a_partition("one")
    h.ask_and_run("a")
    h.release("a")
    break_application(h)
    h.advance(60)

    assert "Completed" not in h.states()


# ------------------------------------------------------------------------------------------- nodes


def test_nothing_is_placed_on_a_broken_node() -> None:
    """Nor by asks that require it; its capacity does not count, what runs there runs on."""
    h = a_partition("one", "two")
    h.ask_and_run("a")
    break_node(h, "one")
    h.ask("daemon", required_node="one", resource=FIVE, priority=9)
    h.ask_and_run("b")

    assert {"a": "one", "b": "two"} == h.placements
    assert (a_resource(memory=110), TWENTY) == (h.state.capacity, h.queue("root").allocated)


def test_a_broken_node_is_reported() -> None:
    """With the time and the error."""
    h = a_partition("one")
    h.advance(1)
    break_node(h, "one")

    (entry,) = h.partition.read(quarantined_entries)

    assert (BrokenKind.NODE, "one", "a bug") == (entry.kind, entry.name, entry.reason)
    assert h.state.state_since_ns + SECOND_NS == entry.since_ns


def test_what_runs_on_a_broken_node_can_be_ended() -> None:
    """The room there is not used again."""
    h = a_partition("one")
    h.ask_and_run("a", "b")
    break_node(h, "one")
    h.release("a")
    h.run_until_idle()

    assert ({"a": "one"}, EMPTY) == (h.placements, h.queue("root").allocated)


def test_a_broken_node_that_is_removed_takes_its_allocations_along() -> None:
    """Then its id may be used again, and not before."""
    h = a_partition("one", "two")
    h.ask("foreign", application_id="", node_id="one", tags={"foreign": "default"}, resource=FIVE)
    h.ask("a", resource=FIVE, node_id="one")
    break_node(h, "one")
    early = h.nodes("one")
    h.forget()
    h.update_node("one", NodeAction.DECOMISSION)
    late = h.nodes("one")

    assert (1, ("one",)) == (len(early.rejected), late.accepted)
    assert ([("a", STOPPED)], {}) == (h.releases, h.state.foreign)
    assert () == h.partition.read(quarantined_entries)


def test_a_broken_node_is_reserved_for_no_ask() -> None:
    """Who waited for it may reserve another one."""
    h = a_partition("one", "two")
    h.ask_and_run("busy-1", "busy-2")
    h.ask("waits")
    h.advance(3)
    h.run_until_idle()
    (name,) = [name for name in ("one", "two") if h.node(name).reservations]
    break_node(h, name)
    h.run_until_idle()

    other = "two" if name == "one" else "one"
    assert (("waits",), 1) == (h.node(other).reservations, h.state.reservations)


# --------------------------------------------------------------------------------- the partition's end


@pytest.mark.parametrize("what", ["application", "node"])
def test_a_partition_ends_with_what_broke_in_it(what: str) -> None:
    """Nothing is left that is counted, and the handles are released."""
    h = a_partition("one")
    h.ask_and_run("a")
    if what == "node":
        break_node(h, "one")
    else:
        break_application(h)
    h.partition.shut_down()
    h.validate()

    assert ((), 0, EMPTY) == (
        h.partition.read(quarantined_entries),
        h.state.placed.allocations,
        h.queue("root").allocated,
    )
    assert any(isinstance(handle, Broken) for handle in h.released_handles)


class BreaksWhenTaken:
    """A node on which nothing can be placed."""

    def __init__(self, node: NodeHandle) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def try_add(self, _: object) -> Never:
        """Break."""
        raise TypeError("broken")


@pytest.mark.parametrize("what", ["node", "application"])
def test_a_placement_that_breaks_half_way_is_taken_back(what: str) -> None:
    """The queues are not charged for it, and the room on the node is free."""
    h = a_partition("one")
    h.ask("a")
    node = h.state.nodes.get("one")
    assert node is not None
    if what == "node":
        node.node = BreaksWhenTaken(node.node)
    else:
        h.application()._core.pending = EMPTY

    with pytest.raises((AssertionError, TypeError)):
        h.partition.cycle()

    assert EMPTY == h.queue("root").allocated
    if what == "application":
        assert EMPTY == node.node.facts().allocated
