"""Two schedulers in one process do not know of each other."""

from __future__ import annotations

from support.proxy.listening import Listener
from support.proxy.manager_requests import ask_request, keys
from support.proxy.running_scheduler import begin, running

from licorne import Scheduler


def test_two_schedulers_with_the_same_names_do_not_meet(scheduler: Scheduler, listener: Listener) -> None:
    """Managers, nodes, applications and asks of one are unknown to the other."""
    other = Listener()
    begin(scheduler, listener)
    with running() as second:
        begin(second, other)
        scheduler.update_allocation(ask_request(*keys(50)))
        second.update_allocation(ask_request(*keys(50, "other")))
        listener.wait_for_count("placed ", 50)
        other.wait_for_count("placed ", 50)

    assert keys(50) == listener.all("placed ")
    assert keys(50, "other") == other.all("placed ")


def test_the_end_of_one_scheduler_leaves_the_other_at_work(scheduler: Scheduler, listener: Listener) -> None:
    """Actors, timers and links are its own."""
    begin(scheduler, listener)
    with running() as second:
        begin(second, Listener())
    scheduler.update_allocation(ask_request(*keys(50)))

    listener.wait_for_count("placed ", 50)
