"""Play a transcript in a simulation: every line at its time, with books kept.

Unlike a replay, which runs as many scheduling cycles as the transcript says, a simulation lets the
scheduler come to rest at every line that says `schedule`, and before time moves on.
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
        transcript: What they say.
        core: The scheduler; virtual time starts where its clock stands.
        books: What is written into.
        configuration: The queue YAML that takes the place of that of every registration, `None` for none.
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
        """Do nothing: the registration stands in the transcript."""

    def next_event_ns(self) -> int | None:
        """Return when the next line is due; after the last one, the end of the transcript."""
        if self._steps_done < len(self._transcript.steps):
            return self._transcript.steps[self._steps_done].at_ns
        return self._transcript.end_ns if self._now_ns() < self._transcript.end_ns else None

    def deliver(self, now_ns: int) -> None:
        """Say the lines that are due, up to the next one that has the scheduler come to rest."""
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
        """Return whether a release is to be confirmed; raise what went wrong in a callback."""
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
        """Return the lines that were said, of all."""
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
