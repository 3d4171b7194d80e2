"""All that the page shows can be read in both themes, by the measure of WCAG 2 AA, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from support.proxy.browsing import Visit, chromium, visiting
from support.proxy.contrast import faint_graphics, faint_labels, faint_texts
from support.proxy.listening import Listener
from support.proxy.page_cluster import fill, serving, serving_page
from support.proxy.waiting import wait_until

from licorne import Scheduler, rest_app

DARK = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
VIEWS = (
    *("queues", "nodes", "nodes detail", "applications", "applications detail", "applications ended"),
    *("timeline", "usage", "events", "locks"),
)
GRAPHICS = (
    (".bar .used", "backgroundColor"),
    (".bar.has-guaranteed .guaranteed", "backgroundColor"),
    (".meter i", "backgroundColor"),
    (".tabs a[aria-current]", "borderBottomColor"),
    (".top .button", "borderBottomColor"),
    ("select", "borderBottomColor"),
    ("input[type=search]", "borderBottomColor"),
    (".reason", "borderLeftColor"),
    (".graph rect", "stroke"),
    (".graph .edge", "stroke"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Scheduler]:
    """One of the engine that has a lock graph, in which something waits."""
    with Scheduler(engine="threads") as made:
        fill(made, Listener())
        wait_until(lambda: made.explain("genome").waiting[0].blockers, "the ask was tried")
        yield made


def show(visit: Visit, view: str) -> None:
    """Open a view, with what it shows of one thing."""
    view, _, part = view.partition(" ")
    visit.open(view)
    if part == "ended":
        visit.page.get_by_text("Ended", exact=True).click()
    if view == "applications" and part:
        visit.page.locator(".table-row").last.click()
        expect(visit.page.locator("#detail .headline")).to_be_visible()
    if view == "nodes" and part:
        visit.page.locator("canvas.heat").click(position={"x": 10, "y": 40})
        expect(visit.page.locator("#detail .facts")).to_be_visible()
    first = {"events": "ol.events li", "usage": ".limit", "locks": ".graph rect", "timeline": ".chart"}
    if view in first:
        expect(visit.page.locator(first[view]).first).to_be_visible()


@DARK
def test_texts_and_graphics_stand_out_in_each_view(
    browser: Browser, scheduler: Scheduler, *, dark: bool
) -> None:
    """Texts by 4.5 : 1, bars, lines and the edges of controls by 3 : 1."""
    with serving_page(scheduler) as origin, visiting(browser, origin, dark=dark) as visit:
        for view in VIEWS:
            show(visit, view)
            count, faint = faint_texts(visit.page)

            assert count > 20
            assert (view, []) == (view, faint)
            assert (view, []) == (view, faint_graphics(visit.page, *GRAPHICS))


@DARK
def test_each_square_of_the_heat_map_has_a_label_that_stands_out(
    browser: Browser, scheduler: Scheduler, *, dark: bool
) -> None:
    """Whether its node is empty, half full or full."""
    with serving_page(scheduler) as origin, visiting(browser, origin, dark=dark) as visit:
        visit.open("nodes")

        assert [] == faint_labels(visit.page)


@DARK
def test_the_question_for_a_token_can_be_read(browser: Browser, scheduler: Scheduler, *, dark: bool) -> None:
    """Also what it says of a wrong one."""
    tokens = ["a-token-that-is-known"]
    with serving(rest_app(scheduler, tokens=tokens)) as origin:
        context = browser.new_context(color_scheme="dark" if dark else "light")
        page = context.new_page()
        page.goto(origin)
        page.get_by_label("Token", exact=True).fill("another-token-than-that")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).not_to_be_empty()
        _, faint = faint_texts(page)
        edges = faint_graphics(
            page, ("#token input", "borderBottomColor"), ("#token .button", "borderBottomColor")
        )
        context.close()

    assert [] == faint
    assert [] == edges
