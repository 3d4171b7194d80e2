"""What an application waits for: its asks, their reservations, and the walk that tries them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..marks import reads, writes
from ..resources.combinations import prune
from ..resources.resource import total_of
from . import gang
from .ask_walk import next_candidate
from .core import ApplicationCore
from .reservations import Reservation
from .state import ApplicationEvent, ApplicationState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..resources.resource import Resource
    from ..values.allocation import Ask
    from ..values.refusals import Refusal
    from .ask_walk import AskWalk, Candidate, FailedTry
    from .effects import Answer, Effect
    from .pending_asks import AskRecord


__all__ = ["AskSide"]


class AskSide(ApplicationCore):
    """The asks of one application."""

    @writes
    def add_asks(self, asks: Sequence[Ask], now_ns: int) -> tuple[Answer, tuple[Ask, ...]]:
        """Take asks in, in order; return also those whose keys are known, which are not taken."""
        effects: list[Effect] = []
        known = []
        taken = []
        for ask in asks:
            if self.knows(ask.allocation_key):
                known.append(ask)
                continue
            if ask.allocation_key in self._asks:
                self._forget_ended(ask.allocation_key)
            self._asks.add(ask)
            taken.append(ask.resource)
            self._submitted_at_ns = min(self._submitted_at_ns, ask.created_at_ns)
            if ask.placeholder:
                self._task_groups.count_placeholder(ask)
        idle = self._life.state in (ApplicationState.NEW, ApplicationState.COMPLETING)
        if idle and len(known) < len(asks):
            self._life.handle(ApplicationEvent.RUN, now_ns, effects)
        self._add_pending(total_of(taken))
        return self._answer(effects), tuple(known)

    @reads
    def knows(self, allocation_key: str) -> bool:
        """Return whether the key is that of an ask that waits, an allocation, or a swap that is under way.

        An ask whose allocation has ended is kept in some cases, to be looked at: its key is free.
        """
        record = self._asks.get(allocation_key)
        waits = record is not None and not record.placed
        return waits or allocation_key in self._placed or allocation_key in self._swapping

    @reads
    def known_among(self, allocation_keys: Sequence[str]) -> list[str]:
        """Return those of the keys that `knows` is true for, in their order."""
        return [key for key in allocation_keys if self.knows(key)]

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
                self._take_pending(record.ask.resource)
            if self._execution is not None:
                self._execution.forget(record.ask.allocation_key)
            reservation = self._reservations.remove(record.ask.allocation_key)
            if reservation is not None:
                reservations.append(reservation)
        has_placeholders = any(placed.allocation.ask.placeholder for placed in self._placed.values())
        if (
            check
            and self._has_nothing_real()
            and not has_placeholders
            and self._life.state
            not in (
                ApplicationState.FAILING,
                ApplicationState.COMPLETING,
            )
        ):
            self._life.handle(ApplicationEvent.COMPLETE, now_ns, effects)
        return self._answer(effects, asks=removed, reservations=tuple(reservations))

    @writes
    def resize_ask(self, allocation_key: str, resource: Resource) -> Answer | None:
        """Give a waiting ask another size; the answer's ask has the new one."""
        record = self._asks.get(allocation_key)
        if record is None or record.placed:
            return None
        self._take_pending(record.ask.resource)
        self._add_pending(resource)
        self._pending = prune(self._pending)
        self._asks.resize(record, resource)
        return self._answer((), asks=(record,))

    @writes
    def displace(self, allocation_key: str) -> Answer | None:
        """Let a placed ask wait again, because its place is gone before the swap was confirmed."""
        record = self._asks.get(allocation_key)
        if record is None or not record.placed:
            return None
        self._asks.displace(record)
        self._add_pending(record.ask.resource)
        return self._answer((), asks=(record,))

    @writes
    def next_candidate(self, walk: AskWalk, failed: FailedTry | None = None) -> Candidate | None:
        """Return the next ask that is worth a try in this cycle; notes why others are not.

        `failed` is what came of the last one.
        """
        candidate = next_candidate(walk, failed, self._asks, self._task_groups, self._reservations)
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
    def note_preemption(self, allocation_key: str, now_ns: int, *, triggered: bool) -> None:
        """Note on an ask that preemption was considered for it, or triggered."""
        record = self._asks.get(allocation_key)
        if record is not None:
            record.preemption_checked_ns = now_ns
            record.preemption_triggered = record.preemption_triggered or triggered
            self._asks.set_apart(record)

    @writes
    def note_scale_up(self, allocation_key: str) -> None:
        """Note that the RM has been told that the ask waits for room in the cluster."""
        record = self._asks.get(allocation_key)
        if record is not None:
            record.scale_up_triggered = True

    @writes
    def try_reserve(self, allocation_key: str, node_id: str, now_ns: int, *, required: bool) -> Answer | None:
        """Note a node as reserved for a waiting ask; `None` if the ask is gone, placed or has a node."""
        record = self._asks.get(allocation_key)
        if record is None or record.placed or self._reservations.node_of(allocation_key):
            return None
        self._reservations.add(Reservation(allocation_key, node_id, now_ns, required))
        self._asks.set_apart(record)
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
