"""Play a transcript in a simulation: every line at its time, with a record.

Unlike a replay, which runs as many scheduling cycles as the transcript says, a simulation runs the scheduler
until idle at every line that says `schedule`, and before time moves on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...model.errors import LicorneError
from ..transcripts.player import TranscriptPlayer
from .callback_guard import CallbackGuard
from .recorded_manager import RecordedManager

if TYPE_CHECKING:
    from ..transcripts.player import PlayedManager, TranscriptRules
    from .core import Core
    from .record import SimulationRecord
    from .workloads.transcript_input import Transcript

__all__ = ["TranscriptTraffic"]


@final
class TranscriptTraffic:
    """All resource managers of a transcript; a `Traffic`.

    Args:
        transcript: Their requests.
        core: The scheduler; virtual time starts at the time of its clock.
        record: The record that is written.
        configuration: The queue YAML that replaces that of every registration; `None` keeps those.
    """

    def __init__(
        self, transcript: Transcript, core: Core, record: SimulationRecord, configuration: str | None = None
    ) -> None:
        self._transcript = transcript
        self._core = core
        self._record = record
        self._origin_ns = core.now_ns()
        self._steps_done = 0
        self._guards: list[CallbackGuard] = []
        self._player = TranscriptPlayer(
            core.api, self._recorded_manager, configuration=configuration, callback_of=self._guarded
        )

    def start(self) -> None:
        """Do nothing: the registration is in the transcript."""

    def next_event_ns(self) -> int | None:
        """Return when the next line is due; after the last one, the end of the transcript."""
        if self._steps_done < len(self._transcript.steps):
            return self._transcript.steps[self._steps_done].at_ns
        return self._transcript.end_ns if self._now_ns() < self._transcript.end_ns else None

    def deliver(self, now_ns: int) -> None:
        """Play the lines that are due, up to the next one that runs the scheduler until idle."""
        steps = self._transcript.steps
        while self._steps_done < len(steps) and steps[self._steps_done].at_ns <= now_ns:
            step = steps[self._steps_done]
            self._steps_done += 1
            if step.line.verb == "schedule":
                return
            try:
                self._player.play(step.line)
            except LicorneError as error:
                # As in a replay, the transcript goes on after a refusal.
                self._record.remarks.refusals[f"line {step.line.number}, {step.line.verb}: {error}"] += 1

    def has_to_send(self) -> bool:
        """Return whether a release is to be confirmed; raise the error of a callback."""
        for guard in self._guards:
            guard.raise_failure()
        return bool(self._player.releases_to_confirm())

    def send(self) -> None:
        """Confirm the releases that are kept now, one request for each, in order."""
        for _ in range(self._player.releases_to_confirm()):
            self._player.confirm_next()

    def is_anything_open(self) -> bool:
        """Return whether time should go on after the last line: it should not."""
        return False

    def progress(self) -> tuple[int, int]:
        """Return how many lines were played, and how many there are."""
        return self._steps_done, len(self._transcript.steps)

    def _now_ns(self) -> int:
        """Return the virtual time from the start."""
        return self._core.now_ns() - self._origin_ns

    def _recorded_manager(self, rm_id: str, rules: TranscriptRules) -> RecordedManager:
        return RecordedManager(rm_id, rules, self._record, self._now_ns, self._core.queue_and_user)

    def _guarded(self, manager: PlayedManager) -> CallbackGuard:
        guard = CallbackGuard(manager)
        self._guards.append(guard)
        return guard
