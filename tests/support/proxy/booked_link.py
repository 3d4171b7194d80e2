"""A link of one partition, as small as it can be: a book, a scheduler that may be lost, and what waits."""

from __future__ import annotations

import random
from collections import deque
from typing import Any, Final, NamedTuple

from licorne import Recovery, ResourceManager, ResourceManagerCallback, Scheduler
from licorne.proxy.fuzz.configurations import Configuration
from licorne.proxy.fuzz.manager.manager import SimulatedManager
from licorne.proxy.fuzz.plans import PROCESS, by_weight, one_of
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import RecoveryState
from licorne.proxy.wire.door.record import PartitionRecord, PartsToRecover

ACTIONS: Final = by_weight(
    {
        "ask": 30,
        "submit": 10,
        "finish": 10,
        "confirm": 8,
        "fail starts": 4,
        "withdraw": 3,
        "report foreign": 4,
        "change node": 4,
        "add node": 3,
        "remove application": 2,
        "remove node": 2,
        "resize": 4,
        "crash": 1,
    }
)
"""What a simulated manager does between losses, by weight."""
_ALL: Final = 10_000
_DRAWS: Final = (0, 0, 1, 3, _ALL)


class BookedLink:
    """What a resource manager (RM) takes for a scheduler: requests and answers wait until they are pumped.

    Attributes:
        book: the book of the partition.
        scheduler: the one that it has now.
        session: counts the schedulers.
        sent: requests that are noted in the book and have not reached the scheduler.
        said: answers of the scheduler that are not in the book, and that the RM has not heard.
        heard: what the RM has heard.
    """

    def __init__(self) -> None:
        self.session = 0
        self.sent: deque[Any] = deque()
        self.said: deque[tuple[str, Any]] = deque()
        self.heard: list[Any] = []
        self.parts: PartsToRecover | None = None
        self._now_ns = 0
        self._scheduler: Scheduler | None = None
        self._recovery: Recovery | None = None
        self._recovering: Recovery | None = None

    # ------------------------------------------------------------------------- what the RM calls

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        self._registration, self._callback = request, callback
        self.book = PartitionRecord(request.rmID, "default")
        self._begin()
        self.scheduler.register_resource_manager(request, _Answers(self))
        self._recovery = self._recovering = None
        return si.RegisterResourceManagerResponse()

    def update_node(self, request: si.NodeRequest) -> None:
        self.book.note_nodes(request.nodes)
        self.sent.append(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        self.book.note_applications(request)
        self.sent.append(request)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        self.sent.append(self.book.note_allocations(request, self.session))

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        self.scheduler.update_configuration(request)
        self._registration.config = request.config

    def stop(self) -> None:
        if self._scheduler is not None:
            self._scheduler.stop()

    # --------------------------------------------------------------------------------- its life

    @property
    def scheduler(self) -> Scheduler:
        assert self._scheduler is not None, "a resource manager registers before it is served"
        return self._scheduler

    def _begin(self) -> None:
        self.stop()
        self.sent.clear()
        self.said.clear()
        self.session += 1
        self._scheduler = Scheduler(engine="direct", stepped=True)
        self._now_ns = max(self._now_ns, self._scheduler.now_ns())
        self._scheduler.advance_to(self._now_ns)

    def lose(self) -> PartsToRecover:
        """Lose the scheduler with all that waits, and begin to recover another one from the book."""
        self._begin()
        self.parts = parts = self.book.begin_recovery(self.scheduler.now_ns())
        self._recovery = self._recovering = recovery = Recovery(
            self.scheduler,
            self._registration,
            _Answers(self),
            nodes=parts.nodes,
            applications=parts.applications,
            allocations=parts.allocations,
            asks=parts.asks,
        )
        recovery.start()
        for request in parts.late:
            _send(recovery, request)
        for response in parts.heard:
            self._tell(response)
        return parts

    def pump(self, rng: random.Random | None = None) -> None:
        """Let requests and answers arrive: all of them, or as many as are drawn."""
        arrive, cycles, answers, heard = (one_of(rng, _DRAWS) if rng else _ALL for _ in range(4))
        for _ in range(min(arrive, len(self.sent))):
            _send(self._recovery or self.scheduler, self.sent.popleft())
        self.scheduler.schedule(cycles)
        if answers:
            self.scheduler.deliver()
        for _ in range(min(heard, len(self.said))):
            self.hear_next()

    def settle(self) -> None:
        """Go on until nothing waits and nothing more happens."""
        while True:
            self.scheduler.run_until_idle()
            if not self.sent and not self.said and not self._end_recovery():
                break
            self.pump()
        self.scheduler.validate()

    def _end_recovery(self) -> bool:
        """End a recovery that is under way; return whether something is to be sent for that."""
        recovery, self._recovering = self._recovering, None
        if recovery is None:
            return False
        assert RecoveryState.RUNNING is recovery.state, recovery.failure
        heard, requests = self.book.end_recovery(recovery.rejections, recovery.left_out)
        for response in heard:
            self._tell(response)
        self.sent += requests
        return bool(self.sent)

    def deliver(self) -> None:
        """Let everything arrive, and place nothing."""
        while self.scheduler.deliver() or self.sent or self.said:
            while self.sent:
                _send(self._recovery or self.scheduler, self.sent.popleft())
            while self.said:
                self.hear_next()

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        self.scheduler.advance_to(self.scheduler.now_ns() + milliseconds * 1_000_000)
        self._now_ns = self.scheduler.now_ns()

    def hear_next(self) -> None:
        """Note the next answer, and let the RM hear what the book leaves of it."""
        kind, response = self.said.popleft()
        assert "" == self.book.doubt(f"update_{kind}", response)
        if kind == "node":
            rest: Any = self.book.take_nodes(response)
        elif kind == "application":
            rest = self.book.take_applications(response)
        else:
            rest = self.book.take_allocations(response, self.session)
        if rest.ListFields():
            self._tell(rest)

    def _tell(self, response: Any) -> None:
        self.heard.append(response)
        if isinstance(response, si.NodeResponse):
            self._callback.update_node(response)
        elif isinstance(response, si.ApplicationResponse):
            self._callback.update_application(response)
        else:
            self._callback.update_allocation(response)


class _Answers(ResourceManager):
    """Notes what a scheduler says; what one says that is lost goes nowhere."""

    def __init__(self, link: BookedLink) -> None:
        self._said = link.said
        self._link, self._session = link, link.session

    def _say(self, kind: str, response: Any) -> None:
        if self._session == self._link.session:
            message = type(response)()
            message.CopyFrom(response)
            self._link.said.append((kind, message))

    def update_node(self, response: si.NodeResponse) -> None:
        self._say("node", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._say("application", response)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._say("allocation", response)


def _send(door: Any, request: Any) -> None:
    if isinstance(request, si.NodeRequest):
        door.update_node(request)
    elif isinstance(request, si.ApplicationRequest):
        door.update_application(request)
    else:
        door.update_allocation(request)


class _World:
    """The world of a manager that is driven by a test."""

    def note(self, who: str, verb: str, message: Any) -> None:
        """Write nothing down: the link has it."""

    def fail(self, error: BaseException) -> None:
        raise error

    def with_policies(self, configuration: Configuration) -> Configuration:
        return configuration

    def scheduler_time_ns(self) -> None:
        """Return no time: no check needs one."""

    def sleep(self, seconds: float) -> None:
        """Stay at the same time."""

    def new_door(self, rm_id: str, door: str, *, beside: bool = False) -> Any:
        raise NotImplementedError(f"{rm_id} never restarts at {door}")


def a_manager(rng: random.Random) -> SimulatedManager:
    """Return a manager of one partition that speaks the current generation and has no predicates."""
    while True:
        manager = SimulatedManager("rm", rng, _World(), PROCESS)
        honest = (manager._is_older, manager._predicate_habit) == (False, "not")
        if honest and manager.partitions == ("default",):
            return manager


class Sizes(NamedTuple):
    """How much the record of a partition holds."""

    nodes: int
    applications: int
    allocations: int
    """Without those of others."""
    of_others: int
    asks: int
    ending: int


def sizes_of(book: PartitionRecord) -> Sizes:
    """Count what a record holds."""
    allocations = book._allocations
    placed = [bool(entry.node) for _, _, entry in allocations._all()]
    nodes, applications = book.accepted
    return Sizes(
        nodes=len(nodes),
        applications=len(applications),
        allocations=placed.count(True),
        of_others=len(allocations._foreign.nodes),
        asks=placed.count(False),
        ending=len(allocations._ending),
    )
