"""A callback may call the scheduler back; a predicate may not do everything: its partition waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

import pytest
from support.proxy.listening import Gate, Listener, PredicateListener, once
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    gang_request,
    keys,
    node_request,
    placeholder_request,
    release_request,
)
from support.proxy.running_scheduler import begin, threads_of_ours
from support.waiting import WAIT_SECONDS, happens, let_time_pass, stays, wait_until

from licorne import RequestError, Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.si import si_pb2 as si


def test_a_callback_may_confirm_a_release(scheduler: Scheduler, listener: Listener) -> None:
    """A member of a gang takes its place when the RM confirms from within the callback that asked for it."""
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node"))
    scheduler.update_application(gang_request(total=1, timeout_ms=600_000))

    def confirm(text: str) -> None:
        if text == "released holder PLACEHOLDER_REPLACED":
            scheduler.update_allocation(release_request("holder", si.PLACEHOLDER_REPLACED))

    listener.react = confirm
    scheduler.update_allocation(placeholder_request("holder"))
    listener.wait_for("placed holder")
    member = ask_request("member")
    member.allocations[0].taskGroupName = "tasks"
    scheduler.update_allocation(member)

    listener.wait_for("placed member")


def test_a_callback_may_ask_for_more(scheduler: Scheduler, listener: Listener) -> None:
    """Each placement asks for the next one."""
    begin(scheduler, listener)

    def ask_again(text: str) -> None:
        kind, _, key = text.partition(" ask-")
        if kind == "placed" and int(key) < 60:
            scheduler.update_allocation(ask_request(f"ask-{int(key) + 1}"))

    listener.react = ask_again
    scheduler.update_allocation(ask_request("ask-0"))

    listener.wait_for("placed ask-60")
    assert keys(61) == listener.all("placed ")


def test_a_callback_may_change_the_configuration(scheduler: Scheduler, listener: Listener) -> None:
    """The partition that it adds is there when the call returns."""
    begin(scheduler, listener)

    def add_partition() -> None:
        scheduler.update_configuration(configuration_request(TWO))
        scheduler.update_node(node_request("late", partition="second"))

    listener.react = once("placed ask-0", add_partition)
    scheduler.update_allocation(ask_request(*keys(100)))

    listener.wait_for("accepted late")
    listener.wait_for_count("placed ", 100)


def test_a_callback_may_register_another_manager(scheduler: Scheduler, listener: Listener) -> None:
    """Which is served at once."""
    other = Listener()
    listener.react = once("accepted app", lambda: begin(scheduler, other, rm_id="other"))
    begin(scheduler, listener)

    other.wait_for("accepted app")


def test_a_callback_may_register_its_own_manager_again(scheduler: Scheduler, listener: Listener) -> None:
    """Its link is asked to end while it runs; the new one goes on."""
    again = Listener()
    listener.react = once("placed ask-0", lambda: scheduler.register("rm", again, configuration=ONE))
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(100)))
    listener.wait_for("app is Failed")

    scheduler.update_node(node_request("node-default"))
    again.wait_for("accepted node-default")


def test_callbacks_come_one_at_a_time_when_a_callback_registers_again(
    scheduler: Scheduler, listener: Listener
) -> None:
    """The new link waits for the callback of the old one to return."""
    returned: list[bool] = []
    seen: list[bool] = []

    def register_again() -> None:
        scheduler.register("rm", listener, configuration=ONE)
        listener.react = lambda _: seen.append(bool(returned))
        scheduler.update_node(node_request("again"))
        let_time_pass(0.1)  # In which another callback would come.
        returned.append(True)

    listener.react = once("accepted node-default", register_again)
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node-default"))
    listener.wait_for("accepted again")
    wait_until(lambda: seen)

    assert [True] == seen


def test_a_callback_may_stop_the_scheduler(scheduler: Scheduler, listener: Listener) -> None:
    """It does not wait for itself; the fixture finds that all threads end."""
    stopped = threading.Event()

    def stop() -> None:
        scheduler.stop()
        stopped.set()

    listener.react = once("accepted app", stop)
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_application(application_request("app"))

    assert stopped.wait(WAIT_SECONDS)


def test_two_callbacks_cannot_register_each_others_manager(scheduler: Scheduler) -> None:
    """Each would wait for the other one to end, for ever."""
    managers = {"a": Listener(), "b": Listener()}
    inside = threading.Barrier(2, timeout=WAIT_SECONDS)
    refused: list[str] = []

    def register(other: str) -> None:
        inside.wait()
        try:
            scheduler.register(other, Listener(), configuration=ONE)
        except RequestError as error:
            refused.append(str(error))
        inside.wait()

    for rm_id, other in (("a", "b"), ("b", "a")):
        managers[rm_id].react = once("placed ask", partial(register, other))
        begin(scheduler, managers[rm_id], rm_id=rm_id)
    for rm_id in managers:
        scheduler.update_allocation(ask_request("ask", rm_id=rm_id))
    for listener in managers.values():
        listener.wait_for("placed ask")
    scheduler.stop()

    text = "a registration of RM {!r} inside a callback of RM {!r} is refused"
    assert {text.format("a", "b"), text.format("b", "a")} == {entry.partition(":")[0] for entry in refused}


def test_a_callback_may_register_a_manager_that_is_new(scheduler: Scheduler, listener: Listener) -> None:
    """And its own one again: neither waits for a callback."""
    new = Listener()

    def register() -> None:
        scheduler.register("new", new, configuration=ONE)
        scheduler.register("rm", new, configuration=ONE)
        scheduler.update_node(node_request("of rm"))
        scheduler.update_node(node_request("of new", rm_id="new"))

    listener.react = once("placed ask", register)
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))

    new.wait_for("accepted of rm", "accepted of new")


def test_a_manager_is_called_by_one_thread_at_a_time(scheduler: Scheduler) -> None:
    """Also if it registers again and again while it is slow to take an answer."""
    gate, listener = Gate("accepted node"), Listener()
    inside, most = [0], [0]
    lock = threading.Lock()

    def count(text: str) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        gate.hold(text)
        with lock:
            inside[0] -= 1

    listener.react = count
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node"))
    assert gate.reached.wait(WAIT_SECONDS)
    again = [
        threading.Thread(target=register_with_node, args=(scheduler, listener, f"node-{number}"))
        for number in range(3)
    ]
    for thread in again:
        thread.start()
    wait_until(lambda: len(threads_of_ours()) >= 4)
    gate.open()
    for thread in again:
        thread.join(WAIT_SECONDS)
    scheduler.stop()

    assert (1, 4) == (most[0], len(listener.all("accepted node")))


def register_with_node(scheduler: Scheduler, listener: Listener, node_id: str) -> None:
    """Register again, and cause a callback."""
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request(node_id))


def test_a_stop_in_a_callback_does_not_wait_for_that_callback(
    scheduler: Scheduler, listener: Listener
) -> None:
    """Nothing is scheduled any more when it returns, and a stop elsewhere waits for the callback."""
    gate, stopped = Gate("placed"), threading.Event()

    def stop() -> None:
        scheduler.stop()
        stopped.set()

    stop_once = once("placed ask", stop)

    def react(text: str) -> None:
        stop_once(text)
        gate.hold(text)

    listener.react = react
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    assert stopped.wait(WAIT_SECONDS)
    elsewhere = threading.Thread(target=scheduler.stop)
    elsewhere.start()
    waits = stays(elsewhere.is_alive)
    gate.open()
    elsewhere.join(WAIT_SECONDS)

    assert (True, False) == (waits, elsewhere.is_alive())


# -------------------------------------------------------------------------------------- from predicates


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

    served = happens(lambda: "accepted node" in listener.heard)
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
    kinds += ["a validation", "a question for what is in quarantine", "an explanation", "a dry run"]
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
    # On actors it waits then for the partition that asks the predicate to end.
    wait_until(lambda: not again.is_alive() or scheduler._managers.find("rm") is not before)
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
