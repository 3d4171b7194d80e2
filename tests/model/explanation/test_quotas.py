"""Limits in the way: every level and every holder at once, with the numbers and the place in the file."""

from __future__ import annotations

from collections.abc import Iterable

from support.model.builders import TEN, a_resource
from support.model.explained import blockers, explained
from support.model.harness import Harness, a_partition

from licorne.model.configuration.problems import Position
from licorne.model.explanation import Lack, SubjectKind
from licorne.model.values.allocation import RefusalReason

TEAM = """
- name: team
  resources: {max: {memory: 25}}
  queues:
  - name: leaf
    resources: {max: {memory: 15, vcore: 1}}
"""


TEAM_PATH = "partitions[0].queues[0].queues[0]"


def where(lack: Lack) -> str:
    assert lack.position is not None
    return lack.position.path


def numbers(lacks: Iterable[Lack]) -> list[tuple[str, int, int, int]]:
    """Return what lacks: its name, how much is asked for, how much is left, and the limit."""
    return [(lack.name, lack.asked, lack.available, lack.limit) for lack in lacks]


def test_every_queue_on_the_path_without_room_is_named() -> None:
    """From the leaf up: what was asked, what is left, the limit, where the quantity stands in the file."""
    plenty = a_resource(memory=100, vcore=9000)
    h = a_partition("n1", capacity=plenty, queues=TEAM, queue_name="root.team.leaf")
    h.ask_and_run("first")
    h.ask_and_run("second", resource=a_resource(memory=20, vcore=2000))

    leaf, team = blockers(h, "second")

    assert (RefusalReason.QUEUE_QUOTA, SubjectKind.QUEUE) == (leaf.reason, leaf.kind)
    assert ["root.team.leaf", "root.team"] == [leaf.subject, team.subject]
    assert [("memory", 20, 5, 15), ("vcore", 2000, 1000, 1000)] == numbers(leaf.lacks)
    assert [("memory", 20, 15, 25)] == numbers(team.lacks)
    assert [15, 1000, 5] == [lack.missing for lack in leaf.lacks + team.lacks]
    assert [
        f"{TEAM_PATH}.queues[0].resources.max.memory",
        f"{TEAM_PATH}.queues[0].resources.max.vcore",
        f"{TEAM_PATH}.resources.max.memory",
    ] == [where(lack) for lack in leaf.lacks + team.lacks]
    assert [Position(9, 33)] == [lack.position._replace(path="") for lack in team.lacks if lack.position]


def test_the_cluster_itself_is_the_last_level() -> None:
    """A type that no node has is lacking as a whole; its maximum stands in no file."""
    h = a_partition("n1")
    h.ask_and_run("ask", resource=a_resource(memory=11, gpu=1))

    quota, nodes = blockers(h, "ask")

    assert ("root", "the nodes together have no more") == (quota.subject, quota.detail)
    assert (
        Lack(name="gpu", asked=1, available=0, limit=0),
        Lack(name="memory", asked=11, available=10, limit=10),
    ) == quota.lacks
    assert RefusalReason.NO_NODE_FITS is nodes.reason


TEMPLATE = "- {name: parent, parent: true, childtemplate: {resources: {max: {memory: 5}}}}"
CREATING = "placementrules: [{name: provided, create: true}]"


def test_a_quota_from_the_tags_of_an_application_has_no_place() -> None:
    """The template no longer says what holds."""
    h = Harness(TEMPLATE.replace("5", "50"), partition=CREATING)
    h.nodes("n1")
    quota = '{"resources":{"memory":{"value":5}}}'
    h.submit(queue_name="root.parent.new", tags={"namespace.resourcequota": quota})
    h.ask_and_run("ask")

    (leaf,) = blockers(h, "ask")

    assert (Lack(name="memory", asked=10, available=5, limit=5),) == leaf.lacks


def test_a_dynamic_queue_is_limited_where_its_template_stands() -> None:
    """As long as the template in force still says the same; the queue keeps its quota."""
    h = a_partition("n1", queues=TEMPLATE, partition=CREATING, queue_name="root.parent.new")
    h.ask_and_run("ask")

    (leaf,) = blockers(h)
    (before,) = leaf.lacks
    h.reload(f"- name: other\n{TEMPLATE}")
    (moved,) = blockers(h)[0].lacks
    h.reload(TEMPLATE.replace("5", "6"))
    (changed,) = blockers(h)[0].lacks

    assert "root.parent.new" == leaf.subject
    assert "partitions[0].queues[0].queues[0].childtemplate.resources.max.memory" == where(before)
    assert before.position is not None
    assert moved.position is not None
    assert before.position.line + 1 == moved.position.line
    assert (5, None) == (changed.limit, changed.position)


def test_a_queue_that_left_the_configuration_stands_nowhere() -> None:
    """It drains, with the quota that it had."""
    h = a_partition("n1", queues="- {name: leaf, resources: {max: {memory: 5}}}\n- name: other")
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
    h = a_partition(
        "n1",
        capacity=a_resource(memory=100),
        queues=LIMITS,
        root="limits: [{users: ['*'], maxresources: {memory: 19}}]",
    )
    h.ask_and_run("first")
    h.ask_and_run("second")

    found = blockers(h, "second")

    assert [
        (RefusalReason.USER_QUOTA, SubjectKind.USER, "bob", "root"),
        (RefusalReason.USER_QUOTA, SubjectKind.USER, "bob", "root.leaf"),
        (RefusalReason.USER_QUOTA, SubjectKind.GROUP, "dev", "root.leaf"),
    ] == [(blocker.reason, blocker.kind, blocker.subject, blocker.queue_path) for blocker in found]
    assert [("memory", 10, 9, 19), ("memory", 10, 5, 15), ("memory", 10, 8, 18)] == [
        number for blocker in found for number in numbers(blocker.lacks)
    ]
    limits = "partitions[0].queues[0].queues[0].limits"
    assert [
        "partitions[0].queues[0].limits[0].maxresources.memory",
        f"{limits}[0].maxresources.memory",
        f"{limits}[1].maxresources.memory",
    ] == [where(lack) for blocker in found for lack in blocker.lacks]


def test_the_group_that_counts_is_explained() -> None:
    """Also where nothing is in the way."""
    h = a_partition(queues=LIMITS)

    assert "dev" == explained(h).limit_group


# ----------------------------------------------------------------------------- numbers of applications


def test_every_queue_that_runs_its_maximum_of_applications_is_named() -> None:
    """For an application that does not run yet; it is about all of its asks."""
    h = Harness("- {name: team, maxapplications: 1, queues: [{name: leaf, maxapplications: 1}]}")
    h.nodes("n1", capacity=a_resource(memory=100))
    h.submit("one", "root.team.leaf")
    h.ask_and_run("a", application_id="one")
    h.submit("app", "root.team.leaf")
    h.ask_and_run("b")

    leaf, team = explained(h).blockers

    assert RefusalReason.QUEUE_APPLICATIONS is leaf.reason is team.reason
    assert ["root.team.leaf", "root.team"] == [leaf.subject, team.subject]
    assert [("applications", 1, 0, 1)] == numbers(leaf.lacks)
    assert [f"{TEAM_PATH}.queues[0].maxapplications", f"{TEAM_PATH}.maxapplications"] == [
        where(lack) for lack in leaf.lacks + team.lacks
    ]
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
    h.ask_and_run("a", application_id="one")
    h.submit()
    h.ask_and_run("b")

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
    h = a_partition("n1", queues="- {name: leaf, maxapplications: 1}")
    h.ask_and_run("a", "b", resource=TEN)

    assert () == explained(h).blockers
