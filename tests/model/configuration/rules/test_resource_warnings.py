"""Warnings about resource types; `§` marks where a warning is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import below_root, warnings_at_marks, warnings_of

from licorne.model.configuration.reader import inspect


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


TYPES: Final[dict[str, tuple[str, ...]]] = {
    **{
        f"{name} is known, and a type like no known one is one of its own": (
            below_root(f"- {{name: a, resources: {{max: {{{name}: 4, license: 1}}}}}}"),
        )
        for name in ("vcore", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu")
    },
    **{
        f"{name[:15]} is only a little like a known type": (
            below_root(f"- {{name: a, resources: {{max: {{{name}: 4}}}}}}"),
        )
        for name in ("amd.com/gpu", "example.com/gpu", "licence", "storage", "x" * 500)
    },
    "types are checked in guarantees, maxima, templates, limits and weights of the order of nodes": (
        below_root(
            """
                - name: p
                  parent: true
                  resources: {guaranteed: {vcoree: §1}}
                  childtemplate: {resources: {guaranteed: {vcor: §1}, max: {vcroe: §1}}}
                  limits: [{limit: x, users: [a], maxresources: {memmory: §5}}]
                """,
            "nodesortpolicy: {type: fair, resourceweights: {memoryy: §2.0}}",
        ),
        *(
            f"the resource type {written!r} is not known; did you mean {meant!r}?"
            for written, meant in (
                ("vcoree", "vcore"),
                ("vcor", "vcore"),
                ("vcroe", "vcore"),
                ("memmory", "memory"),
                ("memoryy", "memory"),
            )
        ),
    ),
    "a type that is written twice is known, and a third spelling may mean it": (
        below_root(
            "- {name: a, resources: {guaranteed: {tokens: 1}, max: {tokens: 2}}}\n"
            "- {name: b, resources: {max: {token: §1}}}"
        ),
        "the resource type 'token' is not known; did you mean 'tokens'?",
    ),
    "a value that is repeated by an alias is written once": (
        below_root("- {name: a, resources: {max: &m {vcroe: §4}}}\n- {name: b, resources: {max: *m}}"),
        "the resource type 'vcroe' is not known; did you mean 'vcore'?",
    ),
    "a limit of a partition is one of its root too and is reported once": (
        below_root("- {name: a}", "limits: [{limit: x, users: ['*'], maxresources: {memroy: §5}}]"),
        "the resource type 'memroy' is not known; did you mean 'memory'?",
    ),
}


@pytest.mark.parametrize("case", TYPES)
def test_types_that_nothing_has_are_reported(case: str) -> None:
    """Anybody may have types of their own: what is like no known type is not reported."""
    text, *said = TYPES[case]

    assert said == warnings_at_marks(text)


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
