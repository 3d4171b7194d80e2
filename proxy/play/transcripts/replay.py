"""Replays a transcript: the requests of a resource manager, line by line, and the scheduler's callbacks.

The format is in `docs/transcripts.md`. The whole transcript is read before the first line takes effect, so
that a malformed one changes nothing; a recording is read during its replay, since it may be very large.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, final

from ....actors.services.clocks import EPOCH_2000_NS
from ....model.errors import LicorneError
from ....model.policies.policies import PolicyFactory
from ....model.values.documents import Json
from ...core.recording.observer import ReplayDifferenceError
from ...core.recording.recording import Recording
from ...core.recording.turn_documents import CallbackWriter
from ...core.resolvers.resolver import UserResolutionError, UserResolver
from ...core.scheduler.engine_names import EngineName
from ...core.scheduler.scheduler import Scheduler
from ...si import si_pb2 as si
from .player import PlayedManager, RecordedPlayer, TranscriptPlayer, TranscriptRules
from .transcript import Line, read_transcript

_SECOND_NS: Final = 1_000_000_000


@final
class _WritingManager(CallbackWriter, PlayedManager):
    """An RM that writes all its callbacks to the output, and confirms releases if the transcript does."""

    def __init__(self, rm_id: str, rules: TranscriptRules, write: Callable[[str, Json], None]) -> None:
        CallbackWriter.__init__(self, write)
        PlayedManager.__init__(self, rm_id, rules)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        self.confirm_later(response.released)


@final
class Replay:
    """One replay.

    Args:
        scheduler: A stepped and unused scheduler.
        write_line: Called with each line of the output.
        configuration: The queue YAML that replaces that of every registration; `None` keeps those.
    """

    def __init__(
        self, scheduler: Scheduler, write_line: Callable[[str], None], *, configuration: str | None = None
    ) -> None:
        self.scheduler = scheduler
        self._write_line = write_line
        self._line = 0
        self.refused: set[int] = set()
        """The numbers of lines that were answered with an error."""
        self._player = TranscriptPlayer(
            self.scheduler,
            self._join,
            configuration=configuration,
        )
        self._registered: dict[str, int] = {}
        """The line of the last registration of each resource manager."""
        self._recorded: RecordedPlayer | None = None
        """Plays the lines with a time; made by the first line of a recording."""

    def run(self, lines: Iterable[Line]) -> None:
        """Replay the lines; all callbacks of a line are written before the next one is read.

        Raises:
            ReplayDifferenceError: A recording cannot be replayed any further.
            LicorneError: The scheduler cannot replay recordings.
        """
        for line in lines:
            # The lines of a recording are numbered through all its files.
            self._line = line.number if self._recorded is None else self._line + 1
            if line.recorded is not None:
                self._play_recorded(line)
                self.scheduler.deliver()
                continue
            if line.verb == "recording":
                self._begin_recording(line)
                continue
            try:
                self._play(line)
            except LicorneError as error:
                self.refused.add(line.number)
                self._write("error", str(error))
            self._run_until_idle()

    def _write(self, key: str, body: Json) -> None:
        self._write_line(json.dumps({"line": self._line, key: body}, sort_keys=True, ensure_ascii=False))

    def _join(self, rm_id: str, rules: TranscriptRules) -> PlayedManager:
        """Return a resource manager that registers with the present line."""
        self._registered[rm_id] = self._line
        return _WritingManager(rm_id, rules, partial(self._write_callback, rm_id, self._line))

    def _write_callback(self, rm_id: str, registered: int, key: str, body: Json) -> None:
        """Write a callback; in a recording with its resource manager and registration."""
        if self._recorded is None:
            self._write(key, body)
            return
        output = {"line": self._line, "rmID": rm_id, "registeredAt": registered, key: body}
        self._write_line(json.dumps(output, sort_keys=True, ensure_ascii=False))

    def _write_answer(self, rm_id: str, key: str, body: Json) -> None:
        """Write a callback without a partition."""
        self._write_callback(rm_id, self._registered.get(rm_id, 0), key, body)

    def _run_until_idle(self) -> None:
        """Deliver callbacks, and send the answers of the RM one by one until none follow."""
        self.scheduler.deliver()
        while self._player.releases_to_confirm():
            self._player.confirm_next()
            self.scheduler.deliver()

    def _play(self, line: Line) -> None:
        match line.verb:
            case "schedule":
                self._schedule(line)
            case "advance":
                self._advance(line)
            case "snapshot":
                self._write("snapshot", self.scheduler.snapshot())
            case _:
                self._player.play(line)
                if line.verb == "register":
                    self._write("registered", {})

    def _begin_recording(self, line: Line) -> None:
        """Stop all automatic steps; the other files of a recording begin with such a line as well."""
        if self._recorded is None:
            self._player.confirm_nothing()
            self._recorded = RecordedPlayer(self.scheduler, self._player, line.header(), self._write_answer)

    def _play_recorded(self, line: Line) -> None:
        """Play a line with a time."""
        if self._recorded is None or line.recorded is None:
            raise ReplayDifferenceError(
                f"{line.place}: a line with `at` is part of a recording, "
                "which begins with the line `recording`"
            )
        self._recorded.play(line, line.recorded)

    def _schedule(self, line: Line) -> None:
        cycles = line.cycles()
        results = 0
        count = 0
        while cycles is None or count < cycles:
            result = self.scheduler.schedule(1)
            self._run_until_idle()
            if not result and cycles is None:
                break
            count += 1
            results += result
        self._write("scheduled", results)

    def _advance(self, line: Line) -> None:
        target_ns = self.scheduler.now_ns() + line.duration_ns()
        while True:
            now_ns = self.scheduler.now_ns()
            second_ns = now_ns + _SECOND_NS - (now_ns - EPOCH_2000_NS) % _SECOND_NS
            due_ns = self.scheduler.next_timer_ns()
            if due_ns is not None and due_ns <= min(second_ns, target_ns):
                self.scheduler.fire_next()
            elif second_ns <= target_ns:
                self.scheduler.advance_to(second_ns)
                self.scheduler.inspect_outstanding()
                self.scheduler.preempt_over_quota()
            else:
                self.scheduler.advance_to(target_ns)
                return
            self._run_until_idle()


def replay(
    text: str,
    source: str,
    engine: EngineName,
    write_line: Callable[[str], None],
    resolver: UserResolver | None = None,
    *,
    threads: int | None = None,
    record: Path | None = None,
    policies: Mapping[str, PolicyFactory] | None = None,
) -> None:
    """Replay a transcript and write the output, line by line.

    Args:
        text: The transcript.
        source: The name of the transcript, for messages.
        engine: The name of the engine.
        write_line: Called with each line of the output.
        resolver: Finds the groups of users, instead of the resolver that the transcript configures.
        threads: The number of threads of the engine `threads`; by default one.
        record: The folder for a recording with outcomes; by default nothing is recorded.
        policies: The policies that its configurations may name.

    Raises:
        TranscriptError: A line of the transcript is malformed; nothing has been replayed.
        LicorneError: The engine is unknown, or cannot have this number of threads.
    """
    lines = read_transcript(text, source)
    recording = None if record is None else Recording(record, outcomes=True)
    with Scheduler(
        engine=engine,
        stepped=True,
        threads=threads,
        resolver=resolver,
        record=recording,
        policies=policies,
    ) as scheduler:
        Replay(scheduler, write_line).run(lines)


@final
class _NoLookUps:
    """The resolver of a replay: the recording has the resolved groups."""

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Refuse to look up a user.

        Raises:
            UserResolutionError: Always.
        """
        raise UserResolutionError(f"user {user!r}: the replay of a recording looks up no groups")


def replay_recording(
    lines: Iterable[Line],
    engine: EngineName,
    write_line: Callable[[str], None],
    resolver: UserResolver | None = None,
    policies: Mapping[str, PolicyFactory] | None = None,
) -> None:
    """Replay a recording and write the output, line by line.

    Args:
        lines: The lines of all files, in order.
        engine: The name of the engine, `direct` or `actors`.
        write_line: Called with each line of the output.
        resolver: Finds the groups of users in lines that were not recorded.
        policies: Policies of the recording that are asked as well, and must give the recorded answers.

    Raises:
        TranscriptError: A line is malformed; the lines before it have been replayed.
        ReplayDifferenceError: The scheduler does something else than recorded.
        LicorneError: The engine cannot replay recordings.
    """
    with Scheduler(
        engine=engine, stepped=True, resolver=resolver or _NoLookUps(), policies=policies
    ) as scheduler:
        Replay(scheduler, write_line).run(lines)
