"""What breaks inside a scheduler that runs by itself is put aside, and the rest goes on."""

from __future__ import annotations

from typing import Any, Never

from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, keys, node_request
from support.proxy.running_scheduler import begin

from licorne import Scheduler
from licorne.actors.engines.engine import ActorsEngine
from licorne.actors.locks.guarded_partition import GuardedPartition
from licorne.model.applications.application import Application
from licorne.model.nodes.node import Node
from licorne.model.resources.resource import EMPTY


class Unusable(dict[str, Any]):
    """A dict that nothing can be put into."""

    def __setitem__(self, *_: object) -> Never:
        raise TypeError("broken on purpose")


def break_one(scheduler: Scheduler, name: str) -> None:
    """Break an invariant of an application or a node, as only a bug of ours could."""

    def break_it(actor: object) -> None:
        entity = getattr(actor, "entity", None)
        if isinstance(entity, Application) and entity.application_id == name:
            entity._core.pending = EMPTY
        elif isinstance(entity, Node) and entity.node_id == name:
            entity._allocations = Unusable()

    if isinstance(scheduler._engine, ActorsEngine):
        for ref in scheduler._engine.dispatcher.actors():
            ref.call(break_it)
        return
    for partition in scheduler._cluster.partitions():
        assert isinstance(partition, GuardedPartition)
        with partition.holding() as held:
            state = held._state
            for entry in state.entries.values():
                break_it(entry.application)
            for node in state.nodes.by_name():
                break_it(node.node)


def test_a_broken_application_is_put_aside_and_the_others_go_on(
    scheduler: Scheduler, listener: Listener, complaints: list[str]
) -> None:
    """It is reported, in the log and in answers to questions."""
    begin(scheduler, listener, memory=1)
    scheduler.update_allocation(ask_request("huge", memory=10))
    scheduler.update_application(application_request("other"))
    listener.wait_for("accepted other")
    break_one(scheduler, "app")
    scheduler.update_node(node_request("large", memory=1000))
    scheduler.update_allocation(ask_request(*keys(20), application="other"))
    listener.wait_for_count("placed ask", 20)

    (entry,) = scheduler.quarantined()
    assert ("[rm]default", "application", "app") == (entry.partition, entry.kind.value, entry.name)
    assert "expected a part of" in entry.reason
    assert [] == listener.all("placed huge")
    assert any("application app is quarantined, please report: Assertion" in text for text in complaints)
    assert any("'partition': '[rm]default', 'application': 'app'" in text for text in complaints)
    assert all("'application': 'app'" in text for text in complaints if " broke, please report" in text)
    complaints.clear()


def test_a_broken_node_is_put_aside_and_the_others_are_used(
    scheduler: Scheduler, listener: Listener, complaints: list[str]
) -> None:
    """The ask that it broke with is placed elsewhere."""
    begin(scheduler, listener)
    break_one(scheduler, "node-default")
    scheduler.update_allocation(ask_request("ask"))
    scheduler.update_node(node_request("spare"))
    listener.wait_for("placed ask")

    assert ["node-default"] == [entry.name for entry in scheduler.quarantined()]
    complaints.clear()


def test_validation_puts_aside_what_it_finds_broken(
    scheduler: Scheduler, listener: Listener, complaints: list[str]
) -> None:
    """An invariant that does not hold is as bad as an error."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("huge", memory=10_000))
    scheduler.update_application(application_request("other"))
    listener.wait_for("accepted other")
    break_one(scheduler, "app")
    try:
        scheduler.validate()
    except AssertionError as error:
        found = str(error)

    assert "app" in found
    assert ["app"] == [entry.name for entry in scheduler.quarantined()]
    complaints.clear()


def test_a_registration_starts_afresh_where_something_broke(
    scheduler: Scheduler, listener: Listener, complaints: list[str]
) -> None:
    """Nothing is in quarantine then."""
    begin(scheduler, listener)
    break_one(scheduler, "node-default")
    scheduler.update_allocation(ask_request("ask"))
    scheduler.update_node(node_request("spare"))
    listener.wait_for("placed ask")
    scheduler.register("rm", listener, configuration=ONE)

    assert () == scheduler.quarantined()
    complaints.clear()


def test_errors_of_the_caller_break_nothing(scheduler: Scheduler, listener: Listener) -> None:
    """What is refused is no bug."""
    begin(scheduler, listener)
    scheduler.update_node(node_request("node-default"))
    scheduler.update_allocation(ask_request("ask", application="nobody"))
    listener.wait_for_count("rejected ", 2)

    assert () == scheduler.quarantined()
