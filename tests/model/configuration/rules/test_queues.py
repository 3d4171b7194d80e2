"""Rules about single queues and their children; `§` marks where an error is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import below_root, errors_at_marks, errors_of, warnings_at_marks

from licorne.model.configuration.names import QUEUE_NAME_RULE

ZERO_BELOW_TWO = (
    "maxApplications is either undefined or zero, which is not allowed when parent queue's "
    "maxApplications is defined (2 for queue p)"
)


def two_applications(children: str) -> str:
    """Return a configuration with a parent p of at most two applications and these children."""
    return below_root(f"- {{name: p, maxapplications: 2, queues: [{children}]}}")


@pytest.mark.parametrize("key", ["adminacl", "submitacl"])
@pytest.mark.parametrize("acl", ["a b c", "bob  dev", "  ", " a b", "a\tb\tc"])
def test_an_access_list_has_two_parts_at_most(key: str, acl: str) -> None:
    """Each blank separates, so that what is accepted can also be built."""
    text = below_root(f'- name: a\n  {key}: §"{acl}"')

    assert [f"multiple spaces found in ACL: {acl!r}"] == errors_at_marks(text)


@pytest.mark.parametrize("name", ["a.b", "a b", "*", "a$", "x" * 65, "", "é", "a\n"])
def test_a_queue_name_is_made_of_few_characters(name: str) -> None:
    """Letters and digits of ASCII and a few signs, 64 at most, and no dots."""
    written = name.replace("\n", "\\n")
    text = below_root(f'- maxapplications: 1\n  name: §"{written}"')

    assert [f"{QUEUE_NAME_RULE}: {name!r}"] == errors_at_marks(text)


@pytest.mark.parametrize("name", [("aZ09-_#@/:" * 7)[:64], "a-b_c#d@e/f:g", "123", "root", "@recovery@"])
def test_unusual_queue_names_are_allowed(name: str) -> None:
    """No name is reserved below the root."""
    assert errors_of(below_root(f"- name: '{name}'")) == []


QUEUES: Final[dict[str, tuple[str, ...]]] = {
    "an access list of the root has two parts at most": (
        "partitions: [{queues: [{name: root, submitacl: §a b c}]}]",
        "multiple spaces found in ACL: 'a b c'",
    ),
    "a queue without a name is reported at its position": (
        below_root("- §parent: true"),
        f"{QUEUE_NAME_RULE}: ''",
    ),
    "each repetition of a name is reported, in upper or lower case": (
        below_root("- name: a\n- name: §A\n- name: §a"),
        *["duplicate child name found with name 'a', level 1"] * 2,
    ),
    "the level of a repeated name is counted from the children of the root": (
        below_root("- name: p\n  queues:\n  - name: x\n  - name: §x"),
        "duplicate child name found with name 'x', level 2",
    ),
    "equal names under different parents are allowed": (
        below_root("- {name: p, queues: [{name: x}]}\n- {name: q, queues: [{name: x}]}"),
    ),
    "a child has as many applications as its parent, and no more": (
        two_applications("{name: a, maxapplications: §3}, {name: b, maxapplications: 2}"),
        "parent maxApplications must be larger than child maxApplications: 2 for queue p, 3 for queue a",
    ),
    "a child of a limited parent has a maximum": (two_applications("§{name: a}"), ZERO_BELOW_TWO),
    "a child of a limited parent has a maximum above zero": (
        two_applications("{name: a, maxapplications: §0}"),
        ZERO_BELOW_TWO,
    ),
    "a child whose maximum cannot be read is not also reported to have none": (
        two_applications("{name: a, maxapplications: §'2'}"),
        "expected a whole number, not the text '2': write it without quotes",
    ),
    "a parent without a maximum does not limit the applications of a child": (
        below_root(
            "- {name: p, queues: [{name: m, queues: [{name: a, maxapplications: 9}]}, "
            "{name: n, maxapplications: 5}]}"
        ),
    ),
    "all resources of the template of a parent are read": (
        below_root(
            "- name: a\n  parent: true\n  childtemplate:\n    resources:\n"
            "      max: {memory: §x, vcore: 1}\n      guaranteed: {memory: §10K}"
        ),
        "invalid quantity: 'x'",
        "invalid suffix: '10K'; did you mean '10k'?",
    ),
    "what costs of preemption cannot be read are refused, in templates too": (
        below_root(
            "- name: a\n  parent: true\n"
            "  properties: {preemption.min-runtime: §soon, preemption.min-runtime.scope: §guarante}\n"
            "  childtemplate: {properties: {preemption.min-runtime: §-5m}}"
        ),
        "preemption.min-runtime is 'soon', and must be a duration such as '30m', or 0 for none",
        (
            "preemption.min-runtime.scope is 'guarante', and must be 'all' or 'guarantee'; "
            "did you mean 'guarantee'?"
        ),
        "preemption.min-runtime is '-5m', and must be a duration such as '30m', or 0 for none",
    ),
    **{
        f"a budget of disruption of {text} is refused": (
            below_root(f"- {{name: a, properties: {{preemption.victims-max: §{text}}}}}"),
            (
                f"preemption.victims-max is {text!r}, and must be "
                "a number above zero and a duration, such as '5/1h'"
            ),
        )
        for text in ("5", "0/1h", "5/0s", "-1/1h", "five/1h", "5/1h/2", "5/")
    },
    "a word for preemption inside of a queue that does not exist is refused": (
        below_root("- {name: a, properties: {preemption.within: §lower}}"),
        "preemption.within is 'lower', and must be 'never' or 'lower-priority'",
    ),
    **{
        f"a weight of {text!r} is refused": (
            below_root(f"- {{name: a, properties: {{fair.weight: §{text}}}}}"),
            f"fair.weight is {text!r}, and must be a number from 1 to 1000000",
        )
        for text in ("0", "-1", "1000001", "heavy", "1.5")
    },
    **{
        f"a half-life of {text!r} is refused": (
            below_root(
                f"- {{name: a, parent: true, childtemplate: {{properties: {{fair.half-life: §{text}}}}}}}"
            ),
            f"fair.half-life is {text!r}, and must be a duration above zero, such as '7d'",
        )
        for text in ("0s", "-1h", "week")
    },
    **{
        f"a number of promises of {text!r} is refused": (
            below_root(f"- {{name: a, parent: true, properties: {{backfill.reservations: §{text}}}}}"),
            f"backfill.reservations is {text!r}, and must be a number from 0 to 1000, or all",
        )
        for text in ("-1", "1001", "every", "1.5")
    },
    "a number of passes is one": (
        below_root("- {name: a, parent: true, properties: {backfill.passes: §all}}"),
        "backfill.passes is 'all', and must be a number from 0 to 1000",
    ),
    "an order of backfilling is one of two": (
        below_root("- {name: a, parent: true, properties: {backfill.order: §shortes}}"),
        (
            "backfill.order is 'shortes', and must be 'queue' or 'shortest' or 'policy/NAME'; "
            "did you mean 'shortest'?"
        ),
    ),
    "what counts is one of two words": (
        below_root("- {name: a, properties: {fair.count: §everything}}"),
        "fair.count is 'everything', and must be 'above-guarantee' or 'all'",
    ),
    "all entries of a resource are read": (
        below_root("- {name: a, resources: {guaranteed: {memory: §x, vcore: 1, pods: §-1}}}"),
        "invalid quantity: 'x'",
        "invalid quantity: '-1'",
    ),
}


@pytest.mark.parametrize("case", QUEUES)
def test_queues_are_checked(case: str) -> None:
    """Each queue alone and with its parent."""
    text, *said = QUEUES[case]

    assert said == errors_at_marks(text)


def test_the_template_of_a_leaf_is_not_read() -> None:
    """It has no effect, which is a warning."""
    text = below_root("- {name: a, childtemplate: §{resources: {max: {memory: x}}}}")

    assert ["childtemplate has no effect: queue a is a leaf"] == warnings_at_marks(text)


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        ("-1", "invalid quantity: '-1'"),
        ("1.5", "invalid quantity: '1.5'"),
        ("10K", "invalid suffix: '10K'; did you mean '10k'?"),
        ("10ki", "invalid suffix: '10ki'; did you mean '10Ki'?"),
        ("10GB", "invalid quantity: '10GB'; did you mean '10G'?"),
        ("5 gib", "invalid quantity: '5 gib'; did you mean '5 Gi'?"),
        ("500m", "invalid suffix: '500m'; did you mean '500M'?"),
        ("8Ei", "invalid quantity: overflow: '8Ei'"),
        ("~", "invalid quantity: ''"),
    ],
)
def test_a_quantity_that_cannot_be_read_is_reported_at_its_entry(quantity: str, said: str) -> None:
    """With the suffix that was probably meant."""
    text = below_root(f"- {{name: a, resources: {{max: {{vcore: 1, memory: §{quantity}}}}}}}")

    assert [said] == errors_at_marks(text)
