from __future__ import annotations

import pytest
from support.model.builders import an_allocation

from licorne.actors.log_fields import announcement_fields
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
