"""An application: its life through asks, allocations and releases, and what it accounts for."""

from __future__ import annotations

import pytest
from support.model.builders import FIVE, SECOND_NS, START_NS, TEN, a_resource, an_allocation, an_ask
from support.model.driven_application import DrivenApplication, a_gang, running

from licorne.model.applications.effects import ApplicationState, StateEntered, TimerKind
from licorne.model.resources.quantities import INT32_MIN
from licorne.model.values.messages import TerminationType
from licorne.proxy.core.documents.applications import application_document, summary_document

STOPPED = TerminationType.STOPPED_BY_RM

# ---------------------------------------------------------------------------------------------- asks


def test_the_first_ask_has_the_application_accepted() -> None:
    """New becomes Accepted, and stays that with the second ask."""
    app = DrivenApplication()

    app.ask("a", "b")

    assert (["Accepted"], (20, 0, 0)) == (app.states, app.sums())


def test_an_ask_while_completing_runs_the_application_again() -> None:
    """Its half minute is over: the timer does nothing any more."""
    app = running("a")
    app.end("a")
    app.ask("b")

    (timer,) = app.timers(TimerKind.STATE)

    assert ["Accepted", "Running", "Completing", "Running"] == app.states
    assert app.application.on_timer(TimerKind.STATE, timer.generation, app.now_ns) is None


def test_an_ask_whose_key_is_known_is_not_taken() -> None:
    """Whether it waits or is placed; the others of the message are, and the known ones come back."""
    app = running("placed")
    app.ask("waits")

    known = app.add(an_ask("waits"), an_ask("new"), an_ask("placed"), an_ask("new"))

    assert ["waits", "placed", "new"] == [ask.allocation_key for ask in known]
    assert (20, 10, 0) == app.sums()


def first_of(app: DrivenApplication) -> str | None:
    first = app.application.facts().first
    return None if first is None else first.allocation_key


def test_facts_tell_the_ask_that_goes_first() -> None:
    """By priority, then by age; `None` where nothing waits."""
    app = DrivenApplication()
    firsts = [first_of(app)]
    app.add(an_ask("old"), an_ask("young"), an_ask("high", priority=1))
    firsts.append(first_of(app))

    app.place("high")

    assert [None, "high", "old"] == [*firsts, first_of(app)]


def test_facts_tell_no_first_ask_that_may_not_run_anywhere() -> None:
    """One that requires a node, or is to take the place of a placeholder, is for the walk to judge."""
    bound, gang = DrivenApplication(), DrivenApplication()
    bound.add(an_ask("bound", required_node="node", priority=1), an_ask("free"))
    gang.gang("placeholder")
    gang.ask("member", group="g")

    assert (None, None) == (first_of(bound), first_of(gang))


def test_facts_tell_the_highest_priority_of_what_waits() -> None:
    """Nothing that waits is the lowest possible priority."""
    app = DrivenApplication()
    priorities = [app.application.facts().max_priority]
    app.add(an_ask("low", priority=-3), an_ask("high", priority=4))
    priorities.append(app.application.facts().max_priority)

    app.place("high")

    assert [INT32_MIN, 4, -3] == [*priorities, app.application.facts().max_priority]


def test_the_submission_is_as_old_as_the_oldest_ask() -> None:
    """Asks and recovered allocations that are older than the application make it older."""
    app = DrivenApplication()
    app.add(an_ask("young", created_at_ns=START_NS + 9), an_ask("old", created_at_ns=START_NS - 5))
    after_asks = app.application.facts().submitted_at_ns

    older = an_allocation(ask=an_ask("older", created_at_ns=START_NS - 7))
    app.take(app.application.allocations.recover((older,), START_NS))

    assert (START_NS - 5, START_NS - 7) == (after_asks, app.application.facts().submitted_at_ns)


def test_the_last_ask_that_goes_completes_the_application() -> None:
    """Nothing waits, nothing runs: Completing. The ask is in the answer."""
    app = DrivenApplication()
    app.ask("a", "b")

    app.take(app.application.asks.remove("a", app.now_ns))
    before = app.state
    answer = app.take(app.application.asks.remove("b", app.now_ns))

    assert (ApplicationState.ACCEPTED, ApplicationState.COMPLETING) == (before, app.state)
    assert ["b"] == [record.ask.allocation_key for record in answer.asks]


@pytest.mark.parametrize("what", ["real", "placeholder"])
def test_an_ask_that_goes_leaves_a_running_application_alone(what: str) -> None:
    """While something is placed, be it placeholders, the application goes on."""
    app = DrivenApplication(announced=TEN)
    if what == "real":
        app.run("placed")
    else:
        app.gang("placed")
    app.ask("waits")

    app.take(app.application.asks.remove("waits", app.now_ns))

    assert ApplicationState.RUNNING is app.state


def test_an_ask_that_is_not_there_changes_nothing() -> None:
    """An application that was never asked for anything stays New."""
    app = DrivenApplication()

    answer = app.take(app.application.asks.remove("a", app.now_ns))

    assert (ApplicationState.NEW, (), ()) == (app.state, answer.asks, answer.effects)


def test_all_asks_go_at_once() -> None:
    """With their reservations, waiting or placed; what is placed stays placed."""
    app = running("a")
    app.ask("b", "c")
    app.take(app.application.reservations.try_add("b", "node", app.now_ns, required=False))

    answer = app.take(app.application.asks.remove_all(app.now_ns))

    assert ["a", "b", "c"] == [record.ask.allocation_key for record in answer.asks]
    assert ["b"] == [reservation.allocation_key for reservation in answer.reservations]
    assert ((0, 10, 0), ApplicationState.RUNNING) == (app.sums(), app.state)


def test_a_waiting_ask_can_be_resized() -> None:
    """What waits changes by the difference; a placed or unknown ask is declined."""
    app = running("placed")
    app.ask("waits")

    answer = app.take(app.application.asks.resize("waits", a_resource(memory=25)))

    assert (25, 10, 0) == app.sums()
    assert [a_resource(memory=25)] == [record.ask.resource for record in answer.asks]
    assert app.application.asks.resize("placed", FIVE) is None
    assert app.application.asks.resize("unknown", FIVE) is None


# ------------------------------------------------------------------------------------- allocations


def test_the_first_allocation_runs_the_application() -> None:
    """Accepted becomes Running; a second allocation changes nothing about that."""
    app = DrivenApplication()

    app.run("a", "b")

    assert (["Accepted", "Running"], (0, 20, 0)) == (app.states, app.sums())


def test_an_ask_is_placed_once() -> None:
    """What is placed, removed or unknown is declined."""
    app = running("a")

    assert app.application.allocations.try_place(app.allocation("a"), app.now_ns) is None
    assert app.application.allocations.try_place(an_allocation("unknown"), app.now_ns) is None
    assert (0, 10, 0) == app.sums()


def test_a_recovered_allocation_runs_a_new_application() -> None:
    """Through Accepted; its ask is known as placed, so that it is not placed again."""
    app = DrivenApplication()

    app.take(app.application.allocations.recover((an_allocation("a"),), app.now_ns))

    record = app.application.asks.record("a")
    assert record is not None
    assert (["Accepted", "Running"], True, (0, 10, 0)) == (app.states, record.placed, app.sums())


def test_the_end_of_the_last_allocation_completes_the_application() -> None:
    """Not while another one runs, nor while something waits."""
    app = running("a", "b", "c")
    app.ask("d")

    for key in "ab":
        app.end(key)
    app.end("c")
    waiting = app.state
    app.place("d")
    app.end("d")

    assert (ApplicationState.RUNNING, ApplicationState.COMPLETING) == (waiting, app.state)


def test_an_allocation_ends_once() -> None:
    """A second release of the same key is declined."""
    app = running("a")
    app.end("a")

    assert app.application.allocations.remove("a", STOPPED, app.now_ns) is None


def test_an_allocation_that_ends_takes_its_ask_with_it() -> None:
    """That spares a second question. That of the last one goes after what follows from its end."""
    app = running("first", "last")
    answers = [
        app.application.allocations.remove(key, STOPPED, app.now_ns, with_ask=True)
        for key in ("first", "last")
    ]

    assert [["first"], []] == [
        [record.ask.allocation_key for record in answer.asks] for answer in answers if answer
    ]
    lasts = [answer.last_ask for answer in answers if answer]
    assert [None, "last"] == [record.ask.allocation_key if record else None for record in lasts]
    assert [None, None] == [app.application.asks.record(key) for key in ("first", "last")]
    assert [[], [ApplicationState.COMPLETING]] == [
        [effect.entered for effect in answer.effects if isinstance(effect, StateEntered)]
        for answer in answers
        if answer
    ]


def test_an_application_without_asks_leaves_in_one_step() -> None:
    """One that has asks has to drop them first."""
    app = running("only")
    assert app.application.allocations.leave(app.now_ns) is None

    app.application.allocations.remove("only", STOPPED, app.now_ns, with_ask=True)
    answer = app.application.allocations.leave(app.now_ns)

    assert answer is not None
    assert (True, ApplicationState.COMPLETED) == (answer.ended, answer.facts.state)


def test_an_ask_that_waits_for_a_second_time_does_not_go_with_an_allocation() -> None:
    """An allocation that ends is another one."""
    app = running("a", "b")
    app.application.asks.displace("a")

    answer = app.application.allocations.remove("a", STOPPED, app.now_ns, with_ask=True)

    assert answer is not None
    assert () == answer.asks
    assert app.application.asks.record("a") is not None


def test_an_allocation_can_be_resized() -> None:
    """What is allocated changes by the difference, up or down; an unknown one is declined."""
    app = running("a", "b")

    answer = app.take(app.application.allocations.resize("a", FIVE))

    assert ((0, 15, 0), [FIVE]) == (app.sums(), [entry.resource for entry in answer.allocations])
    assert app.application.allocations.resize("unknown", FIVE) is None


def test_a_displaced_ask_waits_again() -> None:
    """A waiting or unknown one is declined."""
    app = a_gang("p", members=("m",))
    app.swap("m", "p")
    app.application.swaps.cancel("p")

    app.take(app.application.asks.displace("m"))

    assert (10, 0, 10) == app.sums()
    assert app.application.asks.displace("m") is None
    assert app.application.asks.displace("unknown") is None


def test_all_allocations_go_at_once() -> None:
    """Real ones, placeholders and victims; nothing waits, so the application completes."""
    app = DrivenApplication(announced=TEN)
    app.run("a", "b")
    app.gang("p")
    app.application.allocations.mark_preempted("b")

    answer = app.take(app.application.allocations.remove_all(app.now_ns, leaving=False))

    assert ["a", "b", "p"] == [entry.allocation_key for entry in answer.allocations]
    assert ["b"] == [entry.allocation_key for entry in answer.preempted]
    assert ((0, 0, 0), ApplicationState.COMPLETING, True) == (app.sums(), app.state, answer.ended)


def test_asks_that_wait_keep_the_application_running() -> None:
    """When all allocations go and something waits, the application goes on."""
    app = running("a")
    app.ask("b")

    answer = app.take(app.application.allocations.remove_all(app.now_ns, leaving=False))

    assert ((10, 0, 0), ApplicationState.RUNNING, False) == (app.sums(), app.state, answer.ended)


# ----------------------------------------------------------------------------------------- its end


def test_an_application_whose_rm_released_everything_has_an_hour_to_come_back() -> None:
    """It is Completing, but longer than after its last allocation; then it completes as others do."""
    app = running("a")
    app.take(app.application.allocations.remove_all(app.now_ns, leaving=False))

    app.fire(TimerKind.STATE)

    assert START_NS + 3600 * SECOND_NS == app.now_ns
    assert ["Accepted", "Running", "Completing", "Completed"] == app.states


def test_a_completing_application_completes_after_half_a_minute() -> None:
    """Then it is kept for three days."""
    app = running("a")
    app.end("a")

    app.fire(TimerKind.STATE)
    completed_ns = app.now_ns
    app.fire(TimerKind.STATE)

    assert START_NS + 30 * SECOND_NS == completed_ns
    assert completed_ns + 3 * 24 * 3600 * SECOND_NS == app.now_ns
    assert ["Accepted", "Running", "Completing", "Completed", "Expired"] == app.states


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_an_application_fails_from_every_state_before_its_end(steps: int) -> None:
    """From New, Accepted and Running, with the reason; a second time it has failed."""
    app = DrivenApplication()
    if steps:
        app.ask("a")
    if steps > 1:
        app.place("a")

    app.take(app.application.fail("PartitionRemoved", app.now_ns))
    app.take(app.application.fail("PartitionRemoved", app.now_ns))

    assert ["Failing", "Failed"] == app.states[-2:]


def test_an_application_does_not_fail_while_it_completes() -> None:
    """An application that is nearly done does not fail: nothing changes."""
    app = running("a")
    app.end("a")

    answer = app.take(app.application.fail("PartitionRemoved", app.now_ns))

    assert (ApplicationState.COMPLETING, ()) == (app.state, answer.effects)


def test_a_rejected_application_says_why_and_expires() -> None:
    """It is finished at once, and kept for three days."""
    app = DrivenApplication()

    app.take(app.application.reject("no such queue", START_NS + 5))
    document = application_document(app.application.shown())
    app.fire(TimerKind.STATE)

    assert ("no such queue", START_NS + 5) == (document["rejectedMessage"], document["finishedTime"])
    assert ["Rejected", "Expired"] == app.states


def test_a_finished_application_drops_what_it_needs_no_longer() -> None:
    """Its asks, and its history of usage; the answer has the asks."""
    app = running("a")
    app.wait(3)
    app.end("a")
    app.fire(TimerKind.STATE)

    answer = app.take(app.application.finish(app.now_ns))

    document = application_document(app.application.shown())
    assert (["a"], {}) == ([entry.ask.allocation_key for entry in answer.asks], document["resourceHistory"])
    assert app.now_ns == document["finishedTime"]


def test_an_application_that_ran_leaves_a_summary() -> None:
    """What it used of each type of instance, apart for victims and placeholders; times are milliseconds."""
    driven = DrivenApplication()
    driven.gang("p")
    driven.run("a", "victim")
    assert driven.application.allocations.mark_preempted("victim")
    driven.wait(2)
    for key in ("p", "a", "victim"):
        driven.end(key)
    driven.fire(TimerKind.STATE)

    answer = driven.application.finish(driven.now_ns)

    used = {"UNKNOWN": {"memory": 20}}
    start_ms = START_NS // 1_000_000
    assert answer.summary is not None
    assert {
        "ApplicationID": "app",
        "SubmissionTime": start_ms,
        "StartTime": start_ms,
        "FinishTime": start_ms + 32_000,
        "User": "bob",
        "Queue": "root.leaf",
        "State": "Completed",
        "ResourceUsage": used,
        "PreemptedResource": used,
        "PlaceholderResource": used,
    } == summary_document(answer.summary)


def test_an_application_that_never_ran_leaves_no_summary() -> None:
    """There is nothing to tell."""
    driven = DrivenApplication()
    driven.ask("a")
    driven.take(driven.application.asks.remove("a", driven.now_ns))
    driven.fire(TimerKind.STATE)

    assert driven.application.finish(driven.now_ns).summary is None
