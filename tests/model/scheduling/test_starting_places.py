"""An application that starts has a place of `maxapplications` while it holds something, and no longer."""

from __future__ import annotations

import pytest
from support.model.builders import a_resource
from support.model.harness import Harness

from licorne.model.values.messages import NodeAction, TerminationType

FOUR = a_resource(memory=4)
EIGHT = a_resource(memory=8)
QUEUES = """
- {name: leaf, maxapplications: 1}
- name: other
"""


def reserving() -> Harness:
    """Return a partition in which `app` runs nothing, but has reserved a node; `next` may not start."""
    h = Harness(QUEUES)
    h.nodes("large", capacity=EIGHT)
    h.nodes("small", capacity=FOUR)
    h.submit("runs", "root.other")
    h.ask("used", application_id="runs", node_id="large", resource=FOUR)
    h.submit("app")
    h.submit("next")
    h.ask("whole", resource=EIGHT)
    h.wait(3)
    assert ["app"] == list(h.queue().accepted_allocating)
    h.ask_and_run("first", application_id="next", resource=a_resource(memory=2))
    assert "first" not in h.placements
    return h


@pytest.mark.parametrize("lost", ["its node", "its ask"])
def test_the_place_is_free_once_the_reservation_is_lost(lost: str) -> None:
    """The application waits for ever, or completes without having run; neither keeps others from starting."""
    h = reserving()
    if lost == "its node":
        h.update_node("large", NodeAction.DECOMISSION)
    else:
        h.release("whole")
    h.run_until_idle()

    assert "first" in h.placements


def test_the_place_is_free_once_placeholders_have_ended() -> None:
    """The gang is Accepted again, and has nothing."""
    h = Harness(QUEUES)
    h.nodes("large", capacity=EIGHT)
    h.submit("app", placeholder_ask=FOUR, style="Soft")
    h.submit("next")
    h.ask_and_run("holder", resource=FOUR, placeholder=True, task_group_name="group")
    h.ask_and_run("first", application_id="next", resource=FOUR)
    assert "first" not in h.placements
    h.release("holder", termination=TerminationType.STOPPED_BY_RM)
    h.run_until_idle()

    assert "first" in h.placements
