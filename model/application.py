"""An application: what it asks for, what it has, and where it is in its life.

The application owns its asks, allocations, placeholders, reservations, state and timers, and reaches for
nothing else: what a change means for its queue, its user, a node or the RM goes back to the partition in
the `Answer`. Every method may be called when the world has moved on: what no longer applies is declined
with `None`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from . import gang
from .application_life import Life
from .application_state import ACTIVE_STATES, ApplicationEvent, ApplicationState
from .application_views import application_facts, application_view, validate_application
from .ask_walk import next_candidate
from .effects import Answer, TimerKind
from .marks import reads, writes
from .pending_asks import PendingAsks
from .placed import Placed
from .reservations import Reservation, Reservations
from .resource_combinations import component_wise_max, prune
from .resource_comparisons import is_zero
from .resources import EMPTY, add, fits, subtract, take_away
from .task_groups import TaskGroups
from .tracked_resource import TrackedResource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .allocation import Allocation, Ask
    from .ask_walk import AskWalk, Candidate
    from .effects import ApplicationFacts, Effect
    from .gang import SwapOffer, SwapWalk
    from .messages import TerminationType
    from .pending_asks import AskRecord
    from .refusals import Refusal
    from .resources import Resource
    from .users import User
    from .views import Document

__all__ = ["INT32_MIN", "Application"]

INT32_MIN: Final = -(2**31)
_SECOND_NS: Final = 1_000_000_000


def _less(total: Resource, part: Resource) -> Resource:
    """Return a sum without one of its parts."""
    left = take_away(total, part)
    assert left is not None, f"{part!r} is no part of {total!r}: please report"
    return left


@final
class Application:
    """One application.

    What is set when it is made (`application_id`, `user`, `tags`, `submitted_at_ns` of the submission,
    the gang's settings) never changes and may be read by anybody.
    """

    def __init__(
        self,
        application_id: str,
        *,
        partition: str,
        queue_path: str,
        user: User,
        tags: Mapping[str, str],
        submitted_at_ns: int,
        gang_settings: gang.GangSettings,
    ) -> None:
        self.application_id = application_id
        self.partition = partition
        self.queue_path = queue_path
        self.user = user
        self.tags = tags
        self.gang_settings = gang_settings
        self._submitted_at_ns = submitted_at_ns
        self._finished_at_ns: int | None = None
        self._rejection = ""
        self._life = Life()
        self._asks = PendingAsks()
        self._placed: dict[str, Placed] = {}
        self._swapping: dict[str, str] = {}
        """Key of the real allocation -> key of the placeholder that it is to replace."""
        self._task_groups = TaskGroups()
        self._reservations = Reservations()
        self._pending = EMPTY
        self._allocated = EMPTY
        self._placeholder_allocated = EMPTY
        self._most_used = EMPTY
        self._used = TrackedResource()
        self._used_preempted = TrackedResource()
        self._used_placeholder = TrackedResource()
        self._backoff_until_ns: int | None = None
        self._refusals: tuple[Refusal, ...] = ()

    # ------------------------------------------------------------------------------------- asks

    @writes
    def add_asks(self, asks: Sequence[Ask], now_ns: int) -> tuple[Answer, tuple[Ask, ...]]:
        """Take asks in, in order; return also those whose keys are known, which are not taken."""
        effects: list[Effect] = []
        known = []
        pending = self._pending
        for ask in asks:
            if self.knows(ask.allocation_key):
                known.append(ask)
                continue
            self._asks.add(ask)
            pending = add(pending, ask.resource)
            if ask.created_at_ns < self._submitted_at_ns:
                self._submitted_at_ns = ask.created_at_ns
            if ask.placeholder:
                self._task_groups.count_placeholder(ask)
        idle = self._life.state in (ApplicationState.NEW, ApplicationState.COMPLETING)
        if idle and len(known) < len(asks):
            self._life.handle(ApplicationEvent.RUN, now_ns, effects)
        self._pending = pending
        return self._answer(effects), tuple(known)

    @reads
    def knows(self, allocation_key: str) -> bool:
        """Tell whether the key is that of an ask, of an allocation, or of a swap that is under way."""
        return (
            allocation_key in self._asks or allocation_key in self._placed or allocation_key in self._swapping
        )

    @writes
    def remove_ask(self, allocation_key: str, now_ns: int) -> Answer:
        """Forget an ask with its reservation; the application completes if that was the last of it."""
        effects: list[Effect] = []
        known = bool(self._asks.records)
        record = self._asks.remove(allocation_key)
        removed = () if record is None else (record,)
        return self._asks_removed(removed, effects, now_ns, check=known)

    @writes
    def remove_all_asks(self, now_ns: int) -> Answer:
        """Forget every ask with its reservation; the application completes if nothing else is left."""
        effects: list[Effect] = []
        removed = tuple(self._asks.records.values())
        for record in removed:
            self._asks.remove(record.ask.allocation_key)
        return self._asks_removed(removed, effects, now_ns, check=bool(removed))

    def _asks_removed(
        self,
        removed: tuple[AskRecord, ...],
        effects: list[Effect],
        now_ns: int,
        *,
        check: bool,
    ) -> Answer:
        reservations = []
        for record in removed:
            if not record.placed:
                self._pending = _less(self._pending, record.ask.resource)
            reservation = self._reservations.remove(record.ask.allocation_key)
            if reservation is not None:
                reservations.append(reservation)
        has_placeholders = any(placed.allocation.ask.placeholder for placed in self._placed.values())
        if check and self._has_nothing_real() and not has_placeholders and self._life.state not in (
            ApplicationState.FAILING,
            ApplicationState.COMPLETING,
        ):
            self._life.handle(ApplicationEvent.COMPLETE, now_ns, effects)
        return self._answer(effects, asks=removed, reservations=tuple(reservations))

    def _has_nothing_real(self) -> bool:
        return not self._asks.has_waiting and is_zero(self._allocated)

    @writes
    def resize_ask(self, allocation_key: str, resource: Resource) -> Answer | None:
        """Give a waiting ask another size; the answer's ask has the new one."""
        record = self._asks.get(allocation_key)
        if record is None or record.placed:
            return None
        self._pending = prune(add(subtract(self._pending, record.ask.resource), resource))
        self._asks.resize(record, resource)
        return self._answer((), asks=(record,))

    # ------------------------------------------------------------------------------- scheduling

    @writes
    def next_candidate(self, walk: AskWalk) -> Candidate | None:
        """Return the next ask that is worth a try in this cycle; notes why others are not."""
        candidate = next_candidate(walk, self._asks, self._task_groups, self._reservations)
        if candidate is None:
            self._refusals = tuple(walk.refusals)
        return candidate

    @writes
    def end_walk(self, walk: AskWalk, last_key: str) -> None:
        """Note that the walk ended early, at the ask with this key."""
        record = self._asks.get(last_key)
        if record is not None:
            walk.mark_attempted(record.order)

    @writes
    def back_off(self, until_ns: int) -> None:
        """Ask for nothing until that time."""
        self._backoff_until_ns = until_ns

    @writes
    def note_refusal(self, allocation_key: str, text: str, now_ns: int) -> None:
        """Count a refusal in the log of an ask."""
        record = self._asks.get(allocation_key)
        if record is not None:
            record.note(text, now_ns)

    @writes
    def try_place(self, allocation: Allocation, now_ns: int) -> Answer | None:
        """Make an allocation of a waiting ask; `None` if the ask is gone or placed.

        A reservation that the ask held anywhere is dropped, and is in the answer.
        """
        record = self._asks.get(allocation.ask.allocation_key)
        if record is None or record.placed or self._life.state not in ACTIVE_STATES:
            return None
        effects: list[Effect] = []
        self._asks.place(record)
        self._pending = _less(self._pending, record.ask.resource)
        reservation = self._reservations.remove(allocation.ask.allocation_key)
        self._add_allocation(allocation, now_ns, effects)
        return self._answer(effects, reservations=() if reservation is None else (reservation,))

    @writes
    def recover(self, allocation: Allocation, now_ns: int) -> Answer:
        """Take over an allocation that the RM says exists; its key must be unknown."""
        effects: list[Effect] = []
        ask = allocation.ask
        self._asks.add(ask, placed=True)
        self._submitted_at_ns = min(self._submitted_at_ns, ask.created_at_ns)
        if ask.placeholder:
            self._task_groups.count_placeholder(ask)
        if self._life.state is ApplicationState.NEW:
            self._life.handle(ApplicationEvent.RUN, now_ns, effects)
        self._add_allocation(allocation, now_ns, effects)
        return self._answer(effects)

    def _add_allocation(
        self,
        allocation: Allocation,
        now_ns: int,
        effects: list[Effect],
        *,
        replaces: bool = False,
    ) -> None:
        ask = allocation.ask
        if ask.placeholder:
            self._add_placeholder(allocation, now_ns, effects)
        else:
            first_replacement = replaces and is_zero(self._allocated)
            if not first_replacement or self._life.state is ApplicationState.COMPLETING:
                self._life.handle(ApplicationEvent.RUN, now_ns, effects)
            self._allocated = add(self._allocated, ask.resource)
            self._note_most(self._allocated)
        self._placed[ask.allocation_key] = Placed(allocation)

    def _add_placeholder(self, allocation: Allocation, now_ns: int, effects: list[Effect]) -> None:
        life = self._life
        total = add(self._placeholder_allocated, allocation.ask.resource)
        self._placeholder_allocated = total
        if life.state is ApplicationState.ACCEPTED and not life.has_timer(TimerKind.PLACEHOLDER):
            due_ns = self.gang_settings.placeholder_due_ns(now_ns)
            life.start_timer(TimerKind.PLACEHOLDER, due_ns, effects)
        if self.gang_settings.is_complete(total):
            life.handle(ApplicationEvent.RUN, now_ns, effects)
        self._note_most(total)

    def _note_most(self, used: Resource) -> None:
        most = self._most_used
        self._most_used = used if fits(used, most) else component_wise_max(most, used)

    # ------------------------------------------------------------------------------ allocations

    @writes
    def remove_allocation(
        self,
        allocation_key: str,
        termination: TerminationType,
        now_ns: int,
    ) -> Answer | None:
        """End an allocation; `None` if there is no such allocation."""
        if allocation_key not in self._placed:
            return None
        effects: list[Effect] = []
        preempted = self._placed[allocation_key].preempted
        allocation, ended = self._end_allocation(allocation_key, termination, now_ns, effects)
        answer = self._answer(effects, allocations=(allocation,))
        answer.ended = ended
        if preempted:
            answer.preempted = (allocation,)
        return answer

    def _end_allocation(
        self,
        allocation_key: str,
        termination: TerminationType,
        now_ns: int,
        effects: list[Effect],
        *,
        fires: bool = True,
    ) -> tuple[Allocation, bool]:
        placed = self._placed.pop(allocation_key)
        allocation = placed.allocation
        self._track(placed, now_ns)
        if allocation.ask.placeholder:
            event = self._placeholder_ended(allocation, termination)
        else:
            self._allocated = _less(self._allocated, allocation.ask.resource)
            event = self._real_ended()
        if event is not None and fires:
            self._life.handle(event, now_ns, effects)
        return allocation, event in (ApplicationEvent.COMPLETE, ApplicationEvent.FAIL) and not self._placed

    def _real_ended(self) -> ApplicationEvent | None:
        if self._life.state is ApplicationState.FAILING:
            return None if self._placed else ApplicationEvent.FAIL
        return ApplicationEvent.COMPLETE if self._has_nothing_real() else None

    def _placeholder_ended(self, allocation: Allocation, termination: TerminationType) -> ApplicationEvent | None:
        self._placeholder_allocated = _less(self._placeholder_allocated, allocation.ask.resource)
        gang.count_end(self._task_groups, allocation.ask, termination)
        if not is_zero(self._placeholder_allocated):
            return None
        life = self._life
        life.stop_timer(TimerKind.PLACEHOLDER)
        if life.state is ApplicationState.FAILING:
            # What is left is real and on its way out: an application that is Failed uses nothing.
            return None if self._placed else ApplicationEvent.FAIL
        if life.state is ApplicationState.RESUMING:
            return ApplicationEvent.RUN
        completing = life.state is ApplicationState.COMPLETING and not life.has_timer(TimerKind.STATE)
        return ApplicationEvent.COMPLETE if completing or self._has_nothing_real() else None

    def _track(self, placed: Placed, now_ns: int) -> None:
        allocation = placed.allocation
        if placed.preempted:
            tracked = self._used_preempted
        elif allocation.ask.placeholder:
            tracked = self._used_placeholder
        else:
            tracked = self._used
        seconds = max(0, now_ns - allocation.bound_at_ns) // _SECOND_NS
        tracked.aggregate(allocation.instance_type, allocation.ask.resource, seconds)

    @writes
    def remove_all_allocations(self, now_ns: int, *, leaving: bool) -> Answer:
        """End every allocation. `leaving`: the RM takes the application away, so no timer goes on."""
        effects: list[Effect] = []
        removed = tuple(placed.allocation for placed in self._placed.values())
        victims = tuple(placed.allocation for placed in self._placed.values() if placed.preempted)
        swaps = self._drop_swaps()
        for placed in self._placed.values():
            self._track(placed, now_ns)
        self._placed.clear()
        self._allocated = self._placeholder_allocated = EMPTY
        ended = not self._asks.has_waiting
        if ended:
            self._life.handle(ApplicationEvent.COMPLETE, now_ns, effects)
        self._life.stop_timer(TimerKind.PLACEHOLDER)
        if self._life.state is ApplicationState.COMPLETING:
            self._life.linger(now_ns, effects)
        answer = self._answer(effects, allocations=removed)
        answer.preempted = victims
        answer.swaps = swaps
        answer.ended = ended or leaving
        return answer

    def _drop_swaps(self) -> tuple[Allocation, ...]:
        """Give up all swaps that are under way; return the allocations that hold room for them."""
        swaps = []
        for placeholder_key in self._swapping.values():
            placed = self._placed[placeholder_key]
            assert placed.swap is not None, f"the swap of {placeholder_key} is lost: please report"
            swaps.append(placed.swap)
            placed.swap = None
        self._swapping.clear()
        return tuple(swaps)

    @writes
    def resize_allocation(self, allocation_key: str, resource: Resource) -> Answer | None:
        """Give an allocation another size; the answer has it as it is now."""
        placed = self._placed.get(allocation_key)
        if placed is None:
            return None
        old = placed.allocation.ask.resource
        placed.allocation = placed.allocation.resized(resource)
        if placed.allocation.ask.placeholder:
            self._placeholder_allocated = prune(add(subtract(self._placeholder_allocated, old), resource))
        else:
            self._allocated = prune(add(subtract(self._allocated, old), resource))
        record = self._asks.get(allocation_key)
        if record is not None:
            self._asks.resize(record, resource)
        return self._answer((), allocations=(placed.allocation,))

    @writes
    def displace(self, allocation_key: str) -> Answer | None:
        """Let a placed ask wait again, because its place is gone before the swap was confirmed."""
        record = self._asks.get(allocation_key)
        if record is None or not record.placed:
            return None
        self._asks.displace(record)
        self._pending = add(self._pending, record.ask.resource)
        return self._answer((), asks=(record,))

    # ----------------------------------------------------------------------------- reservations

    @writes
    def try_reserve(self, allocation_key: str, node_id: str, now_ns: int, *, required: bool) -> Answer | None:
        """Note a node as reserved for a waiting ask; `None` if the ask is gone, placed or has a node."""
        record = self._asks.get(allocation_key)
        if record is None or record.placed or self._reservations.node_of(allocation_key):
            return None
        self._reservations.add(Reservation(allocation_key, node_id, now_ns, required))
        return self._answer(())

    @writes
    def unreserve(self, allocation_key: str) -> Answer | None:
        """Forget the reservation of an ask; `None` if there is none."""
        reservation = self._reservations.remove(allocation_key)
        return None if reservation is None else self._answer((), reservations=(reservation,))

    @reads
    def reserved_asks(self) -> tuple[tuple[Reservation, AskRecord | None], ...]:
        """Return the reservations with their asks, `None` for an ask that no longer waits."""
        rows = []
        for reservation in self._reservations.all():
            record = self._asks.get(reservation.allocation_key)
            rows.append((reservation, None if record is None or record.placed else record))
        return tuple(rows)

    # -------------------------------------------------------------------------------- preemption

    @writes
    def mark_preempted(self, allocation_key: str) -> bool:
        """Choose an allocation as a victim; `False` if it is gone, on its way out, or chosen already."""
        placed = self._placed.get(allocation_key)
        if placed is None or placed.released or placed.preempted:
            return False
        placed.preempted = True
        return True

    @writes
    def unmark_preempted(self, allocation_key: str) -> None:
        """Take a choice back."""
        placed = self._placed.get(allocation_key)
        if placed is not None:
            placed.preempted = False

    @writes
    def note_preemption(self, allocation_key: str, now_ns: int, *, triggered: bool) -> None:
        """Note on an ask that preemption was considered for it, or triggered."""
        record = self._asks.get(allocation_key)
        if record is not None:
            record.preemption_checked_ns = now_ns
            record.preemption_triggered = record.preemption_triggered or triggered

    @writes
    def note_scale_up(self, allocation_key: str) -> None:
        """Note that the RM has been told that the ask waits for room in the cluster."""
        record = self._asks.get(allocation_key)
        if record is not None:
            record.scale_up_triggered = True

    # ------------------------------------------------------------------------------ placeholders

    @writes
    def next_swap(self, walk: SwapWalk) -> SwapOffer | None:
        """Return the next pair of a waiting member and a placeholder that it may replace."""
        return gang.next_swap(walk, self._asks, self._placed)

    @writes
    def mark_released(self, allocation_key: str) -> bool:
        """Note that the RM is asked to end an allocation; `False` if that is under way or it is a victim."""
        placed = self._placed.get(allocation_key)
        if placed is None or placed.released or placed.preempted:
            return False
        placed.released = True
        return True

    @writes
    def begin_swap(self, allocation: Allocation, placeholder_key: str) -> Answer | None:
        """Let an allocation take the place of a placeholder once the RM has confirmed its end."""
        record = self._asks.get(allocation.ask.allocation_key)
        placed = self._placed.get(placeholder_key)
        if record is None or record.placed or placed is None or placed.released or placed.preempted:
            return None
        self._asks.place(record)
        self._pending = _less(self._pending, record.ask.resource)
        reservation = self._reservations.remove(record.ask.allocation_key)
        placed.released = True
        placed.swap = allocation
        self._swapping[allocation.ask.allocation_key] = placeholder_key
        return self._answer((), reservations=() if reservation is None else (reservation,))

    @reads
    def swap_of(self, placeholder_key: str) -> Allocation | None:
        """Return the allocation that is to take the place of a placeholder, if a swap is under way."""
        placed = self._placed.get(placeholder_key)
        return None if placed is None else placed.swap

    @writes
    def end_swap(self, placeholder_key: str, termination: TerminationType, now_ns: int) -> Answer | None:
        """Complete a swap: the placeholder ends, its real allocation counts.

        The answer's allocations are the placeholder and the real one; `None` if no swap is under way.
        """
        placed = self._placed.get(placeholder_key)
        if placed is None or placed.swap is None:
            return None
        effects: list[Effect] = []
        real = placed.swap.in_place_of(placed.allocation, now_ns)
        del self._swapping[real.ask.allocation_key]
        completing = self._life.state is ApplicationState.COMPLETING
        placeholder, _ = self._end_allocation(
            placeholder_key,
            termination,
            now_ns,
            # A Completing application would be Completed before the real allocation counts.
            effects,
            fires=not completing,
        )
        self._add_allocation(real, now_ns, effects, replaces=True)
        return self._answer(effects, allocations=(placeholder, real))

    @writes
    def cancel_swap(self, placeholder_key: str) -> Allocation | None:
        """Give up a swap; return the allocation that was to take the place."""
        placed = self._placed.get(placeholder_key)
        if placed is None or placed.swap is None:
            return None
        real, placed.swap = placed.swap, None
        del self._swapping[real.ask.allocation_key]
        return real

    @reads
    def swap_onto(self, allocation_key: str) -> str:
        """Return the placeholder that the real allocation with this key is to replace, or the empty text."""
        return self._swapping.get(allocation_key, "")

    # --------------------------------------------------------------------------- state and timers

    @writes
    def on_timer(self, kind: TimerKind, generation: int, now_ns: int) -> Answer | None:
        """Do what is due; `None` if the timer has been stopped or overtaken."""
        if not self._life.take_timer(kind, generation):
            return None
        effects: list[Effect] = []
        if kind is TimerKind.PLACEHOLDER:
            return self._placeholders_timed_out(now_ns, effects)
        if self._life.state is ApplicationState.COMPLETING:
            if not gang.release_placeholders(self._placed, "releasing placeholders on app complete", effects):
                self._life.handle(ApplicationEvent.COMPLETE, now_ns, effects)
        else:
            self._life.handle(ApplicationEvent.EXPIRE, now_ns, effects)
        return self._answer(effects)

    def _placeholders_timed_out(self, now_ns: int, effects: list[Effect]) -> Answer:
        if self._life.state in (ApplicationState.RUNNING, ApplicationState.COMPLETING):
            text = "releasing allocated placeholders on placeholder timeout"
            gang.release_placeholders(self._placed, text, effects)
            return self._answer(effects)
        swaps = self._drop_swaps()
        self._life.handle(self.gang_settings.timeout_event, now_ns, effects, "ResourceReservationTimeout")
        removed = gang.give_up(self._asks, self._placed, self._task_groups, effects)
        dropped = [self._reservations.remove(record.ask.allocation_key) for record in removed]
        self._pending = EMPTY
        reservations = tuple(reservation for reservation in dropped if reservation is not None)
        answer = self._answer(effects, asks=removed, reservations=reservations)
        answer.swaps = swaps
        return answer

    @writes
    def fail(self, text: str, now_ns: int) -> Answer:
        """Let the application fail, from any state that can."""
        effects: list[Effect] = []
        self._life.handle(ApplicationEvent.FAIL, now_ns, effects, text)
        return self._answer(effects)

    @writes
    def reject(self, text: str, now_ns: int) -> Answer:
        """Turn the application away."""
        effects: list[Effect] = []
        self._rejection = text
        self._finished_at_ns = now_ns
        self._life.handle(ApplicationEvent.REJECT, now_ns, effects)
        return self._answer(effects)

    @writes
    def finish(self, now_ns: int) -> Answer:
        """Drop what a terminated application needs no longer; the answer has the asks it still had."""
        removed = tuple(self._asks.records.values())
        for record in removed:
            self._asks.remove(record.ask.allocation_key)
        self._pending = EMPTY
        self._finished_at_ns = now_ns
        if self._life.state is ApplicationState.COMPLETED:
            self._life.stop_timer(TimerKind.PLACEHOLDER)
        self._used = TrackedResource()
        self._used_preempted = TrackedResource()
        self._used_placeholder = TrackedResource()
        return self._answer((), asks=removed)

    # ------------------------------------------------------------------------------------- views

    @reads
    def facts(self) -> ApplicationFacts:
        """Return what the partition keeps of the application."""
        return application_facts(self)

    @reads
    def state(self) -> ApplicationState:
        """Return where the application is in its life."""
        return self._life.state

    @reads
    def allocation(self, allocation_key: str) -> Allocation | None:
        """Return an allocation by its key."""
        placed = self._placed.get(allocation_key)
        return None if placed is None else placed.allocation

    @reads
    def is_preempted(self, allocation_key: str) -> bool:
        """Tell whether an allocation has been chosen as a victim."""
        placed = self._placed.get(allocation_key)
        return placed is not None and placed.preempted

    @reads
    def allocations(self) -> tuple[Placed, ...]:
        """Return copies of the allocations with their marks."""
        return tuple(placed.copy() for placed in self._placed.values())

    @reads
    def ask_record(self, allocation_key: str) -> AskRecord | None:
        """Return what is known of an ask. The record belongs to the application: read it at once."""
        return self._asks.get(allocation_key)

    @reads
    def waiting_asks(self) -> tuple[AskRecord, ...]:
        """Return the waiting asks in order. The records belong to the application: read them at once."""
        return tuple(self._asks.waiting())

    @reads
    def outstanding(self) -> tuple[tuple[Ask, bool], ...]:
        """Return the attempted waiting asks in order, and whether the RM is to be told of each now."""
        return gang.outstanding(self._asks, self._task_groups)

    @reads
    def refusals(self) -> tuple[Refusal, ...]:
        """Return why the last full walk passed the asks over."""
        return self._refusals

    @reads
    def view(self) -> Document:
        """Return the document of the REST interface."""
        return application_view(self)

    @reads
    def validate(self) -> None:
        """Assert that nothing is lost or counted twice."""
        validate_application(self)

    def _answer(
        self,
        effects: list[Effect] | tuple[()],
        *,
        asks: tuple[AskRecord, ...] = (),
        allocations: tuple[Allocation, ...] = (),
        reservations: tuple[Reservation, ...] = (),
    ) -> Answer:
        answer = Answer(application_facts(self), tuple(effects))
        if asks:
            answer.asks = asks
        if allocations:
            answer.allocations = allocations
        if reservations:
            answer.reservations = reservations
        return answer
