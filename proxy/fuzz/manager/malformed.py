"""Entries of requests that no honest resource manager (RM) sends, each with the rejection that answers it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from ....model.values.allocation import WALLTIME_TAG
from ...si import constants
from ...si import si_pb2 as si
from ..plans import one_of

Entry: TypeAlias = (
    "si.Allocation | si.AllocationRelease | si.NodeInfo | si.AddApplicationRequest | "
    "si.RemoveApplicationRequest"
)
Identity: TypeAlias = "tuple[str, str, str]"
"""A kind, an application, and the key or id of the rejected item."""

_GARBLED: Final = ("\x1b[2J{}", "{}\x00", "{}\n2026-01-01 ERROR", "\x7f{}", "{}" + "x" * 2_000)
_UNKNOWN_NUMBER: Final = 77


@final
@dataclass(frozen=True, slots=True)
class Malformed:
    """An entry, and the answer to it."""

    entry: Entry
    rejected: Identity | None = None
    """The identity in the rejection; `None` for an entry without effect and answer."""
    named: str = ""
    """A text that its reason must also contain."""


@final
@dataclass(slots=True)
class KnownPartition:
    """The known contents of the partition that receives an entry."""

    partition: str
    applications: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    """Applications that are gone."""
    coming: str = ""
    """An application that does not exist yet: messages in the wrong order name it."""
    nodes: list[str] = field(default_factory=list)
    gone_nodes: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    """The application of each key in use."""
    ended: list[str] = field(default_factory=list)
    """Keys that were in use."""
    serial: int = 0

    def new_name(self) -> str:
        """Return an unused name."""
        self.serial += 1
        return f"{self.partition}-bad{self.serial}"


_Maker: TypeAlias = Callable[[KnownPartition, random.Random], Malformed]


def size_of(value: int, name: str = "vcore") -> si.Resource:
    """Return this quantity of one resource type."""
    return si.Resource(resources={name: si.Quantity(value=value)})


def _ask(around: KnownPartition, rng: random.Random, **changes: object) -> si.Allocation:
    fields: dict[str, object] = {
        "allocationKey": around.new_name(),
        "applicationID": one_of(rng, around.applications),
        "partitionName": around.partition,
        "resourcePerAlloc": size_of(1),
    }
    return si.Allocation(**{**fields, **changes})  # type: ignore[arg-type]  # its values have their types


def _rejected_ask(
    around: KnownPartition, rng: random.Random, named: str = "", **changes: object
) -> Malformed:
    """Return an ask; the reason of its rejection contains `named`, or else its key or application."""
    ask = _ask(around, rng, **changes)
    identity = ("allocation", ask.applicationID, ask.allocationKey)
    return Malformed(ask, identity, named or (ask.allocationKey or ask.applicationID))


def _ask_malformed(around: KnownPartition, rng: random.Random) -> Malformed:
    unknown = one_of(rng, [*around.over, around.coming or around.new_name()])
    size = one_of(rng, (size_of(0), si.Resource(), size_of(-1), size_of(-(2**63)), size_of(5, "memory")))
    size.MergeFrom(size_of(-3 if "memory" in size.resources else 0, "gpu"))
    garbled = one_of(rng, _GARBLED).format(around.new_name())
    walltime = one_of(rng, ("-1s", "soon", "", "99999999999999999999h", "\x1b[2J"))
    elsewhere = around.new_name()
    node = one_of(rng, [*around.gone_nodes, around.new_name()])
    choices: tuple[tuple[str, dict[str, object]], ...] = (
        ("", {"allocationKey": ""}),
        ("", {"applicationID": ""}),
        (unknown, {"applicationID": unknown}),
        ("resources", {"resourcePerAlloc": size}),
        ("key", {"allocationKey": garbled}),
        ("", {"placeholder": True}),
        (WALLTIME_TAG, {"allocationTags": {WALLTIME_TAG: walltime}}),
        (elsewhere, {"partitionName": elsewhere}),
        (node, {"nodeID": node}),
    )
    named, changes = one_of(rng, choices)
    return _rejected_ask(around, rng, named, **changes)


def _ask_of_another(around: KnownPartition, rng: random.Random) -> Malformed:
    key = one_of(rng, sorted(around.keys))
    others = [name for name in around.applications if name != around.keys[key]]
    node, other = one_of(rng, ["", *around.nodes]), one_of(rng, others)
    return _rejected_ask(around, rng, allocationKey=key, applicationID=other, nodeID=node)


def _foreign(around: KnownPartition, rng: random.Random) -> Malformed:
    tags = {constants.FOREIGN: one_of(rng, ("default", "static", "?"))}
    node = one_of(rng, [*around.gone_nodes, around.new_name()])
    there = one_of(rng, [*around.nodes])
    key = one_of(rng, _GARBLED).format(around.new_name())
    choices: tuple[tuple[str, dict[str, object]], ...] = (
        (node, {"nodeID": node}),
        ("foreign", {}),
        (there, {"nodeID": there, "allocationKey": ""}),
        ("key", {"nodeID": there, "allocationKey": key}),
        ("-9", {"nodeID": there, "resourcePerAlloc": size_of(-9)}),
    )
    made = [
        _rejected_ask(around, rng, named, applicationID="", allocationTags=tags, **changes)
        for named, changes in choices
    ]
    return one_of(rng, made)


def _release(around: KnownPartition, rng: random.Random, **changes: object) -> si.AllocationRelease:
    fields: dict[str, object] = {
        "allocationKey": one_of(rng, [*around.ended, around.new_name()]),
        "applicationID": one_of(rng, [*around.applications, *around.over, around.new_name()]),
        "partitionName": around.partition,
        "terminationType": int(rng.random() * 6),
    }
    return si.AllocationRelease(**{**fields, **changes})  # type: ignore[arg-type]  # as for an ask


def _release_of_nothing(around: KnownPartition, rng: random.Random) -> Malformed:
    return Malformed(_release(around, rng))


def _release_elsewhere(around: KnownPartition, rng: random.Random) -> Malformed:
    key = one_of(rng, [*sorted(around.keys), around.new_name()])
    name = around.keys.get(key, around.new_name())
    where = around.new_name()
    return Malformed(_release(around, rng, allocationKey=key, applicationID=name, partitionName=where))


def _release_of_another(around: KnownPartition, rng: random.Random) -> Malformed:
    key = one_of(rng, sorted(around.keys))
    others = [name for name in (*around.applications, *around.over) if name != around.keys[key]]
    return Malformed(_release(around, rng, allocationKey=key, applicationID=one_of(rng, others)))


def _release_for_no_reason(around: KnownPartition, rng: random.Random) -> Malformed:
    key = one_of(rng, [*sorted(around.keys), around.new_name()])
    name = around.keys.get(key, one_of(rng, around.applications))
    release = _release(around, rng, allocationKey=key, applicationID=name, terminationType=_UNKNOWN_NUMBER)
    return Malformed(release, ("allocation", name, key), str(_UNKNOWN_NUMBER))


def _node(around: KnownPartition, **changes: object) -> si.NodeInfo:
    fields: dict[str, object] = {
        "nodeID": around.new_name(),
        "action": si.NodeInfo.CREATE,
        "attributes": {constants.NODE_PARTITION: around.partition},
        "schedulableResource": size_of(100),
    }
    return si.NodeInfo(**{**fields, **changes})  # type: ignore[arg-type]  # as for an ask


def _rejected_node(node: si.NodeInfo, named: str) -> Malformed:
    return Malformed(node, ("node", "", node.nodeID), named)


def _node_again(around: KnownPartition, rng: random.Random) -> Malformed:
    name = one_of(rng, [*around.nodes])
    action = one_of(rng, (si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN))
    size = size_of(one_of(rng, (1, 7, 10**6)))
    return _rejected_node(_node(around, nodeID=name, action=action, schedulableResource=size), name)


def _node_malformed(around: KnownPartition, rng: random.Random) -> Malformed:
    action = one_of(rng, (si.NodeInfo.CREATE, si.NodeInfo.UPDATE, si.NodeInfo.CREATE_DRAIN))
    known = one_of(rng, [*around.nodes])
    garbled = one_of(rng, _GARBLED).format(around.new_name())
    elsewhere = around.new_name()
    node, named = one_of(
        rng,
        (
            (_node(around, nodeID="", action=action), "node id"),
            (_node(around, nodeID=garbled, action=action), "node id"),
            (_node(around, action=action, schedulableResource=size_of(-1)), "-1"),
            (_node(around, nodeID=known, action=si.NodeInfo.UPDATE, schedulableResource=size_of(-1)), known),
            (_node(around, nodeID=known, action=si.NodeInfo.UNKNOWN_ACTION_FROM_RM), known),
            (_node(around, nodeID=known, action=_UNKNOWN_NUMBER), str(_UNKNOWN_NUMBER)),
            (_node(around, attributes={constants.NODE_PARTITION: elsewhere}), elsewhere),
        ),
    )
    return _rejected_node(node, named)


def _node_unknown(around: KnownPartition, rng: random.Random) -> Malformed:
    name = one_of(rng, [*around.gone_nodes, around.new_name()])
    kind = si.NodeInfo
    action = one_of(rng, (kind.UPDATE, kind.DRAIN_NODE, kind.DECOMISSION, kind.DRAIN_TO_SCHEDULABLE))
    node = _node(around, nodeID=name, action=action)
    return Malformed(node) if action == kind.DECOMISSION else _rejected_node(node, name)


def _application(around: KnownPartition, rng: random.Random) -> Malformed:
    known, garbled = one_of(rng, around.applications), one_of(rng, _GARBLED).format(around.new_name())
    elsewhere, queue, name = around.new_name(), f"root.no.{around.new_name()}", around.new_name()
    user = si.UserGroupInformation(user="ada", groups=["analysts"])
    ada: dict[str, object] = {"ugi": user, "queueName": "root.leaf", "partitionName": around.partition}
    choices: tuple[tuple[dict[str, object], str], ...] = (
        ({"applicationID": known}, known),
        ({"applicationID": ""}, "application id"),
        ({"applicationID": garbled}, "application id"),
        ({"applicationID": name, "partitionName": elsewhere}, elsewhere),
        ({"applicationID": name, "queueName": queue}, queue),
        ({"applicationID": name, "ugi": si.UserGroupInformation(user=garbled)}, "user"),
        ({"applicationID": name, "queueName": "root"}, "root"),
    )
    changes, named = one_of(rng, choices)
    entry = si.AddApplicationRequest(**{**ada, **changes})  # type: ignore[arg-type]  # as for an ask
    return Malformed(entry, ("application", entry.applicationID, ""), named)


def _removal(around: KnownPartition, rng: random.Random) -> Malformed:
    name, where = one_of(rng, [*around.over, around.new_name()]), around.partition
    if rng.random() < 0.5:
        name, where = one_of(rng, around.applications), around.new_name()
    return Malformed(si.RemoveApplicationRequest(applicationID=name, partitionName=where))


_ALWAYS: Final[tuple[_Maker, ...]] = (
    *(_ask_malformed,) * 9,
    *(_foreign, _release_of_nothing, _release_elsewhere, _release_for_no_reason),
    *(_node_again, _node_malformed, _node_unknown, _application, _removal),
)
_OF_KEYS: Final[tuple[_Maker, ...]] = (_ask_of_another, _release_of_another)
"""Makers that need a key in use, and a second application."""


def malformed_entry(around: KnownPartition, rng: random.Random) -> Malformed:
    """Return an entry; at least an application and a node must exist."""
    makers = [*_ALWAYS]
    if around.keys and len(around.applications) > 1:
        makers += _OF_KEYS * 2
    return one_of(rng, makers)(around, rng)


def request_of(
    rm_id: str, entries: Sequence[Entry]
) -> tuple[si.NodeRequest, si.ApplicationRequest, si.AllocationRequest]:
    """Return the requests with some entries, each kind in its order; a request may be empty."""
    nodes, applications = si.NodeRequest(rmID=rm_id), si.ApplicationRequest(rmID=rm_id)
    allocations = si.AllocationRequest(rmID=rm_id)
    for entry in entries:
        match entry:
            case si.NodeInfo():
                nodes.nodes.append(entry)
            case si.AddApplicationRequest():
                applications.new.append(entry)
            case si.RemoveApplicationRequest():
                applications.remove.append(entry)
            case si.Allocation():
                allocations.allocations.append(entry)
            case si.AllocationRelease():
                allocations.releases.allocationsToRelease.append(entry)
    return nodes, applications, allocations


def identities_rejected(
    response: si.NodeResponse | si.ApplicationResponse | si.AllocationResponse,
) -> list[tuple[Identity, str]]:
    """Return the rejected identities in a response, each with the reason."""
    match response:
        case si.NodeResponse():
            return [(("node", "", each.nodeID), each.reason) for each in response.rejected]
        case si.ApplicationResponse():
            return [(("application", each.applicationID, ""), each.reason) for each in response.rejected]
        case _:
            return [
                (("allocation", each.applicationID, each.allocationKey), each.reason)
                for each in response.rejectedAllocations
            ]
