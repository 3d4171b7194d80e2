"""An ask for an application that may just have completed: it is sent together with the application."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    node_request,
    release_request,
)

from licorne import Scheduler

SECOND_NS: Final = 1_000_000_000
ROUNDS: Final = 50


def gang_of_one(scheduler: Scheduler, name: str) -> None:
    """Submit an application with a placeholder and a member that run: without them it completes at once."""
    application = application_request(name)
    application.new[0].placeholderAsk.resources["memory"].value = 1
    scheduler.update_application(application)
    running = ask_request(f"{name} member", f"{name} room", application=name, node_id="n1")
    running.allocations[1].placeholder = True
    running.allocations[1].taskGroupName = "group"
    scheduler.update_allocation(running)


def ended(scheduler: Scheduler, name: str) -> None:
    for part in ("member", "room"):
        scheduler.update_allocation(release_request(f"{name} {part}", application=name))


def create_if_missing(scheduler: Scheduler, name: str) -> None:
    application = application_request(name)
    application.new[0].tags["licorne/create-if-missing"] = "true"
    scheduler.update_application(application)


def ask_again(scheduler: Scheduler, name: str, key: str) -> None:
    """Send an application that need only exist, and an ask for it."""
    create_if_missing(scheduler, name)
    scheduler.update_allocation(ask_request(key, application=name))


def begun(scheduler: Scheduler, listener: Listener) -> None:
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("n1"))


# -------------------------------------------------------------------------------------- step by step


def test_one_that_has_completed_unheard_takes_the_ask(scheduler: Scheduler, listener: Listener) -> None:
    """The manager hears of the end after it has sent the ask."""
    begun(scheduler, listener)
    gang_of_one(scheduler, "app")
    scheduler.deliver()
    ended(scheduler, "app")
    heard = len(listener.heard)

    ask_again(scheduler, "app", "next")
    scheduler.run_until_idle()

    assert [
        *("app is Completing", "released app member STOPPED_BY_RM"),
        *("app is Completed", "released app room STOPPED_BY_RM"),
        *("accepted app", "app is Accepted", "app is Running", "placed next"),
    ] == listener.heard[heard:]


@pytest.mark.parametrize(
    ("seconds", "state"), [(0, "Completing"), (29, "Completing"), (30, "Completed"), (3_600, "Completed")]
)
def test_one_that_completes_by_the_clock_takes_the_ask(
    seconds: int, state: str, scheduler: Scheduler, listener: Listener
) -> None:
    """At any moment after the end of its last allocation; one that is about to complete has time again."""
    begun(scheduler, listener)
    ask_again(scheduler, "app", "first")
    scheduler.run_until_idle()
    scheduler.update_allocation(release_request("first"))
    scheduler.advance_to(scheduler.now_ns() + seconds * SECOND_NS)
    scheduler.deliver()
    assert f"app is {state}" == [text for text in listener.heard if text.startswith("app is")][-1]

    create_if_missing(scheduler, "app")
    scheduler.advance_to(scheduler.now_ns() + 29 * SECOND_NS)
    scheduler.update_allocation(ask_request("next"))
    scheduler.run_until_idle()

    assert "placed next" == listener.heard[-1]


def test_an_ask_alone_comes_too_late(scheduler: Scheduler, listener: Listener) -> None:
    """Its application has completed, which its manager cannot know yet."""
    begun(scheduler, listener)
    gang_of_one(scheduler, "app")
    ended(scheduler, "app")

    scheduler.update_allocation(ask_request("next"))
    scheduler.run_until_idle()

    assert "rejected next: failed to find application app" == listener.heard[-1]


def test_a_manager_may_answer_the_end_with_the_ask(scheduler: Scheduler, listener: Listener) -> None:
    """Inside the callback in which it hears of it."""
    begun(scheduler, listener)

    def react(text: str) -> None:
        if text == "app is Completed":
            ask_again(scheduler, "app", "next")

    listener.react = react
    gang_of_one(scheduler, "app")
    ended(scheduler, "app")
    scheduler.deliver()
    scheduler.run_until_idle()

    assert "placed next" == listener.heard[-1]


# ---------------------------------------------------------------------------------- with its own threads


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_no_ask_is_lost_while_the_scheduler_runs_by_itself(engine: Any, listener: Listener) -> None:
    """Applications complete as fast as they come, and each gets another ask at once."""
    with Scheduler(engine=engine) as scheduler:
        begun(scheduler, listener)
        for number in range(ROUNDS):
            name = f"app{number}"
            gang_of_one(scheduler, name)
            ended(scheduler, name)
            ask_again(scheduler, name, f"next{number}")
        for number in range(ROUNDS):
            listener.wait_for(f"placed next{number}", f"app{number} is Completed")
        scheduler.validate()

    assert [] == [text for text in listener.heard if text.startswith("rejected")]
    assert ROUNDS == sum(text.endswith("is Completed") for text in listener.heard)
