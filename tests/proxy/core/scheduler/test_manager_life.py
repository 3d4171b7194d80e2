"""The life of resource managers on each engine, step by step: paused, stopped, registered again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
    release_request,
)

from licorne import LicorneError, RequestError, ResourceManager, Scheduler
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.states import ManagerState
from licorne.proxy.core.explanation.text import what_blocks
from licorne.proxy.si import si_pb2 as si

SECOND_NS: Final = 1_000_000_000
REQUESTS: Final = (
    ("NodeRequest", lambda scheduler: scheduler.update_node(node_request("more"))),
    ("ApplicationRequest", lambda scheduler: scheduler.update_application(application_request("more"))),
    ("AllocationRequest", lambda scheduler: scheduler.update_allocation(ask_request("more"))),
    (
        "UpdateConfigurationRequest",
        lambda scheduler: scheduler.update_configuration(configuration_request(TWO)),
    ),
)


def busy(scheduler: Scheduler, listener: Listener, *, rm_id: str = "rm", memory: int = 3) -> None:
    """Register, and have one allocation on a node that has room for two more."""
    scheduler.register(rm_id, listener, configuration=ONE)
    scheduler.update_node(node_request("node", rm_id=rm_id, memory=memory))
    scheduler.update_application(application_request("app", rm_id=rm_id))
    scheduler.update_allocation(ask_request("runs", rm_id=rm_id))
    scheduler.run_until_idle()
    assert ["runs"] == listener.all("placed ")


def state_of(scheduler: Scheduler, rm_id: str = "rm") -> ManagerState:
    (state,) = [entry.state for entry in scheduler.resource_managers() if entry.rm_id == rm_id]
    return state


# ------------------------------------------------------------------------------------------ the states


def test_a_scheduler_lists_its_resource_managers_by_id(scheduler: Scheduler, listener: Listener) -> None:
    """Each with its state, since when, why, and the short names of its partitions."""
    assert () == scheduler.resource_managers()
    scheduler.register("second", listener, configuration=TWO)
    scheduler.register("first", listener, configuration=ONE)
    registered_ns = scheduler.now_ns()
    paused_ns = registered_ns + 5 * SECOND_NS
    scheduler.advance_to(paused_ns)
    scheduler.pause_manager("second", "the stream broke")

    assert [
        ("first", ManagerState.RUNNING, registered_ns, "", ("default",)),
        ("second", ManagerState.PAUSED, paused_ns, "the stream broke", ("default", "second")),
    ] == [
        (entry.rm_id, entry.state, entry.since_ns, entry.reason, entry.partitions)
        for entry in scheduler.resource_managers()
    ]


def test_a_change_that_does_not_fit_the_state_changes_nothing(
    scheduler: Scheduler, listener: Listener
) -> None:
    """The first reason stays, and the answer says that nothing happened."""
    busy(scheduler, listener)
    done = [scheduler.pause_manager("rm", "first"), scheduler.pause_manager("rm", "again")]
    (paused,) = scheduler.resource_managers()
    done += [scheduler.stop_manager("rm", "too long"), scheduler.stop_manager("rm", "again")]
    done += [scheduler.pause_manager("rm", "late")]
    (stopped,) = scheduler.resource_managers()

    assert [True, False, True, False, False] == done
    assert (ManagerState.PAUSED, "first") == (paused.state, paused.reason)
    assert (ManagerState.STOPPED, "too long") == (stopped.state, stopped.reason)


@pytest.mark.parametrize("name", ["pause_manager", "stop_manager"])
def test_a_resource_manager_that_is_not_known_is_an_error(scheduler: Scheduler, name: str) -> None:
    """The text names it."""
    with pytest.raises(RequestError, match='RmID="nobody" not registered'):
        getattr(scheduler, name)("nobody", "why not")


@pytest.mark.parametrize("name", ["pause_manager", "stop_manager"])
def test_a_predicate_may_not_change_the_life_of_its_manager(scheduler: Scheduler, name: str) -> None:
    """The partition that asks it waits for it."""

    class Judge(ResourceManager):
        def predicates(self, args: si.PredicatesArgs) -> None:
            with pytest.raises(RequestError, match="inside a predicate is refused"):
                getattr(scheduler, name)("rm", f"asked about {args.allocationKey}")
            raise LicorneError("no")

    scheduler.register("rm", Judge(), configuration=ONE)
    scheduler.update_node(node_request("node"))
    scheduler.update_application(application_request("app"))
    scheduler.update_allocation(ask_request("ask"))
    scheduler.run_until_idle()

    assert ManagerState.RUNNING is state_of(scheduler)


def test_one_that_has_stopped_is_forgotten_on_request(scheduler: Scheduler, listener: Listener) -> None:
    """With its partitions and its settings; others stay, and it may come back as one that is new."""
    busy(scheduler, listener)
    scheduler.register("other", listener, configuration=ONE)
    for state, change in (("Running", scheduler.pause_manager), ("Paused", scheduler.stop_manager)):
        with pytest.raises(
            RequestError, match=f"RM 'rm' is {state}: only one that has stopped can be forgot"
        ):
            scheduler.forget_manager("rm")
        change("rm", "gone")
    scheduler.forget_manager("rm")

    assert ["other"] == [status.rm_id for status in scheduler.resource_managers()]
    assert ("[other]default",) == scheduler.views.partition_names()
    assert "" == scheduler.configuration_text("rm")
    with pytest.raises(RequestError, match='RmID="rm" not registered'):
        scheduler.forget_manager("rm")
    busy(scheduler, Listener())
    assert ManagerState.RUNNING is state_of(scheduler)


@pytest.mark.parametrize(
    "question",
    [
        Scheduler.resource_managers,
        lambda scheduler: scheduler.pause_manager("rm", ""),
        lambda scheduler: scheduler.stop_manager("rm", ""),
        lambda scheduler: scheduler.explain("app"),
        lambda scheduler: scheduler.monitoring.live_view.queues(),
    ],
)
def test_a_scheduler_that_has_stopped_tells_nothing(
    listener: Listener, question: Callable[[Scheduler], object]
) -> None:
    """Neither of its managers nor of what they have."""
    scheduler = Scheduler(engine="direct")
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.stop()
    with pytest.raises(RequestError, match="stopped"):
        question(scheduler)


# ---------------------------------------------------------------------------------------------- paused


def test_nothing_new_is_placed_for_a_paused_manager(scheduler: Scheduler, listener: Listener) -> None:
    """Whichever step the program makes; its requests are carried out and answered."""
    busy(scheduler, listener)
    scheduler.pause_manager("rm", "the stream broke")
    scheduler.update_allocation(ask_request("waits"))
    scheduler.update_node(node_request("late"))
    scheduler.update_allocation(ask_request("known", node_id="late"))
    steps = [scheduler.run_until_idle(), scheduler.schedule()]
    scheduler.advance_to(scheduler.now_ns() + 10 * SECOND_NS)
    steps += [scheduler.run_until_idle()]

    assert [0, 0, 0] == steps
    assert ["runs", "known"] == listener.all("placed ")
    assert "accepted late" in listener.heard
    assert None is scheduler.next_deadline_ns() or scheduler.next_deadline_ns() == scheduler.next_timer_ns()


def test_releases_and_timers_of_a_paused_manager_go_on(scheduler: Scheduler, listener: Listener) -> None:
    """Its application ends, and it is told so."""
    busy(scheduler, listener)
    scheduler.pause_manager("rm", "the stream broke")
    scheduler.update_allocation(release_request("runs"))
    scheduler.advance_to(scheduler.now_ns() + 30 * SECOND_NS)
    scheduler.deliver()

    assert ["Accepted", "Running", "Completing", "Completed"] == listener.all("app is ")


def test_another_manager_does_not_notice_a_pause_or_a_stop(scheduler: Scheduler, listener: Listener) -> None:
    """Its asks are placed meanwhile."""
    other = Listener()
    busy(scheduler, listener)
    busy(scheduler, other, rm_id="other")
    scheduler.pause_manager("rm", "the stream broke")
    scheduler.update_allocation(ask_request("second", rm_id="other"))
    scheduler.run_until_idle()
    scheduler.stop_manager("rm", "too long")
    scheduler.update_allocation(ask_request("third", rm_id="other"))
    scheduler.run_until_idle()

    assert ["runs", "second", "third"] == other.all("placed ")
    assert ManagerState.RUNNING is state_of(scheduler, "other")


def test_a_partition_that_comes_while_its_manager_is_paused_places_nothing(
    scheduler: Scheduler, listener: Listener
) -> None:
    """The state is that of the manager, not of what it has had."""
    busy(scheduler, listener)
    scheduler.pause_manager("rm", "the stream broke")
    scheduler.update_configuration(configuration_request(TWO))
    scheduler.update_node(node_request("n2", partition="second"))
    scheduler.update_application(application_request("app-2", partition="second"))
    scheduler.update_allocation(ask_request("waits", application="app-2", partition="second"))
    scheduler.run_until_idle()

    assert ["runs"] == listener.all("placed ")
    assert ManagerState.PAUSED is state_of(scheduler)


# --------------------------------------------------------------------------------------------- stopped


@pytest.mark.parametrize(("name", "request_of"), REQUESTS, ids=[name for name, _ in REQUESTS])
def test_a_request_of_a_manager_that_has_stopped_is_refused(
    scheduler: Scheduler, listener: Listener, name: str, request_of: Callable[[Scheduler], None]
) -> None:
    """The text says why it has stopped and what to do; nothing has changed."""
    busy(scheduler, listener)
    scheduler.stop_manager("rm", "paused for 30s")
    before = scheduler.snapshot()
    text = f"received {name}, but RM 'rm' has stopped: paused for 30s; register again"
    with pytest.raises(RequestError, match=text):
        request_of(scheduler)

    assert before == scheduler.snapshot()


def test_the_timers_of_a_manager_that_has_stopped_are_forgotten(
    scheduler: Scheduler, listener: Listener
) -> None:
    """Its application does not end, and it is told nothing more."""
    busy(scheduler, listener)
    scheduler.update_allocation(release_request("runs"))
    scheduler.run_until_idle()
    assert None is not scheduler.next_timer_ns()
    scheduler.stop_manager("rm", "it has shut down")
    scheduler.deliver()
    heard = list(listener.heard)
    due_ns = scheduler.next_timer_ns(), scheduler.next_deadline_ns()
    scheduler.advance_to(scheduler.now_ns() + 3600 * SECOND_NS)
    scheduler.run_until_idle()

    assert (None, None) == due_ns
    assert heard == listener.heard


def test_a_manager_that_has_stopped_can_be_looked_at(scheduler: Scheduler, listener: Listener) -> None:
    """Documents, explanations, dry runs and settings are as before."""
    busy(scheduler, listener)
    before = scheduler.snapshot()
    scheduler.stop_manager("rm", "it has shut down")
    run = scheduler.dry_run(ask=si.Allocation(allocationKey="new", applicationID="app"))

    assert before == scheduler.snapshot()
    assert "Running" == scheduler.explain("app").state.value
    assert "root.leaf" == run.queue_path
    assert scheduler.extra_configuration("rm")
    assert () == scheduler.quarantined()


# -------------------------------------------------------------------------------------- registered again


@pytest.mark.parametrize("life", [(), ("pause",), ("stop",), ("pause", "stop")], ids="-".join)
def test_a_manager_that_registers_again_begins_anew(
    scheduler: Scheduler, listener: Listener, life: tuple[str, ...]
) -> None:
    """From every state: what it had is gone, it runs, and places; another one keeps what it has."""
    other = Listener()
    busy(scheduler, other, rm_id="other")
    busy(scheduler, listener)
    for step in life:
        assert getattr(scheduler, f"{step}_manager")("rm", "the stream broke")
    scheduler.update_allocation(ask_request("second", rm_id="other"))
    fresh = Listener()
    scheduler.register("rm", fresh, configuration=ONE)
    snapshot: Any = scheduler.snapshot()
    empty = snapshot["applications"]["[rm]default"]
    busy(scheduler, fresh)

    assert [] == empty
    assert (ManagerState.RUNNING, "") == next(
        (entry.state, entry.reason) for entry in scheduler.resource_managers() if entry.rm_id == "rm"
    )
    assert ["runs", "second"] == other.all("placed ")
    assert [] == other.all("released ")


def test_a_connection_that_breaks_late_does_not_pause_the_next_registration(
    scheduler: Scheduler, listener: Listener
) -> None:
    """The old one is known by its callback; without a callback any registration is meant."""
    old = Listener()
    scheduler.register("rm", old, configuration=ONE)
    scheduler.register("rm", listener, configuration=ONE)
    late = [
        scheduler.pause_manager("rm", "late", callback=old),
        scheduler.stop_manager("rm", "late", callback=old),
    ]
    state = state_of(scheduler)

    assert ([False, False], ManagerState.RUNNING) == (late, state)
    assert scheduler.pause_manager("rm", "now", callback=listener)
    assert scheduler.stop_manager("rm", "now")


def test_a_registration_that_is_refused_leaves_a_paused_manager_paused(
    scheduler: Scheduler, listener: Listener
) -> None:
    """With its reason."""
    busy(scheduler, listener)
    scheduler.pause_manager("rm", "the stream broke")
    with pytest.raises(RequestError, match="registration of RM failed"):
        scheduler.register("rm", listener, configuration="partitions: 7")
    (status,) = scheduler.resource_managers()

    assert (ManagerState.PAUSED, "the stream broke") == (status.state, status.reason)


# -------------------------------------------------------------------------------------------- explained


@pytest.mark.parametrize(
    ("life", "reason", "said"),
    [
        ("pause", RefusalReason.MANAGER_PAUSED, "lost its connection"),
        ("stop", RefusalReason.MANAGER_STOPPED, "has stopped"),
    ],
)
def test_an_explanation_says_that_the_manager_is_not_there(
    scheduler: Scheduler, listener: Listener, life: str, reason: RefusalReason, said: str
) -> None:
    """Since when, and why; a dry run says so as well."""
    busy(scheduler, listener)
    scheduler.update_allocation(ask_request("waits", memory=2))
    getattr(scheduler, f"{life}_manager")("rm", "the stream broke")
    scheduler.advance_to(scheduler.now_ns() + 5 * SECOND_NS)
    explanation = scheduler.explain("app")
    (blocker,) = explanation.blockers
    (ask,) = ask_request("new").allocations
    run = scheduler.dry_run(ask=ask)

    text = f"partition [rm]default: the resource manager {said} 5s ago: the stream broke"
    assert (reason, text) == (blocker.reason, what_blocks(blocker, explanation.time_ns))
    assert reason in [entry.reason for entry in run.blockers]
