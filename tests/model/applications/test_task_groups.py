"""The placeholders of a gang, counted by task group."""

from __future__ import annotations

from support.model.builders import TEN, a_resource, an_ask

from licorne.model.applications.gang import TaskGroups
from licorne.model.resources.resource import Resource


def count(groups: TaskGroups, name: str, resource: Resource = TEN) -> None:
    """Count a placeholder."""
    groups.count_placeholder(an_ask(task_group_name=name, placeholder=True, resource=resource))


def counts(groups: TaskGroups, name: str) -> tuple[int, int, int]:
    """Return count, replaced and timed out."""
    group = groups.by_name[name]
    return group.count, group.replaced, group.timed_out


def test_each_group_counts_its_own_placeholders() -> None:
    """Groups are distinguished by name and kept in the order they came."""
    groups = TaskGroups()

    for name in ("workers", "driver", "workers"):
        count(groups, name)

    assert ["workers", "driver"] == list(groups.by_name)
    assert ((2, 0, 0), (1, 0, 0)) == (counts(groups, "workers"), counts(groups, "driver"))


def test_the_first_placeholder_gives_the_size_of_its_group() -> None:
    """Later ones of another size do not change it."""
    groups = TaskGroups()

    count(groups, "workers", a_resource(memory=5))
    count(groups, "workers", a_resource(memory=3))

    assert a_resource(memory=5) == groups.by_name["workers"].minimum


def test_ends_are_counted_by_what_became_of_the_placeholder() -> None:
    """Replaced placeholders and unused ones are counted apart; how many there were stays."""
    groups = TaskGroups()
    for _ in range(3):
        count(groups, "workers")

    groups.count_end("workers", replaced=True)
    groups.count_end("workers", replaced=False)

    assert (3, 1, 1) == counts(groups, "workers")


def test_the_end_of_a_placeholder_of_an_unknown_group_is_no_matter() -> None:
    """Nothing is counted where nothing was."""
    groups = TaskGroups()

    groups.count_end("workers", replaced=True)

    assert {} == groups.by_name


def test_members_wait_while_a_placeholder_of_their_group_is_left() -> None:
    """As long as there were more placeholders than have ended, a member waits for one of them."""
    groups = TaskGroups()
    count(groups, "workers")
    count(groups, "workers")

    waits = [groups.waits_for_placeholder("workers")]
    groups.count_end("workers", replaced=True)
    waits.append(groups.waits_for_placeholder("workers"))
    groups.count_end("workers", replaced=False)
    waits.append(groups.waits_for_placeholder("workers"))

    assert [True, True, False] == waits


def test_asks_without_a_group_or_of_an_unknown_one_do_not_wait() -> None:
    """Only a group that has placeholders makes its members wait."""
    groups = TaskGroups()
    count(groups, "workers")

    assert not groups.waits_for_placeholder("")
    assert not groups.waits_for_placeholder("driver")
