"""The turns of a recording, carried out one by one on a stepped scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import final

from ....actors.locks.threads_engine import ThreadsEngine
from ....actors.services.clocks import VirtualClock
from ....actors.services.interrupts import Uninterrupted
from ....model.errors import LicorneError
from ....model.partition import Partition
from ....model.policies.policies import PolicyFacts
from ....model.state.host import TimerAction, timer_key
from ....model.values.documents import Json
from ....model.values.messages import LookedUp
from ....model.values.states import ManagerState
from ...si import reading
from ...si import si_pb2 as si
from ...si.older_generation import ask_terms
from ..recording.observer import MadePartition, ReplayDifferenceError, ReplayedAnswers
from ..recording.policy_answers import PlayedAnswers
from ..recording.turn_documents import AskedLater, TakenAnswer
from .scheduler import Scheduler


@final
class RecordedTurns:
    """Repeats the turns of partitions from a recording: nothing else happens by itself.

    Args:
        scheduler: a stepped one of the engine `direct` or `actors`, on which nothing has happened.
        reservations_on: whether the recorded scheduler reserved nodes.
        is_anonymous: whether names are pseudonyms.
        policies: those of the recorded scheduler. Those that this one has are asked as well, and have to
            answer the same.

    Raises:
        LicorneError: it is another one; or it has a policy that was not recorded, or would see pseudonyms.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        reservations_on: bool,
        is_anonymous: bool = False,
        policies: Mapping[str, PolicyFacts] = MappingProxyType({}),
    ) -> None:
        clock, managers = scheduler._clock, scheduler._managers  # noqa: SLF001 - a part of the scheduler
        if not isinstance(clock, VirtualClock) or isinstance(scheduler._engine, ThreadsEngine):  # noqa: SLF001 - likewise
            raise LicorneError("a recording is replayed with the engines direct and actors, stepped")
        managers.reservations_on = reservations_on
        self._clock = clock
        self._managers = managers
        self._engine = scheduler._engine  # noqa: SLF001 - a part of the scheduler
        self._reader = scheduler._reader  # noqa: SLF001 - a part of the scheduler
        self._answers = ReplayedAnswers()
        managers.observer = self._answers
        if is_anonymous and managers.policies.facts:
            raise LicorneError("the recording has pseudonyms, with which no policy can be asked again")
        self._policies = PlayedAnswers(policies, managers.policies)
        self._answers.policies = managers.policies = self._policies.given
        self._partitions: dict[int, MadePartition] = {}

    # --------------------------------------------------------------------------- around the turns

    def set_time(self, at_ns: int) -> None:
        """Set the time of what comes next."""
        self._clock.set_to(at_ns)

    def begin_turn(
        self,
        number: int,
        at_ns: int,
        answers: Iterable[str | int | None],
        taken: Iterable[TakenAnswer],
        policies: Mapping[str, Sequence[Json]],
        *,
        is_halted: bool,
    ) -> None:
        """Set the time of a turn, and what its partition will be answered."""
        self.set_time(at_ns)
        self._policies.begin(policies)
        self._answers.begin_turn(self._known(number).incarnation, answers, taken, is_halted=is_halted)

    def end_turn(self, *, has_failed: bool) -> None:
        """Make sure that the partition has asked for all answers, unless the turn has failed.

        Raises:
            ReplayDifferenceError: it has not.
        """
        if has_failed:
            self._policies.end()
        else:
            self.check_policies()
        self._answers.end_turn(has_failed=has_failed)

    def check_policies(self) -> None:
        """Make sure that policies were asked and have answered as recorded, and end asking.

        Raises:
            ReplayDifferenceError: they were not; it names what differs first.
        """
        difference = self._policies.end()
        if difference:
            raise ReplayDifferenceError(difference)

    def begin_change(
        self,
        at_ns: int,
        asked: AskedLater | bool,  # noqa: FBT001 - one of its values
        policies: Mapping[str, Sequence[Json]],
    ) -> None:
        """Set the time of a registration or reload, and what partitions are answered in it.

        Args:
            at_ns: the time.
            asked: how partitions that it makes ask predicates.
            policies: the answers of policies.
        """
        self.set_time(at_ns)
        self._policies.begin(policies)
        self._answers.asked = asked
        self._answers.made.clear()

    def end_change(self, numbers: Mapping[str, int]) -> None:
        """Number the partitions that a registration or reload has made.

        Args:
            numbers: the number of each, by full name.

        Raises:
            ReplayDifferenceError: others were made than those that were recorded; or a policy has answered
                something else.
        """
        self.check_policies()
        made = self._answers.made
        if made.keys() != numbers.keys():
            recorded = ", ".join(numbers) or "none"
            raise ReplayDifferenceError(f"recorded partitions: {recorded}; made: {', '.join(made) or 'none'}")
        self._partitions |= {numbers[name]: partition for name, partition in made.items()}

    def change_manager(self, rm_id: str, state: ManagerState, reason: str) -> None:
        """Pause or stop a resource manager; its recorded turns continue.

        Raises:
            RequestError: it has not registered.
        """
        manager = self._managers.get(rm_id, f"the state {state.value}")
        if state is ManagerState.PAUSED:
            manager.life.pause(reason)
            return
        manager.life.stop(reason)
        for known in self._partitions.values():
            if self._managers.partition(known.incarnation) in manager.partitions.values():
                self._clock.forget(known.incarnation)

    def set_generation(self, number: int, *, is_older: bool) -> None:
        """Answer the resource manager of a partition in a generation from now on."""
        self._known(number).generation.is_older = is_older

    # ---------------------------------------------------------------------------------- the turns

    def update_nodes(self, number: int, request: si.NodeRequest) -> None:
        """Have a partition change nodes."""
        updates = self._reader.node_updates(request, self._known(number).generation)
        self._run(number, "update_nodes", tuple(each for of_one in updates.values() for each in of_one))

    def update_applications(
        self, number: int, request: si.ApplicationRequest, groups: Mapping[str, LookedUp]
    ) -> None:
        """Have a partition add and remove applications; `groups` are those that were looked up, by user."""
        submissions = tuple(
            entry if entry.groups else replace(entry, looked_up=groups.get(entry.user))
            for entry in self._reader.application_submissions(request)
        )
        self._run(number, "update_applications", submissions, reading.application_removals(request))

    def update_allocations(self, number: int, request: si.AllocationRequest) -> None:
        """Have a partition add and end asks and allocations."""
        generation = self._known(number).generation
        submissions = self._reader.allocation_submissions(request, generation)
        releases = reading.releases(request, generation)
        self._run(number, "update_allocations", submissions, releases, ask_terms(request))

    def fire(self, number: int, action: TimerAction) -> None:
        """Have a partition do what is due."""
        self._clock.cancel(self._known(number).incarnation, timer_key(action))
        self._run(number, "on_timer", action)

    def step(self, number: int, method: str, *args: object) -> None:
        """Have a partition run a marked method."""
        self._run(number, method, *args)

    def retire(self, number: int) -> None:
        """Drop a partition that has ended."""
        self._managers.retire(self._partition(number))
        del self._partitions[number]

    def _run(self, number: int, method: str, *args: object) -> None:
        with Uninterrupted():
            self._engine.tell(self._partition(number), method, *args)

    def _known(self, number: int) -> MadePartition:
        known = self._partitions.get(number)
        if known is None:
            raise ReplayDifferenceError(f"there is no partition {number}")
        return known

    def _partition(self, number: int) -> Partition:
        partition = self._managers.partition(self._known(number).incarnation)
        assert partition is not None, "a partition that is numbered has not ended: please report"
        return partition
