"""Transcripts of simulated resource managers (RMs), changed until much of them is strange.

An honest RM of the simulator speaks with a scheduler, and what it says becomes lines. Then lines are lost,
repeated or swapped, names and numbers in them replaced, and lines added that no honest RM sends. A seed gives
the same transcript on every machine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from support.transcripts.transcript_lines import RM_ID, releases_line

from licorne import Scheduler
from licorne.proxy.fuzz.configurations import INVALID_CONFIGURATIONS, Configuration, random_configuration
from licorne.proxy.fuzz.manager.manager import SimulatedManager
from licorne.proxy.fuzz.plans import PROCESS, by_weight, one_of
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import SchedulerAPI

_VERBS: Final = {
    "RegisterResourceManagerRequest": "register",
    "UpdateConfigurationRequest": "configuration",
    "NodeRequest": "node",
    "ApplicationRequest": "application",
    "AllocationRequest": "allocation",
}
_BEGINNING: Final = ("add node", "add node", "submit", "ask", "submit")
_ACTIONS: Final = by_weight(
    {
        "ask": 30,
        "submit": 10,
        "finish": 10,
        "confirm": 8,
        "withdraw": 3,
        "report foreign": 3,
        "change node": 3,
        "add node": 2,
        "remove application": 2,
        "reload": 2,
        "remove node": 1,
        "change partitions": 1,
    }
)
_PAUSES_MS: Final = (0, 0, 0, 10, 10, 10, 1_000, 2_000, 3_000, 11_000)
_STRANGE: Final = 0.2
"""How many lines are changed."""
_ODD: Final[dict[str, tuple[Any, ...]]] = {
    "value": ("0", "-1", "1000000", "1"),
    "priority": (-3, 2**31 - 1),
    "terminationType": ("STOPPED_BY_RM", "UNKNOWN_TERMINATION_TYPE", *si.TerminationType.keys()[2:5]),
    "allocationKey": ("", "unknown"),
    "queueName": ("", "root", "root.bad name", "unknown", "root.b.c"),
    "executionTimeoutMilliSeconds": ("0", "1500", "5000"),
    "action": ("UPDATE", "DRAIN_NODE", "DRAIN_TO_SCHEDULABLE", "DECOMISSION", "CREATE"),
}
"""What the fields of a message may say instead, besides what they say elsewhere."""
_FIXED: Final = frozenset({"rmID", "partitionName", "attributes", "si/node-partition"})
_TAGS: Final = (
    {"namespace": "dev"},
    {"namespace": "prod", "namespace.resourcequota": '{"resources": {"memory": {"value": 60}}}'},
    {"namespace": "test.it", "namespace.resourcemaxapps": "2"},
    {"application.create.force": "true"},
)


class _World:
    """The world of one RM that speaks with a stepped scheduler."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def note(self, _: str, verb: str, message: Any) -> None:
        if verb == "says":
            self.add(message)

    def add(self, message: Any) -> None:
        body = MessageToDict(message, preserving_proto_field_name=True) | {"rmID": RM_ID}
        # The order of a map's entries differs between processes.
        self.lines.append({_VERBS[type(message).__name__]: json.loads(json.dumps(body, sort_keys=True))})

    def fail(self, error: BaseException) -> None:
        raise error

    def with_policies(self, configuration: Configuration) -> Configuration:
        return configuration

    def scheduler_time_ns(self) -> None:
        """Return no time: no check needs one."""

    def sleep(self, seconds: float) -> None:
        """Stay at the same time: it is for other engines."""

    def new_door(self, rm_id: str, door: str, *, beside: bool = False) -> SchedulerAPI:
        raise NotImplementedError(f"{rm_id} never restarts at {door}")


def simulated_transcript(seed: int, length: int = 30, partitions: tuple[str, ...] | None = None) -> list[str]:
    """Return the lines of a transcript.

    Args:
        seed: Decides all of it.
        length: How many steps the RM takes; after these it ends everything that was ever named.
        partitions: Those that it begins with; drawn by the seed unless given.
    """
    return [*_lines(seed, length, partitions)]


@cache
def _lines(seed: int, length: int, partitions: tuple[str, ...] | None) -> tuple[str, ...]:
    rng = random.Random(f"transcript {seed}")  # noqa: S311 - it plays, and keeps no secret
    said = _honest(length, rng, partitions)
    strange = [*_changed(said, rng, partitions or ("default",))]
    return tuple(json.dumps(each) for each in (*strange, *_ends(strange)))


def _honest(length: int, rng: random.Random, partitions: tuple[str, ...] | None) -> list[dict[str, Any]]:
    world = _World()
    with Scheduler(engine="direct", stepped=True) as scheduler:
        manager = SimulatedManager(RM_ID, rng, world, PROCESS)
        if partitions is not None:
            manager.partitions = partitions
            manager.configuration = random_configuration(rng, partitions)
        register = si.RegisterResourceManagerRequest(policyGroup="queues", config=manager.configuration.text)
        world.add(register)
        manager.connect(scheduler)
        beginning = ("add node",) * (3 * len(partitions or ())) + _BEGINNING
        for number in range(length):
            action = beginning[number] if number < len(beginning) else one_of(rng, _ACTIONS)
            manager.act(action, rng.getrandbits(32))
            world.lines.append({"schedule": "all"})
            scheduler.run_until_idle()
            pause_ms = one_of(rng, _PAUSES_MS)
            if pause_ms:
                world.lines.append({"advance": f"{pause_ms}ms"})
                scheduler.advance_to(scheduler.now_ns() + pause_ms * 1_000_000)
                scheduler.run_until_idle()
    return world.lines


# ------------------------------------------------------------------------------------------- the changes


def _changed(
    said: list[dict[str, Any]], rng: random.Random, partitions: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the lines, some of them changed, with others between them; the registration comes first."""
    known = _values(said)
    yield said[0]
    late: list[dict[str, Any]] = []
    for each in said[1:]:
        draw = rng.random() / _STRANGE
        if draw < 0.1:
            continue
        if draw < 0.3:
            late.append(each)
        yield _altered(each, known, rng) if 0.3 <= draw < 0.8 else each
        if 0.8 <= draw < 1:
            yield _added(said, known, rng, partitions)
        if late and rng.random() < 0.2:
            yield late.pop(0)


def _values(document: Any) -> dict[str, list[Any]]:
    """Return what each field says anywhere, once."""
    known: dict[str, dict[str, Any]] = {}

    def collect(value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                collect(each)
        elif isinstance(value, dict):
            for name, each in value.items():
                known.setdefault(name, {})[json.dumps(each)] = each
                collect(each)

    collect(document)
    return {name: [*values.values()] for name, values in known.items()}


def _altered(row: dict[str, Any], known: dict[str, list[Any]], rng: random.Random) -> dict[str, Any]:
    """Return a line with one or two of its fields changed, or with new ones."""
    row = deepcopy(row)
    if {"schedule", "advance", "configuration", "register"} & row.keys():
        return {"schedule": one_of(rng, (1, 2, 5))} if "schedule" in row else row
    (body,) = row.values()
    for _ in range(rng.randint(1, 2)):
        holders = [*_objects(body)]
        holder = one_of(rng, holders)
        if "applicationID" in holder and "ugi" in holder and rng.random() < 0.5:
            holder["tags"] = one_of(rng, _TAGS)
        elif "resourcePerAlloc" in holder and rng.random() < 0.6:
            _alter_ask(body, holder, known, rng)
        else:
            name = one_of(rng, [*holder])
            choices = [*_ODD.get(name, ()), *known.get(name, [])]
            if name not in _FIXED and choices:
                holder[name] = one_of(rng, choices)
    return row


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for each in value:
            yield from _objects(each)
    elif isinstance(value, dict):
        if value:
            yield value
        for each in value.values():
            yield from _objects(each)


def _alter_ask(
    request: dict[str, Any], ask: dict[str, Any], known: dict[str, list[Any]], rng: random.Random
) -> None:
    """Have an ask need a node, run on one, originate its application, or be one of the older generation."""
    kind = rng.randrange(4)
    if kind == 0:
        ask["allocationTags"] = {"yunikorn.apache.org/requiredNode": one_of(rng, known.get("nodeID", ["n"]))}
    elif kind == 1:
        ask["nodeID"] = one_of(rng, known.get("nodeID", ["n"]))
    elif kind == 2:
        ask["originator"] = True
    elif not ask.get("nodeID") and ask in request.get("allocations", []):
        request["allocations"].remove(ask)
        ask |= {"resourceAsk": ask.pop("resourcePerAlloc"), "maxAllocations": 1}
        ask["executionTimeoutMilliSeconds"] = one_of(rng, ("0", "500", "4000", "60000"))
        ask.pop("allocationTags", None)
        request["asks"] = [ask]


def _added(
    said: list[dict[str, Any]],
    known: dict[str, list[Any]],
    rng: random.Random,
    partitions: tuple[str, ...],
) -> dict[str, Any]:
    """Return a line that no honest RM sends, or that only a transcript has."""
    kind = rng.randrange(6)
    if kind == 0:
        return {"confirm": one_of(rng, ("auto", "manual"))}
    if kind == 1:
        return {"configuration": {"rmID": RM_ID, "config": one_of(rng, INVALID_CONFIGURATIONS)}}
    if kind == 2:
        return {"configuration": {"rmID": RM_ID, "config": random_configuration(rng, partitions).text}}
    if kind == 3 and rng.random() < 0.2:
        return said[0]
    keys, nodes = known.get("allocationKey", ["k"]), known.get("nodeID", ["n"])
    if kind == 4:
        pairs = [{"allocationKey": one_of(rng, keys), "nodeID": one_of(rng, nodes)} for _ in range(4)]
        return {"predicates": {"deny": pairs, "denyAll": rng.random() < 0.1}}
    ends = [(one_of(rng, ["", *keys]), one_of(rng, _ODD["terminationType"])) for _ in range(2)]
    name = one_of(rng, known.get("applicationID", ["a"]))
    row: dict[str, Any] = json.loads(releases_line(name, _partitions(said).get(name, "default"), ends))
    return row


def _partitions(lines: list[dict[str, Any]]) -> dict[str, str]:
    """Return the partition of each application and node that is named."""
    found: dict[str, str] = {}
    for each in _objects(lines):
        name = each.get("applicationID") or each.get("nodeID")
        partition = each.get("partitionName") or each.get("attributes", {}).get("si/node-partition")
        if name and partition:
            found.setdefault(name, partition)
    return found


# ------------------------------------------------------------------------------------------------ the end


def _ends(lines: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return lines that end everything that was ever named."""
    known, partitions = _values(lines), _partitions(lines)
    names = [(name, partitions.get(name, "default")) for name in known.get("applicationID", [])]
    ends = [
        {"applicationID": name, "partitionName": partition, "terminationType": "STOPPED_BY_RM"}
        for name, partition in names
    ]
    ends += [
        {"allocationKey": key, "partitionName": partition, "terminationType": "STOPPED_BY_RM"}
        for partition in ("default", "gpu")
        for key in known.get("allocationKey", [])
        if key
    ]
    removals = [{"applicationID": name, "partitionName": partition} for name, partition in names]
    nodes = [
        {"nodeID": name, "action": "DECOMISSION", "attributes": {"si/node-partition": partition}}
        for name in known.get("nodeID", [])
        for partition in ("default", "gpu")
    ]
    rows: tuple[dict[str, Any], ...] = (
        {"confirm": "auto"},
        {"allocation": {"rmID": RM_ID, "releases": {"allocationsToRelease": ends}}},
        {"application": {"rmID": RM_ID, "remove": removals}},
        {"node": {"rmID": RM_ID, "nodes": nodes}},
        {"advance": "1s"},
    )
    return rows
