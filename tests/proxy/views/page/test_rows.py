"""Live rows as JSON: everything, then what changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.proxy.decayed_use import DECAYING, PLAIN, use_for_ten_seconds
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request, release_request

from licorne import Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.page.feed import LiveTables, Types

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        limits: [{limit: bob, users: [bob], maxresources: {memory: 500}, maxapplications: 3}]
        queues:
          - {name: leaf, resources: {guaranteed: {memory: 50}, max: {memory: 200}}}
"""
NAME = "[rm]default"


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(engine="direct") as made:
        made.register("rm", Listener(), configuration=QUEUES)
        made.update_node(node_request("n1", "n2"))
        made.update_application(application_request("app"))
        made.run_until_idle()
        yield made


def change_of(tables: LiveTables, scheduler: Scheduler) -> Any:
    """Return what has changed since the last time, `None` for nothing."""
    text = tables.update(scheduler.monitoring.live_view.rows(tables.known))
    return json.loads(text) if text else None


def place(scheduler: Scheduler, key: str, memory: int) -> None:
    scheduler.update_allocation(ask_request(key, memory=memory))
    scheduler.run_until_idle()


def test_the_first_reading_is_everything(scheduler: Scheduler) -> None:
    """With the names of the resource types by which quantities are in order."""
    place(scheduler, "t1", 30)

    first = change_of(LiveTables(), scheduler)[NAME]

    assert {"n1": [[100], [70], 1], "n2": [[100], [100], 1]} == first["nodes"]
    assert ("rm", "default", ["memory"], [200], 1) == (
        first["rm"],
        first["name"],
        first["types"],
        first["capacity"],
        first["allocations"],
    )
    assert [1, 1, "Active", [50], [200], [30], [], [], 1, 0] == [
        [] if column == [None] else column for column in first["queues"]["root.leaf"]
    ]
    assert ["bob", "root.leaf", "Running"] == first["applications"]["app"][:3]
    assert {"bob": [["root", [30], 1, [500], 3], ["root.leaf", [30], 1, None, 0]]} == first["users"]


def test_nothing_is_sent_while_nothing_changes(scheduler: Scheduler) -> None:
    """An empty text."""
    tables = LiveTables()
    change_of(tables, scheduler)

    assert change_of(tables, scheduler) is None


def test_a_change_has_the_rows_that_changed_alone(scheduler: Scheduler) -> None:
    """The other node is not in it."""
    tables = LiveTables()
    change_of(tables, scheduler)
    place(scheduler, "t1", 30)

    change = change_of(tables, scheduler)[NAME]

    assert {"n1": [[100], [70], 1]} == change["nodes"]
    assert {"root", "root.leaf"} == set(change["queues"])
    assert 1 == change["allocations"]
    assert "types" in change
    assert "ended" not in change


def test_what_is_gone_is_null(scheduler: Scheduler) -> None:
    """A node, and later the whole partition."""
    tables = LiveTables()
    change_of(tables, scheduler)
    request = si.NodeRequest(rmID="rm")
    request.nodes.add(nodeID="n2", action=si.NodeInfo.DECOMISSION)
    scheduler.update_node(request)
    scheduler.run_until_idle()

    assert {"n2": None} == change_of(tables, scheduler)[NAME]["nodes"]
    assert {NAME: None} == json.loads(tables.update(()))


def test_one_that_goes_while_another_comes_is_null_too(scheduler: Scheduler) -> None:
    """Their number alone does not tell."""
    tables = LiveTables()
    change_of(tables, scheduler)
    request = si.NodeRequest(rmID="rm")
    request.nodes.add(nodeID="n2", action=si.NodeInfo.DECOMISSION)
    scheduler.update_node(request)
    scheduler.update_node(node_request("n3"))
    scheduler.run_until_idle()

    nodes = change_of(tables, scheduler)[NAME]["nodes"]

    assert {"n3": [[100], [100], 1], "n2": None} == nodes


def test_the_full_document_is_the_changes_put_together(scheduler: Scheduler) -> None:
    """As a viewer puts them together that looked from the beginning."""
    tables = LiveTables()
    seen = change_of(tables, scheduler)
    place(scheduler, "t1", 30)
    place(scheduler, "t2", 90)
    merge(seen, change_of(tables, scheduler))
    scheduler.update_allocation(release_request("t1"))
    scheduler.update_application(application_request("lost", queue="root.nowhere"))
    scheduler.run_until_idle()
    merge(seen, change_of(tables, scheduler))

    assert seen == json.loads(tables.full())
    assert ["lost"] == [row[0] for row in seen[NAME]["ended"].values()]


def merge(seen: Any, change: Any) -> None:
    """Do what `store.js` does."""
    for name, parts in change.items():
        for key, part in parts.items():
            if not isinstance(part, dict):
                seen[name][key] = part
                continue
            for each, row in part.items():
                if row is None:
                    del seen[name][key][each]
                else:
                    seen[name][key][each] = row


def test_a_row_that_is_equal_but_new_is_read_once_and_not_sent(scheduler: Scheduler) -> None:
    """The node has again what it had, in another object."""
    tables = LiveTables()
    change_of(tables, scheduler)
    place(scheduler, "t1", 30)
    scheduler.update_allocation(release_request("t1"))
    scheduler.run_until_idle()

    assert "nodes" not in change_of(tables, scheduler)[NAME]
    (rows,) = scheduler.monitoring.live_view.rows(tables.known)
    assert () == rows.nodes


def test_a_node_that_takes_no_work_has_since_when_why_and_by_whom(scheduler: Scheduler) -> None:
    """In one column more, until it takes work again."""
    tables = LiveTables()
    change_of(tables, scheduler)
    request = si.NodeRequest(rmID="rm")
    node = request.nodes.add(nodeID="n1", action=si.NodeInfo.DRAIN_NODE)
    node.attributes.update({"licorne/drain-reason": "a disk fails", "licorne/drained-by": "ada"})
    scheduler.update_node(request)
    scheduler.run_until_idle()
    drained = change_of(tables, scheduler)[NAME]["nodes"]
    del node.attributes["licorne/drained-by"], node.attributes["licorne/drain-reason"]
    scheduler.update_node(request)
    scheduler.run_until_idle()
    again = change_of(tables, scheduler)
    request.nodes[0].action = si.NodeInfo.DRAIN_TO_SCHEDULABLE
    scheduler.update_node(request)
    scheduler.run_until_idle()

    now_ms = scheduler.now_ns() // 10**6
    assert {"n1": [[100], [100], 0, [now_ms, "a disk fails", "ada"]]} == drained
    assert again is None
    assert {"n1": [[100], [100], 1]} == change_of(tables, scheduler)[NAME]["nodes"]


def test_a_type_that_comes_later_gets_a_later_place() -> None:
    """So a quantity that was sent keeps its meaning."""
    types = Types()

    assert [1] == types.of_items([("memory", 1)])
    assert [None, 2] == types.of_items([("vcore", 2)])
    assert [3, 4] == types.of_items([("vcore", 4), ("memory", 3)])
    assert types.quantities(None) is None


@pytest.mark.parametrize(
    ("configuration", "queue", "user"),
    [(DECAYING, [[50_000]], [[50_000]]), (PLAIN, [], [])],
    ids=["with a half-life", "without one"],
)
def test_a_mean_is_one_column_more_where_the_past_counts(
    configuration: str, queue: list[object], user: list[object]
) -> None:
    """After the others, which stay where they are."""
    with Scheduler(engine="direct") as scheduler:
        use_for_ten_seconds(scheduler, configuration, memory=100_000)
        tables = change_of(LiveTables(), scheduler)[NAME]

    levels = {level[0]: level[5:] for level in tables["users"]["bob"]}
    assert (queue, user, []) == (tables["queues"]["root.first"][10:], levels["root.first"], levels["root"])


def test_a_mean_is_sent_when_its_first_four_digits_change() -> None:
    """It moves with time, and so would each row with each reading."""
    with Scheduler(engine="direct") as scheduler:
        use_for_ten_seconds(scheduler, DECAYING, memory=100_000)
        tables = LiveTables()
        change_of(tables, scheduler)
        scheduler.advance_to(scheduler.now_ns() + 1_000_000)
        (rows,) = scheduler.monitoring.live_view.rows(tables.known)
        soon = change_of(tables, scheduler)
        scheduler.advance_to(scheduler.now_ns() + 10_000_000_000)
        later = change_of(tables, scheduler)[NAME]

    means = [row.decayed_mean.get("memory") for row in rows.queues if row.decayed_mean]
    assert ([50_003], None) == (means, soon)
    assert ([75_000], ["bob"]) == (later["queues"]["root.first"][10], list(later["users"]))
