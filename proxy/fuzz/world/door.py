"""A run of a plan at a door: workers die, fall silent, lie, lose their connections; the door restarts."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final, cast, final

from ....model.errors import LicorneError
from ...core.scheduler.scheduler import Scheduler
from ...si import si_pb2 as si
from ...si.api import SchedulerAPI
from ...wire.door import link
from ...wire.door.door import Door
from ...wire.door.workers import LaunchedWorker, LinkState
from ...wire.server.server import ServerThread
from ..configurations import Configuration
from ..manager.cluster_record import RecordError
from ..manager.si_client import SchedulerDoor
from ..manager.steady_manager import STEADY, SteadyManager
from ..plans import PROCESS, Plan, PlannedStep, one_of
from .cluster import ClusterWorld
from .door_faults import DoorFaults
from .door_watch import LASTING_SECONDS, DoorWatch
from .ending import without_limits
from .memory_network import MemoryNetwork

_SILENCE_SECONDS: Final = (1.0, 5.0, 12.0, 40.0, 90.0)
_CALM_SECONDS: Final = 300
"""The time without faults after which each partition has a running worker."""
_CALL_SECONDS: Final = 1.0
"""How long a request of an RM in the process may take."""
_HELD_BYTES: Final = 2_000
"""How many bytes wait for a worker in narrow plans before an RM waits."""
_START_SECONDS: Final = (0.0, 0.0, 0.1, 1.0, 4.0)
_FAILING: Final = 0.1
"""How many of the attempts to start a worker fail."""


@final
class DoorWorld(ClusterWorld):
    """The world of one plan; its managers share the workers of partitions of one name."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._rng: random.Random
        self._workers: MemoryWorkers
        self._steady: SteadyManager
        self._faults: DoorFaults
        self._silences: list[threading.Thread] = []

    def _new_worker(self) -> Scheduler:
        return Scheduler(
            engine=one_of(self._rng, ("actors", "actors", "threads")), on_error=self._callback_failed
        )

    def _begin(self) -> None:
        self._rng = random.Random(f"workers {self._plan.seed}")  # noqa: S311 - it plays, and keeps no secret
        self._workers = MemoryWorkers(self._network, self._rng, self._new_worker)
        self._steady = SteadyManager(self, random.Random(f"steady {self._plan.seed}"))  # noqa: S311 - as above
        self._faults = DoorFaults(
            lambda rm_id: next((each for each in self._managers if each.rm_id == rm_id), None),
            lambda draw: self._workers.end(self._chosen(draw)),
            self._workers.end,
            self.fail,
        )
        self._faults.put_in_place(self._change)
        if self._plan.is_narrow:
            self._change(link, "HELD_BYTES_MAX", _HELD_BYTES)
        super()._begin()
        self._steady.start(self._core())
        self._watch = DoorWatch(
            lambda: cast("Door", self._core()),
            lambda at: None if self._network.is_silent(at) else self._workers.scheduler_at(at),
            self.fail,
        )

    def _start_scheduler(self) -> None:
        door = Door(self._workers, on_error=self._callback_failed)
        self._scheduler = cast("Scheduler", door)
        self._open.enter_context(ServerThread(door, self._server_settings()))

    def new_door(self, rm_id: str, door: str, *, beside: bool = False) -> SchedulerAPI:
        """Return the door, which must not delay callers in its process."""
        found = super().new_door(rm_id, door, beside=beside)
        is_timed = door == PROCESS and not self._plan.is_narrow
        return cast("SchedulerAPI", _TimedDoor(found, self.fail)) if is_timed else found

    def _close(self) -> None:
        self._steady.stop()
        super()._close()
        self._workers.end_all()

    # --------------------------------------------------------------------------------------- faults

    def _operate(self, step: PlannedStep) -> None:
        match step.action:
            case "cut":
                self._network.cut_all(f"rm{step.draw % len(self._managers)}")
            case "end worker":
                self._workers.end(self._chosen(step.draw))
            case "part":
                self._network.cut_server(self._workers.addresses().get(self._chosen(step.draw), ""))
            case "silence":
                self._silence(step.draw)
            case "end at commit" | "reload at recovery" | "end at request" | "lie":
                self._faults.waiting[step.action] = step.draw
            case "kill":
                self._workers.outlive_door = bool(step.draw % 2)
                self._steady.stop()
                self._kill()
                self._workers.outlive_door = False
                self._steady.start(self._core())
            case _:
                super()._operate(step)

    def note(self, who: str, verb: str, message: Any) -> None:
        """Record a message from or to a manager."""
        super().note(who, verb, message)
        if verb == "hears" and isinstance(message, si.AllocationResponse):
            self._faults.hear(who, message)

    def _chosen(self, draw: int) -> str:
        """Return a partition with a worker, except the one without faults; empty if there is none."""
        partitions = [name for name in self._workers.addresses() if name != STEADY]
        return partitions[draw % len(partitions)] if partitions else ""

    def _silence(self, draw: int) -> None:
        address = self._workers.addresses().get(self._chosen(draw), "")
        seconds = _SILENCE_SECONDS[draw // 64 % len(_SILENCE_SECONDS)]
        thread = threading.Thread(
            target=self._network.silence, args=(address, seconds), name="silence", daemon=True
        )
        self._silences.append(thread)
        thread.start()

    # ------------------------------------------------------------------------------------------ end

    def _calm(self) -> None:
        """End all faults; then lose all workers once more, so that only the records have the state."""
        super()._calm()
        self._faults.waiting.clear()
        for silence in self._silences:
            silence.join()
        self._settle_door()
        self._steady.stop()
        time.sleep(LASTING_SECONDS)
        if self._plan.seed % 3:
            self._lose_all()
        time.sleep(LASTING_SECONDS)
        self._watch.stop()
        self._steady.finish()

    def _lose_all(self) -> None:
        """Lose all workers, perhaps after a reload that makes the next ones refuse some running gangs."""
        for manager in () if self._plan.is_calm else self._managers:
            manager.load(_tight(manager.configuration))
        for partition in self._workers.addresses():
            self._workers.end(partition)
        time.sleep(1.0)
        self._settle_door()
        for manager in self._managers:
            manager.confirm_all()

    def _settle_door(self) -> None:
        """Wait until each partition of each manager runs.

        Raises:
            RecordError: One of them does not run in time.
        """
        door: Any = self._core()
        states: list[LinkState] = []
        for _ in range(_CALM_SECONDS):
            time.sleep(1.0)
            for manager in self._managers:
                if manager.must_connect:
                    manager.connect()
            states = [place.state for place in door.places()]
            if {*states} == {LinkState.RUNNING} and not any(each.must_connect for each in self._managers):
                return
        raise RecordError(f"after {_CALM_SECONDS} s without faults the door is {door.places()}")


def _tight(configuration: Configuration) -> Configuration:
    """Return a configuration with the same queues, each with little room."""
    document = json.loads(without_limits(configuration).text)
    for partition in document["partitions"]:
        for queue in partition["queues"][0]["queues"]:
            queue["resources"] = {"max": {"memory": "20"}}
    return Configuration(json.dumps(document), configuration.leaves)


@final
class _TimedDoor(SchedulerDoor):
    """A door whose requests must be fast: they never wait for a worker."""

    def __init__(self, scheduler: SchedulerAPI, fail: Callable[[BaseException], None]) -> None:
        super().__init__(scheduler)
        self._fail = fail
        for name in ("update_node", "update_application", "update_allocation"):
            setattr(self, name, self._timed(getattr(scheduler, name)))

    def _timed(self, call: Callable[[Any], None]) -> Callable[[Any], None]:
        def timed(request: Any) -> None:
            began = time.monotonic()
            call(request)
            seconds = time.monotonic() - began
            if seconds > _CALL_SECONDS:
                self._fail(RecordError(f"{type(request).__name__} has taken {seconds:.1f} s"))

        return timed


@final
class MemoryWorkers:
    """A launcher of schedulers in this process.

    Args:
        network: The network on which they listen.
        rng: Decides how long a start takes, and whether it fails.
        new_scheduler: Makes the scheduler of a worker.
    """

    def __init__(
        self, network: MemoryNetwork, rng: random.Random, new_scheduler: Callable[[], Scheduler]
    ) -> None:
        self._network = network
        self._rng = rng
        self._new_scheduler = new_scheduler
        self._lock = threading.Lock()
        self._started: dict[str, int] = {}
        """The number of workers that each partition has had."""
        self._running: dict[str, tuple[LaunchedWorker, ServerThread, Scheduler]] = {}
        """The running workers by partition."""
        self._ends: list[threading.Thread] = []
        self.outlive_door = False
        """Whether they survive the door: its successor finds them."""

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Start a worker, or return the one that survived the previous door.

        Raises:
            LicorneError: The start fails, or it was cancelled.
        """
        if given_up.wait(one_of(self._rng, _START_SECONDS)):
            raise LicorneError(f"the worker of partition {partition!r} was given up")
        if self._rng.random() < _FAILING:
            raise LicorneError(f"there is no worker for partition {partition!r} now")
        with self._lock:
            running = self._running.get(partition)
        if running is not None:
            return running[0]
        scheduler = self._new_scheduler()
        server = ServerThread(scheduler)
        server.__enter__()
        with self._lock:
            number = self._started[partition] = self._started.get(partition, 0) + 1
            worker = LaunchedWorker(partition, server.address, number)
            self._running[partition] = worker, server, scheduler
        return worker

    def lost(self, worker: LaunchedWorker) -> None:
        """End a worker."""
        self.end(worker.partition, worker)

    def stop(self) -> None:
        """Stop all workers, unless they survive the door."""
        if not self.outlive_door:
            self.end_all()

    def end_all(self) -> None:
        """End all workers, and wait until they have ended."""
        for partition in [*self._running]:
            self.end(partition)
        for thread in self._ends:
            thread.join()

    def end(self, partition: str, worker: LaunchedWorker | None = None) -> None:
        """Kill the worker of a partition, if it is this one: its later messages are lost."""
        with self._lock:
            running = self._running.get(partition)
            if running is None or worker not in (None, running[0]):
                return
            del self._running[partition]
        found, server, _ = running
        self._network.end_server(found.address)
        thread = threading.Thread(
            target=server.__exit__, args=(None, None, None), name=f"end of {found.address}", daemon=True
        )
        self._ends.append(thread)
        thread.start()

    def addresses(self) -> dict[str, str]:
        """Return the addresses of the workers by partition."""
        return {partition: worker.address for partition, (worker, *_) in sorted(self._running.items())}

    def scheduler_at(self, address: str) -> Scheduler | None:
        """Return the scheduler of the worker at an address, `None` if it has ended."""
        found = (each for worker, _, each in [*self._running.values()] if worker.address == address)
        return next(found, None)
