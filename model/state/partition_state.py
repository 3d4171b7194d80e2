"""What a partition owns, and the bookkeeping that every change of it shares.

Queue tree, node order, seats of applications, user limits and counters belong together: each change of an
application comes back as an `Answer`, and `settle` brings all of them up to date with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, final

from ..applications.effects import ReleaseWanted, StateEntered, TimerKind, TimerSet
from ..applications.state import ApplicationState
from ..limits.user_limits import UserLimits
from ..nodes.order import NodeOrder, NodeSortPolicy
from ..placement.placement import usable_rules
from ..queues import quota as queue_quota
from ..queues.queue import Queue
from ..queues.seat import Seat
from ..queues.tree import QueueTree
from ..requests.quarantining import Quarantine
from ..resources.combinations import prune
from ..resources.comparisons import is_zero
from ..resources.resource import EMPTY, add, subtract, total_of
from ..values.messages import AllocationsReleased, ApplicationChanged, Release
from ..values.object_state import ObjectState
from .expiries import Expiries
from .key_claims import KeyClaims
from .placed_counts import PlacedCounts
from .preemption_attempts import FruitlessAttempts
from .preemption_log import PreemptionLog
from .refusal_notes import RefusalNotes
from .surroundings import ApplicationTimer, QueueCleaning, timer_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..applications.application import Application
    from ..applications.effects import Answer
    from ..applications.reservations import Reservation
    from ..configuration.schema import PartitionConfig
    from ..placement.requests import RuleOutcome
    from ..resources.resource import Resource
    from ..scheduling.reserved_pass import ReservedRest
    from ..values.allocation import Allocation, Ask
    from .surroundings import Surroundings

__all__ = ["CLEANING_INTERVAL_NS", "PartitionState", "RejectedApplication"]

CLEANING_INTERVAL_NS: Final = 10 * 1_000_000_000
"""How often queues that are empty are removed: at multiples of it since the partition was made."""


class RejectedApplication(NamedTuple):
    """A rejected application, and what the placement rules had to say of it, if they were asked."""

    serial: int
    application: Application
    rules: tuple[RuleOutcome, ...]


@final
class PartitionState:
    """The state of one partition. Owned by the partition; handles lead to its applications and nodes."""

    def __init__(self, name: str, rm_id: str, config: PartitionConfig, around: Surroundings) -> None:
        self.name = name
        self.rm_id = rm_id
        self.config = config
        self.around = around
        self.state = ObjectState.ACTIVE
        self.state_since_ns = around.now_ns()
        self.tree = QueueTree(config.root, around.weave(Queue))
        self.rules = usable_rules(config.placement_rules)
        self.limits = around.weave(UserLimits)()
        self.limits.update(config.root)
        policy = config.node_sort_policy
        self.nodes = around.weave(NodeOrder)(NodeSortPolicy(policy.type or "fair"), policy.resource_weights)
        self.capacity = EMPTY
        self.seats: dict[str, Seat] = {}
        self.serials: dict[str, int] = {}
        self.completed: dict[int, Application] = {}
        """Terminated applications by serial, until they expire."""
        self.rejected: dict[str, RejectedApplication] = {}
        """The latest rejected application of each id, until it expires."""
        self.expiries = Expiries(around)
        self.foreign: dict[str, Allocation] = {}
        self.keys = KeyClaims(self._keys_used_among)
        self.placed = around.weave(PlacedCounts)()
        self.reservations = 0
        self.changes = 0
        """Counts what may turn a refusal into a placement, other than a node that gains room."""
        self.reserved_rest: ReservedRest | None = None
        """Why the reserved asks need not be tried now."""
        self.node_changes = 0
        """Counts what may make a node reservable."""
        self.preemptions = PreemptionLog()
        self.fruitless_preemptions = FruitlessAttempts()
        self.quarantine = Quarantine()
        self.notes = RefusalNotes(kept=around.predicates is not None)
        self.preemption_claims: dict[str, str] = {}
        """Keys of asks whose victims go for a guarantee, and their applications; see `preemption_claims`."""
        self._serial = 0
        self._cleaning = False

    # -------------------------------------------------------------------------------------- settings

    @property
    def preemption_enabled(self) -> bool:
        """Whether asks may preempt across queues."""
        return self.config.preemption.enabled is not False

    @property
    def quota_preemption_enabled(self) -> bool:
        """Whether a lowered maximum is enforced by preemption."""
        return self.config.preemption.quota_preemption_enabled is True

    def now_ns(self) -> int:
        """Return the time, nanoseconds since 1970."""
        return self.around.now_ns()

    # ---------------------------------------------------------------------------------- applications

    def seat_application(self, application: Application, handle: Application, queue: Queue) -> Seat:
        """Give a new application its seat in a leaf."""
        seat = Seat(handle, application.application_id, application.user, queue, handle.facts())
        self._serial += 1
        self.serials[seat.application_id] = self._serial
        self.seats[seat.application_id] = seat
        queue.seats.add(seat)
        self.disturb(queue)
        return seat

    def unseat(self, seat: Seat) -> None:
        """Take a seat away; the application has nothing left that is counted."""
        queue = seat.queue
        self.limits.decrease(queue.path, seat.application_id, seat.user, EMPTY, remove_application=True)
        del self.seats[seat.application_id]
        self.stop_timers(self.serials.pop(seat.application_id))
        for level in queue.above:
            level.forget_accepted(seat.application_id)
        queue.seats.remove(seat)
        self.tree.refresh(queue)
        self.changes += 1
        if not queue.managed or queue.is_draining:
            self.clean_later()

    def forget(self, seat: Seat, serial: int) -> None:
        """Let go of an application that the RM has removed."""
        if seat.application_id in self.seats:
            if seat.facts.state is ApplicationState.RUNNING:
                for level in seat.queue.above:
                    level.count_running(seat.application_id, -1)
            self.unseat(seat)
        self.limits.drop_unused(seat.queue.path, seat.user)
        self.completed.pop(serial, None)
        self.expiries.forget(serial)
        self.around.release(seat.application)

    def keep_rejected(
        self,
        application: Application,
        handle: Application,
        reason: str,
        rules: tuple[RuleOutcome, ...],
    ) -> None:
        """Keep a rejected application to be looked at until it expires."""
        name = application.application_id
        before = self.rejected.get(name)
        if before is not None:
            self.expiries.forget(before.serial)
            self.around.release(before.application)
        self._serial += 1
        self.rejected[name] = RejectedApplication(self._serial, handle, rules)
        for effect in handle.reject(reason, self.now_ns()).effects:
            if isinstance(effect, TimerSet):
                timer = ApplicationTimer(name, self._serial, effect.kind, effect.generation)
                self.expiries.add(effect.due_ns, timer)

    def _keys_used_among(self, application_id: str, allocation_keys: Sequence[str]) -> Sequence[str]:
        seat = self.seats.get(application_id)
        if seat is None:
            return allocation_keys if application_id in self.quarantine.applications else ()
        return seat.application.known_among(allocation_keys)

    def disturb(self, queue: Queue) -> None:
        """Note that something changed in a leaf, so that it is looked at again."""
        queue.seats.rest = None

    # --------------------------------------------------------------------------------- consequences

    def settle(self, seat: Seat, answer: Answer) -> None:
        """Bring order, timers and the RM up to date with what an application answered."""
        seat.facts = answer.facts
        queue = seat.queue
        if answer.effects:
            self._follow(seat, answer)
        if seat.application_id in self.seats:
            queue.seats.refresh(seat)
            self.tree.refresh(queue)

    def _follow(self, seat: Seat, answer: Answer) -> None:
        releases = []
        terminated = False
        for effect in answer.effects:
            if isinstance(effect, StateEntered):
                self._entered(seat, effect)
                terminated = effect.entered in (ApplicationState.COMPLETED, ApplicationState.FAILED)
            elif isinstance(effect, TimerSet):
                self._start_timer(seat, effect, terminated=terminated)
            else:
                releases.append(self._release(seat, effect))
        if releases:
            self.around.announce(AllocationsReleased(tuple(releases)))
        if terminated:
            self.retire(seat)

    def _start_timer(self, seat: Seat, effect: TimerSet, *, terminated: bool) -> None:
        serial = self.serials[seat.application_id]
        timer = ApplicationTimer(seat.application_id, serial, effect.kind, effect.generation)
        if terminated:
            self.expiries.add(effect.due_ns, timer)
        else:
            self.around.cancel(timer_key(timer))
            self.around.call_at(effect.due_ns, timer)

    def stop_timers(self, serial: int) -> None:
        """Have no timer come any more of an application that is gone."""
        for kind in TimerKind:
            self.around.cancel((serial, kind))

    def _entered(self, seat: Seat, effect: StateEntered) -> None:
        queue = seat.queue
        if effect.left is ApplicationState.RUNNING:
            self.changes += 1
            for level in queue.above:
                level.count_running(seat.application_id, -1)
        if effect.entered is ApplicationState.RUNNING:
            for level in queue.above:
                level.count_running(seat.application_id, 1)
        if effect.entered is ApplicationState.COMPLETING:
            _give_place_back(self, seat)
        self.disturb(queue)
        self.announce_state(seat.application_id, effect)

    def announce_state(self, application_id: str, effect: StateEntered) -> None:
        """Tell the RM of a state that an application has entered."""
        changed = ApplicationChanged(application_id, effect.entered.value, effect.time_ns, effect.text)
        self.around.announce(changed)

    def _release(self, seat: Seat, effect: ReleaseWanted) -> Release:
        return Release(
            partition=self.name,
            application_id=seat.application_id,
            allocation_key=effect.allocation_key,
            termination=effect.termination,
            message=effect.text,
        )

    def retire(self, seat: Seat) -> None:
        """Move an application that has terminated to the completed ones."""
        answer = seat.application.finish(self.now_ns())
        for record in answer.asks:
            if not record.placed:
                self.remove_pending(seat, record.ask)
        self.drop_reservations(answer.reservations)
        if answer.summary is not None:
            self.around.summarise(answer.summary)
        serial = self.serials[seat.application_id]
        self.completed[serial] = seat.application
        self.unseat(seat)

    # ------------------------------------------------------------------------------------- limits

    def user_headroom(self, seat: Seat) -> Resource | None:
        """Return how much more an application's user and group may use, `None` if they are not limited."""
        if seat.looked_at and not self.limits.is_limited:
            return None
        seat.looked_at = True
        return self.limits.headroom(seat.queue.path, seat.application_id, seat.user)

    def may_start(self, seat: Seat) -> bool:
        """Tell whether the numbers of running applications of its user and group let an application start."""
        if seat.looked_at and not self.limits.is_limited:
            return True
        return self.limits.can_run(seat.queue.path, seat.application_id, seat.user)

    # ------------------------------------------------------------------------------------- counting

    def add_pending(self, seat: Seat, *asks: Ask) -> None:
        """Count new waiting asks in their queues."""
        total = total_of([ask.resource for ask in asks])
        for ask in asks:
            seat.queue.seats.count_size(ask.resource, 1)
        for level in seat.queue.above:
            level.add_pending(total)
        self.disturb(seat.queue)

    def remove_pending(self, seat: Seat, ask: Ask) -> None:
        """Count an ask as waiting no longer."""
        for level in seat.queue.above:
            level.remove_pending(ask.resource)
        seat.queue.seats.count_size(ask.resource, -1)

    def count_placed(self, seat: Seat, allocation: Allocation) -> None:
        """Count an allocation for its user and the partition; its queues are charged already."""
        ask = allocation.ask
        self.limits.increase(seat.queue.path, seat.application_id, seat.user, ask.resource)
        self.placed.count(ask)

    def count_ended(self, seat: Seat, answer: Answer) -> None:
        """Take the removed allocations of an answer off the queues, the user and the counters."""
        last = len(answer.allocations) - 1
        for position, allocation in enumerate(answer.allocations):
            self.uncount(seat, allocation, ended=answer.ended and position == last)
        for allocation in answer.preempted:
            for level in seat.queue.above:
                level.remove_preempting(allocation.ask.resource)

    def uncount(self, seat: Seat, allocation: Allocation, *, ended: bool) -> None:
        """Take an allocation off its queues, its user and the counters."""
        resource = allocation.ask.resource
        queue_quota.discharge(seat.queue, resource)
        self.limits.decrease(
            seat.queue.path, seat.application_id, seat.user, resource, remove_application=ended
        )
        self.placed.uncount(allocation.ask)
        self.changes += 1

    def leave_node(self, allocation: Allocation) -> None:
        """Take an allocation off its node, if the node is known."""
        seat = self.nodes.get(allocation.node_id)
        if seat is not None:
            self.nodes.give(seat, seat.node.remove(allocation.ask.allocation_key))

    def drop_reservations(self, reservations: tuple[Reservation, ...]) -> None:
        """Free the nodes of reservations that an application has dropped."""
        for reservation in reservations:
            self.reservations -= 1
            seat = self.nodes.get(reservation.node_id)
            if seat is not None and seat.node.unreserve(reservation.allocation_key):
                self.nodes.set_reserved(seat, reserved=False)
                self.node_changes += 1

    def reorder(self) -> None:
        """Bring all orders up to date with a configuration, and have every leaf looked at again."""
        self.tree.limits_changed()
        for queue in self.tree:
            queue.seats.rebuild()
            self.tree.refresh(queue)
            queue.seats.rest = None
        self.changes += 1
        self.node_changes += 1

    # ------------------------------------------------------------------------------------- cleaning

    def clean_later(self) -> None:
        """Have queues that may be empty looked at, at the next turn of the cleaner."""
        if self._cleaning:
            return
        self._cleaning = True
        since_ns = self.now_ns() - self.state_since_ns
        turns = since_ns // CLEANING_INTERVAL_NS + 1
        self.around.call_at(self.state_since_ns + turns * CLEANING_INTERVAL_NS, QueueCleaning())

    def clean_queues(self) -> None:
        """Remove the queues that are empty and not wanted; those still in use are looked at again later."""
        self._cleaning = False
        self.tree.clean()

    # ------------------------------------------------------------------------------------- capacity

    def change_capacity(self, before: Resource, after: Resource) -> None:
        """Count a node's capacity for the partition and the root's maximum."""
        self.capacity = prune(subtract(add(self.capacity, after), before))
        self.tree.root.set_maximum_from_nodes(self.capacity)
        self.tree.limits_changed()
        self.changes += 1
        self.node_changes += 1


def _give_place_back(state: PartitionState, seat: Seat) -> None:
    """Let another application of the user start in the place of one that is Completing and has nothing left.

    It ended with an allocation, or with the withdrawal of an ask. Placeholders keep its place: they use the
    user's quota.
    """
    if is_zero(seat.facts.allocated) and is_zero(seat.facts.placeholder_allocated):
        path = seat.queue.path
        state.limits.decrease(path, seat.application_id, seat.user, EMPTY, remove_application=True)
        state.changes += 1
