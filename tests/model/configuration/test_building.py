"""The configuration that is made of a file: normalised, with the place of each part."""

from __future__ import annotations

import pytest
from support.model.configurations import BELOW, below_root, the_partition, the_queue

from licorne.model.configuration.problems import Position
from licorne.model.configuration.reader import load
from licorne.model.configuration.schema import (
    MAX_RESOURCES,
    ChildTemplateConfig,
    LimitConfig,
    PreemptionConfig,
    QueueConfig,
)
from licorne.model.resources.resource import EMPTY, Resource


def test_nothing_but_defaults_comes_from_a_minimal_queue() -> None:
    """A queue with a name is a leaf without any setting."""
    queue = the_queue(below_root("- name: a"))

    assert QueueConfig(name="a") == queue
    assert queue.is_leaf


@pytest.mark.parametrize(
    ("name", "known_as"),
    [("", "default"), ("default", "default"), ("Default", "default"), ("DEFAULT", "default"), ("GPU", "GPU")],
)
def test_a_partition_without_a_name_is_the_default_one(name: str, known_as: str) -> None:
    """The default partition may be spelled in any case or not at all; other names stay as they are."""
    (partition,) = load(f"partitions: [{{name: '{name}', queues: []}}]").partitions

    assert known_as == partition.name


OF_THE_LIST = Position(1, 23, "partitions[0].queues")


@pytest.mark.parametrize(
    ("queues", "below", "place"),
    [
        ("[{name: a}, {name: b}]", "ab", OF_THE_LIST),
        ("[{name: a}]", "a", OF_THE_LIST),  # a single top queue is the root only if it is called so
        ("[]", "", OF_THE_LIST),  # rules may make the queues
        # A written root is a parent even where it says otherwise.
        ("[{name: root, parent: false}]", "", Position(1, 24, "partitions[0].queues[0]")),
    ],
)
def test_a_partition_has_a_root_queue_that_is_a_parent(queues: str, below: str, place: Position) -> None:
    """One that is inserted above the queues is where their list is."""
    (partition,) = load(f"partitions: [{{queues: {queues}}}]").partitions

    children = tuple(QueueConfig(name=name) for name in below)
    assert QueueConfig(name="root", parent=True, queues=children) == partition.root
    assert place == partition.root.position


def test_limits_of_the_partition_are_those_of_its_root() -> None:
    """They are copied; the partition keeps them too."""
    partition = the_partition(below_root("", "limits: [{limit: all, users: [bob], maxapplications: 2}]"))

    limit = LimitConfig(description="all", users=("bob",), max_applications=2)
    assert ((limit,), (limit,)) == (partition.limits, partition.root.limits)


def test_a_queue_has_everything_that_is_written() -> None:
    """All keys of a queue arrive under their names."""
    queue = the_queue(
        below_root(
            """
            - name: a
              parent: true
              resources:
                guaranteed: {memory: 1k, vcore: 500m}
                max: {memory: 2Ki, vcore: 3}
              maxapplications: 7
              properties: {priority.offset: 5}
              adminacl: bob
              submitacl: "*"
              childtemplate:
                maxapplications: 3
                properties: {application.sort.policy: fair}
                resources:
                  guaranteed: {memory: 1}
                  max: {vcore: 2}
              queues: [{name: b, maxapplications: 1}]
              limits:
              - limit: some
                users: [bob, "*"]
                groups: [dev]
                maxresources: {memory: 100}
                maxapplications: 2
            """
        )
    )

    assert queue == QueueConfig(
        name="a",
        parent=True,
        guaranteed=Resource({"memory": 1000, "vcore": 500}),
        max=Resource({"memory": 2048, "vcore": 3000}),
        max_applications=7,
        properties={"priority.offset": "5"},
        admin_acl="bob",
        submit_acl="*",
        child_template=ChildTemplateConfig(
            max_applications=3,
            properties={"application.sort.policy": "fair"},
            guaranteed={"memory": "1"},
            max={"vcore": "2"},
        ),
        queues=(QueueConfig(name="b", max_applications=1),),
        limits=(
            LimitConfig(
                description="some",
                users=("bob", "*"),
                groups=("dev",),
                resources={"maxresources": Resource({"memory": 100})},
                max_applications=2,
            ),
        ),
    )


def test_resources_are_also_there_as_they_were_written() -> None:
    """What shows the configuration shows its own words."""
    queue = the_queue(
        below_root(
            "- {name: a, resources: {max: {memory: 1Ki}}, limits: [{users: [b], maxresources: {vcore: 1}}]}"
        )
    )

    assert ({"memory": "1Ki"}, {}) == (dict(queue.max_texts), dict(queue.guaranteed_texts))
    assert {"vcore": "1"} == dict(queue.limits[0].texts(MAX_RESOURCES))
    assert queue.guaranteed is EMPTY


def test_settings_of_a_queue_know_their_places() -> None:
    """An explanation can name the line that caused a decision."""
    queue = the_queue(
        below_root(
            "- name: a\n  maxapplications: 3\n  resources:\n    max: {memory: 1}\n  properties: {x.y: 1}"
        )
    )

    assert {
        "name": Position(6, 13, f"{BELOW}[0].name"),
        "maxapplications": Position(7, 24, f"{BELOW}[0].maxapplications"),
        "resources": Position(9, 9, f"{BELOW}[0].resources"),
        "max": Position(9, 14, f"{BELOW}[0].resources.max"),
        "max.memory": Position(9, 23, f"{BELOW}[0].resources.max.memory"),
        "properties": Position(10, 19, f"{BELOW}[0].properties"),
        "properties.x.y": Position(10, 25, f"{BELOW}[0].properties.x.y"),
    } == dict(queue.positions)
    assert Position(6, 7, f"{BELOW}[0]") == queue.position


def test_limits_and_rules_know_their_places() -> None:
    """Each entry of a list of names has one too."""
    partition = the_partition(
        below_root(
            "",
            """
            limits:
            - users: [bob, '*']
              maxapplications: 1
            placementrules:
            - name: user
              parent: {name: user}
            """,
        )
    )

    (limit,), (rule,) = partition.limits, partition.placement_rules
    assert Position(7, 18, "partitions[0].limits[0].users[1]") == limit.positions["users[1]"]
    assert Position(11, 13, "partitions[0].placementrules[0].parent") == rule.positions["parent"]
    assert rule.parent is not None
    assert str(rule.parent.position) == "11:13"


def test_places_take_no_part_in_comparisons() -> None:
    """A file with other line breaks is the same configuration."""
    flat, tall = "partitions: [{queues: [{name: a}]}]", "\n\npartitions:\n- queues:\n  - name: a\n"

    assert load(flat).partitions == load(tall).partitions


def test_rules_and_switches_of_a_partition_arrive() -> None:
    """Placement rules with filters and parents, preemption, the order of nodes and the resolver."""
    partition = the_partition(
        below_root(
            "- name: a",
            """
            placementrules:
            - {name: tag, value: ns, create: true, filter: {type: deny, users: [bob]}, parent: {name: user}}
            preemption: {enabled: false, quotapreemptionenabled: true, victims: least-work, jobs: whole}
            nodesortpolicy: {type: binpacking, resourceweights: {memory: 2, vcore: 0.5}}
            usergroupresolver: {type: os}
            """,
        )
    )

    (rule,) = partition.placement_rules
    assert ("tag", "ns", True, "deny", ("bob",)) == (
        rule.name,
        rule.value,
        rule.create,
        rule.filter.type,
        rule.filter.users,
    )
    written = PreemptionConfig(
        enabled=False, quota_preemption_enabled=True, victims="least-work", jobs="whole"
    )
    assert written == partition.preemption
    assert partition.preemption.whole_jobs
    assert partition.preemption.victims_word == "least-work"
    assert {"memory": 2.0, "vcore": 0.5} == dict(partition.node_sort_policy.resource_weights)
    assert ("binpacking", "os") == (partition.node_sort_policy.type, partition.user_group_resolver)


def test_switches_that_are_not_written_are_unknown() -> None:
    """The partition decides what that means."""
    partition = the_partition(below_root("- name: a", "preemption: {}"))

    assert PreemptionConfig() == partition.preemption
    assert partition.preemption.victims_word == "youngest"


@pytest.mark.parametrize(
    ("template", "is_empty"),
    [
        (ChildTemplateConfig(), True),
        (ChildTemplateConfig(properties={"": "x", "y": ""}, max={"memory": ""}), True),
        (ChildTemplateConfig(max_applications=1), False),
        (ChildTemplateConfig(guaranteed={"memory": "1"}), False),
    ],
)
def test_a_template_is_empty_when_it_gives_nothing(template: ChildTemplateConfig, *, is_empty: bool) -> None:
    """Entries without a name or a value give nothing."""
    assert is_empty is template.is_empty


def test_parts_of_a_configuration_cannot_be_changed() -> None:
    """Maps are handed out for reading only."""
    queue = the_queue(below_root("- {name: a, properties: {x: 1}}"))

    with pytest.raises(TypeError):
        queue.properties["x"] = "2"  # type: ignore[index] # that it fails is the point
