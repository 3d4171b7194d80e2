"""The two sides of a simulation: a scheduler core, and resource managers with guarded callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, final

from ....model.configuration.queue_properties import evaluate
from ....model.errors import LicorneError
from ....model.policies.policies import PolicyFactory
from ....model.policies.watching import PointFailures
from ....model.queues.use_order import KeptUse
from ....model.values.documents import Json
from ....model.values.messages import Announcement
from ...core.explanation.one_line import explanation_line
from ...core.resolvers.resolver import UserResolver
from ...core.scheduler.answering.questions import QueueAndUser
from ...core.scheduler.engine_names import EngineName
from ...core.scheduler.managers.callbacks import TakesAnnouncements
from ...core.scheduler.scheduler import Scheduler
from ...core.scheduler.stepping import advance_while_resting, rests
from ...si import si_pb2 as si
from ...si.api import ResourceManager, SchedulerAPI
from ...si.older_generation import EventsHappened
from .reporting.run_series import FairTerms, QueueBounds


class Core(Protocol):
    """A scheduler on a virtual clock that only its caller moves.

    Everything happens on the calling thread: the callbacks of resource managers arrive inside the API's
    methods, `deliver`, `run_until_idle` and `advance_to`, and send no requests themselves. Only predicates
    may be asked by several threads at once, if it was opened with as many; all have been answered when
    `run_until_idle` returns.
    """

    @property
    def api(self) -> SchedulerAPI:
        """The interface for resource managers."""
        ...

    def now_ns(self) -> int:
        """Return the virtual time; each core chooses where it starts."""
        ...

    def deliver(self) -> None:
        """Call back with all announcements so far, without scheduling."""
        ...

    def run_until_idle(self) -> int:
        """Run scheduling cycles until one changes nothing; return the number of cycles with a result."""
        ...

    def next_deadline_ns(self) -> int | None:
        """Return the time of the core's next timer, `None` without one.

        A timer that could not change anything should not be counted: a simulation visits every deadline.
        """
        ...

    def is_idle(self) -> bool:
        """Return whether `run_until_idle` would do nothing, now and later, until something changes."""
        ...

    def queue_and_user(self, application_id: str, rm_id: str) -> QueueAndUser | None:
        """Return the queue and the user of an application, `None` if it is unknown."""
        ...

    def waits_because(self, application_id: str) -> str:
        """Return what blocks an application, in one line; empty if it is unknown or ambiguous."""
        ...

    def queue_bounds(self) -> Mapping[str, QueueBounds]:
        """Return the guarantee and the maximum of each present queue, by its path."""
        ...

    def policy_failures(self) -> Mapping[str, Mapping[str, PointFailures]]:
        """Return the failures so far by policy and method."""
        ...

    def advance_to(self, now_ns: int, must_stop: Callable[[], bool]) -> None:
        """Move the clock forward, and fire each deadline on the way in order.

        It may stop at a deadline, and does where the core is not idle afterwards or `must_stop` returns true.
        """
        ...

    def close(self) -> None:
        """End the core, which must not be called afterwards."""
        ...


class Traffic(Protocol):
    """The side of the resource managers: it has separate events, and answers the core.

    Times are virtual nanoseconds from the start of the simulation.
    """

    def start(self) -> None:
        """Register with the core and create the nodes.

        Raises:
            LicorneError: The core refuses the registration, for example its configuration.
        """
        ...

    def next_event_ns(self) -> int | None:
        """Return the time of the next event on this side, `None` without further events."""
        ...

    def deliver(self, now_ns: int) -> None:
        """Process the due events; the resulting requests are kept for `send`."""
        ...

    def has_to_send(self) -> bool:
        """Return whether there are requests for `send`."""
        ...

    def send(self) -> None:
        """Send the kept requests; callbacks during the call may add more."""
        ...

    def is_anything_open(self) -> bool:
        """Return whether the core's timers could still matter when this side has no events left."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return the amount of finished work, and of all work."""
        ...


class SchedulerCore:
    """A stepped scheduler; a `Core`. A given resolver replaces the configured ones.

    Raises:
        LicorneError: The engine cannot have this number of threads.
    """

    def __init__(
        self,
        engine: EngineName,
        resolver: UserResolver | None = None,
        threads: int | None = None,
        kept_use: Mapping[str, KeptUse] | None = None,
        policies: Mapping[str, PolicyFactory] | None = None,
    ) -> None:
        self._scheduler = Scheduler(
            engine=engine,
            stepped=True,
            threads=threads,
            resolver=resolver,
            kept_use=kept_use,
            policies=policies,
        )

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler itself, for questions."""
        return self._scheduler

    @property
    def api(self) -> SchedulerAPI:
        """The interface for resource managers."""
        return self._scheduler

    def now_ns(self) -> int:
        """Return the virtual time, nanoseconds since 1970."""
        return self._scheduler.now_ns()

    def deliver(self) -> None:
        """Call back with all announcements so far."""
        self._scheduler.deliver()

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return the number of cycles with a result."""
        return self._scheduler.settle()

    def next_deadline_ns(self) -> int | None:
        """Return the time of the next deadline, `None` without one."""
        return self._scheduler.next_deadline_ns()

    def is_idle(self) -> bool:
        """Return whether a step would do nothing, now and later, until something changes."""
        return rests(self._scheduler)

    def queue_and_user(self, application_id: str, rm_id: str) -> QueueAndUser | None:
        """Return the queue and the user of an application, `None` if it is unknown."""
        return self._scheduler.queue_and_user(application_id, rm_id=rm_id)

    def waits_because(self, application_id: str) -> str:
        """Return what blocks an application, in one line; empty if it is unknown or ambiguous."""
        try:
            return explanation_line(self._scheduler.explain(application_id))
        except LicorneError:
            return ""

    def queue_bounds(self) -> dict[str, QueueBounds]:
        """Return the guarantee and the maximum of each queue, by its path; for equal paths, of one queue."""
        limits: dict[str, QueueBounds] = {}
        roots = self._scheduler.snapshot()["queues"]
        assert isinstance(roots, dict), "the queues are by partition"
        unread = list(roots.values())
        while unread:
            queue = unread.pop()
            assert isinstance(queue, dict), "a queue is a document"
            children = queue.get("children", [])
            assert isinstance(children, list), "children are documents"
            unread += children
            limits[str(queue["queuename"])] = QueueBounds(
                _quantities(queue.get("guaranteedResource")),
                _quantities(queue.get("maxResource")),
                _fair_terms(queue.get("properties"), is_leaf=queue["isLeaf"] is True),
            )
        return limits

    def policy_failures(self) -> Mapping[str, Mapping[str, PointFailures]]:
        """Return the failures so far by policy and method."""
        return self._scheduler.monitoring.policy_failures()

    def advance_to(self, now_ns: int, must_stop: Callable[[], bool]) -> None:
        """Move the clock, and fire each deadline on the way; stop at one that leaves something to do."""
        advance_while_resting(self._scheduler, now_ns, must_stop)

    def close(self) -> None:
        """Stop the scheduler."""
        self._scheduler.stop()


def _fair_terms(document: Json, *, is_leaf: bool) -> FairTerms:
    """Return the fair-share settings in the properties of a queue."""
    properties = document if isinstance(document, dict) else {}
    texts = {name: text for name, text in properties.items() if isinstance(text, str)}
    read = evaluate(texts, is_leaf=is_leaf)
    half_life_ns = None if is_leaf else read.fair_half_life_ns
    return FairTerms(half_life_ns, read.fair_count.counts_all, read.fair_weight or 1)


def _quantities(document: Json) -> dict[str, int]:
    """Return the amounts of a document, an empty mapping for `None`."""
    amounts = document if isinstance(document, dict) else {}
    return {name: amount for name, amount in amounts.items() if isinstance(amount, int)}


class CallbackGuard(ResourceManager):
    """A callback around another one, which keeps its errors.

    A scheduler logs the errors of a callback and continues, since it must survive errors of other programs.
    In a simulation both sides belong to Licorne, and an error must end it.

    With the inherited predicates it agrees to every node: a scheduler does not ask those at all.
    """

    def __init__(self, inner: ResourceManager) -> None:
        self._inner = inner
        self._failure: Exception | None = None

    def raise_failure(self) -> None:
        """Raise the first error of a callback since the last call, if any."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Pass the call on."""
        try:
            self._inner.update_allocation(response)
        except Exception as error:  # noqa: BLE001 - it is raised later
            self._failure = self._failure or error

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Pass the call on."""
        try:
            self._inner.update_application(response)
        except Exception as error:  # noqa: BLE001 - it is raised later
            self._failure = self._failure or error

    def update_node(self, response: si.NodeResponse) -> None:
        """Pass the call on."""
        try:
            self._inner.update_node(response)
        except Exception as error:  # noqa: BLE001 - it is raised later
            self._failure = self._failure or error


class AnnouncedManager(ResourceManager, TakesAnnouncements):
    """A resource manager that takes some announcements of the model without a message."""


class AnnouncementGuard(CallbackGuard, TakesAnnouncements):
    """A guard of a callback that takes announcements without messages: that saves a tenth of a simulation."""

    def __init__(self, inner: AnnouncedManager) -> None:
        super().__init__(inner)
        self._announced = inner.announced

    def announced(self, announcement: Announcement | EventsHappened) -> bool:
        """Pass the call on."""
        try:
            return self._announced(announcement)
        except Exception as error:  # noqa: BLE001 - it is raised later
            self._failure = self._failure or error
            return True


@final
class PoolGuard(AnnouncementGuard):
    """A guard of a callback whose work runs on some nodes only.

    Args:
        inner: The callback.
        is_allowed: Returns whether an ask, by its key, may have a node, by its id.
    """

    def __init__(self, inner: AnnouncedManager, is_allowed: Callable[[str, str], bool]) -> None:
        super().__init__(inner)
        self._is_allowed = is_allowed

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Refuse nodes of other pools."""
        if not self._is_allowed(args.allocationKey, args.nodeID):
            raise LicorneError("the node is not in the partition of the job")

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Refuse nodes of other pools."""
        if not self._is_allowed(args.allocationKey, args.nodeID):
            return None
        return super().preemption_predicates(args)


@final
class PredicateGuard(CallbackGuard):
    """A guard of a callback with predicates; their errors are answers, and are passed on."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Pass the call on."""
        self._inner.predicates(args)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Pass the call on."""
        return self._inner.preemption_predicates(args)
