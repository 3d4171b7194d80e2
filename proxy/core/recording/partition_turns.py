"""The turns of one partition: their requests, their times, and the answers to their questions.

The time is constant in a turn, and announcements of a turn wait until the line of the turn has been written.
So a replay that sets its clock to the time of the line makes the same decisions, and no resource manager (RM)
ever gets a decision that is not in the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast, final

from ....model.configuration.schema import PartitionConfig
from ....model.partition import Partition
from ....model.predicates.node_checks import Predicates, QuestionChannel
from ....model.requests.reconfiguring import Savepoint
from ....model.scheduling.cycle import CycleOutcome
from ....model.state.host import PartitionHost, TimerAction
from ....model.state.partition_state import BrokenKind, PartitionState
from ....model.values.allocation import PlacementHalt
from ....model.values.documents import Document, Json
from ....model.values.messages import (
    AllocationSubmission,
    Announcement,
    ApplicationRemoval,
    ApplicationSubmission,
    AskTerms,
    NodeUpdate,
    NumberedQuestion,
    PredicateAnswer,
    Release,
)
from ...si.older_generation import Delivery, Generation, InGeneration
from .policy_answers import TurnAnswers
from .turn_documents import (
    Outcomes,
    allocation_request,
    application_request,
    looked_up_groups,
    node_request,
    timer_document,
    written_answer,
    written_taken,
)

if TYPE_CHECKING:
    from .recorder import TurnRecorder

T = TypeVar("T")
STEPS: Final = (
    *("cycle", "run_until_idle", "watch_quotas", "schedule_wakeups", "next_retry_ns"),
    *("inspect_outstanding", "preempt_over_quota", "shut_down"),
)
"""The methods without arguments that a line `step` may name."""


@final
class PartitionTurns:
    """The host of a recorded partition. Like the partition, it is used by one thread at a time.

    Args:
        recorder: Writes the turns.
        number: The number of the partition in the recording.
        rm_id: The RM of the partition.
        host: The original host of the partition.
        generation: The generation of the answers to the RM.
    """

    def __init__(
        self, recorder: TurnRecorder, number: int, rm_id: str, host: PartitionHost, generation: Generation
    ) -> None:
        self.number = number
        self.rm_id = rm_id
        self.announce_now = cast("Callable[[Delivery], None]", host.announce)  # The method of the manager.
        self._recorder = recorder
        self._given = host
        self._asked: Predicates | None = host.predicates
        self._channel: QuestionChannel | None = host.question_channel
        self._generation = generation
        self._at_ns: int | None = None
        """The time of the turn; `None` outside of turns."""
        self._halt: PlacementHalt | None = None
        self._halt_asked = False
        """Whether the turn has asked for the halt."""
        self._answers: list[Json] = []
        self._cycles = 0
        """The number of cycles of this turn that have taken answers, including empty ones."""
        self._taken: list[Json] = []
        self._policies = TurnAnswers()
        for policy in host.policies.by_name.values():
            policy.note = self._note_policy
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
        """The host for the partition."""

    # -------------------------------------------------------------------------------------- turns

    def run(self, describe: Callable[[], Document], turn: Callable[[], T], *, may_hold: bool = False) -> T:
        """Run a turn and write its line; a turn inside another one belongs to that one.

        Args:
            describe: Returns the verb of the line with its body.
            turn: The action of the partition.
            may_hold: Whether the line and its announcements may wait for the next `flush`.
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
            self._recorder.note_policies(self._policies.take())
            announced, self._announced = self._announced, []
            lines = self._outcome_lines(at_ns, is_older=self._generation.is_older)
            self._recorder.pass_on(self, b"".join(lines), announced)

    def flush(self) -> None:
        """Write the held turns, and deliver their announcements."""
        self.write_held()
        self._given.flush()

    def write_held(self) -> None:
        """Write the held turns, and make their announcements."""
        if self._held_lines or self._held_announcements:
            lines, self._held_lines = b"".join(self._held_lines), []
            announced, self._held_announcements = self._held_announcements, []
            self._recorder.pass_on(self, lines, announced)

    def deliver(self) -> None:
        """Deliver the announcements."""
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
        policies = self._policies.take()
        if self._recorder.is_open:
            try:
                line: Document = {"at": at_ns, "partition": self.number, **describe()}
                if self._answers:
                    line["answers"] = [*self._answers]
                if self._taken:
                    line["taken"] = [*self._taken]
                line |= policies
                if self._halt is not None:
                    line["halted"] = True
                if is_older:
                    line["older"] = True
                if failure is not None:
                    line["failed"] = repr(failure)
                self._held_lines.append(self._recorder.encoded(line))
                self._held_lines += self._outcome_lines(at_ns, is_older=is_older)
            except Exception as error:  # noqa: BLE001 - scheduling continues despite any error of the line
                self._recorder.give_up(f"a turn cannot be written, please report: {error!r}")
        self._held_announcements += _settled(self._announced, is_older)
        self._announced.clear()

    def watch(self, state: PartitionState) -> None:
        """Set the state of the partition, whose preemptions are outcomes."""
        if self._outcomes is not None:
            self._outcomes.state = state

    def _outcome_lines(self, at_ns: int | None, *, is_older: bool) -> list[bytes]:
        """Return a line for each outcome of a turn, in order; empty if outcomes are not recorded."""
        if self._outcomes is None:
            return []
        return [
            self._recorder.encoded({"at": at_ns, "partition": self.number, "outcome": outcome})
            for outcome in self._outcomes.take(older=is_older)
        ]

    # ---------------------------------------------------------------------- questions to the host

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

    def _note_policy(self, policy: str, method: str, answer: object) -> None:
        """Keep an answer of a policy, unless a reader has asked between turns."""
        if self._at_ns is not None:
            self._policies.note(policy, method, answer)

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
        """Send questions to the RM; in a replay the partition asks them again."""
        assert self._channel is not None, "a partition without a channel asks nothing: please report"
        self._channel.ask(questions)

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the new answers, and keep them; called once in each cycle."""
        assert self._channel is not None, "a partition without a channel takes nothing: please report"
        answers = self._channel.take()
        self._taken += [written_taken(self._cycles, answer) for answer in answers]
        self._cycles += 1
        return answers


def _settled(announced: Iterable[Announcement], is_older: bool) -> list[Delivery]:  # noqa: FBT001 - one fact
    """Fix the generation of announcements: the line determines it, whenever they are delivered."""
    return [InGeneration(announcement, is_older) for announcement in announced]


@final
class RecordedPartition(Partition):
    """A partition that writes a line for each of its turns; otherwise it is unchanged."""

    def __init__(
        self, name: str, rm_id: str, config: PartitionConfig, turns: PartitionTurns, recorder: TurnRecorder
    ) -> None:
        self._turns = turns
        self._recorder = recorder
        super().__init__(name, rm_id, config, turns.host)
        turns.watch(self._state)

    def update_nodes(self, updates: Sequence[NodeUpdate]) -> None:
        """Create, change, drain and remove nodes; a line `node`."""
        self._turns.run(
            lambda: {"node": node_request(self.rm_id, updates)},
            lambda: Partition.update_nodes(self, updates),
            may_hold=True,
        )

    def update_applications(
        self, submissions: Sequence[ApplicationSubmission], removals: Sequence[ApplicationRemoval]
    ) -> None:
        """Add and remove applications; a line `application`, with the resolved groups."""

        def describe() -> Document:
            line: Document = {"application": application_request(self.rm_id, submissions, removals)}
            groups = looked_up_groups(submissions)
            return line | {"groups": groups} if groups else line

        self._turns.run(
            describe, lambda: Partition.update_applications(self, submissions, removals), may_hold=True
        )

    def update_allocations(
        self,
        submissions: Sequence[AllocationSubmission],
        releases: Sequence[Release],
        terms: Sequence[AskTerms] = (),
    ) -> None:
        """Add asks and allocations, and process ends; a line `allocation`."""
        self._turns.run(
            lambda: {"allocation": allocation_request(self.rm_id, submissions, releases, terms)},
            lambda: Partition.update_allocations(self, submissions, releases, terms),
            may_hold=True,
        )

    def reconsider(
        self, allocation_keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Try again the nodes that the RM refused; a line `reconsider`."""

        def describe() -> Document:
            named = {"allocationKeys": allocation_keys, "nodeIds": node_ids, "predicateClasses": classes}
            lists: Document = {name: [*entries] for name, entries in named.items() if entries}
            return {"reconsider": {"rmId": self.rm_id, **lists}}

        self._turns.run(
            describe,
            lambda: Partition.reconsider(self, allocation_keys, node_ids, classes),
            may_hold=True,
        )

    def on_timer(self, action: TimerAction) -> None:
        """Carry out a due action; a line `timer`."""
        self._turns.run(
            lambda: {"timer": timer_document(action)},
            lambda: Partition.on_timer(self, action),
            may_hold=True,
        )

    def work(self, cycles_max: int) -> CycleOutcome:
        """Run cycles; a line `schedule`."""
        return self._turns.run(
            lambda: {"schedule": cycles_max}, lambda: Partition.work(self, cycles_max), may_hold=True
        )

    def quarantine(self, kind: BrokenKind, name: str, reason: str) -> bool:
        """Exclude a broken object from scheduling; a line `quarantine`."""
        broken: Document = {"kind": kind.value, "name": name, "reason": reason}
        return self._turns.run(
            lambda: {"quarantine": broken}, lambda: Partition.quarantine(self, kind, name, reason)
        )

    def reconfigure(self, config: PartitionConfig) -> Savepoint:
        """Apply a new configuration, as a part of the change that has one line for all partitions."""
        at_ns = self._recorder.take_part(self._turns)
        return self._turns.run_in_change(at_ns, lambda: Partition.reconfigure(self, config))

    def restore(self, before: Savepoint) -> None:
        """Undo `reconfigure`; a failed change has no line."""
        at_ns = self._recorder.take_part(self._turns)
        self._turns.run_in_change(at_ns, lambda: Partition.restore(self, before))

    def _run_step(self, name: str, step: Callable[[Partition], T]) -> T:
        return self._turns.run(lambda: {"step": name}, partial(step, self))


def _recorded(name: str, step: Callable[[Partition], T]) -> Callable[[RecordedPartition], T]:
    """Return a method that runs a step of the base class; a line `step`."""

    def run(partition: RecordedPartition) -> T:
        return partition._run_step(name, step)  # noqa: SLF001 - a method of it

    return run


for _name in STEPS:
    setattr(RecordedPartition, _name, _recorded(_name, getattr(Partition, _name)))
