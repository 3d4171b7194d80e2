"""The runtime under load from many threads.

Every scenario runs with two workers and with one under constant thread switches; `-m soak` runs the same for
minutes. What chance does not meet is in `test_interleavings.py`.
"""

from __future__ import annotations

import random
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

import pytest
from pykka import ActorDeadError, Future
from pykka.messages import ProxyCall

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError, MailboxFullError
from licorne.actors.runtime.reference import DeadLetter, Invocation, PooledRef
from licorne.actors.runtime.waiting import WAIT_GRAPH

pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose

HANG_SECONDS = 300
"""A thread that has not ended after this time hangs; the stacks of all threads are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How hard a scenario is run."""

    dispatcher: Dispatcher
    scale: int
    dead: list[DeadLetter]

    def randoms(self, count: int) -> list[random.Random]:
        return [random.Random(number) for number in range(count)]  # noqa: S311 - it chooses tests, not secrets


@pytest.fixture(
    params=[
        pytest.param((2, 1, None), id="two workers"),
        pytest.param((1, 1, 1e-6), id="one worker, eager switches"),
        pytest.param((0, 15, 1e-6), id="long, no worker", marks=pytest.mark.soak),
        pytest.param((1, 15, None), id="long, one worker", marks=pytest.mark.soak),
        pytest.param((3, 15, 1e-6), id="long, eager switches", marks=pytest.mark.soak),
    ]
)
def load(request: pytest.FixtureRequest) -> Iterator[Load]:
    """Give a dispatcher and a scale, and find a hang."""
    workers, scale, switch_interval = request.param
    dead: list[DeadLetter] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(switch_interval or before)
    dispatcher = Dispatcher(workers=workers, name="stress", on_dead_letter=dead.append)
    try:
        yield Load(dispatcher=dispatcher, scale=scale, dead=dead)
        assert {} == WAIT_GRAPH._waits
    finally:
        sys.setswitchinterval(before)
        dispatcher.shutdown(timeout_seconds=HANG_SECONDS if workers else None)


def together(*parts: Callable[[], None]) -> None:
    """Run the parts on a thread each and raise the first error of any."""
    errors: list[BaseException] = []

    def run(part: Callable[[], None]) -> None:
        try:
            part()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(part,), daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
        if thread.is_alive():
            pytest.fail("a thread hangs:\n" + all_stacks())
    if errors:
        raise errors[0]


def all_stacks() -> str:
    return "\n".join("".join(traceback.format_stack(frame)) for frame in sys._current_frames().values())


class Serial(PooledActor):
    """Notices when two of its messages overlap or when a sender's messages come out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.total = 0
        self.last: Counter[str] = Counter()
        self.problems: list[str] = []

    def hit(self, sender: str, serial: int) -> int:
        self.inside += 1
        if self.inside != 1:
            self.problems.append(f"{self.inside} messages at once")
        total = self.total
        self.last[sender] += 1
        if self.last[sender] != serial:
            self.problems.append(f"{sender}: {serial} came as number {self.last[sender]}")
        self.total = total + 1
        self.inside -= 1
        return serial

    def findings(self) -> tuple[int, list[str]]:
        return self.total, self.problems


def test_messages_are_serial_in_order_and_complete(load: Load) -> None:
    """Six threads mix tells, inline asks, futures, proxies and deadlines on five actors."""
    targets = [load.dispatcher.start(Serial) for _ in range(5)]
    proxies = [target.proxy() for target in targets]
    each, workers = 4000 * load.scale, load.dispatcher._pool.thread_count()

    def send(number: int, rng: random.Random) -> None:
        sender, serials = f"sender {number}", [0] * len(targets)
        pending: list[tuple[Future[int], int]] = []
        for _ in range(each):
            which = min(rng.randrange(8), len(targets) - 1)  # the last one is hot
            serials[which] += 1
            serial, way = serials[which], rng.randrange(7)
            if way <= 1:
                targets[which].send(Serial.hit, sender, serial)
            elif way <= 3:
                assert serial == targets[which].call(Serial.hit, sender, serial)
            elif way == 4:
                assert serial == proxies[which].hit(sender, serial).get()
            elif way == 5 and workers:
                message = ProxyCall(("hit",), (sender, serial), {})
                assert serial == targets[which].ask(message, timeout=HANG_SECONDS)
            else:
                pending.append((proxies[which].hit(sender, serial), serial))
        for future, serial in pending:
            assert serial == future.get()

    together(*(partial(send, number, rng) for number, rng in enumerate(load.randoms(6))))

    findings = [target.call(Serial.findings) for target in targets]
    assert 6 * each == sum(total for total, _ in findings)
    assert [] == [problem for _, problems in findings for problem in problems]


class Level(Serial):
    """A level of the line partition > application > node, that asks the next one down."""

    def __init__(self, below: list[PooledRef[Level]], name: str) -> None:
        super().__init__()
        self.below = below
        self.name = name
        self.serials: Counter[int] = Counter()

    def place(self, sender: str, serial: int, path: tuple[int, ...]) -> int:
        self.hit(sender, serial)
        if not path:
            return 1
        if path[0] < 0:
            raise KeyError(self.name)
        self.serials[path[0]] += 1
        below = self.below[path[0]]
        return 1 + below.call(Level.place, self.name, self.serials[path[0]], path[1:])


def test_nested_asks_from_many_threads_all_end(load: Load) -> None:
    """Three levels, entered at random, some asked to fail, with tells from outside in between."""
    start = load.dispatcher.start
    nodes = [start(Level, [], f"node {number}") for number in range(6)]
    applications = [start(Level, nodes, f"application {number}") for number in range(4)]
    partitions = [start(Level, applications, f"partition {number}") for number in range(2)]
    each, failed = 1500 * load.scale, Counter[str]()

    def ask(number: int, rng: random.Random) -> None:
        sender, serials = f"client {number}", [0, 0]
        for _ in range(each):
            which, fails = rng.randrange(2), rng.random() < 0.1
            serials[which] += 1
            path = (rng.randrange(4), -1 if fails else rng.randrange(6))
            try:
                assert 3 == partitions[which].call(Level.place, sender, serials[which], path)
                assert not fails
            except KeyError as error:
                assert fails
                failed[error.args[0]] += 1

    def tell(rng: random.Random) -> None:
        serials: Counter[int] = Counter()
        for _ in range(each):
            which = rng.randrange(6)
            serials[which] += 1
            nodes[which].send(Serial.hit, "outside", serials[which])

    rngs = load.randoms(6)
    together(*(partial(ask, number, rng) for number, rng in enumerate(rngs[:5])), partial(tell, rngs[5]))

    levels = [[ref.call(Serial.findings) for ref in refs] for refs in (partitions, applications, nodes)]
    assert [] == [problem for level in levels for _, problems in level for problem in problems]
    totals = [sum(total for total, _ in level) for level in levels]
    assert [5 * each, 5 * each, 6 * each - failed.total()] == totals


class Victim(Serial):
    """Counts its ends."""

    def __init__(self, ends: list[int]) -> None:
        super().__init__()
        self.ends = ends

    def on_stop(self) -> None:
        self.ends.append(self.total)


@dataclass(slots=True)
class Race:
    """What the threads around a stop have seen."""

    ref: PooledRef[Victim]
    answered: list[int]
    accepted: int = 0
    refused: int = 0

    def ask(self) -> None:
        """Ask until the actor is dead."""
        with suppress(ActorDeadError):
            while True:
                serial = len(self.answered) + 1
                self.answered.append(self.ref.call(Serial.hit, "asker", serial))

    def tell(self) -> None:
        """Tell until the actor is dead."""
        try:
            while self.accepted < 1000:
                self.ref.send(Serial.hit, "teller", self.accepted + 1)
                self.accepted += 1
        except ActorDeadError:
            self.refused = 1

    def stop(self, after: int, stopped: list[bool]) -> None:
        """Stop the actor once some asks were answered."""
        while len(self.answered) < after:
            pass
        stopped.append(self.ref.stop(block=True))


def test_asks_and_tells_that_race_with_stops_are_all_accounted_for(load: Load) -> None:
    """Each is answered, refused, handled or a dead letter; no thread hangs, and `on_stop` runs once."""
    ends: list[int] = []
    rounds = 30 * load.scale
    for number in range(rounds):
        load.dead.clear()
        race = Race(load.dispatcher.start(Victim, ends), [])
        stopped: list[bool] = []
        together(race.ask, race.tell, *[partial(race.stop, number % 4, stopped)] * 2)
        load.dispatcher.run_pending()

        assert (2, True, False) == (len(stopped), True in stopped, race.ref.is_alive())
        assert len(race.answered) + race.accepted == ends[-1] + len(load.dead) - race.refused
    assert rounds == len(ends)


class Peer(PooledActor):
    """One of a ring, that asks the next."""

    def __init__(self) -> None:
        super().__init__()
        self.next: PooledRef[Peer] | None = None

    def link(self, following: PooledRef[Peer]) -> None:
        self.next = following

    def relay(self, hops: int, gate: threading.Barrier | None = None) -> int:
        if gate is not None:
            gate.wait()
        if hops == 0:
            return 0
        assert self.next is not None
        return 1 + self.next.call(Peer.relay, hops - 1)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_cycles_raise_in_one_asker(load: Load, size: int) -> None:
    """On one thread, and from as many threads as actors at once: never a hang, at most one error."""

    def ask(peer: PooledRef[Peer], gate: threading.Barrier, outcomes: list[int]) -> None:
        try:
            outcomes.append(peer.call(Peer.relay, 1, gate))
        except AskCycleError:
            outcomes.append(-1)

    closed = 0
    for _ in range(40 * load.scale):
        peers = [load.dispatcher.start(Peer) for _ in range(size)]
        for number, peer in enumerate(peers):
            peer.call(Peer.link, peers[(number + 1) % size])
        with pytest.raises(AskCycleError):
            peers[0].call(Peer.relay, size)
        outcomes: list[int] = []
        gate = threading.Barrier(size)
        together(*(partial(ask, peer, gate, outcomes) for peer in peers))

        assert (size, True) == (len(outcomes), outcomes.count(-1) <= 1)
        closed += outcomes.count(-1)
        assert [0] * size == [peer.call(Peer.relay, 0) for peer in peers]
        for peer in peers:
            peer.stop()
    assert closed > 0, "no ring was ever closed by threads"


def test_crossing_asks_down_a_line_never_look_like_a_cycle(load: Load) -> None:
    """Six threads hammer a chain of six actors from random ends."""
    chain = [load.dispatcher.start(Peer) for _ in range(6)]
    for peer, following in pairwise(chain):
        peer.call(Peer.link, following)

    proxies = [peer.proxy() for peer in chain]

    def hammer(rng: random.Random) -> None:
        for _ in range(1500 * load.scale):
            first = rng.randrange(6)
            hops = rng.randrange(6 - first)
            assert hops == chain[first].call(Peer.relay, hops)
            first = rng.randrange(6)
            hops = rng.randrange(6 - first)
            assert hops == proxies[first].relay(hops).get()

    together(*(partial(hammer, rng) for rng in load.randoms(6)))


def test_a_flooded_mailbox_refuses_and_loses_nothing(load: Load) -> None:
    """What was accepted is handled, what was refused was not; control messages always pass."""

    class Narrow(Serial):
        mailbox_capacity: ClassVar[int | None] = 5

        def on_stop(self) -> None:
            ends.append(self.findings())

    ends: list[tuple[int, list[str]]] = []
    ref = load.dispatcher.start(Narrow)
    accepted: list[int] = []

    def flood(number: int) -> None:
        serial = 0
        for _ in range(6000 * load.scale):
            try:
                ref.send(Serial.hit, f"flood {number}", serial + 1)
                serial += 1
            except MailboxFullError:
                pass
        accepted.append(serial)

    def urge() -> None:
        for serial in range(3000 * load.scale):
            ref.tell(Invocation(Serial.hit, ("urgent", serial + 1), {}), control=True)
        accepted.append(3000 * load.scale)

    together(*(partial(flood, number) for number in range(4)), urge)

    stopped = ref.stop(block=False)  # always has room, and comes last
    load.dispatcher.run_pending()
    assert stopped.get()
    assert [(sum(accepted), [])] == ends


class Below(PooledActor):
    """Asks down with a deadline, so that no thread helps and workers must."""

    def __init__(self, below: PooledRef[Below] | None) -> None:
        super().__init__()
        self.below = below

    def down(self) -> int:
        if self.below is None:
            return 0
        answer: int = self.below.ask(Invocation(Below.down, (), {}), timeout=HANG_SECONDS)
        return 1 + answer


def test_nested_asks_with_deadlines_get_stand_ins(load: Load) -> None:
    """Chains of waiting workers, several at once: the pool grows as it must and shrinks again."""
    workers = load.dispatcher._pool.thread_count()
    if not workers:
        pytest.skip("an ask with a deadline needs a worker")

    def ask(rng: random.Random) -> None:
        refs: list[PooledRef[Below]] = []
        for _ in range(5):
            refs.append(load.dispatcher.start(Below, refs[-1] if refs else None))
        for _ in range(30 * load.scale):
            depth = rng.randrange(5)
            assert depth == refs[depth].call(Below.down)

    together(*(partial(ask, rng) for rng in load.randoms(3)))


def test_sturdy_actors_outlive_all_failures(load: Load) -> None:
    """Among messages sent by tell every failure is reported, and all others are handled, in order."""

    class Sturdy(Serial):
        survives_failures: ClassVar[bool] = True
        failed = 0

        def on_failure(self, *_: object) -> None:
            self.failed += 1

        def fail(self) -> None:
            raise KeyError

        def all_findings(self) -> tuple[int, int, list[str]]:
            return self.failed, self.total, self.problems

    ref = load.dispatcher.start(Sturdy)
    each = 2000 * load.scale

    def send(number: int) -> None:
        for serial in range(each):
            ref.send(Serial.hit, f"sender {number}", serial + 1)
            ref.send(Sturdy.fail)

    together(*(partial(send, number) for number in range(4)))

    assert (4 * each, 4 * each, []) == ref.call(Sturdy.all_findings)


def test_ten_thousand_actors_start_work_and_stop_without_a_thread_each(load: Load) -> None:
    """They get tells and asks from three threads at once, and then all are gone."""
    count = 10_000
    threads_before = threading.active_count()
    refs = [load.dispatcher.start(Serial) for _ in range(count)]

    def use(name: str) -> None:
        for ref in refs:
            ref.send(Serial.hit, name, 1)
        for ref in refs:
            assert 2 == ref.call(Serial.hit, name, 2)

    together(*(partial(use, name) for name in "abc"))

    assert threads_before >= threading.active_count()
    assert {(6, 0)} == {(total, len(problems)) for total, problems in (r.call(Serial.findings) for r in refs)}
    load.dispatcher.shutdown()
    assert ([], ()) == ([ref for ref in refs if ref.is_alive()], load.dispatcher.actors())
