"""What simulated managers submit: some send the tags of policies, and the others what they always sent."""

from __future__ import annotations

import random
from collections import Counter
from itertools import count

import pytest

from licorne.proxy.fuzz.configurations import GANGS, SPARE, random_configuration
from licorne.proxy.fuzz.manager.cluster_record import ClusterRecord, KnownApplication, KnownNode, Task
from licorne.proxy.fuzz.manager.submissions import Submissions

APPLICATION_TAGS = {
    *("walltime", "gangSize", "gangPlacing", "gangWait"),
    *("topologyRequired", "topologyPreferred", "topologyBalanced"),
    *("topologySlice", "topologySliceSize"),
}


def submitted(text: str) -> list[tuple[KnownApplication, list[Task]]]:
    """Return ten applications of one manager, each with what it asks for at once."""
    numbers = count(1)
    submissions = Submissions(text, lambda kind: f"{kind}{next(numbers)}")
    rng = random.Random(7)  # noqa: S311 - it plays, and keeps no secret
    applications = [KnownApplication(f"a{number}", "default", "root.a", "ada", []) for number in range(10)]
    return [(application, submissions.begin(application, rng)) for application in applications]


def test_some_managers_send_each_tag_and_many_send_none() -> None:
    """On applications, and walltimes on asks as well."""
    tags: Counter[str] = Counter()
    without = 0
    for number in range(100):
        rows = submitted(f"manager {number}")
        of_applications = [tag for application, _ in rows for tag in application.tags]
        of_asks = [tag for _, tasks in rows for task in tasks for tag in task.message().allocationTags]
        tags.update(f"application {tag}" for tag in of_applications)
        tags.update(f"ask {tag}" for tag in of_asks)
        without += not (of_applications or of_asks)

    assert {*(f"application {tag}" for tag in APPLICATION_TAGS), "ask walltime"} == tags.keys()
    assert 20 < without < 80


def test_tags_change_nothing_else_of_a_seed() -> None:
    """The gangs with placeholders are the same, whatever tags come with them."""
    gangs = {str([application.gang for application, _ in submitted(text)]) for text in "abcdefgh"}

    assert 1 == len(gangs)


@pytest.mark.parametrize("text", "abcdefghij")
def test_what_a_gang_lacks_makes_it_complete(text: str) -> None:
    """All its placeholders, or as many asks as it says, and none with a walltime that may be refused."""
    submissions = Submissions("any", lambda kind: kind)
    for application, _ in submitted(text):
        tasks = submissions.lacking(application)
        groups = Counter(task.group for task in tasks)
        size = int(application.tags.get("gangSize", "0"))
        announced = {group: many for group, (many, _) in application.gang.items()}

        assert announced | ({"": size} if size else {}) == groups
        assert {""} >= {task.walltime for task in tasks}


def test_a_gang_waits_for_good_for_a_node_that_is_gone() -> None:
    """An application that is no gang places the rest of what it asks for."""
    record = ClusterRecord()
    record.nodes["n"] = KnownNode("n", "default", {"memory": 10})
    for name, tags in {"gang": {"gangSize": "2"}, "plain": {}}.items():
        record.applications[name] = KnownApplication(name, "default", "root.a", "ada", [], tags=tags)
        task = Task(f"{name}-1", name, "default", {"memory": 1}, required_node="n")
        record.waiting[task.key] = task
    before = record.gangs_that_never_fit()
    record.lose_node("n")

    assert (set(), {"gang"}) == (before, record.gangs_that_never_fit())


def test_a_gang_in_slices_waits_for_good_for_members_of_one_size() -> None:
    record = ClusterRecord()
    for name, sizes in {"even": (1, 1), "odd": (1, 2)}.items():
        tags = {"gangSize": "2", "topologySlice": "rack", "topologySliceSize": "2"}
        record.applications[name] = KnownApplication(name, "default", "root.a", "ada", [], tags=tags)
        for size in sizes:
            task = Task(f"{name}-{len(record.waiting)}", name, "default", {"memory": size})
            record.waiting[task.key] = task

    assert record.gangs_that_never_fit() == {"odd"}


def test_some_configurations_have_a_leaf_of_entitled_gangs_and_one_of_victims() -> None:
    """Whole gangs go to the one, and much that is willing to end to the other; elsewhere all is as drawn."""
    numbers = count(1)
    submissions = Submissions("any", lambda kind: f"{kind}{next(numbers)}")
    leaves = [random_configuration(random.Random(seed)).leaves for seed in range(40)]  # noqa: S311 - it plays
    with_gangs = [each for each in leaves if GANGS in each]
    assert 5 < len(with_gangs) < 35
    assert {"root.a"} == {submissions.queue(f"a{number}", "root.a", ["root.a"]) for number in range(20)}

    found: dict[str, list[list[Task]]] = {}
    for number in range(60):
        name = f"a{number}"
        queue = submissions.queue(name, "root.a", with_gangs[0])
        application = KnownApplication(name, "default", queue, "ada", [])
        tasks = submissions.begin(application, random.Random(number))  # noqa: S311 - likewise
        if not application.gang and queue != "root.a":
            found.setdefault(queue, []).append(tasks)
            size = len(tasks) if queue == GANGS else 0
            assert str(size or None) == str(application.tags.get("gangSize"))
    assert {GANGS, SPARE} == found.keys()
    assert all(
        task.preemptible and task.preempts for many in found.values() for each in many for task in each
    )
    assert max(map(len, found[GANGS])) < min(map(len, found[SPARE]))
