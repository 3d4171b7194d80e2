"""The requests to a partition, as JSON of the corresponding messages of `si.v1`.

The JSON is written directly from the values of the model, since an intermediate message would take ten times
as long. `licorne.proxy.si.reading` reads it as equal values. Fields with default values are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from ....model.resources.resource import Resource
from ....model.state.host import ApplicationTimer, TimerAction
from ....model.values.allocation import ask_key_of, uuid_of
from ....model.values.documents import Document, Json, compact
from ....model.values.messages import (
    AllocationSubmission,
    ApplicationRemoval,
    ApplicationSubmission,
    AskRelease,
    AskTerms,
    LookUpFailure,
    NodeUpdate,
    Release,
    UuidRelease,
)

_DEFAULT: Final = "default"


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
                {"applicationID": gone.application_id, "partitionName": short_name(gone.partition, rm_id)}
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


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS: Final = frozenset(
    {"apikey", "credential", "credentials", "key", "passphrase", "passwd", "password", "secret", "token"}
) | {"keys", "passwords", "pwd", "secrets", "tokens"}
_KEYS_KEPT: Final = 10_000
"""The number of names whose answer is cached; requests use few names."""


@lru_cache(_KEYS_KEPT)
def is_secret(name: str) -> bool:
    """Return whether a value may be a secret: one word of its name is `password`, `token`, `key`, ..."""
    return any(word.lower() in _SECRET_WORDS for word in _WORD.findall(name))


def without_secrets(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts, with an empty text instead of each possible secret."""
    if not any(map(is_secret, texts)):
        return texts
    return {name: "" if is_secret(name) else text for name, text in texts.items()}
