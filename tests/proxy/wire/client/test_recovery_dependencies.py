"""Applications that wait for others, recovered by a scheduler that knows nothing of what has ended."""

from __future__ import annotations

from typing import Any

import pytest
from support.proxy.knowing_manager import CONFIGURATION, KnowingManager, a_node, an_allocation, an_application

from licorne import Recovery, RequestError, Scheduler
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.si import si_pb2 as si


def _application(name: str, **tags: str) -> si.AddApplicationRequest:
    application = an_application(name)
    application.tags.update(tags)
    return application


def _keys_of(scheduler: Scheduler) -> list[str]:
    snapshot: Any = scheduler.snapshot()
    applications = snapshot["applications"]["default"]
    return sorted(each["allocationKey"] for one in applications for each in one.get("allocations", []))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_manager_sends_the_ends_again_that_others_wait_for(engine: EngineName) -> None:
    """What runs keeps its turn in its array; what waits for one that is unknown waits."""
    array = {"array": "x", "arrayLimit": "1"}
    with Scheduler(engine=engine, stepped=True) as scheduler:
        recovery = Recovery(
            scheduler,
            si.RegisterResourceManagerRequest(rmID="rm", config=CONFIGURATION),
            KnowingManager(),
            nodes=[a_node("n1")],
            applications=[
                _application("e1", **array),
                _application("e2", **array),
                _application("b", afterOk="a"),
                _application("c", after="gone"),
            ],
            allocations=[an_allocation("e2-1", application="e2", node_id="n1")],
            asks=[an_allocation(f"{name}-1", application=name) for name in ("e1", "b", "c")],
        )
        recovery.start()
        ended = si.RemoveApplicationRequest(applicationID="a", outcome="ok")
        recovery.update_application(si.ApplicationRequest(rmID="rm", remove=[ended]))
        scheduler.run_until_idle()
        assert _keys_of(scheduler) == ["b-1", "e2-1"]

        ended.applicationID = "e2"
        recovery.update_application(si.ApplicationRequest(rmID="rm", remove=[ended]))
        scheduler.run_until_idle()
        assert _keys_of(scheduler) == ["b-1", "e1-1"]

        ended.outcome = "well"
        with pytest.raises(
            RequestError, match="outcome of application e2 is 'well': it must be ok or failed"
        ):
            recovery.update_application(si.ApplicationRequest(rmID="rm", remove=[ended]))
