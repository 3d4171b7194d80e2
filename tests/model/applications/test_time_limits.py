"""What happens when an allocation, or an application, has run as long as it may."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.applications.effects import ApplicationState
from licorne.model.values.messages import ApplicationChanged, NodeAction, TerminationType

TIMEOUT = TerminationType.TIMEOUT
STOPPED = TerminationType.STOPPED_BY_RM


def placed(*keys: str, limit_seconds: int = 10, application_seconds: int = 0) -> Harness:
    """Return a partition with one application that runs allocations with a limit; an hour has passed."""
    h = Harness()
    h.advance(3600)
    h.nodes("node", capacity=a_resource(memory=100))
    h.submit(timeout_seconds=application_seconds)
    h.ask_and_run(*keys, limit_seconds=limit_seconds)
    return h


def ended_after(h: Harness, seconds: int) -> tuple[object, object]:
    """Let time pass; return what the RM was asked to end a second before its end, and at its end."""
    h.advance(seconds - 1)
    before = list(h.releases)
    h.advance(1)
    return before, h.releases


# ------------------------------------------------------------------------------------- allocations


def test_the_rm_is_asked_to_end_what_has_run_long_enough() -> None:
    """Not before, once, and with the reason TIMEOUT; it holds its room until the RM confirms."""
    h = placed("a")
    h.advance(9)
    before = list(h.releases)

    h.advance(100)

    assert ([], [("a", TIMEOUT)]) == (before, h.releases)
    assert TEN == h.node().allocated == h.queue().allocated == h.user_usage()


def test_a_confirmed_timeout_gives_everything_back() -> None:
    """Nothing is echoed, and an application without anything left completes."""
    h = placed("a")
    h.advance(10)

    h.confirm()

    assert [("a", TIMEOUT)] == h.releases
    assert a_resource() == h.queue().allocated == h.user_usage()
    assert ["Accepted", "Running", "Completing"] == h.states()


def test_the_key_of_what_has_timed_out_can_be_used_again() -> None:
    """The ask went with its allocation: it is a new one."""
    h = placed("a", "stays")
    h.ask("stays", limit_seconds=0)
    h.advance(10)
    h.confirm()

    h.ask("a")

    assert 1 == h.run_until_idle()
    assert {"a", "stays"} == {entry.allocation.allocation_key for entry in h.application().allocations.all()}


def test_an_ask_does_not_expire_while_it_waits() -> None:
    """Its time begins when it is placed."""
    h = Harness()
    h.submit()
    h.ask("a", limit_seconds=10)
    h.advance(60)
    h.nodes("node")
    h.run_until_idle()
    assert ([], [("a", TIMEOUT)]) == ended_after(h, 10)


@pytest.mark.parametrize("limit_seconds", [0, -5, 2**62])
def test_no_limit_is_no_limit(limit_seconds: int) -> None:
    """Zero, less, and more than the clock can count."""
    h = placed("a", limit_seconds=limit_seconds)

    h.advance(10**9)

    assert [] == h.releases


def test_each_allocation_has_its_own_time() -> None:
    """The one that is over first is ended first, whatever the order of placement."""
    h = placed("late", limit_seconds=30)
    h.ask("early", limit_seconds=10)
    h.ask_and_run("never")

    h.advance(10)
    first = list(h.releases)
    h.advance(20)

    assert ([("early", TIMEOUT)], [("early", TIMEOUT), ("late", TIMEOUT)]) == (first, h.releases)


def test_what_ends_before_its_time_is_not_ended_again() -> None:
    """Nor is what has taken its key since."""
    h = placed("a", "b")
    h.release("a")
    h.ask_and_run("a")
    h.forget()

    h.advance(10)

    assert [("b", TIMEOUT)] == h.releases


def test_what_is_on_its_way_out_is_not_asked_for_twice() -> None:
    """A victim of preemption ends as a victim."""
    h = placed("a")
    assert h.application().allocations.mark_preempted("a")

    h.advance(10)

    assert [] == h.releases
    h.application().allocations.unmark_preempted("a")


def test_a_resize_does_not_begin_the_time_anew() -> None:
    """The limit is that of the work, not of its size."""
    h = placed("a")
    h.advance(6)
    h.ask("a", resource=a_resource(memory=20))

    h.advance(4)

    assert [("a", TIMEOUT)] == h.releases


def test_to_ask_again_changes_the_limit() -> None:
    """The time that has passed counts; no limit takes the limit away."""
    h = placed("longer", "shorter", "none", limit_seconds=10)
    h.advance(5)
    h.ask("longer", limit_seconds=20)
    h.ask("shorter", limit_seconds=3)
    h.ask("none", limit_seconds=0)

    h.advance(0)
    first = list(h.releases)
    h.advance(100)

    assert [("shorter", TIMEOUT)] == first
    assert [("shorter", TIMEOUT), ("longer", TIMEOUT)] == h.releases


def test_an_allocation_that_is_taken_over_is_limited_by_an_ask_with_its_key() -> None:
    """A recovered allocation brings no limit; the time counts from when it was taken over."""
    h = a_running_partition(nodes=("node",))
    h.ask("a", node_id="node")
    h.advance(60)
    h.ask("a", limit_seconds=70)

    assert ([], [("a", TIMEOUT)]) == ended_after(h, 10)


def test_an_ask_that_the_rm_places_itself_is_limited() -> None:
    """It makes no difference who placed it."""
    h = Harness()
    h.submit()
    h.ask("a", limit_seconds=10)
    h.nodes("node")
    h.ask("a", node_id="node")

    h.advance(10)

    assert [("a", TIMEOUT)] == h.releases


def test_the_limit_of_an_ask_that_is_not_taken_is_passed_over() -> None:
    """Also where the key is known, and of an unknown application."""
    h = placed("a", limit_seconds=100)

    rejected = h.ask("a", resource=a_resource(), limit_seconds=1)
    rejected += h.ask("b", application_id="unknown", limit_seconds=1)
    h.advance(50)

    assert (2, []) == (len(rejected), h.releases)


def test_a_limit_goes_with_the_node() -> None:
    """What the node took with it is not ended a second time."""
    h = placed("a")
    h.update_node("node", NodeAction.DECOMISSION)
    h.forget()

    h.advance(60)

    assert [] == h.releases


def test_a_release_of_everything_stops_all_times() -> None:
    """What is asked for afterwards has its own."""
    h = placed("a", "b")
    h.release("")
    h.ask_and_run("c", limit_seconds=20)
    h.forget()

    assert ([], [("c", TIMEOUT)]) == ended_after(h, 20)


def test_an_application_that_is_gone_ends_nothing() -> None:
    """One of the same id that came since is another one."""
    h = placed("a")
    h.withdraw()
    h.submit()
    h.ask_and_run("a")
    h.forget()

    h.advance(60)

    assert [] == h.releases


def test_a_member_of_a_gang_is_limited_from_its_swap_on() -> None:
    """Its placeholder has a limit of its own, which goes with it."""
    h = a_running_partition(nodes=("node",), capacity=a_resource(memory=100), placeholder_ask=TEN)
    h.ask_and_run("p", task_group_name="g", placeholder=True, limit_seconds=12)
    h.ask_and_run("m", task_group_name="g", limit_seconds=10)
    h.advance(5)
    h.confirm()
    h.forget()

    assert ([], [("m", TIMEOUT)]) == ended_after(h, 10)


# ---------------------------------------------------------------------------------- the application


def test_an_application_that_runs_too_long_fails() -> None:
    """All that it has is ended and forgotten, with the reason; it is Failed when the RM has confirmed."""
    h = placed("a", "b", limit_seconds=0, application_seconds=60)
    h.ask("waits", resource=a_resource(memory=1000))

    h.advance(60)
    releases = list(h.releases)
    states = h.states()
    h.confirm()

    assert [("a", TIMEOUT), ("b", TIMEOUT), ("waits", TIMEOUT)] == releases
    assert ["Accepted", "Running", "Failing"] == states
    assert ["Failing", "Failed"] == h.states()[2:]
    assert a_resource() == h.user_usage() == h.queue().allocated == h.queue().pending


def test_the_rm_hears_why_an_application_fails() -> None:
    """As it hears it of a gang that does not come together."""
    h = placed("a", limit_seconds=0, application_seconds=60)

    h.advance(60)

    assert "ExecutionTimeout" == h.heard(ApplicationChanged)[-1].message


def test_an_application_with_nothing_placed_fails_at_once() -> None:
    """There is nothing to confirm."""
    h = placed("a", "b", limit_seconds=0, application_seconds=60)
    h.ask("waits", resource=a_resource(memory=1000))
    h.release("a", "b")

    h.advance(60)

    assert ["Failing", "Failed"] == h.states()[2:]
    assert "app" not in h.state.entries


def test_the_time_of_an_application_begins_with_its_first_start() -> None:
    """Not while it is Accepted; to run again after Completing is no new start."""
    h = Harness()
    h.submit(timeout_seconds=60)
    h.ask("a", limit_seconds=0)
    h.advance(1000)
    h.nodes("node")
    h.run_until_idle()
    h.release("a")
    h.advance(20)
    h.ask_and_run("b", limit_seconds=0)

    h.advance(39)
    before = h.states()[-1]
    h.advance(1)

    assert ("Running", "Failing") == (before, h.states()[-1])


def test_an_application_that_is_completing_when_its_time_is_over_completes() -> None:
    """It has done its work; half a minute for more of it is not waited for."""
    h = placed("a", limit_seconds=0, application_seconds=60)
    h.advance(50)
    h.release("a")

    h.advance(10)

    assert ["Completing", "Completed"] == h.states()[2:]


def test_an_application_that_ended_in_time_does_not_fail_later() -> None:
    """Its timer means nothing any more."""
    h = placed("a", limit_seconds=0, application_seconds=60)
    h.release("a")

    h.advance(100)

    assert ["Completing", "Completed"] == h.states()[2:]


def test_the_current_generation_does_not_limit_applications() -> None:
    """There the number is the time that placeholders wait, and resource managers send it without a gang."""
    h = a_running_partition("a", nodes=("node",), timeout_seconds=60)

    h.advance(1000)

    assert ApplicationState.RUNNING is h.application().facts().state


def test_an_application_is_limited_from_its_first_older_ask_on() -> None:
    """Its time counts from its start all the same."""
    h = a_running_partition("a", nodes=("node",), timeout_seconds=60)
    h.advance(50)
    h.ask("b", limit_seconds=0)

    h.advance(10)

    assert "Failing" == h.states()[-1]


@pytest.mark.parametrize("announces", [True, False])
def test_a_gang_is_not_limited(*, announces: bool) -> None:
    """For a gang the number is the time that its placeholders wait, in both generations."""
    h = a_running_partition(
        nodes=("node",),
        capacity=a_resource(memory=100),
        placeholder_ask=TEN if announces else None,
        timeout_seconds=60,
    )
    h.ask("p", task_group_name="g", placeholder=True, limit_seconds=0)
    h.ask_and_run("real", limit_seconds=0)

    h.advance(60)
    h.confirm()

    assert ([("p", TIMEOUT)], "Running") == (h.releases, h.states()[-1])
