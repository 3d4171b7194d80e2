"""The turns of one partition: what it is asked to do, when, and what it is answered meanwhile.

The time stands still in a turn, and what is announced in a turn waits until the line of the turn has been
written. So a replay that sets its clock to the time of the line decides the same, and no resource manager
(RM) ever hears of a decision that is not in the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast, final

from ....model.predicates.node_checks import Predicates, QuestionChannel
from ....model.state.host import PartitionHost
from ....model.state.partition_state import PartitionState
from ....model.values.allocation import PlacementHalt
from ....model.values.documents import Document, Json
from ....model.values.messages import Announcement, NumberedQuestion, PredicateAnswer
from ...si.older_answers import Delivery, Generation, InGeneration
from .answers import written_answer, written_taken
from .outcomes import Outcomes

if TYPE_CHECKING:
    from .recorder import TurnRecorder

T = TypeVar("T")


@final
class PartitionTurns:
    """What a recorded partition has in place of its host. Used by one thread at a time, as the partition is.

    Args:
        recorder: writes the turns.
        number: the partition's number in the recording.
        rm_id: its RM.
        host: the host as it was made for the partition.
        generation: the generation in which the RM is answered.
    """

    def __init__(
        self, recorder: TurnRecorder, number: int, rm_id: str, host: PartitionHost, generation: Generation
    ) -> None:
        self.number = number
        self.rm_id = rm_id
        self.announce_now = cast("Callable[[Delivery], None]", host.announce)  # The manager's own.
        self._recorder = recorder
        self._given = host
        self._asked: Predicates | None = host.predicates
        self._channel: QuestionChannel | None = host.question_channel
        self._generation = generation
        self._at_ns: int | None = None
        """The time of the turn; `None` outside of turns."""
        self._halt: PlacementHalt | None = None
        self._halt_asked = False
        """Whether the halt of this turn has been asked for."""
        self._answers: list[Json] = []
        self._cycles = 0
        """How many cycles of this turn have taken answers, also none."""
        self._taken: list[Json] = []
        self._announced: list[Announcement] = []
        self._outcomes = Outcomes() if recorder.has_outcomes else None
        self._held_lines: list[bytes] = []
        self._held_announcements: list[Delivery] = []
        self.host = replace(
            host,
            now_ns=self._now_ns,
            announce=self._announce,
            flush=self.flush,
            placement_halt=self._placement_halt,
            predicates=None if host.predicates is None else self,
            question_channel=None if host.question_channel is None else self,
        )
        """What the partition is given."""

    # -------------------------------------------------------------------------------------- turns

    def run(self, describe: Callable[[], Document], turn: Callable[[], T], *, may_hold: bool = False) -> T:
        """Run a turn and write its line; one inside of another turn belongs to that.

        Args:
            describe: returns the verb of the line with its body.
            turn: what the partition does.
            may_hold: the line may wait for the next `flush`, with what is announced.
        """
        if self._at_ns is not None:
            return turn()
        self._begin(self._given.now_ns())
        failure: BaseException | None = None
        try:
            return turn()
        except BaseException as error:
            failure = error
            raise
        finally:
            self._end(describe, failure)
            if not (may_hold and self._recorder.may_hold):
                self.write_held()

    def run_in_change(self, at_ns: int, step: Callable[[], T]) -> T:
        """Run a step of a registration or reload, which has one line for all partitions."""
        self._begin(at_ns)
        try:
            return step()
        finally:
            self._at_ns = None
            announced, self._announced = self._announced, []
            lines = self._outcome_lines(at_ns, is_older=self._generation.is_older)
            self._recorder.pass_on(self, b"".join(lines), announced)

    def flush(self) -> None:
        """Write the turns that are held, and have what was announced delivered."""
        self.write_held()
        self._given.flush()

    def write_held(self) -> None:
        """Write the turns that are held, and announce what was announced in them."""
        if self._held_lines or self._held_announcements:
            lines, self._held_lines = b"".join(self._held_lines), []
            announced, self._held_announcements = self._held_announcements, []
            self._recorder.pass_on(self, lines, announced)

    def deliver(self) -> None:
        """Have what was announced delivered."""
        self._given.flush()

    def _begin(self, at_ns: int) -> None:
        self._at_ns = at_ns
        self._halt, self._halt_asked = None, False
        self._answers.clear()
        self._cycles = 0
        self._taken.clear()

    def _end(self, describe: Callable[[], Document], failure: BaseException | None) -> None:
        at_ns, self._at_ns = self._at_ns, None
        is_older = self._generation.is_older
        if self._recorder.is_open:
            try:
                line: Document = {"at": at_ns, "partition": self.number, **describe()}
                if self._answers:
                    line["answers"] = [*self._answers]
                if self._taken:
                    line["taken"] = [*self._taken]
                if self._halt is not None:
                    line["halted"] = True
                if is_older:
                    line["older"] = True
                if failure is not None:
                    line["failed"] = repr(failure)
                self._held_lines.append(self._recorder.encoded(line))
                self._held_lines += self._outcome_lines(at_ns, is_older=is_older)
            except Exception as error:  # noqa: BLE001 - scheduling goes on, whatever is wrong with the line
                self._recorder.give_up(f"a turn cannot be written, please report: {error!r}")
        self._held_announcements += _settled(self._announced, is_older)
        self._announced.clear()

    def watch(self, state: PartitionState) -> None:
        """Take the state of the partition, whose preemptions are outcomes."""
        if self._outcomes is not None:
            self._outcomes.state = state

    def _outcome_lines(self, at_ns: int | None, *, is_older: bool) -> list[bytes]:
        """Return a line for each outcome of a turn, in order; none where they are not recorded."""
        if self._outcomes is None:
            return []
        return [
            self._recorder.encoded({"at": at_ns, "partition": self.number, "outcome": outcome})
            for outcome in self._outcomes.take(older=is_older)
        ]

    # --------------------------------------------------------------------- what the host is asked

    def _now_ns(self) -> int:
        return self._given.now_ns() if self._at_ns is None else self._at_ns

    def _announce(self, announcement: Announcement) -> None:
        self._announced.append(announcement)
        if self._outcomes is not None:
            self._outcomes.note(announcement)

    def _placement_halt(self) -> PlacementHalt | None:
        if self._at_ns is None:
            return self._given.placement_halt()
        if not self._halt_asked:
            self._halt, self._halt_asked = self._given.placement_halt(), True
        return self._halt

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Ask the RM's predicate, and keep the answer."""
        assert self._asked is not None, "a partition without predicates asks none: please report"
        answer = self._asked.refuse(allocation_key, node_id, allocate=allocate)
        self._answers.append(written_answer(answer))
        return answer

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        """Ask the RM's predicate for preemption, and keep the answer."""
        assert self._asked is not None, "a partition without predicates asks none: please report"
        answer = self._asked.preemption_index(allocation_key, node_id, victim_keys, start_index)
        self._answers.append(written_answer(answer))
        return answer

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Send questions to the RM; a replay has the partition ask them again."""
        assert self._channel is not None, "a partition without a channel asks nothing: please report"
        self._channel.ask(questions)

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers that have come, and keep them; called once in each cycle."""
        assert self._channel is not None, "a partition without a channel takes nothing: please report"
        answers = self._channel.take()
        self._taken += [written_taken(self._cycles, answer) for answer in answers]
        self._cycles += 1
        return answers


def _settled(announced: Iterable[Announcement], is_older: bool) -> list[Delivery]:  # noqa: FBT001 - one fact
    """Decide the generation of announcements: the line says which one, whenever they are delivered."""
    return [InGeneration(announcement, is_older) for announcement in announced]
