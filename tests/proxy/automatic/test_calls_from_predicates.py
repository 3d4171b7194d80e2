"""What a predicate may not do, and how long it may take: its partition waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

import pytest
from support.proxy.listening import WAIT_SECONDS, Gate, Listener, PredicateListener, once
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.proxy.running_scheduler import begin

from licorne import RequestError, Scheduler
from licorne.proxy.scheduler.scheduler import EngineName
from licorne.proxy.si import si_pb2 as si


def test_slow_predicates_do_not_stall_another_manager(scheduler: Scheduler, listener: Listener) -> None:
    """Also where as many partitions wait for the RM's judgement as there are workers."""
    slow, gate = PredicateListener(), Gate("asked")
    begin(scheduler, slow, rm_id="slow", configuration=TWO)
    slow.react = gate.hold
    for name, application in (("default", "app"), ("second", "app-second")):
        request = ask_request(f"ask-{name}", application=application, rm_id="slow", partition=name)
        scheduler.update_allocation(request)
    slow.wait_for("asked to place ask-default", "asked to place ask-second")
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node"))

    served = listener.hears(lambda: "accepted node" in listener.heard, seconds=1)
    gate.open()
    assert served


def test_a_predicate_cannot_end_what_asks_it(scheduler: Scheduler) -> None:
    """Its partition waits for it: whatever would wait for that is refused, and changes nothing."""
    refused: list[str] = []
    predicate_listener = PredicateListener()

    def commit() -> None:
        prepared.commit()

    calls = (
        partial(scheduler.register, "rm", predicate_listener, configuration=TWO),
        partial(scheduler.register, "other", predicate_listener, configuration=ONE),
        partial(scheduler.update_configuration, configuration_request(TWO)),
        partial(scheduler.prepare_configuration, configuration_request(TWO)),
        commit,
        scheduler.stop,
        scheduler.snapshot,
        scheduler.validate,
        scheduler.quarantined,
        partial(scheduler.explain, "app"),
        partial(scheduler.dry_run, ask=si.Allocation(allocationKey="new", applicationID="app")),
    )
    predicate_listener.react = once(
        "asked to place ask", lambda: refused.extend(refusal_of(call) for call in calls)
    )
    begin(scheduler, predicate_listener)
    prepared = scheduler.prepare_configuration(configuration_request(TWO))
    scheduler.update_allocation(ask_request("ask"))
    predicate_listener.wait_for("placed ask")

    kinds = ["a registration", "a registration", "an update of the configuration"]
    kinds += ["a preparation of a configuration", "a commit of a configuration", "a stop", "a snapshot"]
    kinds += ["a validation", "a question for what is quarantined", "an explanation", "a dry run"]
    text = "inside a predicate is refused: the partition that asked the predicate waits for it"
    assert [f"{kind} {text}" for kind in kinds] == refused
    prepared.commit()


def test_a_predicate_that_would_end_what_asks_it_waits_for_no_registration(scheduler: Scheduler) -> None:
    """That waits for the partition that asked the predicate: both would wait for ever."""
    predicate_listener, gate, refused = (
        PredicateListener(),
        Gate("asked to place ask"),
        SimpleQueue[list[str]](),
    )
    register = partial(scheduler.register, "rm", predicate_listener, configuration=ONE)
    calls = (
        register,
        partial(scheduler.update_configuration, configuration_request(TWO)),
        scheduler.stop,
    )

    def call_late(text: str) -> None:
        gate.hold(text)
        once("asked to place ask", lambda: refused.put([refusal_of(call) for call in calls]))(text)

    predicate_listener.react = call_late
    begin(scheduler, predicate_listener)
    scheduler.update_allocation(ask_request("ask"))
    assert gate.reached.wait(WAIT_SECONDS)
    before = scheduler._managers.find("rm")
    again = threading.Thread(target=register, daemon=True)
    again.start()
    while again.is_alive() and scheduler._managers.find("rm") is before:
        again.join(timeout=0.001)  # On actors it waits then for the partition that asks the predicate to end.
    gate.open()
    again.join(WAIT_SECONDS)

    kinds = ["a registration", "an update of the configuration", "a stop"]
    answers = refused.get(timeout=WAIT_SECONDS)
    assert kinds == [answer.partition(" inside a predicate is refused")[0] for answer in answers]
    assert not again.is_alive()


def test_a_predicate_may_ask_for_more(scheduler: Scheduler) -> None:
    """Its partition gets a message, and takes the ask in after the decision."""
    predicate_listener = PredicateListener()
    predicate_listener.react = once(
        "asked to place ask", lambda: scheduler.update_allocation(ask_request("more"))
    )
    begin(scheduler, predicate_listener)
    scheduler.update_allocation(ask_request("ask"))

    predicate_listener.wait_for("placed ask", "placed more")


@pytest.mark.parametrize("engine", ["direct", "actors"])
def test_a_stepped_scheduler_takes_nothing_from_inside_a_predicate(engine: EngineName) -> None:
    """It carries out a request at once, and it is in the middle of a decision."""
    scheduler, predicate_listener, refused = Scheduler(engine=engine, stepped=True), PredicateListener(), []
    scheduler.register("rm", predicate_listener, configuration=ONE)
    scheduler.update_node(node_request("node"))
    scheduler.update_application(application_request("app"))
    more = partial(scheduler.update_allocation, ask_request("more"))
    predicate_listener.react = once("asked to place ask", lambda: refused.append(refusal_of(more)))
    scheduler.update_allocation(ask_request("ask"))
    scheduler.run_until_idle()
    scheduler.validate()
    scheduler.stop()

    text = "the AllocationRequest to a stepped scheduler inside a predicate is refused"
    assert [text] == [reason.partition(":")[0] for reason in refused]
    assert ["ask"] == predicate_listener.all("placed ")


def refusal_of(call: Callable[[], object]) -> str:
    """Make a call that is refused; return the words."""
    with pytest.raises(RequestError) as caught:
        call()
    return str(caught.value)
