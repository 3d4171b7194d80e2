"""How many objects of a waiting application the collector of garbage follows, as often as it runs."""

from __future__ import annotations

import gc

import pytest
from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import ResourceManager, Scheduler
from licorne.lockcheck.holding.runtime import runtime
from licorne.proxy.core.scheduler.engine_names import EngineName

_QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]"
_APPLICATIONS = 200


def _add(scheduler: Scheduler, first: int) -> int:
    """Add applications of one ask each, which find no room; return how many objects are followed then."""
    for number in range(first, first + _APPLICATIONS):
        scheduler.update_application(application_request(f"app{number}"))
        scheduler.update_allocation(ask_request(f"ask{number}", application=f"app{number}", memory=10))
    scheduler.run_until_idle()
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize(("engine", "objects_max"), [("direct", 35), ("actors", 46)])
def test_a_waiting_application_is_few_objects(engine: EngineName, objects_max: int) -> None:
    """Its events, which are kept for a while, are five of them; of checked asks there are more."""
    if engine == "actors" and runtime.watch is not None:
        pytest.skip("each actor has the objects of its checked asks")
    with Scheduler(engine=engine, stepped=True) as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=_QUEUES)
        scheduler.update_node(node_request("n1", memory=1))
        before = _add(scheduler, 0)
        added = _add(scheduler, _APPLICATIONS) - before

    assert objects_max >= added / _APPLICATIONS - 0.5
