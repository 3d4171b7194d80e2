"""Rules about partitions and their root queues; `§` marks where an error is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import errors_at_marks, errors_of

EQUAL_LIMITS = "limits: [{users: [bob], maxapplications: 1}]"


def test_two_partitions_cannot_have_one_name() -> None:
    """Case does not tell partitions apart."""
    text = "partitions:\n- {name: gpu, queues: []}\n- {name: §GPU, queues: []}\n"

    assert ["duplicate partition name found with name gpu"] == errors_at_marks(text)


def test_a_partition_without_a_name_is_a_second_default() -> None:
    """What has no name of its own is reported at the partition."""
    text = "partitions:\n- {name: Default, queues: []}\n- §{queues: []}\n"

    assert ["duplicate partition name found with name default"] == errors_at_marks(text)


@pytest.mark.parametrize("partition", ["§name: a", "queues: §~"])
def test_a_partition_must_list_its_queues(partition: str) -> None:
    """Null is no list; an empty one would do."""
    assert ["queue config is not set"] == errors_at_marks(f"partitions:\n- {partition}\n")


@pytest.mark.parametrize("name", ["Root", "ROOT"])
def test_the_root_queue_is_spelled_root(name: str) -> None:
    """Another case is taken for the root, but no partition could be made of it."""
    said = (
        "partition cannot be created without root queue: "
        f"the top queue is called '{name}'; did you mean 'root'?"
    )

    assert [said] == errors_at_marks(f"partitions: [{{queues: [{{name: §{name}}}]}}]")


def test_a_queue_called_root_in_another_case_may_stand_below() -> None:
    """Only a single top queue is taken for the root."""
    assert errors_of("partitions: [{queues: [{name: ROOT}, {name: a}]}]") == []


@pytest.mark.parametrize(
    "resources", ["{max: §{memory: 1}}", "{guaranteed: §{}}", "{guaranteed: §{vcore: 1}, max: §{}}"]
)
def test_the_root_queue_has_no_resources_of_its_own(resources: str) -> None:
    """It has what the nodes have; an empty mapping is refused as well, and each is reported."""
    text = f"partitions: [{{queues: [{{name: root, resources: {resources}}}]}}]"

    assert set(errors_at_marks(text)) == {"root queue must not have resource limits set"}


@pytest.mark.parametrize("resources", ["{}", "~", "{max: ~}"])
def test_nothing_about_resources_is_allowed_at_the_root(resources: str) -> None:
    """As good as absent."""
    assert errors_of(f"partitions: [{{queues: [{{name: root, resources: {resources}}}]}}]") == []


def test_everything_else_is_allowed_at_the_root() -> None:
    """Properties, access lists, a number of applications, limits and a template."""
    root = (
        "{name: root, maxapplications: 3, properties: {application.sort.priority: disabled}, submitacl: '*',"
        " adminacl: bob, limits: [{users: [bob], maxapplications: 1}], childtemplate: {maxapplications: 1}}"
    )

    assert errors_of(f"partitions: [{{queues: [{root}]}}]") == []


@pytest.mark.parametrize(
    "limit", ["{users: [bob], maxapplications: 2}", "{users: [dan], maxapplications: 1}"]
)
def test_limits_of_partition_and_root_must_agree(limit: str) -> None:
    """Reported at those of the partition."""
    text = f"partitions:\n- limits: §[{limit}]\n  queues: [{{name: root, {EQUAL_LIMITS}}}]\n"

    assert ["partition limits and root queue limits are not equivalent"] == errors_at_marks(text)


def test_equal_limits_of_partition_and_root_are_allowed() -> None:
    """Saying it twice is no error."""
    assert errors_of(f"partitions:\n- {EQUAL_LIMITS}\n  queues: [{{name: root, {EQUAL_LIMITS}}}]\n") == []


def test_two_partitions_may_have_the_same_queues() -> None:
    """Names of queues are unique within their parent only."""
    assert errors_of("partitions: [{queues: [{name: a}]}, {name: b, queues: [{name: a}]}]") == []


@pytest.mark.parametrize("name", ["[alice]default", "a]b", "a/b", "a b", "a\\tb", "x" * 257])
def test_a_partition_may_not_be_called_like_that_of_another_manager(name: str) -> None:
    """`[alice]default` is the full name of a partition of alice: who has it would act in her place."""
    (error,) = errors_of(f'partitions:\n- {{name: "{name}", queues: []}}\n')

    assert "a partition may not be called" in error
    assert "at most 256 characters" in error
