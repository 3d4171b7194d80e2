"""The documents of users and groups: UserUsage and GroupUsage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Required

from typing_extensions import TypedDict

from ....model.limits.usage_tree import UsageRow, UsageView
from ....model.values.documents import quantities_shown
from .fields import Names, Quantities, without_empty


class UserUsageDocument(TypedDict, total=False):
    """What a user has and may have."""

    userName: Required[str]
    groups: dict[str, str]
    """The group that counts for each application."""
    queues: Required[UsageDocument]


class GroupUsageDocument(TypedDict, total=False):
    """What a group has and may have."""

    groupName: Required[str]
    applications: Names
    queues: Required[UsageDocument]


class UsageDocument(TypedDict, total=False):
    """What is used in a queue and below it, and the limits there."""

    queuePath: Required[str]
    resourceUsage: Quantities
    decayedMean: Quantities
    """What a user has used on average, in a leaf with a half-life that orders its users."""
    runningApplications: Names
    maxResources: Quantities
    maxApplications: int
    children: list[UsageDocument]


@without_empty
def user_document(user: UsageView) -> UserUsageDocument:
    """Return the UserUsage document."""
    return {"userName": user.name, "groups": dict(user.groups), "queues": _queue_documents(user.queues)}


@without_empty
def group_document(group: UsageView) -> GroupUsageDocument:
    """Return the GroupUsage document."""
    return {
        "groupName": group.name,
        "applications": sorted(group.queues[0].applications),
        "queues": _queue_documents(group.queues),
    }


def _queue_documents(rows: Sequence[UsageRow]) -> UsageDocument:
    """Return the document of the root, with those of all queues below it."""
    documents = {row.queue_path: _queue_document(row) for row in rows}
    for path, document in documents.items():
        above = documents.get(path.rpartition(".")[0])
        if above is not None:
            above.setdefault("children", []).append(document)
    return documents[rows[0].queue_path]


@without_empty
def _queue_document(row: UsageRow) -> UsageDocument:
    limit = row.limit
    return {
        "queuePath": row.queue_path,
        "resourceUsage": quantities_shown(dict(sorted(row.usage))),
        "decayedMean": quantities_shown(row.decayed_mean),
        "runningApplications": sorted(row.applications),
        "maxResources": quantities_shown(
            limit.max_resources.as_dict() if limit and limit.max_resources else None
        ),
        "maxApplications": limit.max_applications if limit else 0,
    }
