"""Plays the lines of a transcript or of a recording to a scheduler, for all resource managers in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import final

from ....model.errors import LicorneError, RequestError
from ....model.values.documents import Json
from ...core.recording.observer import ReplayDifferenceError
from ...core.recording.turn_documents import CALLBACK_KEYS
from ...core.scheduler.calling import CallingSide
from ...core.scheduler.recorded_turns import RecordedTurns
from ...core.scheduler.scheduler import Scheduler
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import ResourceManager, ResourceManagerCallback, SchedulerAPI
from .recorded_lines import Header, ManagerLine, QuarantineLine, Recorded
from .transcript import Line, PredicateTable


class PlacementRefusedError(LicorneError):
    """A placement is refused by the resource manager, as the transcript determines."""


@dataclass(slots=True)
class TranscriptRules:
    """The present behaviour of all resource managers of a transcript, and the releases to confirm."""

    is_confirming: bool = True
    denied: PredicateTable = field(default_factory=PredicateTable)
    confirmations: deque[tuple[PlayedManager, si.AllocationRelease]] = field(default_factory=deque)


class PlayedManager(ResourceManager):
    """One resource manager of a transcript; a subclass may record its requests and callbacks.

    Args:
        rm_id: The id of the resource manager.
        rules: Its behaviour.
    """

    def __init__(self, rm_id: str, rules: TranscriptRules) -> None:
        self.rm_id = rm_id
        self._rules = rules

    def note_node_request(self, request: si.NodeRequest) -> None:
        """Note a request about nodes before it is sent."""

    def note_application_request(self, request: si.ApplicationRequest) -> None:
        """Note a request about applications before it is sent."""

    def note_allocation_request(self, request: si.AllocationRequest) -> list[str]:  # noqa: ARG002 - for subclasses
        """Note a request about asks and allocations before it is sent; return the new keys."""
        return []

    def note_release(self, release: si.AllocationRelease) -> None:
        """Note a release before it is confirmed."""

    def note_refused_request(self, keys: list[str], reason: str) -> None:
        """Note that the scheduler refused a request with new keys as a whole."""

    def note_registration(self) -> None:
        """Note that the resource manager has registered again, and has lost its earlier state."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Refuse the placements that the transcript refuses."""
        if self._rules.denied.denies(args.allocationKey, args.nodeID):
            raise PlacementRefusedError(f"predicates denied {args.allocationKey} on {args.nodeID}")

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> si.PreemptionPredicatesResponse:
        """Fail for placements that the transcript refuses; all others need only the first victims."""
        is_denied = self._rules.denied.denies(args.allocationKey, args.nodeID)
        return si.PreemptionPredicatesResponse(success=not is_denied, index=args.startIndex)

    def confirm_later(self, releases: Iterable[si.AllocationRelease]) -> None:
        """Keep the releases to confirm, if the transcript confirms them."""
        for release in releases:
            if self._rules.is_confirming and release.terminationType != si.STOPPED_BY_RM:
                kept = si.AllocationRelease()
                kept.CopyFrom(release)
                self._rules.confirmations.append((self, kept))


@final
class TranscriptPlayer:
    """All resource managers of a transcript.

    Args:
        api: The scheduler.
        manager_of: Returns the resource manager of an id, which follows the given rules.
        configuration: The queue YAML that replaces that of every registration; `None` keeps those.
        callback_of: Returns the callback of a resource manager; by default the manager itself.
    """

    def __init__(
        self,
        api: SchedulerAPI,
        manager_of: Callable[[str, TranscriptRules], PlayedManager],
        *,
        configuration: str | None = None,
        callback_of: Callable[[PlayedManager], ResourceManagerCallback] = lambda manager: manager,
    ) -> None:
        self._api = api
        self._manager_of = manager_of
        self._configuration = configuration
        self._callback_of = callback_of
        self._rules = TranscriptRules()
        self._managers: dict[str, PlayedManager] = {}

    def play(self, line: Line) -> None:
        """Play one line; a line that is not a request is left to the caller.

        Raises:
            LicorneError: The scheduler refuses the request.
        """
        match line.verb:
            case "register":
                self._register(line.message(si.RegisterResourceManagerRequest), line.only)
            case "configuration":
                self._api.update_configuration(line.message(si.UpdateConfigurationRequest))
            case "node":
                nodes = line.message(si.NodeRequest)
                self._manager(nodes.rmID).note_node_request(nodes)
                self._api.update_node(nodes)
            case "application":
                applications = line.message(si.ApplicationRequest)
                self._manager(applications.rmID).note_application_request(applications)
                self._api.update_application(applications)
            case "allocation":
                self._play_allocations(line.message(si.AllocationRequest))
            case "reconsider":
                self._reconsider(line.message(v1.Reconsideration))
            case "predicates":
                self._rules.denied = line.predicate_table()
            case "confirm":
                self._rules.is_confirming = line.confirms()

    def confirm_nothing(self) -> None:
        """Stop automatic confirmations: the confirmations are lines."""
        self._rules.is_confirming = False

    def releases_to_confirm(self) -> int:
        """Return the number of releases to confirm."""
        return len(self._rules.confirmations)

    def confirm_next(self) -> None:
        """Confirm the release that has waited longest, in a separate request."""
        manager, release = self._rules.confirmations.popleft()
        manager.note_release(release)
        releases = si.AllocationReleasesRequest(allocationsToRelease=[release])
        self._api.update_allocation(si.AllocationRequest(releases=releases, rmID=manager.rm_id))

    def _reconsider(self, named: v1.Reconsideration) -> None:
        if not isinstance(self._api, CallingSide):
            raise RequestError("reconsider: only a scheduler of Licorne can be asked")
        self._api.request_reconsideration(named)

    def _manager(self, rm_id: str) -> PlayedManager:
        """Return a resource manager; an unregistered one records nothing."""
        return self._managers.get(rm_id) or PlayedManager(rm_id, self._rules)

    def _register(self, request: si.RegisterResourceManagerRequest, only: tuple[str, ...] | None) -> None:
        """Register a resource manager; a registered one loses its earlier state."""
        if self._configuration is not None:
            replaced = si.RegisterResourceManagerRequest()
            replaced.CopyFrom(request)
            replaced.config = self._configuration
            request = replaced
        manager = self._manager_of(request.rmID, self._rules)
        callback = self._callback_of(manager)
        if only is None:
            self._api.register_resource_manager(request, callback)
        elif isinstance(self._api, CallingSide):
            self._api.register_resource_manager(request, callback, partitions=only)
        else:
            raise RequestError("register: only a scheduler of Licorne can be asked for some partitions")
        self._manager(request.rmID).note_registration()
        self._managers[request.rmID] = manager

    def _play_allocations(self, request: si.AllocationRequest) -> None:
        manager = self._manager(request.rmID)
        new_keys = manager.note_allocation_request(request)
        try:
            self._api.update_allocation(request)
        except LicorneError as error:
            manager.note_refused_request(new_keys, str(error))
            raise


@final
class RecordedPlayer:
    """Plays the lines of one recording.

    Args:
        scheduler: A stepped and unused scheduler.
        player: The player with the resource managers.
        header: The first line.
        answer: Called with a callback without a partition: the rmID, the name of its message, and the
            message.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        player: TranscriptPlayer,
        header: Header,
        answer: Callable[[str, str, Json], None],
    ) -> None:
        self._turns = RecordedTurns(
            scheduler,
            reservations_on=header.reservations,
            is_anonymous=header.is_anonymous,
            policies=header.policies,
        )
        self._player = player
        self._answer = answer

    def play(self, line: Line, recorded: Recorded) -> None:
        """Play one line.

        Raises:
            ReplayDifferenceError: The scheduler does something else than recorded.
        """
        try:
            self._play(line, recorded)
        except LicorneError as error:
            raise ReplayDifferenceError(f"{line.place}: {line.verb}: {error}") from error

    def _play(self, line: Line, recorded: Recorded) -> None:
        match line.verb:
            case "register" | "configuration":
                self._turns.begin_change(recorded.at_ns, recorded.asked, recorded.policies)
                self._player.play(line)
                self._turns.end_change(recorded.partitions)
            case "answer" | "manager" | "retire":
                self._turns.set_time(recorded.at_ns)
                self._play_at_once(line, recorded)
            case "outcome":
                pass  # The error was recorded, and occurs again.
            case _:
                self._play_turn(line, recorded)

    def _play_at_once(self, line: Line, recorded: Recorded) -> None:
        """Play a line that is not a turn of a partition."""
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
            number,
            recorded.at_ns,
            recorded.answers,
            recorded.taken,
            recorded.policies,
            is_halted=recorded.is_halted,
        )
        try:
            self._have_done(number, line, recorded)
        except ReplayDifferenceError:
            self._turns.check_policies()  # Their answers come first.
            raise
        except Exception:
            if not recorded.has_failed:
                raise
            self._turns.end_turn(has_failed=True)  # The recorded failure occurs again.
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
