"""Warnings about resource types; `§` marks where a warning is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import below_root, warnings_at_marks, warnings_of

from licorne.model.configuration.reader import inspect


@pytest.mark.parametrize("name", ["vcore", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu"])
def test_known_types_are_not_remarked_on(name: str) -> None:
    """Nor those that are like no known one: anybody may have types of their own."""
    assert [] == warnings_of(below_root(f"- {{name: a, resources: {{max: {{{name}: 4, license: 1}}}}}}"))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("vcroe", "vcore"),
        ("Vcore", "vcore"),
        ("memroy", "memory"),
        ("pod", "pods"),
        ("ephemeral_storage", "ephemeral-storage"),
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("cpu", "vcore"),
        ("mem", "memory"),
    ],
)
def test_a_misspelled_type_is_reported_with_the_nearest_known_one(written: str, meant: str) -> None:
    """It would limit nothing, since nothing has it."""
    text = below_root(f"- {{name: a, resources: {{max: {{{written}: §4}}}}}}")

    assert [f"the resource type {written!r} is not known; did you mean {meant!r}?"] == warnings_at_marks(text)


@pytest.mark.parametrize("name", ["amd.com/gpu", "example.com/gpu", "licence", "storage", "x" * 500])
def test_a_type_that_is_only_a_little_like_a_known_one_is_not_remarked_on(name: str) -> None:
    """It is rather one of its own."""
    assert [] == warnings_of(below_root(f"- {{name: a, resources: {{max: {{{name}: 4}}}}}}"))


def test_types_are_looked_at_wherever_they_stand() -> None:
    """Guarantees, maxima, templates, limits and the weights of the order of nodes."""
    text = below_root(
        """
        - name: p
          parent: true
          resources: {guaranteed: {vcoree: §1}}
          childtemplate: {resources: {guaranteed: {vcor: §1}, max: {vcroe: §1}}}
          limits: [{limit: x, users: [a], maxresources: {memmory: §5}}]
        """,
        "nodesortpolicy: {type: fair, resourceweights: {memoryy: §2.0}}",
    )

    assert 5 == len(warnings_at_marks(text))


def test_a_type_that_stands_there_twice_is_known() -> None:
    """Two equal misspellings are unlikely; and a third spelling may mean it."""
    text = below_root(
        """
        - {name: a, resources: {guaranteed: {tokens: 1}, max: {tokens: 2}}}
        - {name: b, resources: {max: {token: §1}}}
        """
    )

    assert ["the resource type 'token' is not known; did you mean 'tokens'?"] == warnings_at_marks(text)


def test_a_value_that_stands_in_several_places_by_an_alias_stands_there_once() -> None:
    """It was written once."""
    text = below_root("- {name: a, resources: {max: &m {vcroe: §4}}}\n- {name: b, resources: {max: *m}}")

    assert ["the resource type 'vcroe' is not known; did you mean 'vcore'?"] == warnings_at_marks(text)


def test_a_limit_of_a_partition_is_one_of_its_root_and_stands_there_once() -> None:
    """It is reported once."""
    text = below_root("- {name: a}", "limits: [{limit: x, users: ['*'], maxresources: {memroy: §5}}]")

    assert 1 == len(warnings_at_marks(text))


def test_what_the_nodes_have_is_known_and_all_else_is_reported() -> None:
    """Who knows the nodes knows that a type like no other limits nothing either."""
    text = below_root("- {name: a, resources: {max: {tpu: 1, tokens: 2, vcoree: 3}}}")
    report = inspect(text, "f", node_types=["vcore", "tpu", "vcorex"])

    assert [
        "the resource type 'tokens' is not known: no node has it",
        "the resource type 'vcoree' is not known; did you mean 'vcore'?",
    ] == [warning.text for warning in report.warnings]


def test_very_many_types_are_compared_with_the_common_ones_alone() -> None:
    """Comparing each with each other would take minutes; a small number of types is compared in full."""

    def hints(count: int) -> list[str]:
        known = ", ".join(f"license-{number}: 1" for number in range(count))
        others = ", ".join(f"licence-{number}: 1" for number in range(count))
        resources = f"{{guaranteed: {{{known}}}, max: {{{known}, {others}, memroy: 1}}}}"
        return [
            text
            for text in warnings_of(below_root(f"- {{name: a, resources: {resources}}}"))
            if "mean" in text
        ]

    assert 11 == len(hints(10))
    (only,) = hints(400)
    assert "did you mean 'memory'?" in only
