"""Rules about guaranteed and maximum resources; `§` marks where an error is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import below_root, errors_at_marks, errors_of

from licorne.model.configuration.rules import queues
from licorne.model.resources.resource import Resource, component_wise_min

SMALLER: Final = "is smaller than maximum resource"
SUM: Final = "is smaller than sum of guaranteed resources map[memory:11] of the children for queue"
SIX_AND_FIVE: Final = (
    "{name: a, resources: {guaranteed: {memory: 6}}}",
    "{name: b, resources: {guaranteed: {memory: 5}}}",
)


def parent_with(resources: str, *children: str) -> str:
    """Return a configuration with a parent queue p that has these resources and these children."""
    return below_root(f"- {{name: p, resources: {resources}, queues: [{', '.join(children)}]}}")


RESOURCES: Final[dict[str, tuple[str, ...]]] = {
    "quantities are compared, not their texts: a queue is guaranteed no more than its maximum": (
        below_root("- {name: a, resources: {guaranteed: §{memory: 1Ki}, max: {memory: 1k}}}"),
        "guaranteed resource map[memory:1024] is larger than maximum resource map[memory:1000] for queue a",
    ),
    **{
        f"only types that the maximum names are compared: {own}": (
            below_root(f"- {{name: a, resources: {own}}}"),
        )
        for own in (
            "{guaranteed: {memory: 10}, max: {memory: 10}}",
            "{guaranteed: {memory: 10}, max: {vcore: 1}}",
            "{guaranteed: {memory: 10}}",
            "{guaranteed: {memory: 1, vcore: 0}, max: {vcore: 0}}",
        )
    },
    "a child has no larger maximum than its parent": (
        parent_with(
            "{max: {memory: 10}}",
            "{name: a, resources: {max: §{memory: 11, vcore: 3}}}",
            "{name: b, resources: {max: {memory: 10}}}",
        ),
        f"max resource of parent map[memory:10] {SMALLER} map[memory:11 vcore:3000] for queue a",
    ),
    "the lowest maximum of each type above a queue limits it, over levels without one": (
        parent_with(
            "{max: {memory: 10}}",
            "{name: m, resources: {max: {vcore: 2}}, queues: [{name: a, resources: {max: §{memory: 11}}}"
            ", {name: b, resources: {max: §{vcore: 3}}}]}",
        ),
        f"max resource of parent map[memory:10 vcore:2000] {SMALLER} map[memory:11] for queue a",
        f"max resource of parent map[memory:10 vcore:2000] {SMALLER} map[vcore:3000] for queue b",
    ),
    "children are together guaranteed no more than their parent": (
        parent_with("{guaranteed: §{memory: 10}}", *SIX_AND_FIVE),
        f"guaranteed resource of parent map[memory:10] {SUM} p",
    ),
    "children are together guaranteed no more than the maximum of their parent": (
        parent_with("{max: §{memory: 10}}", *SIX_AND_FIVE),
        f"max resource map[memory:10] {SUM} p",
    ),
    "a queue without a guarantee hands up the sum of its children, one with a guarantee its own": (
        parent_with(
            "{guaranteed: §{memory: 10}}",
            "{name: m, queues: [{name: a, resources: {guaranteed: {memory: 6}}}]}",
            "{name: n, resources: {guaranteed: {memory: 5}}, "
            "queues: [{name: b, resources: {guaranteed: {memory: 1}}}]}",
        ),
        f"guaranteed resource of parent map[memory:10] {SUM} p",
    ),
    "guarantees of types that the parent does not guarantee are not added": (
        parent_with(
            "{guaranteed: {memory: 10}}",
            "{name: a, resources: {guaranteed: {vcore: 60, memory: 4}}}",
            "{name: b, resources: {guaranteed: {memory: 6}}}",
        ),
    ),
    "a sum above a maximum is reported at the maximum and at a queue between without own settings": (
        parent_with("{max: §{memory: 10}}", f"§{{name: m, queues: [{', '.join(SIX_AND_FIVE)}]}}"),
        *(f"max resource map[memory:10] {SUM} {name}" for name in ("p", "m")),
    ),
    "a queue lends no more of a type than it is guaranteed, and nothing of one that it is not": (
        below_root(
            "- {name: a, resources: {guaranteed: {memory: 5, vcore: 2}, lend: {memory: §6, gpu: §0}}}"
        ),
        "lend of 6 memory is larger than the guarantee of queue a: 5 memory",
        "lend names gpu, of which queue a is guaranteed nothing",
    ),
    "so does a template": (
        below_root(
            "- {name: a, parent: true, "
            "childtemplate: {resources: {guaranteed: {vcore: 2}, lend: {vcore: §3}}}}"
        ),
        "lend of 3 vcore is larger than the guarantee of the childtemplate of queue a: 2 vcore",
    ),
    "a quantity that is lent is readable": (
        below_root("- {name: a, resources: {guaranteed: {memory: 5}, lend: {memory: §many}}}"),
        "invalid quantity: 'many'",
    ),
}


@pytest.mark.parametrize("case", RESOURCES)
def test_resources_of_queues_are_checked(case: str) -> None:
    """Each queue alone, with the queues above it and with its children."""
    text, *said = RESOURCES[case]

    assert said == errors_at_marks(text)


def test_maxima_are_not_combined_for_each_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of leaves may be below a maximum of thousands of types."""
    combined: list[object] = []

    def counted(left: Resource | None, right: Resource | None) -> Resource | None:
        combined.extend(side for side in (left, right) if side is not None and left is not None)
        return component_wise_min(left, right)

    monkeypatch.setattr(queues, "component_wise_min", counted)
    leaves = ", ".join(f"{{name: q{number}, resources: {{max: {{memory: 1}}}}}}" for number in range(50))
    errors_of(below_root(f"- {{name: a, resources: {{max: {{memory: 5, vcore: 5}}}}, queues: [{leaves}]}}"))

    assert 2 >= len(combined)
