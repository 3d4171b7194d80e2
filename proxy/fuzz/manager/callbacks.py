"""The callbacks of a simulated resource manager, and what it sees of preemption by them.

A claim keeps for an ask what its victims give back. So once all of them have ended, and the scheduler has
nothing more to do, the ask runs. It may not if something else has changed in between; then nothing is said.

It does not know in which queue the scheduler counts something. But whatever the queue is, nothing may be
preempted that has run for less than the smallest minimum run time of all queues.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from ....model.errors import LicorneError
from ....model.values.messages import PredicateQuestion, PreemptionQuestion
from ...si import si_pb2 as si
from ...si.api import ResourceManager, SchedulerAPI
from .cluster_record import RecordError

if TYPE_CHECKING:
    from ..configurations import Configuration
    from .manager import SimulatedManager

_UNDER_WAY_SECONDS: Final = 15.0
"""How long messages may be under way, and callbacks take."""
FOR_ASK: Final = "preempting allocations to free up resources to run ask: "
"""How the texts of releases for a guarantee, or for a priority in a queue, begin."""
_RUNTIME: Final = "preemption.min-runtime"
_SCOPE: Final = "preemption.min-runtime.scope"


class World(Protocol):
    """What a manager needs of the world that it is in."""

    def note(self, who: str, verb: str, message: Any) -> None:
        """Write down what a manager says or hears."""

    def with_policies(self, configuration: Configuration) -> Configuration:
        """Return a configuration that names the policies that are tried, if any are."""

    def scheduler_time_ns(self) -> int | None:
        """Return the time of the scheduler, `None` where it goes on while callbacks are under way."""

    def fail(self, error: BaseException) -> None:
        """Note that something is not as it must be."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def new_door(self, rm_id: str, door: str, *, beside: bool = False) -> SchedulerAPI:
        """Return the scheduler, as a process finds it that begins: in place of a killed one, or beside it."""


class CallbackFault(Exception):  # noqa: N818 - what a faulty callback raises
    """A callback raises it, as a fault of the resource manager."""


@final
class CallbackFaults:
    """The faults that the next callbacks of a manager are to have, and the check that none overlap.

    Args:
        sleep: Lets time pass.
    """

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self.raises = 0
        """How many of the next callbacks raise."""
        self.blocks_seconds = 0.0
        """How long the next callback takes."""
        self.registers = False
        """Whether the next callback registers the manager again."""
        self._caller: int | None = None
        """The thread on which a callback runs."""

    def end(self) -> None:
        """Let no callback have any fault from now on."""
        self.raises, self.blocks_seconds, self.registers = 0, 0.0, False

    @contextmanager
    def one_at_a_time(self, *, in_process: bool) -> Iterator[None]:
        """Surround a callback; one that is called in process never overlaps another one.

        Raises:
            RecordError: One runs on another thread.
        """
        caller, here = self._caller, threading.get_ident()
        if in_process and caller not in (None, here):
            raise RecordError("a callback begins while another one runs")
        self._caller = here
        try:
            yield
        finally:
            self._caller = caller

    def happen(self, verb: str, register: Callable[[], None]) -> None:
        """Have the next fault of a callback, if there is one.

        Raises:
            CallbackFault: It is to raise.
        """
        if self.registers:
            self.registers = False
            register()
        if self.blocks_seconds:
            seconds, self.blocks_seconds = self.blocks_seconds, 0.0
            self._sleep(seconds)
        if self.raises:
            self.raises -= 1
            raise CallbackFault(verb)


@final
class Takeover:
    """Which process of a manager has registered last, and when: the others hear nothing more."""

    def __init__(self) -> None:
        self._last = 0, 0.0

    def registered(self, process: int) -> None:
        """Note that a process has registered."""
        self._last = process, time.monotonic()

    def is_over(self, process: int) -> bool:
        """Return whether a later process has registered, and all that was under way has come since."""
        later, seconds = self._last
        return process < later and time.monotonic() > seconds + _UNDER_WAY_SECONDS


def _hear_late() -> None:
    raise RecordError("a process hears something, long after another one has taken over")


class _Callback(ResourceManager):
    """The callback of one registration; it is ignored when there is a later one."""

    def __init__(self, manager: SimulatedManager, process: int, epoch: int) -> None:
        self._manager = manager
        self._process = process
        self._epoch = epoch

    def _hear(self, verb: str, message: Any) -> None:
        manager = self._manager
        if manager.takeover.is_over(self._process):
            manager.take(verb, message, _hear_late)
        if manager.hears(self._epoch):
            manager.take(verb, message, lambda: getattr(manager, verb)(message))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._hear("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._hear("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._hear("update_node", response)

    def reconnected(self) -> None:
        """Register again: the connection was lost, and is back."""
        self._manager.reconnected(self._process)


class _PredicateCallback(_Callback):
    """The callback of a manager with predicates."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        if self._manager.refuses(args.allocationKey, args.nodeID):
            raise LicorneError("it does not fit")


class _DeferringCallback(_Callback):
    """The callback of a manager that answers its predicates later, on another thread."""

    def __init__(self, manager: SimulatedManager, process: int, epoch: int) -> None:
        super().__init__(manager, process, epoch)
        self._batches = 0

    def ask_predicates(self, questions: Sequence[PredicateQuestion], answer: Callable[[Any], None]) -> None:
        refuses = self._manager.refuses
        answers = {
            position: {
                node: "it does not fit"
                for node in question.node_ids
                if refuses(question.allocation_key, node)
            }
            for position, question in enumerate(questions)
        }
        self._batches += 1
        self._manager.answer_later(self._batches, lambda: answer(answers))

    def ask_preemption_predicates(
        self, questions: Sequence[PreemptionQuestion], answer: Callable[[Any], None]
    ) -> None:
        answers = {position: question.start_index for position, question in enumerate(questions)}
        self._batches += 1
        self._manager.answer_later(self._batches, lambda: answer(answers))


CALLBACKS: Final = {"not": _Callback, "at once": _PredicateCallback, "later": _DeferringCallback}
"""The class of the callback: for no predicates, for answers at once, and for later ones."""


@final
class PreemptionEffects:
    """Follows all that resource managers say and hear, for schedulers that run when they are stepped."""

    def __init__(self) -> None:
        self._ending: dict[tuple[str, str], set[str]] = {}
        """By manager and ask, the victims that have not ended."""
        self.checked = 0
        """How many preemptions had their effect."""

    def note(self, rm_id: str, verb: str, message: Any) -> None:
        """Take what a manager says or hears."""
        if isinstance(message, si.AllocationResponse):
            self._hear(rm_id, message)
        elif isinstance(message, si.AllocationRequest) and not _changes_room(message):
            for allocation in message.allocations:  # Perhaps it has another size now.
                self._forget(rm_id, allocation.allocationKey)
            for release in message.releases.allocationsToRelease:
                self._forget(rm_id, release.allocationKey)
        elif verb in ("says", "registers", "is refused") or rm_id == "operator":
            self._ending.clear()

    def check(self, managers: Collection[str]) -> None:
        """Check that no ask of some managers waits whose victims have ended; nothing else is to be done.

        Raises:
            RecordError: One does.
        """
        for (rm_id, ask), victims in self._ending.items():
            if rm_id in managers and not victims:
                raise RecordError(f"{ask} waits, and all that was preempted for it has ended")

    def _hear(self, rm_id: str, response: si.AllocationResponse) -> None:
        for allocation in response.new:
            if self._ending.pop((rm_id, allocation.allocationKey), None) is not None:
                self.checked += 1
        for rejected in response.rejectedAllocations:
            self._forget(rm_id, rejected.allocationKey)
        for release in response.released:
            if release.terminationType == si.PREEMPTED_BY_SCHEDULER and release.message.startswith(FOR_ASK):
                ask = release.message.removeprefix(FOR_ASK)
                self._ending.setdefault((rm_id, ask), set()).add(release.allocationKey)
            elif release.terminationType != si.PREEMPTED_BY_SCHEDULER:
                self._forget(rm_id, release.allocationKey)

    def _forget(self, rm_id: str, key: str) -> None:
        """Take out what has ended, or is no longer asked for."""
        self._ending.pop((rm_id, key), None)
        for (manager, _), victims in self._ending.items():
            if manager == rm_id:
                victims.discard(key)


def _changes_room(request: si.AllocationRequest) -> bool:
    """Return whether a request changes the room of nodes or queues by more than the end of work."""
    return any(allocation.nodeID for allocation in request.allocations)


@final
class RuntimeFloor:
    """Checks that nothing is preempted before the smallest minimum run time of the configuration.

    Args:
        now_ns: The time of the scheduler, `None` where it goes on while callbacks are under way.
    """

    def __init__(self, now_ns: Callable[[], int | None]) -> None:
        self._now_ns = now_ns
        self._guarantee_ns = self._other_ns = 0
        self._placed_ns: dict[str, int] = {}
        """When what runs was placed, where that is known."""

    def registered(self, text: str) -> None:
        """Take a configuration, as `random_configuration` writes it; what runs is recovered with it."""
        self._placed_ns.clear()  # The scheduler counts from when it hears of them.
        self._guarantee_ns, self._other_ns = _floors(text)

    def configured(self, text: str) -> None:
        """Take another configuration: queues that it has lost, and dynamic ones, are as they were before."""
        guarantee_ns, other_ns = _floors(text)
        self._guarantee_ns = min(self._guarantee_ns, guarantee_ns)
        self._other_ns = min(self._other_ns, other_ns)

    def hear(self, response: si.AllocationResponse) -> None:
        """Note what is placed, and check what is preempted.

        Raises:
            RecordError: Something has not run long enough.
        """
        now_ns = self._now_ns()
        if now_ns is None:
            return
        self._placed_ns |= {allocation.allocationKey: now_ns for allocation in response.new}
        for release in response.released:
            key, message = release.allocationKey, release.message
            floor_ns = self._guarantee_ns if message.startswith(FOR_ASK) else self._other_ns
            ran_ns = now_ns - self._placed_ns.get(key, -floor_ns)
            if release.terminationType == si.PREEMPTED_BY_SCHEDULER and ran_ns < floor_ns:
                raise RecordError(f"{key} is preempted after {ran_ns} ns, and no queue allows it so soon")


def _floors(text: str) -> tuple[int, int]:
    """Return the smallest minimum run time for a guarantee, and for other kinds of preemption."""
    partitions = json.loads(text)["partitions"]
    leaves = [leaf for partition in partitions for leaf in _leaves(partition["queues"][0], {})]
    # A queue that is made where an application asks for it has no property but those of a template.
    leaves += [
        {} for partition in partitions for rule in partition.get("placementrules", ()) if _makes_any(rule)
    ]
    binding = [0 if leaf.get(_SCOPE) == "guarantee" else _runtime_ns(leaf) for leaf in leaves]
    return min(map(_runtime_ns, leaves), default=0), min(binding, default=0)


def _makes_any(rule: dict[str, Any]) -> bool:
    """Return whether a placement rule makes the queue that an application asks for, wherever it is."""
    return rule["name"] == "provided" and bool(rule.get("create"))


def _leaves(queue: dict[str, Any], above: dict[str, str]) -> Iterator[dict[str, str]]:
    """Walk the properties of all leaves, and of those that are made of templates."""
    properties = above | queue.get("properties", {})
    if queue.get("parent") and not queue.get("queues"):
        yield queue.get("childtemplate", {}).get("properties", {})
    elif not queue.get("queues"):
        yield properties
    for child in queue.get("queues", ()):
        yield from _leaves(child, properties)


def _runtime_ns(properties: dict[str, str]) -> int:
    return int(properties.get(_RUNTIME, "0s").removesuffix("s")) * 1_000_000_000
