"""More planted faults, only of the core: sizes that change, limits, placement, timers, promises, choices."""

from __future__ import annotations

from typing import Final

from support.fuzz.fault import Fault

CORE_FAULTS: Final = (
    Fault(
        "what a resized allocation gives back stays with its user",
        "model/requests/allocations.py",
        "    group = state.limits.increase(path, entry.application_id, entry.user, after)\n"
        "    state.events.note_usage",
        "    group = state.limits.increase(path, entry.application_id, entry.user, before)\n"
        "    state.events.note_usage",
    ),
    Fault(
        "the reservation of a resized ask keeps the old size",
        "model/requests/allocations.py",
        "        state.reserved.add(reserved._replace(ask=resized))",
        "        state.reserved.add(reserved)",
    ),
    Fault(
        "a foreign allocation that moves stays on its old node",
        "model/requests/allocations.py",
        "    if before is not None and before.node_id != submission.node_id:\n"
        "        remove_foreign(state, key)\n",
        "",
    ),
    Fault(
        "the first group of the user decides, and not the first of the file",
        "model/limits/limits.py",
        "        for name in self.groups:\n            if name in groups:",
        "        for name in groups:\n            if name in self.groups:",
    ),
    Fault(
        "the limit of all users holds for those with their own too",
        "model/limits/limits.py",
        "        if own is not None:\n            return own, False\n        wildcard",
        "        if own is not None and WILDCARD not in queue.users:\n"
        "            return own, False\n        wildcard",
    ),
    Fault(
        "the limits of groups stay as they were when they are loaded anew",
        "model/limits/user_limits.py",
        "        for tree in self._groups.values():\n"
        "            tree.replace_limits(limits)\n        report_limits",
        "        report_limits",
    ),
    Fault(
        "an access list above the queue counts for administrators alone",
        "model/queues/tree.py",
        "            if level.submit_acl.allows(name, groups) or level.admin_acl.allows(name, groups):",
        "            if (level is queue and level.submit_acl.allows(name, groups)) "
        "or level.admin_acl.allows(name, groups):",
    ),
    Fault(
        "a filter looks at the first group of the user alone",
        "model/placement/rules.py",
        "any(self.groups.match(group) for group in user.groups)",
        "any(self.groups.match(group) for group in user.groups[:1])",
    ),
    Fault(
        "a quantity of zero needs a type that the node has",
        "model/resources/resource.py",
        "        if quantity > 0 and (name not in have or quantity > have[name]):",
        "        if name not in have or quantity > have[name]:",
    ),
    Fault(
        "an application that has ended is forgotten after a day",
        "model/applications/life.py",
        "TERMINATED_RETENTION_NS: Final = 3 * 24 * 3600 * 1_000_000_000",
        "TERMINATED_RETENTION_NS: Final = 24 * 3600 * 1_000_000_000",
    ),
    Fault(
        "the default time of placeholders is in seconds",
        "model/applications/gang.py",
        "DEFAULT_PLACEHOLDER_TIMEOUT_MS: Final = 15 * 60 * 1000",
        "DEFAULT_PLACEHOLDER_TIMEOUT_MS: Final = 15 * 60",
    ),
    Fault(
        "the node with the most room is reserved",
        "model/nodes/order.py",
        "        ranking.reverse()  # The best is last, where it is cheap to remove.\n",
        "",
    ),
    Fault(
        "the weights of node sorting are added to the default ones",
        "model/nodes/order.py",
        "        self.weights = dict(weights) or dict(DEFAULT_WEIGHTS)",
        "        self.weights = {**DEFAULT_WEIGHTS, **weights}",
    ),
    Fault(
        "a node that shrinks keeps its place",
        "model/requests/nodes.py",
        "    entry.capacity = entry.node.facts().capacity\n    state.nodes.give(entry, available)",
        "    entry.capacity = entry.node.facts().capacity\n    state.nodes.give_unscored(entry, available)",
    ),
    Fault(
        "a job starts on a node where it delays a promise",
        "model/planning/planned_jobs.py",
        "            return Standing(may_start=True, without=frozenset(delaying))",
        "            return Standing(may_start=True)",
    ),
    Fault(
        "a job that ends when the promised one starts is too late",
        "model/planning/profile.py",
        "            while index < count and (end_ns is None or times[index] < end_ns):",
        "            while index < count and (end_ns is None or times[index] <= end_ns):",
    ),
    Fault(
        "a member takes the place of a smaller placeholder",
        "model/applications/gang.py",
        "            lacks = has_negative(subtract(placeholder.ask.resource, record.ask.resource))",
        "            lacks = has_negative(subtract(record.ask.resource, placeholder.ask.resource))",
    ),
    Fault(
        "an application with placeholders takes no place among those that run",
        "model/queues/queue.py",
        "        return self.running + len(self.accepted_allocating) + 1 <= limit",
        "        return self.running + 1 <= limit",
    ),
    Fault(
        "an application that has ended runs on for its user in the queues above",
        "model/limits/usage_tree.py",
        "        if remove_application:\n            for level in node.chain:\n"
        "                level.applications.pop(application_id, None)",
        "        if remove_application:\n            for level in node.chain[-1:]:\n"
        "                level.applications.pop(application_id, None)",
    ),
    Fault(
        "what has the same priority does not end for an ask that needs the node",
        "model/preemption/required_node.py",
        "    return victim.allocation.ask.priority <= ask.priority and",
        "    return victim.allocation.ask.priority < ask.priority and",
    ),
    Fault(
        "a template gives no maximum number of applications",
        "model/queues/queue.py",
        "            max_applications=config.max_applications,",
        "            max_applications=0,",
    ),
    Fault(
        "with any application that has placeholders others may start",
        "model/queues/queue.py",
        "        if not limit or application_id in self.accepted_allocating:\n            return True",
        "        if not limit or self.accepted_allocating:\n            return True",
    ),
)
"""These faults were chosen before any result was known."""
