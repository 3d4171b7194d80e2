"""The scheduler that runs by itself: threads, callbacks, several managers, congestion, its end, real time.

Every test ends with the invariants, with no thread left, and with nothing in the log that is an error.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from loguru import logger

from licorne import LicorneError, RequestError, ResourceManager, Scheduler
from licorne.actors import rm_link
from licorne.actors.engine import ActorsEngine
from licorne.model import application_life, partition
from licorne.model.application_state import ApplicationState
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loguru import Message

    from licorne.model.messages import ApplicationSubmission

WAIT_SECONDS: Final = 10
"""How long a test waits for what is to happen; nothing that works comes near it."""
SECOND_NS: Final = 1_000_000_000
BACKLOG: Final = 8
"""A bound on what waits for an RM that a test can reach."""

ONE: Final = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: leaf}]}
"""
TWO: Final = (
    ONE
    + """
  - name: second
    queues:
      - {name: root, submitacl: "*", queues: [{name: leaf}]}
"""
)
BROKEN: Final = ONE.replace("name: leaf", "name: 'no.dots'")


# ------------------------------------------------------------------------------------- the manager


class Listener(ResourceManager):
    """Remembers what it is told as short texts, and lets a test wait for them.

    Attributes:
        heard: the texts, in order.
        threads: which threads have called.
        react: called on the callback's thread with each text, after it was noted.
    """

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.threads: set[threading.Thread] = set()
        self.react: Callable[[str], None] = lambda _: None
        self._changed = threading.Condition()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._hear([f"placed {entry.allocationKey}" for entry in response.new])
        self._hear(
            [
                f"released {entry.allocationKey} {si.TerminationType.Name(entry.terminationType)}"
                for entry in response.released
            ]
        )
        self._hear(
            [f"rejected {entry.allocationKey}: {entry.reason}" for entry in response.rejectedAllocations]
        )

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._hear([f"accepted {entry.applicationID}" for entry in response.accepted])
        self._hear([f"rejected {entry.applicationID}: {entry.reason}" for entry in response.rejected])
        self._hear([f"{entry.applicationID} is {entry.state}" for entry in response.updated])

    def update_node(self, response: si.NodeResponse) -> None:
        self._hear([f"accepted {entry.nodeID}" for entry in response.accepted])
        self._hear([f"rejected {entry.nodeID}: {entry.reason}" for entry in response.rejected])

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self._hear([f"waiting {request.allocationKey}"])

    def _hear(self, texts: Sequence[str]) -> None:
        for text in texts:
            with self._changed:
                self.heard.append(text)
                self.threads.add(threading.current_thread())
                self._changed.notify_all()
            self.react(text)

    def wait_for(self, *texts: str) -> None:
        """Wait until it has been told all of these."""
        told = self.hears(lambda: set(texts) <= set(self.heard))
        assert told, f"never told {sorted(set(texts) - set(self.heard))}, but {self.heard[-20:]}"

    def wait_for_count(self, start: str, count: int) -> None:
        """Wait until it has been told so many texts that start so."""
        told = self.hears(lambda: len(self.all(start)) >= count)
        assert told, f"told {len(self.all(start))} of {count} times {start!r}"

    def hears(self, enough: Callable[[], bool], seconds: float = WAIT_SECONDS) -> bool:
        """Wait until it has been told enough; return whether that happened in time."""
        with self._changed:
            return self._changed.wait_for(enough, seconds)

    def all(self, start: str) -> list[str]:
        """Return what follows this start in all texts that have it, in order."""
        return [text.removeprefix(start) for text in self.heard if text.startswith(start)]


class Judge(Listener):
    """A listener that is asked before anything is placed or reserved; it agrees to all."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        self._hear([f"asked to {'place' if args.allocate else 'reserve for'} {args.allocationKey}"])


class Gate:
    """Lets a callback wait inside until the test opens it."""

    def __init__(self, start: str = "") -> None:
        self.reached = threading.Event()
        self._start = start
        self._open = threading.Event()

    def hold(self, text: str) -> None:
        """Wait, if the text starts as the gate says."""
        if text.startswith(self._start):
            self.reached.set()
            assert self._open.wait(WAIT_SECONDS), "the gate was never opened"

    def open(self) -> None:
        self._open.set()


def node_request(*node_ids: str, rm_id: str = "rm", memory: int = 100, partition: str = "") -> si.NodeRequest:
    request = si.NodeRequest(rmID=rm_id)
    for node_id in node_ids:
        node = request.nodes.add(nodeID=node_id, action=si.NodeInfo.CREATE)
        node.attributes["si/node-partition"] = partition
        node.schedulableResource.resources["memory"].value = memory
    return request


def application_request(*names: str, rm_id: str = "rm", partition: str = "") -> si.ApplicationRequest:
    request = si.ApplicationRequest(rmID=rm_id)
    for name in names:
        new = request.new.add(applicationID=name, queueName="root.leaf", partitionName=partition)
        new.ugi.user = "bob"
    return request


def ask_request(
    *keys: str,
    application: str = "app",
    rm_id: str = "rm",
    memory: int = 1,
    partition: str = "",
    node_id: str = "",
) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID=rm_id)
    for key in keys:
        ask = request.allocations.add(allocationKey=key, applicationID=application, partitionName=partition)
        ask.nodeID = node_id
        ask.resourcePerAlloc.resources["memory"].value = memory
    return request


def release_request(key: str, why: si.TerminationType = si.STOPPED_BY_RM) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID="rm")
    request.releases.allocationsToRelease.add(applicationID="app", allocationKey=key, terminationType=why)
    return request


def configuration_request(text: str, rm_id: str = "rm") -> si.UpdateConfigurationRequest:
    return si.UpdateConfigurationRequest(rmID=rm_id, config=text)


def gang_request(total: int, timeout_ms: int) -> si.ApplicationRequest:
    request = application_request("app")
    request.new[0].placeholderAsk.resources["memory"].value = total
    request.new[0].executionTimeoutMilliSeconds = timeout_ms
    return request


def placeholder_request(key: str) -> si.AllocationRequest:
    request = ask_request(key)
    request.allocations[0].placeholder = True
    request.allocations[0].taskGroupName = "tasks"
    return request


def keys(count: int, start: str = "ask") -> list[str]:
    return [f"{start}-{number}" for number in range(count)]


def begin(
    scheduler: Scheduler,
    listener: Listener,
    *,
    rm_id: str = "rm",
    memory: int = 1000,
    configuration: str = ONE,
) -> None:
    """Register an RM, with a node and an application in each partition; wait until both are there."""
    scheduler.register(rm_id, listener, configuration=configuration)
    for name in ("default", "second") if configuration == TWO else ("default",):
        scheduler.update_node(node_request(f"node-{name}", rm_id=rm_id, memory=memory, partition=name))
        application = "app" if name == "default" else f"app-{name}"
        scheduler.update_application(application_request(application, rm_id=rm_id, partition=name))
        listener.wait_for(f"accepted node-{name}", f"accepted {application}")


def threads_of_ours() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("licorne")}


def placed_in(scheduler: Scheduler) -> int:
    """Return how many allocations there are, after one more turn of each partition that has work."""
    snapshot: Any = scheduler.snapshot()
    return sum(view.get("totalContainers", 0) for view in snapshot["partitions"])


def reserved_in(scheduler: Scheduler) -> int:
    """Return how many nodes are reserved."""
    snapshot: Any = scheduler.snapshot()
    return sum(node["isReserved"] for nodes in snapshot["nodes"].values() for node in nodes)


def actors_of(scheduler: Scheduler) -> int:
    engine = scheduler._engine
    assert isinstance(engine, ActorsEngine)
    return len(engine.dispatcher.actors())


@contextmanager
def running(*, check_direction: bool = False) -> Iterator[Scheduler]:
    """Give a scheduler that runs by itself, and look at what it leaves."""
    before = threads_of_ours()
    with Scheduler(check_direction=check_direction) as scheduler:
        yield scheduler
        if not scheduler._stopped:
            scheduler.validate()
    left = threads_of_ours() - before
    for thread in left:
        thread.join(WAIT_SECONDS)  # A link that was closed by its own callback ends when that returns.
    assert [] == [thread.name for thread in left if thread.is_alive()]


@pytest.fixture(autouse=True)
def complaints() -> Iterator[list[str]]:
    """Collect what the scheduler logs as errors; what is left at the end fails the test."""
    kept: list[str] = []

    def keep(message: Message) -> None:
        kept.append(f"{message.record['message']} {message.record['exception']}")

    sink = logger.add(keep, level="ERROR")
    logger.enable("licorne")
    yield kept
    logger.disable("licorne")
    logger.remove(sink)
    assert [] == kept


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """Give a scheduler that runs by itself."""
    with running() as scheduler:
        yield scheduler


@pytest.fixture
def listener() -> Listener:
    """Give a manager that only listens."""
    return Listener()


# ---------------------------------------------------------------------------------------- callbacks


def test_callbacks_come_on_one_thread_that_is_not_the_callers(
    scheduler: Scheduler, listener: Listener
) -> None:
    """An RM needs no lock of its own, and no call of it comes back before it has returned."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(100)))
    listener.wait_for_count("placed ", 100)

    assert ["licorne-rm-rm"] == [thread.name for thread in listener.threads]
    assert threading.current_thread() not in listener.threads


def test_placements_come_in_the_order_of_the_asks(scheduler: Scheduler, listener: Listener) -> None:
    """Also where they were made in several turns."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(300)))
    scheduler.update_allocation(ask_request(*keys(200, "more")))
    listener.wait_for_count("placed ", 500)

    assert keys(300) + keys(200, "more") == listener.all("placed ")


def test_what_becomes_of_an_application_comes_in_order(scheduler: Scheduler, listener: Listener) -> None:
    """Acceptance first, then its states, each before what is placed in it."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    scheduler.update_allocation(release_request("ask"))
    listener.wait_for("released ask STOPPED_BY_RM")

    started = ["accepted node-default", "accepted app", "app is Accepted", "app is Running", "placed ask"]
    assert started == listener.heard[:5]
    assert sorted(["app is Completing", "released ask STOPPED_BY_RM"]) == sorted(listener.heard[5:7])


def test_a_slow_callback_does_not_stall_another_manager(scheduler: Scheduler, listener: Listener) -> None:
    """Nor the caller, nor the scheduling of its own asks: only what it is told has to wait."""
    slow, gate = Listener(), Gate("placed")
    begin(scheduler, slow, rm_id="slow")
    begin(scheduler, listener)
    slow.react = gate.hold
    scheduler.update_allocation(ask_request(*keys(20), rm_id="slow"))
    assert gate.reached.wait(WAIT_SECONDS)

    scheduler.update_allocation(ask_request(*keys(100)))
    listener.wait_for_count("placed ", 100)
    assert ["ask-0"] == slow.all("placed ")
    gate.open()
    slow.wait_for_count("placed ", 20)


def test_a_callback_that_raises_stops_nothing(
    scheduler: Scheduler, listener: Listener, complaints: list[str]
) -> None:
    """The error is logged, and the next thing is told."""
    begin(scheduler, listener)

    def fail(text: str) -> None:
        raise ValueError(f"{text} on purpose")

    listener.react = fail
    scheduler.update_allocation(ask_request(*keys(5)))
    listener.wait_for_count("placed ", 5)
    scheduler.stop()

    assert 7 == len(complaints)  # five placements, and the application is Accepted and Running
    assert all("callback of RM rm failed" in complaint for complaint in complaints)
    complaints.clear()


# ------------------------------------------------------------------------------- calling back inside


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


def once(text: str, action: Callable[[], object]) -> Callable[[str], None]:
    """Make a reaction that acts the first time that it hears a text."""
    left = [action]

    def react(heard: str) -> None:
        if heard == text and left:
            left.pop()()

    return react


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
    """Its link is told to end while it runs; the new one goes on."""
    again = Listener()
    listener.react = once("placed ask-0", lambda: scheduler.register("rm", again, configuration=ONE))
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(100)))
    listener.wait_for("app is Failed")

    scheduler.update_node(node_request("node-default"))
    again.wait_for("accepted node-default")


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


# --------------------------------------------------------------------------------- two in one process


def test_two_schedulers_with_the_same_names_do_not_meet(scheduler: Scheduler, listener: Listener) -> None:
    """Managers, nodes, applications and asks of one are unknown to the other."""
    other = Listener()
    begin(scheduler, listener)
    with running() as second:
        begin(second, other)
        scheduler.update_allocation(ask_request(*keys(50)))
        second.update_allocation(ask_request(*keys(50, "other")))
        listener.wait_for_count("placed ", 50)
        other.wait_for_count("placed ", 50)

    assert keys(50) == listener.all("placed ")
    assert keys(50, "other") == other.all("placed ")


def test_the_end_of_one_scheduler_leaves_the_other_at_work(scheduler: Scheduler, listener: Listener) -> None:
    """Actors, timers and links are its own."""
    begin(scheduler, listener)
    with running() as second:
        begin(second, Listener())
    scheduler.update_allocation(ask_request(*keys(50)))

    listener.wait_for_count("placed ", 50)


# ------------------------------------------------------------------------------------------ the end


def test_a_stop_while_busy_returns(scheduler: Scheduler, listener: Listener, complaints: list[str]) -> None:
    """With thousands of asks unplaced; the fixture finds that no thread is left."""
    begin(scheduler, listener, memory=100_000)
    for number in range(20):
        scheduler.update_allocation(ask_request(*keys(200, f"wave-{number}")))
    listener.wait_for_count("placed ", 1)
    scheduler.stop()

    assert {1} == set(Counter(listener.all("placed ")).values())
    complaints.clear()  # Its actors end one after the other, and those that end late miss the others.


def test_what_was_decided_before_the_stop_is_told_before_it_returns(
    scheduler: Scheduler, listener: Listener
) -> None:
    """A placement that nobody hears of would be lost for ever."""
    gate = Gate("placed")
    begin(scheduler, listener)
    listener.react = gate.hold
    scheduler.update_allocation(ask_request(*keys(40)))
    assert gate.reached.wait(WAIT_SECONDS)
    assert any(placed_in(scheduler) == 40 for _ in range(100)), "each look is one more turn"
    opener = threading.Thread(target=gate.open)
    opener.start()
    scheduler.stop()
    opener.join()

    assert keys(40) == listener.all("placed ")


def test_to_stop_twice_is_to_stop_once(scheduler: Scheduler, listener: Listener) -> None:
    """And after it every call is refused, in words."""
    begin(scheduler, listener)
    scheduler.stop()
    scheduler.stop()

    for call in (
        partial(scheduler.update_node, node_request("late")),
        partial(scheduler.update_configuration, configuration_request(TWO)),
        partial(scheduler.register, "late", listener),
    ):
        with pytest.raises(RequestError, match="the scheduler has been stopped"):
            call()


# ------------------------------------------------------------------------------------- many threads


def in_threads(*bodies: Callable[[], object]) -> None:
    """Run bodies at once, each on a thread of its own, and wait for all; raise what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(bodies))

    def run(body: Callable[[], object]) -> None:
        try:
            start.wait(WAIT_SECONDS)
            body()
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a caller hangs"
    for error in errors:
        raise error


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


def test_managers_that_submit_at_once_are_told_of_their_own(scheduler: Scheduler) -> None:
    """Each registers on a thread of its own and is served."""
    listeners = [Listener() for _ in range(4)]

    def work(number: int) -> None:
        begin(scheduler, listeners[number], rm_id=f"rm-{number}")
        scheduler.update_allocation(ask_request(*keys(30, f"ask-{number}"), rm_id=f"rm-{number}"))
        listeners[number].wait_for_count("placed ", 30)

    in_threads(*[partial(work, number) for number in range(4)])

    expected = [keys(30, f"ask-{number}") for number in range(4)]
    assert expected == [listener.all("placed ") for listener in listeners]


# ----------------------------------------------------------------- registration and configuration


def test_a_manager_that_registers_again_starts_afresh(scheduler: Scheduler, listener: Listener) -> None:
    """While it is busy: all that it had ends, and the same names are free again."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(500)))
    listener.wait_for_count("placed ", 1)
    again = Listener()
    begin(scheduler, again)

    assert 0 == placed_in(scheduler)
    assert "app is Failed" in listener.heard
    scheduler.update_allocation(ask_request(*keys(500)))
    again.wait_for_count("placed ", 500)


def test_registrations_at_once_take_turns(scheduler: Scheduler) -> None:
    """One of them stays; none hangs, and no link of the others either."""
    listeners = [Listener() for _ in range(4)]
    served = Gate("accepted node")
    served.open()
    for listener in listeners:
        listener.react = served.hold
    bodies = [partial(scheduler.register, "rm", listener, configuration=ONE) for listener in listeners]
    in_threads(*bodies)
    scheduler.update_node(node_request("node"))

    assert served.reached.wait(WAIT_SECONDS)
    assert 1 == sum("accepted node" in listener.heard for listener in listeners)


def test_what_an_earlier_registration_had_is_let_go(scheduler: Scheduler, listener: Listener) -> None:
    """Cluster and partition are all that remains."""
    for _ in range(3):
        begin(scheduler, listener)
        scheduler.update_allocation(ask_request("ask"))
        listener.wait_for("placed ask")
    scheduler.register("rm", listener, configuration=ONE)

    assert 2 == actors_of(scheduler)


def test_a_partition_is_removed_while_it_is_busy(scheduler: Scheduler, listener: Listener) -> None:
    """Its asks end with it, later ones are answered, and the other partition goes on."""
    begin(scheduler, listener, configuration=TWO)
    scheduler.update_allocation(ask_request(*keys(500), application="app-second", partition="second"))
    listener.wait_for_count("placed ", 1)
    scheduler.update_configuration(configuration_request(ONE))
    listener.wait_for("app-second is Failed")

    scheduler.update_allocation(ask_request("late", application="app-second", partition="second"))
    scheduler.update_allocation(ask_request("other"))
    reason = "Failed to find partition [rm]second, for application app-second and allocation late"
    listener.wait_for(f"rejected late: {reason}", "placed other")


@pytest.mark.parametrize("text", [BROKEN, "no: [yaml"])
def test_a_refused_configuration_leaves_everything_as_it_was(
    scheduler: Scheduler, listener: Listener, text: str
) -> None:
    """Whether it comes with an update or with another registration."""
    begin(scheduler, listener, configuration=TWO)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    before = scheduler.snapshot()

    with pytest.raises(RequestError, match="update of configuration failed: "):
        scheduler.update_configuration(configuration_request(text))
    with pytest.raises(RequestError, match="registration of RM failed: "):
        scheduler.register("rm", Listener(), configuration=text)
    assert before == scheduler.snapshot()
    scheduler.update_allocation(ask_request("next", application="app-second", partition="second"))
    listener.wait_for("placed next")


def test_a_refused_registration_leaves_no_manager_and_no_thread(
    scheduler: Scheduler, listener: Listener
) -> None:
    """As if it had never been tried."""
    before = threads_of_ours()
    with pytest.raises(RequestError, match="registration of RM failed: "):
        scheduler.register("rm", listener, configuration=BROKEN)

    assert before == threads_of_ours()
    with pytest.raises(RequestError, match="not registered"):
        scheduler.update_node(node_request("node"))


# ------------------------------------------------------------------------------------------ errors


def test_requests_of_an_unknown_manager_are_refused(scheduler: Scheduler) -> None:
    """The text names the request and the RM."""
    refusal = 'received {}, but RmID="nobody" not registered'
    with pytest.raises(RequestError, match=refusal.format("NodeRequest")):
        scheduler.update_node(node_request("node", rm_id="nobody"))
    with pytest.raises(RequestError, match=refusal.format("ApplicationRequest")):
        scheduler.update_application(application_request("app", rm_id="nobody"))
    with pytest.raises(RequestError, match=refusal.format("AllocationRequest")):
        scheduler.update_allocation(ask_request("ask", rm_id="nobody"))
    with pytest.raises(RequestError, match="RM nobody has no active partitions, make sure it is registered"):
        scheduler.update_configuration(configuration_request(ONE, rm_id="nobody"))


def test_what_is_sent_to_an_unknown_partition_is_answered(scheduler: Scheduler, listener: Listener) -> None:
    """Nodes, applications and asks, each in the words of the rules."""
    begin(scheduler, listener)
    scheduler.update_node(node_request("n", partition="no"))
    scheduler.update_application(application_request("a", partition="no"))
    scheduler.update_allocation(ask_request("k", partition="no"))

    listener.wait_for(
        "rejected n: failed to find partition [rm]no for new node n",
        "rejected a: Failed to add application a to partition [rm]no, partition doesn't exist",
        "rejected k: Failed to find partition [rm]no, for application app and allocation k",
    )


def test_what_names_an_unknown_application_or_node_is_answered(
    scheduler: Scheduler, listener: Listener
) -> None:
    """An ask is rejected; an update of a node that nobody knows has no answer, and no effect."""
    begin(scheduler, listener)
    update = node_request("nowhere")
    update.nodes[0].action = si.NodeInfo.DRAIN_NODE
    scheduler.update_node(update)
    scheduler.update_allocation(ask_request("ask", application="nobody"))
    scheduler.update_allocation(ask_request("existing", node_id="nowhere"))
    scheduler.update_node(node_request("node-default"))

    listener.wait_for(
        "rejected ask: failed to find application nobody",
        "rejected existing: failed to find node nowhere",
        "rejected node-default: failure while adding new node, node rejected with error: failed to add node "
        "node-default to partition [rm]default, error: partition [rm]default has an existing node "
        "node-default, node name must be unique",
    )
    assert 3 == len(listener.all("rejected "))


def test_a_scheduler_that_runs_by_itself_is_not_stepped(scheduler: Scheduler) -> None:
    """It has no virtual clock, and what it says is delivered by its own threads."""
    for step in (scheduler.deliver, scheduler.schedule, scheduler.run_until_idle, scheduler.next_deadline_ns):
        with pytest.raises(LicorneError, match="this scheduler runs by itself"):
            step()


def test_every_ask_between_the_actors_goes_down(listener: Listener) -> None:
    """Cluster, partition, application, node: checked in a busy scheduler, failures would be in the log."""
    with running(check_direction=True) as scheduler:
        begin(scheduler, listener, configuration=TWO)
        scheduler.update_allocation(ask_request(*keys(100)))
        scheduler.update_configuration(configuration_request(ONE))
        listener.wait_for_count("placed ", 100)
        scheduler.register("rm", listener, configuration=ONE)


# -------------------------------------------------------------------------------------- congestion


@pytest.fixture
def congested(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Gate, int]]:
    """Have 500 asks for an RM that takes in one placement and no more; give its gate and what is placed."""
    monkeypatch.setattr(rm_link, "BACKLOG_MAX", BACKLOG)
    gate = Gate("placed")
    begin(scheduler, listener, configuration=TWO)
    listener.react = gate.hold
    scheduler.update_allocation(ask_request("first"))
    assert gate.reached.wait(WAIT_SECONDS)
    scheduler.update_allocation(ask_request(*keys(500)))
    # Each look lets the partition have another turn, and twenty turns would be enough for all asks.
    *_, placed = [placed_in(scheduler) for _ in range(20)]
    yield gate, placed
    gate.open()
    if not scheduler._stopped:
        listener.wait_for_count("placed ", 501)  # So that the end does not meet it at work.


def test_placing_pauses_while_the_manager_is_far_behind(congested: tuple[Gate, int]) -> None:
    """Once more waits for it than the bound allows, nothing is placed for it beyond one turn's worth."""
    _, placed = congested

    assert BACKLOG <= placed < 500


def test_placing_goes_on_when_the_manager_has_caught_up(
    congested: tuple[Gate, int], scheduler: Scheduler, listener: Listener
) -> None:
    """Nobody has to ask for it again."""
    gate, _ = congested
    gate.open()
    listener.wait_for_count("placed ", 501)

    assert ["first", *keys(500)] == listener.all("placed ")
    assert 501 == placed_in(scheduler)


def test_requests_of_a_manager_that_is_far_behind_are_taken(
    congested: tuple[Gate, int], scheduler: Scheduler, listener: Listener
) -> None:
    """And answered, when it listens again."""
    gate, placed = congested
    scheduler.update_application(application_request("late"))

    assert placed == placed_in(scheduler)
    gate.open()
    listener.wait_for("accepted late")


@pytest.mark.usefixtures("congested")
def test_another_manager_does_not_notice_the_congestion(scheduler: Scheduler) -> None:
    """Its own asks are placed at once."""
    other = Listener()
    begin(scheduler, other, rm_id="other")
    scheduler.update_allocation(ask_request(*keys(20), rm_id="other"))

    other.wait_for_count("placed ", 20)


# --------------------------------------------------------------------------------------- real time


def test_an_ask_that_waits_for_room_is_reported_and_reserves_a_node(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two seconds, of which the ask says that it has waited more than one; then it gets the node."""
    monkeypatch.setattr(partition, "INSPECTION_DELAY_NS", SECOND_NS // 100)
    judge = Judge()
    begin(scheduler, judge, memory=3)
    scheduler.update_node(node_request("node", memory=3))
    scheduler.update_allocation(ask_request("left", "right", memory=2))
    judge.wait_for("placed left", "placed right")
    late = ask_request("late", memory=2)
    late.allocations[0].allocationTags["creationTime"] = str(scheduler.now_ns() // SECOND_NS - 1)
    scheduler.update_allocation(late)

    judge.wait_for("waiting late", "asked to reserve for late")
    assert 1 == reserved_in(scheduler)
    scheduler.update_allocation(release_request("left"))
    judge.wait_for("placed late")
    assert 0 == reserved_in(scheduler)


def test_an_application_completes_in_real_time(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When nothing more has come for it in half a minute, which is shorter here."""
    monkeypatch.setitem(application_life._STATE_TIMEOUT_NS, ApplicationState.COMPLETING, SECOND_NS // 20)
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    scheduler.update_allocation(release_request("ask"))

    listener.wait_for("app is Completing", "app is Completed")


def test_placeholders_time_out_in_real_time(scheduler: Scheduler, listener: Listener) -> None:
    """A gang of which only one holder could be placed gives it back after the time that it said."""
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node", memory=1))
    scheduler.update_application(gang_request(total=2, timeout_ms=50))
    scheduler.update_allocation(placeholder_request("holder"))

    listener.wait_for("placed holder", "released holder TIMEOUT", "app is Resuming")


# ---------------------------------------------------------------------------------- what was found


def test_timers_of_an_earlier_registration_do_not_reach_the_next_one() -> None:
    """An application of the same name starts its time anew; on the virtual clock."""
    scheduler, listener = Scheduler(engine="direct"), Listener()
    start_ns = scheduler.now_ns()
    for begun_ns in (0, 50 * SECOND_NS):
        scheduler.advance_to(start_ns + begun_ns)
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.update_node(node_request("node"))
        scheduler.update_application(gang_request(total=2, timeout_ms=60_000))
        scheduler.update_allocation(placeholder_request("holder"))
        scheduler.run_until_idle()
    scheduler.advance_to(start_ns + 61 * SECOND_NS)

    assert "released holder TIMEOUT" not in listener.heard


@pytest.mark.parametrize("change", ["registration", "removal"])
def test_what_arrives_while_its_partition_ends_is_answered(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """A request that was sent between the end of the partition and the news of it."""
    begin(scheduler, listener, configuration=TWO)
    enter = scheduler._managers.enter
    errors: list[Exception] = []

    def late(*args: Any) -> Any:
        try:
            scheduler.update_application(application_request("late", partition="second"))
        except Exception as error:  # noqa: BLE001 - none is expected
            errors.append(error)
        return enter(*args)

    monkeypatch.setattr(scheduler._managers, "enter", late)
    if change == "registration":
        scheduler.register("rm", listener, configuration=TWO)
    else:
        scheduler.update_configuration(configuration_request(ONE))

    assert [] == errors
    assert listener.hears(lambda: any(" late" in text for text in listener.heard), seconds=1)


def test_a_request_that_meets_the_stop_is_refused_in_words(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the scheduler still ran when the request came in."""
    begin(scheduler, listener)
    monkeypatch.setattr(scheduler, "_reader", StoppingReader(scheduler))

    with pytest.raises(LicorneError):
        scheduler.update_application(application_request("late"))


class StoppingReader:
    """Stops the scheduler while a request is read."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._reader = scheduler._reader

    def application_submissions(self, request: si.ApplicationRequest) -> tuple[ApplicationSubmission, ...]:
        self._scheduler.stop()
        return self._reader.application_submissions(request)


def test_a_congestion_may_end_after_the_partitions_have(
    congested: tuple[Gate, int], scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link delivers the rest and ends as usual."""
    gate, _ = congested
    link = scheduler._managers.get("rm", "test").link
    assert link is not None
    close = link.close

    def open_and_close() -> None:
        gate.open()
        close()

    monkeypatch.setattr(link, "close", open_and_close)
    scheduler.stop()


def test_slow_predicates_do_not_stall_another_manager(scheduler: Scheduler, listener: Listener) -> None:
    """Also where as many partitions wait for the RM's judgement as there are workers."""
    slow, gate = Judge(), Gate("asked")
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
        listener.hears(lambda: bool(seen), seconds=1)
        returned.append(True)

    listener.react = once("accepted node-default", register_again)
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node-default"))
    listener.wait_for("accepted again")
    assert listener.hears(lambda: bool(seen), seconds=WAIT_SECONDS)

    assert [True] == seen


def test_a_predicate_that_stops_the_scheduler_does_not_leave_it_half_stopped(
    scheduler: Scheduler,
) -> None:
    """Refused or not: whoever stops it from outside afterwards finds no thread left."""
    before = threads_of_ours()
    judge = Judge()
    judge.react = once("asked to place ask", lambda: suppressed(scheduler.stop))
    begin(scheduler, judge)
    scheduler.update_allocation(ask_request("ask"))
    judge.wait_for("asked to place ask")
    scheduler.stop()

    left = threads_of_ours() & before
    scheduler._stopped = False
    scheduler.stop()
    assert set() == left


def test_a_predicate_that_registers_again_is_refused_and_changes_nothing(scheduler: Scheduler) -> None:
    """The partition that asked it cannot end meanwhile; the RM stays registered as it was."""
    judge = Judge()
    register = partial(scheduler.register, "rm", judge, configuration=ONE)
    judge.react = once("asked to place ask", lambda: suppressed(register))
    begin(scheduler, judge)
    scheduler.update_allocation(ask_request("ask"))
    judge.wait_for("asked to place ask")

    scheduler.update_configuration(configuration_request(TWO))
    scheduler.update_node(node_request("node", partition="second"))
    judge.wait_for("accepted node", "placed ask")


def suppressed(call: Callable[[], object]) -> None:
    """Make a call that may be refused."""
    with suppress(LicorneError):
        call()
