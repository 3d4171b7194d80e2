"""Warnings about queues; `§` marks where a warning is reported."""

from __future__ import annotations

from typing import Final

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


BACKFILLS: Final = (
    "and a queue above its work backfills: work without a walltime of its own never ends in a plan"
)
SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "names that no user can have are reported in access lists": (
        below_root("- {name: a, submitacl: §'bob,b!b dev:x,*', adminacl: §'* dev'}").replace(OPEN, ""),
        "'b!b', 'dev:x', '*' in the ACL 'bob,b!b dev:x,*' can match nobody",
        "'dev' in the ACL '* dev' can match nobody",
    ),
    **{
        f"{key} resources that are all zero are reported: they limit nothing": (
            below_root(f"- {{name: a, resources: {{{key}: §{{memory: 0, vcore: 0}}}}}}"),
            f"{key} is zero for all resources, which counts as not set",
        )
        for key in ("guaranteed", "max")
    },
    "an empty template of a leaf is not reported": (
        below_root("- {name: a, childtemplate: {properties: {}}}"),
    ),
    "unknown properties are reported with the property that was meant, in templates too": (
        below_root(
            "- name: a\n  parent: true\n"
            "  properties: {aplication.sort.priority: §disabled, colour: §red}\n"
            "  childtemplate: {properties: {preemption.delay.seconds: §10}}"
        ),
        "the property 'aplication.sort.priority' is not known; did you mean 'application.sort.priority'?",
        "the property 'colour' is not known",
        "the property 'preemption.delay.seconds' is not known; did you mean 'preemption.delay'?",
    ),
    "the old name of fifo is reported": (
        below_root("- {name: a, properties: {application.sort.policy: §stateaware}}"),
        "stateaware is served as fifo: write 'fifo'",
    ),
    "properties of leaves are reported at parents without queues: dynamic queues do not inherit them": (
        below_root("- {name: a, parent: true, properties: {application.sort.policy: §fair}}"),
        (
            "application.sort.policy has no effect at a parent without configured queues; "
            "did you mean childtemplate?"
        ),
    ),
    "properties of preemption are reported where it is off; quota preemption is off by default": (
        below_root(
            "- name: a\n  properties: {preemption.delay: §10s, preemption.policy: §fence, "
            "quota.preemption.delay: §1m}",
            "preemption: {enabled: false}",
        ),
        "preemption.delay has no effect: preemption.enabled is not true for the partition",
        "preemption.policy has no effect: preemption.enabled is not true for the partition",
        (
            "quota.preemption.delay has no effect: preemption.quotapreemptionenabled is not true "
            "for the partition"
        ),
    ),
    "leaves without a run time are reported below a queue that backfills, and what has no effect there": (
        below_root(
            "- name: a\n  properties: {backfill.reservations: all, backfill.order: §shortest, "
            "preemption.delay: 1s}\n  queues:\n"
            "  - §{name: b, properties: {preemption.delay: 1s, preemption.within: lower-priority}}\n"
            "  - {name: c, properties: {runtime.default: 1h}}\n"
            "  - {name: d, properties: {runtime.max: 1h, backfill.reservations: §'2'}}\n"
            "  - {name: e, properties: {runtime.default: 1h}, queues: [{name: f}]}\n"
            "  - §{name: g, parent: true}\n"
            "  - {name: h, parent: true, childtemplate: {properties: {runtime.default: 1h}}}\n"
            "- {name: i}\n- {name: j, parent: true, properties: {backfill.order: §shortest}}"
        ),
        "backfill.order has no effect unless backfill.reservations is a number above 0",
        f"queue b has no runtime.default, {BACKFILLS}",
        "backfill.reservations has no effect at a leaf: it is for the queue above",
        f"queue g has no runtime.default in a childtemplate, {BACKFILLS}",
        "backfill.order has no effect unless backfill.reservations is a number above 0",
    ),
    "an unknown resolver is reported with the one that was meant": (
        below_root("", "usergroupresolver: {type: §ladp}"),
        "the user group resolver 'ladp' is not known, the default is used; did you mean 'ldap'?",
    ),
    "the resolver for tests of the recorded core is not known": (
        below_root("", "usergroupresolver: {type: §test}"),
        "the user group resolver 'test' is not known, the default is used",
    ),
    "a resolver in upper case is not known": (
        below_root("", "usergroupresolver: {type: §OS}"),
        "the user group resolver 'OS' is not known, the default is used; did you mean 'os'?",
    ),
    **{
        f"the resolver {kind} is known": (below_root("", f"usergroupresolver: {{type: {kind}}}"),)
        for kind in ("os", "ldap", "''")
    },
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_without_the_effect_they_seem_to_have_are_reported(case: str) -> None:
    """Settings that do what they seem to do are not."""
    text, *said = SETTINGS[case]

    assert said == warnings_at_marks(text)


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

    assert [f"{text!r} is not a value of {name}, the default is used{hint}"] == warnings_at_marks(
        configuration
    )


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
