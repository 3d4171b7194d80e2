"""Rules about guaranteed and maximum resources; `§` marks where an error is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import below_root, errors_at_marks, errors_of

from licorne.model.configuration.rules import resources
from licorne.model.resources.resource import Resource, component_wise_min


def test_a_queue_is_guaranteed_no_more_than_its_maximum() -> None:
    """Quantities are compared, not the texts."""
    text = below_root("- {name: a, resources: {guaranteed: §{memory: 1Ki}, max: {memory: 1k}}}")

    assert [
        "guaranteed resource map[memory:1024] is larger than maximum resource map[memory:1000] for queue a"
    ] == errors_at_marks(text)


@pytest.mark.parametrize(
    "resources",
    [
        "{guaranteed: {memory: 10}, max: {memory: 10}}",
        "{guaranteed: {memory: 10}, max: {vcore: 1}}",
        "{guaranteed: {memory: 10}}",
        "{guaranteed: {memory: 1, vcore: 0}, max: {vcore: 0}}",
    ],
)
def test_only_types_that_the_maximum_names_are_compared(resources: str) -> None:
    """A type without a maximum is unlimited, and equal is allowed."""
    assert errors_of(below_root(f"- {{name: a, resources: {resources}}}")) == []


def test_a_child_has_no_larger_maximum_than_its_parent() -> None:
    """Reported at the child."""
    text = below_root(
        """
        - name: p
          resources: {max: {memory: 10}}
          queues:
          - {name: a, resources: {max: §{memory: 11, vcore: 3}}}
          - {name: b, resources: {max: {memory: 10}}}
        """
    )

    assert [
        (
            "max resource of parent map[memory:10] is smaller than maximum resource "
            "map[memory:11 vcore:3000] for queue a"
        )
    ] == errors_at_marks(text)


def test_a_maximum_reaches_over_levels_without_one() -> None:
    """The lowest maximum of each type above counts."""
    text = below_root(
        """
        - name: p
          resources: {max: {memory: 10}}
          queues:
          - name: m
            resources: {max: {vcore: 2}}
            queues:
            - {name: a, resources: {max: §{memory: 11}}}
            - {name: b, resources: {max: §{vcore: 3}}}
        """
    )

    assert [
        f"max resource of parent map[memory:10 vcore:2000] is smaller than maximum resource {own} "
        f"for queue {name}"
        for own, name in (("map[memory:11]", "a"), ("map[vcore:3000]", "b"))
    ] == errors_at_marks(text)


def test_children_are_guaranteed_no_more_than_their_parent_together() -> None:
    """Reported at the guarantee of the parent."""
    text = below_root(
        """
        - name: p
          resources: {guaranteed: §{memory: 10}}
          queues:
          - {name: a, resources: {guaranteed: {memory: 6}}}
          - {name: b, resources: {guaranteed: {memory: 5}}}
        """
    )

    assert [
        (
            "guaranteed resource of parent map[memory:10] is smaller than sum of guaranteed resources "
            "map[memory:11] of the children for queue p"
        )
    ] == errors_at_marks(text)


def test_children_are_guaranteed_no_more_than_the_maximum_of_their_parent() -> None:
    """What can never be had cannot be guaranteed."""
    text = below_root(
        """
        - name: p
          resources: {max: §{memory: 10}}
          queues:
          - {name: a, resources: {guaranteed: {memory: 6}}}
          - {name: b, resources: {guaranteed: {memory: 5}}}
        """
    )

    assert [
        (
            "max resource map[memory:10] is smaller than sum of guaranteed resources map[memory:11] "
            "of the children for queue p"
        )
    ] == errors_at_marks(text)


def test_guarantees_add_up_over_levels_without_one() -> None:
    """A level without a guarantee hands up what its children have; one with a guarantee hands up its own."""
    text = below_root(
        """
        - name: p
          resources: {guaranteed: §{memory: 10}}
          queues:
          - name: m
            queues:
            - {name: a, resources: {guaranteed: {memory: 6}}}
          - name: n
            resources: {guaranteed: {memory: 5}}
            queues:
            - {name: b, resources: {guaranteed: {memory: 1}}}
        """
    )

    (said,) = errors_at_marks(text)

    assert "sum of guaranteed resources map[memory:11]" in said


def test_guarantees_of_other_types_are_not_added() -> None:
    """A parent that guarantees memory says nothing about cores."""
    text = below_root(
        """
        - name: p
          resources: {guaranteed: {memory: 10}}
          queues:
          - {name: a, resources: {guaranteed: {vcore: 60, memory: 4}}}
          - {name: b, resources: {guaranteed: {memory: 6}}}
        """
    )

    assert errors_of(text) == []


def test_a_sum_that_is_too_large_at_a_maximum_further_up_is_reported_there() -> None:
    """An error of a queue without own settings is reported at the queue."""
    text = below_root(
        """
        - name: p
          resources: {max: §{memory: 10}}
          queues:
          - §name: m
            queues:
            - {name: a, resources: {guaranteed: {memory: 6}}}
            - {name: b, resources: {guaranteed: {memory: 6}}}
        """
    )

    assert ["p", "m"] == [said.rpartition(" ")[2] for said in errors_at_marks(text)]


def test_maxima_are_not_combined_for_each_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of leaves may be below a maximum of thousands of types."""
    combined: list[object] = []

    def counted(left: Resource | None, right: Resource | None) -> Resource | None:
        combined.extend(side for side in (left, right) if side is not None and left is not None)
        return component_wise_min(left, right)

    monkeypatch.setattr(resources, "component_wise_min", counted)
    leaves = ", ".join(f"{{name: q{number}, resources: {{max: {{memory: 1}}}}}}" for number in range(50))
    errors_of(below_root(f"- {{name: a, resources: {{max: {{memory: 5, vcore: 5}}}}, queues: [{leaves}]}}"))

    assert 2 >= len(combined)
