"""A resource manager (RM) that must not notice faults elsewhere: its asks continue to be placed.

It has two partitions at the door: `steady`, whose worker never has a fault, and `shaky`. Each of its requests
concerns both, with malformed entries in between. In the steady one each ask is placed at once; in both,
malformed entries are answered by rejections that name them, and tasks that ran end with a message.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any, Final, final

from ....model.errors import LicorneError
from ...si import constants
from ...si import si_pb2 as si
from ...si.api import ResourceManager, SchedulerAPI
from ..plans import one_of
from .callbacks import World
from .cluster_record import RecordError
from .malformed import Identity, KnownPartition, identities_rejected, malformed_entry, request_of

STEADY, SHAKY = "steady", "shaky"
_RM_ID: Final = "steady"
_TEXT: Final = (
    "partitions: ["
    + ", ".join(
        f"{{name: {name}, queues: [{{name: root, submitacl: '*', queues: [{{name: leaf}}]}}]}}"
        for name in (STEADY, SHAKY)
    )
    + "]"
)
_ANSWER_SECONDS: Final = 5.0
_LEFT: Final = 0.7
"""The probability that a task continues to run."""
_PAUSES_SECONDS: Final = (0.0, 0.001, 0.05, 0.5, 3.0)


@final
class SteadyManager(ResourceManager):
    """The RM, with its thread.

    Args:
        world: Its world.
        rng: Decides the malformed entries.
    """

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._scheduler: SchedulerAPI | None = None
        self._ends = threading.Event()
        self._changed = threading.Condition()
        self._placed: set[str] = set()
        self._released: set[str] = set()
        self._left: dict[str, str] = {}
        """The tasks of the shaky partition that continue to run, each with its application."""
        self._malformed: Counter[Identity] = Counter()
        """How often each entry was sent that is to be rejected."""
        self._rejected: Counter[Identity] = Counter()
        self._is_registered = False
        self._epoch = 0
        self._serial = 0
        self._thread: threading.Thread | None = None
        self._around = {name: KnownPartition(name) for name in (STEADY, SHAKY)}

    def start(self, scheduler: SchedulerAPI) -> None:
        """Register, and send asks from now on."""
        self._scheduler = scheduler
        self._ends.clear()
        self._is_registered = False
        self._placed.clear()
        self._released.clear()
        self._left = {}
        self._malformed.clear()
        self._rejected.clear()
        self._thread = threading.Thread(target=self._run, name=_RM_ID, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more asks; requests in progress end first."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()

    def finish(self) -> None:
        """End all its tasks, and check that all malformed entries have been answered.

        Raises:
            RecordError: An entry was not answered.
        """
        missing = [identity for identity in self._malformed if not self._rejected[identity]]
        if missing:  # Without a worker, entries with the same name may be rejected only once.
            raise RecordError(f"no rejection answers {missing}")
        kept = {key for key in self._placed if key.endswith("-kept")}
        silent = self._placed - self._released - kept - {*self._left}
        if silent:
            raise RecordError(f"these have ended, and the RM has not heard it: {sorted(silent)}")
        if self._scheduler is None or not self._is_registered:
            return
        for name, around in self._around.items():
            removals = [
                si.RemoveApplicationRequest(applicationID=each, partitionName=name)
                for each in around.applications
            ]
            self._scheduler.update_application(si.ApplicationRequest(rmID=_RM_ID, remove=removals))

    def _run(self) -> None:
        try:
            if self._register():
                while not self._ends.wait(one_of(self._rng, _PAUSES_SECONDS)):
                    self._ask()
        except (LicorneError, RecordError) as error:
            self._world.fail(error)

    def _register(self) -> bool:
        """Register with a node and two applications in each partition; return whether time is left."""
        assert self._scheduler is not None, "it is started before it runs"
        self._epoch += 1
        self._callback = _SteadyCallback(self, self._epoch)
        request = si.RegisterResourceManagerRequest(rmID=_RM_ID, policyGroup="queues", config=_TEXT)
        while True:
            try:
                self._scheduler.register_resource_manager(request, self._callback)
                break
            except LicorneError as error:  # The worker is missing now.
                self._world.note(_RM_ID, "is refused", str(error))
                if self._ends.wait(1.0):
                    return False
        for name, around in self._around.items():
            nodes = si.NodeRequest(rmID=_RM_ID)
            applications = si.ApplicationRequest(rmID=_RM_ID)
            around.nodes = [f"{name}-n{self._epoch}"]
            around.applications = [f"{name}-a{self._epoch}", f"{name}-b{self._epoch}"]
            node = nodes.nodes.add(nodeID=around.nodes[0], action=si.NodeInfo.CREATE)
            node.attributes[constants.NODE_PARTITION] = name
            node.schedulableResource.resources["vcore"].value = 1_000
            for application in around.applications:
                new = applications.new.add(
                    applicationID=application, queueName="root.leaf", partitionName=name
                )
                new.ugi.user = "ada"
            self._scheduler.update_node(nodes)
            self._scheduler.update_application(applications)
            for application in around.applications:  # With a remaining task they do not complete.
                kept = self._task(name, f"{application}-kept", application)
                self._scheduler.update_allocation(si.AllocationRequest(rmID=_RM_ID, allocations=[kept]))
        self._is_registered = True
        return True

    def _ask(self) -> None:
        """Ask for a task in each partition, with malformed entries, and end it after its placement."""
        assert self._scheduler is not None, "it is started before it runs"
        self._serial += 1
        entries: list[Any] = []
        for name, around in self._around.items():
            entries += [malformed_entry(around, self._rng) for _ in range(int(self._rng.random() * 3))]
            key = f"{name}-{self._epoch}-{self._serial}"
            around.keys = {key: around.applications[0]}
            entries.append(self._task(name, key, around.applications[0]))
        with self._changed:
            self._malformed.update(each.rejected for each in entries if getattr(each, "rejected", None))
        for request in request_of(_RM_ID, [getattr(each, "entry", each) for each in entries]):
            self._say(request)
        self._say_in_order()
        key = f"{STEADY}-{self._epoch}-{self._serial}"
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._placed, _ANSWER_SECONDS):
                raise RecordError(
                    f"{key} waits for {_ANSWER_SECONDS:g} s in a partition whose worker has no fault"
                )
        self._end_tasks()

    def _say_in_order(self) -> None:
        """Submit an application, ask for a task, and remove it: in another order the ask is rejected."""
        name = f"{SHAKY}-c{self._epoch}-{self._serial}"
        new = si.AddApplicationRequest(applicationID=name, queueName="root.leaf", partitionName=SHAKY)
        new.ugi.user = "bob"
        removal = si.RemoveApplicationRequest(applicationID=name, partitionName=SHAKY)
        self._say(si.ApplicationRequest(rmID=_RM_ID, new=[new]))
        self._say(si.AllocationRequest(rmID=_RM_ID, allocations=[self._task(SHAKY, f"{name}-task", name)]))
        self._say(si.ApplicationRequest(rmID=_RM_ID, remove=[removal]))

    def _say(self, request: si.NodeRequest | si.ApplicationRequest | si.AllocationRequest) -> None:
        assert self._scheduler is not None, "it is started before it runs"
        self._world.note(_RM_ID, "says", request)
        match request:
            case si.NodeRequest():
                self._scheduler.update_node(request)
            case si.ApplicationRequest():
                self._scheduler.update_application(request)
            case _:
                self._scheduler.update_allocation(request)

    def _task(self, partition: str, key: str, application: str) -> si.Allocation:
        ask = si.Allocation(allocationKey=key, applicationID=application, partitionName=partition)
        ask.resourcePerAlloc.resources["vcore"].value = 1
        return ask

    def _end_tasks(self) -> None:
        """End the tasks; those of the shaky partition perhaps later, since a worker may be lost meanwhile."""
        request = si.AllocationRequest(rmID=_RM_ID)
        for name, around in self._around.items():
            running = around.keys
            if name == SHAKY:
                running = {**self._left, **around.keys}
                self._left = {each: running[each] for each in running if self._rng.random() < _LEFT}
            around.ended = [key for key in running if key not in self._left]
            for key in around.ended:
                request.releases.allocationsToRelease.add(
                    allocationKey=key,
                    applicationID=running[key],
                    partitionName=name,
                    terminationType=si.STOPPED_BY_RM,
                )
            around.keys = {}
        assert self._scheduler is not None, "it is started before it runs"
        self._scheduler.update_allocation(request)

    def hear(self, epoch: int, response: Any) -> None:
        """Record placements and rejections."""
        if epoch != self._epoch:
            return
        self._world.note(_RM_ID, "hears", response)
        with self._changed:
            for identity, reason in identities_rejected(response):
                self._rejected[identity] += 1
                if self._rejected[identity] > self._malformed[identity]:
                    self._world.fail(
                        RecordError(f"a rejection answers nothing, or twice: {identity}: {reason}")
                    )
            for allocation in getattr(response, "new", ()):
                if allocation.allocationKey in self._placed:
                    self._world.fail(RecordError(f"{allocation.allocationKey} is placed twice"))
                self._placed.add(allocation.allocationKey)
            self._released.update(each.allocationKey for each in getattr(response, "released", ()))
            self._changed.notify_all()


@final
class _SteadyCallback(ResourceManager):
    """The callback of one registration."""

    def __init__(self, manager: SteadyManager, epoch: int) -> None:
        self._manager = manager
        self._epoch = epoch

    def _hear(self, response: Any) -> None:
        self._manager.hear(self._epoch, response)

    update_allocation = update_application = update_node = _hear
