"""A resource manager for simulated clusters: honest, except for the faults in its plan.

Each action is drawn from a separate seed and from the record of the manager: so an action is meaningful after
any history, and a plan remains valid when actions are removed from it.
"""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ....model.errors import LicorneError
from ....model.requests.submission_terms import TOPOLOGY_REQUIRED_TAG, TOPOLOGY_SLICE_TAG
from ...si import si_pb2 as si
from ...si.api import ResourceManager, SchedulerAPI
from ...wire.client.recovery import Recovery
from ..configurations import (
    DYNAMIC_PARENT,
    INVALID_CONFIGURATIONS,
    USERS,
    Configuration,
    random_configuration,
    task_size,
)
from ..plans import PROCESS, STREAMS, one_of
from .callbacks import CALLBACKS, CallbackFaults, RuntimeFloor, Takeover, World
from .cluster_record import ClusterRecord, KnownApplication, KnownNode, RecordError, Task
from .si_client import OlderGeneration
from .submissions import NodeActions, Submissions, action_of

_STOPPED: Final = si.STOPPED_BY_RM
_AWAY_SECONDS: Final = (0.0, 0.0, 1.0, 30.0, 100.0)
"""How long a killed process is absent; a server stops a resource manager after a minute."""
_BESIDE: Final = 0.7
"""How often another process of the same resource manager begins while the previous one lives."""
_STRAYS_SECONDS: Final = (0.0, 0.0, 0.001, 0.01, 0.1) * 5
"""How long the previous process waits until it continues."""
_AT_ONCE: Final = 0.6
"""How many managers confirm at once."""
_AT_ONCE_AT_DOOR: Final = 0.3
"""The same at a door, where a later confirmation may reach another worker."""
_OLDER: Final = 0.2
"""How many managers speak the older generation of `si.v1`."""
_LATE_PLACEHOLDER: Final = 0.05
"""How often a gang asks for one more placeholder instead of a member."""
_DOMAIN_TAGS: Final = {TOPOLOGY_REQUIRED_TAG, TOPOLOGY_SLICE_TAG}
"""The tags of gangs whose members need no certain node."""
_REGISTERING: Final = 0.3
"""How many of the long callbacks register again first."""
_FITTING: Final = 0.8
"""How many members have the size of their placeholders."""
_WAITING_MAX: Final = 60


class SimulatedManager(NodeActions, ResourceManager):
    """A resource manager with its record.

    Args:
        rm_id: Its id.
        rng: Decides its behaviour.
        world: Its world.
        door: `PROCESS`, `SESSION` or `STREAMS`.
        at_door: Whether partitions are on workers: then it has two partitions, and speaks the newer `si.v1`.
    """

    def __init__(
        self, rm_id: str, rng: random.Random, world: World, door: str, *, at_door: bool = False
    ) -> None:
        self.rm_id = rm_id
        self.door = door
        self.record = ClusterRecord()
        self.record.may_lag = at_door
        self._world = world
        has_two = rng.random() < 0.3 or at_door
        self.partitions: tuple[str, ...] = ("default", "gpu") if has_two else ("default",)
        self.configuration: Configuration = world.with_policies(random_configuration(rng, self.partitions))
        self._submissions = Submissions(f"{rm_id} {self.configuration.text}", self.new_name)
        self._floor = RuntimeFloor(world.scheduler_time_ns)
        self._confirms_at_once = rng.random() < (_AT_ONCE_AT_DOOR if at_door else _AT_ONCE)
        habit = one_of(rng, ("not", "not", "at once", "later"))
        self._predicate_habit = "not" if door == STREAMS else habit
        self._is_older = rng.random() < _OLDER and not at_door
        self.allows_all = self._predicate_habit == "not"
        self.answers_later = self._predicate_habit == "later"
        """Whether it answers its predicates later."""
        self.is_strict = True
        """Whether its predicates refuse anything."""
        self._serial = 0
        self._epoch = 0
        self._scheduler: SchedulerAPI | None = None
        self._recovery: Recovery | None = None
        self._registered: Recovery | None = None
        """The recovery of the last registration of this process."""
        self.takeover = Takeover()
        self._process = 0
        self._connecting = threading.RLock()
        self.callback_faults = CallbackFaults(world.sleep)

    # ---------------------------------------------------------------------------------- connections

    def connect(self, scheduler: SchedulerAPI | None = None) -> None:
        """Register and recover running tasks: as a new process, or again with the same scheduler."""
        with self._connecting:
            self._connect(scheduler)

    def _connect(self, scheduler: SchedulerAPI | None) -> None:
        if scheduler is not None:
            self._process += 1
            self._registered = None
            self._scheduler = OlderGeneration(scheduler) if self._is_older else scheduler
        assert self._scheduler is not None, "a manager is connected before it is used"
        record = self.record
        record.forget_what_has_lost_its_place()
        for application in record.applications.values():
            application.state = ""
        self._epoch += 1
        self._floor.registered(self.configuration.text)
        self._recovery = recovery = Recovery(
            self._scheduler,
            si.RegisterResourceManagerRequest(
                rmID=self.rm_id, policyGroup="queues", config=self.configuration.text
            ),
            CALLBACKS[self._predicate_habit](self, self._process, self._epoch),
            nodes=[node.message(action_of(node)) for node in record.nodes.values()],
            applications=[application.message() for application in record.applications.values()],
            allocations=[task.message() for task in (*record.running.values(), *record.foreign.values())],
            asks=[task.message() for task in record.waiting.values()],
            replaces=self._registered,
        )
        self._world.note(self.rm_id, "registers", None)
        try:
            recovery.start()
        except LicorneError as error:  # For example because the connection is lost.
            self._world.note(self.rm_id, "is refused", str(error))
        else:
            self._registered = recovery
            self.takeover.registered(self._process)

    def _connect_from_callback(self) -> None:
        """Register again, unless another thread is about to: it may wait for the callback to end."""
        if self._connecting.acquire(blocking=False):
            try:
                self._connect(None)
            finally:
                self._connecting.release()

    @property
    def must_connect(self) -> bool:
        """Whether it has not registered, or not with its complete record."""
        recovery = self._registered
        return (
            recovery is not self._recovery or recovery is None or bool(recovery.left_out or recovery.failure)
        )

    def hears(self, epoch: int) -> bool:
        """Return whether a registration is the last one."""
        return epoch == self._epoch

    def reconnected(self, process: int) -> None:
        """Register again, unless the called process was killed: the connection is restored."""
        if process == self._process:
            self.connect()

    def send(self, request: si.NodeRequest | si.ApplicationRequest | si.AllocationRequest) -> None:
        """Send a request, if the scheduler is reachable."""
        request.rmID = self.rm_id
        self._world.note(self.rm_id, "says", request)
        assert self._recovery is not None, "a manager is connected before it is used"
        door: SchedulerAPI | Recovery = self._recovery
        # A message on a lost connection is lost; the record is sent when the connection is restored.
        with suppress(LicorneError):
            if isinstance(request, si.NodeRequest):
                door.update_node(request)
            elif isinstance(request, si.ApplicationRequest):
                door.update_application(request)
            else:
                door.update_allocation(request)

    # ------------------------------------------------------------------------------------ callbacks

    def take(self, verb: str, message: Any, note: Callable[[], None]) -> None:
        """Handle a callback, with its planned faults."""
        self._world.note(self.rm_id, "hears", message)
        try:
            with self.callback_faults.one_at_a_time(in_process=self.door == PROCESS):
                note()
                self.callback_faults.happen(verb, self._connect_from_callback)
        except RecordError as error:
            self._world.fail(error)
            raise

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Record placements, releases and rejections, and confirm requested ends."""
        record = self.record
        if self._is_older and any(allocation.allocationKey != allocation.UUID for allocation in response.new):
            raise RecordError(f"an allocation has another UUID than its key, or none: {response.new}")
        self._floor.hear(response)
        unwanted = [allocation for allocation in response.new if not record.placed(allocation)]
        for rejected in response.rejectedAllocations:
            record.rejected(rejected.allocationKey, rejected.applicationID, in_order=self.door != STREAMS)
        wanted = [release for release in response.released if record.released(release)]
        for ask in response.releasedAsks:
            record.released(si.AllocationRelease(allocationKey=ask.allocationKey), asks=True)
        if unwanted:
            self.send_releases(
                [
                    (each.applicationID, each.allocationKey, record.partitions[each.applicationID], _STOPPED)
                    for each in unwanted
                ]
            )
        if wanted and self._confirms_at_once:
            self._confirm([(each.allocationKey, each.terminationType) for each in wanted])

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Record states."""
        record = self.record
        record.check_reported("application", [each.applicationID for each in response.accepted])
        for accepted in response.accepted:
            record.application_changed(accepted.applicationID, "New")
        for rejected in response.rejected:
            record.end(record.tasks_of(rejected.applicationID))
            record.application_changed(rejected.applicationID, "Rejected")
        for updated in response.updated:
            record.application_changed(updated.applicationID, updated.state)

    def update_node(self, response: si.NodeResponse) -> None:
        """Forget rejected nodes.

        Raises:
            RecordError: A node is accepted that this process has not reported.
        """
        self.record.check_reported("node", [each.nodeID for each in response.accepted])
        for rejected in response.rejected:
            if rejected.nodeID in self.record.nodes:
                self.record.lose_node(rejected.nodeID)

    def refuses(self, key: str, node: str) -> bool:
        """Return the answer of the predicates: they refuse one pair of seven, always the same ones."""
        return self.is_strict and zlib.crc32(f"{key} on {node}".encode()) % 7 == 0

    def answer_later(self, number: int, answer: Callable[[], None]) -> None:
        """Answer a batch of questions after a while, or never."""
        if self.is_strict and number % 20 == 0:
            return

        def run() -> None:
            self._world.sleep((0.0, 0.001, 0.5, 2.5)[number % 4] if self.is_strict else 0.0)
            with suppress(LicorneError):  # It is too late, or the registration has ended.
                answer()

        threading.Thread(target=run, name=f"{self.rm_id}-predicates", daemon=True).start()

    # -------------------------------------------------------------------------------------- actions

    def act(self, name: str, draw: int) -> None:
        """Carry out the action of this name with this draw."""
        if self._registered is not self._recovery:
            self.connect()  # Messages of the scheduler since then are lost.
        action: Callable[[random.Random], None] = getattr(self, name.replace(" ", "_"))
        action(random.Random(draw))  # noqa: S311 - it plays, and keeps no secret

    def new_name(self, kind: str) -> str:
        """Return an unused name."""
        self._serial += 1
        return f"{self.rm_id}-{kind}{self._serial}"

    def submit(self, rng: random.Random) -> None:
        """Submit an application, perhaps a gang with its placeholders."""
        user = one_of(rng, [*USERS])
        queues = [*self.configuration.leaves, f"root.{DYNAMIC_PARENT}.{one_of(rng, ('x', 'y'))}"]
        application = KnownApplication(
            self.new_name("a"), one_of(rng, self.partitions), one_of(rng, queues), user, [*USERS[user]]
        )
        leaves = self.configuration.leaves
        application.queue = self._submissions.queue(application.name, application.queue, leaves)
        tasks = self._submissions.begin(application, rng)
        known = self.record.applications.values()
        self._submissions.link(
            application, [each.name for each in known if each.partition == application.partition]
        )
        self.record.applications[application.name] = application
        self.record.partitions[application.name] = application.partition
        self.send(si.ApplicationRequest(new=[application.message()]))
        if tasks:
            self._ask(tasks)

    def complete_gang(self, name: str) -> None:
        """Ask for all missing members of a gang that is placed whole."""
        application = self.record.applications[name]
        of_gang = (task for task in self.record.waiting.values() if task.application == name)
        first = next((task.size for task in of_gang if not task.placeholder), None)
        self._ask(
            self._submissions.lacking(application, first if TOPOLOGY_SLICE_TAG in application.tags else None)
        )

    def ask(self, rng: random.Random) -> None:
        """Ask for some allocations of an application."""
        if not self.record.applications or len(self.record.waiting) > _WAITING_MAX:
            return
        application = one_of(rng, [*self.record.applications.values()][-6:])
        tasks = []
        for _ in range(rng.randint(1, 4)):
            task = self._submissions.task(application, task_size(rng))
            task.priority = rng.randint(-2, 9) if rng.random() < 0.4 else 0
            task.preemptible = rng.random() < 0.7
            task.preempts = rng.random() < 0.7
            if application.gang and rng.random() < 0.7:
                task.group = one_of(rng, [*application.gang])
                task.size = application.gang[task.group][1] if rng.random() < _FITTING else task_size(rng)
                task.placeholder = rng.random() < _LATE_PLACEHOLDER
            elif rng.random() < 0.1 and self.record.nodes and not _DOMAIN_TAGS & application.tags.keys():
                nodes = [node.name for node in self.record.nodes.values()
                         if node.partition == application.partition]  # fmt: skip
                task.required_node = one_of(rng, nodes) if nodes else ""
            tasks.append(task)
        self._ask(tasks)

    def _ask(self, tasks: list[Task]) -> None:
        self.record.waiting |= {task.key: task for task in tasks}
        self.send(si.AllocationRequest(allocations=[task.message() for task in tasks]))

    def finish(self, rng: random.Random) -> None:
        """End some running tasks."""
        keys = [key for key in self.record.running if key not in self.record.to_confirm]
        self.release([key for key in keys if rng.random() < 0.3], _STOPPED)

    def fail_starts(self, rng: random.Random) -> None:
        """Report that some placed tasks could not be started on their nodes."""
        rows = self.record.fail_starts(rng)
        self.send_releases([(*row, si.SCHEDULING_FAILED_ON_RM) for row in rows])

    def withdraw(self, rng: random.Random) -> None:
        """Withdraw some waiting tasks."""
        tasks = [*self.record.waiting.values()]
        # A withdrawn placeholder is still expected, and members wait for it: see decisions.
        self.release([each.key for each in tasks if rng.random() < 0.2 and not each.placeholder], _STOPPED)

    def release(self, keys: Iterable[str], termination: int) -> None:
        """End tasks and report their ends."""
        self._confirm([(key, termination) for key in keys])

    def _confirm(self, ends: list[tuple[str, int]]) -> None:
        rows = []
        for key, termination in ends:
            task = self.record.running.get(key) or self.record.waiting.get(key)
            if task is not None:
                rows.append((task.application, key, task.partition, termination))
        own = [key for key, termination in ends if termination == _STOPPED]
        self.record.end_running(own)
        self.record.end(key for key, _ in ends)
        self.send_releases(rows)

    def send_releases(self, rows: list[tuple[str, str, str, int]]) -> None:
        """Report the ends of tasks, each by its application, key, partition and termination type."""
        if not rows:
            return
        request = si.AllocationRequest()
        for application, key, partition, termination in rows:
            request.releases.allocationsToRelease.add(
                applicationID=application,
                allocationKey=key,
                partitionName=partition,
                terminationType=termination,
            )
        self.send(request)

    def confirm(self, rng: random.Random) -> None:
        """Confirm some of the ends that the scheduler requests."""
        self._confirm([item for item in [*self.record.to_confirm.items()] if rng.random() < 0.7])

    def confirm_all(self) -> None:
        """Confirm all ends that the scheduler requests, from now on at once."""
        self._confirms_at_once = True
        self._confirm([*self.record.to_confirm.items()])

    def remove_application(self, rng: random.Random) -> None:
        """Remove an application with all its tasks."""
        if self.record.applications:
            self.give_up(one_of(rng, [*self.record.applications]))

    def give_up(self, name: str) -> None:
        """Remove this application."""
        application = self.record.applications.pop(name, None)
        if application is None:
            return  # It has ended meanwhile.
        self.record.end(self.record.tasks_of(name))
        removal = si.RemoveApplicationRequest(
            applicationID=name,
            partitionName=application.partition,
            outcome=self._submissions.outcome(name),
        )
        self.send(si.ApplicationRequest(remove=[removal]))

    def reload(self, rng: random.Random) -> None:
        """Load another configuration, or an invalid one."""
        if rng.random() < 0.3:
            self._configure(one_of(rng, INVALID_CONFIGURATIONS))
            return
        self.load(self._world.with_policies(random_configuration(rng, self.partitions)))

    def change_partitions(self, rng: random.Random) -> None:
        """Remove the second partition with its contents, or add it again, empty."""
        self.partitions = ("default",) if len(self.partitions) > 1 else ("default", "gpu")
        self.record.keep_partitions(self.partitions)
        self.load(self._world.with_policies(random_configuration(rng, self.partitions)))

    def load(self, configuration: Configuration) -> None:
        """Load this configuration."""
        self.configuration = configuration
        if self.door == STREAMS:
            self.connect()
        else:
            self._configure(configuration.text)

    def _configure(self, text: str) -> None:
        assert self._scheduler is not None, "a manager is connected before it is used"
        request = si.UpdateConfigurationRequest(rmID=self.rm_id, config=text)
        self._world.note(self.rm_id, "says", request)
        with suppress(LicorneError):
            self._scheduler.update_configuration(request)
            self._floor.configured(text)

    def save(self, rng: random.Random) -> None:
        """Report that the work of a running task is saved, if nothing ends meanwhile."""
        now_ns, running = self._world.scheduler_time_ns(), self.record.settled()
        if now_ns is not None and running:
            task = one_of(rng, running)
            task.saved_seconds = max(1, now_ns // 10**9 - rng.randrange(100))
            self.send(si.AllocationRequest(allocations=[task.message()]))

    def resize(self, rng: random.Random) -> None:
        """Resize a running or waiting task, if the scheduler does nothing meanwhile."""
        record = self.record
        tasks = [task for task in (*record.settled(), *record.waiting.values()) if not task.group]
        if tasks and not self._is_older and self._world.scheduler_time_ns() is not None:
            task = one_of(rng, tasks)
            task.size = task_size(rng)
            if task.node:
                record.nodes[task.node].may_be_full = True
            self.send(si.AllocationRequest(allocations=[task.message()]))

    def crash(self, rng: random.Random) -> None:
        """Register again, or begin as a new process if it is a separate one; the record stays."""
        if self.door == PROCESS or rng.random() < 0.5:
            self.connect()
            return
        self._epoch += 1  # The killed process receives no more messages.
        self._process += 1
        beside = rng.random() < _BESIDE
        if beside:
            go_on = partial(_go_on, self._scheduler, self.rm_id, self.new_name, self._world)
            threading.Thread(target=go_on, daemon=True).start()
        else:
            self._world.sleep(one_of(rng, _AWAY_SECONDS))
        self.connect(self._world.new_door(self.rm_id, self.door, beside=beside))

    def stumble(self, rng: random.Random) -> None:
        """Make the next callbacks raise, take long, or register again."""
        if rng.random() < 0.5:
            self.callback_faults.raises = rng.randint(1, 3)
            return
        self.callback_faults.blocks_seconds = rng.random() * 5
        self.callback_faults.registers = rng.random() < _REGISTERING and self.door == PROCESS

    @property
    def is_answered(self) -> bool:
        """Whether each submitted application has a state."""
        return all(application.state for application in self.record.applications.values())


def _go_on(before: SchedulerAPI | None, rm_id: str, new_name: Callable[[str], str], world: World) -> None:
    """Report nodes that a later process lacks, until that process has registered and reports are refused."""
    assert before is not None, "a process is connected before another one takes its place"
    with suppress(LicorneError):
        for seconds in _STRAYS_SECONDS:
            node = KnownNode(new_name("stray"), "default", {"memory": 10, "vcore": 100})
            request = si.NodeRequest(rmID=rm_id, nodes=[node.message(si.NodeInfo.CREATE)])
            world.note(rm_id, "says though replaced", request)
            before.update_node(request)
            world.sleep(seconds)
