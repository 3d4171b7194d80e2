"""The contents of a line besides its request: answers of predicates, callbacks, and outcomes of a turn.

Predicates that answer at once have `answers`, in the order of the questions. `null` is an answer without a
value: the node is not refused, or no victim would help. A text is the reason why a node is refused, a number
is the index of the last victim.

Predicates that answer later have `taken`: the answers in the order in which the cycles of the turn took them,
each with the number of its question, and with that of the cycle unless it is the first one of the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeGuard, final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from ....model.state.host import PartitionHost
from ....model.state.partition_state import PartitionState
from ....model.state.preemption_log import PreemptionRecord
from ....model.values.documents import Document, Json
from ....model.values.messages import (
    Announcement,
    ApplicationsAnswered,
    NoAnswer,
    NodesAnswer,
    PredicateAnswer,
    VictimsAnswer,
)
from ....model.views.rows import preemption_document
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ...si.writing import dispatch

_TAKEN_KEYS: Final = frozenset({"cycle", "question", "refused", "victims"})
CALLBACK_KEYS: Final = {
    "nodeResponse": "update_node",
    "applicationResponse": "update_application",
    "allocationResponse": "update_allocation",
    "schedulingState": "update_container_scheduling_state",
}
"""The callbacks by the names of their messages in a transcript."""


@dataclass(frozen=True, slots=True)
class AskedLater:
    """How a partition asks predicates that answer later; see `PartitionHost`."""

    timeout_ns: int
    may_overtake: bool


class TakenAnswer(NamedTuple):
    """An answer that a cycle took."""

    cycle: int
    """The cycle of the turn, from 0."""
    answer: PredicateAnswer


def written_answer(answer: str | int | None) -> Json:
    """Return an answer as JSON."""
    return answer


def read_answer(answer: Json) -> str | int | None:
    """Return the answer in a line.

    Raises:
        ValueError: The value is not an answer.
    """
    if answer is None or (isinstance(answer, str | int) and not isinstance(answer, bool)):
        return answer
    raise ValueError(f"no answer of a predicate: {answer!r}")


def written_taken(cycle: int, answer: PredicateAnswer) -> Document:
    """Return an answer that a cycle took as JSON."""
    document: Document = {"cycle": cycle} if cycle else {}
    document["question"] = answer.number
    if isinstance(answer, NodesAnswer):
        document["refused"] = {**answer.refused}
    elif isinstance(answer, VictimsAnswer):
        document["victims"] = answer.index
    return document


def read_taken(document: Json) -> TakenAnswer:
    """Return the answer that a cycle took.

    Raises:
        ValueError: The value is not an answer.
    """
    wrong = ValueError(f"no answer that a cycle took: {document!r:.200}")
    if not isinstance(document, dict) or not document.keys() <= _TAKEN_KEYS:
        raise wrong
    cycle, number = document.get("cycle", 0), document.get("question")
    if not _is_count(cycle) or not _is_count(number):
        raise wrong
    match document:
        case {"refused": _, "victims": _}:
            raise wrong
        case {"refused": dict() as refused}:
            reasons = {node_id: reason for node_id, reason in refused.items() if isinstance(reason, str)}
            if len(reasons) < len(refused):
                raise wrong
            return TakenAnswer(cycle, NodesAnswer(number, reasons))
        case {"victims": index} if index is None or _is_count(index):
            return TakenAnswer(cycle, VictimsAnswer(number, index))
        case {"refused": _} | {"victims": _}:
            raise wrong
        case _:
            return TakenAnswer(cycle, NoAnswer(number))


def how_asked(host: PartitionHost) -> AskedLater | bool:
    """Return how a partition asks predicates; for those that answer at once, whether it asks any."""
    if host.question_channel is not None:
        return AskedLater(host.answer_timeout_ns, host.open_questions_max() > 1)
    return host.predicates is not None


def written_how_asked(asked: AskedLater | bool) -> Json:  # noqa: FBT001 - one of its values
    """Return how a partition asks predicates as JSON."""
    if isinstance(asked, AskedLater):
        return {"timeout": asked.timeout_ns, "overtaking": asked.may_overtake}
    return asked


def read_how_asked(asked: Json) -> AskedLater | bool:
    """Return how a partition asks predicates.

    Raises:
        ValueError: The value cannot be read.
    """
    match asked:
        case bool():
            return asked
        case {"timeout": timeout_ns, "overtaking": bool() as may_overtake, **more}:
            if _is_count(timeout_ns) and not more:
                return AskedLater(timeout_ns, may_overtake)
    raise ValueError(f"neither true nor false, nor a `timeout` and `overtaking`: {asked!r:.200}")


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


class CallbackWriter(ResourceManager):
    """A resource manager that passes its callbacks to a function, as JSON by the name of the message."""

    def __init__(self, write: Callable[[str, Json], None]) -> None:
        self._write = write

    def update_node(self, response: si.NodeResponse) -> None:
        """Write answers about nodes."""
        self._write("nodeResponse", message_document(response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Write answers about applications."""
        self._write("applicationResponse", message_document(response))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Write placements, releases and rejections."""
        self._write("allocationResponse", message_document(response))

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Write the scheduling state of a waiting ask."""
        self._write("schedulingState", message_document(request))


def message_document(message: Message) -> Document:
    """Return the JSON of a message, without the codes of rejections, as in outcomes of the recorded core."""
    body: Document = MessageToDict(message, preserving_proto_field_name=True)
    for entries in body.values():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                entry.pop("code", None)
    return body


def callback_document(announcement: Announcement, *, older: bool) -> Document:
    """Return the callback of an announcement; empty for an answer without entries, which is not sent."""
    document: Document = {}
    dispatch(announcement, CallbackWriter(document.__setitem__), older=older)
    return document


@final
class Outcomes:
    """The outcomes of one turn of a partition, in the order in which they happened."""

    def __init__(self) -> None:
        self.state: PartitionState | None = None
        """The state, `None` while the partition is being made: nothing can be preempted then."""
        self._happened: list[Announcement | PreemptionRecord] = []
        self._known = 0
        """The number of preemptions that have been read."""

    def note(self, announcement: Announcement) -> None:
        """Note a message to the resource manager, after the preemptions that were recorded before it."""
        self._note_preemptions()
        self._happened.append(announcement)

    def take(self, *, older: bool) -> Iterator[Document]:
        """Yield the documents of the turn that ends, and forget it; `older` is the generation of answers."""
        self._note_preemptions()
        happened, self._happened = self._happened, []
        for each in happened:
            if isinstance(each, PreemptionRecord):
                yield {"preemption": preemption_document(each)}
                continue
            document = callback_document(each, older=older)
            if isinstance(each, ApplicationsAnswered) and self.state is not None:
                entries = map(self.state.entries.get, each.accepted)
                queues = {entry.application_id: entry.queue.path for entry in entries if entry is not None}
                document["queues"] = {**queues}
            if document:  # An answer without entries is not sent.
                yield document

    def _note_preemptions(self) -> None:
        if self.state is not None and self.state.preemptions.added > self._known:
            self._happened += self.state.preemptions.since(self._known)
            self._known = self.state.preemptions.added
