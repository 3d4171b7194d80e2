"""The checks of a snapshot find each contradiction, and none in a snapshot that is right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest
from support.transcripts.snapshot_checks import DocumentError, check_snapshot
from support.transcripts.transcript_lines import RM_ID, Json, allocations_line, line, node_line, resource
from support.transcripts.transcript_witness import Witness

APPLICATION: Final[Json] = {"applicationID": "app", "ugi": {"user": "kim"}, "tags": {"namespace": "dev"}}


def an_ask(key: str, application: str = "app") -> dict[str, Any]:
    return {"applicationID": application, "allocationKey": key, "resourcePerAlloc": resource({"memory": 4})}


@pytest.fixture(scope="module")
def right() -> Any:
    """Return a snapshot with a node, two allocations, an ask that waits, and something foreign."""
    foreign = an_ask("f", "") | {"nodeID": "n", "allocationTags": {"foreign": "static"}}
    with Witness() as witness:
        witness.watch(
            [
                line("register", {"rmID": RM_ID}),
                node_line("n", "default", "CREATE", {"memory": 14}),
                line("application", {"rmID": RM_ID, "new": [APPLICATION]}),
                allocations_line([foreign, *(an_ask(key) for key in ("a", "b", "c"))]),
                line("schedule", "all"),
            ]
        )
        return witness.snapshot()


def node(snapshot: Any) -> Any:
    """Return a node with allocations."""
    return next(entry for entry in snapshot["nodes"]["default"] if entry.get("allocations"))


def leaf(snapshot: Any) -> Any:
    """Return a queue below the root in which something runs."""
    return next(queue for queue in snapshot["queues"]["default"]["children"] if queue.get("runningApps"))


def app(snapshot: Any) -> Any:
    return snapshot["applications"]["default"][0]


def user(snapshot: Any) -> Any:
    return next(entry for entry in snapshot["users"]["default"] if entry["queues"].get("resourceUsage"))


_WRONGS: dict[str, Callable[[Any], Any]] = {
    "allocated is": lambda snapshot: node(snapshot)["allocated"].update(memory=1),
    "available is": lambda snapshot: node(snapshot)["available"].update(memory=1),
    "isReserved": lambda snapshot: node(snapshot).update(isReserved=True),
    "nodes do not": lambda snapshot: node(snapshot)["allocations"][0].update(allocationKey="z"),
    "application app: used": lambda snapshot: app(snapshot)["usedResource"].update(memory=1),
    "application app: pending": lambda snapshot: app(snapshot)["pendingResource"].update(memory=1),
    "root.*: allocated": lambda snapshot: leaf(snapshot)["allocatedResource"].update(memory=1),
    "root.*: pending": lambda snapshot: leaf(snapshot).update(pendingResource={"memory": 1}),
    "applications run": lambda snapshot: leaf(snapshot).update(runningApps=7),
    "user .* is": lambda snapshot: user(snapshot)["queues"]["resourceUsage"].update(memory=1),
    "are not shown": lambda snapshot: snapshot["users"]["default"].remove(user(snapshot)),
    "partition's capacity": lambda snapshot: snapshot["partitions"][0]["capacity"]["capacity"].update(
        memory=1
    ),
    "nodes are counted": lambda snapshot: snapshot["partitions"][0].update(totalNodes=77),
    "containers are counted": lambda snapshot: snapshot["partitions"][0].update(totalContainers=77),
}


def test_a_snapshot_that_is_right_passes(right: Any) -> None:
    """With nodes, applications, queues and users."""
    check_snapshot(right)


@pytest.mark.parametrize("found", _WRONGS)
def test_a_contradiction_is_found(right: Any, found: str) -> None:
    """Each document is compared with another one."""
    wrong = copy.deepcopy(right)
    _WRONGS[found](wrong)

    with pytest.raises(DocumentError, match=found):
        check_snapshot(wrong)


def test_a_sum_that_64_bits_cannot_hold_is_shown_as_their_border() -> None:
    """Of all that is summed up: a sum that stopped there on its way would be another one."""
    most = {"memory": 2**63 - 1}
    huge = [an_ask(key) | {"resourcePerAlloc": resource(most), "nodeID": "n"} for key in ("a", "b")]
    foreign = [{**entry, "allocationTags": {"foreign": "static"}, "allocationKey": "f"} for entry in huge[:1]]
    with Witness() as witness:
        witness.watch(
            [
                line("register", {"rmID": RM_ID}),
                node_line("n", "default", "CREATE", most),
                node_line("m", "default", "CREATE", most),
                line("application", {"rmID": RM_ID, "new": [APPLICATION]}),
                allocations_line([*foreign, *huge]),
                allocations_line([{**huge[0], "allocationKey": key, "nodeID": ""} for key in ("c", "d")]),
            ]
        )
        snapshot = witness.snapshot()

    assert most == snapshot["partitions"][0]["capacity"]["capacity"] == leaf(snapshot)["allocatedResource"]
    assert most == leaf(snapshot)["pendingResource"] == user(snapshot)["queues"]["resourceUsage"]
    assert {"memory": -(2**63)} == node(snapshot)["available"]
