"""Measure whether a well-behaved resource manager (RM) notices that a peer attacks its server.

`python tests/bench/attacks.py` starts `licorne serve` for each attack, has an RM ask for one unit after the
other at an even pace, and prints its latencies from ask to placement, before an attack and during it, in
turns. The attacker is a process of its own with the lowest priority, so that it takes little of the processor
from the server itself: the control, which only computes, shows how much.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import grpc
from rich.table import Table

from licorne import RemoteScheduler, ResourceManager
from licorne.proxy.base.terminal.standard_output import is_for_people, output_console, print_table
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si

OPEN: Final = "/licorne.v1.Session/Open"
ALLOCATIONS: Final = "/si.v1.Scheduler/UpdateAllocation"
REGISTER: Final = "/si.v1.Scheduler/RegisterResourceManager"
QUEUES: Final = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: leaf}]}]
"""
RATIO_MAX: Final = 2.0
_CONNECTIONS: Final = 200
_FULL_SECONDS: Final = 5
"""How long the buffers of an RM that does not read take to be full; until then it is one that never stops."""
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


# ------------------------------------------------------------------------------------------ the attacks


def control(_: str) -> Iterator[None]:
    """compute, far from the server: the control."""
    while True:
        sum(range(10_000))
        yield


def silent(address: str) -> Iterator[None]:
    """200 connections that say nothing."""
    connections = [_connection(address) for _ in range(_CONNECTIONS)]
    yield
    while True:
        readable, _, _ = select.select(connections, [], [], 1)
        for each in readable:
            if not each.recv(4096):  # The server has closed it.
                connections.remove(each)
                each.close()
                connections.append(_connection(address))


def slow(address: str) -> Iterator[None]:
    """200 connections that send a byte a second."""
    while True:
        connections = [_connection(address) for _ in range(_CONNECTIONS)]
        for position in range(len(_PREFACE)):
            for each in connections:
                _send(each, _PREFACE[position : position + 1])
            yield
            time.sleep(1)
        for each in connections:
            each.close()


def garbage(address: str) -> Iterator[None]:
    """Bytes that are no HTTP/2, on one connection after the other."""
    while True:
        with _connection(address) as connection:
            _send(connection, _PREFACE + b"\xff" * 1000)
            _read(connection)
        yield


def malformed(address: str) -> Iterator[None]:
    """Calls with bytes that are no message."""
    with _channel(address) as channel:
        method: Any = channel.unary_unary(REGISTER)
        while True:
            _fails(lambda: method(b"\xff\xff\xff"))
            yield


def unknown_numbers(address: str) -> Iterator[None]:
    """Nodes with an unknown action."""
    request = si.NodeRequest(rmID="attacker")
    request.nodes.add(nodeID="node", action=99)
    yield from _flood(address, v1.ManagerMessage(update_node=request))


def too_large(address: str) -> Iterator[None]:
    """Messages above the limit."""
    data = bytes(17 << 20)
    with _channel(address) as channel:
        method: Any = channel.unary_unary(REGISTER)
        while True:
            _fails(lambda: method(data))
            yield


def long_ids(address: str) -> Iterator[None]:
    """Ids of 1 MB."""
    yield from _flood(address, v1.ManagerMessage(update_allocation=_asks(1, key="x" * 1_000_000)))


def metadata(address: str) -> Iterator[None]:
    """Calls with 100 KiB of metadata."""
    with _channel(address) as channel:
        method: Any = channel.unary_unary(REGISTER)
        while True:
            _fails(lambda: method(b"", metadata=(("x-large", "x" * 100_000),)))
            yield


def hello(address: str) -> Iterator[None]:
    """200 sessions that say hello and nothing more."""
    channels = [_channel(address) for _ in range(_CONNECTIONS)]
    sessions = [_session(channel) for channel in channels]
    while sessions:
        yield
        time.sleep(1)


def small_streams(address: str) -> Iterator[None]:
    """Sessions that are opened and closed."""
    with _channel(address) as channel:
        while True:
            _session(channel).cancel()
            yield


def registrations(address: str) -> Iterator[None]:
    """An RM that registers again and again."""
    with _channel(address) as channel:
        method: Any = channel.unary_unary(REGISTER)
        while True:
            method(_registration().SerializeToString())
            yield


def reads_nothing(address: str) -> Iterator[None]:
    """An RM that sends and does not read, licorne.v1, when its buffers are full."""
    yield from _flood(address, v1.ManagerMessage(update_allocation=_asks(20)), reads=False)


def reads_no_stream(address: str) -> Iterator[None]:
    """An RM that sends and does not read, si.v1, when its buffers are full."""
    with _channel(address) as channel:
        register: Any = channel.unary_unary(REGISTER)
        register(_registration().SerializeToString())
        data = _asks(20).SerializeToString()
        method: Any = channel.stream_stream(ALLOCATIONS)
        stream = method(iter(lambda: data, None))
        while stream.is_active():
            time.sleep(_FULL_SECONDS)
            yield


def endless(address: str) -> Iterator[None]:
    """An RM that never stops sending, and reads."""
    yield from _flood(address, v1.ManagerMessage(update_allocation=_asks(1)))


def snapshots(address: str) -> Iterator[None]:
    """Questions for everything, one after the other."""
    with _channel(address) as channel:
        question = v1.ManagerMessage(call=2, question=v1.Question(snapshot=v1.Snapshot()))
        session = _session(channel, (question.SerializeToString() for _ in iter(int, 1)))
        for _ in session:
            yield


ATTACKS: Final[tuple[Callable[[str], Iterator[None]], ...]] = (
    control,
    silent,
    slow,
    garbage,
    malformed,
    unknown_numbers,
    too_large,
    long_ids,
    metadata,
    hello,
    small_streams,
    registrations,
    reads_nothing,
    reads_no_stream,
    endless,
    snapshots,
)


def _connection(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


def _send(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # The server has closed it, as it should.
        connection.sendall(data)


def _read(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(4096):
            pass


def _channel(address: str) -> grpc.Channel:
    return grpc.insecure_channel(address, options=_OPTIONS)


def _fails(call: Callable[[], object]) -> None:
    try:
        call()
    except grpc.RpcError:
        return
    raise AssertionError("the server takes what it should refuse")


def _registration() -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(rmID="attacker", policyGroup="queues", config=QUEUES)


def _asks(count: int, key: str = "ask") -> si.AllocationRequest:
    """Return asks of an application that is not there: each is rejected."""
    request = si.AllocationRequest(rmID="attacker")
    for number in range(count):
        request.allocations.add(allocationKey=f"{key}-{number}", applicationID="unknown")
    return request


def _session(channel: grpc.Channel, messages: Iterator[bytes] | None = None) -> Any:
    """Open a session, which sends these messages behind its greeting."""
    ended = threading.Event()

    def sending() -> Iterator[bytes]:
        yield v1.ManagerMessage(call=1, hello=v1.Hello()).SerializeToString()
        if messages is not None:
            yield from messages
        ended.wait()

    method: Any = channel.stream_stream(OPEN)
    stream = method(sending())
    stream.add_callback(ended.set)
    next(stream)
    return stream


def _flood(address: str, message: v1.ManagerMessage, *, reads: bool = True) -> Iterator[None]:
    """Register an RM, and send the same message for ever."""

    def sending() -> Iterator[bytes]:
        yield v1.ManagerMessage(register=v1.Registration(request=_registration())).SerializeToString()
        data = message.SerializeToString()
        while True:
            yield data

    with _channel(address) as channel:
        session = _session(channel, sending())
        while session.is_active():
            if reads:
                next(session)
            else:
                time.sleep(_FULL_SECONDS)
            yield


# ---------------------------------------------------------------------------------- what is measured


class Measured(ResourceManager):
    """A well-behaved RM: it asks for one unit after the other, and releases what it gets.

    Args:
        scheduler: The server.
        per_second: How many asks it sends a second.
    """

    def __init__(self, scheduler: RemoteScheduler, per_second: float) -> None:
        self._scheduler = scheduler
        self._period = 1 / per_second
        self._accepted: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._asked: dict[str, float] = {}
        self._took: list[float] = []
        self._count = 0
        scheduler.register("good", self, configuration=QUEUES)
        node = si.NodeRequest(rmID="good")
        new = node.nodes.add(nodeID="node", action=si.NodeInfo.CREATE)
        new.schedulableResource.resources["vcore"].value = 1_000_000
        scheduler.update_node(node)
        application = si.ApplicationRequest(rmID="good")
        application.new.add(applicationID="app", queueName="root.leaf").ugi.user = "ada"
        scheduler.update_application(application)
        for _ in range(2):
            self._accepted.get(timeout=10)

    def update_node(self, response: si.NodeResponse) -> None:
        """Note that the node is there."""
        for entry in response.accepted:
            self._accepted.put(entry.nodeID)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Note that the application is there."""
        for entry in response.accepted:
            self._accepted.put(entry.applicationID)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Note how long each placement took, and release it."""
        now = time.perf_counter()
        if response.new:
            request = si.AllocationRequest(rmID="good")
            for entry in response.new:
                self._took.append(now - self._asked.pop(entry.allocationKey))
                request.releases.allocationsToRelease.add(
                    applicationID="app",
                    allocationKey=entry.allocationKey,
                    terminationType=si.STOPPED_BY_RM,
                )
            self._scheduler.update_allocation(request)

    def run(self, seconds: float) -> list[float]:
        """Ask for so long; return how long each placement took, in seconds, sorted."""
        self._took = []
        begin = time.perf_counter()
        sent = 0
        while (now := time.perf_counter()) < begin + seconds:
            due = begin + sent * self._period
            if now < due:
                time.sleep(due - now)
            sent += 1
            self._count += 1
            request = si.AllocationRequest(rmID="good")
            ask = request.allocations.add(allocationKey=f"ask-{self._count}", applicationID="app")
            ask.resourcePerAlloc.resources["vcore"].value = 1
            self._asked[ask.allocationKey] = time.perf_counter()
            self._scheduler.update_allocation(request)
        last = time.perf_counter() + 10
        while self._asked and time.perf_counter() < last:
            time.sleep(0.01)
        if self._asked:
            raise AssertionError(f"{len(self._asked)} of {sent} asks were not placed")
        return sorted(self._took)


@dataclass(frozen=True, slots=True)
class Row:
    """What one attack did."""

    name: str
    before: Sequence[Sequence[float]]
    during: Sequence[Sequence[float]]
    """A list for each round, sorted."""
    resident_mib: tuple[float, float]
    """The memory of the server, before and at the end."""

    @property
    def ratio(self) -> float:
        """The p99 during the attack, as a multiple of that before."""
        return _percentile(self.during, 99) / _percentile(self.before, 99)


def _percentile(rounds: Sequence[Sequence[float]], percent: int) -> float:
    """Return the lower quartile of the rounds, in ms: other programs on the machine spoil some of them."""
    found = sorted(each[min(len(each) - 1, len(each) * percent // 100)] for each in rounds)
    return found[len(found) // 4] * 1_000


def measure(attack: Callable[[str], Iterator[None]], rounds: int, seconds: float, per_second: float) -> Row:
    """Run a server and an RM, and the attack for a while again and again."""
    before, during = [], []
    command = [sys.executable, "-m", "licorne", "serve", "--json", "--no-rest", "--address", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - our own
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["address"]
    try:
        with RemoteScheduler(address) as scheduler:
            good = Measured(scheduler, per_second)
            good.run(seconds / 2)
            resident = _resident_mib(server.pid)
            for _ in range(rounds):
                before.append(good.run(seconds))
                attacker = _attacker(attack.__name__, address)
                try:
                    during.append(good.run(seconds))
                finally:
                    attacker.kill()
                    attacker.wait()
            return Row(str(attack.__doc__), before, during, (resident, _resident_mib(server.pid)))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


def _attacker(name: str, address: str) -> subprocess.Popen[bytes]:
    """Start an attack, and return when it is under way."""
    command = [sys.executable, __file__, "--attack", name, "--address", address]
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own command
    assert attacker.stdout is not None
    if not attacker.stdout.readline():
        raise AssertionError(f"the attack {name} ended with status {attacker.wait()}")
    return attacker


def _resident_mib(process: int) -> float:
    with open(f"/proc/{process}/statm", encoding="ascii") as file:  # noqa: PTH123 - no file
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _attack(name: str, address: str) -> None:
    """Attack for ever; print a line when it is under way."""
    os.nice(19)
    (attack,) = [each for each in ATTACKS if each.__name__ == name]
    for number, _ in enumerate(attack(address)):
        if number == 0:
            print("under way", flush=True)
    raise AssertionError(f"the attack {name} has ended")


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tests/bench/attacks.py", description=__doc__)
    names = [each.__name__ for each in ATTACKS]
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"of {', '.join(names)}; all if none")
    parser.add_argument("--rounds", type=int, default=8, help="of each attack")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each of the two parts of a round")
    parser.add_argument("--per-second", type=float, default=200.0, help="asks of the well-behaved RM")
    parser.add_argument("--attack", choices=names, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.attack is not None:
        _attack(given.attack, given.address)
    table = Table(title="Ask to placement of a well-behaved RM, in ms", title_justify="left")
    headings = ("attack", "before p50", "p99", "during p50", "p99", "p99 ratio", "server's memory, MiB")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "attack" else "right")
    for attack in ATTACKS:
        if not given.attacks or attack.__name__ in given.attacks:
            row = measure(attack, given.rounds, given.seconds, given.per_second)
            figures = [_percentile(run, percent) for run in (row.before, row.during) for percent in (50, 99)]
            style = "green" if row.ratio <= RATIO_MAX else "red"
            table.add_row(
                row.name.rstrip("."),
                *(f"{figure:.2f}" for figure in figures),
                f"[{style}]{row.ratio:.2f}[/]",
                "{:.0f} -> {:.0f}".format(*row.resident_mib),
            )
            print(attack.__name__, file=sys.stderr)
    print_table(table, output_console(), plain=not is_for_people())


if __name__ == "__main__":
    main(sys.argv[1:])
