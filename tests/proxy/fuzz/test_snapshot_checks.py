"""What the end of a simulated run asks of snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from licorne.proxy.fuzz.manager.cluster_record import RecordError
from licorne.proxy.fuzz.world.ending import applications_that_are_held_back, check_maxima


def a_queue(name: str, *children: Any, **more: Any) -> dict[str, Any]:
    """Return the document of an active queue of the configuration."""
    document = {"queuename": name, "isManaged": True, "isLeaf": not children, "status": "Active"}
    return document | {"children": [*children]} | more


def a_snapshot(*queues: Any, users: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return a snapshot with an application in each leaf below the root, named as its queue."""
    leaves = [queue["queuename"] for queue in queues]
    leaves += [child["queuename"] for queue in queues for child in queue["children"]]
    return {
        "queues": {"default": a_queue("root", *queues)},
        "applications": {"default": [{"applicationID": name, "queueName": name} for name in leaves]},
        "users": {"default": [*users]},
        "groups": {"default": []},
    }


def test_queues_that_place_nothing_or_keep_their_limits_hold_back() -> None:
    """Whatever the configuration says now."""
    snapshot = a_snapshot(
        a_queue("root.open"),
        a_queue("root.draining", status="Draining"),
        a_queue("root.dynamic", isManaged=False, maxResource={"memory": 1}),
        a_queue("root.free", isManaged=False),
        a_queue("root.leaf", a_queue("root.leaf.below"), isLeaf=True),
        a_queue("root.parent", isLeaf=False),
    )

    held_back = {"root.draining", "root.dynamic", "root.leaf", "root.leaf.below", "root.parent"}
    assert held_back == applications_that_are_held_back(snapshot)


def test_more_than_a_maximum_is_found() -> None:
    """Of a queue below the root, and of a user; a type without a maximum is free."""
    usage = {"allocatedResource": {"memory": 5, "gpu": 9}, "maxResource": {"memory": 5}}
    ada: Any = {"userName": "ada", "queues": {"queuePath": "root", "resourceUsage": {"memory": 6}}}
    check_maxima(a_snapshot(a_queue("root.a", **usage), users=(ada,)))

    usage["maxResource"] = {"memory": 4}
    with pytest.raises(RecordError, match=r"root\.a uses .*, and may use {'memory': 4}"):
        check_maxima(a_snapshot(a_queue("root.a", **usage)))
    ada["queues"] |= {"maxResources": {"memory": 5}}
    with pytest.raises(RecordError, match="ada in root uses"):
        check_maxima(a_snapshot(users=(ada,)))
