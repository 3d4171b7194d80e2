"""The RM's predicates for cycles that run under a lock: the lock is let go of while the RM is asked.

A cycle asks only between its steps, each of which is whole, and with no other lock held. Where nobody else
had the lock meanwhile, it goes on as if nothing had happened. Otherwise it may stand in the middle of an
order that has changed: it is broken off (`CycleInvalidatedError`) and begins anew with the answers at hand.

Meanwhile other threads may run cycles of the same partition. Each passes over the asks that are another
one's, whose answers are at hand there or on their way. A cycle that ends in vain leaves its answers, and with
them its asks, to those that still run: they begin anew, and the last one has seen all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, cast, final

from ..model.scheduling.cycle import CycleOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..model.state.host import Predicates

__all__ = ["SLOW_NS", "CycleAnswers", "CycleInvalidatedError", "LockHolder", "PredicateCache"]

SLOW_NS: Final = 200_000
"""After an answer that took longer, the next question has another thread work for the partition meanwhile.
To change threads takes a tenth of it or so: for quick answers that would cost more than it brings."""

T = TypeVar("T")
_Question: TypeAlias = "tuple[str, str, bool] | tuple[str, str, tuple[str, ...], int]"
"""Begins with the key of an ask and the id of a node."""


@final
class CycleInvalidatedError(BaseException):
    """Something else happened in the partition while the RM was asked.

    No `Exception`, since what deals with errors in between is not to take it for one.
    """


class LockHolder(Protocol):
    """Who holds the partition's lock."""

    def without_lock(self, question: Callable[[], T]) -> tuple[T, bool]:
        """Ask with the lock let go of; return also whether somebody else has had it meanwhile."""

    def call_for_help(self) -> None:
        """Have another thread work for the partition as well, if one is free."""


@final
class CycleAnswers:
    """What the RM has said to one cycle, however often that has begun anew."""

    def __init__(self) -> None:
        self._given: dict[_Question, tuple[int, str | int | None]] = {}
        """In which attempt, and what."""
        self._attempt = 0
        self._pending: _Question | None = None
        self.keys: set[str] = set()
        """The asks that are this cycle's."""
        self.asked_ns: int | None = None
        """Since when the RM is being asked; written by the thread that asks, without the lock."""

    def begin(self) -> None:
        """Begin anew: what has been answered need not be asked again."""
        self._attempt += 1
        self._pending = None

    def find(self, question: _Question) -> tuple[int, str | int | None] | None:
        """Return what was answered before this attempt; what it asks twice by itself it asks twice."""
        given = self._given.get(question)
        return None if given is None or given[0] == self._attempt else given

    def expect(self, question: _Question) -> None:
        """Note that a question is about to be asked."""
        self._pending = question
        self.keys.add(question[0])

    def take(self, question: _Question, answer: str | int | None) -> None:
        """Note an answer, unless it is about what is not there any more."""
        if self._pending == question:
            self._given[question] = (self._attempt, answer)
        self._pending = None

    def forget(self, keys: Collection[str], node_ids: Collection[str]) -> None:
        """Forget what is said, or is about to be, of asks and nodes that have come anew or were changed."""
        stale = [each for each in self._given if each[0] in keys or each[1] in node_ids]
        for question in stale:
            del self._given[question]
        pending = self._pending
        if pending is not None and (pending[0] in keys or pending[1] in node_ids):
            self._pending = None

    def inherit(self, other: CycleAnswers) -> None:
        """Take over the asks and answers of a cycle that has ended in vain."""
        for question, (_, answer) in other._given.items():
            self._given.setdefault(question, (0, answer))
        self.keys |= other.keys


@final
class PredicateCache:
    """The predicates as a partition under a lock sees them; all but `is_slow` with the lock held.

    Args:
        predicates: the RM's own.
        clock_ns: measures how long an answer takes.
    """

    def __init__(self, predicates: Predicates, clock_ns: Callable[[], int]) -> None:
        self._predicates = predicates
        self._clock_ns = clock_ns
        self._lock_holder: LockHolder | None = None
        self._open: tuple[CycleAnswers, ...] = ()
        """Of all cycles that have begun and not ended; replaced, never changed."""
        self._current = CycleAnswers()
        """Of the cycle that holds the lock."""
        self._keys_of_others: Collection[str] = ()
        self._was_slow = True
        """The last answer took its time, or another one was still out; as long as there is none, it may."""

    @property
    def is_slow(self) -> bool:
        """Whether the RM is being asked, and takes its time or did before. A hint: it may change at once."""
        since_ns = self._asked_ns()
        if not since_ns:
            return False
        return self._was_slow or self._clock_ns() - min(since_ns) > SLOW_NS

    def wants_help(self) -> bool:
        """Return whether a thread waits for an answer, and may for a while."""
        return self.is_slow

    def needs_cycle(self) -> bool:
        """Return whether no cycle is under way, or those that are wait for answers.

        Otherwise one is about to begin anew, because somebody else has the lock, and will see to everything.
        """
        return not self._open or self.is_slow

    def keys_of_others(self) -> Collection[str]:
        """Return the keys of the asks that are other cycles'."""
        return self._keys_of_others

    def run(
        self, lock_holder: LockHolder, answers: CycleAnswers, cycle: Callable[[], CycleOutcome]
    ) -> CycleOutcome:
        """Run a cycle, or run it anew.

        Raises:
            WorldMovedError: it is to begin anew; it has not ended.
        """
        self._begin(lock_holder, answers)
        try:
            outcome = cycle()
        except CycleInvalidatedError:
            raise
        except BaseException:
            self._end(answers, without_result=False)
            raise
        self._end(answers, without_result=outcome is CycleOutcome.NOTHING)
        return outcome

    def _begin(self, lock_holder: LockHolder, answers: CycleAnswers) -> None:
        self._lock_holder = lock_holder
        if answers not in self._open:
            self._open = (*self._open, answers)
        answers.begin()
        self._current = answers
        others = [each.keys for each in self._open if each is not answers]
        self._keys_of_others = frozenset().union(*others) if others else ()

    def _end(self, answers: CycleAnswers, *, without_result: bool) -> None:
        self._open = tuple(each for each in self._open if each is not answers)
        if without_result:
            for other in self._open:
                other.inherit(answers)

    def forget(self, keys: Collection[str], node_ids: Collection[str]) -> None:
        """Ask again about asks that have come anew or were changed, and about nodes that have come anew."""
        for answers in self._open:
            answers.forget(keys, node_ids)

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not.

        Raises:
            WorldMovedError: the cycle is to begin anew.
        """
        return cast(
            "str | None",
            self._answer(
                (allocation_key, node_id, allocate),
                lambda: self._predicates.refuse(allocation_key, node_id, allocate=allocate),
            ),
        )

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the last victim that must go, `None` if none of them helps.

        Raises:
            WorldMovedError: the cycle is to begin anew.
        """
        question = allocation_key, node_id, victim_keys, start_index
        return cast(
            "int | None", self._answer(question, lambda: self._predicates.preemption_index(*question))
        )

    def _answer(self, question: _Question, ask: Callable[[], str | int | None]) -> str | int | None:
        """Return what is at hand, or ask."""
        answers, lock_holder = self._current, self._lock_holder
        assert lock_holder is not None, "a cycle asks: please report"
        known = answers.find(question)
        if known is not None:
            return known[1]
        answers.expect(question)
        answer, invalidated = lock_holder.without_lock(lambda: self._timed(lock_holder, answers, ask))
        answers.take(question, answer)
        if invalidated:
            raise CycleInvalidatedError
        return answer

    def _timed(self, lock_holder: LockHolder, answers: CycleAnswers, ask: Callable[[], T]) -> T:
        """Ask, without the lock; another thread may take it if that may take long."""
        answers.asked_ns = since_ns = self._clock_ns()
        if self._was_slow:
            lock_holder.call_for_help()
        try:
            return ask()
        finally:
            answers.asked_ns = None
            self._was_slow = self._clock_ns() - since_ns > SLOW_NS or bool(self._asked_ns())

    def _asked_ns(self) -> list[int]:
        """Return since when the RM is being asked, a time for each question that is out."""
        times = [answers.asked_ns for answers in self._open]
        return [time_ns for time_ns in times if time_ns is not None]
