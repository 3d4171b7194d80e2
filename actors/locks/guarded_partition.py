"""The guard of a partition: its lock covers one request of the RM or one cycle, and no question to the RM.

A writer has the partition alone; readers share it, and each places asks. All other methods take the lock for
writing, also those that only read: they see the partition as it is at one moment.

A partition that schedules by itself asks through a `QuestionChannel`, as where predicates answer later: a
cycle passes over the asks whose answers are pending. The thread that ran it then calls the RM, and runs the
next cycle with the answers. If the RM is slow, other threads make calls and run cycles meanwhile.

In a stepped scheduler one cycle runs at a time. It calls the RM between its steps, and continues with the
answer; if others had the lock meanwhile, it is invalidated and begins again with the answers that it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, cast, final

from ...lockcheck import excludes, requires
from ...model.marks import marked_methods
from ...model.partition import Partition
from ...model.predicates.node_checks import QUESTIONS_MAX, Predicates
from ...model.scheduling.cycle import ConcurrentOutcome, CycleOutcome
from ...model.state.partition_state import BrokenKind
from ...model.values.allocation import ask_key_of
from ...model.values.messages import (
    AllocationSubmission,
    NodesAnswer,
    NodeUpdate,
    NumberedQuestion,
    PredicateAnswer,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)
from ..engines.handles import note_origin
from .guards import Guard

if TYPE_CHECKING:
    from .guards import DeferredActions

T = TypeVar("T")
GAP_SECONDS_MAX: Final = 0.002
"""How long a reader waits for the lock. Writers go first, and requests write: if they leave no gap, the
thread runs whole cycles instead, which wait in the same queue, until its slice is over."""
SLOW_NS: Final = 200_000
"""After a call that took longer, another thread is called to make the next ones as well. A thread switch
takes about a tenth of this time: for quick calls it would cost more than it gains."""
CALL_TIMEOUT_NS: Final = 365 * 86_400 * 1_000_000_000
"""A partition waits a year for a call to return: whatever an RM takes for it, the answer counts."""
_Question: TypeAlias = "tuple[str, str, bool] | tuple[str, str, tuple[str, ...], int]"
"""A question to the RM; it begins with the key of an ask and the id of a node."""
_Answer: TypeAlias = "str | int | None"


@final
class GuardedPartition(Guard):
    """A partition with its lock.

    Args:
        partition: the partition.
        deferred: the actions that must run without a lock.
        isolate: called with each error after the lock was released; `None` if only the caller gets errors.
        call: calls a free thread to help; `None` if there never is one.
        shares: several threads may place asks at once, each in a separate leaf.
    """

    __slots__ = (
        "_call",
        "_isolate",
        "_predicate_calls",
        "_shares",
        "_turn",
        "_unlocked",
        "ended",
        "name",
        "rm_id",
    )

    lock_class: ClassVar[str] = "partition"

    def __init__(
        self,
        partition: Partition,
        deferred: DeferredActions,
        isolate: Callable[[GuardedPartition, BaseException], None] | None = None,
        call: Callable[[GuardedPartition], None] | None = None,
        *,
        shares: bool = False,
    ) -> None:
        super().__init__(partition, partition.name, deferred)
        self._isolate = isolate
        self._call = call
        self._shares = shares
        channel = partition.host.question_channel
        self._predicate_calls = channel if isinstance(channel, PredicateCalls) else None
        predicates = partition.host.predicates
        self._unlocked = predicates if isinstance(predicates, UnlockedPredicates) else None
        if self._unlocked is not None:
            self._unlocked.without_lock = self._without_lock
        self.name = partition.name
        self.rm_id = partition.rm_id
        self.ended = False
        """Whether the partition has stopped taking requests; set once."""
        self._turn = 0
        """How often the lock was taken for writing; written with the lock held."""

    @contextmanager
    def holding(self) -> Iterator[Partition]:
        """Hold the lock for writing, and isolate what breaks."""
        with self._isolating(), self._locked() as partition:
            yield partition

    def _place_concurrently(self) -> ConcurrentOutcome | None:
        """Place an ask while other threads do so, too; `None` if writers leave no gap."""
        with self._isolating(), self.deferred:
            if not self.lock.acquire_read(GAP_SECONDS_MAX):
                return None
            try:
                return self._partition.place_concurrently()
            finally:
                self.lock.release_read()

    @contextmanager
    def _isolating(self) -> Iterator[None]:
        try:
            yield
        except CycleInvalidatedError:
            raise
        except BaseException as error:
            note_origin(error, self._partition)
            if self._isolate is not None:
                self._isolate(self, error)
            raise

    def quarantine_broken(self, kind: BrokenKind, name: str, reason: str) -> bool:
        """Put what broke into quarantine; return whether it was not there yet."""
        with self._locked() as partition:
            return partition.quarantine(kind, name, reason)

    @contextmanager
    def _locked(self) -> Iterator[Partition]:
        with self.deferred, self.lock.write():
            self._turn += 1
            yield self._partition

    @requires("lock")
    def _without_lock(self, call: Callable[[], T]) -> tuple[T, bool]:
        """Call the RM without the lock; return the answer, and whether others have had the lock meanwhile."""
        turn = self._turn
        self.lock.release_write()
        try:
            answer = call()
        finally:
            self.lock.acquire_write()
        return answer, turn != self._turn

    def _call_for_help(self) -> None:
        """Call another thread to work for the partition as well, if one is free."""
        if self._call is not None:
            self._call(self)

    @property
    def waits_for_slow_predicate(self) -> bool:
        """Whether a predicate of the RM runs and is slow; a hint, for callers that do not hold the lock."""
        return self._predicate_calls is not None and self._predicate_calls.is_slow

    @excludes()
    def flush(self) -> None:
        """Have the announcements delivered to the RM; no lock is held."""
        self._partition.host.flush()

    def update_nodes(self, updates: Sequence[NodeUpdate]) -> None:
        """Carry out a request; answers of a cycle about nodes that are created with it are dropped.

        Answers about nodes that only change are kept: otherwise an RM that updates a node all the time would
        never have answered.
        """
        with self.holding() as partition:
            self._forget(node_ids=[update.node_id for update in updates if update.action.creates])
            partition.update_nodes(updates)

    def update_allocations(self, submissions: Sequence[AllocationSubmission], *others: Any) -> None:
        """Carry out a request; answers of a cycle about asks with these keys are dropped."""
        with self.holding() as partition:
            self._forget(keys=[entry.allocation_key for entry in submissions])
            partition.update_allocations(submissions, *others)

    def reconsider(self, *named: Collection[str]) -> None:
        """Try again what the RM refused; all answers of a cycle are dropped."""
        with self.holding() as partition:
            if self._unlocked is not None:
                self._unlocked.forget_all()
            partition.reconsider(*named)

    def _forget(self, *, keys: Sequence[str] = (), node_ids: Sequence[str] = ()) -> None:
        if self._unlocked is not None:
            self._unlocked.forget(keys, node_ids)

    def cycle(self) -> CycleOutcome:
        """Run one cycle; where nothing changes for want of the RM's answers, call the RM and run it again."""
        again = False
        while True:
            try:
                with self.holding() as partition:
                    if self._unlocked is not None:
                        self._unlocked.begin(again=again)
                    outcome = partition.cycle()
            except CycleInvalidatedError:
                again = True
                continue
            if outcome is not CycleOutcome.NOTHING or not self._call_predicates():
                return outcome

    @excludes()
    def _call_predicates(self) -> bool:
        """Ask the RM what no other thread asks, if it is slow one question; return whether there was any."""
        calls, answered = self._predicate_calls, False
        while calls is not None and calls.call_next(self._call_for_help):
            answered = True
            if calls.was_slow and calls.has_allowed:
                break  # Something may be placed.
        return answered

    def work(self, cycles_max: int, *, helps: bool = False) -> bool:
        """Run a slice of cycles, `cycles_max` at most; return whether there is more to do.

        One thread does this at a time; another one helps while the RM's predicates are slow, or places asks
        in a leaf of its own if threads share the partition. Where it cannot, it has the partition alone.
        """
        for outcome in islice(self._outcomes(helps=helps), cycles_max):
            if outcome is None:
                return False
            if outcome is CycleOutcome.NOTHING:
                with self.holding() as partition:
                    partition.schedule_wakeups()
                return False
            if outcome is CycleOutcome.PREPARED:
                break  # As in `Partition.work`.
        return True

    def _outcomes(self, *, helps: bool) -> Iterator[CycleOutcome | None]:
        """Yield the outcome of one cycle after the other; `None` if another thread at work does the rest."""
        calls = shares = self._shares
        while shares:
            placed = self._place_concurrently()
            if placed is ConcurrentOutcome.TAKEN:
                yield None
            elif placed is ConcurrentOutcome.PLACED:
                if calls:
                    calls = False
                    self._call_for_help()
                yield CycleOutcome.RESULT
            elif placed is ConcurrentOutcome.ALONE:
                yield self.cycle()
            else:
                shares = False
        if helps and not self._shares and not self.waits_for_slow_predicate:
            yield None
        while True:
            yield self.cycle()

    def run_until_idle(self) -> int:
        """Run cycles until nothing more can be done; return how many gave a result."""
        results = 0
        while (outcome := self.cycle()) is not CycleOutcome.NOTHING:
            results += outcome is CycleOutcome.RESULT
        with self.holding() as partition:
            partition.watch_quotas()
        return results

    @property
    def _partition(self) -> Partition:
        return cast("Partition", self.entity)


def _under_lock(method: Callable[..., Any]) -> Callable[..., Any]:
    def under_lock(guard: GuardedPartition, *args: Any, **kwargs: Any) -> Any:
        with guard.holding() as partition:
            return method(partition, *args, **kwargs)

    return under_lock


_OWN: Final = frozenset(vars(GuardedPartition))


for _name in marked_methods(Partition):
    if _name not in _OWN:
        setattr(GuardedPartition, _name, _under_lock(getattr(Partition, _name)))


@final
class PredicateCalls:
    """The questions of one partition, to be asked by calls, and the answers. Any thread may use it.

    Args:
        predicates: The RM's own; they do not raise.
        threads: How many calls may be made at once.
        clock_ns: Measures how long a call takes.
    """

    def __init__(self, predicates: Predicates, threads: int, clock_ns: Callable[[], int]) -> None:
        self._predicates = predicates
        self._threads = threads
        self._clock_ns = clock_ns
        self._questions: deque[NumberedQuestion] = deque()
        self._answers: deque[PredicateAnswer] = deque()
        self._called_ns: dict[int, int] = {}
        """When the calls that have not returned were made, by the number of the question."""
        self._ahead = 1
        """Twice as many after each question whose nodes were all refused, one after any other answer."""
        self.has_allowed = False
        """Whether the last answer is that a node is allowed, or about victims."""
        self.was_slow = True
        """Whether the last call was slow; true at first."""

    @property
    def is_slow(self) -> bool:
        """Whether a call has not returned, and it or the last one is slow. A hint: it may change at once."""
        called_ns = list(self._called_ns.values())
        return bool(called_ns) and (self.was_slow or self._clock_ns() - min(called_ns) > SLOW_NS)

    def open_max(self) -> int:
        """Return how many questions may be open: more than one if the RM is slow or refuses asks in a row.

        An ask that is placed changes what those behind it are to be asked; one that is refused does not.
        """
        return max(self._ahead, self._threads if self.was_slow or self.is_slow else 1)

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Take questions; `call_next` makes the calls."""
        self._questions.extend(questions)

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers that have come since the last call."""
        answers = self._answers
        return [answers.popleft() for _ in range(len(answers))]

    def call_next(self, call_for_help: Callable[[], None]) -> bool:
        """Ask the question that has waited longest, without a lock; return whether there was one.

        Args:
            call_for_help: Called before the RM is, if it is slow and there are more questions.
        """
        try:
            asked = self._questions.popleft()
        except IndexError:
            return False
        self._called_ns[asked.number] = began_ns = self._clock_ns()
        if self.was_slow and self._questions:
            call_for_help()
        try:
            answer = self._answer(asked.number, asked.question)
            self.has_allowed = not isinstance(answer, NodesAnswer) or answer.asked is not None
            self._ahead = 1 if self.has_allowed else min(2 * self._ahead, QUESTIONS_MAX)
            self._answers.append(answer)
        finally:
            del self._called_ns[asked.number]
            self.was_slow = self._clock_ns() - began_ns > SLOW_NS
        return True

    def _answer(self, number: int, question: PredicateQuestion | PreemptionQuestion) -> PredicateAnswer:
        """Ask about one node after the other until one is allowed, or about victims."""
        if isinstance(question, PreemptionQuestion):
            index = self._predicates.preemption_index(
                question.allocation_key, question.node_id, question.victim_keys, question.start_index
            )
            return VictimsAnswer(number, index)
        refused: dict[str, str] = {}
        for node_id in question.node_ids:
            reason = self._predicates.refuse(question.allocation_key, node_id, allocate=question.allocate)
            if reason is None:
                return NodesAnswer(number, refused, len(refused) + 1)
            refused[node_id] = reason
        return NodesAnswer(number, refused)


@final
class CycleInvalidatedError(BaseException):
    """Others had the partition while the RM was asked: the cycle must begin again.

    It is not an `Exception`, so that handlers of errors between here and the engine do not catch it.
    """


@final
class UnlockedPredicates:
    """The predicates of a partition that is stepped, each called with the lock of the partition released.

    A cycle that begins again uses the answers that it has, so that it ends whatever a predicate does.

    Args:
        predicates: The RM's own.
    """

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates
        self.without_lock: Callable[[Callable[[], _Answer]], tuple[_Answer, bool]] = _undisturbed
        """Makes a call with the lock released, and returns whether others had it too; the guard sets it."""
        self._earlier: dict[_Question, _Answer] = {}
        """The answers before the cycle began again; in one run the RM may be asked a question twice."""
        self._answers: dict[_Question, _Answer] = {}
        self._pending: _Question | None = None

    def begin(self, *, again: bool) -> None:
        """Begin a cycle, or the same one again."""
        self._earlier = {**self._earlier, **self._answers} if again else {}
        self._answers = {}

    def forget(self, keys: Collection[str], node_ids: Collection[str]) -> None:
        """Drop the answers about asks that come or change, and nodes that come, also one under way."""

        def is_kept(question: _Question) -> bool:
            key, node_id = question[0], question[1]
            return key not in keys and ask_key_of(key) not in keys and node_id not in node_ids

        self._earlier = {each: answer for each, answer in self._earlier.items() if is_kept(each)}
        self._answers = {each: answer for each, answer in self._answers.items() if is_kept(each)}
        if self._pending is not None and not is_kept(self._pending):
            self._pending = None

    def forget_all(self) -> None:
        """Drop all answers, also one under way."""
        self._earlier, self._answers, self._pending = {}, {}, None

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not.

        Raises:
            CycleInvalidatedError: The cycle must begin again.
        """
        call = partial(self._predicates.refuse, allocation_key, node_id, allocate=allocate)
        return cast("str | None", self._ask((allocation_key, node_id, allocate), call))

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        """Return the index of the last victim that is needed, `None` if the victims do not help.

        Raises:
            CycleInvalidatedError: The cycle must begin again.
        """
        question = allocation_key, node_id, victim_keys, start_index
        return cast("int | None", self._ask(question, partial(self._predicates.preemption_index, *question)))

    def _ask(self, question: _Question, call: Callable[[], _Answer]) -> _Answer:
        if question in self._earlier:
            return self._earlier[question]
        self._pending = question
        answer, is_disturbed = self.without_lock(call)
        if self._pending == question:
            self._answers[question] = answer
        if is_disturbed:
            raise CycleInvalidatedError
        return answer


def _undisturbed(call: Callable[[], _Answer]) -> tuple[_Answer, bool]:
    return call(), False
