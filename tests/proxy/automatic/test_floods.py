"""A manager that sends more than its partition carries out is slowed down, and delays no other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.proxy.listening import Gate, Listener, PredicateListener, once
from support.proxy.manager_requests import ask_request, keys, node_request
from support.proxy.running_scheduler import begin, running
from support.waiting import WAIT_SECONDS

from licorne import RequestError, Scheduler
from licorne.actors.engines import partition_actor
from licorne.actors.engines.handles import reference_of
from licorne.actors.engines.partition_actor import PartitionActor, PartitionRef
from licorne.actors.runtime import mailbox
from licorne.actors.runtime.mailbox import ENTRIES_MAX


def full(scheduler: Scheduler, predicate_listener: PredicateListener) -> Gate:
    """Fill the mailbox of a partition, which waits inside a predicate until the gate is opened."""
    gate = Gate("asked to place first")
    predicate_listener.react = gate.hold
    begin(scheduler, predicate_listener, memory=10_000)
    scheduler.update_allocation(ask_request("first"))
    assert gate.reached.wait(WAIT_SECONDS)
    scheduler.update_allocation(ask_request(*keys(ENTRIES_MAX, "many")))
    return gate


def in_a_thread(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_a_call_waits_until_half_of_what_was_sent_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of another manager do not."""
    monkeypatch.setattr(mailbox, "WAIT_SECONDS_MAX", WAIT_SECONDS)
    predicate_listener, other = PredicateListener(), Listener()
    with running() as scheduler:
        gate = full(scheduler, predicate_listener)
        thread = in_a_thread(lambda: scheduler.update_allocation(ask_request("late")))
        begin(scheduler, other, rm_id="other")
        scheduler.update_allocation(ask_request("ask", rm_id="other"))
        other.wait_for("placed ask")
        waits = thread.is_alive()
        gate.open()
        predicate_listener.wait_for("placed late")
        thread.join(WAIT_SECONDS)

        assert (True, False) == (waits, thread.is_alive())


def test_a_callback_and_a_predicate_never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own partition, or the link that calls them, would wait for them."""
    monkeypatch.setattr(mailbox, "WAIT_SECONDS_MAX", 1000 * WAIT_SECONDS)
    predicate_listener = PredicateListener()
    with running() as scheduler:

        def call_from_predicate() -> None:
            scheduler.update_allocation(ask_request(*keys(ENTRIES_MAX, "many")))
            scheduler.update_allocation(ask_request("from a predicate"))

        def call_from_callback() -> None:
            scheduler.update_allocation(ask_request(*keys(ENTRIES_MAX, "more")))
            scheduler.update_allocation(ask_request("from a callback"))

        reactions = [once("asked to place first", call_from_predicate)]
        reactions.append(once("placed from a predicate", call_from_callback))

        def react(text: str) -> None:
            for reaction in reactions:
                reaction(text)

        predicate_listener.react = react
        begin(scheduler, predicate_listener, memory=10_000)
        scheduler.update_allocation(ask_request("first"))

        predicate_listener.wait_for("placed from a callback")


def test_a_stop_wakes_the_calls_that_wait() -> None:
    """The call is refused then, since the partition has ended."""
    predicate_listener = PredicateListener()
    with running() as scheduler:
        gate = full(scheduler, predicate_listener)

        def call() -> None:
            with suppress(RequestError):  # It may still come in time.
                scheduler.update_node(node_request("late"))

        thread = in_a_thread(call)
        stopper = in_a_thread(scheduler.stop)
        gate.open()
        for each in (thread, stopper):
            each.join(WAIT_SECONDS)
            assert not each.is_alive()


def test_scheduling_has_its_share_of_the_time_while_requests_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait: after what has taken `REQUESTS_NS` slices are run four times as long."""
    now = [0]
    monkeypatch.setattr(partition_actor, "perf_counter_ns", lambda: now[0])
    listener = Listener()
    with running() as scheduler:
        begin(scheduler, listener)
        (partition,) = scheduler._cluster.partitions()
        ref = cast("PartitionRef", reference_of(partition))
        done: list[str] = []

        class Fake:
            """Takes a millisecond for a request or a slice, and has always something to place."""

            def request(self) -> None:
                now[0] += 1_000_000
                done.append("request")

            def work(self, _: int) -> bool:
                now[0] += 1_000_000
                done.append("slice")
                return len(done) < 250

            host = SimpleNamespace(flush=lambda: None)

        def swap(actor: PartitionActor) -> None:
            fake: Any = Fake()
            real, actor.entity = actor.entity, fake
            for _ in range(30):
                ref.send(lambda _: fake.request())
            ref.send(lambda self: setattr(self, "entity", real))

        ref.call(swap)
        ref.call(lambda _: None)

    requests = [at for at, each in enumerate(done) if each == "request"]
    assert 30 == len(requests)
    assert all(done[:end].count("slice") >= end * 4 // 5 - 3 for end in range(requests[-1]))
