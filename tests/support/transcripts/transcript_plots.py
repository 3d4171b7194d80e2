"""Short sequences in random transcripts, about moments that mere chance would seldom meet.

A swap of a placeholder waits for its confirmation, or a reservation for room; then something comes between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from support.transcripts.random_manager import Task
from support.transcripts.transcript_lines import RM_ID, resource

from licorne.proxy.fuzz.configurations import USERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.transcripts.random_manager import RandomManager
    from support.transcripts.transcript_lines import Json

__all__ = ["play_gang", "play_reservation"]

_GROUP: Final = "tg"
_ROOM: Final[dict[str, int]] = {"memory": 100, "vcore": 1000}
_SIZE: Final[dict[str, int]] = {"memory": 10, "vcore": 100}


def play_gang(manager: RandomManager) -> None:
    """Swap placeholders for members, and let something come between asking and confirming."""
    rng = manager.rng
    nodes = [_new_node(manager) for _ in range(rng.randint(1, 2))]
    task = _new_task(manager, placeholders=rng.randint(1, 4))
    _ask(manager, task, task.placeholders, placeholder=True)
    manager.say("schedule", "all" if manager.chance(0.8) else 1)
    manager.say("confirm", "manual" if manager.chance(0.8) else "auto")
    task.keys = [manager.new_name("k") for _ in range(rng.randint(1, 4))]
    if manager.chance(0.4):
        pairs: list[Json] = [{"allocationKey": key, "nodeID": nodes[0]} for key in task.keys]
        manager.say("predicates", {"deny": pairs})
    _ask(manager, task, task.keys, placeholder=False)
    manager.say("schedule", rng.choice([1, 2, "all"]))
    for _ in range(rng.randint(0, 2)):
        rng.choice(_DISTURBANCES)(manager, task)
    for _ in range(rng.randint(1, 2)):
        manager.say_releases(task, [(key, "PLACEHOLDER_REPLACED") for key in task.placeholders])
    manager.say("confirm", "auto")
    manager.say("schedule", "all")


def play_reservation(manager: RandomManager) -> None:
    """Fill a node until asks have to reserve it, and let something come between."""
    rng = manager.rng
    node = _new_node(manager)
    task = _new_task(manager, placeholders=0)
    task.keys = [manager.new_name("k") for _ in range(10)]
    _ask(manager, task, task.keys, placeholder=False)
    manager.say("schedule", "all")
    other = task if manager.chance(0.5) else _new_task(manager, placeholders=0)
    wanted = [manager.new_name("k") for _ in range(rng.randint(1, 3))]
    tags: dict[str, Json] = {"yunikorn.apache.org/requiredNode": node} if manager.chance(0.3) else {}
    _ask(manager, other, wanted, placeholder=False, tags=tags)
    other.keys += wanted
    manager.say("schedule", "all")
    manager.say("advance", "3s")
    manager.say("schedule", rng.choice([1, 3]))
    for _ in range(rng.randint(0, 2)):
        rng.choice(_DISTURBANCES)(manager, rng.choice([task, other]))
    ended = rng.sample(task.keys, min(3, len(task.keys)))
    manager.say_releases(task, [(key, "STOPPED_BY_RM") for key in ended])
    manager.say("schedule", rng.choice([1, "all"]))


def _new_node(manager: RandomManager) -> str:
    node = manager.new_name("n")
    manager.nodes[node] = "default"
    manager.say_node(node, "CREATE", _ROOM)
    return node


def _new_task(manager: RandomManager, *, placeholders: int) -> Task:
    """Submit an application, a gang if it has placeholders."""
    task = Task(manager.new_name("app"), "default")
    manager.tasks[task.name] = task
    user = manager.rng.choice([*USERS])
    body: dict[str, Json] = {"applicationID": task.name, "partitionName": "default"}
    body["queueName"] = manager.rng.choice(manager.configuration.leaves)
    body["ugi"] = {"user": user, "groups": [*USERS[user]]}
    if placeholders:
        task.task_groups[_GROUP] = _SIZE
        task.placeholders = [manager.new_name("ph") for _ in range(placeholders)]
        body["placeholderAsk"] = resource({name: most * placeholders for name, most in _SIZE.items()})
        body["gangSchedulingStyle"] = manager.rng.choice(["Soft", "Hard"])
        body["executionTimeoutMilliSeconds"] = "4000"
    manager.say("application", {"rmID": RM_ID, "new": [body]})
    return task


def _ask(
    manager: RandomManager,
    task: Task,
    keys: list[str],
    *,
    placeholder: bool,
    tags: dict[str, Json] | None = None,
) -> None:
    """Ask for keys of the usual size; now and then a member is smaller or larger than its placeholder."""
    bodies = []
    for key in keys:
        size = _SIZE
        if not placeholder and manager.chance(0.2):
            size = {"memory": manager.rng.choice([4, 14]), "vcore": 100}
        body = manager.allocation(task, key, size)
        if task.task_groups:
            body |= {"taskGroupName": _GROUP, "placeholder": placeholder}
        if tags:
            body["allocationTags"] = tags
        bodies.append(body)
    manager.say_allocations(bodies)


# --------------------------------------------------------------------------------------- disturbances


def _remove_node(manager: RandomManager, _task: Task) -> None:
    node = manager.some_node()
    manager.gone.add(node)
    manager.say_node(node, "DECOMISSION")


def _drain_node(manager: RandomManager, _task: Task) -> None:
    manager.say_node(manager.some_node(), manager.rng.choice(["DRAIN_NODE", "DRAIN_TO_SCHEDULABLE"]))


def _shrink_node(manager: RandomManager, _task: Task) -> None:
    manager.say_node(manager.some_node(), "UPDATE", manager.some_capacity())


def _release_one(manager: RandomManager, task: Task) -> None:
    kinds = ["STOPPED_BY_RM", "TIMEOUT", "PREEMPTED_BY_SCHEDULER", "PLACEHOLDER_REPLACED"]
    manager.say_releases(task, [(manager.some_key(task), manager.rng.choice(kinds))])


def _release_all(manager: RandomManager, task: Task) -> None:
    manager.say_releases(task, [("", manager.rng.choice(["STOPPED_BY_RM", "TIMEOUT"]))])


def _resize_one(manager: RandomManager, task: Task) -> None:
    size = {"memory": manager.rng.choice([5, 20]), "vcore": 100}
    manager.say_allocations([manager.allocation(task, manager.some_key(task), size)])


def _place_one(manager: RandomManager, task: Task) -> None:
    body = manager.allocation(task, manager.some_key(task), _SIZE)
    manager.say_allocations([body | {"nodeID": manager.some_node()}])


def _remove_task(manager: RandomManager, task: Task) -> None:
    manager.gone.add(task.name)
    manager.say_removal(task)


def _wait(manager: RandomManager, _task: Task) -> None:
    manager.say("advance", manager.rng.choice(["1s", "5s", "31s"]))


def _schedule(manager: RandomManager, _task: Task) -> None:
    manager.say("schedule", "all")


_DISTURBANCES: Final[tuple[Callable[[RandomManager, Task], None], ...]] = (
    _remove_node,
    _drain_node,
    _shrink_node,
    _release_one,
    _release_one,
    _release_all,
    _resize_one,
    _place_one,
    _remove_task,
    _wait,
    _schedule,
)
