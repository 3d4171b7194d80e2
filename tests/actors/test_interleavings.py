"""The runtime under controlled threads: another may go on after each bytecode, and none does harm."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest
from pykka import ActorDeadError

from licorne.actors.runtime import actor as actor_module
from licorne.actors.runtime import dispatcher as dispatcher_module
from licorne.actors.runtime import future as future_module
from licorne.actors.runtime import mailbox, pool, reference, waiting
from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError
from licorne.actors.runtime.future import PooledFuture
from licorne.actors.runtime.reference import AnyRef, DeadLetter, PooledRef
from licorne.proxy.fuzz.world.standard_parts import ControlledLock
from licorne.proxy.fuzz.world.thread_control import RandomPicker, ThreadControl

if TYPE_CHECKING:
    from _typeshed import TraceFunction


_POINTS_MAX: Final = 1_000_000


class BytecodeControl:
    """One run of some functions at the same time.

    Args:
        seed: Decides who runs next.
        files: Where each bytecode is a point; elsewhere only locks and queues are.
        chance: How likely another thread goes on at a point.
    """

    def __init__(self, seed: int, files: Collection[str], *, chance: float = 0.1) -> None:
        self._files = frozenset(files)
        self._errors: list[BaseException] = []
        picker = RandomPicker(random.Random(seed), chance)  # noqa: S311 - it plays, and keeps no secret
        self.control = ThreadControl(picker, points_max=_POINTS_MAX, on_error=self._errors.append)

    def run(self, *parts: Callable[[], None]) -> None:
        """Run functions to their ends, each on a thread, and raise the first error of any."""

        def main() -> None:
            threads = [threading.Thread(target=self._traced, args=(part,), daemon=True) for part in parts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        self.control.run(main)
        if self._errors:
            raise self._errors[0]

    def _traced(self, part: Callable[[], None]) -> None:
        sys.settrace(self._trace)
        try:
            part()
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: object) -> TraceFunction | None:
        """Follow a thread's frames, as `sys.settrace` has it."""
        if event == "call":
            if frame.f_code.co_filename not in self._files:
                return None
            frame.f_trace_opcodes = True
        elif event in ("opcode", "line"):
            self.control.point()
        return self._trace


pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose

MODULES = (actor_module, dispatcher_module, future_module, mailbox, pool, reference, waiting)
CHANCES = (0.01, 0.02, 0.05)
"""Rare switches let one thread do much between two steps of another; frequent ones mix fine steps."""
each_seed = pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(40), id="some seeds"),
        pytest.param(range(40, 4000), id="many seeds", marks=pytest.mark.soak),
    ],
)
with_and_without_worker = pytest.mark.parametrize("workers", [0, 1, 2])


Runtimes: TypeAlias = "Iterator[ControlledRuntime]"
"""One for each seed."""


@pytest.fixture
def workers() -> int:
    """Have no thread work for the dispatcher, where a test says nothing else."""
    return 0


@pytest.fixture
def runtimes(seeds: range, workers: int, monkeypatch: pytest.MonkeyPatch) -> Runtimes:
    """Give a runtime for each seed."""
    return (ControlledRuntime(seed, monkeypatch, workers=workers) for seed in seeds)


class Counter(PooledActor):
    """Notices when two of its messages overlap or when a sender's messages come out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.total = 0
        self.last: dict[str, int] = {}
        self.problems: list[str] = []

    def count(self, sender: str, serial: int) -> int:
        if self.inside:
            self.problems.append(f"{sender} {serial} overlaps another message")
        self.inside += 1
        if self.last.get(sender, -1) + 1 != serial:
            self.problems.append(f"{sender}: {serial} follows {self.last.get(sender)}")
        self.last[sender] = serial
        total = self.total
        self.total = total + 1
        self.inside -= 1
        return serial

    def count_below(self, below: list[PooledRef[Counter]], sender: str, serial: int) -> int:
        self.count(sender, serial)
        return below[0].call(Counter.count_below, below[1:], sender, serial) if below else serial

    def findings(self) -> tuple[int, list[str]]:
        return self.total, self.problems


class ControlledRuntime:
    """A dispatcher, and threads under control, some of which work for it."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch, *, workers: int = 0) -> None:
        self.seed = seed
        files = [__file__, *(str(module.__file__) for module in MODULES)]
        self._threads = BytecodeControl(seed, files, chance=CHANCES[seed % len(CHANCES)])
        for module in set(MODULES) - {actor_module, reference}:
            monkeypatch.setattr(module, "Lock", partial(ControlledLock, self._threads.control))
        self.dead: list[object] = []
        self.dispatcher = Dispatcher(workers=0, on_dead_letter=self._note)
        self._workers = workers
        self._playing: list[Callable[[], None]] = []

    def start(self, count: int) -> list[PooledRef[Counter]]:
        return [self.dispatcher.start(Counter) for _ in range(count)]

    def run(self, *parts: Callable[[], None]) -> None:
        """Run the parts with the workers beside them, and then what is left."""
        self._playing = list(parts)
        self._threads.run(*(partial(self._end, part) for part in parts), *[self._work] * self._workers)
        self.dispatcher.run_pending()

    def _end(self, part: Callable[[], None]) -> None:
        try:
            part()
        finally:
            self._playing.remove(part)

    def _work(self) -> None:
        while self._playing:
            self.dispatcher.run_pending()

    def _note(self, letter: DeadLetter) -> None:
        self.dead.append(letter.message)


@each_seed
@with_and_without_worker
def test_messages_of_one_actor_never_overlap_and_none_is_lost(runtimes: Runtimes) -> None:
    """Tells, inline asks and futures of several threads are handled one by one, in order of each sender."""

    def send(ref: PooledRef[Counter], name: str) -> None:
        ref.send(Counter.count, name, 0)
        assert 1 == ref.call(Counter.count, name, 1)
        ref.send(Counter.count, name, 2)
        later = ref.proxy().count(name, 3)
        assert 4 == ref.call(Counter.count, name, 4)
        assert 3 == later.get()

    for runtime in runtimes:
        (ref,) = runtime.start(1)

        runtime.run(partial(send, ref, "a"), partial(send, ref, "b"))

        assert (10, []) == ref.call(Counter.findings), f"seed {runtime.seed}"


@each_seed
@with_and_without_worker
def test_tells_that_come_while_the_actor_is_asked_inline_are_not_stranded(runtimes: Runtimes) -> None:
    """The thread that gives the actor up sees its messages; no thread waits for ever."""

    def call(ref: PooledRef[Counter], name: str) -> None:
        for serial in range(4):
            assert serial == ref.call(Counter.count, name, serial)

    def tell(ref: PooledRef[Counter], name: str) -> None:
        for serial in range(4):
            ref.send(Counter.count, name, serial)

    for runtime in runtimes:
        actor = Counter()
        ref = runtime.dispatcher.start(partial(_same, actor))

        runtime.run(partial(call, ref, "a"), partial(call, ref, "b"), partial(tell, ref, "c"))

        assert (12, []) == actor.findings(), f"seed {runtime.seed}"


@each_seed
@with_and_without_worker
def test_crossing_asks_down_a_line_all_end(runtimes: Runtimes) -> None:
    """Three levels asked from three threads at once, entered at every level: no thread waits for ever."""

    def ask(top: PooledRef[Counter], below: list[PooledRef[Counter]], name: str) -> None:
        for serial in range(2):
            assert serial == top.call(Counter.count_below, below, name, serial)

    for runtime in runtimes:
        first, second, node = runtime.start(3)

        runtime.run(
            partial(ask, first, [second, node], "a"),
            partial(ask, first, [node], "b"),
            partial(ask, second, [node], "c"),
        )

        assert (6, []) == node.call(Counter.findings), f"seed {runtime.seed}"


class Peer(PooledActor):
    """Asks the next one of a ring, through an inline ask or a future."""

    def __init__(self) -> None:
        super().__init__()
        self.next: PooledRef[Peer] | None = None
        self.asked = 0

    def link(self, following: PooledRef[Peer]) -> None:
        self.next = following

    def relay(self, hops: int, how: str) -> int:
        self.asked += 1
        if hops == 0:
            return 0
        assert self.next is not None
        if how == "call":
            return 1 + self.next.call(Peer.relay, hops - 1, how)
        answer: int = self.next.proxy().relay(hops - 1, how).get()
        return 1 + answer


@each_seed
@pytest.mark.parametrize("workers", [1])
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("how", ["call", "future"])
def test_a_ring_of_asks_raises_in_one_asker_and_is_answered_in_the_others(
    runtimes: Runtimes, size: int, how: str
) -> None:
    """Each thread holds its peer and asks the next: at most one ask closes the cycle, and it raises."""

    def ask(peer: PooledRef[Peer], outcomes: list[int | AskCycleError]) -> None:
        try:
            outcomes.append(peer.call(Peer.relay, 1, how))
        except AskCycleError as error:
            outcomes.append(error)

    closed = 0
    for runtime in runtimes:
        peers = [runtime.dispatcher.start(Peer) for _ in range(size)]
        for number, peer in enumerate(peers):
            peer.call(Peer.link, peers[(number + 1) % size])
        outcomes: list[int | AskCycleError] = []

        runtime.run(*(partial(ask, peer, outcomes) for peer in peers))

        errors = [outcome for outcome in outcomes if isinstance(outcome, AskCycleError)]
        closed += len(errors)
        assert (size, True) == (len(outcomes), len(errors) <= 1), f"seed {runtime.seed}"
        handled = sum(peer.call(lambda actor: actor.asked) for peer in peers)
        withdrawn = len(errors) if how == "call" else 0
        assert 2 * size - withdrawn == handled, f"seed {runtime.seed}"
    assert closed > 0, "no seed closed the ring"


def _same(actor: Counter) -> Counter:
    """Stand for a class, so that a test holds on to the actor."""
    return actor


@each_seed
@with_and_without_worker
def test_messages_that_race_with_a_stop_are_handled_or_answered(runtimes: Runtimes) -> None:
    """Every ask gets its answer or `ActorDeadError`; every accepted tell is handled or a dead letter."""

    def ask(ref: PooledRef[Counter], handled: list[str]) -> None:
        for serial in range(3):
            try:
                ref.call(Counter.count, "asker", serial)
                handled.append("asked")
            except ActorDeadError:
                return

    def tell(ref: PooledRef[Counter], accepted: list[str]) -> None:
        for serial in range(3):
            try:
                ref.send(Counter.count, "teller", serial)
                accepted.append("told")
            except ActorDeadError:
                return

    def stop(ref: AnyRef, stopped: list[bool]) -> None:
        stopped.append(ref.stop(block=True))

    for runtime in runtimes:
        actor = Counter()
        ref = runtime.dispatcher.start(partial(_same, actor))
        asked: list[str] = []
        told: list[str] = []
        stopped: list[bool] = []

        runtime.run(partial(ask, ref, asked), partial(tell, ref, told), partial(stop, ref, stopped))

        refused = len(told) < 3  # a refused tell is reported as well
        assert [True] == stopped, f"seed {runtime.seed}"
        assert len(asked) + len(told) + refused == actor.total + len(runtime.dead), f"seed {runtime.seed}"
        assert ([], ()) == (actor.problems, runtime.dispatcher.actors()), f"seed {runtime.seed}"


@each_seed
def test_two_stops_at_once_both_end_and_on_stop_runs_once(runtimes: Runtimes) -> None:
    """The second caller learns that the actor was being stopped, or had stopped."""

    class Mortal(PooledActor):
        deaths = 0

        def on_stop(self) -> None:
            type(self).deaths += 1

    def stop(ref: AnyRef, stopped: list[bool]) -> None:
        stopped.append(ref.stop(block=True))

    for runtime in runtimes:
        ref = runtime.dispatcher.start(Mortal)
        stopped: list[bool] = []
        Mortal.deaths = 0

        runtime.run(*[partial(stop, ref, stopped)] * 3)

        assert (3, True, 1) == (len(stopped), True in stopped, Mortal.deaths), f"seed {runtime.seed}"


@each_seed
def test_a_hook_runs_once_however_many_threads_get_its_future(runtimes: Runtimes) -> None:
    """Concurrent getters of a mapped future share one computation."""

    def get(mapped: PooledFuture[int], values: list[int]) -> None:
        values.append(mapped.get())

    def compute(computed: list[int], value: int) -> int:
        computed.append(value)
        return value + 1

    def keep(promise: PooledFuture[int]) -> None:
        promise.set(1)

    for runtime in runtimes:
        promise = PooledFuture[int]()
        computed: list[int] = []
        mapped = promise.map(partial(compute, computed))
        assert isinstance(mapped, PooledFuture)
        values: list[int] = []

        runtime.run(*[partial(get, mapped, values)] * 3, partial(keep, promise))

        assert ([1], [2, 2, 2]) == (computed, values), f"seed {runtime.seed}"


@each_seed
def test_a_hook_that_fails_once_is_run_again_by_one_of_the_getters(runtimes: Runtimes) -> None:
    """The failure is raised in one thread, and none of the others sleeps for ever."""

    def compute(runs: list[int], _timeout: float | None) -> int:
        runs.append(1)
        if len(runs) == 1:
            raise KeyError
        return len(runs)

    def get(future: PooledFuture[int], values: list[int]) -> None:
        try:
            values.append(future.get())
        except KeyError:
            values.append(0)

    def compute_later(future: PooledFuture[int], runs: list[int]) -> None:
        future.set_get_hook(partial(compute, runs))

    for runtime in runtimes:
        future, runs, values = PooledFuture[int](), list[int](), list[int]()

        runtime.run(*[partial(get, future, values)] * 3, partial(compute_later, future, runs))

        assert ([1, 1], [0, 2, 2]) == (runs, sorted(values)), f"seed {runtime.seed}"


@each_seed
@pytest.mark.parametrize("workers", [1])
def test_an_actor_that_starts_handles_what_was_sent_before_and_meanwhile(runtimes: Runtimes) -> None:
    """A reference that got out of `__init__` may be used at once; `on_start` still comes first."""

    class Starter(Counter):
        def on_start(self) -> None:
            self.last["sender"] = 0

    def start(runtime: ControlledRuntime, actor: Starter) -> None:
        runtime.dispatcher.start(partial(_same, actor))

    def send(ref: PooledRef[Starter]) -> None:
        ref.send(Counter.count, "sender", 1)
        assert 2 == ref.call(Counter.count, "sender", 2)

    for runtime in runtimes:
        actor = Starter()

        runtime.run(partial(start, runtime, actor), partial(send, actor.actor_ref))

        assert (2, []) == (actor.total, actor.problems), f"seed {runtime.seed}"
