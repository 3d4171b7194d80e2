"""Workers and resource managers (RMs) that stand still: others go on, and the door holds only so much."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, final

import httpx
import pytest
from support.door.cluster_layout import applications, configuration, nodes
from support.door.cluster_round import SECONDS, Round
from support.door.fake_sessions import LinkBench
from support.door.watched_workers import WatchedWorkers
from support.proxy.manager_requests import ONE, application_request, ask_request, keys, node_request
from support.waiting import WAIT_SECONDS, let_time_pass, stays, wait_until

from licorne import ResourceManager
from licorne.proxy.base.process import is_compiled
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.callbacks import WAITING_MAX
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.link import HELD_BYTES_MAX
from licorne.proxy.wire.door.workers import LinkState

MIB: Final = 1 << 20


def stop_worker(folder: Path, seconds: float, *, lost: bool, count: int) -> None:
    """Run a cluster; under load stop one worker for so long."""
    with ExitStack() as stack:
        played = Round(folder, 3, stack, count=count)
        played.cluster.wait_for_load(played.random.randrange(20, count // 4), "a")
        place = played.running("a")
        begun = played.cluster.begun("b")
        began = time.monotonic()
        played.workers.signal(place, signal.SIGSTOP)
        played.cluster.wait_for_load(min(50, count - begun), "b")
        went_on = time.monotonic() - began
        sys.stdout.write(f"the other partition went on after {went_on:.2f} s\n")
        if lost:
            played.running("a", place.worker_number)
        let_time_pass(max(began + seconds - time.monotonic(), 0.0))
        if not lost:
            assert played.running("a").worker_number == place.worker_number
        played.workers.signal(place, signal.SIGCONT)
        played.check()
        assert lost or went_on < seconds


@pytest.mark.soak
def test_a_worker_that_is_stopped_for_4_s_goes_on(tmp_path: Path) -> None:
    """It is not lost, and the other partition goes on meanwhile."""
    stop_worker(tmp_path, 4, lost=False, count=600)


@pytest.mark.soak
def test_a_worker_that_is_stopped_for_60_s_is_replaced(tmp_path: Path) -> None:
    """It gives no sign of life for 30 s."""
    stop_worker(tmp_path, 60, lost=True, count=3_000)


@pytest.mark.soak
def test_a_manager_registers_again_while_a_worker_is_stopped(tmp_path: Path) -> None:
    """The worker gives no answer within 20 s, and is replaced."""
    with ExitStack() as stack:
        played = Round(tmp_path, 4, stack, count=3_000)
        played.cluster.wait_for_load(500, "a")
        place = played.running("a")
        played.workers.signal(place, signal.SIGSTOP)
        played.cluster.kill()
        played.cluster.restart()
        played.running("a", place.worker_number)
        played.workers.signal(place, signal.SIGCONT)
        played.check()


@pytest.mark.skipif(is_compiled(), reason="machine code does not look its constants up")
def test_a_manager_waits_when_too_much_waits_for_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not longer than until the worker reads, or the next one has all."""
    monkeypatch.setattr("licorne.proxy.wire.door.link.HELD_BYTES_MAX", 2_000)
    bench = LinkBench(ONE)
    link = bench.link()
    link.start()
    link.started.result(WAIT_SECONDS)
    link.update_node(node_request("node", memory=1_000))
    link.update_application(application_request("app"))
    bench.listener.wait_for("accepted app")

    def send(prefix: str) -> threading.Thread:
        def run() -> None:
            for key in keys(100, prefix):
                link.update_allocation(ask_request(key))
                link.wait_for_room()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    bench.session(1).reads = False
    sender = send("one")
    wait_until(lambda: link.place.waiting > 10, "requests wait")
    assert stays(sender.is_alive, 0.1)
    assert link.place.waiting < 100
    bench.session(1).reads = True
    sender.join(WAIT_SECONDS)
    bench.listener.wait_for_count("placed one", 100)

    bench.session(1).reads = False
    sender = send("two")
    assert stays(sender.is_alive, 0.1)
    bench.session(1).lose()
    sender.join(WAIT_SECONDS)
    bench.listener.wait_for_count("placed two", 100)
    assert len(set(bench.listener.all("placed "))) == len(bench.listener.all("placed ")) == 200
    link.close()
    bench.stop()


@final
class Sleeper(ResourceManager):
    """An RM in the process of the door, which sleeps when it is told to, and notes when it hears of what."""

    def __init__(self) -> None:
        self.awake = threading.Event()
        self.awake.set()
        self.heard_at: dict[str, float] = {}
        self.doubled: list[str] = []
        self.accepted = 0

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.awake.wait(SECONDS)
        now = time.monotonic()
        for each in response.new:
            if each.allocationKey in self.heard_at:
                self.doubled.append(each.allocationKey)
            self.heard_at[each.allocationKey] = now

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.accepted += len(response.accepted)

    def update_node(self, _: si.NodeResponse) -> None:
        """All nodes are accepted."""


@contextmanager
def roomy_door(manager: Sleeper) -> Iterator[tuple[Door, WatchedWorkers]]:
    """Yield a door whose two partitions have room for everything."""
    workers = WatchedWorkers()
    with Door(workers) as door:
        door.register("rm", manager, configuration=configuration(["a", "b"]).replace("vcore", "unused"))
        for name in ("a", "b"):
            large = nodes(name)
            for node in large:
                node.schedulableResource.resources["vcore"].value = 10**9
            door.update_node(si.NodeRequest(rmID="rm", nodes=large))
            door.update_application(si.ApplicationRequest(rmID="rm", new=applications(name)))
        wait_until(lambda: manager.accepted == 12, "all is accepted", SECONDS)
        yield door, workers


def ask(door: Door, partition: str, *numbers: int) -> None:
    """Ask for something small."""
    request = si.AllocationRequest(rmID="rm")
    for number in numbers:
        entry = request.allocations.add(
            allocationKey=f"{partition}-{number}", applicationID=f"{partition}-app0", partitionName=partition
        )
        entry.resourcePerAlloc.resources["vcore"].value = 1
    door.update_allocation(request)


def memory_mib() -> int:
    """Return how much memory this process has, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 // MIB


def placed(door: Door) -> int:
    """Return how many allocations the worker of the first partition has, by its own REST interface."""
    place = door.places()[0]
    headers = {"Authorization": f"Bearer {place.token}"}
    url = f"http://{place.rest_address}/ws/v1/partitions"
    answer = httpx.get(url, headers=headers, timeout=SECONDS)
    return sum(view.get("totalContainers", 0) for view in answer.json())


@pytest.mark.soak
def test_a_manager_that_sleeps_congests_the_workers() -> None:
    """The door holds few callbacks; the worker places no more, and goes on when the RM is awake."""
    manager = Sleeper()
    with roomy_door(manager) as (door, _):
        manager.awake.clear()
        before = memory_mib()
        waiting = 0
        count = 120_000
        for number in range(count):
            ask(door, "a", number)
            let_time_pass(0.0003)  # So that most have a callback of their own.
            waiting = max(waiting, door.callbacks_waiting("rm"))
        grown = memory_mib() - before
        let_time_pass(5)
        at_worker = placed(door)
        sys.stdout.write(f"{waiting} callbacks waited, {grown} MiB more, {at_worker} of {count} placed\n")
        assert waiting <= WAITING_MAX + 8
        assert grown < 500
        assert at_worker < count
        manager.awake.set()
        wait_until(lambda: len(manager.heard_at) == count, "all is heard", SECONDS)
        assert [] == manager.doubled
        door.validate()


@pytest.mark.soak
def test_what_the_door_holds_for_a_stopped_worker_is_bounded() -> None:
    """The RM waits then; until the worker is lost and the next one has taken all."""
    manager = Sleeper()
    with roomy_door(manager) as (door, workers):
        place = door.places()[0]
        workers.signal(place, signal.SIGSTOP)
        before = memory_mib()
        sent = [0]

        def send() -> None:
            for start in range(0, 1_000_000, 100):
                ask(door, "a", *range(start, start + 100))
                sent[0] = start + 100
                if door.places()[0].worker_number != place.worker_number:
                    return

        sender = threading.Thread(target=send)
        sender.start()
        most = 0
        while sender.is_alive():
            let_time_pass(0.05)
            most = max(most, memory_mib() - before)
        sys.stdout.write(f"{sent[0]} asks were taken, the door grew by {most} MiB\n")
        assert most < 40 * HELD_BYTES_MAX // MIB
        wait_until(lambda: len(manager.heard_at) == sent[0], "all is placed", 2 * SECONDS)
        assert [] == manager.doubled
        assert LinkState.RUNNING is door.places()[0].state


@pytest.mark.soak
def test_the_other_partition_is_as_fast_while_a_worker_is_replaced() -> None:
    """Its p99 from ask to placement is at most twice as long, and a bit that a busy machine takes."""
    manager = Sleeper()

    def late_ms(door: Door, first: int, seconds: float) -> float:
        """Ask 200 times a second; return the p99 from ask to placement."""
        asked: dict[str, float] = {}
        for number in range(first, first + int(200 * seconds)):
            asked[f"b-{number}"] = time.monotonic()
            ask(door, "b", number)
            ask(door, "a", number)
            let_time_pass(0.005)
        wait_until(lambda: asked.keys() <= manager.heard_at.keys(), "all is placed", SECONDS)
        late = sorted(manager.heard_at[key] - at for key, at in asked.items())
        return late[len(late) * 99 // 100] * 1_000

    with roomy_door(manager) as (door, workers):
        ask(door, "a", *range(-2_000, 0))
        late_ms(door, 0, 2)
        quiet = late_ms(door, 100_000, 10)
        for _ in range(3):
            workers.signal(door.places()[0], signal.SIGKILL)
            killed = late_ms(door, 200_000 + 100_000 * _, 10)
            sys.stdout.write(f"p99 of the other partition: {quiet:.1f} ms, with a kill {killed:.1f} ms\n")
            assert killed <= 2 * quiet + 50
        assert [] == manager.doubled
