"""The contents of a line of a recording: its request, answers of predicates, callbacks, and outcomes.

A request is JSON of the corresponding message of `si.v1`. The JSON is written directly from the values of
the model, since an intermediate message would take ten times as long. `licorne.proxy.si.reading` reads it as
equal values. Fields with default values are left out.

Predicates that answer at once have `answers`, in the order of the questions. `null` is an answer without a
value: the node is not refused, or no victim would help. A text is the reason why a node is refused, a number
is the index of the last victim.

Predicates that answer later have `taken`: the answers in the order in which the cycles of the turn took them,
each with the number of its question, and with that of the cycle unless it is the first one of the turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeGuard, final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from ....model.resources.resource import Resource
from ....model.state.host import ApplicationTimer, PartitionHost, TimerAction
from ....model.state.partition_state import PartitionState
from ....model.state.preemption_log import PreemptionRecord
from ....model.values.allocation import ask_key_of, uuid_of
from ....model.values.documents import Document, Json, compact
from ....model.values.messages import (
    AllocationSubmission,
    Announcement,
    ApplicationRemoval,
    ApplicationsAnswered,
    ApplicationSubmission,
    AskRelease,
    AskTerms,
    LookUpFailure,
    NoAnswer,
    NodesAnswer,
    NodeUpdate,
    PredicateAnswer,
    Release,
    UuidRelease,
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
_DEFAULT: Final = "default"
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS: Final = frozenset(
    {"apikey", "credential", "credentials", "key", "passphrase", "passwd", "password", "secret", "token"}
) | {"keys", "passwords", "pwd", "secrets", "tokens"}
_KEYS_KEPT: Final = 10_000
"""The number of names whose answer is cached; requests use few names."""


def short_name(partition: str, rm_id: str) -> str:
    """Return the name of a partition in a request: empty for the default one."""
    prefix = f"[{rm_id}]"
    name = partition.removeprefix(prefix)
    if name.startswith("[") or not name:
        return partition
    return "" if name == _DEFAULT else name


def node_request(rm_id: str, updates: Sequence[NodeUpdate]) -> Document:
    """Return the `NodeRequest` with these updates."""
    return {"rmID": rm_id, "nodes": [_node(update) for update in updates]}


def _node(update: NodeUpdate) -> Document:
    node: Document = {"nodeID": update.node_id}
    action = update.unknown_action or update.action.value
    if action:
        node["action"] = action if update.unknown_action else update.action.name
    if update.attributes:
        node["attributes"] = _texts(update.attributes)
    if update.resource is not None:
        node["schedulableResource"] = _resource(update.resource)
    if update.occupied is not None:
        node["occupiedResource"] = _resource(update.occupied)
    if update.existing:
        node["existingAllocations"] = [_existing(allocation) for allocation in update.existing]
    return node


def _existing(allocation: AllocationSubmission) -> Document:
    """Return an allocation in a node, with its names of the older generation and its partition."""
    key = allocation.allocation_key
    return {
        **_allocation(allocation, ""),
        "allocationKey": ask_key_of(key),
        "UUID": uuid_of(key),
        "partitionName": allocation.partition,
    }


def application_request(
    rm_id: str, submissions: Sequence[ApplicationSubmission], removals: Sequence[ApplicationRemoval]
) -> Document:
    """Return the `ApplicationRequest` with these applications, without resolved groups."""
    request: Document = {"rmID": rm_id}
    if submissions:
        request["new"] = [_application(submission, rm_id) for submission in submissions]
    if removals:
        request["remove"] = [
            compact(
                {
                    "applicationID": gone.application_id,
                    "partitionName": short_name(gone.partition, rm_id),
                    "outcome": "" if gone.outcome is None else gone.outcome.value,
                }
            )
            for gone in removals
        ]
    return request


def looked_up_groups(submissions: Sequence[ApplicationSubmission]) -> Document:
    """Return the resolved groups by user; for a failure an object with the reason under `failed`."""
    return {
        entry.user: {"failed": entry.looked_up.reason}
        if isinstance(entry.looked_up, LookUpFailure)
        else [*entry.looked_up]
        for entry in submissions
        if entry.looked_up is not None
    }


def _application(new: ApplicationSubmission, rm_id: str) -> Document:
    user = compact({"user": new.user, "groups": [*new.groups]})
    document = compact(
        {
            "applicationID": new.application_id,
            "queueName": new.queue_name,
            "partitionName": short_name(new.partition, rm_id),
            "ugi": user,
            "tags": _texts(new.tags),
            "executionTimeoutMilliSeconds": new.execution_timeout_ms,
            "gangSchedulingStyle": new.gang_scheduling_style,
        }
    )
    if new.placeholder_ask is not None:
        document["placeholderAsk"] = _resource(new.placeholder_ask)
    return document


def allocation_request(
    rm_id: str,
    submissions: Sequence[AllocationSubmission],
    releases: Sequence[Release],
    terms: Sequence[AskTerms],
) -> Document:
    """Return the `AllocationRequest`; the submissions begin with older asks, one for each of the terms."""
    request: Document = {"rmID": rm_id}
    if terms:
        request["asks"] = [
            _older_ask(*each, rm_id) for each in zip(submissions[: len(terms)], terms, strict=True)
        ]
        submissions = submissions[len(terms) :]
    if submissions:
        request["allocations"] = [_allocation(submission, rm_id) for submission in submissions]
    ended = [_release(release, rm_id) for release in releases if not isinstance(release, AskRelease)]
    withdrawn = [_release(release, rm_id) for release in releases if isinstance(release, AskRelease)]
    if releases:
        request["releases"] = compact(
            {"allocationsToRelease": [*ended], "allocationAsksToRelease": [*withdrawn]}
        )
    return request


def _allocation(ask: AllocationSubmission, rm_id: str) -> Document:
    document: Document = {"allocationKey": ask.allocation_key}
    if ask.application_id:
        document["applicationID"] = ask.application_id
    partition = short_name(ask.partition, rm_id)
    if partition:
        document["partitionName"] = partition
    document["resourcePerAlloc"] = _resource(ask.resource)
    if ask.node_id:
        document["nodeID"] = ask.node_id
    if ask.tags:
        document["allocationTags"] = _texts(ask.tags)
    _add_common(document, ask)
    if ask.originator:
        document["originator"] = True
    return document


def _older_ask(ask: AllocationSubmission, terms: AskTerms, rm_id: str) -> Document:
    document = compact(
        {
            "allocationKey": ask.allocation_key,
            "applicationID": ask.application_id,
            "partitionName": short_name(ask.partition, rm_id),
            "resourceAsk": _resource(ask.resource),
            "executionTimeoutMilliSeconds": terms.timeout_ms,
            "maxAllocations": terms.allocations,
            "tags": _texts(ask.tags),
            "Originator": ask.originator,
        }
    )
    _add_common(document, ask)
    return document


def _add_common(document: Document, ask: AllocationSubmission) -> None:
    """Add the fields with the same name in both generations."""
    if ask.priority:
        document["priority"] = ask.priority
    if ask.task_group_name:
        document["taskGroupName"] = ask.task_group_name
    if ask.placeholder:
        document["placeholder"] = True
    policy: Document = {}
    if ask.allow_preempt_self:
        policy["allowPreemptSelf"] = True
    if ask.allow_preempt_other:
        policy["allowPreemptOther"] = True
    if policy:
        document["preemptionPolicy"] = policy


def _release(release: Release, rm_id: str) -> Document:
    return compact(
        {
            "partitionName": short_name(release.partition, rm_id),
            "applicationID": release.application_id,
            "allocationKey": release.allocation_key,
            "UUID": release.uuid if isinstance(release, UuidRelease) else "",
            "terminationType": release.termination.name if release.termination.value else "",
            "message": release.message,
        }
    )


def timer_document(action: TimerAction) -> Json:
    """Return the body of a line `timer`: an object for an application, else the name of the action."""
    if isinstance(action, ApplicationTimer):
        return {
            "applicationID": action.application_id,
            "serial": action.serial,
            "kind": action.kind.value,
            "generation": action.generation,
        }
    return type(action).__name__


def _resource(resource: Resource) -> Document:
    """Return a resource; as in all JSON of protobuf, numbers of 64 bits are in quotes."""
    if not resource:
        return {}
    return {"resources": {name: {"value": str(quantity)} for name, quantity in resource.items()}}


def _texts(texts: Mapping[str, str]) -> Document:
    return {**without_secrets(texts)}


@lru_cache(_KEYS_KEPT)
def is_secret(name: str) -> bool:
    """Return whether a value may be a secret: one word of its name is `password`, `token`, `key`, ..."""
    return any(word.lower() in _SECRET_WORDS for word in _WORD.findall(name))


def without_secrets(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts, with an empty text instead of each possible secret."""
    if not any(map(is_secret, texts)):
        return texts
    return {name: "" if is_secret(name) else text for name, text in texts.items()}


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
