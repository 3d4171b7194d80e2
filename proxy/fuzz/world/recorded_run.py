"""The recording of a simulated scheduler: the replay has to say the same to its resource managers."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, final

from ...core.recording.recording import Recording
from ...core.recording.turn_documents import message_document
from ...core.scheduler.scheduler import Scheduler
from ...play.transcripts.replay import replay_recording
from ...play.transcripts.transcript import read_recording, recording_files, rows_of_files
from ...play.verify.verifier import Findings, verify_lines
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback
from ...wire.client.recovery_watcher import watcher_of
from ..manager.cluster_record import RecordError
from ..manager.si_client import SchedulerDoor

_KEYS: Final = ("allocationResponse", "applicationResponse", "nodeResponse")


@final
class RecordedRun:
    """A folder for the recording of one scheduler, and what its resource managers in this process hear."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="licorne-fuzz-")))
        self.recording = Recording(self._folder, outcomes=True)
        self._heard: dict[str, list[list[str]]] = {}
        """For each resource manager its registrations, and for each of these the callbacks, as JSON."""
        self.findings = Findings()
        """What the verification has found."""

    def door(self, scheduler: Scheduler) -> RecordedDoor:
        """Return the scheduler, as a door that notes what is said through it."""
        return RecordedDoor(scheduler, self)

    def begin(self, rm_id: str) -> list[str]:
        """Return the list for the callbacks of a new registration."""
        callbacks: list[str] = []
        self._heard.setdefault(rm_id, []).append(callbacks)
        return callbacks

    def check(self) -> None:
        """Replay the recording of a scheduler that has stopped, verify its decisions, and remove it.

        Raises:
            RecordError: The replay says something else, or a decision is refuted.
        """
        said: dict[tuple[str, int], list[str]] = {}

        def take(row: str) -> None:
            document = json.loads(row)
            for key in _KEYS:
                if key in document:
                    registration = (document.get("rmID", ""), document.get("registeredAt", 0))
                    said.setdefault(registration, []).append(_text(key, document[key]))

        with self._open:
            rows = [*rows_of_files(recording_files(self._folder))]
            replay_recording(read_recording(rows, lambda _: None), "direct", take)
            self.findings = verify_lines(row.text for row in rows)
        if self.findings.refuted:
            raise RecordError(
                f"refuted: {'; '.join(f'line {line}: {text}' for line, text in self.findings.refuted[:5])}"
            )
        for rm_id, registrations in self._heard.items():
            replayed = [said[each] for each in sorted(said) if each[0] == rm_id]
            heard = [callbacks for callbacks in registrations if callbacks]
            if heard != replayed:
                raise RecordError(f"the replay differs for {rm_id}: {_first(heard, replayed)}")

    def drop(self) -> None:
        """Remove the recording."""
        self._open.close()


def _text(key: str, body: Any) -> str:
    return json.dumps({key: body}, sort_keys=True)


def _first(heard: list[list[str]], replayed: list[list[str]]) -> str:
    """Return the first difference."""
    for number, pair in enumerate(zip(heard, replayed, strict=False)):
        for place, (one, other) in enumerate(zip(*pair, strict=False)):
            if one != other:
                return f"callback {place} of registration {number} was {one}, and is {other}"
        if len(pair[0]) != len(pair[1]):
            return f"registration {number} heard {len(pair[0])} callbacks, and {len(pair[1])} are replayed"
    return f"{len(heard)} registrations, and {len(replayed)} in the replay"


@final
class RecordedDoor(SchedulerDoor):
    """The door of resource managers in the scheduler's process, whose callbacks are noted."""

    def __init__(self, scheduler: Scheduler, run: RecordedRun) -> None:
        super().__init__(scheduler)
        self._run = run

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        """Register with a callback that notes what it hears."""
        callbacks = self._run.begin(request.rmID)

        def note(key: str, message: Any) -> Any:
            callbacks.append(_text(key, message_document(message)))
            return message

        watcher = watcher_of(
            callback,
            lambda response: note("nodeResponse", response),
            lambda response: note("applicationResponse", response),
            lambda response: note("allocationResponse", response),
        )
        return self._scheduler.register_resource_manager(request, watcher)
