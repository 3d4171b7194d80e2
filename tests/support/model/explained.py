"""Short ways to an explanation, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.model.explanation.explain import explain

if TYPE_CHECKING:
    from support.model.harness import Harness

    from licorne.model.configuration.problems import Position
    from licorne.model.explanation import AskExplanation, Blocker, Explanation, NodeSummary
    from licorne.model.values.allocation import RefusalReason


def explained(harness: Harness, application_id: str = "app") -> Explanation:
    """Return the explanation of an application that the partition knows."""
    explanation = harness.partition.read(explain, application_id)
    assert explanation is not None, f"{application_id} is unknown"
    return explanation


def ask_of(harness: Harness, key: str = "ask", application_id: str = "app") -> AskExplanation:
    """Return the explanation of one ask."""
    ask = explained(harness, application_id).ask(key)
    assert ask is not None, f"{key} of {application_id} is unknown"
    return ask


def nodes_of(harness: Harness, key: str = "ask", application_id: str = "app") -> NodeSummary:
    """Return what is explained of the nodes for one ask."""
    nodes = ask_of(harness, key, application_id).nodes
    assert nodes is not None, f"nodes do not decide about {key}"
    return nodes


def blockers(harness: Harness, key: str = "ask", application_id: str = "app") -> tuple[Blocker, ...]:
    """Return what stands in the way of one ask alone."""
    return ask_of(harness, key, application_id).blockers


def only_blocker(harness: Harness, key: str = "ask", application_id: str = "app") -> Blocker:
    """Return the one thing that stands in the way of an ask."""
    (blocker,) = blockers(harness, key, application_id)
    return blocker


def reasons(harness: Harness, key: str = "ask", application_id: str = "app") -> list[RefusalReason]:
    """Return why an ask waits, the blockers of its application first."""
    explanation = explained(harness, application_id)
    return [blocker.reason for blocker in (*explanation.blockers, *blockers(harness, key, application_id))]


def place_in_file(position: Position) -> str:
    """Return where a setting stands in a file of queues."""
    return f"queues.yaml:{position.line}:{position.column}"
