"""An application with a gang: its placeholders, their timeout, and the swaps."""

from __future__ import annotations

import pytest
from support.model.builders import SECOND_NS, START_NS, TWENTY, a_resource, an_allocation, an_ask
from support.model.driven_application import DrivenApplication, a_gang

from licorne.model.applications.effects import ApplicationState, TimerKind
from licorne.model.applications.gang import SwapWalk
from licorne.model.values.messages import TerminationType
from licorne.proxy.core.documents.applications import application_document

TIMEOUT = TerminationType.TIMEOUT
ALLOCATED = "releasing allocated placeholders on placeholder timeout"
PENDING = "releasing pending placeholders on placeholder timeout"


def groups_of(app: DrivenApplication) -> object:
    return application_document(app.application.shown())["placeholderData"]


# -------------------------------------------------------------------------------- its coming together


def test_a_gang_runs_when_all_that_was_announced_is_placed() -> None:
    """While placeholders are missing it stays Accepted."""
    app = DrivenApplication(announced=TWENTY)

    app.gang("p1")
    before = app.state
    app.gang("p2")

    assert (ApplicationState.ACCEPTED, ApplicationState.RUNNING) == (before, app.state)
    assert (0, 0, 20) == app.sums()


def test_a_real_allocation_runs_a_gang_that_is_not_complete() -> None:
    """Asks without a task group need no placeholder."""
    app = DrivenApplication(announced=TWENTY)
    app.gang("p1")

    app.run("real")

    assert (ApplicationState.RUNNING, (0, 10, 10)) == (app.state, app.sums())


def test_recovered_placeholders_count_as_if_they_were_asked_for() -> None:
    """They bring the application to Accepted, start its timer, and complete the gang."""
    app = DrivenApplication(announced=TWENTY)
    for key in ("p1", "p2"):
        ask = an_ask(key, task_group_name="g", placeholder=True)
        app.take(app.application.allocations.recover((an_allocation(ask=ask),), app.now_ns))

    assert ["Accepted", "Running"] == app.states
    assert [{"taskGroupName": "g", "count": 2, "minResource": {"memory": 10}}] == groups_of(app)
    assert 1 == len(app.timers(TimerKind.PLACEHOLDER))


# -------------------------------------------------------------------------------------- its timeout


def test_the_timer_starts_with_the_first_placeholder() -> None:
    """A second one does not start it anew."""
    app = DrivenApplication(announced=TWENTY, timeout_seconds=60)
    app.ask("p1", "p2", group="g", placeholder=True)
    app.wait(5)

    app.place("p1")
    app.wait(5)
    app.place("p2")

    assert [START_NS + 65 * SECOND_NS] == [timer.due_ns for timer in app.timers(TimerKind.PLACEHOLDER)]


def test_an_application_that_runs_starts_no_timer() -> None:
    """Placeholders that are placed while it is Running time out never."""
    app = DrivenApplication(announced=TWENTY)
    app.run("real")

    app.gang("p1")

    assert [] == app.timers(TimerKind.PLACEHOLDER)


def test_the_timer_is_stopped_with_the_last_placeholder() -> None:
    """A timeout that comes later does nothing."""
    app = DrivenApplication(announced=TWENTY)
    app.gang("p1")
    app.ask("p2", group="g", placeholder=True)
    app.end("p1")

    (timer,) = app.timers(TimerKind.PLACEHOLDER)

    assert app.application.on_timer(timer.kind, timer.generation, timer.due_ns) is None


def test_a_running_gang_releases_the_placeholders_it_has_not_used() -> None:
    """Those on their way out are left alone, and the application goes on."""
    app = a_gang("p1", "p2", "p3")
    app.application.allocations.mark_preempted("p2")
    app.ask("member", group="g")
    app.swap("member", "p3")

    app.fire(TimerKind.PLACEHOLDER)

    assert ([("p1", ALLOCATED)], ApplicationState.RUNNING) == (app.wanted, app.state)


def half_a_gang(*, hard: bool) -> DrivenApplication:
    """Return a gang of three with one placeholder placed and a member that waits, at its timeout."""
    app = DrivenApplication(announced=a_resource(memory=30), hard=hard)
    app.gang("p1")
    app.ask("p2", group="g", placeholder=True)
    app.ask("member", group="g")
    app.take(app.application.reservations.try_add("p2", "node", app.now_ns, required=False))
    answer = app.fire(TimerKind.PLACEHOLDER)
    assert ["p1", "p2", "member"] == [record.ask.allocation_key for record in answer.asks]
    assert ["p2"] == [reservation.allocation_key for reservation in answer.reservations]
    return app


@pytest.mark.parametrize(("hard", "state"), [(False, "Resuming"), (True, "Failing")])
def test_a_gang_that_did_not_come_together_lets_everything_go(state: str, *, hard: bool) -> None:
    """What is placed is released, then what waits; its asks are forgotten, and nothing waits any more."""
    app = half_a_gang(hard=hard)

    assert [("p1", ALLOCATED), ("p2", PENDING), ("member", PENDING)] == app.wanted
    assert (["Accepted", state], (0, 0, 10)) == (app.states, app.sums())
    assert "ResourceReservationTimeout" in str(app.effects)


@pytest.mark.parametrize(("hard", "state"), [(False, "Accepted"), (True, "Failed")])
def test_the_last_placeholder_decides_it(state: str, *, hard: bool) -> None:
    """When its end is confirmed a soft gang is Accepted again, a hard one has failed."""
    app = half_a_gang(hard=hard)

    app.end("p1", TIMEOUT)

    assert (state, (0, 0, 0)) == (app.states[-1], app.sums())
    group = {"taskGroupName": "g", "count": 2, "minResource": {"memory": 10}, "timedout": 2}
    assert [group] == groups_of(app)


def test_a_soft_gang_goes_on_without_placeholders() -> None:
    """Its members no longer wait for any: they are asked for again, placed, and run the application."""
    app = half_a_gang(hard=False)
    app.end("p1", TIMEOUT)

    app.ask("again", group="g")
    app.place("again")

    assert ["Accepted", "Resuming", "Accepted", "Running"] == app.states


def test_a_failed_gang_is_kept_for_three_days() -> None:
    """Then it expires."""
    app = half_a_gang(hard=True)
    app.end("p1", TIMEOUT)
    failed_ns = app.now_ns

    app.fire(TimerKind.STATE)

    assert failed_ns + 3 * 24 * 3600 * SECOND_NS == app.now_ns
    assert ["Failing", "Failed", "Expired"] == app.states[-3:]


# ---------------------------------------------------------------------------------------- its swaps


def test_a_swap_begins_with_the_member_no_longer_waiting() -> None:
    """The placeholder holds its place until the RM confirms its end."""
    app = a_gang("p", members=("m",))

    app.swap("m", "p", "other")

    swap = app.application.swaps.of("p")
    assert swap is not None
    assert ("m", "other", "p") == (swap.allocation_key, swap.node_id, app.application.swaps.onto("m"))
    assert ((0, 0, 10), ["p"]) == (app.sums(), app.keys())


def test_a_confirmed_swap_counts_the_member_instead() -> None:
    """It is bound at the time of the confirmation; both come back in the answer."""
    app = a_gang("p1", "p2")
    app.ask("m", group="g", resource=a_resource(memory=7))
    app.swap("m", "p1")
    app.wait(3)

    answer = app.confirm("p1")

    placeholder, real = answer.allocations
    assert ("p1", "m", app.now_ns) == (placeholder.allocation_key, real.allocation_key, real.bound_at_ns)
    assert ((0, 7, 10), ["p2", "m"]) == (app.sums(), app.keys())
    group = {"taskGroupName": "g", "count": 2, "minResource": {"memory": 10}, "replaced": 1}
    assert [group] == groups_of(app)


def test_a_gang_of_one_completes_for_a_moment() -> None:
    """The end of its only placeholder completes it, the member runs it again."""
    app = a_gang("p", members=("m",))
    app.swap("m", "p")

    app.confirm("p")

    assert ["Accepted", "Running", "Completing", "Running"] == app.states


def test_the_first_swap_does_not_run_a_gang_that_is_not_complete() -> None:
    """The state was changed when the last placeholder was placed, or it was not; the second swap runs it."""
    app = DrivenApplication(announced=a_resource(memory=30))
    app.gang("p1", "p2")
    app.ask("p3", group="g", placeholder=True)
    app.ask("m1", "m2", group="g")

    app.swap("m1", "p1")
    app.confirm("p1")
    after_one = app.state
    app.swap("m2", "p2")
    app.confirm("p2")

    assert (ApplicationState.ACCEPTED, ApplicationState.RUNNING) == (after_one, app.state)


@pytest.mark.parametrize("why", ["placed", "unknown", "released", "preempted", "no placeholder"])
def test_a_swap_is_declined_where_the_world_has_moved_on(why: str) -> None:
    """The member is placed or gone, or the placeholder is on its way out or gone; nothing changes."""
    app = a_gang("p", members=("m",))
    real = app.allocation("m")
    if why == "placed":
        app.place("m")
    elif why == "unknown":
        app.application.asks.remove("m", app.now_ns)
    elif why == "released":
        app.application.allocations.mark_released("p")
    elif why == "preempted":
        app.application.allocations.mark_preempted("p")
    before = app.sums()

    target = "gone" if why == "no placeholder" else "p"
    assert app.application.swaps.begin(real, target) is None
    assert before == app.sums()


def test_a_swap_is_confirmed_once() -> None:
    """A second confirmation, and one without a swap, is declined."""
    app = a_gang("p1", "p2", members=("m",))
    app.swap("m", "p1")
    app.confirm("p1")

    again = [app.application.swaps.end(key, TIMEOUT, app.now_ns) for key in ("p1", "p2")]

    assert [None, None] == again


def test_a_swap_that_is_given_up_leaves_the_placeholder_on_its_way_out() -> None:
    """The RM has been asked to end it: no other member takes its place."""
    app = a_gang("p1", "p2", members=("m",))
    app.swap("m", "p1")

    real = app.application.swaps.cancel("p1")
    app.take(app.application.asks.displace("m"))

    assert real is not None
    assert ("m", "", (10, 0, 20)) == (real.allocation_key, app.application.swaps.onto("m"), app.sums())
    offer = app.application.swaps.next(SwapWalk())
    assert offer is not None
    assert "p2" == offer.placeholder.allocation_key
    assert app.application.swaps.cancel("p1") is None


def test_a_member_that_is_removed_during_its_swap_is_placed_all_the_same() -> None:
    """The link remains, and the swap completes with an allocation whose ask is gone."""
    app = a_gang("p1", "p2", members=("m",))
    app.swap("m", "p1")

    app.take(app.application.asks.remove("m", app.now_ns))
    app.confirm("p1")

    assert ((0, 10, 10), None) == (app.sums(), app.application.asks.record("m"))


def test_all_allocations_that_go_take_their_swaps_along() -> None:
    """The answer names what was to take the places: it holds room on its nodes."""
    app = a_gang("p1", "p2", members=("m",))
    app.swap("m", "p1", "other")

    answer = app.take(app.application.allocations.remove_all(app.now_ns, leaving=True))

    assert [("m", "other")] == [(swap.allocation_key, swap.node_id) for swap in answer.swaps]
    assert (0, 0, 0) == app.sums()


# ------------------------------------------------------------------------------------------- its end


def test_members_may_end_while_placeholders_are_left() -> None:
    """The application is Completing; half a minute later it asks for the end of the placeholders."""
    app = a_gang("p1", "p2", members=("m",))
    app.swap("m", "p1")
    app.confirm("p1")
    app.end("m")
    completing = app.state

    app.fire(TimerKind.STATE)

    assert (ApplicationState.COMPLETING, ApplicationState.COMPLETING) == (completing, app.state)
    assert [("p2", "releasing placeholders on app complete")] == app.wanted


def test_the_last_placeholder_completes_an_application_whose_time_is_over() -> None:
    """The timer has fired: the end of what was left is the end."""
    app = a_gang("p1", "p2")
    app.run("real")
    app.end("real")
    app.fire(TimerKind.STATE)

    app.end("p1", TIMEOUT)
    one_left = app.state
    app.end("p2", TIMEOUT)

    assert (ApplicationState.COMPLETING, ApplicationState.COMPLETED) == (one_left, app.state)


def test_a_gang_whose_placeholders_all_end_completes() -> None:
    """Nothing real is placed and nothing waits; while something waits it goes on."""
    app = a_gang("p1")
    app.end("p1", TIMEOUT)
    waiting = a_gang("p1")
    waiting.ask("m", group="other")
    waiting.end("p1", TIMEOUT)

    assert (ApplicationState.COMPLETING, ApplicationState.RUNNING) == (app.state, waiting.state)
