"""Limits in the way: every level and every holder at once, with the numbers and the place in the file."""

from __future__ import annotations

from dataclasses import replace

from support.model.builders import TEN, a_resource
from support.model.explained import blockers, explained
from support.model.harness import Harness

from licorne.model.configuration.positions import Position
from licorne.model.explanation import Lack, SubjectKind
from licorne.model.values.refusals import RefusalReason

TEAM = """
- name: team
  resources: {max: {memory: 25}}
  queues:
  - name: leaf
    resources: {max: {memory: 15, vcore: 1}}
"""


def where(lack: Lack) -> str:
    assert lack.position is not None
    return lack.position.path


def test_every_queue_on_the_path_without_room_is_named() -> None:
    """From the leaf up, each with what was asked, what is left, the limit, and where it stands."""
    h = Harness(TEAM)
    h.nodes("n1", capacity=a_resource(memory=100, vcore=9000))
    h.submit(queue_name="root.team.leaf")
    h.ask("first")
    h.run_until_idle()
    h.ask("second", resource=a_resource(memory=20, vcore=2000))
    h.run_until_idle()

    leaf, team = blockers(h, "second")

    assert (RefusalReason.QUEUE_QUOTA, SubjectKind.QUEUE) == (leaf.reason, leaf.kind)
    assert ["root.team.leaf", "root.team"] == [leaf.subject, team.subject]
    assert [("memory", 20, 5, 15, 15), ("vcore", 2000, 1000, 1000, 1000)] == [
        (lack.name, lack.asked, lack.available, lack.limit, lack.missing) for lack in leaf.lacks
    ]
    assert [("memory", 20, 15, 25, 5)] == [
        (lack.name, lack.asked, lack.available, lack.limit, lack.missing) for lack in team.lacks
    ]


def test_the_place_of_each_maximum_is_explained() -> None:
    """By its path, and by line and column where the very quantity begins."""
    h = Harness(TEAM)
    h.nodes("n1", capacity=a_resource(memory=100, vcore=9000))
    h.submit(queue_name="root.team.leaf")
    h.ask("ask", resource=a_resource(memory=26, vcore=2000))
    h.run_until_idle()

    leaf, team = blockers(h, "ask")

    queue = "partitions[0].queues[0].queues[0]"
    assert [
        f"{queue}.queues[0].resources.max.memory",
        f"{queue}.queues[0].resources.max.vcore",
    ] == [where(lack) for lack in leaf.lacks]
    assert [f"{queue}.resources.max.memory"] == [where(lack) for lack in team.lacks]
    assert [Position(9, 33)] == [replace(lack.position, path="") for lack in team.lacks if lack.position]


def test_the_cluster_itself_is_the_last_level() -> None:
    """A type that no node has is lacking as a whole; its maximum stands in no file."""
    h = Harness()
    h.nodes("n1")
    h.submit()
    h.ask("ask", resource=a_resource(memory=11, gpu=1))
    h.run_until_idle()

    quota, nodes = blockers(h, "ask")

    assert ("root", "the nodes together have no more") == (quota.subject, quota.detail)
    assert (
        Lack(name="gpu", asked=1, available=0, limit=0),
        Lack(name="memory", asked=11, available=10, limit=10),
    ) == quota.lacks
    assert RefusalReason.NO_NODE_FITS is nodes.reason


def test_a_dynamic_queue_is_limited_where_its_template_stands() -> None:
    """The maximum of the leaf that was made is the one of its parent's template."""
    h = Harness(
        """
        - name: parent
          parent: true
          childtemplate: {resources: {max: {memory: 5}}}
        """,
        partition="placementrules: [{name: provided, create: true}]",
    )
    h.nodes("n1")
    h.submit(queue_name="root.parent.new")
    h.ask("ask")
    h.run_until_idle()

    (leaf,) = blockers(h, "ask")

    assert "root.parent.new" == leaf.subject
    path = "partitions[0].queues[0].queues[0].childtemplate.resources.max.memory"
    assert [f"{path}"] == [where(lack) for lack in leaf.lacks]


def test_a_quota_from_the_tags_of_an_application_has_no_place() -> None:
    """The template no longer says what holds."""
    h = Harness(
        """
        - name: parent
          parent: true
          childtemplate: {resources: {max: {memory: 50}}}
        """,
        partition="placementrules: [{name: provided, create: true}]",
    )
    h.nodes("n1")
    quota = '{"resources":{"memory":{"value":5}}}'
    h.submit(queue_name="root.parent.new", tags={"namespace.resourcequota": quota})
    h.ask("ask")
    h.run_until_idle()

    (leaf,) = blockers(h, "ask")

    assert (Lack(name="memory", asked=10, available=5, limit=5),) == leaf.lacks


def test_a_place_is_that_of_the_configuration_in_force() -> None:
    """A dynamic queue keeps its quota, and is located where the template still says the same."""
    queues = "- {name: parent, parent: true, childtemplate: {resources: {max: {memory: 5}}}}"
    h = Harness(queues, partition="placementrules: [{name: provided, create: true}]")
    h.nodes("n1")
    h.submit(queue_name="root.parent.new")
    h.ask("ask")
    h.run_until_idle()

    (before,) = blockers(h)[0].lacks
    h.reload(f"- name: other\n{queues}")
    (moved,) = blockers(h)[0].lacks
    h.reload(queues.replace("5", "6"))
    (changed,) = blockers(h)[0].lacks

    assert before.position is not None
    assert moved.position is not None
    assert before.position.line + 1 == moved.position.line
    assert (5, None) == (changed.limit, changed.position)


def test_a_queue_that_left_the_configuration_stands_nowhere() -> None:
    """It drains, with the quota that it had."""
    h = Harness("- {name: leaf, resources: {max: {memory: 5}}}\n- name: other")
    h.nodes("n1")
    h.submit()
    h.ask("ask")
    h.reload("- name: other")

    (lack,) = blockers(h)[0].lacks

    assert (5, None) == (lack.limit, lack.position)


LIMITS = """
- name: leaf
  limits:
  - limit: bob
    users: [bob]
    maxresources: {memory: 15}
  - limit: group
    groups: [dev]
    maxresources: {memory: 18}
"""


def test_limits_of_the_user_and_of_the_group_are_explained_together() -> None:
    """With the queue that states them, what is used and where the quantity stands."""
    h = Harness(LIMITS, root="limits: [{users: ['*'], maxresources: {memory: 19}}]")
    h.nodes("n1", capacity=a_resource(memory=100))
    h.submit()
    h.ask("first")
    h.run_until_idle()
    h.ask("second")
    h.run_until_idle()

    found = blockers(h, "second")

    assert [
        (RefusalReason.USER_QUOTA, SubjectKind.USER, "bob", "root"),
        (RefusalReason.USER_QUOTA, SubjectKind.USER, "bob", "root.leaf"),
        (RefusalReason.USER_QUOTA, SubjectKind.GROUP, "dev", "root.leaf"),
    ] == [(blocker.reason, blocker.kind, blocker.subject, blocker.queue_path) for blocker in found]
    assert [(10, 9, 19), (10, 5, 15), (10, 8, 18)] == [
        (lack.asked, lack.available, lack.limit) for blocker in found for lack in blocker.lacks
    ]
    limits = "partitions[0].queues[0].queues[0].limits"
    assert [
        "partitions[0].queues[0].limits[0].maxresources.memory",
        f"{limits}[0].maxresources.memory",
        f"{limits}[1].maxresources.memory",
    ] == [where(lack) for blocker in found for lack in blocker.lacks]


def test_the_group_that_counts_is_explained() -> None:
    """Also where nothing is in the way."""
    h = Harness(LIMITS)
    h.submit()

    assert "dev" == explained(h).limit_group


# ----------------------------------------------------------------------------- numbers of applications


def test_every_queue_that_runs_its_maximum_of_applications_is_named() -> None:
    """For an application that does not run yet; it is about all of its asks."""
    h = Harness(
        """
        - name: team
          maxapplications: 1
          queues:
          - name: leaf
            maxapplications: 1
        """
    )
    h.nodes("n1", capacity=a_resource(memory=100))
    h.submit("one", "root.team.leaf")
    h.ask("a", application_id="one")
    h.run_until_idle()
    h.submit("app", "root.team.leaf")
    h.ask("b")
    h.run_until_idle()

    leaf, team = explained(h).blockers

    assert RefusalReason.QUEUE_APPLICATIONS is leaf.reason is team.reason
    assert ["root.team.leaf", "root.team"] == [leaf.subject, team.subject]
    assert [("applications", 1, 0, 1)] == [
        (lack.name, lack.asked, lack.available, lack.limit) for lack in leaf.lacks
    ]
    queue = "partitions[0].queues[0].queues[0]"
    assert [f"{queue}.queues[0].maxapplications"] == [where(lack) for lack in leaf.lacks]
    assert [f"{queue}.maxapplications"] == [where(lack) for lack in team.lacks]
    assert () == blockers(h, "b")


def test_the_numbers_of_applications_of_user_and_group_are_explained() -> None:
    """Each limit that is reached."""
    h = Harness(
        """
        - name: leaf
          limits:
          - {users: [bob], maxapplications: 1}
          - {groups: [dev], maxapplications: 1}
        """
    )
    h.nodes("n1", capacity=a_resource(memory=100))
    h.submit("one")
    h.ask("a", application_id="one")
    h.run_until_idle()
    h.submit()
    h.ask("b")
    h.run_until_idle()

    user, group = explained(h).blockers

    assert RefusalReason.USER_APPLICATIONS is user.reason is group.reason
    assert [(SubjectKind.USER, "bob"), (SubjectKind.GROUP, "dev")] == [
        (user.kind, user.subject),
        (group.kind, group.subject),
    ]
    limits = "partitions[0].queues[0].queues[0].limits"
    assert [f"{limits}[0].maxapplications", f"{limits}[1].maxapplications"] == [
        where(lack) for blocker in (user, group) for lack in blocker.lacks
    ]


def test_an_application_that_runs_is_not_held_up_by_numbers() -> None:
    """It has its place already, however full the queue is."""
    h = Harness("- {name: leaf, maxapplications: 1}")
    h.nodes("n1")
    h.submit()
    h.ask("a", "b", resource=TEN)
    h.run_until_idle()

    assert () == explained(h).blockers
