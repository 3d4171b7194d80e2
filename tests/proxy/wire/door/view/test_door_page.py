"""The page of a door in a real browser: all partitions, where they run, and a worker that is replaced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from support.proxy.browsing import Visit, chromium, visiting
from support.proxy.door_views import LiveWorkers
from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne.proxy.wire.door.view.application import DoorRest
from licorne.proxy.wire.door.workers import LinkState


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def visit(browser: Browser, workers: LiveWorkers) -> Iterator[Visit]:
    with DoorRest(workers.door) as server, visiting(browser, f"http://127.0.0.1:{server.port}") as visit:
        yield visit


def test_each_partition_can_be_chosen_and_looked_into(visit: Visit, workers: LiveWorkers) -> None:
    """Panels, explanations, the last hour and events are of the worker of the partition."""
    workers.second.update_application(application_request("app", partition="second"))
    workers.second.update_allocation(ask_request("big", partition="second", memory=1_000))
    visit.open("applications?partition=[rm]second")

    expect(visit.page.locator("#partition option")).to_have_text(["default of rm", "second of rm"])
    visit.page.locator(".table-row", has_text="app").click()
    expect(visit.page.locator("#detail .reason").first).to_contain_text("0/1 nodes are available")
    visit.open("nodes")
    visit.page.locator("canvas.heat").click(position={"x": 10, "y": 40})
    expect(visit.page.locator("#detail h2")).to_have_text("second-1")
    visit.page.locator("#partition").select_option("[rm]default")
    visit.page.locator("canvas.heat").click(position={"x": 10, "y": 40})
    expect(visit.page.locator("#detail h2")).to_have_text("default-1")
    visit.open("timeline")
    visit.open("events")
    expect(visit.page.locator("#view")).to_contain_text("second-1")


def test_the_page_shows_where_partitions_run_and_that_one_is_lost(visit: Visit, workers: LiveWorkers) -> None:
    """What a lost worker had stands still, with a line above it; then the next one's is shown."""
    visit.open("nodes?partition=[rm]second")
    says = visit.page.locator(".workers summary")
    expect(says).to_have_text("2 partitions on workers")
    says.click()
    row = visit.page.locator(".workers tbody tr").nth(1)
    expect(row).to_contain_text("127.0.0.1:3333, number 1")
    workers.lose_second()
    expect(says).to_have_text("1 of 2 partitions run on workers")
    expect(visit.page.locator("#halted")).to_contain_text("Partition second of rm has no worker since")
    expect(row).to_contain_text("killed")
    halted, summary = (visit.page.locator(name).bounding_box() for name in ("#halted", "#summary"))
    assert halted is not None
    assert summary is not None
    assert halted["y"] + halted["height"] <= summary["y"]
    workers.replace_second()
    workers.second.update_node(node_request("second-2", partition="second"))

    expect(visit.page.locator("#heat-says")).to_have_text("2 nodes")
    expect(visit.page.locator("#halted")).to_be_hidden()
    expect(says).to_have_text("2 partitions on workers")
    expect(visit.page.locator("#partition")).to_have_value("[rm]second")


def test_a_partition_that_comes_later_can_be_chosen(visit: Visit, workers: LiveWorkers) -> None:
    """Until then it is in the table of workers alone."""
    workers.door.change("second", state=LinkState.RECOVERING)
    visit.open("nodes")
    expect(visit.page.locator("#partition option")).to_have_count(1)
    expect(visit.page.locator(".workers summary")).to_have_text("1 of 2 partitions run on workers")
    workers.door.change("second", state=LinkState.RUNNING)

    expect(visit.page.locator("#partition option")).to_have_count(2)
