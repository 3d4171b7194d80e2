"""The observers of the partitions of a scheduler: none, a recorder, or the replay of a recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol, final

from ....model.configuration.schema import PartitionConfig
from ....model.errors import LicorneError
from ....model.partition import Partition
from ....model.policies.policies import GivenPolicies
from ....model.predicates.node_checks import many_questions, one_question
from ....model.state.host import PartitionHost
from ....model.values.allocation import PlacementHalt, RefusalReason
from ....model.values.documents import Document
from ....model.values.messages import Announcement, NumberedQuestion, PredicateAnswer
from ...si.older_generation import Delivery, Generation
from .turn_documents import AskedLater, TakenAnswer

_CONGESTED: Final = PlacementHalt(reason=RefusalReason.CONGESTED)


class NewPartition(NamedTuple):
    """The parts of a new partition."""

    incarnation: str
    """The name of this partition alone, which is never used again."""
    name: str
    """The full name."""
    rm_id: str
    """The resource manager (RM)."""
    config: PartitionConfig
    host: PartitionHost
    """The interface of the partition to the scheduler around it."""
    generation: Generation
    """The generation of `si.v1` for the answers to the RM."""


class Observer(Protocol):
    """Makes the partitions of a scheduler, and notes changes that affect all of them or none."""

    ends_partitions: bool
    """Whether partitions that a registration or reload has replaced end at once; a replay ends them."""
    folder: Path | None
    """The folder of the recording, `None` without one."""

    def make_partition(self, new: NewPartition) -> Partition:
        """Make a partition."""

    def change(
        self, verb: str, rm_id: str, configuration: str, only: Sequence[str] | None = None
    ) -> AbstractContextManager[object]:
        """Return a context for a registration or reload, which raises an error if that does not happen.

        Args:
            verb: `register` or `configuration`.
            rm_id: the RM.
            configuration: its queues, as YAML text.
            only: the full names of the partitions that a registration has made; `None` for all.
        """

    def retired(self, incarnation: str) -> None:
        """Note that a partition has ended."""

    def answer(
        self, rm_id: str, announcement: Announcement, announce: Callable[[Delivery], None], *, older: bool
    ) -> None:
        """Announce a message without a partition to an RM."""

    def note(self, line: Document) -> None:
        """Note another line: a verb with its body, and the time `at` unless it happens now."""

    def close(self) -> None:
        """Note that the scheduler has ended."""


class Unobserved:
    """No observer: partitions are unchanged, and nothing is noted."""

    ends_partitions = True
    folder: Path | None = None

    def make_partition(self, new: NewPartition) -> Partition:
        """Make a partition."""
        return Partition(new.name, new.rm_id, new.config, new.host)

    def change(
        self,
        verb: str,  # noqa: ARG002 - as above
        rm_id: str,  # noqa: ARG002 - as above
        configuration: str,  # noqa: ARG002 - as above
        only: Sequence[str] | None = None,  # noqa: ARG002 - as above
    ) -> AbstractContextManager[object]:
        """Do nothing."""
        return nullcontext()

    def retired(self, incarnation: str) -> None:
        """Do nothing."""

    def answer(
        self,
        rm_id: str,  # noqa: ARG002 - as above
        announcement: Announcement,
        announce: Callable[[Delivery], None],
        *,
        older: bool,  # noqa: ARG002 - as above
    ) -> None:
        """Announce the message."""
        announce(announcement)

    def note(self, line: Document) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class ReplayDifferenceError(LicorneError):
    """The replay differs from the recording."""


class MadePartition(NamedTuple):
    """A partition that a registration or reload has made."""

    incarnation: str
    generation: Generation


@final
class ReplayedAnswers(Unobserved):
    """Makes the partitions of a replay, and gives them the recorded answers."""

    ends_partitions = False

    def __init__(self) -> None:
        self.asked: AskedLater | bool = False
        """How the new partitions ask predicates, see `how_asked`."""
        self.policies = GivenPolicies({})
        """The policies of the new partitions; their failures were reported when they were recorded."""
        self.made: dict[str, MadePartition] = {}
        """The new partitions without a number, by full name."""
        self._answers: deque[str | int | None] = deque()
        self._taken: deque[TakenAnswer] = deque()
        self._cycles = 0
        """The number of cycles of the turn that have taken answers, including empty ones."""
        self._in_turn = False
        self._halted: set[str] = set()
        """The partitions whose last turn placed nothing, by incarnation."""

    def begin_turn(
        self,
        incarnation: str,
        answers: Iterable[str | int | None],
        taken: Iterable[TakenAnswer],
        *,
        is_halted: bool,
    ) -> None:
        """Give a partition these answers from now on."""
        self._in_turn = True
        self._answers = deque(answers)
        self._taken = deque(taken)
        self._cycles = 0
        (self._halted.add if is_halted else self._halted.discard)(incarnation)

    def end_turn(self, *, has_failed: bool) -> None:
        """Check that all answers were used, unless the turn has failed.

        Raises:
            ReplayDifferenceError: Some answers were not used.
        """
        self._in_turn = False
        if has_failed:
            return
        if self._answers:
            raise ReplayDifferenceError(
                f"{len(self._answers)} of the recorded answers of predicates were not asked for: "
                f"the next one is {self._answers[0]!r}"
            )
        if self._taken:
            raise ReplayDifferenceError(
                f"{len(self._taken)} of the recorded answers of predicates were not taken: "
                f"the next one is for cycle {self._taken[0].cycle} of the turn, which had {self._cycles}"
            )

    # ------------------------------------------------------------------------------ the predicates

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:  # noqa: ARG002 - its name counts
        """Return the next recorded answer.

        Raises:
            ReplayDifferenceError: The recording has no further answer.
        """
        answer = self._next(allocation_key, node_id)
        if isinstance(answer, int):
            raise ReplayDifferenceError(
                f"{answer} was recorded for {allocation_key!r} on {node_id!r}: no reason"
            )
        return answer

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],  # noqa: ARG002 - the order of answers suffices
        start_index: int,  # noqa: ARG002 - as above
    ) -> int | None:
        """Return the next recorded answer.

        Raises:
            ReplayDifferenceError: The recording has no further answer.
        """
        answer = self._next(allocation_key, node_id)
        if isinstance(answer, str):
            raise ReplayDifferenceError(
                f"{answer!r} was recorded for {allocation_key!r} on {node_id!r}: no index"
            )
        return answer

    def _next(self, allocation_key: str, node_id: str) -> str | int | None:
        if not self._answers:
            raise ReplayDifferenceError(
                f"no answer was recorded to whether {allocation_key!r} may run on {node_id!r}"
            )
        return self._answers.popleft()

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Do nothing: the answers are in the lines of later turns."""

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the recorded answers for this cycle."""
        cycle = self._cycles
        self._cycles += 1
        answers: list[PredicateAnswer] = []
        while self._taken and self._taken[0].cycle == cycle:
            answers.append(self._taken.popleft().answer)
        return answers

    # ------------------------------------------------------------------------------ the partitions

    def make_partition(self, new: NewPartition) -> Partition:
        """Make a partition that gets its answers from the recording."""
        self.made[new.name] = MadePartition(new.incarnation, new.generation)
        asked = self.asked
        host = replace(
            new.host,
            placement_halt=partial(self._placement_halt, new.incarnation, new.host.placement_halt),
            predicates=self if asked is True else None,
            question_channel=None,
            policies=self.policies.make(lambda *_: None),
        )
        if isinstance(asked, AskedLater):
            host = replace(
                host,
                question_channel=self,
                answer_timeout_ns=asked.timeout_ns,
                open_questions_max=many_questions if asked.may_overtake else one_question,
            )
        return super().make_partition(new._replace(host=host))

    def _placement_halt(
        self, incarnation: str, of_manager: Callable[[], PlacementHalt | None]
    ) -> PlacementHalt | None:
        """Return whether a turn places anything, as recorded, and between turns why nothing is placed."""
        is_halted = incarnation in self._halted
        if self._in_turn and not is_halted:
            return None
        return of_manager() or (_CONGESTED if is_halted else None)
