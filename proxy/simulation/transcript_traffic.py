"""Play a transcript in a simulation: every line at its time, with books kept.

Unlike a replay, which runs as many scheduling cycles as the transcript says, a simulation lets the
scheduler come to rest at every line that says `schedule`, and before time moves on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...model.errors import LicorneError
from ..si import si_pb2 as si
from .callback_guard import CallbackGuard
from .transcript_ledger import Ledger, Rules

if TYPE_CHECKING:
    from ..transcripts.transcript import Line
    from .books import Books
    from .core import Core
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
        self, transcript: Transcript, core: Core, books: Books, configuration: str | None = None
    ) -> None:
        self._transcript = transcript
        self._core = core
        self._books = books
        self._configuration = configuration
        self._origin_ns = core.now_ns()
        self._steps_done = 0
        self._rules = Rules()
        self._ledgers: dict[str, Ledger] = {}
        self._guards: list[CallbackGuard] = []

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
                self._say(step.line)
            except LicorneError as error:
                # As in a replay, the transcript goes on after a refusal.
                self._books.remarks.refusals[f"line {step.line.number}, {step.line.verb}: {error}"] += 1

    def has_to_send(self) -> bool:
        """Return whether a release is to be confirmed; raise what went wrong in a callback."""
        for guard in self._guards:
            guard.raise_failure()
        return bool(self._rules.confirmations)

    def send(self) -> None:
        """Confirm releases, one request for each, in order."""
        confirmations, self._rules.confirmations = self._rules.confirmations, []
        for rm_id, release in confirmations:
            self._ledgers[rm_id].says_release(release)
            releases = si.AllocationReleasesRequest(allocationsToRelease=[release])
            self._core.api.update_allocation(si.AllocationRequest(releases=releases, rmID=rm_id))

    def is_anything_open(self) -> bool:
        """Return whether time should go on after the last line: it should not."""
        return False

    def progress(self) -> tuple[int, int]:
        """Return the lines that were said, of all."""
        return self._steps_done, len(self._transcript.steps)

    def _now_ns(self) -> int:
        """Return the virtual time from the start."""
        return self._core.now_ns() - self._origin_ns

    def _say(self, line: Line) -> None:
        """Say one line."""
        match line.verb:
            case "register":
                self._register(line.message(si.RegisterResourceManagerRequest))
            case "configuration":
                self._core.api.update_configuration(line.message(si.UpdateConfigurationRequest))
            case "node":
                self._say_nodes(line.message(si.NodeRequest))
            case "application":
                self._say_applications(line.message(si.ApplicationRequest))
            case "allocation":
                self._say_allocations(line.message(si.AllocationRequest))
            case "predicates":
                self._rules.denied = line.predicate_table()
            case "confirm":
                self._rules.is_confirming = line.confirms()

    def _register(self, request: si.RegisterResourceManagerRequest) -> None:
        """Register a resource manager; one that is known has lost everything then."""
        if self._configuration is not None:
            replaced = si.RegisterResourceManagerRequest()
            replaced.CopyFrom(request)
            replaced.config = self._configuration
            request = replaced
        known = self._ledgers.get(request.rmID)
        ledger = Ledger(request.rmID, self._books, self._rules, self._now_ns, self._core.queue_and_user)
        guard = CallbackGuard(ledger)
        self._guards.append(guard)
        self._core.api.register_resource_manager(request, guard)
        if known is not None:
            known.starts_afresh()
        self._ledgers[request.rmID] = ledger

    def _say_nodes(self, request: si.NodeRequest) -> None:
        """Say something about nodes; nobody keeps books for a resource manager that is not registered."""
        ledger = self._ledgers.get(request.rmID)
        if ledger is not None:
            ledger.says_nodes(request)
        self._core.api.update_node(request)

    def _say_applications(self, request: si.ApplicationRequest) -> None:
        """Say something about applications."""
        ledger = self._ledgers.get(request.rmID)
        if ledger is not None:
            ledger.says_applications(request)
        self._core.api.update_application(request)

    def _say_allocations(self, request: si.AllocationRequest) -> None:
        """Say something about asks and allocations."""
        ledger = self._ledgers.get(request.rmID)
        new_keys = ledger.says_allocations(request) if ledger is not None else []
        try:
            self._core.api.update_allocation(request)
        except LicorneError as error:
            if ledger is not None:
                ledger.was_refused(new_keys, str(error))
            raise
