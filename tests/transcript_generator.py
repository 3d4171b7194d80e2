"""Random transcripts: everything that a resource manager may say, in any order, sane or not.

A seed gives the same transcript on every machine. A transcript is blind: it was not made with a scheduler
at hand. So it confirms releases that nobody asked for, and some that the scheduler did ask for, late or
twice; it changes nodes that are gone, and names keys that have ended.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from transcript_configurations import (
    DYNAMIC_PARENT,
    INVALID_CONFIGURATIONS,
    USERS,
    Configuration,
    random_configuration,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from transcript_configurations import Json

__all__ = ["RM_ID", "random_transcript", "transcript_end"]

RM_ID: Final = "rm"
_CONFIRMATIONS: Final = ("TIMEOUT", "PLACEHOLDER_REPLACED", "PREEMPTED_BY_SCHEDULER")
_TERMINATIONS: Final = ("STOPPED_BY_RM", "STOPPED_BY_RM", "UNKNOWN_TERMINATION_TYPE", *_CONFIRMATIONS)
_WAITS: Final = ("10ms", "10ms", "500ms", "1s", "2s", "3s", "5s", "11s", "31s")


@dataclass(slots=True)
class _Application:
    """What a resource manager remembers of an application."""

    name: str
    partition: str
    task_groups: dict[str, dict[str, int]] = field(default_factory=dict)
    """The size of the placeholders of each task group."""
    keys: list[str] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Manager:
    """A resource manager that rolls dice."""

    rng: random.Random
    partitions: tuple[str, ...]
    configuration: Configuration
    nodes: dict[str, str] = field(default_factory=dict)
    """The partition of each node that there has ever been."""
    applications: dict[str, _Application] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    serial: int = 0

    def say(self, verb: str, body: Json) -> None:
        self.lines.append(json.dumps({verb: body}))

    def new_name(self, kind: str) -> str:
        self.serial += 1
        return f"{kind}{self.serial}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability


def random_transcript(seed: int, length: int = 60) -> list[str]:
    """Make the lines of a transcript; after about `length` lines everything is released and removed."""
    rng = random.Random(seed)  # noqa: S311 - dice, no secrets
    partitions = ("default", "gpu") if rng.random() < 0.15 else ("default",)
    manager = _Manager(rng, partitions, random_configuration(rng, partitions))
    _register(manager)
    for _ in range(rng.randint(1, 3)):
        _create_nodes(manager)
    _submit_applications(manager)
    actions = [*_ACTIONS]
    weights = [_ACTIONS[action] for action in actions]
    while len(manager.lines) < length:
        rng.choices(actions, weights)[0](manager)
        if rng.random() < 0.6:
            manager.say("advance", "10ms")
    return manager.lines + transcript_end(manager)


def transcript_end(manager: _Manager) -> list[str]:
    """Release and remove everything that was ever named, in one of several orders."""
    start = len(manager.lines)
    manager.say("confirm", "auto")
    farewells = [_release_everything, _remove_applications, _remove_nodes]
    manager.rng.shuffle(farewells)
    for farewell in farewells:
        farewell(manager)
    manager.say("advance", "1s")
    ending = manager.lines[start:]
    del manager.lines[start:]
    return ending


# ------------------------------------------------------------------------------------------- the end


def _release_everything(manager: _Manager) -> None:
    for application in manager.applications.values():
        keys = [""] if manager.chance(0.5) else [*application.placeholders, *application.keys]
        _say_releases(manager, application, [(key, "STOPPED_BY_RM") for key in keys])
    for key in manager.foreign:
        nobody = _Application("", manager.partitions[0])
        _say_releases(manager, nobody, [(key, "STOPPED_BY_RM")])


def _remove_applications(manager: _Manager) -> None:
    for application in manager.applications.values():
        _say_removal(manager, application.name, application.partition)


def _remove_nodes(manager: _Manager) -> None:
    for node in manager.nodes:
        _say_node(manager, node, "DECOMISSION")


# ------------------------------------------------------------------------------------- configuration


def _register(manager: _Manager) -> None:
    body: Json = {"rmID": RM_ID, "policyGroup": "queues", "config": manager.configuration.text}
    manager.say("register", body)


def _register_again(manager: _Manager) -> None:
    if manager.chance(0.3):
        _register(manager)


def _reload(manager: _Manager) -> None:
    text = manager.configuration.text
    if manager.chance(0.3):
        text = manager.rng.choice(INVALID_CONFIGURATIONS)
    elif manager.chance(0.9):
        partitions = manager.partitions[: manager.rng.randint(1, len(manager.partitions))]
        manager.configuration = random_configuration(manager.rng, partitions)
        text = manager.configuration.text
    manager.say("configuration", {"rmID": RM_ID, "config": text})


# --------------------------------------------------------------------------------------------- nodes


def _resource(quantities: dict[str, int]) -> Json:
    return {"resources": {name: {"value": str(quantity)} for name, quantity in quantities.items()}}


def _capacity(manager: _Manager) -> dict[str, int]:
    capacity = {"memory": manager.rng.randint(30, 150), "vcore": manager.rng.randint(300, 1500)}
    if manager.chance(0.2):
        capacity["gpu"] = 2
    return capacity


def _say_node(manager: _Manager, node: str, action: str, capacity: dict[str, int] | None = None) -> None:
    partition = manager.nodes[node]
    body: dict[str, Json] = {"nodeID": node, "action": action}
    body["attributes"] = {"si/node-partition": partition} if partition != "default" else {}
    if capacity is not None:
        body["schedulableResource"] = _resource(capacity)
    manager.say("node", {"rmID": RM_ID, "nodes": [body]})


def _create_nodes(manager: _Manager) -> None:
    node = manager.new_name("n")
    if manager.nodes and manager.chance(0.2):
        node = manager.rng.choice([*manager.nodes])
    manager.nodes.setdefault(node, manager.rng.choice(manager.partitions))
    _say_node(manager, node, "CREATE_DRAIN" if manager.chance(0.1) else "CREATE", _capacity(manager))


def _change_node(manager: _Manager) -> None:
    node = manager.rng.choice([*manager.nodes])
    action = manager.rng.choice(["UPDATE", "UPDATE", "DRAIN_NODE", "DRAIN_TO_SCHEDULABLE"])
    _say_node(manager, node, action, _capacity(manager) if action == "UPDATE" else None)


def _remove_node(manager: _Manager) -> None:
    _say_node(manager, manager.rng.choice([*manager.nodes]), "DECOMISSION")


# -------------------------------------------------------------------------------------- applications


def _submit_applications(manager: _Manager) -> None:
    bodies = [_new_application(manager) for _ in range(manager.rng.randint(1, 2))]
    manager.say("application", {"rmID": RM_ID, "new": [*bodies]})


def _new_application(manager: _Manager) -> Json:
    rng = manager.rng
    name = manager.new_name("app")
    if manager.applications and manager.chance(0.1):
        name = rng.choice([*manager.applications])
    partition = rng.choice(manager.partitions)
    application = manager.applications.setdefault(name, _Application(name, partition))
    user = rng.choice([*USERS])
    body: dict[str, Json] = {"applicationID": name, "partitionName": application.partition}
    body["queueName"] = _queue(manager)
    body["ugi"] = {"user": user, "groups": [*USERS[user]]}
    body["tags"] = _tags(manager)
    if manager.chance(0.3):
        _add_gang(manager, application, body)
    return body


def _queue(manager: _Manager) -> str:
    rng = manager.rng
    if manager.chance(0.8) and manager.configuration.leaves:
        return rng.choice(manager.configuration.leaves)
    return rng.choice(["", "root.a", "root.b.c", "root", "unheard", f"root.{DYNAMIC_PARENT}.x", "root.bad name"])


def _tags(manager: _Manager) -> dict[str, Json]:
    tags: dict[str, Json] = {}
    if manager.chance(0.5):
        tags["namespace"] = manager.rng.choice(["dev", "prod", "test.it"])
    if manager.chance(0.1):
        tags["namespace.resourcequota"] = json.dumps(_resource({"memory": manager.rng.randint(20, 80)}))
    if manager.chance(0.1):
        tags["namespace.resourcemaxapps"] = "2"
    if manager.chance(0.05):
        tags["application.create.force"] = "true"
    return tags


def _add_gang(manager: _Manager, application: _Application, body: dict[str, Json]) -> None:
    """Announce the placeholders of a gang; they are asked for later, perhaps not all of them."""
    rng = manager.rng
    for group in ("tg1", "tg2")[: rng.randint(1, 2)]:
        application.task_groups[group] = _size(manager)
    count = rng.randint(1, 4)
    sizes = application.task_groups.values()
    total = {name: count * sum(size[name] for size in sizes) for name in ("memory", "vcore")}
    body["placeholderAsk"] = _resource(total)
    body["gangSchedulingStyle"] = rng.choice(["Soft", "Hard", ""])
    body["executionTimeoutMilliSeconds"] = str(rng.choice([0, 1500, 5000]))


def _say_removal(manager: _Manager, name: str, partition: str) -> None:
    removal: Json = {"applicationID": name, "partitionName": partition}
    manager.say("application", {"rmID": RM_ID, "remove": [removal]})


def _remove_application(manager: _Manager) -> None:
    application = manager.rng.choice([*manager.applications.values()])
    _say_removal(manager, application.name, application.partition)


# --------------------------------------------------------------------------------------- allocations


def _size(manager: _Manager) -> dict[str, int]:
    size = {"memory": manager.rng.choice([5, 10, 10, 20, 40]), "vcore": manager.rng.choice([50, 100, 100, 400])}
    if manager.chance(0.03):
        size["gpu"] = 1
    if manager.chance(0.02):
        size["memory"] = manager.rng.choice([0, -1, 10**6])
    return size


def _allocation(
    manager: _Manager, application: _Application, key: str, size: dict[str, int]
) -> dict[str, Json]:
    body: dict[str, Json] = {"allocationKey": key, "applicationID": application.name}
    body["partitionName"] = application.partition
    body["resourcePerAlloc"] = _resource(size)
    if manager.chance(0.4):
        body["priority"] = manager.rng.randint(-2, 9)
    body["preemptionPolicy"] = {
        "allowPreemptSelf": manager.chance(0.7),
        "allowPreemptOther": manager.chance(0.7),
    }
    if manager.chance(0.1):
        body["originator"] = True
    return body


def _say_allocations(manager: _Manager, bodies: list[dict[str, Json]]) -> None:
    manager.say("allocation", {"rmID": RM_ID, "allocations": [*bodies]})


def _ask(manager: _Manager) -> None:
    """Ask for a few allocations of one application, some for its gang."""
    rng = manager.rng
    application = rng.choice([*manager.applications.values()])
    bodies = []
    for _ in range(rng.randint(1, 4)):
        key = manager.new_name("k") if not application.keys or manager.chance(0.9) else rng.choice(application.keys)
        size = _size(manager)
        body = _allocation(manager, application, key, size)
        if application.task_groups and manager.chance(0.7):
            group = rng.choice([*application.task_groups])
            body["taskGroupName"] = group
            if manager.chance(0.8):
                body["resourcePerAlloc"] = _resource(application.task_groups[group])
        if manager.chance(0.1) and manager.nodes:
            body["allocationTags"] = {"yunikorn.apache.org/requiredNode": rng.choice([*manager.nodes])}
        application.keys.append(key)
        bodies.append(body)
    _say_allocations(manager, bodies)


def _ask_for_placeholders(manager: _Manager) -> None:
    rng = manager.rng
    gangs = [application for application in manager.applications.values() if application.task_groups]
    if not gangs:
        return
    application = rng.choice(gangs)
    bodies = []
    for _ in range(rng.randint(1, 4)):
        key = manager.new_name("ph")
        group = rng.choice([*application.task_groups])
        body = _allocation(manager, application, key, application.task_groups[group])
        body |= {"placeholder": True, "taskGroupName": group if manager.chance(0.98) else ""}
        application.placeholders.append(key)
        bodies.append(body)
    _say_allocations(manager, bodies)


def _some_key(manager: _Manager, application: _Application) -> str:
    keys = application.keys + application.placeholders
    return manager.rng.choice(keys) if keys else "unheard"


def _resize(manager: _Manager) -> None:
    application = manager.rng.choice([*manager.applications.values()])
    if application.keys:
        key = _some_key(manager, application)
        _say_allocations(manager, [_allocation(manager, application, key, _size(manager))])


def _place_externally(manager: _Manager) -> None:
    """Say of an ask that it runs on a node, or of something new, as after a restart of the scheduler."""
    application = manager.rng.choice([*manager.applications.values()])
    key = manager.new_name("k") if manager.chance(0.5) or not application.keys else manager.rng.choice(application.keys)
    body = _allocation(manager, application, key, _size(manager))
    body["nodeID"] = manager.rng.choice([*manager.nodes])
    if application.task_groups and manager.chance(0.3):
        body |= {"placeholder": manager.chance(0.5), "taskGroupName": next(iter(application.task_groups))}
    application.keys.append(key)
    _say_allocations(manager, [body])


def _name_foreign(manager: _Manager) -> None:
    """Tell of an allocation that somebody else made, or that it ended."""
    rng = manager.rng
    nobody = _Application("", rng.choice(manager.partitions))
    if manager.foreign and manager.chance(0.3):
        _say_releases(manager, nobody, [(rng.choice(manager.foreign), "STOPPED_BY_RM")])
        return
    key = rng.choice(manager.foreign) if manager.foreign and manager.chance(0.3) else manager.new_name("f")
    body = _allocation(manager, nobody, key, _size(manager))
    body |= {"nodeID": rng.choice([*manager.nodes]), "allocationTags": {"foreign": rng.choice(["static", "default"])}}
    manager.foreign.append(key)
    _say_allocations(manager, [body])


# ------------------------------------------------------------------------------------------ releases


def _say_releases(manager: _Manager, application: _Application, ends: list[tuple[str, str]]) -> None:
    bodies: list[Json] = [
        {
            "partitionName": application.partition,
            "applicationID": application.name,
            "allocationKey": key,
            "terminationType": termination,
        }
        for key, termination in ends
    ]
    if bodies:
        manager.say("allocation", {"rmID": RM_ID, "releases": {"allocationsToRelease": bodies}})


def _release(manager: _Manager) -> None:
    application = manager.rng.choice([*manager.applications.values()])
    ends = [(_some_key(manager, application), manager.rng.choice(_TERMINATIONS))]
    if manager.chance(0.1):
        ends = [("", manager.rng.choice(_TERMINATIONS))]
    _say_releases(manager, application, ends)


def _stop_several(manager: _Manager) -> None:
    application = manager.rng.choice([*manager.applications.values()])
    keys = manager.rng.sample(application.keys, min(len(application.keys), 3))
    _say_releases(manager, application, [(key, "STOPPED_BY_RM") for key in keys])


def _confirm_all(manager: _Manager) -> None:
    """Confirm every placeholder or allocation of an application, whether or not that was asked for."""
    application = manager.rng.choice([*manager.applications.values()])
    keys = application.placeholders if manager.chance(0.8) else application.keys
    termination = manager.rng.choice(_CONFIRMATIONS)
    for _ in range(2 if manager.chance(0.3) else 1):
        _say_releases(manager, application, [(key, termination) for key in keys])


# ------------------------------------------------------------------------------------- time and rules


def _advance(manager: _Manager) -> None:
    manager.say("advance", manager.rng.choice(_WAITS))


def _schedule(manager: _Manager) -> None:
    manager.say("schedule", manager.rng.choice([1, 2, 5, "all", "all"]))


def _confirm(manager: _Manager) -> None:
    manager.say("confirm", manager.rng.choice(["auto", "manual"]))


def _predicates(manager: _Manager) -> None:
    keys = [key for application in manager.applications.values() for key in application.keys]
    denied: list[Json] = [
        {"allocationKey": key, "nodeID": node}
        for key in manager.rng.sample(keys, min(len(keys), 4))
        for node in manager.rng.sample([*manager.nodes], min(len(manager.nodes), 2))
    ]
    manager.say("predicates", {"deny": denied, "denyAll": manager.chance(0.1)})


_ACTIONS: Final[dict[Callable[[_Manager], None], int]] = {
    _ask: 14,
    _schedule: 20,
    _advance: 8,
    _submit_applications: 5,
    _ask_for_placeholders: 6,
    _release: 4,
    _stop_several: 2,
    _confirm_all: 4,
    _confirm: 3,
    _resize: 2,
    _place_externally: 2,
    _name_foreign: 2,
    _create_nodes: 2,
    _change_node: 3,
    _remove_node: 1,
    _remove_application: 1,
    _reload: 2,
    _register_again: 1,
    _predicates: 2,
}
