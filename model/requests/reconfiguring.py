"""A partition applies another configuration, as a whole or not at all.

A reload changes all partitions of a resource manager or none. If it fails, each partition that has changed
is restored. Only what a configuration decides is saved: usage, applications and nodes are not, so that
nothing is lost that happened in between.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from ..configuration.schema import PartitionConfig
from ..nodes.node_orders import node_order
from ..placement.placement import PlacementRules
from ..queues.application_entry import wake
from ..queues.queue import Queue
from ..queues.quota import quota_settings, quotas_changed, settle_all, take_shares
from ..queues.use_order import take_up_use
from ..resources.resource import Resource
from ..state.node_windows import keep_windows
from ..state.partition_state import PartitionState
from ..state.placing import unreserve
from ..values.events import ChangeDetail, ChangeType
from .submission_terms import runtime_settings, runtimes_changed

_SETTINGS: Final = (
    *("state", "is_leaf", "managed", "properties", "settings", "template", "submit_acl", "admin_acl"),
    *("guaranteed", "shares", "max_applications", "positions", "quota_preemption_due_ns"),
    *("decayed", "user_weights", "lend", "application_order", "queue_order"),
)
"""The settings of a queue in a configuration, without the maximum: that of the root comes from the nodes."""


@final
class Savepoint:
    """The configuration of one partition at one moment."""

    def __init__(self, state: PartitionState) -> None:
        self._config = state.config
        self._rules = state.rules
        self._node_rule = state.nodes.rule
        self._weights = state.nodes.weights
        self._limits = state.limits.saved()
        self._queues = [
            (queue, queue.maximum, {name: getattr(queue, name) for name in _SETTINGS}) for queue in state.tree
        ]
        self._users = [(queue, queue.entries.users) for queue in state.tree]

    def restore(self, state: PartitionState) -> None:
        """Restore the configuration; a queue that is new and in use stays until it is empty."""
        quotas = {queue.path: quota_of(queue) for queue in state.tree}
        runtimes = runtime_settings(state.tree)
        state.config = self._config
        state.rules = self._rules
        state.nodes.set_rule(self._node_rule, self._weights)
        known: set[Queue] = set()
        for queue, maximum, settings in self._queues:
            known.add(queue)
            for name, value in settings.items():
                setattr(queue, name, value)
            if queue.parent is not None:
                queue.maximum = maximum
        for queue in state.tree:
            queue.managed = queue.managed and queue in known
        state.tree.clean(keep=known)
        for queue in state.tree:
            take_up_use(queue)
        for queue, users in self._users:
            queue.entries.users = users
        state.tree.has_shares = take_shares(state.tree)  # Nodes may have come in between.
        settle_all(state.tree.root, state.tree)
        report_quotas(state, quotas)
        state.limits.restore(self._limits, self._config.root)
        state.reorder()
        keep_windows(state)
        runtimes_changed(state, runtimes)


def reconfigure(state: PartitionState, config: PartitionConfig) -> Savepoint:
    """Apply a checked configuration; return the one before. If any step fails, nothing has changed."""
    before = Savepoint(state)
    try:
        _apply(state, config)
    except BaseException:
        before.restore(state)
        raise
    return before


def _apply(state: PartitionState, config: PartitionConfig) -> None:
    state.rules = PlacementRules(config.placement_rules)
    state.config = config
    sorting = config.node_sort_policy
    state.nodes.set_rule(
        node_order(sorting.word, state.host.policies, config.topology), sorting.resource_weights
    )
    quotas = quota_settings(state.tree)
    runtimes = runtime_settings(state.tree)
    reported = {queue.path: quota_of(queue) for queue in state.tree}
    state.tree.load(config.root)
    report_quotas(state, reported)
    quotas_changed(state.tree, quotas, state.now_ns())
    state.limits.update(config.root)
    state.reorder()
    keep_windows(state)
    runtimes_changed(state, runtimes)
    state.timers.clean_later()
    for reserved in list(state.reserved.all()):
        if not reserved.entry.queue.is_leaf:  # No pass visits it: the node would be kept for ever.
            unreserve(state, reserved.entry, reserved.ask.allocation_key)


def change_capacity(state: PartitionState, before: Resource, after: Resource) -> None:
    """Count a node's capacity, and give queues their parts of the cluster as it is then."""
    state.change_capacity(before, after)
    if not state.tree.has_shares:
        return
    quotas = quota_settings(state.tree)
    reported = {queue.path: quota_of(queue) for queue in state.tree}
    take_shares(state.tree)
    report_quotas(state, reported)
    quotas_changed(state.tree, quotas, state.now_ns())
    for queue in state.tree:
        wake(queue)


class QueueQuota(NamedTuple):
    """The parts of a queue whose changes are reported."""

    maximum: Resource | None
    guaranteed: Resource | None
    is_leaf: bool


def quota_of(queue: Queue) -> QueueQuota:
    """Return the quota and the kind of a queue."""
    return QueueQuota(queue.maximum, queue.guaranteed, queue.is_leaf)


def report_quota(state: PartitionState, queue: Queue, before: QueueQuota) -> None:
    """Report what differs from before."""
    note = state.events.note
    if queue.is_leaf != before.is_leaf:
        text = f"leaf queue: {str(queue.is_leaf).lower()}"
        note(ChangeType.SET, ChangeDetail.QUEUE_TYPE, queue.path, message=text)
    if queue.maximum != before.maximum:
        note(ChangeType.SET, ChangeDetail.QUEUE_MAX, queue.path, resource=queue.maximum)
    if queue.guaranteed != before.guaranteed:
        note(ChangeType.SET, ChangeDetail.QUEUE_GUARANTEED, queue.path, resource=queue.guaranteed)


def report_quotas(state: PartitionState, before: dict[str, QueueQuota]) -> None:
    """Report what differs from before in all queues that were there."""
    for queue in state.tree:
        earlier = before.get(queue.path)
        if earlier is not None:
            report_quota(state, queue, earlier)
