"""A door over real servers: it has the calls of a scheduler, and each partition is on its own worker."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.door.thread_workers import ThreadWorkers
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
    older_ask_request,
    release_request,
)
from support.waiting import wait_until

from licorne import LicorneError, RequestError, Scheduler
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.states import ManagerState
from licorne.proxy.base.process import is_compiled
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.workers import LinkState

BOTH: Final = ("default", "second")
THIRD: Final = TWO.replace("name: second", "name: third")


@pytest.fixture
def workers() -> ThreadWorkers:
    """Return what starts the workers."""
    return ThreadWorkers()


@pytest.fixture
def failures() -> list[str]:
    """Return what the door reports."""
    return []


@pytest.fixture
def door(workers: ThreadWorkers, failures: list[str]) -> Iterator[Door]:
    """Return a door without resource managers."""
    with Door(workers, on_error=lambda failure: failures.append(str(failure.error))) as door:
        yield door


@pytest.fixture
def listener(door: Door) -> Listener:
    """Return a resource manager with a node and an application in each of two partitions."""
    listener = Listener()
    door.register("rm", listener, configuration=TWO)
    for name in BOTH:
        door.update_node(node_request(f"node-{name}", partition=name))
        door.update_application(application_request(f"app-{name}", partition=name))
    return listener


def ask(door: Door, key: str, partition: str) -> None:
    """Ask for a small unit in a partition."""
    door.update_allocation(ask_request(key, application=f"app-{partition}", memory=10, partition=partition))


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def _signature(kind: type, name: str) -> object:
    member = getattr(kind, name)
    return inspect.signature(member) if callable(member) else "a value"


def test_a_door_has_the_names_of_a_scheduler() -> None:
    """It says besides where its partitions run, and that this is elsewhere."""
    assert {"places", "stepped", "works_elsewhere"} == _public(Door) - _public(Scheduler)
    assert set() == _public(Scheduler) - _public(Door)


@pytest.mark.skipif(is_compiled(), reason="machine code does not say what its parameters are")
def test_a_door_has_the_signatures_of_a_scheduler() -> None:
    """A program that calls one can call the other."""
    shared = sorted(_public(Scheduler) & _public(Door))
    assert [(name, _signature(Scheduler, name)) for name in shared] == [
        (name, _signature(Door, name)) for name in shared
    ]


def test_each_partition_is_on_a_worker_of_its_own(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """A request that names both is split, and each worker has its partition alone."""
    both = ask_request("one", application="app-default", memory=10)
    both.MergeFrom(ask_request("two", application="app-second", memory=10, partition="second"))
    door.update_allocation(both)

    listener.wait_for("placed one")
    listener.wait_for("placed two")
    assert [*BOTH] == sorted(worker.partition for worker in workers.started)
    assert [("default",), ("second",)] == [
        workers.scheduler_of(name).resource_managers()[0].partitions for name in BOTH
    ]
    assert [LinkState.RUNNING] * 2 == [place.state for place in door.places()]


def test_how_an_application_ended_reaches_those_on_its_worker_that_wait_for_it(
    door: Door, listener: Listener
) -> None:
    """One of another partition waits on."""
    for name in BOTH:
        request = application_request(f"late-{name}", partition=name)
        request.new[0].tags["afterFailed"] = "app-second"
        door.update_application(request)
        door.update_allocation(ask_request(name, application=f"late-{name}", memory=10, partition=name))
    ended = si.RemoveApplicationRequest(applicationID="app-second", partitionName="second", outcome="failed")
    door.update_application(si.ApplicationRequest(rmID="rm", remove=[ended]))

    listener.wait_for("placed second")
    found = door.explain("late-default", rm_id="rm")
    assert [RefusalReason.DEPENDENCY] == [each.reason for each in found.blockers]


def test_what_names_no_partition_of_the_manager_is_refused_as_one_scheduler_does(
    door: Door, listener: Listener
) -> None:
    """A worker says it."""
    door.update_node(node_request("n", partition="third"))
    door.update_application(application_request("app", partition="third"))
    ask_of_none = ask_request("ask", application="app-default", memory=10, partition="third")
    door.update_allocation(ask_of_none)

    listener.wait_for("rejected n: failed to find partition [rm]third for new node n")
    listener.wait_for(
        "rejected app: Failed to add application app to partition [rm]third, partition doesn't exist"
    )
    listener.wait_for(
        "rejected ask: Failed to find partition [rm]third, for application app-default and allocation ask"
    )


def test_what_names_no_partition_is_refused_while_a_worker_is_away(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """By the worker of another partition."""
    workers.missing["default"] = "it is away"
    workers.end("default")
    wait_until(lambda: LinkState.RUNNING is not door.places()[0].state, "it is lost")
    door.update_node(node_request("n", partition="third"))
    listener.wait_for("rejected n: failed to find partition [rm]third for new node n")


def test_the_older_generation_is_refused(door: Door, listener: Listener) -> None:
    """With the reason; nothing is sent."""
    assert listener.heard is not None
    with pytest.raises(RequestError, match="older generation"):
        door.update_allocation(older_ask_request("ask", 0))


def test_the_questions_are_answered_by_the_worker_that_knows(door: Door, listener: Listener) -> None:
    """Or by all of them together."""
    for name in BOTH:
        ask(door, f"small-{name}", name)
        listener.wait_for(f"placed small-{name}")
        large = ask_request(f"large-{name}", application=f"app-{name}", memory=1_000, partition=name)
        door.update_allocation(large)
    listener.wait_for("waiting large-second")

    assert "app-second" == door.explain("app-second").application_id
    assert "root.leaf" in door.explain_ask("app-default", "large-default").queue_path
    found = door.queue_and_user("app-second")
    assert found is not None
    assert door.queue_and_user("other") is None
    assert [*BOTH] == [asks.partition.removeprefix("[rm]") for asks in door.next_asks(5)]
    run = door.dry_run(ask=ask_request("new", application="app-second", partition="second").allocations[0])
    assert run is not None
    assert TWO == door.configuration_text("rm")
    assert ((),) == (door.quarantined(),)
    assert door.check_health().healthy
    door.validate()
    snapshot: dict[str, Any] = {**door.snapshot()}
    assert [*BOTH] == sorted(snapshot["nodes"])
    assert [1, 1] == [len(nodes) for nodes in snapshot["nodes"].values()]
    saved: dict[str, Any] = {**door.saved()}
    assert ({"rm": TWO}, [*BOTH]) == (saved["managers"], [each["name"] for each in saved["partitions"]])
    assert {"rm": ("default", "second")} == {each.rm_id: each.partitions for each in door.resource_managers()}


def test_a_worker_that_is_lost_is_replaced_and_gets_what_its_partition_held(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """The resource manager hears nothing twice, and the other partition goes on."""
    for name in BOTH:
        ask(door, f"before-{name}", name)
        listener.wait_for(f"placed before-{name}")
    workers.end("second")
    ask(door, "meanwhile", "second")
    ask(door, "other", "default")

    listener.wait_for("placed other")
    listener.wait_for("placed meanwhile")
    assert ["placed before-second"] == [text for text in listener.heard if "before-second" in text]
    assert ["accepted node-second"] == [text for text in listener.heard if "node-second" in text]
    wait_until(lambda: door.places()[1].state is LinkState.RUNNING, "it has recovered")
    assert [1, 2] == [place.worker_number for place in door.places()]
    applications: Any = workers.scheduler_of("second").snapshot()["applications"]
    (application,) = applications["second"]
    keys = sorted(each["allocationKey"] for each in application["allocations"])
    assert ["before-second", "meanwhile"] == keys


def test_questions_about_a_partition_without_a_worker_say_so(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """With the reason why there is none."""
    workers.missing["second"] = "no machine is left"
    workers.end("second")
    wait_until(lambda: "no machine" in door.places()[1].reason, "it is not replaced")

    with pytest.raises(RequestError, match=r"partition 'second' of RM 'rm' is starting since .*no machine"):
        door.explain("app-second")
    assert "app-default" == door.explain("app-default").application_id
    report = door.check_health()
    assert not report.healthy
    assert "no machine is left" in report.checks[0].diagnosis
    assert listener.heard


def test_a_partition_that_gets_no_worker_fails_the_registration(door: Door, workers: ThreadWorkers) -> None:
    """Nothing is half-started."""
    workers.missing["second"] = "no machine is left"

    with pytest.raises(RequestError, match=r"partition 'second': no machine is left"):
        door.register("rm", Listener(), configuration=TWO)
    assert () == door.resource_managers()
    assert () == door.places()


REFUSED: Final = {
    "a text that is none": ("partitions: [", None, "registration of RM failed"),
    "a partition that the text lacks": (ONE, ["secnd"], "the configuration has no partition 'secnd'"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_registration_that_is_refused_changes_nothing(
    door: Door, listener: Listener, case: tuple[str, list[str] | None, str]
) -> None:
    """An earlier one stays, and no worker is started for it."""
    text, names, refusal = case
    with pytest.raises(RequestError, match=refusal):
        door.register("rm", Listener(), configuration=text, partitions=names)

    ask(door, "later", "second")
    listener.wait_for("placed later")


def test_one_that_registers_again_begins_anew(door: Door, listener: Listener, workers: ThreadWorkers) -> None:
    """Its first callback hears nothing more."""
    heard = len(listener.heard)
    again = Listener()
    door.register("rm", again, configuration=TWO)
    door.update_node(node_request("node-new", partition="second"))

    again.wait_for("accepted node-new")
    nodes: Any = workers.scheduler_of("second").snapshot()["nodes"]
    assert ["node-new"] == [node["nodeID"] for node in nodes["second"]]
    assert listener.heard[heard:] in ([], ["accepted node-default"]) or "node-new" not in str(listener.heard)


def test_a_halt_reaches_each_worker(door: Door, listener: Listener, workers: ThreadWorkers) -> None:
    """Also one that replaces another later; a stopped one can be forgotten."""
    assert listener.heard is not None
    assert door.pause_manager("rm", "its connection is lost")
    workers.end("second")
    wait_until(
        lambda: len(workers.started) == 3 and door.places()[1].state is LinkState.RUNNING, "it is replaced"
    )

    assert [ManagerState.PAUSED] * 2 == [
        workers.scheduler_of(name).resource_managers()[0].state for name in BOTH
    ]
    assert door.stop_manager("rm", "it does not come back")
    with pytest.raises(RequestError, match="has stopped"):
        door.update_node(node_request("late"))
    door.forget_manager("rm")
    assert () == door.resource_managers()
    assert {*BOTH} == {worker.partition for worker in workers.lost_workers}, "they are ended"


def test_a_configuration_reaches_all_workers_or_none(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """One that is refused leaves each as it was."""
    assert listener.heard is not None
    with pytest.raises(LicorneError, match="update of configuration failed"):
        door.update_configuration(configuration_request(TWO.replace("name: leaf", "name: 'no.dots'", 1)))
    assert [TWO, TWO] == [workers.scheduler_of(name).configuration_text("rm") for name in BOTH]

    renamed = TWO + "# another text\n"
    door.update_configuration(configuration_request(renamed))

    assert [renamed] * 3 == [
        door.configuration_text("rm"),
        *(workers.scheduler_of(name).configuration_text("rm") for name in BOTH),
    ]


def test_only_what_was_prepared_last_can_be_committed(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """And nothing of an RM that has stopped; what is refused changes nothing."""
    assert listener.heard is not None
    first = door.prepare_configuration(configuration_request(TWO + "# first\n"))
    second = door.prepare_configuration(configuration_request(TWO + "# second\n"))

    with pytest.raises(RequestError, match="cannot be committed: it was given another one"):
        first.commit()
    assert TWO == door.configuration_text("rm")
    second.commit()
    assert [TWO + "# second\n"] * 2 == [workers.scheduler_of(name).configuration_text("rm") for name in BOTH]
    third = door.prepare_configuration(configuration_request(TWO))
    door.stop_manager("rm", "it shuts down")
    with pytest.raises(RequestError, match="cannot be committed"):
        third.commit()


def test_a_partition_that_a_configuration_adds_gets_a_worker_and_one_that_it_lacks_is_closed(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """The others go on."""
    door.update_configuration(configuration_request(THIRD))

    assert ["default", "third"] == [place.partition for place in door.places()]
    door.update_node(node_request("node-third", partition="third"))
    listener.wait_for("accepted node-third")
    assert [1, 1] == [place.worker_number for place in door.places()]
    assert ["default", "second", "third"] == sorted(worker.partition for worker in workers.started)
    assert ["second"] == [worker.partition for worker in workers.lost_workers], "it is ended"


def test_a_release_is_answered_once_though_the_worker_was_lost(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """By the door if the worker could not."""
    ask(door, "gone", "second")
    listener.wait_for("placed gone")
    workers.missing["second"] = "not yet"
    workers.end("second")
    wait_until(lambda: "not yet" in door.places()[1].reason, "the worker is lost")
    door.update_allocation(release_request("gone", application="app-second", partition="second"))
    del workers.missing["second"]

    listener.wait_for("released gone STOPPED_BY_RM")
    wait_until(lambda: door.places()[1].state is LinkState.RUNNING, "it has recovered")
    assert ["released gone STOPPED_BY_RM"] == [text for text in listener.heard if "released gone" in text]


def test_the_manager_hears_what_has_ended_with_a_partition(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """From the door: the worker of the partition may be away."""
    ask(door, "one", "second")
    listener.wait_for("placed one")
    workers.missing["second"] = "it is away"
    workers.end("second")
    wait_until(lambda: LinkState.RUNNING is not door.places()[1].state, "it is lost")
    door.update_configuration(configuration_request(ONE))

    listener.wait_for("released one STOPPED_BY_RM", "app-second is Failed")
    assert "app-default is Failed" not in listener.heard


@pytest.mark.usefixtures("listener")
def test_rules_that_cannot_be_used_are_refused_while_no_worker_runs(
    door: Door, workers: ThreadWorkers
) -> None:
    """As they are by a worker; the configuration in use stays."""
    for name in BOTH:
        workers.missing[name] = "it is away"
        workers.end(name)
    wait_until(
        lambda: all(place.state is not LinkState.RUNNING for place in door.places()), "all workers are lost"
    )
    unheard = TWO.replace("name: default", "name: default\n    placementrules: [{name: unheard}]")
    with pytest.raises(RequestError, match="unknown rule name specified unheard"):
        door.update_configuration(configuration_request(unheard))

    assert TWO == door.configuration_text("rm")
