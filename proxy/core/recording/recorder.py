"""The recorder of a scheduler: it writes the turns of all partitions, in an order that is right for each.

A registration or reload changes several partitions, and has one line. Until it is complete, the turns of the
partitions that have changed already wait, with their announcements.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, final

from ....actors.services.log import Log
from ....model.nodes.node import CORDONED
from ....model.partition import Partition
from ....model.policies.policies import GivenPolicies
from ....model.requests.applications import (
    APPLICATIONS_TAG,
    CREATE_FORCE_TAG,
    CREATE_IF_MISSING_TAG,
    GUARANTEED_TAG,
    QUOTA_TAG,
)
from ....model.requests.submission_terms import APPLICATION_CREATION_TAG, GANG_TAGS, TOPOLOGY_TAGS
from ....model.values.allocation import (
    CHECKPOINT_TIME_TAG,
    CREATION_TIME_TAG,
    FOREIGN_TAG,
    REQUIRED_NODE_TAG,
    START_TIME_TAG,
    WALLTIME_TAG,
)
from ....model.values.dependencies import ARRAY_LIMIT_TAG, NAMES_TAGS
from ....model.values.documents import Document, Json
from ....model.values.messages import Announcement, short_partition_name
from ...si.constants import NODE_PARTITION
from ...si.older_generation import Delivery, InGeneration
from .observer import NewPartition
from .partition_turns import PartitionTurns, RecordedPartition
from .policy_answers import joined, written_policies
from .pseudonyms import Pseudonyms, anonymous_configuration, levels_of, tags_of_rules
from .recording import FORMAT_VERSION, Recording, RecordingFiles, new_folder
from .turn_documents import callback_document, how_asked, written_how_asked

_encode: Final = json.JSONEncoder(separators=(",", ":")).encode
"""It writes ASCII: incomplete characters in errors of predicates are harmless."""


class _Waiting(NamedTuple):
    """A turn that waits for the end of a change."""

    turns: PartitionTurns | None
    """The partition; `None` for a message without one."""
    lines: bytes
    announced: Sequence[Delivery]
    announce: Callable[[Delivery], None]


@final
class _ChangeUnderWay:
    """A registration or reload in progress."""

    def __init__(self, at_ns: int, rm_id: str) -> None:
        self.at_ns = at_ns
        self.rm_id = rm_id
        self.made: dict[str, PartitionTurns] = {}
        """The new partitions by incarnation."""
        self.names: dict[str, Json] = {}
        """The numbers of the new partitions, by full name."""
        self.predicates: Json = False
        """How these ask the RM's predicates."""
        self.parts: set[PartitionTurns] = set()
        """The partitions that have changed already."""
        self.waiting: list[_Waiting] = []
        self.policies: list[Document] = []
        """The answers of policies during the change, in the order of the partitions that asked."""


@final
class TurnRecorder:
    """Records one scheduler. Every method may be called by any thread.

    If a write fails the recording ends, which is logged once, and scheduling continues.

    Args:
        recording: The folder and the settings of the recording.
        now_ns: Returns the time, nanoseconds since 1970.
        log: Called with the reason why the recording has ended.
        may_hold: Whether lines may wait for the flush that partitions make at the end of some turns.
        reservations_on: Whether the scheduler reserves nodes.
        policies: The policies of the scheduler.

    Raises:
        LicorneError: The folder cannot be made or written into.
    """

    ends_partitions = True

    def __init__(
        self,
        recording: Recording,
        *,
        now_ns: Callable[[], int],
        log: Log | None = None,
        may_hold: bool,
        reservations_on: bool,
        policies: GivenPolicies,
    ) -> None:
        self.may_hold = may_hold
        self.has_outcomes = recording.outcomes
        self._now_ns = now_ns
        self._log = log or Log()
        self._reservations_on = reservations_on
        self._policies = written_policies(policies)
        self._anonymous = AnonymousLines() if recording.anonymize else None
        folder = new_folder(Path(recording.folder))
        self.folder: Path | None = folder
        self._files: RecordingFiles | None = RecordingFiles(self.folder, recording.rotate_bytes, self._header)
        self._lock = threading.Lock()
        """Held while lines are written and announcements are queued; no other lock is taken in that time."""
        self._numbered = 0
        self._known: dict[str, PartitionTurns] = {}
        """The partitions that have their line, by incarnation."""
        self._change: _ChangeUnderWay | None = None
        self._failure = ""
        """The reason for the end of the recording, until it is logged."""

    @property
    def is_open(self) -> bool:
        """Whether lines are still written."""
        return self._files is not None

    def _header(self, number: int) -> bytes:
        header: Document = {
            "version": FORMAT_VERSION,
            "file": number,
            "reservations": self._reservations_on,
            "anonymous": self._anonymous is not None,
        }
        if self.has_outcomes:
            header["outcomes"] = True
        header |= self._policies
        return self.encoded({"recording": header})

    # ---------------------------------------------------------------------------------- partitions

    def make_partition(self, new: NewPartition) -> Partition:
        """Make a partition whose turns are recorded, as a part of the present change."""
        with self._lock:
            change = self._under_way()
            self._numbered += 1
            turns = PartitionTurns(self, self._numbered, new.rm_id, new.host, new.generation)
            change.parts.add(turns)
            change.made[new.incarnation] = turns
            change.names[new.name] = turns.number
            change.predicates = written_how_asked(how_asked(new.host))
        return turns.run_in_change(
            change.at_ns, lambda: RecordedPartition(new.name, new.rm_id, new.config, turns, self)
        )

    def take_part(self, turns: PartitionTurns) -> int:
        """Let a partition take part in the present change; return the time of the change."""
        turns.write_held()  # Its earlier turns come before the line of the change.
        with self._lock:
            change = self._under_way()
            change.parts.add(turns)
            return change.at_ns

    def note_policies(self, answers: Document) -> None:
        """Note answers of policies to a partition during the present change."""
        if answers:
            self._under_way().policies.append(answers)

    def pass_on(self, turns: PartitionTurns, lines: bytes, announced: Sequence[Delivery]) -> None:
        """Write turns of a partition, then make their announcements."""
        with self._lock:
            change = self._change
            if change is not None and turns in change.parts:
                change.waiting.append(_Waiting(turns, lines, announced, turns.announce_now))
            else:
                self._write(lines)
                for announcement in announced:
                    turns.announce_now(announcement)
        self._log_failure()

    def retired(self, incarnation: str) -> None:
        """Note that a partition has ended."""
        turns = self._known.pop(incarnation, None)
        if turns is not None:
            turns.write_held()
            self.note({"partition": turns.number, "retire": True})

    # ------------------------------------------------------------------------------------- changes

    @contextmanager
    def change(
        self, verb: str, rm_id: str, configuration: str, only: Sequence[str] | None = None
    ) -> Iterator[None]:
        """Record a registration or reload: one line if it succeeds, none if it raises an error."""
        change = _ChangeUnderWay(self._now_ns(), rm_id)
        with self._lock:
            self._change = change
        try:
            yield
        except BaseException:
            self._undo(change)
            raise
        line: Document = {verb: {"rmID": rm_id, "config": configuration}}
        if only is not None:
            line["only"] = [*map(short_partition_name, only)]
        self._finish(change, line)

    def _finish(self, change: _ChangeUnderWay, line: Document) -> None:
        line = {"at": change.at_ns, **line}
        if change.names:
            line |= {"predicates": change.predicates, "partitions": change.names}
        line |= joined(change.policies)
        encoded = self.encoded(line) if self.is_open else b""
        with self._lock:
            self._write(encoded + b"".join(waiting.lines for waiting in change.waiting))
            self._announce(change)
            self._known |= change.made
            self._change = None
        for turns in change.parts:
            turns.deliver()
        self._log_failure()

    def _undo(self, change: _ChangeUnderWay) -> None:
        """Forget a failed change, and the partitions that were made for it."""
        made = set(change.made.values())
        change.waiting = [waiting for waiting in change.waiting if waiting.turns not in made]
        with self._lock:
            if any(waiting.lines and waiting.turns is not None for waiting in change.waiting):
                self._end("a reload was undone after a partition had worked with it")
            if change.policies:
                self._end("a reload was undone after policies had been asked")
            self._write(b"".join(waiting.lines for waiting in change.waiting))
            self._announce(change)
            self._change = None
        self._log_failure()

    def _announce(self, change: _ChangeUnderWay) -> None:
        for waiting in change.waiting:
            for announcement in waiting.announced:
                waiting.announce(announcement)

    def _under_way(self) -> _ChangeUnderWay:
        assert self._change is not None, "partitions are made and changed by registrations: please report"
        return self._change

    # --------------------------------------------------------------------------------- other lines

    def answer(
        self, rm_id: str, announcement: Announcement, announce: Callable[[Delivery], None], *, older: bool
    ) -> None:
        """Announce a message without a partition to an RM; a line `answer`."""
        callback = callback_document(announcement, older=older)
        line: Document = {"at": self._now_ns(), "answer": {"rmID": rm_id, **callback}}
        encoded = self.encoded(line) if callback else b""  # An answer without entries is not sent.
        settled = InGeneration(announcement, older)
        with self._lock:
            if self._change is not None and self._change.rm_id == rm_id:
                self._change.waiting.append(_Waiting(None, encoded, (settled,), announce))
            else:
                self._write(encoded)
                announce(settled)
        self._log_failure()

    def note(self, line: Document) -> None:
        """Note another line: a verb with its body, and the time `at` unless it happens now."""
        encoded = self.encoded({"at": self._now_ns(), **line})
        with self._lock:
            self._write(encoded)
        self._log_failure()

    def close(self) -> None:
        """Write the held lines, and close the files; recording ends."""
        for turns in [*self._known.values()]:
            turns.write_held()
        with self._lock:
            files, self._files = self._files, None
            if files is not None:
                files.close()

    # ------------------------------------------------------------------------------------- writing

    def encoded(self, line: Document) -> bytes:
        """Return a line in its written form."""
        if self._anonymous is not None:
            line = self._anonymous.hidden(line)
        return _encode(line).encode() + b"\n"

    def give_up(self, reason: str) -> None:
        """End the recording."""
        with self._lock:
            self._end(reason)
        self._log_failure()

    def _write(self, lines: bytes) -> None:
        """Write lines, with the lock held; if that fails, the recording ends."""
        if self._files is None or not lines:
            return
        try:
            self._files.write(lines)
        except OSError as error:
            self._end(error.strerror or repr(error))

    def _end(self, reason: str) -> None:
        """End the recording, with the lock held; the reason is logged when the lock is released."""
        if self._files is not None:
            self._files.close()
            self._files = None
            self._failure = reason

    def _log_failure(self) -> None:
        if self._failure:
            with self._lock:
                reason, self._failure = self._failure, ""
            if reason:
                self._log.error(
                    "the recording in {} has ended, scheduling continues: {}", self.folder, reason
                )


_KEPT_TAGS: Final = frozenset(
    {APPLICATION_CREATION_TAG, CHECKPOINT_TIME_TAG, CREATION_TIME_TAG, FOREIGN_TAG, START_TIME_TAG}
    | {*GANG_TAGS, *TOPOLOGY_TAGS, WALLTIME_TAG, ARRAY_LIMIT_TAG}
    | {APPLICATIONS_TAG, CREATE_FORCE_TAG, CREATE_IF_MISSING_TAG, GUARANTEED_TAG, QUOTA_TAG}
)
"""Tags that affect the scheduler and contain no name: times, flags, quantities, attributes of nodes."""
_REFUSED: Final = "refused"


@final
class AnonymousLines:
    """Replaces the names in lines. Any number of threads may use it at once."""

    def __init__(self, pseudonyms: Pseudonyms | None = None) -> None:
        self._pseudonyms = pseudonyms or Pseudonyms()
        self._queue_tags: set[str] = set()
        """Tags whose values are queues, in lower case."""
        self._levels: set[str] = set()
        """Attributes of nodes that name their domains, whose names are compared."""
        self._lock = threading.Lock()
        names = self._pseudonyms
        self._by_key: Mapping[str, Callable[[str], str]] = {
            "nodeID": names.node,
            "nodeIds": names.node,
            "allocationKeys": names.key,
            "predicateClasses": lambda text: names.hashed("tag", text),
            "applicationID": lambda text: names.hashed("app", text),
            "allocationKey": names.key,
            "UUID": names.key,
            "frame": names.name,
            "takenOver": names.key,
            "loop": lambda _: "",
            "taskGroupName": lambda text: names.hashed("group", text),
            "queueName": names.name,
            "user": names.name,
            "groups": names.name,
            "message": lambda _: "",
            "reason": lambda _: "",
            "failed": lambda _: "",
            "answers": lambda _: _REFUSED,
            "wait": lambda _: _REFUSED,
            "config": lambda text: anonymous_configuration(text, names),
        }

    def hidden(self, line: Document) -> Document:
        """Return a line without names."""
        with self._lock:
            return {key: self._value(key, value) for key, value in line.items()}

    def _value(self, key: str, value: Json) -> Json:
        if isinstance(value, list):
            return [self._value(key, each) for each in value]
        if isinstance(value, dict):
            return self._object(key, value)
        if not isinstance(value, str):
            return value
        if key == "config":
            self._queue_tags |= tags_of_rules(value)
            self._levels |= levels_of(value)
        replace = self._by_key.get(key)
        return value if replace is None else replace(value)

    def _object(self, key: str, value: Document) -> Json:
        match key:
            case "attributes":
                return {name: self._attribute(name, str(text)) for name, text in value.items()}
            case "tags" | "allocationTags":
                return {name: self._tag(name, str(text)) for name, text in value.items()}
            case "groups":  # The resolved groups, by user.
                return {self._pseudonyms.name(user): self._value(key, found) for user, found in value.items()}
            case "refused":  # The nodes that a predicate refused, with the reasons.
                return {self._pseudonyms.node(node_id): _REFUSED for node_id in value}
            case "resources":  # Names of resources, which are all kept, and quantities.
                return value
            case "policies":
                return {name: self._policy(each) for name, each in value.items()}
            case "queues" if all(isinstance(path, str) for path in value.values()):  # Paths by application.
                hashed = self._pseudonyms.hashed
                return {hashed("app", name): self._pseudonyms.name(str(path)) for name, path in value.items()}
            case "quarantine":
                name = str(value["name"])
                is_node = value["kind"] == "node"
                hidden = self._pseudonyms.node(name) if is_node else self._pseudonyms.hashed("app", name)
                return {"kind": value["kind"], "name": hidden, "reason": ""}
            case _:
                return {name: self._value(name, each) for name, each in value.items()}

    def _policy(self, value: Json) -> Json:
        """Return a policy's answers of a turn, whose keys keep their order, or the policy in the header."""
        if isinstance(value, dict):
            return {**value, "class": "", "version": ""}
        return [self._answer(each) for each in value] if isinstance(value, list) else value

    def _answer(self, answer: Json) -> Json:
        if isinstance(answer, list):
            return [self._pseudonyms.ordered(part) if isinstance(part, str) else part for part in answer]
        if isinstance(answer, dict):
            return self._object("", answer)
        return _REFUSED if isinstance(answer, str) else answer

    def _attribute(self, name: str, text: str) -> str:
        if name in self._levels:
            return f"domain-{self._pseudonyms.ordered(text)}"
        return text if name in {NODE_PARTITION, CORDONED} else self._pseudonyms.hashed("attribute", text)

    def _tag(self, name: str, text: str) -> str:
        if name in _KEPT_TAGS or name.lower() in _KEPT_TAGS:
            return text
        if name in NAMES_TAGS:
            return ",".join(self._pseudonyms.hashed("app", each.strip()) for each in text.split(","))
        if name == REQUIRED_NODE_TAG:
            return self._pseudonyms.node(text)
        if name.lower() in self._queue_tags:
            return self._pseudonyms.name(text)
        return self._pseudonyms.hashed("tag", text)
