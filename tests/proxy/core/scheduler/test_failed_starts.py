"""What a resource manager could not start, from its release to the next callback, in both generations."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.proxy.wire_manager import WireManager, amount

from licorne.proxy.core.scheduler.engine_names import EngineName

FAILED: Final = {"terminationType": "SCHEDULING_FAILED_ON_RM"}
OLDER: Final = {
    "asks": [{"allocationKey": "k", "applicationID": "app", "resourceAsk": amount(2), "maxAllocations": 2}]
}
NEWER: Final = {
    "allocations": [
        {"allocationKey": key, "applicationID": "app", "resourcePerAlloc": amount(2)} for key in ("k", "l")
    ]
}


@pytest.mark.parametrize("engine", ["direct", "actors"])
@pytest.mark.parametrize("asks", [pytest.param(OLDER, id="older"), pytest.param(NEWER, id="newer")])
def test_it_is_placed_on_another_node_and_no_release_is_heard(
    engine: EngineName, asks: dict[str, Any]
) -> None:
    """The queue counts it as waiting in between; the other allocation stays as it is."""
    with WireManager(engine) as rm:
        rm.say_nodes({"nodeID": "n1", "action": "CREATE", "schedulableResource": amount(4)})
        rm.say_applications("app")
        rm.say_allocations(**asks)
        first, second = rm.placed
        rm.forget()

        rm.release({"allocationKey": first[0], "UUID": first[1], **FAILED})
        assert ([], []) == (rm.placed, rm.released)
        assert {"vcore": 2} == rm.queue()["pendingResource"]
        rm.say_nodes({"nodeID": "n2", "action": "CREATE", "schedulableResource": amount(4)})

        assert ([first], []) == (rm.placed, rm.released)
        assert [["n1", second[1] or second[0]], ["n2", first[0]]] == sorted(
            [allocation["nodeId"], allocation["allocationKey"]]
            for allocation in rm.application()["allocations"]
        )
