"""A run of a plan at a door: workers die, fall silent, lie, lose their connections; the door restarts.

Meanwhile the records of the door are compared with the state of its workers. Messages are in transit between
them, so a short difference is not a fault. A lasting one is a fault, if the worker runs, its messages arrive,
and nothing waits for it.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast, final

from ....model.errors import LicorneError
from ...core.scheduler.scheduler import Scheduler
from ...si import si_pb2 as si
from ...si.api import SchedulerAPI
from ...wire.door import link
from ...wire.door.door import Door
from ...wire.door.link import PartitionLink
from ...wire.door.workers import LaunchedWorker, LinkState
from ...wire.server.server import ServerThread
from ..configurations import Configuration
from ..manager.cluster_record import OVER, RecordError
from ..manager.si_client import SchedulerDoor
from ..manager.steady_manager import STEADY, SteadyManager
from ..plans import PROCESS, Plan, PlannedStep, one_of
from .cluster import ClusterWorld
from .door_faults import DoorFaults
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
_Facts: TypeAlias = "set[tuple[str, ...]]"
_LOOK_SECONDS: Final = 3.0
_LOOKS: Final = 5
"""How many times in a row a lasting difference is seen: callbacks may take 5 s."""
_SHOWN: Final = 40
"""The length of the shown part of a difference, and the number of shown differences."""
LASTING_SECONDS: Final = _LOOK_SECONDS * (_LOOKS + 1)
"""The time without faults after which a difference was seen often enough."""


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


@final
class DoorWatch:
    """Compares a door with its workers repeatedly, on a separate thread.

    Args:
        door: Returns the present door.
        worker_at: Returns the scheduler of a worker by its address, `None` if it has ended, or receives no
            messages.
        fail: Receives a lasting difference.
    """

    def __init__(
        self,
        door: Callable[[], Door],
        worker_at: Callable[[str], Any],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._door = door
        self._worker_at = worker_at
        self._fail = fail
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the comparison."""
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        seen: Counter[tuple[str, ...]] = Counter()
        while not self._ends.wait(_LOOK_SECONDS):
            seen = Counter({each: seen[each] + 1 for each in self._differences()})
            lasting = sorted(each for each, count in seen.items() if count >= _LOOKS)
            if lasting:
                shown = [[part[:_SHOWN] for part in each] for each in lasting[:_SHOWN]]
                self._fail(RecordError(f"the door and its worker differ for long: {shown}"))
                return

    def _differences(self) -> Iterator[tuple[str, ...]]:
        """Yield the facts that only the door or only the worker has, with the session."""
        for known in self._door()._managers.links():  # noqa: SLF001 - its public methods show less
            place = known.place
            if place.state is not LinkState.RUNNING or place.waiting:
                continue
            worker = self._worker_at(place.address)
            with suppress(LicorneError):  # It may be ending.
                if worker is not None:
                    recorded, held = _recorded(known, self._door()), _held(worker, place.rm_id)
                    where = (place.rm_id, place.partition, place.address, str(place.since_ns))
                    yield from ((*where, "recorded", *fact) for fact in sorted(recorded - held))
                    yield from ((*where, "held", *fact) for fact in sorted(held - recorded))


def _recorded(known: PartitionLink, door: Any) -> _Facts:
    """Return the door's facts of a partition."""
    record: Any = known._record  # noqa: SLF001 - as above
    nodes, applications, allocations = record._nodes, record._applications, record._allocations  # noqa: SLF001
    facts: _Facts = {("application", name) for name in applications.there}
    for name, entry in nodes.there.items():
        is_drained = si.NodeInfo.FromString(entry).action == si.NodeInfo.CREATE_DRAIN
        facts.add(("node", name, "drained" if is_drained else ""))
    for _, key, entry in allocations._all():  # noqa: SLF001
        ask = None if entry.node else si.Allocation.FromString(entry.ask)
        if ask is None or ask.placeholder or not ask.taskGroupName:  # It may replace a placeholder soon.
            facts.add(("task", key, entry.node))
    facts |= {("foreign", key, node) for key, node in allocations._foreign.nodes.items()}  # noqa: SLF001
    open_answers = (nodes._due, applications._due, allocations._ending, allocations._refusals)  # noqa: SLF001
    facts |= {("unanswered", str(each)) for answers in open_answers for each in answers}
    return facts | _of_manager(door, known.place.rm_id)


def _of_manager(scheduler: Any, rm_id: str) -> _Facts:
    """Return the state and the configuration of a resource manager at a door or a worker."""
    states = {("state", each.state.value) for each in scheduler.resource_managers() if each.rm_id == rm_id}
    return {*states, ("configuration", scheduler.configuration_text(rm_id))}


def _held(worker: Any, rm_id: str) -> _Facts:
    """Return a worker's facts of a resource manager."""
    snapshot = worker.snapshot(rm_id=rm_id)
    facts = _of_manager(worker, rm_id)
    for documents in snapshot["applications"].values():
        for document in documents:
            if document["applicationState"] not in OVER:
                facts.add(("application", document["applicationID"]))
            asks = document.get("requests") or ()
            tasks = {
                each["allocationKey"]: ""
                for each in asks
                if each.get("placeholder") or not each.get("taskGroupName")
            }
            tasks |= {each["allocationKey"]: each["nodeId"] for each in document.get("allocations") or ()}
            facts |= {("task", key, node) for key, node in tasks.items()}
    for nodes in snapshot["nodes"].values():
        for node in nodes:
            facts.add(("node", node["nodeID"], "" if node["schedulable"] else "drained"))
            foreign = node.get("foreignAllocations") or ()
            facts |= {("foreign", each["allocationKey"], node["nodeID"]) for each in foreign}
    return facts
