"""The callbacks of a simulated resource manager, and the effects of preemption that they show.

A claim keeps the resources of victims for an ask. So when all victims have ended, and the scheduler is idle,
the ask runs. It may not run if something else has changed in between; then nothing is checked.

The manager does not know the queue of a task in the scheduler. But in any queue, no task may be preempted
that has run for less than the smallest minimum run time of all queues.
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
"""The maximum time of messages in transit and of callbacks."""
FOR_ASK: Final = "preempting allocations to free up resources to run ask: "
"""The beginnings of the messages of releases for a guarantee, or for a priority in a queue."""
_RUNTIME: Final = "preemption.min-runtime"
_SCOPE: Final = "preemption.min-runtime.scope"


class World(Protocol):
    """The operations of the world that a manager needs."""

    def note(self, who: str, verb: str, message: Any) -> None:
        """Record a message from or to a manager."""

    def with_policies(self, configuration: Configuration) -> Configuration:
        """Return a configuration that names the policies under test, if any."""

    def scheduler_time_ns(self) -> int | None:
        """Return the time of the scheduler, `None` if it advances while callbacks are in progress."""

    def fail(self, error: BaseException) -> None:
        """Record a failure."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def new_door(self, rm_id: str, door: str, *, beside: bool = False) -> SchedulerAPI:
        """Return the scheduler for a new process: instead of a killed process, or in addition to it."""


class CallbackFault(Exception):  # noqa: N818 - raised by a faulty callback
    """Raised by a callback, as a fault of the resource manager."""


@final
class CallbackFaults:
    """The planned faults of the next callbacks of a manager, and the check that none overlap.

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
        """The thread of the running callback."""

    def end(self) -> None:
        """Plan no faults for callbacks from now on."""
        self.raises, self.blocks_seconds, self.registers = 0, 0.0, False

    @contextmanager
    def one_at_a_time(self, *, in_process: bool) -> Iterator[None]:
        """Run a callback; callbacks that are called in process never overlap.

        Raises:
            RecordError: Another callback runs on another thread.
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
        """Carry out the next fault of a callback, if there is one.

        Raises:
            CallbackFault: The fault is an exception.
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
    """The process of a manager that registered last, with the time: the others receive no more messages."""

    def __init__(self) -> None:
        self._last = 0, 0.0

    def registered(self, process: int) -> None:
        """Record that a process has registered."""
        self._last = process, time.monotonic()

    def is_over(self, process: int) -> bool:
        """Return whether a later process has registered, and all messages in transit have arrived since."""
        later, seconds = self._last
        return process < later and time.monotonic() > seconds + _UNDER_WAY_SECONDS


def _hear_late() -> None:
    raise RecordError("a process hears something, long after another one has taken over")


class _Callback(ResourceManager):
    """The callback of one registration; it is ignored after a later registration."""

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
        """Register again: the connection was lost, and is restored."""
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
"""The class of the callback: for no predicates, for answers at once, and for later answers."""


@final
class PreemptionEffects:
    """Follows all messages of resource managers, for stepped schedulers."""

    def __init__(self) -> None:
        self._ending: dict[tuple[str, str], set[str]] = {}
        """By manager and ask, the victims that have not ended."""
        self.checked = 0
        """The number of preemptions that had their effect."""

    def note(self, rm_id: str, verb: str, message: Any) -> None:
        """Handle a message from or to a manager."""
        if isinstance(message, si.AllocationResponse):
            self._hear(rm_id, message)
        elif isinstance(message, si.AllocationRequest) and not _changes_room(message):
            for allocation in message.allocations:  # Perhaps it now has another size.
                self._forget(rm_id, allocation.allocationKey)
            for release in message.releases.allocationsToRelease:
                self._forget(rm_id, release.allocationKey)
        elif verb in ("says", "registers", "is refused") or rm_id == "operator":
            self._ending.clear()

    def check(self, managers: Collection[str]) -> None:
        """Check that no ask of these managers waits whose victims have ended; the scheduler must be idle.

        Raises:
            RecordError: Such an ask waits.
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
        """Remove victims that have ended, and asks that are no longer requested."""
        self._ending.pop((rm_id, key), None)
        for (manager, _), victims in self._ending.items():
            if manager == rm_id:
                victims.discard(key)


def _changes_room(request: si.AllocationRequest) -> bool:
    """Return whether a request changes the room of nodes or queues, except by the end of work."""
    return any(allocation.nodeID for allocation in request.allocations)


@final
class RuntimeFloor:
    """Checks that no task is preempted before the smallest minimum run time of the configuration.

    Args:
        now_ns: The time of the scheduler, `None` if it advances while callbacks are in progress.
    """

    def __init__(self, now_ns: Callable[[], int | None]) -> None:
        self._now_ns = now_ns
        self._guarantee_ns = self._other_ns = 0
        self._placed_ns: dict[str, int] = {}
        """The placement times of running tasks, if known."""

    def registered(self, text: str) -> None:
        """Handle a configuration of `random_configuration`; running tasks are recovered with it."""
        self._placed_ns.clear()  # The scheduler counts from their recovery.
        self._guarantee_ns, self._other_ns = _floors(text)

    def configured(self, text: str) -> None:
        """Handle another configuration: queues that it has lost, and dynamic ones, keep their settings."""
        guarantee_ns, other_ns = _floors(text)
        self._guarantee_ns = min(self._guarantee_ns, guarantee_ns)
        self._other_ns = min(self._other_ns, other_ns)

    def hear(self, response: si.AllocationResponse) -> None:
        """Record placements, and check preemptions.

        Raises:
            RecordError: A task has not run long enough.
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
    # A queue that is made for an application has only the properties of a template.
    leaves += [
        {} for partition in partitions for rule in partition.get("placementrules", ()) if _makes_any(rule)
    ]
    binding = [0 if leaf.get(_SCOPE) == "guarantee" else _runtime_ns(leaf) for leaf in leaves]
    return min(map(_runtime_ns, leaves), default=0), min(binding, default=0)


def _makes_any(rule: dict[str, Any]) -> bool:
    """Return whether a placement rule makes the queue that an application asks for, at any place."""
    return rule["name"] == "provided" and bool(rule.get("create"))


def _leaves(queue: dict[str, Any], above: dict[str, str]) -> Iterator[dict[str, str]]:
    """Walk the properties of all leaves, and of the leaves that are made from templates."""
    properties = above | queue.get("properties", {})
    if queue.get("parent") and not queue.get("queues"):
        yield queue.get("childtemplate", {}).get("properties", {})
    elif not queue.get("queues"):
        yield properties
    for child in queue.get("queues", ()):
        yield from _leaves(child, properties)


def _runtime_ns(properties: dict[str, str]) -> int:
    return int(properties.get(_RUNTIME, "0s").removesuffix("s")) * 1_000_000_000
