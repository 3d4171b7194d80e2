"""Resource managers that are paused and stopped while threads schedule, register and call back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from support.proxy.listening import Gate, Listener, PredicateListener, once
from support.proxy.manager_requests import ONE, application_request, ask_request, keys, node_request
from support.proxy.running_scheduler import begin, in_threads, placed_in, threads_of_ours
from support.waiting import WAIT_SECONDS

from licorne import RequestError, Scheduler
from licorne.model.values.states import ManagerState

ROUNDS: Final = 15
SCHEDULING_THREADS: Final = 2
"""How many cycles may be under way: each may still place one ask."""


def looked_at(scheduler: Scheduler) -> int:
    """Return how many allocations there are, after twenty more turns of each partition."""
    *_, placed = [placed_in(scheduler) for _ in range(20)]
    return placed


def test_a_pause_does_not_wait_for_the_cycle_that_is_under_way(scheduler: Scheduler) -> None:
    """That cycle may place its ask when the manager answers, and none comes after it."""
    judge = PredicateListener()
    begin(scheduler, judge)
    gate = Gate("asked to place")
    judge.react = gate.hold
    scheduler.update_allocation(ask_request(*keys(50)))
    assert gate.reached.wait(WAIT_SECONDS)
    assert scheduler.pause_manager("rm", "the stream broke", callback=judge)
    gate.open()

    assert looked_at(scheduler) <= SCHEDULING_THREADS


def test_nothing_is_placed_after_a_pause_until_the_manager_registers_again(
    scheduler: Scheduler, listener: Listener
) -> None:
    """Requests, nodes and looks do not begin it anew."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("runs"))
    listener.wait_for("placed runs")
    scheduler.pause_manager("rm", "the stream broke")
    scheduler.update_allocation(ask_request(*keys(10)))
    scheduler.update_node(node_request("late"))
    listener.wait_for("accepted late")
    held = looked_at(scheduler)
    fresh = Listener()
    begin(scheduler, fresh)
    scheduler.update_allocation(ask_request("again"))
    fresh.wait_for("placed again")

    assert 1 == held


def test_a_callback_may_pause_and_stop_its_manager(scheduler: Scheduler, listener: Listener) -> None:
    """What was announced before is delivered; then its thread ends."""
    listener.react = once("placed ask", lambda: scheduler.pause_manager("rm", "by itself"))
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    listener.react = once("accepted late", lambda: scheduler.stop_manager("rm", "by itself"))
    scheduler.update_node(node_request("late"))
    listener.wait_for("accepted late")
    for thread in threads_of_ours():
        if thread.name == "licorne-rm-rm":
            thread.join(WAIT_SECONDS)

    assert "licorne-rm-rm" not in {thread.name for thread in threads_of_ours()}
    (status,) = scheduler.resource_managers()
    assert (ManagerState.STOPPED, "by itself") == (status.state, status.reason)


def test_the_timers_of_a_manager_that_has_stopped_do_not_come_back(
    scheduler: Scheduler, listener: Listener
) -> None:
    """Also if a request was under way that sets one: the clock has nobody to send it to."""
    begin(scheduler, listener)
    requests = [partial(scheduler.update_allocation, ask_request(key)) for key in keys(20)]

    def ask() -> None:
        for request in requests:
            with suppress(RequestError):
                request()

    in_threads(ask, lambda: scheduler.stop_manager("rm", "it has shut down"))
    scheduler.snapshot()  # What was sent before is carried out.

    assert {} == scheduler._managers._incarnations._partitions


def test_pauses_stops_and_registrations_at_once_leave_one_of_their_states(scheduler: Scheduler) -> None:
    """Only a registration lets it run; the last one does, and nobody else has noticed."""
    other = Listener()
    begin(scheduler, other, rm_id="other")
    listeners: list[Listener] = [Listener()]
    begin(scheduler, listeners[0])

    def register() -> None:
        for _ in range(ROUNDS):
            fresh = Listener()
            scheduler.register("rm", fresh, configuration=ONE)
            listeners.append(fresh)

    def change(call: Callable[..., bool], *, knows_callback: bool) -> None:
        for _ in range(3 * ROUNDS):
            call("rm", "the stream broke", callback=listeners[-1] if knows_callback else None)

    def send() -> None:
        for number in range(3 * ROUNDS):
            with suppress(RequestError):  # It has stopped.
                scheduler.update_node(node_request(f"node-{number}"))
                scheduler.update_application(application_request("app"))
                scheduler.update_allocation(ask_request(f"ask-{number}"))

    def look() -> None:
        for _ in range(3 * ROUNDS):
            (_, status) = scheduler.resource_managers()
            assert bool(status.reason) is (status.state is not ManagerState.RUNNING)
            scheduler.snapshot()

    in_threads(
        register,
        send,
        look,
        partial(change, scheduler.pause_manager, knows_callback=True),
        partial(change, scheduler.stop_manager, knows_callback=False),
    )
    last = Listener()
    begin(scheduler, last)
    scheduler.update_allocation(ask_request("ask"))
    last.wait_for("placed ask")
    scheduler.update_allocation(ask_request("ask", rm_id="other"))
    other.wait_for("placed ask")

    assert [ManagerState.RUNNING] * 2 == [status.state for status in scheduler.resource_managers()]


def test_the_end_of_the_scheduler_may_meet_all_changes_of_a_life(scheduler: Scheduler) -> None:
    """Each call is carried out or refused, and every thread ends."""
    begin(scheduler, Listener())
    begun = threading.Barrier(5)

    def until_refused(call: Callable[[], object]) -> None:
        call()
        begun.wait(WAIT_SECONDS)
        with suppress(RequestError):
            while True:
                call()

    def stop() -> None:
        begun.wait(WAIT_SECONDS)
        scheduler.stop()

    in_threads(
        stop,
        partial(until_refused, lambda: scheduler.register("rm", Listener(), configuration=ONE)),
        partial(until_refused, lambda: scheduler.pause_manager("rm", "the stream broke")),
        partial(until_refused, lambda: scheduler.stop_manager("rm", "too long")),
        partial(until_refused, scheduler.resource_managers),
    )
