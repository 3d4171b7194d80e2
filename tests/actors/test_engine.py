"""Engines: what a reference is, what is done at once and what later, and how partitions work alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pykka import ActorDeadError
from support.model.builders import PARTITION, TEN, a_configuration, a_host, a_node, a_resource, an_application
from support.waiting import WAIT_SECONDS

from licorne.actors.engines import partition_actor
from licorne.actors.engines.engine import ActorsEngine, DirectEngine, Engine
from licorne.actors.engines.handles import reference_of
from licorne.actors.engines.partition_actor import CYCLES_PER_SLICE, REQUESTS_NS, PartitionActor
from licorne.actors.runtime.errors import AskCycleError, AskDirectionError
from licorne.model.cluster import Cluster
from licorne.model.errors import RequestError
from licorne.model.partition import Partition
from licorne.model.state.host import RetryAsks
from licorne.model.values.allocation import PlacementHalt, RefusalReason
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationSubmission,
    Announcement,
    ApplicationsAnswered,
    ApplicationSubmission,
    NodeAction,
    NodesAnswered,
    NodeUpdate,
)


class Site:
    """A partition on an engine, and what it announces.

    Attributes:
        flushed: how much had been announced at each flush.
        react: called with each announcement, inside the partition.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.announcements: list[Announcement] = []
        self.flushed: list[int] = []
        self.halt: PlacementHalt | None = None
        self.react: Callable[[Announcement], object] = lambda _: None
        self.timers: list[object] = []
        host = a_host(
            call_at=lambda _, action: self.timers.append(action),
            announce=self._announce,
            flush=lambda: self.flushed.append(len(self.announcements)),
            placement_halt=lambda: self.halt,
            adopt_node=engine.adopt_node,
            adopt_application=engine.adopt_application,
            release=engine.release,
        )
        self.partition = engine.adopt_partition(Partition(PARTITION, "rm", a_configuration(), host))

    def _announce(self, announcement: Announcement) -> None:
        self.announcements.append(announcement)
        self.react(announcement)

    def add_node(self, node_id: str = "node", memory: int = 10_000) -> None:
        """Tell the partition of a node."""
        capacity = a_resource(memory=memory)
        create = NodeAction.CREATE
        update = NodeUpdate(node_id=node_id, action=create, attributes={}, resource=capacity)
        self.engine.tell(self.partition, "update_nodes", (update,))

    def submit(self, application_id: str = "app") -> None:
        """Tell the partition of an application."""
        submission = ApplicationSubmission(
            application_id=application_id,
            queue_name="root.leaf",
            partition=PARTITION,
            user="bob",
            groups=("dev",),
            tags={},
            execution_timeout_ms=0,
            placeholder_ask=None,
            gang_scheduling_style="",
        )
        self.engine.tell(self.partition, "update_applications", (submission,), ())

    def ask(self, count: int) -> None:
        """Tell the partition of asks of one application, each for ten."""
        submissions = [
            AllocationSubmission(
                allocation_key=f"ask-{number}",
                application_id="app",
                partition=PARTITION,
                resource=TEN,
                priority=0,
                tags={},
                node_id="",
                task_group_name="",
                placeholder=False,
                originator=False,
                allow_preempt_self=False,
                allow_preempt_other=False,
            )
            for number in range(count)
        ]
        self.engine.tell(self.partition, "update_allocations", submissions, ())

    def begin(self, asks: int, memory: int = 10_000) -> None:
        """Tell the partition of a node, an application and its asks."""
        self.add_node(memory=memory)
        self.submit()
        self.ask(asks)

    def placed(self) -> int:
        """Return how many placements were announced."""
        return sum(isinstance(entry, AllocationPlaced) for entry in self.announcements)


@pytest.fixture
def direct() -> DirectEngine:
    """Give the engine of plain objects."""
    return DirectEngine()


@pytest.fixture
def stepping() -> Iterator[ActorsEngine]:
    """Give an engine of actors whose steps are whole, as a stepped scheduler has it."""
    engine = ActorsEngine(workers=0, automatic=False)
    yield engine
    engine.close()


class Watch:
    """The clock by which a partition divides its time; each look at it takes `step_ns`."""

    def __init__(self) -> None:
        self.step_ns = 0
        self._now_ns = 0

    def __call__(self) -> int:
        self._now_ns += self.step_ns
        return self._now_ns


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Give the clock: it stands still, so that nothing depends on how busy the machine is."""
    stopped = Watch()
    monkeypatch.setattr(partition_actor, "perf_counter_ns", stopped)
    return stopped


@pytest.fixture
def automatic(watch: Watch) -> Iterator[ActorsEngine]:  # noqa: ARG001 - it is to stand still
    """Give an engine whose partitions work by themselves, when the test lends it a thread."""
    engine = ActorsEngine(workers=0, automatic=True)
    yield engine
    engine.close()


# ---------------------------------------------------------------------------------------- references


def test_direct_references_are_the_objects(direct: DirectEngine) -> None:
    """Adopted or released, nothing happens to them."""
    node, application, cluster = a_node(), an_application(), Cluster()

    assert node is direct.adopt_node(node)
    assert application is direct.adopt_application(application)
    assert cluster is direct.adopt_cluster(cluster)
    direct.release(node)
    direct.close()
    assert "node" == node.facts().node_id


def test_direct_messages_are_calls(direct: DirectEngine) -> None:
    """What is sent is done."""
    site = Site(direct)
    site.add_node()

    assert [NodesAnswered(("node",), ())] == site.announcements


def test_actors_are_behind_the_same_methods(stepping: ActorsEngine) -> None:
    """A handle is no node, and answers like one."""
    node = a_node()
    handle: Any = stepping.adopt_node(node)

    assert handle is not node
    assert node.facts() == handle.facts()
    assert "app" == stepping.adopt_application(an_application()).application_id
    assert [] == stepping.adopt_cluster(Cluster()).partitions()


def test_a_released_actor_has_stopped(stepping: ActorsEngine) -> None:
    """After what it had to do; the others live."""
    node, other = stepping.adopt_node(a_node()), stepping.adopt_node(a_node("other"))
    stepping.release(node)
    stepping.dispatcher.run_pending()

    with pytest.raises(ActorDeadError):
        node.facts()
    assert "other" == other.facts().node_id


def test_a_closed_engine_has_no_actor_and_no_thread() -> None:
    """It had two threads of its own."""
    before = set(threading.enumerate())
    engine = ActorsEngine()
    site = Site(engine)
    engine.adopt_node(a_node())
    engine.adopt_cluster(Cluster())
    engine.close()

    assert () == engine.dispatcher.actors()
    assert before == set(threading.enumerate())
    with pytest.raises(RequestError, match="has ended"):
        site.add_node()


def test_an_engine_can_check_the_direction_of_asks() -> None:
    """A node that waits for its partition is refused."""
    engine = ActorsEngine(workers=0, automatic=False, check_direction=True)
    site = Site(engine)
    node = reference_of(engine.adopt_node(a_node()))

    with pytest.raises(AskDirectionError):
        node.call(lambda _: site.partition.next_retry_ns())
    engine.close()


# ------------------------------------------------------------------------------------------- stepped


def test_a_stepped_partition_carries_out_a_request_at_once(stepping: ActorsEngine) -> None:
    """And nothing besides: it places only when it is stepped."""
    site = Site(stepping)
    site.begin(asks=3)

    assert [NodesAnswered(("node",), ()), ApplicationsAnswered(("app",), ())] == site.announcements[:2]
    assert 0 == stepping.dispatcher.run_pending()
    assert 0 == site.placed()
    assert 3 == site.partition.run_until_idle()
    assert 3 == site.placed()


def test_an_exception_of_a_stepped_partition_comes_out(stepping: ActorsEngine) -> None:
    """The caller waits for it, as in an ask."""
    site = Site(stepping)

    with pytest.raises(TypeError):
        stepping.tell(site.partition, "update_nodes")


# ----------------------------------------------------------------------------------------- automatic


def test_an_automatic_partition_schedules_after_a_request(automatic: ActorsEngine) -> None:
    """No message has to start scheduling; the caller went on before it began."""
    site = Site(automatic)
    site.begin(asks=3)
    assert [] == site.announcements
    automatic.dispatcher.run_pending()

    assert PartitionActor is reference_of(site.partition).actor_class
    assert 3 == site.placed()
    assert len(site.announcements) == site.flushed[-1]


def test_an_automatic_partition_rests_when_nothing_can_be_placed(automatic: ActorsEngine) -> None:
    """It has no message for itself left, and asks to be called when time alone may change that."""
    site = Site(automatic)
    site.begin(asks=3, memory=10)
    automatic.dispatcher.run_pending()
    assert 1 == site.placed()
    assert site.timers
    assert 0 == automatic.dispatcher.run_pending()

    automatic.tell(site.partition, "on_timer", RetryAsks())
    automatic.dispatcher.run_pending()
    assert 1 == site.placed()
    site.add_node("more", memory=20)
    automatic.dispatcher.run_pending()
    assert 3 == site.placed()


def test_messages_get_their_turn_between_slices_of_work(automatic: ActorsEngine) -> None:
    """What comes while a slice runs is done before the next one."""
    site = Site(automatic)
    site.begin(asks=3 * CYCLES_PER_SLICE)
    site.react = lambda _: site.submit(f"late-{site.placed()}") if site.placed() in {1, 2, 20, 32} else None
    automatic.dispatcher.run_pending()

    placed_before = {
        application_id: sum(isinstance(entry, AllocationPlaced) for entry in site.announcements[:index])
        for index, announcement in enumerate(site.announcements)
        if isinstance(announcement, ApplicationsAnswered)
        for application_id in announcement.accepted
    }
    del placed_before["app"]
    assert {"late-1": 16, "late-2": 16, "late-20": 32, "late-32": 32} == placed_before
    assert 3 * CYCLES_PER_SLICE == site.placed()


def test_what_is_placed_after_a_rest_is_announced_before_the_walk_that_finds_nothing_more(
    automatic: ActorsEngine,
) -> None:
    """Each time that the partition has rested; later slices are longer."""
    site = Site(automatic)
    site.submit()
    site.ask(3)
    automatic.dispatcher.run_pending()
    for _ in range(2):
        site.add_node(f"node-{site.placed()}", memory=10)
        site.flushed.clear()
        automatic.dispatcher.run_pending()
        announced = site.announcements[: site.flushed[-2]]
        assert site.placed() == sum(isinstance(entry, AllocationPlaced) for entry in announced)
    assert 2 == site.placed()


@pytest.mark.parametrize(
    ("step_ns", "placed_before"), [(0, 0), (2 * REQUESTS_NS, 3 * CYCLES_PER_SLICE)], ids=["quick", "slow"]
)
def test_requests_that_take_long_do_not_keep_the_partition_from_placing(
    automatic: ActorsEngine, watch: Watch, step_ns: int, placed_before: int
) -> None:
    """It places before it goes on to those that wait; quick ones are all answered first."""
    site = Site(automatic)
    site.begin(asks=10 * CYCLES_PER_SLICE)
    site.submit("late")
    watch.step_ns = step_ns
    automatic.dispatcher.run_pending()

    answered = site.announcements.index(ApplicationsAnswered(("late",), ()))
    placed = [isinstance(entry, AllocationPlaced) for entry in site.announcements]
    assert placed_before == sum(placed[:answered])
    assert 10 * CYCLES_PER_SLICE == sum(placed)


def test_no_news_is_delivered_early_while_requests_wait(automatic: ActorsEngine) -> None:
    """To deliver may switch threads, for each request anew."""
    site = Site(automatic)
    site.begin(asks=3)
    site.react = lambda _: site.submit(f"late-{site.placed()}") if site.placed() == 1 else None
    automatic.dispatcher.run_pending()

    placed = next(n for n, entry in enumerate(site.announcements) if isinstance(entry, AllocationPlaced))
    answered = site.announcements.index(ApplicationsAnswered(("late-1",), ()))
    assert placed < answered < min(count for count in site.flushed if count > placed)


def test_an_automatic_partition_places_nothing_for_a_congested_manager(automatic: ActorsEngine) -> None:
    """It answers, and goes on when it gets the message to retry."""
    site = Site(automatic)
    site.halt = PlacementHalt(reason=RefusalReason.CONGESTED)
    site.begin(asks=3)
    automatic.dispatcher.run_pending()
    assert NodesAnswered(("node",), ()) in site.announcements
    assert 0 == site.placed()

    site.halt = None
    automatic.tell(site.partition, "on_timer", RetryAsks())
    automatic.dispatcher.run_pending()
    assert 3 == site.placed()


def test_a_failure_in_a_partition_does_not_end_its_work(automatic: ActorsEngine) -> None:
    """The next message finds it as it was, and what was announced is flushed."""
    site = Site(automatic)
    site.add_node()
    automatic.tell(site.partition, "update_nodes")
    automatic.dispatcher.run_pending()
    assert [1] == site.flushed[-1:]

    site.submit()
    site.ask(3)
    automatic.dispatcher.run_pending()
    assert 3 == site.placed()


def test_a_withdrawn_message_delays_no_flush(automatic: ActorsEngine) -> None:
    """An ask that was taken back is the last one in the mailbox, behind the work that placed something."""
    site = Site(automatic)

    def ask_and_take_back(announcement: Announcement) -> None:
        if isinstance(announcement, AllocationPlaced):
            future = reference_of(site.partition).ask("anything", block=False)
            future.withdraw(AskCycleError("taken back"))

    site.react = ask_and_take_back
    site.begin(asks=1)
    automatic.dispatcher.run_pending()

    assert 1 == site.placed()
    assert len(site.announcements) == site.flushed[-1]


def test_partitions_of_an_automatic_engine_work_on_its_threads() -> None:
    """None of them is the caller."""
    engine = ActorsEngine()
    site = Site(engine)
    threads: list[str] = []
    done = threading.Event()

    def note(_: Announcement) -> None:
        threads.append(threading.current_thread().name)
        if site.placed() == 3:
            done.set()

    site.react = note
    site.begin(asks=3)
    assert done.wait(WAIT_SECONDS)
    engine.close()

    assert set(threads) <= {"licorne-1", "licorne-2"}
