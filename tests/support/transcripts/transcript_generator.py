"""Random transcripts: everything that a resource manager may say, in any order, sane or not.

A seed gives the same transcript on every machine. A transcript is blind: it was not made with a scheduler
at hand. So it confirms releases that were not asked for, and some that the scheduler did ask for, late or
twice; it changes nodes that are gone, and names keys that have ended.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final

from support.transcripts.random_manager import RandomManager, Task
from support.transcripts.transcript_lines import RM_ID, resource
from support.transcripts.transcript_plots import play_gang, play_reservation

from licorne.proxy.fuzz.configurations import (
    DYNAMIC_PARENT,
    INVALID_CONFIGURATIONS,
    USERS,
    random_configuration,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.transcripts.transcript_lines import Json

__all__ = ["random_transcript"]

_CONFIRMATIONS: Final = ("TIMEOUT", "PLACEHOLDER_REPLACED", "PREEMPTED_BY_SCHEDULER")
_TERMINATIONS: Final = ("STOPPED_BY_RM", "STOPPED_BY_RM", "UNKNOWN_TERMINATION_TYPE", *_CONFIRMATIONS)
_WAITS: Final = ("10ms", "500ms", "1s", "2s", "2s", "3s", "5s", "5s", "11s", "31s")
_ODD_QUEUES: Final = (
    "",
    "root.a",
    "root.b.c",
    "root",
    "unheard",
    f"root.{DYNAMIC_PARENT}.x",
    "root.bad name",
)


def random_transcript(seed: int, length: int = 60) -> list[str]:
    """Make the lines of a transcript; after about `length` lines everything is released and removed."""
    rng = random.Random(seed)  # noqa: S311 - dice, no secrets
    partitions = ("default", "gpu") if rng.random() < 0.15 else ("default",)
    manager = RandomManager(rng, partitions, random_configuration(rng, partitions))
    _register(manager)
    for _ in range(rng.randint(2, 4)):
        _create_node(manager)
    _submit_applications(manager)
    actions = [*_ACTIONS]
    weights = [_ACTIONS[action] for action in actions]
    while len(manager.lines) < length:
        rng.choices(actions, weights)[0](manager)
        if rng.random() < 0.4:
            manager.say("advance", "10ms")
    _end(manager)
    return manager.lines


# ------------------------------------------------------------------------------------------- the end


def _end(manager: RandomManager) -> None:
    """Release and remove everything that was ever named, in one of several orders."""
    manager.say("confirm", "auto")
    farewells = [_release_everything, _remove_all_applications, _remove_all_nodes]
    manager.rng.shuffle(farewells)
    for farewell in farewells:
        farewell(manager)
    manager.say("advance", "1s")


def _release_everything(manager: RandomManager) -> None:
    for task in manager.tasks.values():
        keys = [""] if manager.chance(0.5) else [*task.placeholders, *task.keys]
        manager.say_releases(task, [(key, "STOPPED_BY_RM") for key in keys])
    for partition in manager.partitions:
        manager.say_releases(Task("", partition), [(key, "STOPPED_BY_RM") for key in manager.foreign])


def _remove_all_applications(manager: RandomManager) -> None:
    for task in manager.tasks.values():
        manager.say_removal(task)


def _remove_all_nodes(manager: RandomManager) -> None:
    for node in manager.nodes:
        manager.say_node(node, "DECOMISSION")


# ------------------------------------------------------------------------------------- configuration


def _register(manager: RandomManager) -> None:
    text = manager.configuration.text
    manager.say("register", {"rmID": RM_ID, "policyGroup": "queues", "config": text})


def _register_again(manager: RandomManager) -> None:
    if manager.chance(0.3):
        _register(manager)


def _reload(manager: RandomManager) -> None:
    text = manager.configuration.text
    if manager.chance(0.3):
        text = manager.rng.choice(INVALID_CONFIGURATIONS)
    elif manager.chance(0.9):
        partitions = manager.partitions[: manager.rng.randint(1, len(manager.partitions))]
        manager.configuration = random_configuration(manager.rng, partitions)
        text = manager.configuration.text
    manager.say("configuration", {"rmID": RM_ID, "config": text})


# --------------------------------------------------------------------------------------------- nodes


def _create_node(manager: RandomManager) -> None:
    node = manager.new_name("n")
    if manager.nodes and manager.chance(0.1):
        node = manager.rng.choice([*manager.nodes])
    manager.gone.discard(node)
    manager.nodes.setdefault(node, manager.rng.choice(manager.partitions))
    manager.say_node(node, "CREATE_DRAIN" if manager.chance(0.1) else "CREATE", manager.some_capacity())


def _change_node(manager: RandomManager) -> None:
    action = manager.rng.choice(["UPDATE", "UPDATE", "DRAIN_NODE", "DRAIN_TO_SCHEDULABLE"])
    manager.say_node(manager.some_node(), action, manager.some_capacity() if action == "UPDATE" else None)


def _remove_node(manager: RandomManager) -> None:
    node = manager.some_node()
    manager.gone.add(node)
    manager.say_node(node, "DECOMISSION")


# -------------------------------------------------------------------------------------- applications


def _submit_applications(manager: RandomManager) -> None:
    bodies = [_new_application(manager) for _ in range(manager.rng.randint(1, 2))]
    manager.say("application", {"rmID": RM_ID, "new": [*bodies]})


def _new_application(manager: RandomManager) -> Json:
    rng = manager.rng
    name = manager.new_name("app")
    if manager.tasks and manager.chance(0.1):
        name = rng.choice([*manager.tasks])
    manager.gone.discard(name)
    task = manager.tasks.setdefault(name, Task(name, rng.choice(manager.partitions)))
    user = rng.choice([*USERS]) if manager.chance(0.98) else ""
    body: dict[str, Json] = {"applicationID": name, "partitionName": task.partition}
    body["queueName"] = rng.choice(manager.configuration.leaves if manager.chance(0.9) else _ODD_QUEUES)
    body["ugi"] = {"user": user, "groups": [*USERS.get(user, [])]}
    body["tags"] = _tags(manager)
    if manager.chance(0.3):
        _add_gang(manager, task, body)
    elif manager.chance(0.2):
        body["executionTimeoutMilliSeconds"] = str(rng.choice([1500, 5000, 60_000]))
    return body


def _tags(manager: RandomManager) -> dict[str, Json]:
    tags: dict[str, Json] = {}
    if manager.chance(0.5):
        tags["namespace"] = manager.rng.choice(["dev", "prod", "test.it"])
    if manager.chance(0.1):
        tags["namespace.resourcequota"] = json.dumps(resource({"memory": manager.rng.randint(20, 80)}))
    if manager.chance(0.1):
        tags["namespace.resourcemaxapps"] = "2"
    if manager.chance(0.05):
        tags["application.create.force"] = "true"
    return tags


def _add_gang(manager: RandomManager, task: Task, body: dict[str, Json]) -> None:
    """Announce the placeholders of a gang; they are asked for later, perhaps others than these."""
    rng = manager.rng
    for group in ("tg1", "tg2")[: rng.randint(1, 2)]:
        task.task_groups[group] = manager.some_size()
    count = rng.randint(1, 4)
    sizes = task.task_groups.values()
    total = {name: count * sum(size[name] for size in sizes) for name in ("memory", "vcore")}
    body["placeholderAsk"] = resource(total)
    body["gangSchedulingStyle"] = rng.choice(["Soft", "Hard", ""])
    body["executionTimeoutMilliSeconds"] = str(rng.choice([0, 1500, 5000]))


def _remove_application(manager: RandomManager) -> None:
    task = manager.some_task()
    manager.gone.add(task.name)
    manager.say_removal(task)


# --------------------------------------------------------------------------------------- allocations


def _ask(manager: RandomManager) -> None:
    """Ask for a few allocations of one application, some for its gang."""
    task = manager.some_task()
    manager.say_allocations([_new_ask(manager, task) for _ in range(manager.rng.randint(1, 4))])


def _ask_with_limits(manager: RandomManager) -> None:
    """Ask in the older generation, now and then once more for what is known."""
    task = manager.some_task()
    bodies = [_new_ask(manager, task) for _ in range(manager.rng.randint(1, 3))]
    if manager.chance(0.3):
        bodies.append(manager.allocation(task, manager.some_key(task), manager.some_size()))
    manager.say_older_asks(bodies)


def _new_ask(manager: RandomManager, task: Task) -> dict[str, Json]:
    rng = manager.rng
    key = rng.choice(task.keys) if task.keys and manager.chance(0.05) else manager.new_name("k")
    body = manager.allocation(task, key, manager.some_size())
    if task.task_groups and manager.chance(0.7):
        group = rng.choice([*task.task_groups])
        body["taskGroupName"] = group
        if manager.chance(0.8):
            body["resourcePerAlloc"] = resource(task.task_groups[group])
    if manager.chance(0.1):
        body["allocationTags"] = {"yunikorn.apache.org/requiredNode": manager.some_node()}
    task.keys.append(key)
    return body


def _ask_for_placeholders(manager: RandomManager) -> None:
    gangs = [task for task in manager.tasks.values() if task.task_groups and task.name not in manager.gone]
    if not gangs:
        return
    task = manager.rng.choice(gangs[-2:])
    bodies = []
    for _ in range(manager.rng.randint(1, 4)):
        key = manager.new_name("ph")
        group = manager.rng.choice([*task.task_groups])
        body = manager.allocation(task, key, task.task_groups[group])
        body |= {"placeholder": True, "taskGroupName": group if manager.chance(0.98) else ""}
        task.placeholders.append(key)
        bodies.append(body)
    manager.say_allocations(bodies)


def _resize(manager: RandomManager) -> None:
    task = manager.some_task()
    if task.keys:
        body = manager.allocation(task, manager.some_key(task), manager.some_size())
        manager.say_allocations([body])


def _place_externally(manager: RandomManager) -> None:
    """Say of an ask that it runs on a node, or of something new, as after a restart of the scheduler."""
    task = manager.some_task()
    key = manager.rng.choice(task.keys) if task.keys and manager.chance(0.5) else manager.new_name("k")
    body = manager.allocation(task, key, manager.some_size())
    body["nodeID"] = manager.some_node()
    if task.task_groups and manager.chance(0.3):
        body |= {"placeholder": manager.chance(0.5), "taskGroupName": next(iter(task.task_groups))}
    task.keys.append(key)
    manager.say_allocations([body])


def _borrow_key(manager: RandomManager) -> None:
    """Ask under a key that belongs to another application."""
    keys = [key for task in manager.tasks.values() for key in task.keys]
    if not keys or manager.chance(0.8):
        return
    task = manager.some_task()
    body = manager.allocation(task, manager.rng.choice(keys), manager.some_size())
    if manager.chance(0.5):
        body["nodeID"] = manager.some_node()
    manager.say_allocations([body])


def _name_foreign(manager: RandomManager) -> None:
    """Report an allocation that was made elsewhere, or its end."""
    rng = manager.rng
    nobody = Task("", rng.choice(manager.partitions))
    if manager.foreign and manager.chance(0.3):
        manager.say_releases(nobody, [(rng.choice(manager.foreign), "STOPPED_BY_RM")])
        return
    key = rng.choice(manager.foreign) if manager.foreign and manager.chance(0.3) else manager.new_name("f")
    body = manager.allocation(nobody, key, manager.some_size())
    body |= {"nodeID": manager.some_node(), "allocationTags": {"foreign": rng.choice(["static", "default"])}}
    manager.foreign.append(key)
    manager.say_allocations([body])


# ------------------------------------------------------------------------------------------ releases


def _release(manager: RandomManager) -> None:
    task = manager.some_task()
    key = "" if manager.chance(0.1) else manager.some_key(task)
    manager.say_releases(task, [(key, manager.rng.choice(_TERMINATIONS))])


def _stop_several(manager: RandomManager) -> None:
    task = manager.some_task()
    keys = manager.rng.sample(task.keys, min(len(task.keys), 3))
    manager.say_releases(task, [(key, "STOPPED_BY_RM") for key in keys])


def _confirm_several(manager: RandomManager) -> None:
    """Confirm placeholders or allocations of an application, whether or not that was asked for."""
    task = manager.some_task()
    keys = task.placeholders if manager.chance(0.8) else task.keys
    keys = keys[-manager.rng.randint(1, 4) :]
    termination = manager.rng.choice(_CONFIRMATIONS)
    for _ in range(2 if manager.chance(0.3) else 1):
        manager.say_releases(task, [(key, termination) for key in keys])


# ------------------------------------------------------------------------------------- time and rules


def _advance(manager: RandomManager) -> None:
    manager.say("advance", manager.rng.choice(_WAITS))


def _schedule(manager: RandomManager) -> None:
    manager.say("schedule", manager.rng.choice([1, 2, 5, "all", "all"]))


def _confirm(manager: RandomManager) -> None:
    manager.say("confirm", manager.rng.choice(["auto", "manual"]))


def _predicates(manager: RandomManager) -> None:
    keys = [key for task in manager.tasks.values() for key in task.keys][-20:]
    denied: list[Json] = [
        {"allocationKey": key, "nodeID": manager.some_node()}
        for key in manager.rng.sample(keys, min(len(keys), 4))
    ]
    manager.say("predicates", {"deny": denied, "denyAll": manager.chance(0.1)})


_ACTIONS: Final[dict[Callable[[RandomManager], None], int]] = {
    _ask: 18,
    _ask_with_limits: 3,
    _schedule: 24,
    _advance: 8,
    _submit_applications: 6,
    _ask_for_placeholders: 6,
    _release: 4,
    _stop_several: 2,
    _confirm_several: 4,
    _confirm: 2,
    _resize: 2,
    _place_externally: 2,
    _name_foreign: 2,
    _create_node: 2,
    _change_node: 3,
    _remove_node: 1,
    _remove_application: 1,
    _reload: 2,
    _register_again: 1,
    _predicates: 2,
    _borrow_key: 1,
    play_gang: 3,
    play_reservation: 2,
}
