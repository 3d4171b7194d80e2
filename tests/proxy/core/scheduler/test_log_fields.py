from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from loguru import logger
from support.model.builders import an_allocation
from support.proxy.manager_requests import node_request

from licorne import ResourceManager, Scheduler
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationRejection,
    AllocationsRejected,
    AllocationsReleased,
    Announcement,
    ApplicationChanged,
    ApplicationsAnswered,
    NodesAnswered,
    Rejection,
    Release,
    SchedulingStateChanged,
    TerminationType,
)
from licorne.proxy.core.scheduler.managers.callbacks import announcement_fields
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

_RELEASE = Release(
    partition="default", application_id="a", allocation_key="k", termination=TerminationType.STOPPED_BY_RM
)


@pytest.mark.parametrize(
    ("announcement", "fields"),
    [
        (
            AllocationPlaced(an_allocation("k", "n")),
            {"application": "app", "node": "n", "allocation_key": "k"},
        ),
        (
            AllocationsReleased((_RELEASE,)),
            {"partition": "default", "application": "a", "allocation_key": "k"},
        ),
        (AllocationsReleased((_RELEASE, _RELEASE)), {}),
        (
            AllocationsRejected((AllocationRejection("k", "a", "why"),)),
            {"application": "a", "allocation_key": "k"},
        ),
        (ApplicationChanged("a", "Running", 0, ""), {"application": "a"}),
        (SchedulingStateChanged("a", "k", "why"), {"application": "a", "allocation_key": "k"}),
        (ApplicationsAnswered(("a",), ()), {"application": "a"}),
        (ApplicationsAnswered(("a",), (Rejection("b", "why"),)), {}),
        (NodesAnswered((), (Rejection("n", "why"),)), {"node": "n"}),
        (NodesAnswered(("n", "m"), ()), {}),
    ],
)
def test_an_announcement_about_one_thing_says_which(
    announcement: Announcement, fields: dict[str, str]
) -> None:
    """One about several says none."""
    assert fields == announcement_fields(announcement)


class Failing(ResourceManager):
    """Raises when a node is answered."""

    def update_node(self, response: si.NodeResponse) -> None:
        raise ValueError(f"on purpose: {response.accepted[0].nodeID}")


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("engine", "stepped"), [("direct", True), ("actors", True), ("actors", False)])
def test_a_callback_that_fails_is_logged_with_what_it_was_about(
    engine: EngineName, *, stepped: bool, recorded: bool, tmp_path: Path
) -> None:
    """On the manager's own thread as on the caller's, and while all of it is recorded."""
    entries: list[Any] = []
    sink = logger.add(lambda message: entries.append(message.record), level="ERROR")
    logger.enable("licorne")
    try:
        record = tmp_path / "here" if recorded else None
        failed: list[object] = []
        with Scheduler(engine=engine, stepped=stepped, record=record, on_error=failed.append) as scheduler:
            scheduler.register("rm", Failing())
            scheduler.update_node(node_request("n"))
            if stepped:
                scheduler.run_until_idle()
    finally:
        logger.disable("licorne")
        logger.remove(sink)

    (entry,) = entries
    assert entry["message"].startswith("callback of RM rm failed on NodesAnswered")
    assert entry["extra"]["node"] == "n"
    assert entry["exception"] is not None
    assert len(failed) == 1
