"""A run of a plan: a scheduler, its server, its managers, and the final comparison."""

from __future__ import annotations

import json
import random
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, final

from google.protobuf.json_format import MessageToDict

from ....actors.runtime import mailbox
from ....actors.services import rm_link
from ....model.applications.allocations import ApplicationAllocations
from ....model.applications.application import Application
from ....model.applications.asks import ApplicationAsks
from ....model.errors import LicorneError, error_text
from ....model.nodes.node import Node
from ...base.process import is_compiled
from ...core.recording.recording import Recording
from ...core.scheduler.scheduler import Scheduler
from ...si.api import SchedulerAPI
from ...wire.client import callbacks, connection
from ...wire.client.remote_scheduler import RemoteScheduler
from ...wire.server import buffers, remote_managers
from ...wire.server.access import Address
from ...wire.server.server import ServerSettings, ServerThread
from ..manager.callbacks import CallbackFault, PreemptionEffects
from ..manager.cluster_record import RecordError
from ..manager.manager import SimulatedManager
from ..manager.si_client import SiClient
from ..plans import DOOR, FILES, HOSTILE, OPERATOR, PROCESS, REFERENCE, SESSION, STREAMS, Plan, PlannedStep
from ..reference.world import ReferenceWorld
from ..tried_policies import TriedPolicies
from .ending import RecordedRun, RunEnding
from .files import FilesWorld
from .hostile import HostileWorld
from .memory_network import MemoryNetwork
from .standard_parts import replaced
from .thread_control import PriorityPicker, RandomPicker, ThreadControl

_ALONE: Final[dict[str, Callable[[Plan, Callable[[str, Any], None]], Any]]] = {
    REFERENCE: ReferenceWorld,
    HOSTILE: HostileWorld,
    FILES: FilesWorld,
}
"""Worlds without threads."""
_ADDRESS: Final = Address("127.0.0.1", 50_000)
_NARROW_BOUNDS: Final = (
    (rm_link, "BACKLOG_MAX", 6),
    (remote_managers, "BACKLOG_MAX", 6),
    (mailbox, "ENTRIES_MAX", 8),
    (connection, "SENDING_MAX", 2),
    (callbacks, "WAITING_MAX", 4),
    (buffers.Inbox.__init__, "__defaults__", (2, buffers.INBOX_BYTES_MAX)),
    (
        buffers.Outgoing.__init__,
        "__kwdefaults__",
        {"size_max": 3, "bytes_max": buffers.OUTGOING_BYTES_MAX},
    ),
)
"""The queues with few entries in narrow plans: a module or function, an attribute of it, and its value."""
_BREAKING: Final[tuple[tuple[type, str], ...]] = (
    (Node, "try_add"),
    (Node, "remove"),
    (Node, "set_capacity"),
    (ApplicationAsks, "add"),
    (ApplicationAsks, "next_candidate"),
    (ApplicationAllocations, "try_place"),
    (ApplicationAllocations, "remove"),
    (Application, "on_timer"),
)
"""Methods that may fail once."""
_POINTS_OF_STEP_MAX: Final = 50_000
_MOMENTS_MAX: Final = 10_000
"""The maximum number of due moments between two steps before the scheduler counts as never idle."""
_DELAY_SECONDS: Final = 0.0001
"""How long a message takes while nothing is slow."""


class BrokenOnPurposeError(Exception):
    """The error of a method that is made to fail."""


@final
@dataclass(slots=True)
class Outcome:
    """The outcome of a run."""

    steps: int = 0
    """Actions, callbacks, points at which the plan chose the running thread, and cycles of a stepped
    scheduler."""
    trace: str = ""
    """Differs, almost certainly, for runs that differ."""
    failure: BaseException | None = None
    log: list[tuple[int, str, str, Any]] = field(default_factory=list)

    def transcript(self) -> str:
        """Return the messages from and to managers, and the actions on them, as lines."""
        return "\n".join(_line(*row) for row in self.log)


def _line(time_ns: int, who: str, verb: str, message: Any) -> str:
    said = MessageToDict(message) if hasattr(message, "DESCRIPTOR") else message
    return f"{time_ns / 1e9:12.6f} {who} {verb}" + ("" if said is None else f" {json.dumps(said)}")


def run_plan(plan: Plan) -> Outcome:
    """Run a plan, and return any outcome."""
    if plan.engine in _ALONE:
        return _run_alone(plan)
    if plan.engine == DOOR:
        from .door import DoorWorld  # noqa: PLC0415 - it is made of the world below

        return _run_cluster(DoorWorld(plan))
    return _run_cluster(ClusterWorld(plan))


def _run_alone(plan: Plan) -> Outcome:
    outcome, digest = Outcome(), 0

    def note(verb: str, message: Any) -> None:
        nonlocal digest
        outcome.log.append((0, "rm", verb, message))
        digest = zlib.crc32(_bytes_of(message), digest)

    try:
        _ALONE[plan.engine](plan, note).run()
    except Exception as error:  # noqa: BLE001 - it is the outcome
        outcome.failure = error
    outcome.steps = len(outcome.log)
    outcome.trace = f"{digest:08x}"
    return outcome


def _bytes_of(message: Any) -> bytes:
    """Return bytes that differ for messages that differ, and are the same in each process."""
    is_message = hasattr(message, "DESCRIPTOR")
    return message.SerializeToString(deterministic=True) if is_message else repr(message).encode()


def _run_cluster(world: ClusterWorld) -> Outcome:
    try:
        world.control.run(world.run)
    except BaseException as error:  # noqa: BLE001 - it is the outcome
        world.fail(error)
    outcome = world.outcome
    for recorded in world.recorded:
        if outcome.failure is None:
            try:
                recorded.check()
            except Exception as error:  # noqa: BLE001 - as above
                world.fail(error)
        recorded.drop()
    outcome.steps += world.control.choices + len(outcome.log)
    outcome.trace = f"{world.digest:08x}-{world.control.trace:016x}"
    return outcome


@final
class BrokenMethods:
    """Makes methods break their application or node at their next call, like a bug of Licorne.

    Args:
        change: Sets an attribute of an object while the run lasts.
    """

    def __init__(self, change: Callable[[Any, str, Any], None]) -> None:
        self._change = change
        self._mend: Callable[[], None] = lambda: None

    def break_one(self, draw: int) -> None:
        """Make the next call of one method fail; one that was to fail before does not."""
        holder, name = _BREAKING[draw % len(_BREAKING)]

        def broken(*arguments: object, **named: object) -> object:
            if getattr(holder, name) is not broken:  # An engine that has looked up the method keeps this one.
                return known(*arguments, **named)
            self.mend()
            raise BrokenOnPurposeError(f"{holder.__name__}.{name}")

        self.mend()
        known = getattr(holder, name)
        self._mend = partial(self._change, holder, name, known)
        self._change(holder, name, broken)

    def mend(self) -> None:
        """Restore the method that is to fail, if any."""
        self._mend()


class ClusterWorld:
    """The world of one plan; its methods run under its control."""

    def __init__(self, plan: Plan) -> None:
        self.outcome = Outcome()
        self.digest = 0
        self._plan = plan
        rng = random.Random(f"interleaving {plan.seed}")  # noqa: S311 - it plays, and keeps no secret
        kind = RandomPicker if plan.picker == "random" else PriorityPicker
        points_max = _POINTS_OF_STEP_MAX * (len(plan.steps) + 60)
        self.control = ThreadControl(kind(rng, plan.chance), points_max=points_max, on_error=self.fail)
        self._network = MemoryNetwork(lambda: self._delay_seconds)
        self._delay_seconds = _DELAY_SECONDS
        self._managers: list[SimulatedManager] = []
        self._scheduler: Scheduler | None = None
        self._recorded: RecordedRun | None = None
        self.recorded: list[RecordedRun] = []
        """The recordings of all schedulers so far."""
        self._effects = PreemptionEffects()
        self._open = ExitStack()
        self._clients: dict[str, RemoteScheduler | SiClient] = {}
        self._taken_over: list[RemoteScheduler | SiClient] = []
        """The doors of processes next to which another process of the same RM has begun."""
        self._policies = TriedPolicies(self._plan.policies)
        self.with_policies = self._policies.named_in
        self._change: Callable[[Any, str, Any], None]
        self._broken: BrokenMethods

    # ------------------------------------------------------------------------------- for its managers

    def note(self, who: str, verb: str, message: Any) -> None:
        """Record a message from or to a manager."""
        self._effects.note(who, verb, message)
        time_ns = self._now_ns()
        self.outcome.log.append((time_ns, who, verb, message))
        self.digest = zlib.crc32(
            _bytes_of(message), zlib.crc32(f"{time_ns} {who} {verb}".encode(), self.digest)
        )

    def fail(self, error: BaseException) -> None:
        """Record a failure; the first is the cause."""
        if self.outcome.failure is None:
            self.outcome.failure = error

    def scheduler_time_ns(self) -> int | None:
        """Return the time of a stepped scheduler; it stands still while callbacks are in progress."""
        return self._now_ns() if self._is_stepped else None

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        if not self._is_stepped:
            time.sleep(seconds)

    def new_door(self, rm_id: str, door: str, *, beside: bool = False) -> SchedulerAPI:
        """Return the scheduler for a new process: instead of a killed process, or in addition to it."""
        if door == PROCESS:
            recorded, core = self._recorded, self._core()
            return core if recorded is None else recorded.door(core)
        killed = self._clients.get(rm_id)
        if killed is not None and beside:
            self._taken_over.append(killed)
        elif killed is not None:
            self._network.cut_all(rm_id)
            killed.stop()
        address = f"{rm_id}/{_ADDRESS}"
        client: RemoteScheduler | SiClient = (
            SiClient(address) if door == STREAMS else RemoteScheduler(address, on_error=self._callback_failed)
        )
        self._clients[rm_id] = client
        return client

    @property
    def _is_stepped(self) -> bool:
        return self._plan.engine == "direct"

    def _core(self) -> Scheduler:
        assert self._scheduler is not None, "the world has a scheduler while it runs"
        return self._scheduler

    def _now_ns(self) -> int:
        if self._is_stepped and self._scheduler is not None:
            return self._scheduler.now_ns()
        return self.control.elapsed_ns()

    # ---------------------------------------------------------------------------------------- the run

    def run(self) -> None:
        """Run the plan, then the final checks."""
        random.seed(self._plan.seed)
        with self._network.in_place(), replaced() as change:
            self._change = change
            self._broken = BrokenMethods(change)
            for holder, name, value in _NARROW_BOUNDS if self._plan.is_narrow else ():
                change(holder, name, value)
            try:
                self._begin()
                self._take_steps()
                self._calm()
                RunEnding(
                    self._managers, self._core(), self._quiet, self.note, are_maxima_kept=self._plan.is_calm
                ).run()
            finally:
                self._close()

    def _calm(self) -> None:
        """End the faults in progress."""
        self._delay_seconds = _DELAY_SECONDS
        self._broken.mend()

    def _begin(self) -> None:
        for number, door in enumerate(self._plan.doors):
            rng = random.Random(f"manager {number} of {self._plan.seed}")  # noqa: S311 - as above
            at_door = self._plan.engine == DOOR
            self._managers.append(SimulatedManager(f"rm{number}", rng, self, door, at_door=at_door))
        self._start_scheduler()
        for manager in self._managers:
            manager.connect(self.new_door(manager.rm_id, manager.door))

    def _start_scheduler(self) -> None:
        engine: Any = self._plan.engine
        shares = self._plan.shares and not is_compiled()
        self._scheduler = Scheduler(
            engine=engine,
            threads=3 if shares else None,
            share_partitions=shares,
            on_error=self._callback_failed,
            record=self._new_recording(),
            policies=self._policies.factories,
        )
        if {SESSION, STREAMS} & {*self._plan.doors}:
            self._open.enter_context(ServerThread(self._scheduler, self._server_settings()))

    def _server_settings(self) -> ServerSettings:
        return ServerSettings(
            address=_ADDRESS,
            stop_after_seconds=60.0,
            forget_after_seconds=20.0 if self._plan.seed % 2 else None,
        )

    def _new_recording(self) -> Recording | None:
        if not self._plan.is_recorded:
            return None
        self._recorded = RecordedRun()
        self.recorded.append(self._recorded)
        return self._recorded.recording

    def _callback_failed(self, *news: Any) -> None:
        error = news[0].error
        if news[0].subject:  # A policy under test.
            self.fail(RecordError(f"{news[0].callback} about {news[0].subject}: {error_text(error)}"))
        elif isinstance(error, LicorneError):  # A request that the server refuses: then the connection ends.
            self.note(news[0].rm_id, "is refused", str(error))
        elif not isinstance(error, CallbackFault):
            self.fail(error)

    def _close(self) -> None:
        for client in (*self._clients.values(), *self._taken_over):
            client.stop()
        self._open.close()
        self._core().stop()
        time.sleep(1)  # Threads that nothing waits for end meanwhile.

    def _take_steps(self) -> None:
        steps = self._plan.steps
        if self._is_stepped:
            for step in steps:
                self._take_step(step)
            return
        threads = []
        for number, manager in enumerate(self._managers):
            own = [step for step in steps if step.who == number]
            threads.append(
                threading.Thread(target=partial(self._take_all, own), name=manager.rm_id, daemon=True)
            )
        for thread in threads:
            thread.start()
        self._take_all([step for step in steps if step.who == OPERATOR])
        for thread in threads:
            thread.join()

    def _take_all(self, steps: Sequence[PlannedStep]) -> None:
        for step in steps:
            if self.outcome.failure is not None:
                return
            self._take_step(step)

    def _take_step(self, step: PlannedStep) -> None:
        self._pass(step.pause_ms / 1000)
        if self._is_stepped:
            self._effects.check({manager.rm_id for manager in self._managers if manager.allows_all})
        if step.who == OPERATOR:
            self.note("operator", step.action, None)
            self._operate(step)
        elif step.who < len(self._managers):
            self._managers[step.who].act(step.action, step.draw)
        if self._is_stepped:
            self._core().validate()
        for manager in self._managers:
            self._policies.check(list(manager.record.running.values()))
        if self.outcome.failure is not None:
            raise self.outcome.failure

    def _pass(self, seconds: float) -> None:
        """Let time pass, and carry out due events."""
        if not self._is_stepped:
            time.sleep(seconds)
            return
        self.outcome.steps += self._core().run_until_idle()
        if seconds:
            self._advance(seconds)

    def _advance(self, seconds: float) -> None:
        """Advance a stepped scheduler from one due moment to the next."""
        core = self._core()
        end_ns = core.now_ns() + int(seconds * 1e9)
        for _ in range(_MOMENTS_MAX):
            self.outcome.steps += core.run_until_idle()
            due_ns = core.next_deadline_ns()
            if due_ns is None or due_ns > end_ns:
                core.advance_to(end_ns)
                self.outcome.steps += core.run_until_idle()
                return
            core.advance_to(due_ns)
        raise RecordError(f"{_MOMENTS_MAX} times something was due in {seconds:g} s")

    def _operate(self, step: PlannedStep) -> None:
        match step.action:
            case "validate":
                with suppress(LicorneError):  # It may be stopping.
                    self._core().validate()
            case "reconsider":
                for status in self._core().resource_managers():
                    with suppress(LicorneError):  # It has stopped, or is stopping.
                        self._core().reconsider(status.rm_id)
            case "cut":
                self._network.cut(step.draw)
            case "slow":
                self._delay_seconds = (_DELAY_SECONDS, 0.01, 0.3)[step.draw % 3]
            case "jump":
                self.control.wall_offset_ns += (step.draw % 7_200 - 1_800) * 1_000_000_000
            case "kill" if not self._is_stepped:
                self._kill()
            case "break" if not (self._is_stepped or self._plan.is_recorded or is_compiled()):
                self._broken.break_one(step.draw)

    def _kill(self) -> None:
        """Lose the scheduler with its state; another one takes its place."""
        self._network.cut_all()
        self._core().stop()
        self._open.close()
        self._start_scheduler()
        for manager in self._managers:
            if manager.door == PROCESS:
                manager.connect(self.new_door(manager.rm_id, PROCESS))

    def _quiet(self, seconds: float) -> None:
        if self._is_stepped:
            self._advance(seconds)
        else:
            time.sleep(seconds)
        if self.outcome.failure is not None:
            raise self.outcome.failure
