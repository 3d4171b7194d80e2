"""The asks of an application, and the walk that tries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..marks import Marks
from ..resources.comparisons import prune
from ..resources.resource import Resource, add, total_of
from ..values.allocation import Ask, Refusal
from . import gang
from .ask_walk import AskWalk, Candidate, FailedTry, NextTry, first_waiting, next_candidate
from .core import ApplicationCore
from .effects import Answer, ApplicationEvent, ApplicationState, Effect
from .holdings import less
from .pending_asks import AskRecord


@final
class ApplicationAsks:
    """The asks of one application."""

    __slots__ = ("_core",)

    MARKS: Final = Marks(
        reads=("knows", "known_among", "record", "waiting", "first_waiting", "outstanding", "refusals"),
        writes=(
            "add",
            "remove",
            "remove_all",
            "resize",
            "displace",
            "next_candidate",
            "refuse_gang",
            "end_walk",
            "back_off",
            "note_refusal",
            "note_preemption",
            "note_scale_up",
        ),
    )

    def __init__(self, core: ApplicationCore) -> None:
        self._core = core

    def add(self, asks: Sequence[Ask], now_ns: int) -> tuple[Answer, tuple[Ask, ...]]:
        """Add asks in order; return also those whose keys are known, which are not added."""
        core = self._core
        effects: list[Effect] = []
        known = []
        taken = []
        for ask in asks:
            record = core.asks.get(ask.allocation_key)
            if _is_in_use(core, ask.allocation_key, record):
                known.append(ask)
                continue
            if record is not None:
                core.forget_ended(ask.allocation_key)
            core.asks.add(ask)
            taken.append(ask.resource)
            core.submitted_at_ns = min(core.submitted_at_ns, ask.created_at_ns)
            if ask.placeholder:
                core.task_groups.count_placeholder(ask)
        idle = core.life.state in (ApplicationState.NEW, ApplicationState.COMPLETING)
        if idle and len(known) < len(asks):
            core.life.handle(ApplicationEvent.RUN, now_ns, effects)
        if core.gang_waits:
            gang.watch_wait(core, now_ns, effects)
        total = total_of(taken)
        core.pending = add(core.pending, total)
        answer = core.answer(effects)
        answer.added = total
        return answer, tuple(known)

    def knows(self, allocation_key: str) -> bool:
        """Return whether the key is that of an ask that waits, an allocation, or a swap that is under way.

        An ask whose allocation has ended is kept in some cases, for documents: its key is free.
        """
        return _is_in_use(self._core, allocation_key, self._core.asks.get(allocation_key))

    def known_among(self, allocation_keys: Sequence[str]) -> list[str]:
        """Return those of the keys that `knows` is true for, in their order."""
        return [key for key in allocation_keys if self.knows(key)]

    def remove(self, allocation_key: str, now_ns: int) -> Answer:
        """Drop an ask with its reservation; the application completes if nothing else is left."""
        check = bool(self._core.asks.records)
        record = self._core.asks.remove(allocation_key)
        return _removed(self._core, () if record is None else (record,), now_ns, check=check)

    def remove_all(self, now_ns: int) -> Answer:
        """Drop every ask with its reservation; the application completes if nothing else is left."""
        removed = tuple(self._core.asks.records.values())
        for record in removed:
            self._core.asks.remove(record.ask.allocation_key)
        return _removed(self._core, removed, now_ns, check=bool(removed))

    def resize(self, allocation_key: str, resource: Resource) -> Answer | None:
        """Give a waiting ask another size; the answer's ask has the new one."""
        core = self._core
        record = core.asks.get(allocation_key)
        if record is None or record.placed:
            return None
        core.pending = prune(add(less(core.pending, record.ask.resource), resource))
        core.asks.resize(record, resource)
        return core.answer(asks=(record,))

    def displace(self, allocation_key: str) -> Answer | None:
        """Make a placed ask wait again, because its place ended before the swap was confirmed."""
        core = self._core
        record = core.asks.get(allocation_key)
        if record is None or not record.placed:
            return None
        core.asks.displace(record)
        core.pending = add(core.pending, record.ask.resource)
        return core.answer(asks=(record,))

    def next_candidate(self, walk: AskWalk, failed: FailedTry | None = None) -> Candidate | None:
        """Return the next ask that is worth a try in this cycle; notes why others are not.

        `failed` is why the last one was not placed.
        """
        core = self._core
        candidate = next_candidate(walk, failed, core.asks, core.task_groups, core.reservations)
        if candidate is None:
            core.refusals = tuple(walk.refusals)
        return candidate

    def refuse_gang(self, refusal: Refusal) -> None:
        """Keep why a gang that is placed whole was refused; its asks are not tried one by one."""
        core = self._core
        core.refusals = (refusal,)
        if gang.was_searched(refusal):
            for group in core.asks.groups.values():
                group.mark_attempted(None)

    def end_walk(self, walk: AskWalk, last_key: str) -> None:
        """Note that the walk ended early, at the ask with this key."""
        record = self._core.asks.get(last_key)
        if record is not None:
            walk.mark_attempted(record.order)

    def back_off(self, until_ns: int) -> None:
        """Refuse all asks with a back-off until that time."""
        self._core.backoff_until_ns = until_ns

    def note_refusal(self, allocation_key: str, text: str, now_ns: int, times: int = 1) -> None:
        """Count refusals with one text in the log of an ask."""
        record = self._core.asks.get(allocation_key)
        if record is not None:
            record.note(text, now_ns, times)

    def note_preemption(self, allocation_key: str, now_ns: int, *, triggered: bool) -> None:
        """Note on an ask that preemption was considered for it, or triggered."""
        core = self._core
        record = core.asks.get(allocation_key)
        if record is not None:
            record.preemption_checked_ns = now_ns
            record.preemption_triggered = record.preemption_triggered or triggered
            core.asks.set_apart(record)

    def note_scale_up(self, allocation_key: str) -> None:
        """Note that it has been reported to the RM that the ask waits for room in the cluster."""
        record = self._core.asks.get(allocation_key)
        if record is not None:
            record.scale_up_triggered = True

    def record(self, allocation_key: str) -> AskRecord | None:
        """Return what is known of an ask. The record belongs to the application: read it at once."""
        return self._core.asks.get(allocation_key)

    def waiting(self) -> tuple[AskRecord, ...]:
        """Return the waiting asks in order. The records belong to the application: read them at once."""
        return tuple(self._core.asks.waiting())

    def first_waiting(self, count: int) -> tuple[NextTry, ...]:
        """Return the first asks, in order, each with the pass of a cycle that tries it."""
        core = self._core
        return first_waiting(core.asks, core.task_groups, core.reservations, core.holdings.placed, count)

    def outstanding(self) -> tuple[tuple[Ask, bool], ...]:
        """Return the attempted waiting asks in order, and whether each is to be reported to the RM now."""
        core = self._core
        return gang.outstanding(core.asks, core.task_groups)

    def refusals(self) -> tuple[Refusal, ...]:
        """Return why the last full walk refused the asks."""
        return self._core.refusals


def _removed(core: ApplicationCore, removed: tuple[AskRecord, ...], now_ns: int, *, check: bool) -> Answer:
    effects: list[Effect] = []
    reservations = []
    for record in removed:
        if not record.placed:
            core.pending = less(core.pending, record.ask.resource)
        if core.execution is not None:
            core.execution.forget(record.ask.allocation_key)
        reservation = core.reservations.remove(record.ask.allocation_key)
        if reservation is not None:
            reservations.append(reservation)
    ending = core.life.state in (ApplicationState.FAILING, ApplicationState.COMPLETING)
    if check and core.has_nothing_real and not ending and not core.has_placeholders:
        core.life.handle(ApplicationEvent.COMPLETE, now_ns, effects)
    return core.answer(effects, asks=removed, reservations=tuple(reservations))


def _is_in_use(core: ApplicationCore, allocation_key: str, record: AskRecord | None) -> bool:
    if record is not None and not record.placed:
        return True
    return allocation_key in core.holdings.placed or allocation_key in core.holdings.swapping
