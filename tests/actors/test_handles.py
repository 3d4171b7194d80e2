"""Handles: what stands for an entity that lives in an actor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final

import pytest
from pykka import ActorDeadError
from support.model.builders import (
    PARTITION,
    TEN,
    a_configuration,
    a_host,
    a_node,
    a_resource,
    an_allocation,
    an_application,
    an_ask,
)
from support.waiting import WAIT_SECONDS

from licorne.actors.engines.handles import PARTS, RANKS, EntityActor, adopt, message_function, reference_of
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskDirectionError
from licorne.actors.runtime.reference import Failure
from licorne.model.applications.application import Application
from licorne.model.cluster import Cluster
from licorne.model.configuration.schema import PartitionConfig, SchedulerConfig
from licorne.model.errors import RequestError
from licorne.model.marks import marked_methods
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition
from licorne.model.values.messages import Registration

IDENTITY: Final[dict[type, dict[str, object]]] = {
    Cluster: {},
    Partition: {"name": PARTITION, "rm_id": "rm"},
    Application: {"application_id": "app", "partition": PARTITION},
    Node: {"node_id": "node", "instance_type": "UNKNOWN"},
}
"""What never changes about each entity of the tests, and may be read without asking."""

HARMLESS: Final = {Cluster: "partitions", Partition: "next_retry_ns", Application: "facts", Node: "facts"}
"""A method of each class that needs no arguments and asks no actor."""

each_class = pytest.mark.parametrize("entity_class", RANKS, ids=lambda entity_class: entity_class.__name__)


def a_partition() -> Partition:
    """Return a partition whose announcements are discarded."""
    host = a_host()
    return Partition(PARTITION, "rm", a_configuration(), host)


class NoPartitions:
    """Makes nothing."""

    def prepare(self, config: SchedulerConfig) -> None:
        """Do nothing."""

    def make(self, name: str, config: PartitionConfig) -> Partition:
        raise AssertionError(f"{name} is not wanted: {config}")

    def commit(self, partitions: Mapping[str, Partition]) -> None:
        """Do nothing."""

    def drop(self, partition: Partition) -> None:
        """Do nothing."""


def an_entity(entity_class: type) -> Any:
    """Return an entity of a class."""
    makers: dict[type, Callable[[], object]] = {
        Cluster: Cluster,
        Partition: a_partition,
        Application: an_application,
        Node: a_node,
    }
    return makers[entity_class]()


# ----------------------------------------------------------------------------------- what they have


@each_class
def test_a_handle_has_all_marked_methods_and_no_others(entity_class: type, stepped: Dispatcher) -> None:
    """A method without a mark does not exist outside the actor."""
    handle = adopt(an_entity(entity_class), stepped)

    public = {name for name in dir(handle) if not name.startswith("_")}
    assert set(marked_methods(entity_class)) == {name for name in public if callable(getattr(handle, name))}
    assert set(IDENTITY[entity_class]) <= public


class WatchedPartition(Partition):
    """A partition that notes when it is asked to set its timers."""

    def __init__(self) -> None:
        super().__init__(PARTITION, "rm", a_configuration(), a_partition().host)
        self.seen: list[str] = []

    def schedule_wakeups(self) -> None:
        self.seen.append("wakeups")


def test_the_handle_of_a_class_that_extends_an_entity_has_its_own_methods(stepped: Dispatcher) -> None:
    """Asked or sent, the method of the extending class runs; the rest is as in the entity's class."""
    partition = WatchedPartition()
    handle = adopt(partition, stepped)
    handle.schedule_wakeups()
    reference_of(handle).send(message_function(handle, "schedule_wakeups"))

    assert None is handle.next_retry_ns()
    assert ["wakeups", "wakeups"] == partition.seen
    assert RANKS[Partition] == reference_of(handle).actor_class.rank


@each_class
def test_a_handle_has_the_parts_of_its_entity(entity_class: type, stepped: Dispatcher) -> None:
    """Their marked methods and no others ask the same actor."""
    handle = adopt(an_entity(entity_class), stepped)

    for name, part_class in PARTS[entity_class].items():
        part = getattr(handle, name)
        assert set(marked_methods(part_class)) == {name for name in dir(part) if not name.startswith("_")}
        assert reference_of(part) is reference_of(handle)


@each_class
def test_a_handle_knows_who_it_stands_for(entity_class: type, stepped: Dispatcher) -> None:
    """Without asking: also when the actor has stopped."""
    entity = an_entity(entity_class)
    handle = adopt(entity, stepped)
    reference_of(handle).stop()

    public = [
        name
        for name in dir(handle)
        if not name.startswith("_")
        and name not in PARTS[entity_class]
        and not callable(getattr(handle, name))
    ]
    assert IDENTITY[entity_class] == {name: getattr(handle, name) for name in IDENTITY[entity_class]}
    assert all(getattr(entity, name) is getattr(handle, name) for name in public)


def test_a_handle_has_no_room_for_anything_else(stepped: Dispatcher) -> None:
    """There is one for each of ten thousand nodes; and what it does not know cannot be set by mistake."""
    handle: Any = adopt(a_node(), stepped)

    with pytest.raises(AttributeError):
        handle.available = TEN
    assert not hasattr(handle, "__dict__")


@each_class
def test_an_actor_has_the_rank_of_its_class(entity_class: type, stepped: Dispatcher) -> None:
    """The cluster stands at the top."""
    assert [Cluster, Partition, Application, Node] == sorted(RANKS, key=RANKS.__getitem__)
    assert RANKS[entity_class] == reference_of(adopt(an_entity(entity_class), stepped)).actor_class.rank


# ------------------------------------------------------------------------------------ what they do


def test_an_ask_returns_what_the_method_returns(stepped: Dispatcher) -> None:
    """Arguments arrive by place and by name, and the object has changed when it returns."""
    node = a_node(capacity=a_resource(memory=30))
    handle = adopt(node, stepped)

    assert a_resource(memory=20) == handle.try_add(an_allocation())
    assert handle.try_reserve("ask", TEN, required=False)
    assert a_resource(memory=20) == node.facts().available
    assert ("ask",) == node.facts().reservations


@pytest.mark.parametrize("check_direction", [False, True])
def test_an_exception_comes_out_and_the_actor_goes_on(*, check_direction: bool) -> None:
    """The asker gets it as it was raised."""
    with Dispatcher(workers=0, check_direction=check_direction) as dispatcher:
        cluster = adopt(Cluster(), dispatcher)
        with pytest.raises(RequestError, match="the rmID is empty"):
            cluster.register(Registration(rm_id=""), NoPartitions())

        assert [] == cluster.partitions()


def test_a_method_sent_by_tell_that_raises_is_reported_and_the_actor_goes_on(
    failures: tuple[Dispatcher, list[Failure]],
) -> None:
    """No caller waits for it, so the dispatcher reports it."""
    dispatcher, reported = failures
    handle = adopt(a_node(), dispatcher)
    reference_of(handle).send(nonsense)
    dispatcher.run_pending()

    (failure,) = reported
    assert isinstance(failure.error, ValueError)
    assert failure.survived
    assert "node" == handle.facts().node_id


def nonsense(_: EntityActor) -> None:
    """Raise what no node would."""
    raise ValueError("nonsense")


def test_messages_by_tell_are_handled_later_in_order(stepped: Dispatcher) -> None:
    """The second reservation finds the node reserved."""
    node = a_node()
    handle = adopt(node, stepped)
    ref = reference_of(handle)
    ref.send(message_function(handle, "try_reserve"), "first", TEN, required=False)
    ref.send(message_function(handle, "try_reserve"), "second", TEN, required=False)
    assert () == node.facts().reservations
    stepped.run_pending()

    assert ("first",) == node.facts().reservations


def test_earlier_messages_by_tell_are_handled_before_an_ask(stepped: Dispatcher) -> None:
    """The asker finds the messages of others in the mailbox and does not overtake them."""
    handle = adopt(a_node(), stepped)
    reference_of(handle).send(message_function(handle, "try_reserve"), "told", TEN, required=False)

    assert ("told",) == handle.facts().reservations


def test_threads_that_ask_at_once_take_turns(pooled: Dispatcher) -> None:
    """Room for forty is given to forty of a hundred and twenty."""
    handle = adopt(a_node(capacity=a_resource(memory=400)), pooled)
    start = threading.Barrier(4)
    taken: list[str] = []

    def take(number: int) -> None:
        start.wait(WAIT_SECONDS)
        for ask in range(30):
            key = f"{number}-{ask}"
            if handle.try_add(an_allocation(ask=an_ask(key))) is not None:
                taken.append(key)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)

    handle.validate()
    assert 40 == len(taken)
    assert set(taken) == {entry.ask.allocation_key for entry in handle.facts().allocations}


def test_a_handle_of_a_stopped_actor_raises(stepped: Dispatcher) -> None:
    """A caller that keeps one too long gets an error."""
    handle = adopt(a_node(), stepped)
    reference_of(handle).stop()

    with pytest.raises(ActorDeadError):
        handle.facts()


def test_an_actor_names_its_class(stepped: Dispatcher) -> None:
    """In the log."""
    actors: list[str] = []
    reference_of(adopt(a_node(), stepped)).send(lambda actor: actors.append(str(actor)))
    stepped.run_pending()

    assert ["Node actor"] == actors


# -------------------------------------------------------------------------------------- direction


@pytest.mark.lockcheck(off=True)  # also asks that no entity makes
@pytest.mark.parametrize(("asker", "asked"), list(product(RANKS, RANKS)))
def test_a_blocking_ask_goes_down_only(asker: type, asked: type, checked: Dispatcher) -> None:
    """Cluster, partition, application, node: downwards it is answered, sideways and upwards refused."""
    above = reference_of(adopt(an_entity(asker), checked))
    method = getattr(adopt(an_entity(asked), checked), HARMLESS[asked])

    if RANKS[asker] < RANKS[asked]:
        above.call(lambda _: method())
        return
    with pytest.raises(AskDirectionError, match="a blocking ask goes down only"):
        above.call(lambda _: method())


def test_what_goes_up_is_sent_by_tell(checked: Dispatcher) -> None:
    """A node may tell its partition, and goes on."""
    heard = threading.Event()
    partition = reference_of(adopt(a_partition(), checked))
    node = reference_of(adopt(a_node(), checked))
    node.call(lambda _: partition.send(lambda _: heard.set()))

    assert heard.wait(WAIT_SECONDS)


def test_a_thread_outside_may_ask_any_actor(checked: Dispatcher) -> None:
    """A thread that runs no actor has no rank."""
    assert "node" == adopt(a_node(), checked).facts().node_id
    assert [] == adopt(Cluster(), checked).partitions()
