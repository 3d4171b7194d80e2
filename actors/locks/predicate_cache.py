"""A cache of the RM's predicates, for cycles under a lock: the lock is released while the RM is asked.

A cycle asks only between its steps, each of which is complete, and holds no other lock then. If no other
thread had the lock meanwhile, the cycle goes on as if nothing had happened. Otherwise the order that it walks
may have changed: the cycle is invalidated (`CycleInvalidatedError`) and starts again with the answers it has.

Meanwhile other threads may run cycles of the same partition. Each cycle skips the asks that belong to another
cycle, which has their answers or waits for them. A cycle that ends without result leaves its answers, and
with them its asks, to the cycles that still run: they start again, and the last one has seen all asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Protocol, TypeAlias, TypeVar, cast, final

from ...model.predicates.interfaces import Predicates
from ...model.scheduling.cycle import CycleOutcome
from ...model.values.part_keys import ask_key_of

__all__ = ["SLOW_NS", "CycleAnswers", "CycleInvalidatedError", "LockHolder", "PredicateCache"]

SLOW_NS: Final = 200_000
"""After an answer that took longer, another thread works for the partition during the next question.
A thread switch takes about a tenth of this time: for quick answers it would cost more than it gains."""

T = TypeVar("T")
_Question: TypeAlias = "tuple[str, str, bool] | tuple[str, str, tuple[str, ...], int]"
"""A question to the RM; it begins with the key of an ask and the id of a node."""


@final
class CycleInvalidatedError(BaseException):
    """Another thread changed the partition while the RM was asked: the cycle must start again.

    It is no `Exception`, so that handlers of errors between here and the engine do not catch it.
    """


class LockHolder(Protocol):
    """The holder of the partition's lock, as the cache sees it."""

    def without_lock(self, question: Callable[[], T]) -> tuple[T, bool]:
        """Ask without the lock; return the answer, and whether another thread has had the lock meanwhile."""

    def call_for_help(self) -> None:
        """Call another thread to work for the partition as well, if one is free."""


@final
class CycleAnswers:
    """The RM's answers to one cycle, over all its attempts."""

    def __init__(self) -> None:
        self._given: dict[_Question, tuple[int, str | int | None]] = {}
        """By question: the number of the attempt that asked it, and the answer."""
        self._attempt = 0
        self._pending: _Question | None = None
        self.keys: set[str] = set()
        """The keys of the asks that belong to this cycle."""
        self.asked_ns: int | None = None
        """When the RM was asked, until it answers; the thread that asks writes it without the lock."""

    def begin(self) -> None:
        """Begin the next attempt: questions that were answered before need not be asked again."""
        self._attempt += 1
        self._pending = None

    def find(self, question: _Question) -> tuple[int, str | int | None] | None:
        """Return the answer from an earlier attempt; one attempt may ask the RM a question twice."""
        given = self._given.get(question)
        return None if given is None or given[0] == self._attempt else given

    def expect(self, question: _Question) -> None:
        """Record that a question is about to be asked."""
        self._pending = question
        self.keys.add(question[0])

    def take(self, question: _Question, answer: str | int | None) -> None:
        """Record an answer, unless `forget` has dropped its question meanwhile."""
        if self._pending == question:
            self._given[question] = (self._attempt, answer)
        self._pending = None

    def forget(self, keys: Collection[str], node_ids: Collection[str]) -> None:
        """Drop answers, also one under way, about asks and nodes that were added again or changed."""
        stale = [each for each in self._given if _is_about(each, keys, node_ids)]
        for question in stale:
            del self._given[question]
        pending = self._pending
        if pending is not None and _is_about(pending, keys, node_ids):
            self._pending = None

    def clear(self) -> None:
        """Drop all answers, also one under way."""
        self._given.clear()
        self._pending = None

    def inherit(self, other: CycleAnswers) -> None:
        """Take over the asks and answers of a cycle that ended without result."""
        for question, (_, answer) in other._given.items():
            self._given.setdefault(question, (0, answer))
        self.keys |= other.keys


def _is_about(question: _Question, keys: Collection[str], node_ids: Collection[str]) -> bool:
    """Return whether a question is about one of these nodes, or about one of these asks or a part of one."""
    key, node_id = question[0], question[1]
    return key in keys or ask_key_of(key) in keys or node_id in node_ids


@final
class PredicateCache:
    """The predicates of a partition that has a lock. The caller of all methods but `is_slow` holds that lock.

    Args:
        predicates: the RM's own.
        clock_ns: measures how long an answer takes.
    """

    def __init__(self, predicates: Predicates, clock_ns: Callable[[], int]) -> None:
        self._predicates = predicates
        self._clock_ns = clock_ns
        self._lock_holder: LockHolder | None = None
        self._open: tuple[CycleAnswers, ...] = ()
        """The answers to all cycles that have begun and not ended; the tuple is replaced, never changed."""
        self._current = CycleAnswers()
        """The answers to the cycle that holds the lock."""
        self._keys_of_others: Collection[str] = ()
        self._was_slow = True
        """Whether the last answer was slow, or came while another question was open; true at first."""

    @property
    def is_slow(self) -> bool:
        """Whether a question is open, and this or the last answer is slow. A hint: it may change at once."""
        since_ns = self._asked_ns()
        if not since_ns:
            return False
        return self._was_slow or self._clock_ns() - min(since_ns) > SLOW_NS

    def wants_help(self) -> bool:
        """Return whether a thread waits for an answer that may be slow."""
        return self.is_slow

    def needs_cycle(self) -> bool:
        """Return whether no cycle is under way, or all that are wait for answers.

        Otherwise a cycle is about to start again, since another thread has the lock, and will see everything.
        """
        return not self._open or self.is_slow

    def keys_of_others(self) -> Collection[str]:
        """Return the keys of the asks that belong to other cycles."""
        return self._keys_of_others

    def run(
        self, lock_holder: LockHolder, answers: CycleAnswers, cycle: Callable[[], CycleOutcome]
    ) -> CycleOutcome:
        """Run one attempt of a cycle.

        Raises:
            CycleInvalidatedError: the cycle must start again; it has not ended.
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
        """Drop the answers about asks that were added again or changed, and nodes that were added again."""
        for answers in self._open:
            answers.forget(keys, node_ids)

    def clear(self) -> None:
        """Drop all answers: the RM says that they may have changed."""
        for answers in self._open:
            answers.clear()

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not.

        Raises:
            CycleInvalidatedError: the cycle must start again.
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
        """Return the index of the last victim that is needed, `None` if the victims do not help.

        Raises:
            CycleInvalidatedError: the cycle must start again.
        """
        question = allocation_key, node_id, victim_keys, start_index
        return cast(
            "int | None", self._answer(question, lambda: self._predicates.preemption_index(*question))
        )

    def _answer(self, question: _Question, ask: Callable[[], str | int | None]) -> str | int | None:
        """Return the cached answer, or ask."""
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
        """Ask without the lock, and measure the time; call another thread first if the answer may be slow."""
        answers.asked_ns = since_ns = self._clock_ns()
        if self._was_slow:
            lock_holder.call_for_help()
        try:
            return ask()
        finally:
            answers.asked_ns = None
            self._was_slow = self._clock_ns() - since_ns > SLOW_NS or bool(self._asked_ns())

    def _asked_ns(self) -> list[int]:
        """Return when each open question was asked."""
        times = [answers.asked_ns for answers in self._open]
        return [time_ns for time_ns in times if time_ns is not None]
