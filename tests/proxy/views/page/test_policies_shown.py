"""What the page shows of policies, in a real browser: promised starts, mean use, and those of programs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from support.proxy.browsing import visiting
from support.proxy.decayed_use import DECAYING, PLAIN, use_for_ten_seconds
from support.proxy.manager_requests import node_request
from support.proxy.page_cluster import GIB, serving_page
from support.proxy.promised_starts import promise_starts

from licorne import ResourceManager, Scheduler, policies


def test_an_application_says_when_it_is_expected_to_start(browser: Browser) -> None:
    """Or why that cannot be said; what runs has no such line."""
    starts = {
        "big": ["Promised a start on n1 in 1h; at most 3 may go first for their shares."],
        "wide": ["No expected start: no node has room for it after all that runs there."],
        "now": [],
    }
    with Scheduler(engine="direct") as scheduler:
        promise_starts(scheduler)
        with serving_page(scheduler) as origin, visiting(browser, origin) as visit:
            for name, texts in starts.items():
                visit.open(f"applications/{name}")
                expect(visit.page.locator("#detail h2")).to_have_text(name)
                expect(visit.page.locator("#detail h3", has_text="Why it waits")).to_be_visible()
                expect(visit.page.locator("#detail .start")).to_have_text(texts)


@pytest.mark.parametrize(
    ("configuration", "texts"),
    [
        (
            DECAYING,
            ["memory 8Gi of 10Gi · mean use 4Gi", "memory 4Gi", "mean use in root.first, now memory 8Gi"],
        ),
        (PLAIN, ["memory 8Gi of 10Gi", None, None]),
    ],
    ids=["with a half-life", "without one"],
)
def test_the_mean_use_stands_beside_the_use_where_the_past_counts(
    browser: Browser, configuration: str, texts: list[str | None]
) -> None:
    """Of a queue, in the tree and in its panel, and of a user; elsewhere there is no word of it."""
    with Scheduler(engine="direct") as scheduler:
        use_for_ten_seconds(scheduler, configuration, memory=8 * GIB)
        with serving_page(scheduler) as origin, visiting(browser, origin) as visit:
            visit.open("queues/root.first")
            panel = visit.page.locator("#detail .facts")
            expect(panel).to_contain_text("In use")
            mean = panel.locator("dt", has_text="Mean use").locator("+ dd")
            in_panel = mean.inner_text() if mean.count() else None
            in_tree = visit.text('[data-path="root.first"] .figures')
            visit.open("usage")
            expect(visit.page.locator(".holder .name")).to_have_text("bob")
            notes = visit.page.locator(".limit .note").all_inner_texts()

    assert texts == [in_tree, in_panel, next((note for note in notes if "mean use" in note), None)]


class Breaking:
    """Fails for each node."""

    def node_key(self, node: policies.NodeView) -> float:
        raise RuntimeError(f"no price for {node.node_id}")


def test_a_policy_that_fails_is_seen(browser: Browser) -> None:
    """While the page is open, with what it was asked about and why it failed."""
    ordered = PLAIN.replace("default\n", "default\n  nodesortpolicy: {type: policy/breaking}\n")
    with Scheduler(policies={"breaking": Breaking}, on_error=lambda _: None) as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=ordered)
        scheduler.update_node(node_request("n1"))
        with serving_page(scheduler) as origin, visiting(browser, origin) as visit:
            visit.open("queues")
            box = visit.page.locator("details.policies", has_text="Policies that fail: breaking")
            box.locator("summary").click()
            expect(box).to_contain_text(": RuntimeError: no price for ")


def test_without_policies_there_is_no_table_of_them(browser: Browser) -> None:
    with Scheduler(engine="direct") as scheduler:
        use_for_ten_seconds(scheduler, PLAIN, memory=8 * GIB)
        with serving_page(scheduler) as origin, visiting(browser, origin) as visit:
            visit.open("queues")
            expect(visit.page.locator("#connection")).to_have_text("live")
            expect(visit.page.locator("details.policies:visible")).to_have_count(0)
