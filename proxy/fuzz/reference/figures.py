"""Comparisons of both schedulers: all figures about the cluster, and why each ask waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....model.explanation.values import AskStatus, Explanation
from ..manager.cluster_record import RecordError, Size
from .queues import (
    BlockedBy,
    ReferenceApplication,
    ReferenceAsk,
    ReferenceQueue,
    add_to,
    fits_within,
)
from .scheduler import ReferenceScheduler
from .windows import is_kept

_REFUSED: Final = ("PREDICATES", "nodes", "", "")
"""The reason of an ask that filters refuse on each node with room."""


def compare_figures(reference: ReferenceScheduler, snapshot: Any) -> None:
    """Compare all figures of a snapshot about nodes, queues, applications, users and groups.

    Raises:
        RecordError: A figure differs.
    """
    (root,) = snapshot["queues"].values()
    shown = {queue["queuename"]: queue for queue in _tree(root)}
    for queue in reference.root.tree():
        if queue.path in shown or _is_in_use(queue):
            _compare_queue(queue, shown.get(queue.path, {}))
    _compare_nodes(reference, snapshot)
    _compare_applications(reference, snapshot)
    for kind, name in (("user", "userName"), ("group", "groupName")):
        rows = [row for rows in snapshot[f"{kind}s"].values() for row in rows]
        _compare_holders(reference, kind, {row[name]: row["queues"] for row in rows})


def _is_in_use(queue: ReferenceQueue) -> bool:
    return any(each.applications for each in queue.tree()) or not queue.is_dynamic


def _compare_queue(queue: ReferenceQueue, document: Mapping[str, Any]) -> None:
    pending: Size = {}
    for ask in queue.asks():
        add_to(pending, ask.size, 1)
    running = sum(each.state == "Running" for below in queue.tree() for each in below.applications)
    name = queue.path
    _same(f"allocatedResource of {name}", queue.used, document.get("allocatedResource"))
    _same(f"pendingResource of {name}", pending, document.get("pendingResource"))
    _equal(f"runningApps of {name}", running, document.get("runningApps", 0))
    _equal(f"maxRunningApps of {name}", queue.applications_max, document.get("maxRunningApps", 0))
    if queue.parent is not None:
        _same(f"maxResource of {name}", queue.maximum or {}, document.get("maxResource"))
        _same(f"guaranteedResource of {name}", queue.guaranteed or {}, document.get("guaranteedResource"))


def _compare_nodes(reference: ReferenceScheduler, snapshot: Any) -> None:
    shown = {node["nodeID"]: node for nodes in snapshot["nodes"].values() for node in nodes}
    _equal("the nodes", {*reference.nodes}, {*shown})
    for name, node in reference.nodes.items():
        document = shown[name]
        occupied: Size = {}
        for size in node.foreign.values():
            add_to(occupied, size, 1)
        _same(f"capacity of {name}", node.size, document.get("capacity"))
        _same(f"allocated of {name}", node.used, document.get("allocated"))
        _same(f"occupied of {name}", occupied, document.get("occupied"))
        _same(f"available of {name}", node.available(), document.get("available"))
        _equal(f"{name} is drained", node.drained, not document["schedulable"])
        _equal(f"{name} is reserved", bool(node.reserved_for), document["isReserved"])
        here = {key for key, task in reference.running.items() if task.node is node}
        _equal(
            f"what runs on {name}",
            here,
            {each["allocationKey"] for each in document.get("allocations") or ()},
        )


def _compare_applications(reference: ReferenceScheduler, snapshot: Any) -> None:
    documents = [
        each for each in snapshot["applications"]["default"] if each["applicationState"] != "Rejected"
    ]
    shown = {each["applicationID"]: each["applicationState"] for each in documents}
    states = {name: each.state for name, each in reference.applications.items()}
    states |= {name: state for name, (state, _) in reference.ended.items()}
    _equal("the states of applications", states, shown)
    for document in documents:
        application = reference.applications.get(document["applicationID"])
        if application is not None:
            _compare_application(application, document)


def _compare_application(application: ReferenceApplication, document: Mapping[str, Any]) -> None:
    name = application.name
    pending: Size = {}
    for ask in application.asks.values():
        add_to(pending, ask.size, 1)
    _equal(f"the queue of {name}", application.queue.path, document["queueName"])
    _same(f"usedResource of {name}", application.used, document.get("usedResource"))
    _same(f"pendingResource of {name}", pending, document.get("pendingResource"))
    waiting = {each["allocationKey"]: _positive(each["resource"]) for each in document.get("requests") or ()}
    _equal(
        f"what {name} waits for", {ask.key: _positive(ask.size) for ask in application.asks.values()}, waiting
    )


def _compare_holders(reference: ReferenceScheduler, kind: str, shown: Mapping[str, Any]) -> None:
    """Compare the use of users, or groups, in each queue, and their numbers of running applications."""
    running = [each for each in reference.applications.values() if each.runs]
    names = {each.user if kind == "user" else each.group for each in running}
    for name in sorted(each for each in names if each):
        rows = {row["queuePath"]: row for row in _tree(shown.get(name, {"queuePath": "root"}))}
        for queue in reference.root.tree():
            row = rows.get(queue.path, {})
            own = {
                each.name
                for each in running
                if name == (each.user if kind == "user" else each.group) and queue in each.queue.path_up()
            }
            what = f"{kind} {name} in {queue.path}"
            _same(
                f"resourceUsage of {what}",
                reference.use_of_holder(queue, kind, name),
                row.get("resourceUsage"),
            )
            _equal(f"runningApplications of {what}", own, {*(row.get("runningApplications") or ())})
    idle = {name for name, row in shown.items() if name not in names and row.get("runningApplications")}
    _equal(f"{kind}s with nothing that runs", set(), idle)


def compare_reasons(
    reference: ReferenceScheduler, application: ReferenceApplication, found: Explanation
) -> None:
    """Compare why an application and each of its asks waits.

    Raises:
        RecordError: A reason differs, or is missing.
    """
    blocked = {(each.reason.name, each.kind.value, each.subject, each.queue_path) for each in found.blockers}
    expected = {*reference.start_blockers(application)}
    if reference.policies.hold(application, reference.now_ns):
        expected.add(BlockedBy("POLICY", "application", application.name))
    if application.waits_for:
        expected.add(BlockedBy(application.waits_for, "application", application.name))
    if application.backs_off_until_ns > reference.now_ns:
        expected.add(BlockedBy("BACKOFF", "application", application.name))
    if not any(reference.total().values()):
        expected.add(BlockedBy("NO_CAPACITY", "partition", found.partition))
    _equal(f"what blocks {application.name}", {*map(_row, expected)}, blocked)
    waiting = {ask.allocation_key: ask for ask in found.asks if ask.status is AskStatus.WAITING}
    keys = [ask.key for ask in application.in_order()]
    _equal(f"the order of the asks of {application.name}", keys, [*waiting])
    for key, explained in waiting.items():
        ask = application.asks[key]
        reasons = {
            (each.reason.name, each.kind.value, each.subject, each.queue_path) for each in explained.blockers
        }
        ours = {*map(_row, _reasons(reference, application, key))}
        if expected or ours != {_REFUSED}:  # Filters are not asked then; an earlier refusal may be shown.
            ours.discard(_REFUSED)
            reasons.discard(_REFUSED)
        _equal(f"what blocks {key}", ours, reasons)
        _equal(f"the size of {key}", _positive(ask.size), _positive(explained.resource.as_dict()))


def _reasons(reference: ReferenceScheduler, application: ReferenceApplication, key: str) -> list[BlockedBy]:
    ask = application.asks[key]
    if application.waits_for_placeholder(ask):
        return [BlockedBy("WAITS_FOR_PLACEHOLDER", "task group", ask.group)]
    reasons = [*reference.limit_blockers(application, ask.size, ask.key)]
    quotas = [*reference.quota_blockers(application.queue, ask.size, ask.key)]
    if ask.required_node:
        found = _reasons_of_daemon(reference, ask, quotas)
        node = reference.nodes.get(ask.required_node)
        if found == quotas and node is not None and is_kept(reference, application, ask, node):
            quotas = [blocked for blocked in quotas if blocked.path != "root"]
            found = [*quotas, BlockedBy("WINDOW", "node", node.name)]
        return [*reasons, *found]
    reasons += quotas
    own, nodes = reference.reserved.get(key), reference.nodes.values()
    with_room = [
        node for node in nodes if node.has_room_for(ask.size) and (node is own or not node.reserved_for)
    ]
    kept = [node for node in with_room if is_kept(reference, application, ask, node)]
    if reference.node_for(application, ask) is None and (own not in with_room or own in kept):
        why = "WINDOW" if kept else "PREDICATES"
        reasons.append(BlockedBy(why if with_room else "NO_NODE_FITS", "nodes", ""))
    return reasons


def _reasons_of_daemon(
    reference: ReferenceScheduler, ask: ReferenceAsk, quotas: list[BlockedBy]
) -> list[BlockedBy]:
    """Return why an ask for one node waits; the sum of all nodes is not a reason then."""
    node = reference.nodes.get(ask.required_node)
    below = [blocked for blocked in quotas if blocked.path != "root"]
    if node is None:
        return [*below, BlockedBy("REQUIRED_NODE_UNKNOWN", "node", ask.required_node)]
    held = bool(node.reserved_for) and ask.key not in node.reserved_for
    if held or not fits_within(node.size, ask.size) or not fits_within(node.available(), ask.size):
        return [*below, BlockedBy("REQUIRED_NODE_FULL", "node", ask.required_node)]
    return quotas


def _row(blocked: BlockedBy) -> tuple[str, str, str, str]:
    """Return a reason in the form of an explanation: only limits of users name a queue too."""
    path = blocked.path if blocked.reason.startswith("USER") else ""
    return (*blocked[:3], path)


def _tree(document: Any) -> list[Any]:
    return [document, *(each for child in document.get("children") or () for each in _tree(child))]


def _positive(size: Mapping[str, int]) -> Size:
    return {name: value for name, value in size.items() if value}


def _same(what: str, ours: Size, shown: Mapping[str, int] | None) -> None:
    _equal(what, _positive(ours), _positive(shown or {}))


def _equal(what: str, ours: object, shown: object) -> None:
    if ours != shown:
        raise RecordError(f"{what}: the scheduler shows {shown}, and the second one {ours}")
