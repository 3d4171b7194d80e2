"""Warnings about queues; `§` marks where a warning is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import OPEN, below_root, warnings_at_marks, warnings_of


def test_a_sensible_queue_has_no_warnings() -> None:
    """Settings that do what they seem to do are not remarked on."""
    text = below_root(
        """
        - name: p
          parent: true
          properties: {application.sort.policy: fair, priority.policy: Fence, priority.offset: -5}
          childtemplate: {maxapplications: 2}
          adminacl: "bob,dan dev"
          queues:
          - name: a
            resources: {guaranteed: {memory: 0, vcore: 1}}
            properties:
              preemption.delay: 10s
              quota.preemption.delay: 1m
              application.unschedasks.backoff: 3
        """,
        "preemption: {quotapreemptionenabled: true}\nusergroupresolver: {type: ldap}",
    )

    assert warnings_of(text) == []


def test_names_that_no_user_can_have_are_remarked_on_in_access_lists() -> None:
    """They are stricter than names in limits."""
    text = below_root("- {name: a, submitacl: §'bob,b!b dev:x,*', adminacl: §'* dev'}").replace(OPEN, "")

    assert [
        "'b!b', 'dev:x', '*' in the ACL 'bob,b!b dev:x,*' can match nobody",
        "'dev' in the ACL '* dev' can match nobody",
    ] == warnings_at_marks(text)


@pytest.mark.parametrize("key", ["guaranteed", "max"])
def test_resources_that_are_all_zero_are_remarked_on(key: str) -> None:
    """A maximum of zero limits nothing."""
    text = below_root(f"- {{name: a, resources: {{{key}: §{{memory: 0, vcore: 0}}}}}}")

    assert [f"{key} is zero for all resources, which counts as not set"] == warnings_at_marks(text)


def test_an_empty_template_of_a_leaf_is_not_remarked_on() -> None:
    """It says nothing anywhere."""
    assert warnings_of(below_root("- {name: a, childtemplate: {properties: {}}}")) == []


def test_unknown_properties_are_remarked_on_with_the_property_that_was_meant() -> None:
    """In templates too; they are kept all the same."""
    text = below_root(
        """
        - name: a
          parent: true
          properties: {aplication.sort.priority: §disabled, colour: §red}
          childtemplate: {properties: {preemption.delay.seconds: §10}}
        """
    )

    assert [
        "the property 'aplication.sort.priority' is not known; did you mean 'application.sort.priority'?",
        "the property 'colour' is not known",
        "the property 'preemption.delay.seconds' is not known; did you mean 'preemption.delay'?",
    ] == warnings_at_marks(text)


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("application.sort.policy", "Fair", "; did you mean 'fair'?"),
        ("application.sort.priority", "enable", "; did you mean 'enabled'?"),
        ("priority.policy", "fenced", "; did you mean 'fence'?"),
        ("preemption.policy", "off", ""),
        ("priority.offset", "high", ""),
        ("preemption.delay", "10", ""),
        ("preemption.delay", "0s", ""),
        ("application.unschedasks.backoff", "-1", ""),
    ],
)
def test_unreadable_properties_are_remarked_on(name: str, text: str, hint: str) -> None:
    """The default is used, which is rarely what was meant."""
    configuration = below_root(f"- {{name: a, properties: {{{name}: §'{text}'}}}}")

    assert [f"{text!r} is no value of {name}, the default is used{hint}"] == warnings_at_marks(configuration)


def test_the_old_name_of_fifo_is_remarked_on() -> None:
    """It works as before."""
    text = below_root("- {name: a, properties: {application.sort.policy: §stateaware}}")

    assert ["stateaware is served as fifo: write 'fifo'"] == warnings_at_marks(text)


def test_properties_of_leaves_are_remarked_on_at_parents_without_queues() -> None:
    """Dynamic queues do not inherit them."""
    text = below_root("- {name: a, parent: true, properties: {application.sort.policy: §fair}}")

    assert [
        (
            "application.sort.policy has no effect at a parent without configured queues; "
            "did you mean childtemplate?"
        )
    ] == warnings_at_marks(text)


def test_properties_of_preemption_are_remarked_on_where_it_is_off() -> None:
    """Quota preemption is off unless it is switched on."""
    text = below_root(
        """
        - name: a
          properties: {preemption.delay: §10s, preemption.policy: §fence, quota.preemption.delay: §1m}
        """,
        "preemption: {enabled: false}",
    )

    assert [
        "preemption.delay has no effect: preemption.enabled is not true for the partition",
        "preemption.policy has no effect: preemption.enabled is not true for the partition",
        (
            "quota.preemption.delay has no effect: preemption.quotapreemptionenabled is not true "
            "for the partition"
        ),
    ] == warnings_at_marks(text)


def test_an_unknown_resolver_is_remarked_on() -> None:
    """Users are resolved as if there were none."""
    text = below_root("", "usergroupresolver: {type: §ladp}")

    assert [
        "the user group resolver 'ladp' is not known, the default is used; did you mean 'ldap'?"
    ] == warnings_at_marks(text)


@pytest.mark.parametrize("kind", ["os", "ldap", "''"])
def test_a_known_resolver_is_not_remarked_on(kind: str) -> None:
    """Nor is none at all."""
    assert [] == warnings_of(below_root("", f"usergroupresolver: {{type: {kind}}}"))


@pytest.mark.parametrize("kind", ["test", "OS"])
def test_a_resolver_that_is_not_built_is_remarked_on(kind: str) -> None:
    """The recorded core has one for its tests; and it knows only lower case."""
    (remark,) = warnings_of(below_root("", f"usergroupresolver: {{type: {kind}}}"))

    assert f"the user group resolver {kind!r} is not known, the default is used" in remark


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        ("§- name: root\n  queues: [{name: a}]", ["no user may submit to root or below it"]),
        (
            "- name: root\n  queues: [{name: a, submitacl: ' dev'}, §{name: b}]",
            ["no user may submit to root.b"],
        ),
        ("- name: root\n  queues: [{name: a, adminacl: bob, queues: [{name: c}]}, §{name: b}]", ["root.b"]),
        ("- {name: root, adminacl: bob, queues: [{name: a}]}", []),
        ("- {name: root, submitacl: '*', queues: [{name: a, submitacl: §bob}]}", ["submitacl has no effect"]),
        (
            "- {name: root, adminacl: '*', queues: [{name: a, queues: [{name: b, submitacl: §bob}]}]}",
            ["above root.a.b"],
        ),
        ("- {name: root, submitacl: '*', queues: [{name: a, submitacl: '*'}]}", []),
    ],
)
def test_queues_without_submitters_and_lists_without_effect_are_remarked_on(
    queues: str, expected: list[str]
) -> None:
    """Whoever may submit above may submit below, and whoever administers a queue may submit to it."""
    text = "partitions:\n- queues:\n" + "".join(f"  {line}\n" for line in queues.split("\n"))

    found = warnings_at_marks(text.replace("§- name: root", "- §name: root"))

    assert [True] * len(expected) == [
        wanted in warning for wanted, warning in zip(expected, found, strict=True)
    ]
