"""Rules about partitions and their root queues; `§` marks where an error is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import errors_at_marks, errors_of

EQUAL_LIMITS = "limits: [{users: [bob], maxapplications: 1}]"


def root_with(settings: str) -> str:
    """Return a configuration whose root queue has these settings."""
    return f"partitions: [{{queues: [{{name: root, {settings}}}]}}]"


PARTITIONS: Final[dict[str, tuple[str, ...]]] = {
    "case does not tell partitions apart": (
        "partitions:\n- {name: gpu, queues: []}\n- {name: §GPU, queues: []}\n",
        "duplicate partition name found with name gpu",
    ),
    "a partition without a name is a second default partition": (
        "partitions:\n- {name: Default, queues: []}\n- §{queues: []}\n",
        "duplicate partition name found with name default",
    ),
    "a default partition beside one without a name is refused too": (
        "partitions: [{queues: [{name: root}]}, {name: §default, queues: [{name: root}]}]",
        "duplicate partition name found with name default",
    ),
    "a partition lists its queues": ("partitions:\n- §name: a\n", "queue config is not set"),
    "null is no list of queues": ("partitions:\n- queues: §~\n", "queue config is not set"),
    **{
        f"a single top queue {name} is taken for the root, which cannot be called so": (
            f"partitions: [{{queues: [{{name: §{name}}}]}}]",
            (
                "partition cannot be created without root queue: "
                f"the top queue is called '{name}'; did you mean 'root'?"
            ),
        )
        for name in ("Root", "ROOT")
    },
    "one of several top queues may be called root in another case": (
        "partitions: [{queues: [{name: ROOT}, {name: a}]}]",
    ),
    **{
        f"the root has what the nodes have and no resources of its own: {resources}": (
            root_with(f"resources: {resources}"),
            *["root queue must not have resource limits set"] * resources.count("§"),
        )
        for resources in (
            "{max: §{memory: 1}}",
            "{guaranteed: §{}}",
            "{guaranteed: §{vcore: 1}, max: §{}}",
            # These are as good as absent.
            "{}",
            "~",
            "{max: ~}",
        )
    },
    "everything else is allowed at the root": (
        root_with(
            "maxapplications: 3, properties: {application.sort.priority: disabled}, submitacl: '*', "
            "adminacl: bob, limits: [{users: [bob], maxapplications: 1}], "
            "childtemplate: {maxapplications: 1}"
        ),
    ),
    **{
        f"limits of the partition and of its root agree: not with {limit}": (
            f"partitions:\n- limits: §[{limit}]\n  queues: [{{name: root, {EQUAL_LIMITS}}}]\n",
            "partition limits and root queue limits are not equivalent",
        )
        for limit in ("{users: [bob], maxapplications: 2}", "{users: [dan], maxapplications: 1}")
    },
    "equal limits of the partition and of its root are allowed": (
        f"partitions:\n- {EQUAL_LIMITS}\n  queues: [{{name: root, {EQUAL_LIMITS}}}]\n",
    ),
    "two partitions may have the same queues": (
        "partitions: [{queues: [{name: a}]}, {name: b, queues: [{name: a}]}]",
    ),
}


@pytest.mark.parametrize("case", PARTITIONS)
def test_partitions_and_their_roots_are_checked(case: str) -> None:
    """An error is reported at the setting, or at the partition where there is none."""
    text, *said = PARTITIONS[case]

    assert said == errors_at_marks(text)


@pytest.mark.parametrize("name", ["[alice]default", "a]b", "a/b", "a b", "a\\tb", "x" * 257])
def test_a_partition_may_not_be_called_like_that_of_another_manager(name: str) -> None:
    """`[alice]default` is the full name of a partition of alice: who has it would act in her place."""
    (error,) = errors_of(f'partitions:\n- {{name: "{name}", queues: []}}\n')

    assert "a partition may not be called" in error
    assert "at most 256 characters" in error
