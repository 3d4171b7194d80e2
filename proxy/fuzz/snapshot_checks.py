"""What snapshots of simulated clusters show: queues that hold back what is in them, or use too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cluster_record import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["applications_that_are_held_back", "check_maxima"]


def check_maxima(snapshot: Any) -> None:
    """Check that no queue uses more than its maximum, and no user or group; nodes may be gone since.

    Raises:
        RecordError: One does.
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
    """Return the applications in queues that hold them back for good, see `_closed`."""
    return {
        document["applicationID"]
        for partition, documents in snapshot["applications"].items()
        for document in documents
        if document["queueName"] in {*_closed(snapshot["queues"][partition])}
    }


def _closed(queue: Any, *, above: bool = False) -> Iterator[str]:
    """Return the queues that place nothing, or not all, though the configuration has no limits.

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
