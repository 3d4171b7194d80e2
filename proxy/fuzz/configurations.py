"""Random queue configurations, valid by construction, for random transcripts.

Queue names come from a small pool, so that a reload with another configuration of the same shape keeps
some queues, loses some, and turns leaves into parents.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final, TypeAlias

from .plans import one_of

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool"

USERS: Final = {
    "ada": ["analysts"],
    "bob": ["analysts", "builders"],
    "eve": [],
    "kim": ["cooks"],
    "lea": ["builders", "cooks"],
    "max": ["cooks", "analysts"],
    "noa": ["drivers"],
    "tom": ["drivers", "builders", "analysts"],
}
DYNAMIC_PARENT: Final = "dynamic"
GANGS: Final = "root.gangs"
"""A leaf in some configurations: gangs in it are placed whole, and it has a large guarantee."""
SPARE: Final = "root.spare"
"""A leaf next to `GANGS` without a guarantee: its work may be ended for the gangs."""
LEVELS: Final = ("block", "rack")
"""The levels of the topology of all partitions."""
_NAMES: Final = ("a", "b", "c")
_LEVELS_MAX: Final = 2
"""Levels below the root's children: three in total."""
_ROOM: Final = {"memory": 400, "vcore": 40}

INVALID_CONFIGURATIONS: Final = (
    "partitions: 7",
    "partitions:\n  - name: default\n    queues:\n      - name: root\n        colour: red\n",
    "partitions:\n  - name: default\n    queues:\n      - name: root\n        queues: [{name: 'no.dots'}]\n",
    "partitions: [{queues: [{name: a, resources: {guaranteed: {memory: 9}, max: {memory: 3}}}]}]",
    "partitions: [{queues: [{name: z}]}, {name: gpu, queues: [], placementrules: [{name: unheard}]}]",
    "partitions:\n  - name: default\n    placementrules: [{name: unheard}]\n    queues: [{name: root}]\n",
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The text of a configuration, and the queues that an application may ask for."""

    text: str
    leaves: tuple[str, ...]


@dataclass(slots=True)
class _Shape:
    """The choices that hold for a whole partition."""

    rng: random.Random
    limits_applications: bool
    leaves: list[str] = field(default_factory=list)


def random_configuration(rng: random.Random, partitions: tuple[str, ...] = ("default",)) -> Configuration:
    """Make a configuration for some partitions; all have the same leaves, so that any path is valid."""
    shape = _Shape(rng, limits_applications=rng.random() < 0.3)
    queues = _children(shape, "root", _ROOM, _LEVELS_MAX)
    documents = [_partition(shape, name, queues) for name in partitions]
    # Separate dice: without them all other choices are the same.
    dice = random.Random(json.dumps(documents))  # noqa: S311 - it plays, and keeps no secret
    lending = random.Random(f"lend {json.dumps(documents)}")  # noqa: S311 - as above
    most = dice.choice([0.0, 0.0, 0.3])
    lenders = lending.choice([0.0, 0.0, 0.7])
    for document in documents:
        for queue in queues_below(document):
            _let_use_count(queue, dice, most)
        for queue in queues_below(document):
            _let_lend(queue, lending, lenders)
        for queue in queues_below(document) if most else ():
            _place_gangs_whole(queue, dice)
    dice = random.Random(json.dumps(documents))  # noqa: S311 - as above
    for queue in chain.from_iterable(map(queues_below, documents)):
        _let_preempt_within(queue, dice)
    dice = random.Random(f"users {json.dumps(documents)}")  # noqa: S311 - as above
    most = dice.choice([0.0, 0.0, 0.4])
    for queue in chain.from_iterable(map(queues_below, documents)):
        _let_users_take_turns(queue, dice, most)
    dice = random.Random(f"backfill {json.dumps(documents)}")  # noqa: S311 - as above
    most = dice.choice([0.0, 0.0, 0.4])
    for queue in chain.from_iterable(map(queues_below, documents)):
        _let_backfill(queue, dice, most)
    dice = random.Random(f"gangs {json.dumps(documents)}")  # noqa: S311 - as above
    if dice.random() < 0.4:
        shape.leaves += [GANGS, SPARE]
        for document in documents:
            _guarantee_gangs(document)
    _reserve_nodes(documents)
    return Configuration(json.dumps({"partitions": documents}, indent=1), tuple(shape.leaves))


def _partition(shape: _Shape, name: str, queues: list[Json]) -> dict[str, Json]:
    rng = shape.rng
    root: dict[str, Json] = {"name": "root", "parent": True, "submitacl": "*", "queues": queues}
    if rng.random() < 0.4:
        root["limits"] = _limits(shape, _share_of(_ROOM), _LEVELS_MAX + 2)
    if rng.random() < 0.25:
        root["properties"] = _minimum_runtime(rng)
    document: dict[str, Json] = {"name": name, "topology": [*LEVELS], "queues": [root]}
    if rng.random() < 0.5:
        document["nodesortpolicy"] = {"type": rng.choice(["fair", "binpacking"])}
    if random.Random(f"racks {json.dumps(queues)}").random() < 0.3:  # noqa: S311 - it plays, and keeps no secret
        document["nodesortpolicy"] = {"type": "domainpacking"}
    if rng.random() < 0.3:
        document["preemption"] = {"enabled": rng.random() < 0.5, "quotapreemptionenabled": rng.random() < 0.5}
    if rng.random() < 0.4:
        preemption = document.setdefault("preemption", {})
        assert isinstance(preemption, dict), "it is made above"
        preemption["jobs"] = rng.choice(["whole", "parts"])
        preemption["victims"] = rng.choice(["least-work", "least-work", "youngest"])
    rules = _rules(rng)
    if rules:
        document["placementrules"] = rules
    return document


def _reserve_nodes(documents: list[dict[str, Json]]) -> None:
    """Give partitions a window, perhaps."""
    dice = random.Random(f"windows {json.dumps(documents)}")  # noqa: S311 - as above
    for document in documents if dice.random() < 0.2 else ():
        document["windows"] = _windows(dice)


def _windows(rng: random.Random) -> list[Json]:
    """Return a window of a rack; it is repeated, so that it is never over at a reload."""
    begin, minutes = datetime(2000, 1, 1, 0, rng.randrange(20)), rng.choice([1, 10, 300])  # noqa: DTZ001 - local
    holders: list[Json] = [{}, {"users": [rng.choice([*USERS])]}, {"queues": ["root"]}]
    return [
        {
            "name": "firmware",
            "attributes": {"rack": rng.choice(["r0", "r1", "r2"])},
            "from": begin.isoformat(),
            "to": (begin + timedelta(minutes=minutes)).isoformat(),
            "every": rng.choice(["1d", "7d"]),
            "zone": rng.choice(["UTC", "Europe/Stockholm"]),
            "drain": rng.choice(["0s", "5m"]),
            "for": rng.choice(holders),
        }
    ]


def queues_below(owner: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk the queues of a partition, or below a queue: each before those below it."""
    for queue in owner.get("queues", ()):
        yield queue
        yield from queues_below(queue)


def _let_use_count(queue: dict[str, Any], rng: random.Random, most: float) -> None:
    """Perhaps make the past use of a queue count, and give it a weight."""
    for owner in (queue, queue.get("childtemplate", {})):
        properties = owner.setdefault("properties", {})
        if rng.random() < most:
            properties["fair.half-life"] = rng.choice(["2ms", "20ms", "10s"])
        if rng.random() < most:  # Powers of two divide floats without rounding.
            properties["fair.weight"] = rng.choice(["1", "2", "8"])
        if not properties:
            del owner["properties"]


def _let_preempt_within(queue: dict[str, Any], rng: random.Random) -> None:
    """Perhaps allow asks of a queue to preempt lower priorities in their leaf."""
    if rng.random() < 0.25:
        properties = queue.setdefault("properties", {})
        properties["preemption.within"] = rng.choice(["lower-priority", "lower-priority", "never"])
        properties["preemption.delay"] = rng.choice(["1s", "10ms"])


def _let_backfill(queue: dict[str, Any], rng: random.Random, most: float) -> None:
    """Perhaps make a parent promise starts to waiting asks below it, and assume walltimes there."""
    if queue.get("queues") and rng.random() < most:
        properties = queue.setdefault("properties", {})
        properties["backfill.reservations"] = rng.choice(["1", "1", "3", "all"])
        properties["backfill.order"] = rng.choice(["queue", "shortest"])
        if rng.random() < 0.7:
            properties["runtime.default"] = rng.choice(["20ms", "10s", "1h"])
        if rng.random() < 0.3:
            properties["runtime.max"] = "1h"
        if rng.random() < 0.3:
            properties["runtime.overrun"] = rng.choice(["end", "extend"])


def _place_gangs_whole(queue: dict[str, Any], rng: random.Random) -> None:
    """Perhaps make a queue, with those below, place gangs whole."""
    if rng.random() < 0.5:
        queue.setdefault("properties", {})["gang.placing"] = rng.choice(["whole", "stepwise"])


def _guarantee_gangs(document: dict[str, Any]) -> None:
    """Add a leaf whose gangs are entitled to the resources of another leaf, which is added too."""
    guaranteed = {name: _text(name, most) for name, most in _ROOM.items()}
    properties = {"gang.placing": "whole", "preemption.delay": "10ms"}
    (root,) = document["queues"]
    root.pop("limits", None)
    gangs = {"resources": {"guaranteed": guaranteed}, "properties": properties}
    names = (path.removeprefix("root.") for path in (GANGS, SPARE))
    root["queues"] = [*root["queues"], {"name": next(names), **gangs}, {"name": next(names)}]
    document.get("preemption", {}).pop("enabled", None)


def _let_users_take_turns(queue: dict[str, Any], rng: random.Random, most: float) -> None:
    """Perhaps make a leaf order its users, some with weights; above leaves make all use count."""
    if rng.random() >= most:
        return
    below = queue.get("queues")
    properties = queue.get("childtemplate", queue).setdefault("properties", {})
    properties |= {"fair.count": "all"} if below else {"application.sort.policy": "users"}
    limits = queue.get("limits", [] if below else [{"users": ["ada"]}])
    for limit in limits:
        if "users" in limit:
            limit["weight"] = rng.choice([1, 2, 8])
    if limits:
        queue["limits"] = limits


def _let_lend(queue: dict[str, Any], rng: random.Random, most: float) -> None:
    """Perhaps make a queue lend a part of its guarantee, and keep the rest back."""
    resources = queue.get("resources", {})
    guaranteed = resources.get("guaranteed")
    if guaranteed and rng.random() < most:
        resources["lend"] = {name: _part_of(text, rng) for name, text in guaranteed.items()}


def _part_of(text: str, rng: random.Random) -> str:
    """Return nothing, half or all of a quantity in its notation."""
    number = text.removesuffix("m")
    return f"{int(number) * rng.randrange(3) // 2}{text.removeprefix(number)}"


def _rules(rng: random.Random) -> list[Json]:
    parent: Json = {"name": "fixed", "value": f"root.{DYNAMIC_PARENT}", "create": True}
    provided: Json = {"name": "provided", "create": rng.random() < 0.3}
    by_tag: Json = {"name": "tag", "value": "namespace", "create": True, "parent": parent}
    by_user: Json = {"name": "user", "create": rng.random() < 0.7, "parent": parent}
    choices: list[list[Json]] = [
        [],
        [by_tag, provided],
        [provided, by_tag],
        [provided, by_user],
        [provided, by_tag, by_user],
    ]
    return rng.choice(choices)


def _children(shape: _Shape, path: str, room: dict[str, int], levels: int) -> list[Json]:
    """Make the queues below a parent; `room` limits their maxima, and thereby their guarantees."""
    rng = shape.rng
    names = rng.sample(_NAMES, rng.randint(1, len(_NAMES)))
    children = [_queue(shape, f"{path}.{name}", room, levels) for name in names]
    if path == "root":
        children.append(_dynamic_parent(rng))
    return [*children]


def _queue(shape: _Shape, path: str, room: dict[str, int], levels: int) -> dict[str, Json]:
    rng = shape.rng
    queue: dict[str, Json] = {"name": path.rpartition(".")[2]}
    resources: dict[str, Json] = {}
    maximum = {name: rng.randint(most // 3, most) for name, most in room.items() if rng.random() < 0.8}
    if rng.random() < 0.6 and maximum:
        resources["max"] = {name: _text(name, most) for name, most in maximum.items()}
        room = room | maximum
    if levels == 0 or rng.random() < 0.5:
        # Only leaves have guarantees: three levels of at most three make 27 shares of the smallest room.
        if rng.random() < 0.5:
            resources["guaranteed"] = {name: _text(name, max(most // 27, 1)) for name, most in room.items()}
        shape.leaves.append(path)
    else:
        below = _children(shape, path, room, levels - 1)
        queue |= {"parent": True, "queues": below}
    if resources:
        queue["resources"] = resources
    if "parent" not in queue and rng.random() < 0.2:
        queue["maxapplications"] = rng.randint(levels + 1, levels + 2)
    if rng.random() < 0.3:
        queue["limits"] = _limits(shape, _share_of(room), levels + 1)
    properties = _properties(rng, leaf="parent" not in queue)
    if properties:
        queue["properties"] = properties
    return queue


def _text(name: str, quantity: int) -> str:
    """Write a quantity of the configuration: whole cores there, thousandths on the wire."""
    return f"{quantity}" if name != "vcore" else f"{quantity * 100}m"


def _dynamic_parent(rng: random.Random) -> dict[str, Json]:
    queue: dict[str, Json] = {"name": DYNAMIC_PARENT, "parent": True}
    if rng.random() < 0.5:
        template: dict[str, Json] = {"maxapplications": rng.randint(1, 3)}
        if rng.random() < 0.7:
            template["resources"] = {"max": {"memory": f"{rng.randint(20, 90)}"}}
        if rng.random() < 0.5:
            template["properties"] = {
                "application.sort.policy": rng.choice(["fair", "fifo"]),
                **_minimum_runtime(rng),
            }
        queue["childtemplate"] = template
    return queue


def _minimum_runtime(rng: random.Random) -> dict[str, Json]:
    properties: dict[str, Json] = {"preemption.min-runtime": rng.choice(["2s", "20s", "90s"])}
    if rng.random() < 0.3:
        properties["preemption.min-runtime.scope"] = rng.choice(["guarantee", "all"])
    return properties


def _properties(rng: random.Random, *, leaf: bool) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    if leaf and rng.random() < 0.4:
        properties["application.sort.policy"] = rng.choice(["fair", "fifo"])
    if leaf and rng.random() < 0.15:
        properties["application.unschedasks.backoff"] = "1"
        properties["application.unschedasks.backoff.delay"] = "2s"
    if rng.random() < 0.2:
        properties["priority.offset"] = str(rng.randint(-5, 5))
    if rng.random() < 0.1:
        properties["priority.policy"] = "fence"
    if rng.random() < 0.1:
        properties["application.sort.priority"] = "disabled"
    if rng.random() < 0.2:
        properties["preemption.policy"] = rng.choice(["fence", "disabled"])
    if leaf and rng.random() < 0.3:
        properties["preemption.delay"] = "1s"
    if leaf and rng.random() < 0.2:
        properties["quota.preemption.delay"] = "1s"
    return properties | _costs_of_preemption(rng)


def _costs_of_preemption(rng: random.Random) -> dict[str, Json]:
    properties: dict[str, Json] = _minimum_runtime(rng) if rng.random() < 0.1 else {}
    if rng.random() < 0.1:
        properties["preemption.victims-max"] = rng.choice(["1/5s", "2/20s", "3/1m"])
    return properties


def _share_of(room: dict[str, int]) -> dict[str, int]:
    return {name: most // 2 + 1 for name, most in room.items()}


def _limits(shape: _Shape, most: dict[str, int], applications_max: int) -> list[Json]:
    """Limit some users and a group; the amounts are smaller further down, so that each is valid below."""
    rng = shape.rng
    limited = [users for users in (["ada"], ["bob", "eve"], ["*"]) if rng.random() < 0.5]
    limits: list[Json] = [_limit(shape, {"users": [*users]}, most, applications_max) for users in limited]
    if not limits or rng.random() < 0.3:
        limits.append(_limit(shape, {"groups": ["analysts"]}, most, applications_max))
        if rng.random() < 0.5:
            limits.append(_limit(shape, {"groups": ["*"]}, most, applications_max))
    return limits


def _limit(
    shape: _Shape, whom: dict[str, Json], most: dict[str, int], applications_max: int
) -> dict[str, Json]:
    limit: dict[str, Json] = {"limit": "", **whom}
    limit["maxresources"] = {name: _text(name, quantity) for name, quantity in most.items()}
    if shape.limits_applications:
        limit["maxapplications"] = applications_max
    return limit


def node_size(rng: random.Random) -> dict[str, int]:
    """Return the size of a node, in the units of the queues."""
    return {"memory": rng.randint(30, 150), "vcore": rng.randint(300, 1500)}


def task_size(rng: random.Random) -> dict[str, int]:
    """Return the request of a task, one of a few sizes, in the units of the queues."""
    return {"memory": one_of(rng, (5, 10, 10, 20, 40)), "vcore": one_of(rng, (50, 100, 100, 400))}
