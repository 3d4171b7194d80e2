"""Rules about single queues and their children; `§` marks where an error is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import below_root, errors_at_marks, errors_of, warnings_at_marks

from licorne.model.configuration.names import QUEUE_NAME_RULE

ZERO_BELOW_TWO = (
    "maxApplications is either undefined or zero, which is not allowed when parent queue's "
    "maxApplications is defined (2 for queue p)"
)


@pytest.mark.parametrize("key", ["adminacl", "submitacl"])
@pytest.mark.parametrize("acl", ["a b c", "bob  dev", "  ", " a b", "a\tb\tc"])
def test_an_access_list_has_two_parts_at_most(key: str, acl: str) -> None:
    """Each blank separates, so that what is accepted can also be built."""
    text = below_root(f'- name: a\n  {key}: §"{acl}"')

    assert [f"multiple spaces found in ACL: {acl!r}"] == errors_at_marks(text)


def test_the_root_has_access_lists_too() -> None:
    """Rules about queues begin at the root."""
    text = "partitions: [{queues: [{name: root, submitacl: §a b c}]}]"

    assert ["multiple spaces found in ACL: 'a b c'"] == errors_at_marks(text)


@pytest.mark.parametrize("name", ["a.b", "a b", "*", "a$", "x" * 65, "", "é", "a\n"])
def test_a_queue_name_is_made_of_few_characters(name: str) -> None:
    """Letters and digits of ASCII and a few signs, 64 at most, and no dots."""
    written = name.replace("\n", "\\n")
    text = below_root(f'- maxapplications: 1\n  name: §"{written}"')

    assert [f"{QUEUE_NAME_RULE}: {name!r}"] == errors_at_marks(text)


def test_a_queue_without_a_name_is_reported_at_its_position() -> None:
    """There is no name to point at."""
    assert [f"{QUEUE_NAME_RULE}: ''"] == errors_at_marks(below_root("- §parent: true"))


@pytest.mark.parametrize("name", ["x" * 64, "a-b_c#d@e/f:g", "123", "root", "@recovery@"])
def test_unusual_queue_names_are_allowed(name: str) -> None:
    """No name is reserved below the root."""
    assert errors_of(below_root(f"- name: '{name}'")) == []


def test_children_have_different_names() -> None:
    """Queues are not distinguished by case; each repetition is reported."""
    text = below_root("- name: a\n- name: §A\n- name: §a")

    assert ["duplicate child name found with name 'a', level 1"] * 2 == errors_at_marks(text)


def test_the_level_of_a_duplicate_counts_from_the_children_of_the_root() -> None:
    """One more for each queue between."""
    text = below_root("- name: p\n  queues:\n  - name: x\n  - name: §x")

    assert ["duplicate child name found with name 'x', level 2"] == errors_at_marks(text)


def test_equal_names_under_different_parents_are_allowed() -> None:
    """A queue is known by its path."""
    assert errors_of(below_root("- {name: p, queues: [{name: x}]}\n- {name: q, queues: [{name: x}]}")) == []


def test_a_child_has_no_more_applications_than_its_parent() -> None:
    """Equal is allowed."""
    text = below_root(
        """
        - name: p
          maxapplications: 2
          queues:
          - {name: a, maxapplications: §3}
          - {name: b, maxapplications: 2}
        """
    )
    said = "parent maxApplications must be larger than child maxApplications: 2 for queue p, 3 for queue a"

    assert [said] == errors_at_marks(text)


@pytest.mark.parametrize("child", ["§{name: a}", "{name: a, maxapplications: §0}"])
def test_a_child_of_a_limited_parent_is_limited_too(child: str) -> None:
    """No maximum would be more than the parent has."""
    text = below_root(f"- name: p\n  maxapplications: 2\n  queues:\n  - {child}")

    assert [ZERO_BELOW_TWO] == errors_at_marks(text)


def test_a_child_whose_maximum_cannot_be_read_is_not_reported_to_have_none() -> None:
    """One error is reported once."""
    text = below_root("- {name: p, maxapplications: 2, queues: [{name: a, maxapplications: §'2'}]}")

    (said,) = errors_at_marks(text)

    assert said == "expected a whole number, not the text '2': write it without quotes"


def test_a_parent_without_a_maximum_does_not_hand_down_another() -> None:
    """Only the direct parent counts, as in the recorded core."""
    middle = "{name: m, queues: [{name: a, maxapplications: 9}]}"

    assert errors_of(below_root(f"- {{name: p, queues: [{middle}, {{name: n, maxapplications: 5}}]}}")) == []


def test_the_template_of_a_parent_has_readable_resources() -> None:
    """No dynamic queue could be made with others; all of them are reported."""
    text = below_root(
        """
        - name: a
          parent: true
          childtemplate:
            resources:
              max: {memory: §x, vcore: 1}
              guaranteed: {memory: §10K}
        """
    )

    assert ["invalid quantity: 'x'", "invalid suffix: '10K'; did you mean '10k'?"] == errors_at_marks(text)


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


def test_all_entries_of_a_resource_are_read() -> None:
    """The first that is wrong does not hide the second."""
    text = below_root("- {name: a, resources: {guaranteed: {memory: §x, vcore: 1, pods: §-1}}}")

    assert ["invalid quantity: 'x'", "invalid quantity: '-1'"] == errors_at_marks(text)
