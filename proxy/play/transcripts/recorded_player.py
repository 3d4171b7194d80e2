"""Play the lines of a recording: each is one turn of a partition, or a change of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from ....model.errors import LicorneError
from ....model.values.documents import Json
from ...core.recording.callback_documents import CALLBACK_KEYS
from ...core.recording.replaying import ReplayDifferenceError
from ...core.scheduler.recorded_turns import RecordedTurns
from ...core.scheduler.scheduler import Scheduler
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from .player import TranscriptPlayer
from .recorded_lines import Header, ManagerLine, QuarantineLine, Recorded
from .transcript import Line


@final
class RecordedPlayer:
    """Plays the lines of one recording.

    Args:
        scheduler: A stepped one, on which nothing has happened.
        player: Has the resource managers.
        header: What the first line says.
        answer: Takes a callback that came from no partition: the rmID, the name of its message, and that.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        player: TranscriptPlayer,
        header: Header,
        answer: Callable[[str, str, Json], None],
    ) -> None:
        self._turns = RecordedTurns(scheduler, reservations_on=header.reservations)
        self._player = player
        self._answer = answer

    def play(self, line: Line, recorded: Recorded) -> None:
        """Play one line.

        Raises:
            ReplayDifferenceError: The scheduler does something else than what was recorded.
        """
        try:
            self._play(line, recorded)
        except LicorneError as error:
            raise ReplayDifferenceError(f"{line.place}: {line.verb}: {error}") from error

    def _play(self, line: Line, recorded: Recorded) -> None:
        match line.verb:
            case "register" | "configuration":
                self._turns.begin_change(recorded.at_ns, recorded.asked)
                self._player.play(line)
                self._turns.end_change(recorded.partitions)
            case "answer" | "manager" | "retire":
                self._turns.set_time(recorded.at_ns)
                self._play_at_once(line, recorded)
            case "outcome":
                pass  # It was said, and is said again.
            case _:
                self._play_turn(line, recorded)

    def _play_at_once(self, line: Line, recorded: Recorded) -> None:
        """Play a line that is no turn of a partition."""
        if line.verb == "retire":
            self._turns.retire(recorded.number())
        elif isinstance(line.body, ManagerLine):
            self._turns.change_manager(*line.body)
        elif line.verb == "answer" and isinstance(line.body, dict):
            for key in CALLBACK_KEYS & line.body.keys():
                self._answer(str(line.body["rmID"]), key, line.body[key])

    def _play_turn(self, line: Line, recorded: Recorded) -> None:
        number = recorded.number()
        self._turns.set_generation(number, is_older=recorded.is_older)
        self._turns.begin_turn(
            number, recorded.at_ns, recorded.answers, recorded.taken, is_halted=recorded.is_halted
        )
        try:
            self._have_done(number, line, recorded)
        except ReplayDifferenceError:
            raise
        except Exception:
            if not recorded.has_failed:
                raise
            self._turns.end_turn(has_failed=True)  # What broke then breaks again.
            return
        self._turns.end_turn(has_failed=False)

    def _have_done(self, number: int, line: Line, recorded: Recorded) -> None:
        match line.verb:
            case "node":
                self._turns.update_nodes(number, line.message(si.NodeRequest))
            case "application":
                self._turns.update_applications(number, line.message(si.ApplicationRequest), recorded.groups)
            case "allocation":
                self._turns.update_allocations(number, line.message(si.AllocationRequest))
            case "reconsider":
                named = line.message(v1.Reconsideration)
                of = (tuple(named.allocation_keys), tuple(named.node_ids), tuple(named.predicate_classes))
                self._turns.step(number, "reconsider", *of)
            case "timer":
                self._turns.fire(number, line.timer())
            case "schedule":
                self._turns.step(number, "work", line.cycles())
            case "step":
                self._turns.step(number, str(line.body))
            case "quarantine" if isinstance(line.body, QuarantineLine):
                self._turns.step(number, "quarantine", line.body.kind, line.body.name, line.body.reason)
            case verb:
                raise LicorneError(f"no line of a recording has the verb {verb!r}")
