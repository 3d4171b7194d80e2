"""What a watcher of a scheduler reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import RequestError, Scheduler
from licorne.model.state.partition_state import PartitionState
from licorne.model.views.rows import NodeRow, live_nodes
from licorne.proxy.core.scheduler.answering import views
from licorne.proxy.core.scheduler.answering.views import KnownRows, LiveRows
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.si import si_pb2 as si

QUEUES = """
partitions:
  - name: default
    limits:
      - {limit: all, users: [bob], maxresources: {memory: 500}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: leaf, resources: {guaranteed: {memory: 50}, max: {memory: 200}}}
"""


@pytest.fixture(params=["direct", "actors", "threads"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    """Three nodes of 100, an application that has 70 and waits for 90, one that was rejected, one removed."""
    engine: EngineName = request.param
    with Scheduler(engine=engine, stepped=True) as made:
        made.register("rm", Listener(), configuration=QUEUES)
        made.update_node(node_request("n1", "n2", "n3"))
        made.update_application(application_request("app", "gone"))
        made.update_application(application_request("lost", queue="root.nowhere"))
        made.update_allocation(ask_request("t1", memory=70))
        made.update_allocation(ask_request("t2", memory=190))
        made.update_application(
            si.ApplicationRequest(rmID="rm", remove=[si.RemoveApplicationRequest(applicationID="gone")])
        )
        made.run_until_idle()
        yield made


def rows_of(scheduler: Scheduler) -> LiveRows:
    (rows,) = scheduler.monitoring.live_view.rows(lambda _: KnownRows())
    return rows


def test_the_first_blocker_is_why_an_application_waits(scheduler: Scheduler) -> None:
    """Those of which nothing waits are left out, and those that are not known."""
    reasons = scheduler.monitoring.live_view.reasons("rm", "default", ["app", "gone", "never"])

    assert ["app"] == list(reasons)
    assert reasons["app"] == "queue max"


def test_the_rows_are_what_the_partition_has(scheduler: Scheduler) -> None:
    """Nodes, queues, applications, users, and those that have ended."""
    rows = rows_of(scheduler)

    assert [("n1", 100, 30), ("n2", 100, 100), ("n3", 100, 100)] == [
        (node.node_id, node.capacity["memory"], node.available["memory"]) for node in rows.nodes
    ]
    (application,) = rows.applications
    assert ("app", "bob", "root.leaf", "Running") == (*application[:3], application.facts.state.value)
    assert (70, 190) == (application.facts.allocated["memory"], application.facts.pending["memory"])
    leaf = next(queue for queue in rows.queues if queue.path == "root.leaf")
    assert leaf.guaranteed is not None
    assert leaf.maximum is not None
    assert (50, 200, 70, 190) == (
        leaf.guaranteed["memory"],
        leaf.maximum["memory"],
        leaf.allocated["memory"],
        leaf.pending["memory"],
    )
    assert [("lost", "Rejected")] == [(each.application_id, each.state.value) for each in rows.ended]
    assert rows.users is not None
    (bob,) = rows.users
    assert ("root", (("memory", 70),), ("app",)) == bob.queues[0][:3]


def test_what_has_not_changed_is_not_read_again(scheduler: Scheduler) -> None:
    """Of nodes and applications, which may be many."""
    before = rows_of(scheduler)
    known = KnownRows(
        {row.node_id: row for row in before.nodes}, {row.application_id: row for row in before.applications}
    )
    (same,) = scheduler.monitoring.live_view.rows(lambda _: known)
    scheduler.update_allocation(ask_request("t3", memory=80))
    scheduler.run_until_idle()
    (other,) = scheduler.monitoring.live_view.rows(lambda _: known)

    assert ((), ()) == (same.nodes, same.applications)
    assert [("n2", 20)] == [(node.node_id, node.available["memory"]) for node in other.nodes]
    assert ["app"] == [application.application_id for application in other.applications]


def test_what_users_have_is_read_on_request(scheduler: Scheduler) -> None:
    """Since it is made anew each time."""
    (rows,) = scheduler.monitoring.live_view.rows(lambda _: KnownRows(), with_usages=False)

    assert (None, None) == (rows.users, rows.groups)


def test_ended_applications_that_the_reader_knows_are_not_read_again(scheduler: Scheduler) -> None:
    """Their rows change no more."""
    known = rows_of(scheduler).names.ended

    (rows,) = scheduler.monitoring.live_view.rows(lambda _: KnownRows(ended=known))

    assert known
    assert () == rows.ended
    assert known == rows.names.ended


def test_a_partition_copies_a_bounded_number_of_rows_at_a_time(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is lost at the borders."""
    monkeypatch.setattr(views, "PIECE", 2)
    asked: list[tuple[str, ...]] = []

    def noting(state: PartitionState, names: tuple[str, ...], known: dict[str, NodeRow]) -> object:
        asked.append(names)
        return live_nodes(state, names, known)

    monkeypatch.setattr(views, "live_nodes", noting)

    assert ["n1", "n2", "n3"] == [node.node_id for node in rows_of(scheduler).nodes]
    assert [("n1", "n2"), ("n3",)] == asked


def test_a_node_tells_all_that_it_knows(scheduler: Scheduler) -> None:
    """It is asked itself; an unknown one is none."""
    view = scheduler.monitoring.live_view
    facts = view.node("rm", "default", "n1")

    assert facts is not None
    assert ["t1"] == [allocation.ask.allocation_key for allocation in facts.allocations]
    assert view.node("rm", "default", "n9") is None
    with pytest.raises(RequestError, match="no partition"):
        view.node("rm", "other", "n1")


def test_the_queues_alone_can_be_read(scheduler: Scheduler) -> None:
    """For a timeline."""
    (reading,) = scheduler.monitoring.live_view.queues()

    assert ("[rm]default", ["root", "root.leaf"]) == (
        reading.partition,
        [queue.path for queue in reading.queues],
    )


def test_the_text_of_a_configuration_is_the_one_in_effect(scheduler: Scheduler) -> None:
    """Of a known RM; others have none."""
    assert scheduler.configuration_text("rm") == QUEUES
    assert not scheduler.configuration_text("other")
