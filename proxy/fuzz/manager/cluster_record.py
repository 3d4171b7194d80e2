"""The record of an honest resource manager: its nodes, its applications, and its tasks.

The record is the cluster: running tasks continue even if the scheduler, or the connection to it, is lost. It
is written before a message is sent, so that no answer can arrive earlier. All messages of the scheduler have
to agree with it.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from ....model.requests.submission_terms import (
    GANG_SIZE_TAG,
    TOPOLOGY_REQUIRED_TAG,
    TOPOLOGY_SLICE_SIZE_TAG,
    TOPOLOGY_SLICE_TAG,
)
from ....model.values.allocation import (
    CHECKPOINT_TIME_TAG,
    CREATION_TIME_TAG,
    REQUIRED_NODE_TAG,
    WALLTIME_TAG,
)
from ....model.values.dependencies import AFTER_TAGS
from ...play.simulation.si_messages import resource_message
from ...si import constants
from ...si import si_pb2 as si
from ..configurations import LEVELS

Size: TypeAlias = "dict[str, int]"
"""A quantity of each resource type."""
OVER: Final = frozenset({"Completed", "Failed", "Rejected", "Expired"})
"""The final states of applications."""
RACKS: Final = 3
"""How many racks the nodes of a manager are in, at most."""


class RecordError(AssertionError):
    """The scheduler sent or shows an impossible state."""


@final
@dataclass(slots=True)
class KnownNode:
    """A node in its reported state."""

    name: str
    partition: str
    size: Size
    drained: bool = False
    may_be_full: bool = False
    """Whether more may run there than fits: the node has become smaller, or a task larger."""

    def message(self, action: si.NodeInfo.ActionFromRM) -> si.NodeInfo:
        """Return its message."""
        info = si.NodeInfo(nodeID=self.name, action=action, schedulableResource=resource_message(self.size))
        info.attributes[constants.NODE_PARTITION] = self.partition
        info.attributes.update({level: domain_of(self.name, level) for level in LEVELS})
        return info


def domain_of(node: str, level: str) -> str:
    """Return the name of the domain of a level that a node is in, by the number in its name."""
    rack = int(re.sub("[^0-9]", "", node) or "0") % RACKS
    return f"r{rack}" if level == "rack" else f"b{rack % 2}"


@final
@dataclass(slots=True)
class KnownApplication:
    """An application that was submitted and has not ended."""

    name: str
    partition: str
    queue: str
    user: str
    groups: list[str]
    gang: dict[str, tuple[int, Size]] = field(default_factory=dict)
    """The number and the size of the members of each task group."""
    hard: bool = False
    timeout_ms: int = 0
    state: str = ""
    """The last received state; empty before the answer to the submission."""
    tags: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    """The nodes of its placements, of gangs in slices alone; the empty text for each end."""

    def message(self) -> si.AddApplicationRequest:
        """Return its submission."""
        request = si.AddApplicationRequest(
            applicationID=self.name,
            queueName=self.queue,
            partitionName=self.partition,
            ugi=si.UserGroupInformation(user=self.user, groups=self.groups),
            executionTimeoutMilliSeconds=self.timeout_ms,
            gangSchedulingStyle="Hard" if self.hard else "Soft",
            tags=self.tags,
        )
        if self.gang:
            total: Size = {}
            for count, size in self.gang.values():
                for name, value in size.items():
                    total[name] = total.get(name, 0) + count * value
            request.placeholderAsk.CopyFrom(resource_message(total))
        return request


@final
@dataclass(slots=True)
class Task:
    """A task that the RM requests, or that runs."""

    key: str
    application: str
    partition: str
    size: Size
    priority: int = 0
    group: str = ""
    placeholder: bool = False
    required_node: str = ""
    preemptible: bool = True
    preempts: bool = True
    node: str = ""
    """The node on which it runs; empty while it waits."""
    saved_seconds: int = 0
    """When its work was last saved, in seconds since 1970; 0 for never."""
    walltime: str = ""
    """How long it runs at most, in the notation of its tag; empty for no tag."""
    originator: bool = False
    """Whether its application ends with it."""
    created_seconds: int = 0
    """Its creation time according to the task, in seconds since 1970; 0 for none."""

    def message(self) -> si.Allocation:
        """Return the ask, or the allocation if it runs."""
        allocation = si.Allocation(
            allocationKey=self.key,
            applicationID=self.application,
            partitionName=self.partition,
            resourcePerAlloc=resource_message(self.size),
            priority=self.priority,
            taskGroupName=self.group,
            placeholder=self.placeholder,
            nodeID=self.node,
            originator=self.originator,
            preemptionPolicy=si.PreemptionPolicy(
                allowPreemptSelf=self.preemptible, allowPreemptOther=self.preempts
            ),
        )
        if self.required_node:
            allocation.allocationTags[REQUIRED_NODE_TAG] = self.required_node
        if self.saved_seconds:
            allocation.allocationTags[CHECKPOINT_TIME_TAG] = str(self.saved_seconds)
        if self.created_seconds:
            allocation.allocationTags[CREATION_TIME_TAG] = str(self.created_seconds)
        if self.walltime:
            allocation.allocationTags[WALLTIME_TAG] = self.walltime
        if not self.application:
            allocation.allocationTags[constants.FOREIGN] = "default" if self.preemptible else "static"
        return allocation


@final
class ClusterRecord:
    """The record of one resource manager."""

    def __init__(self) -> None:
        self.nodes: dict[str, KnownNode] = {}
        self.partitions: dict[str, str] = {}
        """The partition of each application that ever existed."""
        self.applications: dict[str, KnownApplication] = {}
        self.waiting: dict[str, Task] = {}
        self.running: dict[str, Task] = {}
        self.foreign: dict[str, Task] = {}
        """The tasks of another scheduler on the nodes."""
        self.to_confirm: dict[str, int] = {}
        """The termination types of the tasks that the scheduler wants to end, until the RM confirms them."""
        self.gone_nodes: set[str] = set()
        self.to_hear: set[str] = set()
        """The tasks that the RM has ended itself: the scheduler confirms them."""
        self.may_lag = False
        """Whether an application that ran may be Accepted again: on another worker, with asks only."""
        self.ended: set[str] = set()
        """The keys that have ended; the RM reuses none."""

    # ---------------------------------------------------------------------------- messages received

    def placed(self, allocation: si.Allocation) -> bool:
        """Record a placement; return whether it is still needed.

        Raises:
            RecordError: The task runs already or was never requested, or its node never existed.
        """
        key, node = allocation.allocationKey, allocation.nodeID
        if key in self.running:
            raise RecordError(f"{key} is placed on {node}, and runs on {self.running[key].node}")
        if node not in self.nodes and node not in self.gone_nodes:
            raise RecordError(f"{key} is placed on {node}, which there never was")
        self._check_slices(allocation.applicationID, node)
        task = self.waiting.pop(key, None)
        if task is None:
            if key not in self.ended:
                raise RecordError(f"{key} is placed on {node}, and was never asked for")
            return False
        if task.required_node not in ("", node):
            raise RecordError(f"{key} is placed on {node}, and may run on {task.required_node} only")
        task.node = node
        self._check_domain(task)
        self._check_links(task)
        self.running[key] = task
        self._check_room(node)
        return True

    def _check_links(self, task: Task) -> None:
        """Check that what an application waits for has ended.

        Raises:
            RecordError: It has not.
        """
        application = self.applications.get(task.application)
        tags = {} if application is None else application.tags
        awaited = {tags[tag] for tag in AFTER_TAGS if tag in tags} & self.applications.keys()
        if awaited:
            raise RecordError(f"{task.key} is placed before the end of {awaited}")

    def released(self, release: si.AllocationRelease, *, asks: bool = False) -> bool:
        """Record a release by the scheduler; return whether the scheduler expects a confirmation.

        Raises:
            RecordError: The task was never requested.
        """
        key = release.allocationKey
        self.to_hear.discard(key)
        if key in self.waiting and (asks or key not in self.running):
            self.end([key])
            return False
        if key not in self.running:
            if key not in self.ended:
                raise RecordError(f"{key} is released, and was never asked for")
            return release.terminationType != si.STOPPED_BY_RM
        if release.terminationType == si.STOPPED_BY_RM:
            self.end([key])
            return False
        if key in self.to_confirm:
            raise RecordError(
                f"the end of {key} is requested again, and the first request has not been confirmed"
            )
        self.to_confirm[key] = release.terminationType
        return True

    def rejected(self, key: str, application_id: str, *, in_order: bool) -> None:
        """Record the rejection of an ask.

        Args:
            key: Its key.
            application_id: Its application.
            in_order: Whether requests are carried out in the order of sending.

        Raises:
            RecordError: The ask was never requested, or its application has had no answer yet.
        """
        application = self.applications.get(application_id)
        if in_order and application is not None and not application.state:
            raise RecordError(f"{key} is rejected before {application_id} has an answer")
        if self.foreign.pop(key, None) is not None:
            return
        if key not in self.waiting and key not in self.ended and key not in self.running:
            raise RecordError(f"{key} is rejected, and was never asked for")
        self.end([key])

    def check_reported(self, kind: str, names: Iterable[str]) -> None:
        """Check that all accepted nodes or applications were reported.

        Raises:
            RecordError: One was not.
        """
        known: Container[str] = self.partitions if kind == "application" else {*self.nodes, *self.gone_nodes}
        strange = [name for name in names if name not in known]
        if strange:
            raise RecordError(f"{kind} {strange[0]} is accepted, and was never reported")

    def _check_domain(self, task: Task) -> None:
        """Check that a task runs in the domain of the others of its gang, if the gang needs one."""
        application = self.applications.get(task.application)
        level = "" if application is None else application.tags.get(TOPOLOGY_REQUIRED_TAG, "")
        for other in self.running.values() if level else ():
            if other.application == task.application and other.node in self.nodes:
                own, theirs = domain_of(task.node, level), domain_of(other.node, level)
                if own != theirs:
                    raise RecordError(
                        f"{task.key} is placed in {own}, and {other.key} of its gang is in {theirs}"
                    )

    def _check_slices(self, name: str, node: str) -> None:
        """Check that a gang in slices, none of which has lost members, is placed with each in one domain."""
        application = self.applications.get(name)
        if application is None or TOPOLOGY_SLICE_TAG not in application.tags:
            return
        tags, nodes = application.tags, application.nodes
        nodes.append(node)
        members = int(tags.get(GANG_SIZE_TAG, "0")) or sum(count for count, _ in application.gang.values())
        if len(nodes) != members or not self.nodes.keys() >= set(nodes):
            return
        counts = Counter(domain_of(each, tags[TOPOLOGY_SLICE_TAG]) for each in nodes)
        if any(count % int(tags[TOPOLOGY_SLICE_SIZE_TAG]) for count in counts.values()):
            raise RecordError(
                f"{name} in slices of {tags[TOPOLOGY_SLICE_SIZE_TAG]} has {dict(counts)} members in domains"
            )

    def _check_room(self, name: str) -> None:
        """Check that a node is large enough for the RM's tasks on it."""
        node = self.nodes.get(name)
        if node is not None and node.may_be_full:
            return
        tasks = [task for task in self.running.values() if task.node == name]
        for resource_type, size in () if node is None else node.size.items():
            used = sum(task.size.get(resource_type, 0) for task in tasks)
            if used > size:
                raise RecordError(f"{name} has {size} {resource_type}, and {used} of it are used")

    def application_changed(self, name: str, state: str) -> None:
        """Record the state of an application; one that has ended is forgotten, except its tasks."""
        application = self.applications.get(name)
        if application is not None:
            application.state = state
            if state in OVER:
                del self.applications[name]

    # -------------------------------------------------------------------------------------- actions

    def end(self, keys: Iterable[str]) -> None:
        """Record that tasks have ended, or are no longer needed."""
        for key in keys:
            self.waiting.pop(key, None)
            task = self.running.pop(key, None)
            if task is not None:
                self._end_in_slice(task)
            self.to_confirm.pop(key, None)
            self.ended.add(key)

    def _end_in_slice(self, task: Task) -> None:
        """Record that a task which ran no longer counts in a slice of its gang."""
        application = self.applications.get(task.application)
        if application is not None:
            application.nodes.append("")

    def end_foreign(self, key: str) -> Task:
        """Record that a task of another scheduler has ended; return it."""
        self.ended.add(key)
        return self.foreign.pop(key)

    def end_running(self, keys: Iterable[str]) -> None:
        """Record that the RM has ended tasks itself; the scheduler answers for those that ran."""
        for key in keys:
            if key in self.running:
                self.to_hear.add(key)
            self.end([key])

    def settled(self) -> list[Task]:
        """Return the running tasks that are not about to end for any reason known to the RM."""
        return [
            task
            for task in self.running.values()
            if task.key not in self.to_confirm
            and task.node in self.nodes
            and task.application in self.applications
        ]

    def fail_starts(self, rng: random.Random) -> list[tuple[str, str, str]]:
        """Record that some running tasks could not be started, and wait again.

        Returns:
            The application, the key and the partition of each task.
        """
        rows = []
        for task in [*self.running.values()]:
            if task.key not in self.to_confirm and task.node in self.nodes and rng.random() < 0.2:
                self._end_in_slice(self.running.pop(task.key))
                self.waiting[task.key] = task
                task.node = ""
                rows.append((task.application, task.key, task.partition))
        return rows

    def forget_what_has_lost_its_place(self) -> None:
        """End tasks that are to be confirmed, whose node is gone, or whose application has ended."""
        tasks = (*self.waiting.values(), *self.running.values())
        self.to_hear.clear()
        self.end([*self.to_confirm])
        self.end(task.key for task in tasks if task.application not in self.applications)
        self.end(task.key for task in tasks if task.node and task.node not in self.nodes)

    def lose_node(self, name: str) -> KnownNode:
        """Record the loss of a node with others' tasks; the RM's tasks end with the scheduler's message."""
        self.gone_nodes.add(name)
        for task in [*self.foreign.values()]:
            if task.node == name:
                self.end_foreign(task.key)
        return self.nodes.pop(name)

    def keep_partitions(self, partitions: Sequence[str]) -> None:
        """Record that all other partitions end; their running tasks end with the scheduler's message."""
        for node in [*self.nodes.values()]:
            if node.partition not in partitions:
                self.lose_node(node.name)
        for application in [*self.applications.values()]:
            if application.partition not in partitions:
                del self.applications[application.name]
        self.end([task.key for task in [*self.waiting.values()] if task.partition not in partitions])

    def tasks_of(self, application: str) -> list[str]:
        """Return the keys of all tasks of an application."""
        tasks = (*self.waiting.values(), *self.running.values())
        return [task.key for task in tasks if task.application == application]

    def gangs_that_never_fit(self) -> set[str]:
        """Return the applications of gangs that wait forever.

        A member needs a node that is gone, or the members of slices have several sizes.
        """
        waiting = self.waiting.values()
        stuck = {task.application for task in waiting if task.required_node in self.gone_nodes}
        sizes = defaultdict[str, set[tuple[tuple[str, int], ...]]](set)
        for task in waiting:
            sizes[task.application].add(tuple(sorted(task.size.items())))
        return {
            name
            for name, each in self.applications.items()
            if GANG_SIZE_TAG in each.tags
            and (name in stuck or (TOPOLOGY_SLICE_TAG in each.tags and len(sizes[name]) > 1))
        }

    # ----------------------------------------------------------------------------------- comparison

    def check(self, snapshot: dict[str, dict[str, list[dict[str, object]]]]) -> None:
        """Check that the idle scheduler shows the contents of the record.

        Raises:
            RecordError: They differ.
        """
        shown: dict[str, str] = {}
        sizes: dict[str, Size] = {}
        waiting: set[str] = set()
        states: dict[str, str] = {}
        for documents in snapshot["applications"].values():
            for document in documents:
                for each in (*(document.get("allocations") or ()), *(document.get("requests") or ())):  # type: ignore[misc]
                    sizes[each["allocationKey"]] = each["resource"]
                state = str(document["applicationState"])
                if state not in OVER:  # Those that have ended have freed their names.
                    states[str(document["applicationID"])] = state
                shown |= {each["allocationKey"]: each["nodeId"] for each in document.get("allocations") or ()}  # type: ignore[attr-defined]
                waiting |= {each["allocationKey"] for each in document.get("requests") or ()}  # type: ignore[attr-defined]
        _compare("runs", {key: task.node for key, task in self.running.items()}, shown)
        _compare("waits", dict.fromkeys(self.waiting), dict.fromkeys(waiting - {*shown}))
        known_sizes = {key: task.size for key, task in (*self.running.items(), *self.waiting.items())}
        _compare("is the size", known_sizes, {key: sizes[key] for key in known_sizes})
        on_nodes = {
            str(allocation["allocationKey"]): str(node["nodeID"])
            for nodes in snapshot["nodes"].values()
            for node in nodes
            for allocation in node.get("allocations") or ()  # type: ignore[attr-defined]
        }
        _compare("runs by the nodes", shown, on_nodes)
        known = {name: each.state for name, each in self.applications.items()}
        if self.may_lag:
            lags = [name for name in known if (known[name], states.get(name)) == ("Running", "Accepted")]
            states |= dict.fromkeys(lags, "Running")
        _compare("is the state", known, {name: states.get(name) for name in known})
        shown_nodes = {
            str(node["nodeID"]): not node["schedulable"]
            for nodes in snapshot["nodes"].values()
            for node in nodes
        }
        _compare("is drained", {name: node.drained for name, node in self.nodes.items()}, shown_nodes)
        if self.to_hear:
            raise RecordError(
                f"{sorted(self.to_hear)} were ended by the RM, and the scheduler has not reported it"
            )


def _compare(what: str, record: Mapping[str, object], shown: Mapping[str, object]) -> None:
    if record != shown:
        ours = {key: value for key, value in record.items() if shown.get(key, "") != value}
        theirs = {key: value for key, value in shown.items() if record.get(key, "") != value}
        raise RecordError(f"what {what}: {ours} for the RM, {theirs} for the scheduler")
