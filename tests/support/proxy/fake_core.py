"""A toy scheduler behind the real interface: first fit in order of arrival, without queues and limits.

It is a fake for the tests of simulations, and it does only what those need: it accepts everything, places
what fits, replaces placeholders, gives room back, and fires the timers that a test set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from licorne.model.errors import LicorneError
from licorne.model.policies.watching import PointFailures
from licorne.proxy.core.scheduler.answering.questions import QueueAndUser
from licorne.proxy.play.simulation.reporting.run_series import QueueBounds
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManagerCallback

START_NS = 946_684_800 * 10**9


@dataclass
class _Node:
    """A node and what is free on it."""

    node_id: str
    free: dict[str, int]

    def take(self, resources: dict[str, int], sign: int) -> None:
        for name, quantity in resources.items():
            self.free[name] = self.free.get(name, 0) - sign * quantity

    def has(self, resources: dict[str, int]) -> bool:
        return all(quantity <= self.free.get(name, 0) for name, quantity in resources.items())


@dataclass
class FakeCore:
    """A core for tests; the API, the clock and the scheduler in one.

    Attributes:
        refused_queues: Applications for these are rejected.
        refused_configuration: A registration with this text is refused.
        refuses_everything: Every registration is refused.
        requests: Everything that the resource managers said, in order.
        queues_instead: Where placement puts applications that ask for these queues.
        limits: What queues are guaranteed and may use.
    """

    refused_queues: set[str] = field(default_factory=set)
    refused_configuration: str = "refuse me"
    refuses_everything: bool = False
    requests: list[object] = field(default_factory=list)
    queues_instead: dict[str, str] = field(default_factory=dict)
    limits: dict[str, QueueBounds] = field(default_factory=dict)
    is_closed: bool = False
    _now_ns: int = START_NS
    _callback: ResourceManagerCallback | None = None
    _nodes: list[_Node] = field(default_factory=list)
    _applications: dict[str, si.AddApplicationRequest] = field(default_factory=dict)
    _pending: dict[str, si.Allocation] = field(default_factory=dict)
    _placed: dict[str, tuple[si.Allocation, _Node]] = field(default_factory=dict)
    _replacements: dict[str, si.Allocation] = field(default_factory=dict)
    _timers: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    @property
    def api(self) -> FakeCore:
        return self

    def now_ns(self) -> int:
        return self._now_ns

    def close(self) -> None:
        self.is_closed = True

    # ------------------------------------------------------------------------------------- time

    def at(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Set a timer, counted from the start."""
        self._timers.append((START_NS + delay_ns, action))
        self._timers.sort(key=lambda timer: timer[0])

    def next_deadline_ns(self) -> int | None:
        return self._timers[0][0] if self._timers else None

    def is_idle(self) -> bool:
        return False

    def advance_to(self, now_ns: int, must_stop: Callable[[], bool] = bool) -> None:  # noqa: ARG002 - it never stops
        assert now_ns >= self._now_ns, "the clock does not go back"
        while self._timers and self._timers[0][0] <= now_ns:
            self._now_ns, action = self._timers.pop(0)
            action()
        self._now_ns = now_ns

    def queue_and_user(self, application_id: str, rm_id: str) -> QueueAndUser | None:  # noqa: ARG002 - there is one
        known = self._applications.get(application_id)
        if known is None:
            return None
        queue = self.queues_instead.get(known.queueName, known.queueName)
        return QueueAndUser(queue, known.ugi.user, tuple(known.ugi.groups))

    def waits_because(self, application_id: str) -> str:
        return f"{application_id} is blocked"

    def queue_bounds(self) -> dict[str, QueueBounds]:
        return self.limits

    def policy_failures(self) -> dict[str, dict[str, PointFailures]]:
        return {}

    # ------------------------------------------------------------------------------- scheduling

    def deliver(self) -> None:
        """Do nothing: it answers inside each request."""

    def run_until_idle(self) -> int:
        results = 0
        for ask in list(self._pending.values()):
            resources = _quantities(ask)
            node = next((node for node in self._nodes if node.has(resources)), None)
            if self._replace_placeholder(ask):
                results += 1
            elif node is not None and not self._waits_for_its_gang(ask):
                self._place(ask, node)
                results += 1
        return results

    def want_back(self, key: str, termination: si.TerminationType) -> None:
        """Ask the resource manager to end an allocation or an ask."""
        ask = self._pending.pop(key, None) or self._placed[key][0]
        self._tell(si.AllocationResponse(released=[_release(ask, termination)]))

    def lose(self, key: str) -> None:
        """Tell that an allocation is gone, as when its node is."""
        ask = self._free(key)
        self._tell(si.AllocationResponse(released=[_release(ask, si.STOPPED_BY_RM)]))

    def tell_state(self, application_id: str, state: str) -> None:
        """Tell that an application entered a state."""
        updated = si.UpdatedApplication(applicationID=application_id, state=state, message="because")
        self._rm.update_application(si.ApplicationResponse(updated=[updated]))

    def _place(self, ask: si.Allocation, node: _Node) -> None:
        node.take(_quantities(ask), 1)
        del self._pending[ask.allocationKey]
        self._announce(ask, node)
        self._run_a_complete_gang(ask.applicationID)

    def _announce(self, ask: si.Allocation, node: _Node) -> None:
        self._placed[ask.allocationKey] = (ask, node)
        new = si.Allocation(
            allocationKey=ask.allocationKey,
            applicationID=ask.applicationID,
            nodeID=node.node_id,
            placeholder=ask.placeholder,
        )
        self._tell(si.AllocationResponse(new=[new]))

    # ------------------------------------------------------------------------------------- gangs

    def _waits_for_its_gang(self, ask: si.Allocation) -> bool:
        return bool(ask.taskGroupName) and not ask.placeholder

    def _run_a_complete_gang(self, application_id: str) -> None:
        application = self._applications[application_id]
        held = dict.fromkeys(application.placeholderAsk.resources, 0)
        for placed, _ in self._placed.values():
            if placed.applicationID == application_id and placed.placeholder:
                for name, quantity in _quantities(placed).items():
                    held[name] += quantity
        if held and held == {name: q.value for name, q in application.placeholderAsk.resources.items()}:
            self.tell_state(application_id, "Running")

    def _replace_placeholder(self, ask: si.Allocation) -> bool:
        if not self._waits_for_its_gang(ask):
            return False
        for key, (placed, _) in self._placed.items():
            same_group = (placed.applicationID, placed.taskGroupName) == (
                ask.applicationID,
                ask.taskGroupName,
            )
            if placed.placeholder and same_group and key not in self._replacements:
                self._replacements[key] = self._pending.pop(ask.allocationKey)
                self._tell(si.AllocationResponse(released=[_release(placed, si.PLACEHOLDER_REPLACED)]))
                return True
        return False

    # --------------------------------------------------------------------------------------- API

    @property
    def _rm(self) -> ResourceManagerCallback:
        assert self._callback is not None, "nobody is registered"
        return self._callback

    def _tell(self, response: si.AllocationResponse) -> None:
        self._rm.update_allocation(response)

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        self.requests.append(request)
        if self.refuses_everything or request.config == self.refused_configuration:
            raise LicorneError(f"the configuration {request.config!r} is refused")
        self._callback = callback
        return si.RegisterResourceManagerResponse()

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        self.requests.append(request)

    def update_node(self, request: si.NodeRequest) -> None:
        self.requests.append(request)
        accepted = []
        for info in request.nodes:
            if info.action == si.NodeInfo.CREATE:
                quantities = {name: q.value for name, q in info.schedulableResource.resources.items()}
                self._nodes.append(_Node(info.nodeID, quantities))
                accepted.append(si.AcceptedNode(nodeID=info.nodeID))
        self._rm.update_node(si.NodeResponse(accepted=accepted))

    def update_application(self, request: si.ApplicationRequest) -> None:
        self.requests.append(request)
        response = si.ApplicationResponse()
        for application in request.new:
            if application.queueName in self.refused_queues:
                reason = f"no queue for {application.applicationID}"
                response.rejected.add(applicationID=application.applicationID, reason=reason)
            else:
                self._applications[application.applicationID] = application
                response.accepted.add(applicationID=application.applicationID)
        self._rm.update_application(response)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        self.requests.append(request)
        rejected = []
        for ask in request.allocations:
            if ask.applicationID in self._applications:
                self._pending[ask.allocationKey] = ask
                continue
            reason = f"failed to find application {ask.applicationID}"
            rejection = si.RejectedAllocation(
                allocationKey=ask.allocationKey, applicationID=ask.applicationID, reason=reason
            )
            rejected.append(rejection)
        if rejected:
            self._tell(si.AllocationResponse(rejectedAllocations=rejected))
        for release in request.releases.allocationsToRelease:
            self._take_release(release)

    def _take_release(self, release: si.AllocationRelease) -> None:
        key = release.allocationKey
        if key not in self._placed:
            self._pending.pop(key, None)
            return
        node = self._placed[key][1]
        ask = self._free(key)
        if release.terminationType == si.PLACEHOLDER_REPLACED:
            real = self._replacements.pop(key)
            node.take(_quantities(real), 1)
            self._announce(real, node)
        elif release.terminationType == si.STOPPED_BY_RM:
            self._tell(si.AllocationResponse(released=[_release(ask, si.STOPPED_BY_RM)]))

    def _free(self, key: str) -> si.Allocation:
        ask, node = self._placed.pop(key)
        node.take(_quantities(ask), -1)
        return ask

    def stop(self) -> None:
        """End nothing: there is no thread."""


def _quantities(ask: si.Allocation) -> dict[str, int]:
    return {name: quantity.value for name, quantity in ask.resourcePerAlloc.resources.items()}


def _release(ask: si.Allocation, termination: si.TerminationType) -> si.AllocationRelease:
    return si.AllocationRelease(
        applicationID=ask.applicationID,
        allocationKey=ask.allocationKey,
        partitionName="[simulation]default",
        terminationType=termination,
    )
