"""A partition that a test can drive step by step.

`Harness` surrounds a partition as the doors in `licorne.proxy` do: direct handles, a virtual clock, and a
memory for everything that it tells its resource manager. After every step it asks `validate()`, and it
checks that no key is announced as placed twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from support.model.builders import (
    PARTITION,
    SECOND_NS,
    TEN,
    a_configuration,
    a_resource,
    an_application_submission,
    an_ask_submission,
)

from licorne.actors.services.clocks import VirtualClock
from licorne.model.applications.application import Application
from licorne.model.applications.pending_asks import AskRecord
from licorne.model.nodes.node import NodeFacts
from licorne.model.partition import Partition
from licorne.model.predicates.node_checks import Predicates, QuestionChannel
from licorne.model.queues.application_entry import ApplicationEntry
from licorne.model.queues.queue import Queue
from licorne.model.queues.use_order import KeptUse
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.scheduling.cycle import CycleOutcome, run_cycle
from licorne.model.state.host import PartitionHost, TimerAction
from licorne.model.state.invariants import validate_partition
from licorne.model.state.partition_state import PartitionState
from licorne.model.values.allocation import Allocation, PlacementHalt
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationRejection,
    AllocationsRecovered,
    AllocationsRejected,
    AllocationsReleased,
    Announcement,
    ApplicationChanged,
    ApplicationRemoval,
    ApplicationsAnswered,
    AskTerms,
    NodeAction,
    NodesAnswered,
    NodeUpdate,
    Rejection,
    Release,
    TerminationType,
)

_CYCLES_MAX: Final = 10_000
_ECHOES: Final = frozenset({TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN_TERMINATION_TYPE})
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Asked:
    """Asks of an application, in a row of a table: `Asked("a b", priority=1)`."""

    keys: str
    application_id: str = "app"
    queue_name: str = "root.leaf"
    user: str = "bob"
    resource: Resource = TEN
    priority: int = 0
    node_id: str = ""
    required_node: str = ""
    task_group_name: str = ""
    placeholder: bool = False


class Harness:
    """A partition in the hands of a test. Every step ends with `validate()`.

    Args:
        queues: the queues below the root, as YAML; a leaf `root.leaf` unless said otherwise.
        root: lines of the root queue.
        partition: lines of the partition, for example its node sort policy.
        predicates: the RM's judgement; without it every node is fine.
        question_channel: the way to predicates that the RM answers later.
        reservations_on: whether nodes are reserved for asks that wait.
    """

    def __init__(
        self,
        queues: str = "- name: leaf",
        *,
        root: str = "",
        partition: str = "",
        predicates: Predicates | None = None,
        question_channel: QuestionChannel | None = None,
        reservations_on: bool = True,
        kept_use: KeptUse | None = None,
    ) -> None:
        self.announcements: list[Announcement] = []
        self.halt: PlacementHalt | None = None
        self.flushes = 0
        self.released_handles: list[object] = []
        self.clock = VirtualClock(self._fire)
        self._live: set[tuple[str, str]] = set()
        self._unconfirmed: list[Release] = []
        host = PartitionHost(
            now_ns=self.clock.now_ns,
            call_at=lambda due_ns, action: self.clock.call_at(due_ns, PARTITION, action),
            cancel=lambda key: self.clock.cancel(PARTITION, key),
            announce=self._hear,
            flush=self._flush,
            placement_halt=lambda: self.halt,
            predicates=predicates,
            question_channel=question_channel,
            adopt_node=lambda node: node,
            adopt_application=lambda application: application,
            release=self.released_handles.append,
            reservations_on=reservations_on,
            kept_use=kept_use or KeptUse(),
        )
        config = a_configuration(queues, root=root, partition=partition)
        self.partition = Partition(PARTITION, "rm", config, host)

    # -------------------------------------------------------------------------------------- nodes

    def nodes(
        self,
        *node_ids: str,
        capacity: Resource = TEN,
        action: NodeAction = NodeAction.CREATE,
        attributes: Mapping[str, str] | None = None,
    ) -> NodesAnswered:
        """Create nodes of one size, in one message; return the answer."""
        heard = len(self.announcements)
        self._update_nodes(node_ids, action, capacity, attributes or {})
        return self._only(NodesAnswered, heard)

    def update_node(self, node_id: str, action: NodeAction, capacity: Resource | None = None) -> None:
        """Change, drain or remove a node."""
        self._update_nodes((node_id,), action, capacity, {})

    def _update_nodes(
        self,
        node_ids: tuple[str, ...],
        action: NodeAction,
        capacity: Resource | None,
        attributes: Mapping[str, str],
    ) -> None:
        updates = [
            NodeUpdate(node_id=node_id, action=action, attributes=attributes, resource=capacity)
            for node_id in node_ids
        ]
        self.partition.update_nodes(updates)
        self.validate()

    # ------------------------------------------------------------------------------- applications

    def submit(
        self,
        application_id: str = "app",
        queue_name: str = "root.leaf",
        **options: Any,
    ) -> Rejection | None:
        """Submit an application, see `an_application_submission`; return the rejection, if it is one."""
        submission = an_application_submission(application_id, queue_name, **options)
        heard = len(self.announcements)
        self.partition.update_applications([submission], [])
        self.validate()
        rejected = self._only(ApplicationsAnswered, heard).rejected
        return rejected[0] if rejected else None

    def withdraw(self, application_id: str = "app") -> None:
        """Have the RM take an application away."""
        self.partition.update_applications([], [ApplicationRemoval(application_id, PARTITION)])
        self._live = {entry for entry in self._live if entry[0] != application_id}
        self.validate()

    # -------------------------------------------------------------------------------- allocations

    def ask(
        self,
        *allocation_keys: str,
        application_id: str = "app",
        limit_seconds: int | None = None,
        allocations: int | None = None,
        preemption: bool = False,
        **options: Any,
    ) -> tuple[AllocationRejection, ...]:
        """Send asks in one message, see `an_ask_submission`; return what was rejected.

        With `limit_seconds` they are asks of the older generation, which may run so long; 0 is for ever. So
        they are with `allocations`: each is for so many. With `preemption` they may preempt and be preempted.
        """
        submissions = [
            an_ask_submission(key, application_id, willing=preemption, may_preempt=preemption, **options)
            for key in allocation_keys
        ]
        terms = [
            AskTerms(
                partition=PARTITION,
                application_id=application_id,
                allocation_key=key,
                timeout_ms=(limit_seconds or 0) * 1000,
                allocations=1 if allocations is None else allocations,
            )
            for key in allocation_keys
            if (limit_seconds, allocations) != (None, None)
        ]
        heard = len(self.announcements)
        self.partition.update_allocations(submissions, [], terms)
        self.validate()
        answers = [entry for entry in self.announcements[heard:] if isinstance(entry, AllocationsRejected)]
        return tuple(rejection for answer in answers for rejection in answer.rejections)

    def ask_and_run(self, *allocation_keys: str, **terms: Any) -> int:
        """Send asks that are not rejected, see `ask`, and run cycles; return how many gave a result."""
        assert self.ask(*allocation_keys, **terms) == ()
        return self.run_until_idle()

    def have(self, asked: Iterable[Asked]) -> None:
        """Have the asks of a row of a table, and their applications, which are submitted first."""
        asked = list(asked)
        for each in {each.application_id: each for each in reversed(asked)}.values():
            if each.application_id not in self.state.entries:
                self.submit(each.application_id, each.queue_name, user=each.user)
        for each in asked:
            options = dict(vars(each))
            keys = options.pop("keys").split()
            del options["queue_name"], options["user"]
            self.ask(*keys, **options)

    def release(
        self,
        *allocation_keys: str,
        application_id: str = "app",
        termination: TerminationType = TerminationType.STOPPED_BY_RM,
    ) -> None:
        """Have the RM end allocations and asks; the empty key means all of the application."""
        releases = [
            Release(
                partition=PARTITION,
                application_id=application_id,
                allocation_key=key,
                termination=termination,
            )
            for key in allocation_keys
        ]
        for key in allocation_keys:
            # The end of an allocation is sure from here on; its place may be announced for another one.
            self._live.discard((application_id, key))
        if "" in allocation_keys:
            self._live = {entry for entry in self._live if entry[0] != application_id}
        self.partition.update_allocations([], releases)
        self.validate()

    def confirm(self) -> int:
        """Confirm every release that the scheduler has asked for; return how many there were."""
        confirmed, self._unconfirmed = self._unconfirmed, []
        for wanted in confirmed:
            self.release(
                wanted.allocation_key,
                application_id=wanted.application_id,
                termination=wanted.termination,
            )
        return len(confirmed)

    def settle(self) -> None:
        """Confirm what the scheduler has asked for, and run cycles until nothing more can be done."""
        self.confirm()
        self.run_until_idle()

    # --------------------------------------------------------------------------- cycles and time

    def cycle(self) -> CycleOutcome:
        """Run one cycle."""
        outcome = run_cycle(self.state)
        self.validate()
        return outcome

    def run_until_idle(self) -> int:
        """Run cycles until nothing more can be done; return how many gave a result."""
        results = 0
        for _ in range(_CYCLES_MAX):
            outcome = self.cycle()
            if outcome is CycleOutcome.NOTHING:
                return results
            results += outcome is CycleOutcome.RESULT
        raise AssertionError(f"the partition is still busy after {_CYCLES_MAX} cycles")

    def advance(self, seconds: int = 0, *, milliseconds: int = 0) -> None:
        """Let time pass and fire what is due, without running cycles."""
        time_ns = self.clock.now_ns() + seconds * SECOND_NS + milliseconds * 1_000_000
        while self.clock.advance_to(time_ns):
            self.validate()
        self.validate()

    def wait(self, seconds: int = 0) -> int:
        """Let time pass, then run cycles until nothing more can be done; return how many gave a result."""
        self.advance(seconds)
        return self.run_until_idle()

    def reload(self, queues: str, *, root: str = "", partition: str = "") -> None:
        """Give the partition another configuration."""
        self.partition.reconfigure(a_configuration(queues, root=root, partition=partition))
        self.validate()

    def validate(self) -> None:
        """Assert every invariant of the partition."""
        self.partition.read(validate_partition)

    # -------------------------------------------------------------------------------------- looks

    @property
    def state(self) -> PartitionState:
        """What the partition owns, to be looked at."""
        return self.partition._state

    @property
    def placements(self) -> dict[str, str]:
        """Every key that was ever announced as placed, and its node, in order."""
        return {allocation.allocation_key: allocation.node_id for allocation in self.placed}

    @property
    def placed(self) -> list[Allocation]:
        """Every allocation that was announced as placed or recovered, in order."""
        found: list[Allocation] = []
        for entry in self.announcements:
            if isinstance(entry, AllocationPlaced):
                found.append(entry.allocation)
            elif isinstance(entry, AllocationsRecovered):
                found += entry.allocations
        return found

    @property
    def releases(self) -> list[tuple[str, TerminationType]]:
        """Every release that was announced, in order."""
        return [
            (release.allocation_key, release.termination)
            for entry in self.heard(AllocationsReleased)
            for release in entry.releases
        ]

    def states(self, application_id: str = "app") -> list[str]:
        """Return the states that were announced of an application, in order."""
        changes = self.heard(ApplicationChanged)
        return [entry.state for entry in changes if entry.application_id == application_id]

    def heard(self, kind: type[_Kind]) -> list[_Kind]:
        """Return all announcements of a kind, in order."""
        return [entry for entry in self.announcements if isinstance(entry, kind)]

    def forget(self) -> None:
        """Forget what was announced so far."""
        self.announcements.clear()

    def entry(self, application_id: str = "app") -> ApplicationEntry:
        """Return the entry of an application."""
        return self.state.entries[application_id]

    def application(self, application_id: str = "app") -> Application:
        """Return an application that is active."""
        application = self.entry(application_id).application
        assert isinstance(application, Application)
        return application

    def ask_record(self, key: str = "ask", application_id: str = "app") -> AskRecord:
        """Return what is known of an ask that waits."""
        record = self.application(application_id).asks.record(key)
        assert record is not None, f"{key} does not wait"
        return record

    def queue(self, path: str = "root.leaf") -> Queue:
        """Return a queue."""
        queue = self.state.tree.find(path)
        assert queue is not None, f"there is no queue {path}"
        return queue

    def node(self, node_id: str = "node") -> NodeFacts:
        """Return what a node knows of itself."""
        entry = self.state.nodes.get(node_id)
        assert entry is not None, f"there is no node {node_id}"
        return entry.node.facts()

    def user_usage(self, user: str = "bob") -> Resource:
        """Return what a user uses."""
        return self.state.limits.usages().get(user, EMPTY)

    # ------------------------------------------------------------------------------------- inside

    def _fire(self, partition: str, action: TimerAction) -> None:
        assert partition == PARTITION, f"a timer for {partition}"
        self.partition.on_timer(action)

    def _flush(self) -> None:
        self.flushes += 1

    def _hear(self, announcement: Announcement) -> None:
        self.announcements.append(announcement)
        if isinstance(announcement, AllocationPlaced):
            ask = announcement.allocation.ask
            entry = (ask.application_id, ask.allocation_key)
            assert entry not in self._live, f"{entry} is announced as placed twice"
            self._live.add(entry)
        elif isinstance(announcement, AllocationsReleased):
            for release in announcement.releases:
                if release.termination in _ECHOES:
                    self._live.discard((release.application_id, release.allocation_key))
                else:
                    self._unconfirmed.append(release)

    def _only(self, kind: type[_Kind], since: int) -> _Kind:
        (answer,) = [entry for entry in self.announcements[since:] if isinstance(entry, kind)]
        return answer


def a_partition(
    *node_ids: str,
    capacity: Resource = TEN,
    queues: str = "- name: leaf",
    queue_name: str = "root.leaf",
    placeholder_ask: Resource | None = None,
    style: str = "",
    timeout_seconds: int = 0,
    **settings: Any,
) -> Harness:
    """Return a partition with nodes of one size and an application `app`; see `Harness` for the settings."""
    harness = Harness(queues, **settings)
    if node_ids:
        harness.nodes(*node_ids, capacity=capacity)
    rejection = harness.submit(
        queue_name=queue_name, placeholder_ask=placeholder_ask, style=style, timeout_seconds=timeout_seconds
    )
    assert rejection is None, rejection
    return harness


def a_roomy_partition(*node_ids: str, queues: str = "- name: leaf", **settings: Any) -> Harness:
    """Return a partition with nodes of ten, in which queues have room for all: only nodes bar an ask.

    A large node that is cordoned gives them that room.
    """
    harness = Harness(queues, **settings)
    spare = a_resource(memory=100_000, gpu=100)
    harness.nodes("spare", capacity=spare, action=NodeAction.CREATE_DRAIN)
    if node_ids:
        harness.nodes(*node_ids)
    return harness


def a_running_partition(
    *allocation_keys: str,
    nodes: Collection[str] = ("one", "two"),
    capacity: Resource = TEN,
    queues: str = "- name: leaf",
    predicates: Predicates | None = None,
    **submission: Any,
) -> Harness:
    """Return a partition with nodes of one size and an application, see `submit`, whose asks are placed.

    What was announced so far is forgotten.
    """
    h = Harness(queues, predicates=predicates)
    h.nodes(*nodes, capacity=capacity)
    h.submit(**submission)
    if allocation_keys:
        h.ask_and_run(*allocation_keys)
    h.forget()
    return h
