"""The messages to the second scheduler, and their effects: states, timers, and use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ..manager.cluster_record import Size
from .asked import AskedPolicies
from .links import ReferenceLinks
from .node_places import NodePlaces
from .queues import (
    ReferenceApplication,
    ReferenceAsk,
    ReferenceNode,
    ReferenceQueue,
    RunningTask,
    add_to,
    fits_within,
)
from .windows import ReferenceWindow

_SECOND_NS: Final = 1_000_000_000
_COMPLETING_NS: Final = 30 * _SECOND_NS
_PLACEHOLDERS_NS: Final = 15 * 60 * _SECOND_NS
_KEPT_NS: Final = 3 * 24 * 3600 * _SECOND_NS
"""How long an application that has ended is shown."""


class ReferenceLife:
    """The cluster as the second scheduler sees it.

    Args:
        partition: The document of a partition's configuration.
        policies: The policies under test.
    """

    def __init__(self, partition: dict[str, Any], policies: AskedPolicies) -> None:
        self.policies = policies
        self.root = ReferenceQueue(partition["queues"][0], None)
        self.nodes: dict[str, ReferenceNode] = {}
        self.applications: dict[str, ReferenceApplication] = {}
        self.running: dict[str, RunningTask] = {}
        self.reserved: dict[str, ReferenceNode] = {}
        """The nodes of asks that have reserved one, in the order of reservation."""
        self.swaps: dict[str, tuple[ReferenceApplication, ReferenceAsk]] = {}
        """By placeholder, the member that replaces it when the RM has confirmed its end."""
        self.to_end: list[tuple[str, str]] = []
        """Other ends that the RM was asked for, `cancelled` or `preempted`; the caller removes them."""
        self.claims: dict[str, RunningTask] = {}
        """The victims by the key of the ask that needs its node: the room is held for the ask."""
        self.ended: dict[str, tuple[str, int]] = {}
        """Applications that have ended, with their states, and the time until which they are shown."""
        self.now_ns = 0
        self.windows: list[ReferenceWindow] = []
        self.links = ReferenceLinks()
        self.node_places = NodePlaces(self.nodes, policies)
        self._arrivals = 0
        self._configure_nodes(partition)

    def configure(self, partition: dict[str, Any]) -> None:
        """Apply another configuration with queues of the same names."""
        maxima = {queue: queue.maximum for queue in self.root.tree()}
        self.root.configure(partition["queues"][0])
        for queue, before in maxima.items():
            queue.watch_quota(before, self.now_ns)
        self._configure_nodes(partition)
        for application in self.applications.values():
            application.fixed_key = None

    def _configure_nodes(self, partition: dict[str, Any]) -> None:
        self.policies.configure(partition)
        self.windows = [ReferenceWindow.of(each) for each in partition.get("windows", ())]
        self.node_places.configure(partition)

    def total(self) -> Size:
        """Return the sum of all nodes."""
        total: Size = {}
        for node in self.nodes.values():
            add_to(total, node.size, 1)
        return total

    # --------------------------------------------------------------------------------------- nodes

    def add_node(self, name: str, size: Size, attributes: Mapping[str, str] | None = None) -> None:
        """Add a node."""
        node = self.nodes[name] = ReferenceNode(name, dict(size), attributes=attributes or {})
        self.node_places.find(node)

    def resize_node(self, name: str, size: Size) -> None:
        """Apply another size of a node."""
        node = self.nodes[name]
        if {kind: value for kind, value in node.size.items() if value} != size:
            node.size = dict(size)
            if not node.drained:
                self.node_places.find(node)

    def drain_node(self, name: str, *, drained: bool) -> None:
        """Drain or undrain a node; while it is drained it keeps its place."""
        node = self.nodes[name]
        node.drained = drained
        if not drained:
            self.node_places.find(node)

    def lose_node(self, name: str) -> list[str]:
        """Forget a node with all tasks on it; return the tasks that have ended."""
        was_broken = self.node_places.is_broken(self.nodes[name])
        node = self.nodes.pop(name)
        self.node_places.move_rack(node, was_broken)
        for key in [key for key, reserved in self.reserved.items() if reserved is node]:
            self.unreserve(key)
        keys = [key for key, task in self.running.items() if task.node is node]
        for key in keys:
            self.end(key)
        return keys

    def put_foreign(self, key: str, node: str, size: Size) -> None:
        """Apply others' use of a node, its new size, or its new node; nodes keep their places."""
        self.end_foreign(key)
        self.nodes[node].foreign[key] = dict(size)

    def end_foreign(self, key: str) -> None:
        """Forget a task of others."""
        for node in self.nodes.values():
            node.foreign.pop(key, None)

    # -------------------------------------------------------------------------- applications and asks

    def submit(self, application: ReferenceApplication) -> None:
        """Add an application."""
        application.arrival = self.now_ns
        self.applications[application.name] = application
        application.queue.applications.append(application)
        application.group = application.queue.group_for(application.groups)
        self.links.come(application.name, application.tags)
        self.links.tell(self.applications)

    def ask(self, name: str, ask: ReferenceAsk) -> None:
        """Add an ask of an application."""
        self._arrivals += 1
        ask.arrival, ask.since_ns = self._arrivals, ask.since_ns or self.now_ns
        application = self.applications[name]
        application.arrival = min(application.arrival, ask.since_ns)
        application.asks[ask.key] = ask
        if ask.placeholder:
            application.to_come[ask.group] = application.to_come.get(ask.group, 0) + 1
        self._enter(application, {"New": "Accepted", "Completing": "Running"}.get(application.state, ""))

    def resize(self, key: str, size: Size) -> None:
        """Apply another size of a waiting or running task; a node keeps its place."""
        task = self.running.get(key)
        if task is None:
            self.application_asking(key).asks[key].size = dict(size)
            return
        place = task.node.place
        self._count(task, -1)
        task.ask.size = dict(size)
        self._count(task, 1)
        task.node.place = place

    def withdraw(self, key: str) -> None:
        """Forget a waiting ask."""
        application = self.application_asking(key)
        del application.asks[key]
        self.unreserve(key)
        self.claims.pop(key, None)
        if not application.placeholders:
            self._complete_if_idle(application)

    def remove(self, name: str, outcome: str = "") -> list[str]:
        """Forget an application with all its tasks, and note how it ended; return the tasks that have."""
        application = self.applications[name]
        keys = [key for key, task in self.running.items() if task.application is application]
        for key in [*application.asks]:
            self.unreserve(key)
            self.claims.pop(key, None)
        application.asks.clear()
        for key in keys:
            self.swaps.pop(key, None)
            self._take_off(key)
        has_failed = application.state in ("Failing", "Failed")
        self._forget(application, outcome or ("failed" if has_failed else "ok"))
        return keys

    def application_asking(self, key: str) -> ReferenceApplication:
        """Return the application of a waiting ask."""
        return next(each for each in self.applications.values() if key in each.asks)

    def reserve(self, application: ReferenceApplication, key: str, node: ReferenceNode) -> None:
        """Reserve a node for an ask."""
        if not application.has_reserved:
            self._arrivals += 1
            application.reserved_since = self._arrivals
        node.reserved_for.append(key)
        self.reserved[key] = node
        application.has_reserved = True

    def unreserve(self, key: str) -> None:
        """Forget the node that is reserved for an ask, if any."""
        node = self.reserved.pop(key, None)
        if node is not None:
            node.reserved_for.remove(key)
            for application in self.applications.values():
                application.has_reserved = any(other in self.reserved for other in application.asks)

    # ------------------------------------------------------------------------------ starts and ends

    def place(self, key: str, node_name: str) -> None:
        """Start an ask on a node."""
        application = self.application_asking(key)
        ask = application.asks.pop(key)
        self.unreserve(key)
        self.claims.pop(key, None)
        task = RunningTask(application, self.nodes[node_name], ask, self.now_ns)
        self.running[key] = task
        self._count(task, 1)
        application.runs = True
        if not ask.placeholder:
            if application.state in ("Accepted", "Completing"):
                self._enter(application, "Running")
            return
        application.placeholders[key] = task
        if application.state == "Accepted" and application.placeholders_due_ns is None:
            application.placeholders_due_ns = self.now_ns + (application.timeout_ns or _PLACEHOLDERS_NS)
        together: Size = {}
        for each in application.placeholders.values():
            add_to(together, each.ask.size, 1)
        complete = any(application.announced.values()) and fits_within(together, application.announced)
        if complete and application.state in ("Accepted", "Completing"):
            self._enter(application, "Running")

    def replace(self, placeholder: str) -> str:
        """Start the member that replaces an ended placeholder; return its key."""
        application, ask = self.swaps.pop(placeholder)
        node = self._take_off(placeholder).node
        application.to_come[ask.group] -= 1
        if not application.placeholders:  # For a moment none of it is left.
            self._complete_if_idle(application)
        is_first = not any(application.used.values())
        task = self.running[ask.key] = RunningTask(application, node, ask, self.now_ns)
        self._count(task, 1)
        application.runs = True
        if application.state == "Completing" or (application.state == "Accepted" and not is_first):
            self._enter(application, "Running")
        if not application.placeholders:
            application.placeholders_due_ns = None
        return ask.key

    def end(self, key: str) -> None:
        """Forget a running task, and end its application if it was the last one.

        A member that was to replace a placeholder waits again.
        """
        task = self._take_off(key)
        application = task.application
        if key in self.swaps:
            _, ask = self.swaps.pop(key)
            application.asks[ask.key] = ask
        if not task.ask.placeholder:
            if application.state == "Failing":
                self._fail_if_empty(application)
            else:
                self._complete_if_idle(application)
            return
        application.to_come[task.ask.group] -= 1
        if application.placeholders:
            return
        application.placeholders_due_ns = None
        if application.state == "Failing":
            self._fail_if_empty(application)
        elif application.state == "Resuming":
            self._enter(application, "Accepted")
        elif application.state == "Completing" and application.due_ns is None:
            self._enter(application, "Running" if application.asks else "Completed")
        else:
            self._complete_if_idle(application)

    def _fail_if_empty(self, application: ReferenceApplication) -> None:
        if not any(task.application is application for task in self.running.values()):
            self._enter(application, "Failed")

    def _take_off(self, key: str) -> RunningTask:
        task = self.running.pop(key)
        task.application.placeholders.pop(key, None)
        self._count(task, -1)
        return task

    def _complete_if_idle(self, application: ReferenceApplication) -> None:
        if (
            not application.asks
            and not any(application.used.values())
            and application.state in ("Accepted", "Running")
        ):
            self._enter(application, "Completing")

    def _count(self, task: RunningTask, sign: int) -> None:
        application, node, size = task.application, task.node, task.ask.size
        if not task.ask.placeholder:
            add_to(application.used, size, sign)
        for used in (node.used, *(queue.used for queue in application.queue.path_up())):
            add_to(used, size, sign)
        if not node.drained:
            self.node_places.find(node)
        for queue in application.queue.path_up():
            queue.used_from.append((self.now_ns, queue.counted()))
        history = application.queue.used_by.setdefault(application.user, [(0, {})])
        now_used = dict(history[-1][1])
        add_to(now_used, size, sign)
        history.append((self.now_ns, now_used))

    # ------------------------------------------------------------------------------ states and timers

    def _enter(self, application: ReferenceApplication, state: str) -> None:
        if not state:
            return
        application.state = state
        application.due_ns = None
        if state == "Completing":
            application.due_ns = self.now_ns + _COMPLETING_NS
            application.runs = application.runs and bool(application.placeholders)
        elif state in ("Completed", "Failed"):
            self.ended[application.name] = (state, self.now_ns + _KEPT_NS)
            self._forget(application, "ok" if state == "Completed" else "failed")

    def _forget(self, application: ReferenceApplication, outcome: str) -> None:
        del self.applications[application.name]
        application.queue.applications.remove(application)
        self.links.end(application.name, outcome)
        self.links.tell(self.applications)

    def advance(self, to_ns: int) -> list[tuple[str, str]]:
        """Let time pass, and carry out due events; return the ends that the RM is asked for, with reasons."""
        asked: list[tuple[str, str]] = []
        while True:
            dues = [due for due in self._dues() if due[0] <= to_ns]
            if not dues:
                break
            self.now_ns, _, act = min(dues, key=lambda due: due[:2])
            asked += act()
        self.now_ns = to_ns
        for name in [name for name, (_, until_ns) in self.ended.items() if until_ns <= to_ns]:
            del self.ended[name]
        return asked

    def _dues(self) -> Iterator[tuple[int, str, Callable[[], list[tuple[str, str]]]]]:
        """Return the times of due events, with a name, and their effects."""
        for application in self.applications.values():
            if application.due_ns is not None:
                yield application.due_ns, application.name, partial(self._state_due, application)
            if application.placeholders_due_ns is not None:
                due_ns = application.placeholders_due_ns
                yield due_ns, application.name, partial(self._placeholders_due, application)
        for queue in self.root.tree():
            if queue.quota_due_ns is not None:
                yield queue.quota_due_ns, queue.path, partial(self._quota_due, queue)
        for task in self.running.values():
            queue, walltime_ns = task.application.queue, task.ask.walltime_ns
            if queue.ends_overruns() and walltime_ns is not None and not task.is_leaving:
                yield task.begun_ns + walltime_ns, task.ask.key, partial(self._overrun, task)

    @staticmethod
    def _overrun(task: RunningTask) -> list[tuple[str, str]]:
        task.is_leaving = True
        return [(task.ask.key, "timeout")]

    def _quota_due(self, leaf: ReferenceQueue) -> list[tuple[str, str]]:
        """Return the victims in a leaf above its maximum: in order, tasks that free no more than needed."""
        leaf.quota_due_ns = None
        left = leaf.over_maximum()
        asked: list[tuple[str, str]] = []
        there = [task for task in self.running.values() if task.application.queue is leaf]
        for task in sorted(there, key=RunningTask.place_as_victim):
            size = task.ask.size
            helps = any(value > 0 and size.get(name, 0) > 0 for name, value in left.items())
            if helps and fits_within(left, size, unlimited=True):
                add_to(left, {name: size.get(name, 0) for name in left}, -1)
                asked.append((task.ask.key, "preempted"))
        return asked

    def _state_due(self, application: ReferenceApplication) -> list[tuple[str, str]]:
        application.due_ns = None
        if application.placeholders:
            return self._leaving(application)
        self._enter(application, "Running" if application.asks else "Completed")
        return []

    def _placeholders_due(self, application: ReferenceApplication) -> list[tuple[str, str]]:
        application.placeholders_due_ns = None
        if application.state in ("Running", "Completing"):
            return self._leaving(application)
        tasks = [task for task in self.running.values() if task.application is application]
        asked = [task.ask.key for task in tasks if not task.is_leaving]
        for key in asked:
            self.running[key].is_leaving = True
        waiting = [*application.asks.values()]
        application.asks.clear()
        if application.hard:
            swaps = [key for key, (owner, _) in self.swaps.items() if owner is application]
            waiting += [self.swaps.pop(key)[1] for key in swaps]
        for ask in waiting:
            self.unreserve(ask.key)
            if ask.placeholder:
                application.to_come[ask.group] -= 1
        self._enter(application, "Failing" if application.hard else "Resuming")
        return [(key, "timeout") for key in (*asked, *(ask.key for ask in waiting))]

    def _leaving(self, application: ReferenceApplication) -> list[tuple[str, str]]:
        """Record that the placeholders of an application are to end; return those that were not already."""
        asked = [key for key, task in application.placeholders.items() if not task.is_leaving]
        for key in asked:
            application.placeholders[key].is_leaving = True
        return [(key, "timeout") for key in asked]
