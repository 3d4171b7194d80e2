"""Windows: nothing starts that would run into one, whom they are for, and why work waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.model.builders import (
    START_NS,
    a_resource,
    an_application_submission,
    an_ask_submission,
    memory,
)
from support.model.harness import Harness

from licorne.model.explanation.dry_run import dry_run_application, dry_run_ask
from licorne.model.explanation.explain import explain
from licorne.model.explanation.first_blockers import first_blockers
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.messages import NodeAction
from licorne.proxy.core.explanation.text import what_blocks

_START = datetime(2000, 1, 1, tzinfo=UTC)


def hours(count: float) -> str:
    """Return a time of the configuration, so long after the start of the clock."""
    return (_START + timedelta(hours=count)).strftime("%Y-%m-%dT%H:%M:%SZ")


def window(begin: float, end: float, nodes: str = "nodes: [n1]", more: str = "") -> str:
    """Return the configuration of one window, in hours since the start of the clock."""
    return f"windows: [{{name: firmware, {nodes}, from: {hours(begin)}, to: {hours(end)}{more}}}]"


def a_node(windows: str, *names: str, queues: str = "- name: leaf", **options: Any) -> Harness:
    """Return a partition with windows, nodes with memory 10 and an application."""
    h = Harness(queues, partition=windows, **options)
    h.nodes(*(names or ("n1",)), capacity=a_resource(memory=10))
    h.submit()
    return h


def test_the_clock_starts_where_the_tests_count_from() -> None:
    h = Harness()
    assert h.clock.now_ns() == START_NS == int(_START.timestamp()) * 10**9


def test_what_ends_before_the_window_starts_and_what_does_not_waits_for_its_end() -> None:
    h = a_node(window(2, 4))
    h.ask("short", resource=memory(1), tags={"walltime": "2h"})
    h.ask("long", resource=memory(1), tags={"walltime": "2h0m1s"})
    assert h.run_until_idle() == 1
    assert h.placements == {"short": "n1"}
    (refusal,) = h.application().asks.refusals()
    assert refusal.reason is RefusalReason.WINDOW
    assert refusal.until_ns == START_NS + 4 * 3600 * 10**9

    assert h.wait(4 * 3600 - 1) == 0
    assert h.wait(1) == 1
    assert h.placements["long"] == "n1"


def test_an_ask_of_unknown_run_time_waits_for_as_long_as_is_set_before_the_window() -> None:
    h = a_node(window(3, 4, more=", drain: 2h"))
    h.ask_and_run("early", resource=memory(1))
    h.advance(3600 + 1)
    h.ask("late", resource=memory(1))
    h.run_until_idle()
    assert set(h.placements) == {"early"}
    assert refusal_text(h) == (
        "every node with room is kept for a window: n1 is reserved for firmware from 2000-01-01 03:00 UTC; "
        "how long this runs is not known (until in 2h59m)"
    )


def refusal_text(h: Harness, application_id: str = "app") -> str:
    """Return the one blocker of the first ask of an application in words."""
    found = explain(h.state, application_id)
    assert found is not None
    blockers = found.blockers or found.waiting[0].blockers
    return what_blocks(blockers[0], h.clock.now_ns())


def test_another_node_takes_what_a_window_keeps_from_the_first() -> None:
    h = a_node(window(1, 2), "n1", "n2", "n3")
    h.ask_and_run("k", resource=memory(10), tags={"walltime": "3h"})
    assert h.placements == {"k": "n2"}


def test_explain_names_the_node_the_window_and_the_run_time() -> None:
    h = a_node(window(2, 4), "n1", "n2", queues="- {name: leaf}")
    h.ask_and_run("full", resource=memory(10), required_node="n2")
    h.ask("k", resource=memory(10), tags={"walltime": "3h"})
    h.run_until_idle()
    assert refusal_text(h) == (
        "every node with room is kept for a window: n1 is reserved for firmware from 2000-01-01 02:00 UTC; "
        "this needs 3h (until in 4h)"
    )
    found = explain(h.state, "app")
    assert found is not None
    nodes = found.waiting[0].nodes
    assert nodes is not None
    assert nodes.available == 0
    assert ("reserved for firmware from 2000-01-01 02:00 UTC; this needs 3h", 1) in nodes.reasons
    h.advance(2 * 3600)
    assert "n1 is reserved for firmware until 2000-01-01 04:00 UTC" in refusal_text(h)


@pytest.mark.parametrize(
    ("holders", "starts"),
    [
        ("users: [bob]", True),
        ("users: [eve]", False),
        ("groups: [staff]", True),
        ("groups: [guests]", False),
        ("applications: [app]", True),
        ("applications: [other]", False),
        ("queues: [root.leaf]", True),
        ("queues: [ROOT]", True),
        ("queues: [root.other]", False),
    ],
)
def test_a_window_is_the_room_of_those_it_is_for(holders: str, *, starts: bool) -> None:
    h = Harness(partition=window(0, 2, more=f", for: {{{holders}}}"))
    h.nodes("n1", capacity=a_resource(memory=10))
    h.submit(user="bob", groups=("staff",))
    h.ask("k", resource=memory(1))
    assert h.run_until_idle() == starts


def test_a_node_that_needs_its_node_waits_without_reserving_it() -> None:
    h = a_node(window(1, 2, more=", for: {users: [eve]}"))
    h.submit("theirs", user="eve")
    h.ask("needs", resource=memory(5), required_node="n1", tags={"walltime": "90m"})
    h.run_until_idle()
    assert h.state.reservations == 0
    assert "node n1 is kept for a window" in refusal_text(h)
    h.ask_and_run("free", application_id="theirs", resource=memory(10), tags={"walltime": "90m"})
    assert h.placements == {"free": "n1"}
    h.release("free", application_id="theirs")
    assert h.wait(2 * 3600) == 1
    assert h.placements["needs"] == "n1"


def test_no_node_of_a_window_is_reserved_and_nothing_polls() -> None:
    """The one timer is for the end of the window."""
    h = a_node(window(1, 9))
    h.ask("k", resource=memory(1), tags={"walltime": "2h"})
    h.run_until_idle()
    h.wait(5)
    assert h.state.reservations == 0
    assert h.partition.next_retry_ns() == START_NS + 9 * 3600 * 10**9


def test_a_window_that_is_repeated_makes_one_timer_and_ends_what_never_fits_in_between() -> None:
    h = a_node(window(1, 23, more=", every: 1d"))
    h.ask("fits", resource=memory(1), tags={"walltime": "2h"})
    h.ask("never", resource=memory(1), tags={"walltime": "2h0m1s"})
    h.run_until_idle()
    assert h.placements == {}
    assert h.partition.next_retry_ns() == START_NS + 23 * 3600 * 10**9
    assert h.wait(23 * 3600) == 1
    assert set(h.placements) == {"fits"}
    (refusal,) = h.application().asks.refusals()
    assert (refusal.reason, refusal.until_ns) == (RefusalReason.WINDOW, None)


def test_nodes_are_named_by_their_attributes_and_may_come_and_go() -> None:
    h = Harness(partition=window(0, 9, nodes="attributes: {rack: r1}"))
    h.submit()
    h.nodes("n1", capacity=a_resource(memory=1), attributes={"rack": "r1"})
    h.ask("k", resource=memory(1))
    assert h.run_until_idle() == 0
    h.nodes("n2", capacity=a_resource(memory=1), attributes={"rack": "r2"})
    assert h.run_until_idle() == 1
    h.update_node("n1", action=NodeAction.DECOMISSION)
    h.ask("later", resource=memory(1))
    assert h.wait(9 * 3600) == 0
    h.nodes("n1", capacity=a_resource(memory=1), attributes={"rack": "r1"})
    assert h.run_until_idle() == 1


def test_a_reload_brings_and_takes_windows() -> None:
    h = a_node("")
    h.reload("- name: leaf", partition=window(1, 2))
    h.ask("k", resource=memory(1), tags={"walltime": "2h"})
    assert h.run_until_idle() == 0
    h.reload("- name: leaf")
    assert h.run_until_idle() == 1
    h.ask_and_run("more", resource=memory(1), tags={"walltime": "2h"})
    assert set(h.placements) == {"k", "more"}


def test_a_whole_gang_leaves_room_for_a_window_and_says_so() -> None:
    h = a_node(window(2, 4), "n1", "n2")
    assert h.submit("g", tags={"gangSize": "4", "walltime": "3h"}) is None
    for number in range(4):
        h.ask(f"g{number}", application_id="g", resource=memory(5))
    assert h.run_until_idle() == 0
    (refusal,) = h.application("g").asks.refusals()
    assert refusal.reason is RefusalReason.WINDOW
    assert "n1 is reserved for firmware" in refusal_text(h, "g")
    assert h.wait(4 * 3600) == 1
    assert len(h.placements) == 4


def test_a_member_that_would_run_into_a_window_replaces_no_placeholder() -> None:
    h = Harness(partition=window(2, 4))
    h.nodes("n1", capacity=a_resource(memory=10))
    h.submit("g", placeholder_ask=memory(5))
    options: dict[str, Any] = {"application_id": "g", "resource": memory(5), "task_group_name": "t"}
    h.ask_and_run("p", placeholder=True, tags={"walltime": "1h"}, **options)
    h.ask("m", tags={"walltime": "3h"}, **options)
    h.settle()
    assert set(h.placements) == {"p"}


def test_a_dry_run_and_the_list_of_blockers_know_windows() -> None:
    h = a_node(window(2, 4))
    h.ask("k", resource=memory(1), tags={"walltime": "3h"})
    h.run_until_idle()
    (first,) = first_blockers(h.state, ["app"])
    assert first.words == "nodes reserved by a window"
    new = an_application_submission("new", "root.leaf", tags={"walltime": "1h"})
    for key, tags, reasons in (
        ("fits", {}, []),
        ("long", {"walltime": "3h"}, [RefusalReason.WINDOW]),
    ):
        ask = an_ask_submission(key, "new", resource=memory(1), tags=tags)
        run = dry_run_application(h.state, new, ask)
        assert run.ask is not None
        assert [each.reason for each in run.ask.blockers] == reasons
    known = dry_run_ask(h.state, an_ask_submission("own", "app", resource=memory(1)))
    assert known is not None
    assert known.ask is not None
    assert [each.reason for each in known.ask.blockers] == [RefusalReason.WINDOW]


def test_a_promise_is_planned_behind_the_window_and_explained() -> None:
    h = Harness(root='properties: {backfill.reservations: "1"}', partition=window(2, 4))
    h.nodes("n1", capacity=a_resource(memory=10))
    h.submit()
    h.ask("long", resource=memory(10), tags={"walltime": "3h"})
    h.ask("short", resource=memory(10), tags={"walltime": "2h"})
    h.run_until_idle()
    assert h.placements == {"short": "n1"}
    found = explain(h.state, "app")
    assert found is not None
    planned = found.waiting[0].planned_start
    assert planned is not None
    assert (planned.start_ns, planned.is_promised) == (START_NS + 4 * 3600 * 10**9, True)
