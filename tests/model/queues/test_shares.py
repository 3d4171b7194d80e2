"""Quotas that are percentages of the maximum of the parent, or of the cluster."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.builders import a_configuration, memory
from support.model.harness import Harness

from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.shares import Share, read_share
from licorne.model.resources.resource import Resource
from licorne.model.values.messages import NodeAction

PARTS: Final = """
- name: a
  resources: {guaranteed: 20%, max: 50%}
  queues:
    - {name: x, resources: {max: 33.333%}}
    - {name: y}
- {name: b, resources: {max: {memory: 7}}, queues: [{name: z, resources: {guaranteed: 50%}}]}
"""


def quotas(harness: Harness, path: str) -> tuple[Resource | None, Resource | None]:
    """Return the guarantee and the maximum of a queue."""
    queue = harness.queue(path)
    return queue.guaranteed, queue.maximum


def test_parts_of_the_cluster_follow_its_nodes() -> None:
    """Each is rounded down, and a part of a part follows too; parts of quantities stay."""
    harness = Harness(PARTS)

    found = [quotas(harness, "root.a")]
    for change in (NodeAction.CREATE, NodeAction.UPDATE, NodeAction.DECOMISSION):
        if change is NodeAction.CREATE:
            harness.nodes("node", capacity=memory(101))
        else:
            harness.update_node("node", change, memory(200))
        found.append(quotas(harness, "root.a"))
        found.append(quotas(harness, "root.a.x"))
        assert (memory(3), None) == quotas(harness, "root.b.z")

    assert [
        (None, None),
        *((memory(20), memory(50)), (None, memory(16))),
        *((memory(40), memory(100)), (None, memory(33))),
        *((None, None), (None, None)),
    ] == found


def test_what_waits_for_a_part_is_placed_when_a_node_comes() -> None:
    """A larger cluster is a larger maximum: nobody has to end, and nothing else has to change."""
    harness = Harness("- {name: leaf, resources: {max: 50%}}")
    harness.nodes("one")
    harness.submit()
    before = harness.ask_and_run("first")

    harness.nodes("two")

    assert (0, 1) == (before, harness.run_until_idle())


def test_a_reload_that_is_undone_gives_parts_back() -> None:
    """Also where a node has come in between."""
    harness = Harness(PARTS)
    harness.nodes("one", capacity=memory(100))

    savepoint = harness.partition.reconfigure(a_configuration("- {name: a, resources: {max: 10%}}"))
    reloaded = quotas(harness, "root.a")
    harness.nodes("two", capacity=memory(100))
    harness.partition.restore(savepoint)

    assert ((None, memory(10)), (memory(40), memory(100))) == (reloaded, quotas(harness, "root.a"))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("20%", Share(20_000)),
        ("12.5%", Share(12_500)),
        ("0.001%", Share(1)),
        ("100%", Share(100_000)),
        ("100.001%", None),
        ("0%", None),
        ("-5%", None),
        ("1.2345%", None),
        ("x%", None),
    ],
)
def test_a_percentage_has_at_most_three_decimals(text: str, share: Share | None) -> None:
    """It is above zero and at most everything, and its text is the same."""
    assert share == read_share(text)
    assert share is None or text == str(share)


@pytest.mark.parametrize(
    ("queues", "place", "text"),
    [
        (
            "- {name: a, queues: [{name: b, resources: {max: 10%}}]}",
            "queues[0].resources.max",
            "10% of the maximum of the parent, which has none",
        ),
        ("- {name: a, resources: {max: 200%}}", "resources.max", "'200%' is not a percentage above 0 and up"),
        ("- {name: a, resources: {max: {vcore: 20%}}}", "resources.max.vcore", "invalid quantity: '20%'"),
        (
            "- {name: a, parent: true, childtemplate: {resources: {max: 20%}}}",
            "childtemplate.resources.max",
            "expected a mapping",
        ),
        (
            "- {name: a, resources: {guaranteed: 30%, max: 20%}}",
            "guaranteed",
            "guaranteed 30% is larger than max 20%",
        ),
        (
            "- {name: a, resources: {guaranteed: 60%}}\n- {name: b, resources: {guaranteed: 50%}}",
            "queues",
            "the children of queue root are guaranteed 110% of its maximum together, and may be",
        ),
        (
            (
                "- name: a\n  resources: {guaranteed: 20%, max: 40%}\n"
                "  queues: [{name: b, resources: {guaranteed: 60%}}]"
            ),
            "queues",
            "the children of queue a are guaranteed 60% of its maximum together, and may be guaranteed 50%",
        ),
        (
            "- {name: a, resources: {guaranteed: 20%, lend: {memory: 1}}}",
            "lend",
            "lend of queue a cannot be compared with a guarantee that is a part of the cluster",
        ),
        (
            (
                "- {name: a, resources: {max: {memory: 10}}, queues: "
                "[{name: b, resources: {guaranteed: 60%}}, {name: c, resources: {guaranteed: 50%}}]}"
            ),
            "max",
            "max resource",
        ),
    ],
)
def test_percentages_that_make_no_sense_are_refused(queues: str, place: str, text: str) -> None:
    """Each error has its place; parts of quantities are compared as the quantities that they are."""
    with pytest.raises(ConfigurationError) as caught:
        a_configuration(queues)

    (problem,) = caught.value.problems
    assert problem.path.endswith(place)
    assert problem.text.startswith(text)
