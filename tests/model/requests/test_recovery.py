"""An RM tells what runs already, after the scheduler was restarted."""

from __future__ import annotations

from support.model.builders import TEN, a_resource
from support.model.harness import Harness

from licorne.model.queues.tree import RECOVERY_QUEUE
from licorne.model.values.messages import NodeAction, TerminationType


def test_what_ran_before_a_restart_runs_on() -> None:
    """Nodes come cordoned, then applications, what runs, what waits; then the nodes are opened."""
    h = Harness("- name: leaf\n  resources: {max: {memory: 15}}")
    h.nodes("one", "two", action=NodeAction.CREATE_DRAIN)
    h.submit()
    h.ask("ran-1", "ran-2", node_id="one")
    h.ask("foreign", application_id="", node_id="two", resource=TEN, tags={"foreign": "default"})
    h.ask("waits")
    before = h.run_until_idle()
    for name in ("one", "two"):
        h.update_node(name, NodeAction.DRAIN_TO_SCHEDULABLE)
    after = h.run_until_idle()
    h.release("ran-1", "ran-2")
    h.run_until_idle()

    assert (0, 0) == (before, after)
    assert {"ran-1": "one", "ran-2": "one", "waits": "one"} == h.placements
    assert ["Accepted", "Running"] == h.states()[:2]


def test_an_application_whose_queue_is_gone_is_recovered_if_it_must_be() -> None:
    """In a queue of its own; what it has is beyond all quotas."""
    h = Harness()
    h.nodes("one", action=NodeAction.CREATE_DRAIN)
    force = {"application.create.force": "true"}
    refused = h.submit("lost", "root.leaf.gone.queue")
    forced = h.submit("kept", "root.leaf.gone.queue", tags=force)
    h.ask("ran", application_id="kept", node_id="one", resource=a_resource(memory=1000))

    assert refused is not None
    assert forced is None
    assert a_resource(memory=1000) == h.queue(RECOVERY_QUEUE).allocated


def test_a_gang_is_recovered_with_its_placeholders() -> None:
    """A member takes the place of one as if nothing had happened."""
    h = Harness()
    h.nodes("one", action=NodeAction.CREATE_DRAIN)
    h.submit(placeholder_ask=TEN)
    h.ask("holder", node_id="one", task_group_name="g", placeholder=True)
    h.update_node("one", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.ask_and_run("member", task_group_name="g")
    h.confirm()

    assert [("holder", TerminationType.PLACEHOLDER_REPLACED)] == h.releases
    assert {"holder": "one", "member": "one"} == h.placements


def test_what_runs_for_an_unknown_application_is_refused() -> None:
    """Applications come before what they have."""
    h = Harness()
    h.nodes("one")

    (rejection,) = h.ask("ran", application_id="late", node_id="one")

    assert "failed to find application late" == rejection.reason
    assert TEN == h.node("one").available


def test_a_gang_that_is_recovered_counts_for_the_maximum_of_applications() -> None:
    """Also while it lacks some of its placeholders, as after their placement: another one has to wait."""
    h = Harness("- {name: leaf, maxapplications: 1}")
    h.nodes("one", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.submit(placeholder_ask=a_resource(memory=20))
    h.submit("other")
    h.ask("holder", node_id="one", task_group_name="g", placeholder=True)
    h.update_node("one", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.ask_and_run("waits", application_id="other")

    assert {"holder": "one"} == h.placements
