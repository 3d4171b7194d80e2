"""Configurations that look wrong and are right, and the reverse, as whole texts."""

from __future__ import annotations

from typing import Final

import pytest

from licorne.model.configuration.reader import inspect


def a_partition(rest: str = "", root: str = "") -> str:
    """Return a text with one partition and its root."""
    return f"partitions: [{{name: default, {rest} queues: [{{name: root, {root}}}]}}]"


def a_limit(limit: str) -> str:
    """Return a text whose root has one limit."""
    return a_partition(root=f"limits: [{{limit: x, {limit}}}]")


def a_child(child: str) -> str:
    """Return a text with one queue below the root."""
    return a_partition(root=f"queues: [{{{child}}}]")


SAME: Final = "limits: [{limit: x, users: [a], maxapplications: 1}]"

ACCEPTED: Final = {
    "dashes alone in their lines": (
        "partitions:\n  -\n    name: default\n    queues:\n      -\n        name: root\n"
    ),
    "mixed indentation": (
        "partitions:\n- name: default\n  queues:\n      - name: root\n        queues:\n        - name: a\n"
        "          resources:\n               max: {memory: 1}\n"
    ),
    "everybody as a limited user": a_limit("users: ['*'], maxapplications: 1"),
    "users and groups in one limit": a_limit("users: [a], groups: [b], maxapplications: 1"),
    "the limits of the root at the partition as well": a_partition(f"{SAME},", SAME),
    "a rule in capitals": a_partition("placementrules: [{name: USER}],"),
    "a rule that nobody knows": a_partition("placementrules: [{name: Something}],"),
    "parents of parents of rules": a_partition(
        "placementrules: [{name: user, create: true, parent: {name: tag, value: namespace, create: true, "
        "parent: {name: FixEd, value: x, create: true}}}],"
    ),
    "64 characters of all kinds": a_child(f"name: '{('aZ09-_#@/:' * 7)[:64]}'"),
}

REFUSED: Final = {
    "a star without quotes": (a_partition(root="submitacl: *"), "not YAML"),
    "a quote that does not end": (a_partition(root="submitacl: 'x"), "not YAML"),
    "a flag that is none": (a_partition("placementrules: [{name: user, create: maybe}],"), "true or false"),
    "an access list of three": (a_partition(root="submitacl: 'a b c'"), "multiple spaces"),
    "a dot in a name": (a_child("name: a.b"), "invalid queue name"),
    "a dollar in a name": (a_child("name: a$"), "invalid queue name"),
    "a blank in a name": (a_child("name: 'a b'"), "invalid queue name"),
    "65 characters": (a_child(f"name: {'x' * 65}"), "invalid queue name"),
    "a limit of zeros": (
        a_limit("users: [a], maxapplications: 1, maxresources: {memory: 0}"),
        "MaxResources should be greater than zero",
    ),
    "a limit of nothing": (a_limit("users: [a], maxapplications: 0, maxresources: {}"), "are null"),
    "a quantity below zero": (a_child("name: a, resources: {max: {memory: -5}}"), "invalid quantity"),
    "a partition without a name beside the default": (
        "partitions: [{queues: [{name: root}]}, {name: default, queues: [{name: root}]}]",
        "duplicate partition",
    ),
    "other limits at the partition than at the root": (
        a_partition(f"{SAME.replace('1', '2')},", SAME),
        "not equivalent",
    ),
    "a root in capitals": ("partitions: [{queues: [{name: Root}]}]", "without root queue"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_looks_wrong_is_right(case: str) -> None:
    """Nothing is said against it."""
    assert () == inspect(ACCEPTED[case]).errors


@pytest.mark.parametrize("case", REFUSED)
def test_what_looks_right_is_wrong(case: str) -> None:
    """For one reason, which is reported."""
    text, why = REFUSED[case]

    (problem,) = inspect(text).errors

    assert why in str(problem)
