from __future__ import annotations

import pytest
from support.proxy.simulation_builders import a_node, a_task, a_workload, an_application

from licorne.proxy.play.simulation.workloads.workload import (
    GangStyle,
    count_gangs_larger_than_the_cluster,
    count_tasks_larger_than_every_node,
)


@pytest.mark.parametrize(("pieces", "keys"), [(1, ["t"]), (2, ["t-1", "t-2"])])
def test_each_piece_of_a_task_has_a_key_of_its_own(pieces: int, keys: list[str]) -> None:
    """Pieces are numbered from one; a task of one piece keeps its key."""
    assert keys == list(a_task("t", pieces=pieces).allocation_keys())


def test_pieces_that_fit_on_no_node_are_counted() -> None:
    """Neither a node with enough cores nor one with enough memory is enough."""
    nodes = (a_node("n1", vcore=8), a_node("n2", vcore=2, memory=9))
    application = an_application(a_task("large", cores=9, pieces=3), a_task("fits", cores=8))

    assert 3 == count_tasks_larger_than_every_node(a_workload(application, nodes=nodes))


def test_the_first_tasks_are_those_submitted_with_the_application() -> None:
    """A later task is no member of the gang."""
    application = an_application(a_task("now", at=5), a_task("later", at=6), at=5)

    assert ["now"] == [task.key for task in application.first_tasks()]


def test_a_gang_is_larger_than_the_cluster_if_all_nodes_together_lack_something() -> None:
    """Only what starts together counts, and only of gangs."""
    tasks = (a_task("t1", cores=6, pieces=2), a_task("t2", cores=9, at=1))
    fits = an_application(*tasks, name="fits", gang=GangStyle.SOFT)
    larger = an_application(a_task("t3", cores=7, pieces=3), name="larger", gang=GangStyle.HARD)
    alone = an_application(a_task("t4", cores=7, pieces=3), name="alone")
    workload = a_workload(fits, larger, alone, nodes=(a_node("n1"), a_node("n2")))

    assert 1 == count_gangs_larger_than_the_cluster(workload)
