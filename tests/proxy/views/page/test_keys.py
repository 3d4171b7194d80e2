"""The page without a mouse, in a real browser: each control is reached with Tab, and works with keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect
from support.proxy.browsing import Visit
from support.proxy.listening import Listener
from support.proxy.page_cluster import fill

from licorne import Scheduler

VIEWS = (
    "queues",
    "nodes",
    "applications",
    "applications detail",
    "timeline",
    "usage",
    "preempted",
    "events",
    "locks",
)
STOPS_MAX = 60
CONTROLS = """
() => {
  const wanted = 'a[href], button, input, select, summary, [tabindex="0"]';
  const found = [...document.querySelectorAll(wanted)];
  const seen = found.filter(each => each.checkVisibility({ visibilityProperty: true }));
  window.controls = seen.filter(each => each.type !== "radio" || each.checked);
  document.activeElement.blur();
  return window.controls.length;
}
"""
"""Of radio buttons the chosen one is the stop; arrows lead to the others."""
FOCUSED = "() => window.controls.indexOf(document.activeElement)"
MISSED = """
(seen) => window.controls.filter((_, at) => !seen.includes(at)).map(each => each.outerHTML.slice(0, 120))
"""
HIDES = """
() => {
  const stop = document.activeElement;
  const box = stop.getBoundingClientRect();
  const style = getComputedStyle(stop.type === "radio" ? stop.nextSibling : stop);
  const isHidden = style.outlineStyle === "none" || box.bottom < 0 || box.top > innerHeight;
  return isHidden ? stop.outerHTML.slice(0, 120) : null;
}
"""
"""A stop that cannot be seen: without an outline, or outside of the window."""


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Scheduler]:
    with Scheduler() as made:
        fill(made, Listener())
        yield made


def press(visit: Visit, where: Locator, *keys: str) -> None:
    where.focus()
    for key in keys:
        visit.page.keyboard.press(key)


def test_each_control_of_each_view_is_reached_with_tab_and_seen_then(visit: Visit) -> None:
    """The one that has the keys has an outline, and is in the window."""
    for name in VIEWS:
        view, _, part = name.partition(" ")
        visit.open(view)
        if part:
            visit.page.locator(".table-row").first.click()
            expect(visit.page.locator("#detail .headline")).to_be_visible()
        seen: list[int] = []
        hidden = []
        assert visit.page.evaluate(CONTROLS) > 9
        for _ in range(STOPS_MAX):
            visit.page.keyboard.press("Tab")
            at = visit.page.evaluate(FOCUSED)
            if at in seen:
                break
            if at >= 0:
                seen.append(at)
                hidden.append(visit.page.evaluate(HIDES))

        assert (name, []) == (name, visit.page.evaluate(MISSED, seen))
        assert (name, []) == (name, [stop for stop in hidden if stop])


def test_a_view_is_chosen_with_enter(visit: Visit) -> None:
    """Its tab says that it is the one."""
    visit.open("queues")
    press(visit, visit.page.get_by_role("link", name="Nodes"), "Enter")

    expect(visit.page.locator("#view")).to_have_attribute("data-view", "nodes")
    expect(visit.page.get_by_role("link", name="Nodes")).to_have_attribute("aria-current", "page")


def test_the_resource_is_chosen_by_typing_its_name(visit: Visit) -> None:
    """All views show it then."""
    visit.open("queues")
    first = visit.page.locator('[data-path="root"] .figures').first
    expect(first).to_contain_text("vcore")
    visit.page.locator("#resource").focus()
    visit.page.keyboard.type("memory")

    expect(first).to_contain_text(re.compile(r"memory .*Ti"))


def test_the_theme_is_switched_with_space(visit: Visit) -> None:
    visit.open("queues")
    press(visit, visit.page.locator("#theme"), "Space")

    expect(visit.page.get_by_label("Use the light theme")).to_be_focused()


def test_the_table_is_ordered_with_enter_on_a_title(visit: Visit) -> None:
    """Twice turns the order around."""
    visit.open("applications")
    title = visit.page.get_by_role("columnheader", name="Application")
    press(visit, title.get_by_role("button"), "Enter")
    expect(title).to_have_attribute("aria-sort", "ascending")
    expect(visit.page.locator("#row-0")).to_contain_text("batch-")
    press(visit, title.get_by_role("button"), "Enter")

    expect(title).to_have_attribute("aria-sort", "descending")


def test_ended_applications_are_chosen_with_arrows(visit: Visit) -> None:
    visit.open("applications")
    press(visit, visit.page.get_by_label("Active"), "ArrowRight", "ArrowRight")

    expect(visit.page.get_by_label("Ended")).to_be_checked()
    expect(visit.page.locator(".table-row")).to_contain_text("no placement rule matched")


def test_events_are_held_with_space(visit: Visit) -> None:
    visit.open("events")
    press(visit, visit.page.get_by_role("button", name="Hold"), "Space")

    expect(visit.page.get_by_role("button", name="Go on")).to_have_attribute("aria-pressed", "true")
