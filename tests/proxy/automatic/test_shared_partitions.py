"""Several scheduling threads place in one partition of the engine `threads`, each in a leaf of its own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest
from support.proxy.listening import Listener, PredicateListener
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    keys,
    node_request,
    release_request,
)
from support.proxy.running_scheduler import in_threads, running
from support.proxy.threads_stress import application_end, node_end, switching_every
from support.waiting import WAIT_SECONDS, happens

from licorne import LicorneError, Scheduler
from licorne.actors.locks.guarded_partition import GuardedPartition
from licorne.actors.locks.guards import LOCK_ORDER
from licorne.lockcheck import session
from licorne.model.partition import Partition
from licorne.model.queues.queue import Queue
from licorne.model.scheduling.cycle import ConcurrentOutcome
from licorne.proxy.base.process import is_compiled
from licorne.proxy.si import si_pb2 as si

LEAVES: Final = 6
QUEUES: Final = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: parent
            {limits}
            queues:
{leaves}
"""
ROOM: Final = "resources: {max: {memory: 17}}"
USERS: Final = "limits: [{limit: of bob, users: [bob], maxresources: {memory: 17}}]"
GROUPS: Final = "limits: [{limit: of staff, groups: [staff], maxresources: {memory: 17}}]"
RUNNING: Final = "maxapplications: 3"


def configuration(limits: str = "", of_leaf: str = "") -> str:
    leaves = "\n".join(f"              - {{name: leaf-{number}{of_leaf}}}" for number in range(LEAVES))
    return QUEUES.format(limits=limits, leaves=leaves)


def applications(count: int = LEAVES) -> si.ApplicationRequest:
    """One in each leaf, then a second one in each, ..."""
    request = si.ApplicationRequest(rmID="rm")
    for number in range(count):
        one = application_request(f"app-{number}", queue=f"root.parent.leaf-{number % LEAVES}")
        one.new[0].ugi.groups.append("staff")
        request.MergeFrom(one)
    return request


def asks(count: int, applications: int = LEAVES) -> si.AllocationRequest:
    """So many for each application."""
    request = si.AllocationRequest(rmID="rm")
    for number in range(applications):
        request.MergeFrom(ask_request(*keys(count, f"{number}"), application=f"app-{number}"))
    return request


def used(scheduler: Scheduler) -> int:
    """Return how much memory is allocated."""
    snapshot: Any = scheduler.snapshot()
    (root,) = snapshot["queues"].values()
    return int(root.get("allocatedResource", {}).get("memory", 0))


def begin(scheduler: Scheduler, listener: Listener, queues: str, count: int = LEAVES, each: int = 20) -> None:
    """Have everything wait, and then add the node."""
    scheduler.register("rm", listener, configuration=queues)
    scheduler.update_application(applications(count))
    scheduler.update_allocation(asks(each, count))
    listener.wait_for(*[f"accepted app-{number}" for number in range(count)])


def rest(scheduler: Scheduler) -> None:
    """Wait until the partition has nothing to do: nothing is placed without new requests."""
    partition_of(scheduler).run_until_idle()


def partition_of(scheduler: Scheduler) -> GuardedPartition:
    (partition,) = scheduler._cluster.partitions()
    assert isinstance(partition, GuardedPartition)
    return partition


@pytest.fixture(params=[None, 1e-6], ids=["", "eager switches"])
def _switches(request: pytest.FixtureRequest) -> Iterator[None]:
    with switching_every(request.param):
        yield


@pytest.fixture
def scheduler(_switches: None) -> Iterator[Scheduler]:
    """Give a scheduler whose threads share its partitions."""
    with running("threads", threads=4, share_partitions=True) as scheduler:
        yield scheduler


@pytest.mark.parametrize("limits", [ROOM, USERS, GROUPS])
def test_a_limit_that_leaves_have_in_common_is_met_exactly(
    scheduler: Scheduler, listener: Listener, limits: str
) -> None:
    """Two that see the same room cannot both take it, and what one of them gives back is not lost."""
    begin(scheduler, listener, configuration(limits))
    scheduler.update_node(node_request("node", memory=1000))
    listener.wait_for_count("placed ", 17)
    rest(scheduler)

    assert 17 == used(scheduler)


def test_nodes_are_filled_exactly(scheduler: Scheduler, listener: Listener) -> None:
    """The threads see the same nodes."""
    begin(scheduler, listener, configuration())
    scheduler.update_node(node_request("one", "two", "three", memory=9))
    listener.wait_for_count("placed ", 27)
    rest(scheduler)

    assert 27 == used(scheduler)


def test_as_many_applications_run_as_may(scheduler: Scheduler, listener: Listener) -> None:
    """To start one takes a cycle that has the partition alone."""
    begin(scheduler, listener, configuration(RUNNING, f", {RUNNING}"), count=2 * LEAVES, each=3)
    scheduler.update_node(node_request("node", memory=1000))
    listener.wait_for_count("placed ", 9)
    rest(scheduler)

    assert 3 == len({text.split("-")[1] for text in listener.all("placed ")})
    assert 9 == used(scheduler)


def test_everything_is_placed_once(scheduler: Scheduler, listener: Listener) -> None:
    """Where there is room for all."""
    begin(scheduler, listener, configuration(), count=2 * LEAVES)
    scheduler.update_node(node_request("node", memory=1000))
    listener.wait_for_count("placed ", 40 * LEAVES)
    rest(scheduler)

    placed = listener.all("placed ")
    assert len(placed) == len(set(placed)) == 40 * LEAVES == used(scheduler)


def test_threads_place_at_once(monkeypatch: pytest.MonkeyPatch, listener: Listener) -> None:
    """Two that have placed an ask wait for each other before they release the partition."""
    meeting = threading.Barrier(2)
    place = Partition.place_concurrently
    meets = iter([False, True, True])
    """After the first one, which runs alone, another thread is called."""

    def meet(partition: Partition) -> ConcurrentOutcome:
        outcome = place(partition)
        if outcome is ConcurrentOutcome.PLACED and next(meets, False):
            meeting.wait(WAIT_SECONDS)
        return outcome

    with running("threads", threads=2, share_partitions=True) as scheduler:
        begin(scheduler, listener, configuration())
        monkeypatch.setattr(Partition, "place_concurrently", meet)
        scheduler.update_node(node_request("node", memory=1000))
        listener.wait_for_count("placed ", 20 * LEAVES)
    assert not meeting.broken


def test_who_is_let_in_waits_for_no_end_of_requests(listener: Listener) -> None:
    """If a writer always waits for the partition, threads that share it run whole cycles as well."""
    ended = threading.Event()
    with running("threads", threads=2, share_partitions=True) as scheduler:
        begin(scheduler, listener, configuration())

        def look() -> None:
            while not ended.is_set():
                scheduler.snapshot()

        def place() -> None:
            scheduler.update_node(node_request("node", memory=1000))
            try:
                listener.wait_for_count("placed ", 20 * LEAVES)
            finally:
                ended.set()

        in_threads(place, look, look, look)


def test_threads_do_not_share_the_partition_of_a_manager_with_predicates(listener: Listener) -> None:
    """Where predicates are asked threads share the judging, not the placing."""
    predicate_listener = PredicateListener()
    with running("threads", threads=2, share_partitions=True) as scheduler:
        begin(scheduler, predicate_listener, configuration(), each=3)
        scheduler.update_node(node_request("node", memory=1000))
        predicate_listener.wait_for_count("placed ", 3 * LEAVES)
    assert [] == listener.heard


def churn(scheduler: Scheduler, number: int, rounds: int) -> None:
    """Have applications and nodes come, work and be killed."""
    for wave in range(rounds):
        scheduler.update_application(applications())
        scheduler.update_node(node_request(f"node-{number % 3}", memory=12))
        own = asks(2)
        for ask in own.allocations:
            ask.allocationKey += f"-{number}-{wave}"
        scheduler.update_allocation(own)
        if wave % 4 == 1:
            scheduler.update_node(node_end(f"node-{number % 3}", ""))
        elif wave % 4 == 2:
            scheduler.update_allocation(release_request("", application=f"app-{(number + wave) % LEAVES}"))
        elif wave % 4 == 3:
            scheduler.update_application(application_end(f"app-{(number + wave) % LEAVES}", ""))
        assert used(scheduler) <= 17


@pytest.mark.parametrize("limits", [ROOM, USERS])
@pytest.mark.parametrize("rounds", [12, pytest.param(300, marks=pytest.mark.soak)])
def test_limits_hold_while_applications_and_nodes_are_killed(
    scheduler: Scheduler, listener: Listener, limits: str, rounds: int
) -> None:
    """No snapshot shows a queue or user above its limit, and in the end no room is left unused."""
    scheduler.register("rm", listener, configuration=configuration(limits))
    bodies: list[Callable[[], object]] = [partial(churn, scheduler, number, rounds) for number in range(8)]
    in_threads(*bodies)
    scheduler.update_node(node_request("last", memory=1000))
    scheduler.update_application(applications())
    scheduler.update_allocation(asks(20))

    assert happens(lambda: used(scheduler) == 17), used(scheduler)
    rest(scheduler)
    assert 17 == used(scheduler)
    assert () == scheduler.quarantined()


def test_the_lock_checker_finds_nothing(listener: Listener) -> None:
    """Every lock is taken in its order, and nothing blocks under one."""
    with session(LOCK_ORDER) as checked, running("threads", threads=4, share_partitions=True) as scheduler:
        scheduler.register("rm", listener, configuration=configuration(ROOM))
        in_threads(*[partial(churn, scheduler, number, 6) for number in range(8)])

    assert [] == list(checked.findings), checked.report_text()
    assert [] == checked.faults


@pytest.mark.skipif(is_compiled(), reason="threads share a partition in pure Python alone")
@pytest.mark.parametrize("has_interpreter_lock", [True, False])
def test_threads_share_only_where_they_are_asked_to(
    monkeypatch: pytest.MonkeyPatch, *, has_interpreter_lock: bool
) -> None:
    """It is slower also where the interpreter has no global lock, and threads run at once."""
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: has_interpreter_lock, raising=False)
    with (
        Scheduler(engine="threads") as scheduler,
        Scheduler(engine="threads", share_partitions=True) as sharing,
    ):
        for one in (scheduler, sharing):
            one.register("rm", Listener(), configuration=configuration())

        assert [False, True] == [partition_of(one)._shares for one in (scheduler, sharing)]


@pytest.mark.parametrize("engine", ["actors", "direct"])
def test_other_engines_have_nothing_to_share(engine: Any) -> None:
    """The error says what was wanted of which engine."""
    with pytest.raises(
        LicorneError, match=f"share_partitions=True is for the engine threads, not for {engine}"
    ):
        Scheduler(engine=engine, share_partitions=True)


@pytest.mark.parametrize("settings", [{"stepped": True}, {"stepped": True, "threads": 4}, {"threads": 1}])
def test_it_takes_two_to_share(settings: dict[str, Any]) -> None:
    """And a scheduler that runs by itself: the outcome of a step would not be that of the other engines."""
    with pytest.raises(LicorneError, match="needs a scheduler that is not stepped, on two threads or more"):
        Scheduler(engine="threads", share_partitions=True, **settings)


@pytest.mark.parametrize("settings", [{"threads": 1}, {"stepped": True}, {"share_partitions": False}])
def test_what_is_not_shared_has_no_locks(settings: dict[str, Any]) -> None:
    """They would cost a third of the pace for nothing."""
    with Scheduler(engine="threads", **settings) as scheduler:
        scheduler.register("rm", Listener(), configuration=configuration())
        with partition_of(scheduler).holding() as held:
            assert type(held._state.tree.root) is Queue
