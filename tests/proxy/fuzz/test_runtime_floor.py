"""What simulated resource managers know of minimum run times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from licorne.proxy.fuzz.manager.callbacks import RuntimeFloor
from licorne.proxy.fuzz.manager.cluster_record import RecordError
from licorne.proxy.si import si_pb2 as si

SECOND_NS: Final = 10**9
FOR_ASK: Final = "preempting allocations to free up resources to run ask: k9"
FOR_NODE: Final = "preempting allocations to free up resources to run daemon set ask: k9"
LEAF: Final[dict[str, Any]] = {"name": "a"}


def configured(properties: dict[str, str], *queues: dict[str, Any]) -> str:
    """Return the text of a configuration whose root has these properties."""
    root = {"name": "root", "properties": properties, "queues": [*queues]}
    return json.dumps({"partitions": [{"name": "default", "queues": [root]}]})


def with_rule(text: str, **rule: Any) -> str:
    """Return the text of a configuration with a placement rule as well."""
    document = json.loads(text)
    document["partitions"][0]["placementrules"] = [rule]
    return json.dumps(document)


TWENTY: Final = {"preemption.min-runtime": "20s"}
CASES: Final = {
    "what has run for the minimum may be preempted": (configured(TWENTY, LEAF), 20, FOR_ASK, True),
    "what has not may not": (configured(TWENTY, LEAF), 19, FOR_ASK, False),
    "nor for a node": (configured(TWENTY, LEAF), 19, FOR_NODE, False),
    "but where guarantees alone are bound": (
        configured({**TWENTY, "preemption.min-runtime.scope": "guarantee"}, LEAF),
        19,
        FOR_NODE,
        True,
    ),
    "a leaf that is less strict is enough": (
        configured(TWENTY, LEAF, {"name": "b", "properties": {"preemption.min-runtime": "2s"}}),
        3,
        FOR_ASK,
        True,
    ),
    "so is a template without the property": (
        configured(TWENTY, LEAF, {"name": "b", "parent": True}),
        3,
        FOR_ASK,
        True,
    ),
    "so is a queue that is made for an application": (
        with_rule(configured(TWENTY, LEAF), name="provided", create=True),
        3,
        FOR_ASK,
        True,
    ),
    "a rule that makes none is not": (
        with_rule(configured(TWENTY, LEAF), name="provided", create=False),
        3,
        FOR_ASK,
        False,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_is_preempted_before_the_smallest_minimum(case: tuple[str, int, str, bool]) -> None:
    """Counted from when it was placed."""
    text, seconds, message, is_fine = case
    times: Iterator[int] = iter([0, seconds * SECOND_NS])
    floor = RuntimeFloor(lambda: next(times))
    floor.registered(text)
    floor.hear(si.AllocationResponse(new=[si.Allocation(allocationKey="v")]))
    release = si.AllocationRelease(
        allocationKey="v", terminationType=si.PREEMPTED_BY_SCHEDULER, message=message
    )
    try:
        floor.hear(si.AllocationResponse(released=[release]))
        heard = True
    except RecordError:
        heard = False

    assert is_fine is heard
