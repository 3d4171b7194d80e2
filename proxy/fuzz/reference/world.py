"""A run of a plan on the engine `direct` and on the second scheduler: each decision must be the same.

A plan has a few worlds, one after the other, each with a few features: faults show sooner without other
events.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Final, final

from ....model.configuration.durations import parse_duration_ns
from ...si import si_pb2 as si
from ...si.constants import NODE_PARTITION
from ..configurations import LEVELS, USERS
from ..manager.cluster_record import KnownApplication, KnownNode, Size, Task, domain_of
from ..plans import BEGIN, Plan, PlannedStep, one_of
from ..tried_policies import TriedPolicies
from .configurations import LARGE
from .links import drawn_links
from .plan import Submission, queue_for
from .queues import ReferenceApplication, ReferenceAsk
from .run import MILLISECOND_NS, PARTITION, RM_ID, SECOND_NS, WAITS, ReferenceRun

_ONE_SIZE: Final = {"memory": 30, "vcore": 300}
_MORE_TASKS: Final = 3
"""How many tasks are requested at a time in worlds that need a lack of room."""
_CREATED_SECONDS: Final = 946_684_000
"""Some minutes before the start of the clock."""
_WALLTIMES: Final = (None, 5, 10, 20, 60, 60, 300)
_GONE: Final = si.STOPPED_BY_RM


def _dice(text: str) -> random.Random:
    return random.Random(text)  # noqa: S311 - it plays, and keeps no secret


@final
class ReferenceWorld:
    """The worlds of one plan.

    Args:
        plan: The plan; only its seed and its steps count.
        note: Records actions and decisions.
    """

    def __init__(self, plan: Plan, note: Callable[[str, Any], None]) -> None:
        self._plan = plan
        self._note = note
        self._policies = TriedPolicies(plan.policies, compared=True)

    def run(self) -> None:
        """Carry out all steps.

        Raises:
            RecordError: The schedulers decide differently, or their figures differ.
        """
        worlds: list[tuple[str, list[PlannedStep]]] = [(f"reference {self._plan.seed}", [])]
        for step in self._plan.steps:
            if step.action == BEGIN:
                worlds.append((f"reference {step.draw}", []))
            else:
                worlds[-1][1].append(step)
        for text, steps in worlds:
            if steps:
                _World(text, self._policies, self._note).run(steps)


@final
class _World(ReferenceRun):
    """One of these worlds, with its actions."""

    _younger_seconds = 0

    def run(self, steps: list[PlannedStep]) -> None:
        """Carry out steps, then place all asks that can be placed."""
        text = json.dumps({"partitions": [self.partition]})
        self.note("has", sorted(self.features))
        registration = si.RegisterResourceManagerRequest(rmID=RM_ID, policyGroup="queues", config=text)
        self.note("says", registration)
        with self.scheduler:
            self.scheduler.register_resource_manager(registration, self)
            self.reference.now_ns = self.scheduler.now_ns()
            for step in steps:
                ACTIONS[step.action](self, _dice(str(step.draw)))
                self.wait(MILLISECOND_NS)
            self.schedule()

    def _name(self, kind: str) -> str:
        self.serial += 1
        return f"{kind}{self.serial}"

    def _size(self, rng: random.Random) -> Size:
        """Return the size of a task."""
        if self.one_size:
            return dict(_ONE_SIZE)
        memory = 1 + int(rng.random() * 40)
        size = {"memory": memory, "vcore": 20 + int(rng.random() * 380)}
        if "gangs" in self.features or "promises" in self.features:
            size = {"memory": one_of(rng, (10, 20, 40, 60)), "vcore": one_of(rng, (50, 100))}
        if "types" in self.features:
            size["gpu"] = int(rng.random() * 3)
            left_out = one_of(
                rng, ((), ("gpu",), ("gpu", "vcore"), ("memory",), ("memory", "vcore"), ("vcore",))
            )
            for name in left_out:
                if rng.random() < 0.5:
                    size[name] = 0
                else:
                    del size[name]
        return self._scaled(size)

    def _node_size(self, rng: random.Random) -> Size:
        size = {"memory": 30 + int(rng.random() * 120), "vcore": 300 + int(rng.random() * 1200)}
        if "types" in self.features:
            size["gpu"] = int(rng.random() * 4)
            if rng.random() < 0.2:
                size[one_of(rng, ("memory", "vcore", "gpu"))] = 0
        return self._scaled(size)

    def _scaled(self, size: Size) -> Size:
        if "large" in self.features and "memory" in size:
            size["memory"] *= LARGE
        return size

    def _add_node(self, rng: random.Random) -> None:
        size, name = self._node_size(rng), self._name("n")
        racks = {level: domain_of(name, level) for level in LEVELS}
        self.reference.add_node(name, size, {NODE_PARTITION: f"[{RM_ID}]{PARTITION}", **racks})
        self._report(name, si.NodeInfo.CREATE)

    def _report(self, name: str, action: si.NodeInfo.ActionFromRM, size: Size | None = None) -> None:
        known = KnownNode(name, PARTITION, size or self.reference.nodes[name].size)
        request = si.NodeRequest(rmID=RM_ID, nodes=[known.message(action)])
        self.note("says", request)
        self.scheduler.update_node(request)

    def _change_node(self, rng: random.Random) -> None:
        """Drain a node, undo that, or make it grow or shrink."""
        if not self.reference.nodes:
            return
        node = one_of(rng, [*self.reference.nodes.values()])
        if rng.random() < 0.5:
            self.reference.drain_node(node.name, drained=not node.drained)
            self._report(
                node.name, si.NodeInfo.DRAIN_NODE if node.drained else si.NodeInfo.DRAIN_TO_SCHEDULABLE
            )
            return
        size = {name: value + int(rng.random() * 30) for name, value in node.size.items()}
        if "nodes" in self.features and rng.random() < 0.6:
            size = self._node_size(rng)
        self._report(node.name, si.NodeInfo.UPDATE, size)
        self.reference.resize_node(node.name, size)

    def _remove_node(self, rng: random.Random) -> None:
        nodes = [*self.reference.nodes]
        if "nodes" not in self.features or len(nodes) < 2:
            self._act_otherwise(rng)
            return
        name = one_of(rng, nodes)
        self._report(name, si.NodeInfo.DECOMISSION)
        self.expect_gone(self.reference.lose_node(name))

    def _report_foreign(self, rng: random.Random) -> None:
        """Report others' use: a new task, its size, its other node, or its end."""
        if "foreign" not in self.features or not self.reference.nodes:
            self._act_otherwise(rng)
            return
        reference = self.reference
        known = [key for node in reference.nodes.values() for key in node.foreign]
        if known and rng.random() < 0.25:
            key = one_of(rng, known)
            reference.end_foreign(key)
            self.say_ended("", key, _GONE)
            return
        key = one_of(rng, known) if known and rng.random() < 0.6 else self._name("f")
        node = one_of(rng, [*reference.nodes])
        size = {name: value // 2 for name, value in self._size(rng).items()}
        reference.put_foreign(key, node, size)
        self._say_allocation(Task(key, "", PARTITION, size, node=node))

    def _submit(self, rng: random.Random) -> None:
        """Submit an application, in some worlds with a gang, or to a queue that may not exist."""
        leaf, name = one_of(rng, self.configurations.leaves), self._name("a")
        user = one_of(rng, [*USERS])
        application = KnownApplication(name, PARTITION, leaf, user, [*USERS[user]])
        if "rules" in self.features:
            application.queue = one_of(
                rng, (leaf, leaf, leaf, "root.dynamic.x", "fresh", "root.fresh.y", "a.b", "")
            )
            application.tags["namespace"] = one_of(rng, ("", "team", "root.dynamic.z", "dotted.team"))
        if "gangs" in self.features and rng.random() < 0.7:
            for group in ("tg1", "tg2")[: 1 + int(rng.random() * 2)]:
                application.gang[group] = (1 + int(rng.random() * 3), self._size(rng))
            application.hard = rng.random() < 0.4
            application.timeout_ms = one_of(rng, (0, 0, 2_000, 20_000))
        refuses = False
        if "links" in self.features:
            application.tags |= drawn_links(name, self.serial, self.text)
            refuses = self.reference.links.refuses(name, application.tags)
        announced: Size = {}
        for count, size in application.gang.values():
            for kind, value in size.items():
                announced[kind] = announced.get(kind, 0) + count * value
        groups = tuple(USERS[user]) or (user,)
        submission = Submission(application.queue, user, groups, application.tags, announced)
        queue = queue_for(self.reference.root, self.partition.get("placementrules", []), submission)
        request = si.ApplicationRequest(rmID=RM_ID, new=[application.message()])
        self.note("says", request)
        self.scheduler.update_application(request)
        self.expect_refused(set() if queue and not refuses else {name})
        if queue is None or refuses:
            return
        timeout_ns = application.timeout_ms * MILLISECOND_NS
        known = ReferenceApplication(
            *(name, queue, 0, user, groups, None, announced, application.hard, timeout_ns),
            tags=application.tags,
        )
        self.reference.submit(known)
        for group, (count, size) in application.gang.items():
            for _ in range(count):
                task = Task(self._name("p"), name, PARTITION, dict(size), group=group, placeholder=True)
                self._ask_for(task)
                self.wait(MILLISECOND_NS)

    def _act_otherwise(self, rng: random.Random) -> None:
        """Carry out a typical action of the world instead of one that it lacks."""
        if "quotas" in self.features:
            self._reload(rng)
            if rng.random() < 0.6:
                self._let_time_pass(rng)
        elif "overruns" in self.features:
            self._let_time_pass(rng)
        else:
            self._ask(rng)

    def _ask(self, rng: random.Random) -> None:
        """Send an ask, or several in worlds that need a lack of room."""
        for _ in range(_MORE_TASKS if self.features & {"preempts", "promises"} else 1):
            names = [*self.reference.applications]
            if names:
                self._ask_for(self._drawn_task(rng, one_of(rng, names)))
                self.wait(MILLISECOND_NS)  # It does not determine the order of events at one moment.

    def _drawn_task(self, rng: random.Random, name: str) -> Task:
        features = self.features
        gangs = [each.name for each in self.reference.applications.values() if any(each.to_come.values())]
        if gangs and rng.random() < 0.7:
            name = one_of(rng, gangs)
        task = Task(self._name("k"), name, PARTITION, self._size(rng))
        if rng.random() < 0.5 and "promises" not in features:
            task.priority = int(rng.random() * 7) - 3
        groups = [*self.reference.applications[name].to_come]
        if groups and rng.random() < 0.8:
            task.group = one_of(rng, groups)
            places = self.reference.applications[name].placeholders.values()
            sizes = [each.ask.size for each in places if each.ask.group == task.group]
            if sizes and rng.random() < 0.6:
                task.size = dict(sizes[0])
        if features & {"promises", "windows"} or ("overruns" in features and rng.random() < 0.5):
            task.walltime = _walltime(rng)
        if features & {"preempts", "daemons", "quotas"}:
            task.preemptible, task.preempts = rng.random() < 0.7, rng.random() < 0.8
            task.originator = rng.random() < 0.3 and not self.preempts
        if "daemons" in features and rng.random() < 0.3 and self.reference.nodes:
            task.required_node = one_of(rng, [*self.reference.nodes])
        if "ages" in features and rng.random() < 0.4:
            self._younger_seconds += 1 + int(rng.random() * 3)  # All have different ages.
            task.created_seconds = _CREATED_SECONDS + self._younger_seconds * one_of(rng, (-1, 1))
        return task

    def _is_refused(self, task: Task) -> bool:
        """Return whether an ask is invalid: it has no size, is late, or exceeds the allowed walltime."""
        application = self.reference.applications[task.application]
        longest, own_ns = application.queue.properties.get("runtime.max"), _walltime_ns(task)
        is_long = longest is not None and own_ns is not None and own_ns > parse_duration_ns(longest)
        return application.state == "Failing" or is_long or not any(task.size.values())

    def _ask_for(self, task: Task) -> None:
        self._say_allocation(task)
        refused = self._is_refused(task)
        self.expect_refused({task.key} if refused else set())
        if refused:
            return
        ask = ReferenceAsk(task.key, dict(task.size), task.priority, 0)
        ask.preempts, ask.willing, ask.originator = task.preempts, task.preemptible, task.originator
        ask.since_ns = task.created_seconds * SECOND_NS
        ask.group, ask.placeholder, ask.required_node = task.group, task.placeholder, task.required_node
        ask.tags = dict(task.message().allocationTags)
        if not task.placeholder:
            queue = self.reference.applications[task.application].queue
            ask.walltime_ns = queue.walltime_ns(_walltime_ns(task))
        self.reference.ask(task.application, ask)

    def _say_allocation(self, task: Task) -> None:
        request = si.AllocationRequest(rmID=RM_ID, allocations=[task.message()])
        self.note("says", request)
        self.scheduler.update_allocation(request)

    def _resize(self, rng: random.Random) -> None:
        """Resize a waiting or running task."""
        reference = self.reference
        waiting = [(key, each.name, "") for each in reference.applications.values() for key in each.asks]
        running = [(key, task.application.name, task.node.name) for key, task in reference.running.items()]
        rows = [row for row in (*waiting, *running) if not row[0].startswith("p")]
        if "overruns" in self.features:
            rows.clear()
        size = self._size(rng)
        if "resizes" not in self.features or not rows or not any(size.values()):
            self._act_otherwise(rng)
            return
        key, application, node = one_of(rng, rows)
        reference.resize(key, size)
        self._say_allocation(Task(key, application, PARTITION, size, node=node))
        self.expect_refused(set())

    def _end(self, rng: random.Random) -> None:
        keys = [key for key, task in self.reference.running.items() if not task.ask.placeholder]
        if keys:
            self.release(one_of(rng, keys), _GONE)

    def _withdraw(self, rng: random.Random) -> None:
        """Withdraw an ask."""
        applications = self.reference.applications.values()
        keys = [
            (key, each.name) for each in applications for key, ask in each.asks.items() if not ask.placeholder
        ]
        if keys:
            key, application = one_of(rng, keys)
            self.reference.withdraw(key)
            self.say_ended(application, key, _GONE)

    def _remove_application(self, rng: random.Random) -> None:
        names = [*self.reference.applications]
        if not names:
            return
        name = one_of(rng, names)
        outcome = one_of(rng, ("", "ok", "failed")) if "links" in self.features else ""
        removal = si.RemoveApplicationRequest(applicationID=name, partitionName=PARTITION, outcome=outcome)
        request = si.ApplicationRequest(rmID=RM_ID, remove=[removal])
        self.note("says", request)
        self.scheduler.update_application(request)
        self.expect_gone(self.reference.remove(name, outcome))

    def _reload(self, rng: random.Random) -> None:
        """Load a configuration with other settings."""
        if not self.features & {"reloads", "quotas"}:
            self._ask(rng)
            return
        before, self.partition = self.partition, self._policies.named_below(self.configurations.draw(rng))
        text = json.dumps({"partitions": [self.partition]})
        request = si.UpdateConfigurationRequest(rmID=RM_ID, config=text)
        self.note("says", request)
        self.scheduler.update_configuration(request)
        if self.partition != before:  # Otherwise nodes do not update their places either.
            self.reference.configure(self.partition)

    def _let_time_pass(self, rng: random.Random) -> None:
        """Wait, or confirm the end of a placeholder."""
        if self.to_confirm and rng.random() < 0.5:
            self.confirm(one_of(rng, self.to_confirm))
            return
        seconds = [each for name in sorted(self.features) for each in WAITS.get(name, ())]
        if seconds:
            self.wait(int(one_of(rng, seconds) * SECOND_NS))
        else:
            self.schedule()


def _walltime_ns(task: Task) -> int | None:
    return int(task.walltime[:-1]) * SECOND_NS if task.walltime else None


def _walltime(rng: random.Random) -> str:
    seconds = one_of(rng, _WALLTIMES)
    return f"{seconds}s" if seconds else ""


ACTIONS: Final[dict[str, Callable[[_World, random.Random], None]]] = {
    "add node": _World._add_node,  # noqa: SLF001 - of this module
    "change node": _World._change_node,  # noqa: SLF001 - as above
    "remove node": _World._remove_node,  # noqa: SLF001 - as above
    "report foreign": _World._report_foreign,  # noqa: SLF001 - as above
    "submit": _World._submit,  # noqa: SLF001 - as above
    "ask": _World._ask,  # noqa: SLF001 - as above
    "resize": _World._resize,  # noqa: SLF001 - as above
    "finish": _World._end,  # noqa: SLF001 - as above
    "withdraw": _World._withdraw,  # noqa: SLF001 - as above
    "remove application": _World._remove_application,  # noqa: SLF001 - as above
    "reload": _World._reload,  # noqa: SLF001 - as above
    "wait": _World._let_time_pass,  # noqa: SLF001 - as above
    "schedule": _World.schedule,
}
"""The actions of such a world, by name."""
