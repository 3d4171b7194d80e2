"""The documents of users and groups: UserUsage and GroupUsage."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.limits.usage_tree import UsageRow, UsageView
from ...model.values.documents import Document, Json, compact, quantities_shown

__all__ = ["group_document", "user_document"]


def user_document(user: UsageView) -> Document:
    """Return the UserUsage document."""
    groups: Document = dict(user.groups)
    queues = _queue_documents(user.queues)
    return {"userName": user.name, **({"groups": groups} if groups else {}), "queues": queues}


def group_document(group: UsageView) -> Document:
    """Return the GroupUsage document."""
    running: list[Json] = [*sorted(group.queues[0].applications)]
    queues = _queue_documents(group.queues)
    return {"groupName": group.name, **({"applications": running} if running else {}), "queues": queues}


def _queue_documents(rows: Sequence[UsageRow]) -> Document:
    """Return the document of the root, with those of all queues below it."""
    documents: dict[str, Document] = {}
    children: dict[str, list[Json]] = {}
    for row in rows:
        limit = row.limit
        document = compact(
            {
                "queuePath": row.queue_path,
                "resourceUsage": quantities_shown(dict(sorted(row.usage))),
                "runningApplications": [*sorted(row.applications)],
                "maxResources": quantities_shown(
                    limit.resources.as_dict() if limit and limit.resources else None
                ),
                "maxApplications": limit.max_applications if limit else 0,
            }
        )
        documents[row.queue_path] = document
        children.setdefault(row.queue_path.rpartition(".")[0], []).append(document)
    for path, document in documents.items():
        if path in children:
            document["children"] = children[path]
    return documents[rows[0].queue_path]
