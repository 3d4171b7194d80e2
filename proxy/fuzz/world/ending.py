"""The end of a run: all asks are placed, all tasks end, nothing is left; the replay agrees."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, final

from ....model.explanation.values import AskStatus
from ....model.values.allocation import RefusalReason
from ...core.recording.recording import Recording
from ...core.recording.turn_documents import message_document
from ...core.scheduler.answering.questions import NotKnownError
from ...core.scheduler.scheduler import Scheduler
from ...play.transcripts.replay import replay_recording
from ...play.transcripts.transcript import read_recording, recording_files, rows_of_files
from ...play.verify.verifier import Findings, verify_lines
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback
from ...wire.client.recovery_parts import watcher_of
from ..configurations import Configuration
from ..manager.cluster_record import RACKS, KnownNode, RecordError
from ..manager.manager import SimulatedManager
from ..manager.si_client import SchedulerDoor

_LIMITING: Final = frozenset(
    {"resources", "limits", "maxapplications", "properties", "childtemplate", "policies", "windows"}
)
"""The limits that are removed from a configuration before everything is placed."""
_WAITS_FOR_OTHERS: Final = frozenset({RefusalReason.DEPENDENCY, RefusalReason.ARRAY_LIMIT})
_LARGE: Final = {"memory": 100_000, "vcore": 1_000_000}
_QUIET_SECONDS: Final = 45.0
"""The time without requests after which no work is in progress: applications complete within 30 s."""
_RECOVERIES_MAX: Final = 2
"""A recovery may omit nodes whose applications are refused; the next one has all."""
_MOMENT_SECONDS: Final = 0.9
_PASSING: Final = frozenset({"Completing", "Failing", "Resuming"})
"""The states that an application leaves automatically after all confirmations."""
_FIGURES: Final = ("allocatedResource", "pendingResource", "preemptingResource")
_KEYS: Final = ("allocationResponse", "applicationResponse", "nodeResponse")


@final
class RunEnding:
    """The end, and the checks that belong to it.

    Args:
        managers: All managers.
        scheduler: The scheduler of their registrations.
        quiet: Lets seconds pass without actions of managers.
        note: Records actions of the operator.
        are_maxima_kept: Whether no usage may exceed a maximum.
    """

    def __init__(
        self,
        managers: Sequence[SimulatedManager],
        scheduler: Scheduler,
        quiet: Callable[[float], None],
        note: Callable[[str, str, Any], None],
        *,
        are_maxima_kept: bool,
    ) -> None:
        self._are_maxima_kept = are_maxima_kept
        self._managers = managers
        self._scheduler = scheduler
        self._quiet = quiet
        self._note = note

    def run(self) -> None:
        """End all tasks, applications and nodes.

        Raises:
            RecordError: A task is lost, or left over.
        """
        self._end_faults()
        self._make_room()
        self._check_that_all_is_placed()
        self._end_tasks()
        self._end_nodes()

    def _end_faults(self) -> None:
        self._be_quiet_for_a_moment()
        for manager in self._managers:
            manager.callback_faults.end()
            manager.is_strict = False
            manager.confirm_all()
        self._quiet(_QUIET_SECONDS)
        for _ in range(_RECOVERIES_MAX):
            for manager in self._managers:
                if manager.must_connect or not manager.is_answered or self._is_broken(manager):
                    manager.connect()
            self._quiet(_QUIET_SECONDS)
        self._settle()

    def _is_broken(self, manager: SimulatedManager) -> bool:
        """Return whether an object of a manager is in quarantine: a message was lost when it broke."""
        return any(
            entry.partition.startswith(f"[{manager.rm_id}]") for entry in self._scheduler.quarantined()
        )

    def _make_room(self) -> None:
        """Remove all limits, and add more nodes than needed."""
        self._note("operator", "makes room", None)
        for manager in self._managers:
            manager.load(without_limits(manager.configuration))
            for node in manager.record.nodes.values():
                manager.grow_node(node, dict.fromkeys(node.size, 100_000))
                if node.drained:
                    manager.change_drained(node)
            for partition in manager.partitions:
                for _ in range(RACKS):  # Of consecutive numbers: one for each rack.
                    manager.report_node(KnownNode(manager.new_name("large"), partition, dict(_LARGE)))
        self._settle()
        if self._complete_gangs():
            self._settle()

    def _complete_gangs(self) -> bool:
        """Make the managers ask for the missing members of whole gangs; return whether any does."""
        any_lacks = False
        for manager in self._managers:
            waiting = {task.application: task.partition for task in manager.record.waiting.values()}
            for name, partition in waiting.items():
                found = self._scheduler.explain(name, rm_id=manager.rm_id, partition=partition)
                if any(each.reason is RefusalReason.GANG_INCOMPLETE for each in found.blockers):
                    manager.complete_gang(name)
                    any_lacks = True
        return any_lacks

    def _check_that_all_is_placed(self) -> None:
        for manager in self._managers:
            snapshot: Any = self._scheduler.snapshot(rm_id=manager.rm_id)
            held_back = applications_that_are_held_back(snapshot) | manager.record.gangs_that_never_fit()
            for task in manager.record.waiting.values():
                if task.required_node in manager.record.gone_nodes or task.application in held_back:
                    continue
                found = self._scheduler.explain(
                    task.application, rm_id=manager.rm_id, partition=task.partition
                )
                if any(each.reason in _WAITS_FOR_OTHERS for each in found.blockers):
                    continue
                why = self._scheduler.explain_ask(
                    task.application, task.key, rm_id=manager.rm_id, partition=task.partition
                )
                raise RecordError(f"{manager.rm_id} waits for {task} with all room there is: {why}")

    def _end_tasks(self) -> None:
        self._note("operator", "ends all", None)
        for manager in self._managers:
            manager.release([*manager.record.waiting, *manager.record.running], si.STOPPED_BY_RM)
            for key in [*manager.record.foreign]:
                manager.end_foreign(key)
            for name in [*manager.record.applications]:
                manager.give_up(name)
        self._settle()

    def _end_nodes(self) -> None:
        for manager in self._managers:
            for name in [*manager.record.nodes]:
                manager.lose_node(name)
        self._settle()
        snapshot: Any = self._scheduler.snapshot()
        for partition, root in snapshot["queues"].items():
            for figure in _FIGURES:
                if any((root.get(figure) or {}).values()):
                    raise RecordError(f"{figure} of {partition} at the end: {root[figure]}")

    def _settle(self) -> None:
        """Finish all work in progress, and compare the records."""
        self._be_quiet_for_a_moment()
        self._quiet(_QUIET_SECONDS)
        self._scheduler.validate()
        if self._scheduler.quarantined():
            raise RecordError(f"in quarantine: {self._scheduler.quarantined()}")
        for manager in self._managers:
            snapshot: Any = self._scheduler.snapshot(rm_id=manager.rm_id)
            manager.record.check(snapshot)
            if self._are_maxima_kept:
                check_maxima(snapshot)
            passing = _passing(manager)
            if passing:  # A dynamic leaf keeps its maximum number of applications: they end in turn.
                self._quiet(_QUIET_SECONDS)
            stuck = {name: state for name, state in _passing(manager).items() if passing.get(name) == state}
            if stuck:
                raise RecordError(f"applications that should be over, or run again: {stuck}")
            self._check_that_what_waits_is_held_back(manager)

    def _be_quiet_for_a_moment(self) -> None:
        """Check the waiting asks after a while in which no timer has hidden a lost wake-up."""
        self._quiet(_MOMENT_SECONDS)
        for manager in self._managers:
            if manager.is_answered and not (manager.answers_later or self._is_broken(manager)):
                with suppress(NotKnownError):  # It has not returned after a scheduler was killed.
                    self._check_that_what_waits_is_held_back(manager)

    def _check_that_what_waits_is_held_back(self, manager: SimulatedManager) -> None:
        """Check that each waiting ask has a reason: without one it would be placed."""
        waiting = {task.application: task.partition for task in manager.record.waiting.values()}
        for name, partition in waiting.items():
            found = self._scheduler.explain(name, rm_id=manager.rm_id, partition=partition)
            for ask in () if found.blockers else found.asks:
                if ask.status is AskStatus.WAITING and not ask.blockers:
                    raise RecordError(f"{ask.allocation_key} waits for no reason: {found}")


def _passing(manager: SimulatedManager) -> dict[str, str]:
    """Return the applications that leave their states automatically, with these states."""
    return {
        name: application.state
        for name, application in manager.record.applications.items()
        if application.state in _PASSING
    }


def without_limits(configuration: Configuration) -> Configuration:
    """Return a configuration with the same queues and no limits."""

    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: stripped(each) for name, each in value.items() if name not in _LIMITING}
        return [stripped(each) for each in value] if isinstance(value, list) else value

    return Configuration(json.dumps(stripped(json.loads(configuration.text))), configuration.leaves)


def check_maxima(snapshot: Any) -> None:
    """Check that no queue, user or group exceeds its maximum; nodes may be gone since.

    Raises:
        RecordError: One exceeds it.
    """
    for root in snapshot["queues"].values():
        for child in root.get("children") or ():
            for queue in _tree(child):
                _check(queue["queuename"], queue.get("allocatedResource"), queue.get("maxResource"))
    for kind, name in (("users", "userName"), ("groups", "groupName")):
        for holders in snapshot[kind].values():
            for holder in holders:
                for queue in _tree(holder["queues"]):
                    text = f"{holder[name]} in {queue['queuePath']}"
                    _check(text, queue.get("resourceUsage"), queue.get("maxResources"))


def _tree(queue: Any) -> Iterator[Any]:
    yield queue
    for child in queue.get("children") or ():
        yield from _tree(child)


def _check(name: str, used: dict[str, int] | None, maximum: dict[str, int] | None) -> None:
    for resource_type, most in (maximum or {}).items():
        if (used or {}).get(resource_type, 0) > most:
            raise RecordError(f"{name} uses {used}, and may use {maximum}")


def applications_that_are_held_back(snapshot: Any) -> set[str]:
    """Return the applications in queues that hold them back forever, see `_closed`."""
    return {
        document["applicationID"]
        for partition, documents in snapshot["applications"].items()
        for document in documents
        if document["queueName"] in {*_closed(snapshot["queues"][partition])}
    }


def _closed(queue: Any, *, above: bool = False) -> Iterator[str]:
    """Return the queues that place nothing, or not everything, although the configuration has no limits.

    Dynamic queues keep their limits, and so do draining ones; a leaf that has become a parent places nothing,
    nor do queues below a parent that has become a leaf.
    """
    children = queue.get("children") or ()
    is_limited = not queue["isManaged"] and bool(queue.get("maxResource") or queue.get("maxRunningApps"))
    above = above or is_limited or queue["status"] != "Active" or (queue["isLeaf"] and bool(children))
    if above or not queue["isLeaf"]:
        yield queue["queuename"]
    for child in children:
        yield from _closed(child, above=above)


@final
class RecordedRun:
    """A folder for the recording of one scheduler, and the messages to its resource managers."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="licorne-fuzz-")))
        self.recording = Recording(self._folder, outcomes=True)
        self._heard: dict[str, list[list[str]]] = {}
        """For each resource manager its registrations, and for each of them the callbacks, as JSON."""
        self.findings = Findings()
        """The findings of the verification."""

    def door(self, scheduler: Scheduler) -> RecordedDoor:
        """Return the scheduler, as a door that records messages through it."""
        return RecordedDoor(scheduler, self)

    def begin(self, rm_id: str) -> list[str]:
        """Return the list for the callbacks of a new registration."""
        callbacks: list[str] = []
        self._heard.setdefault(rm_id, []).append(callbacks)
        return callbacks

    def check(self) -> None:
        """Replay the recording of a scheduler that has stopped, verify its decisions, and remove it.

        Raises:
            RecordError: The replay differs, or a decision is refuted.
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
    """The door of resource managers in the scheduler's process, which records their callbacks."""

    def __init__(self, scheduler: Scheduler, run: RecordedRun) -> None:
        super().__init__(scheduler)
        self._run = run

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        """Register with a callback that records its messages."""
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
