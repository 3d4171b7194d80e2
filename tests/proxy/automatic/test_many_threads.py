"""Many threads that submit at once: nothing is lost, and nothing is placed twice."""

from __future__ import annotations

from collections import Counter
from functools import partial

from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    keys,
    node_request,
    release_request,
)
from support.proxy.running_scheduler import begin, in_threads

from licorne import Scheduler


def test_nothing_is_lost_when_many_threads_submit(scheduler: Scheduler, listener: Listener) -> None:
    """Every ask is placed or answered, once."""
    begin(scheduler, listener)
    scheduler.update_application(application_request("app-0", "app-1", "app-2"))

    def submit(number: int) -> None:
        for wave in range(15):
            name = f"app-{number}" if wave % 3 else "nobody"
            scheduler.update_allocation(ask_request(*keys(5, f"{number}-{wave}"), application=name))

    in_threads(*[partial(submit, number) for number in range(3)])
    listener.wait_for_count("placed ", 3 * 10 * 5)
    listener.wait_for_count("rejected ", 3 * 5 * 5)

    expected = {f"{number}-{wave}-{ask}" for number in range(3) for wave in range(15) for ask in range(5)}
    answered = [text.partition(": ")[0] for text in listener.all("rejected ")] + listener.all("placed ")
    assert dict.fromkeys(expected, 1) == Counter(answered)


def test_nothing_is_lost_when_asks_nodes_and_releases_come_at_once(
    scheduler: Scheduler, listener: Listener
) -> None:
    """What was released makes room for what waits, until all have had their turn."""
    begin(scheduler, listener, memory=10)

    def release(text: str) -> None:
        if text.startswith("placed "):
            scheduler.update_allocation(release_request(text.removeprefix("placed ")))

    listener.react = release

    def add_nodes() -> None:
        for number in range(10):
            scheduler.update_node(node_request(f"more-{number}", memory=3))

    def ask(start: str) -> None:
        for wave in range(10):
            scheduler.update_allocation(ask_request(*keys(10, f"{start}-{wave}")))

    in_threads(add_nodes, partial(ask, "left"), partial(ask, "right"))
    listener.wait_for_count("released ", 200)

    assert dict.fromkeys(listener.all("placed "), 1) == Counter(listener.all("placed "))
    assert 200 == len(listener.all("placed "))


def test_managers_that_submit_at_once_get_callbacks_for_their_own(scheduler: Scheduler) -> None:
    """Each registers on a thread of its own and is served."""
    listeners = [Listener() for _ in range(4)]

    def work(number: int) -> None:
        begin(scheduler, listeners[number], rm_id=f"rm-{number}")
        scheduler.update_allocation(ask_request(*keys(30, f"ask-{number}"), rm_id=f"rm-{number}"))
        listeners[number].wait_for_count("placed ", 30)

    in_threads(*[partial(work, number) for number in range(4)])

    expected = [keys(30, f"ask-{number}") for number in range(4)]
    assert expected == [listener.all("placed ") for listener in listeners]
