"""The lines of a transcript, as a resource manager would write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool"

RM_ID: Final = "rm"


def line(verb: str, body: Json) -> str:
    """Write one line."""
    return json.dumps({verb: body})


def resource(quantities: Mapping[str, int]) -> Json:
    """Write a resource as JSON."""
    return {"resources": {name: {"value": str(quantity)} for name, quantity in quantities.items()}}


def node_line(node: str, partition: str, action: str, capacity: Mapping[str, int] | None = None) -> str:
    """Create a node, or change one."""
    body: dict[str, Json] = {"nodeID": node, "action": action}
    body["attributes"] = {"si/node-partition": partition} if partition != "default" else {}
    if capacity is not None:
        body["schedulableResource"] = resource(capacity)
    return line("node", {"rmID": RM_ID, "nodes": [body]})


def removal_line(application: str, partition: str) -> str:
    """Remove an application."""
    removal: Json = {"applicationID": application, "partitionName": partition}
    return line("application", {"rmID": RM_ID, "remove": [removal]})


def allocations_line(bodies: Sequence[dict[str, Json]]) -> str:
    """Send asks and allocations in one message."""
    return line("allocation", {"rmID": RM_ID, "allocations": [*bodies]})


def releases_line(application: str, partition: str, ends: Sequence[tuple[str, str]]) -> str:
    """Release keys of an application, each with a termination type, in one message."""
    bodies: list[Json] = [
        {
            "partitionName": partition,
            "applicationID": application,
            "allocationKey": key,
            "terminationType": termination,
        }
        for key, termination in ends
    ]
    return line("allocation", {"rmID": RM_ID, "releases": {"allocationsToRelease": bodies}})
