"""All that the page shows can be read in both themes, by the measure of WCAG 2 AA, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import Browser, expect
from support.proxy.browsing import Visit, visiting
from support.proxy.listening import Listener
from support.proxy.page_cluster import fill, serving, serving_page
from support.waiting import wait_until

from licorne import Scheduler, rest_app

if TYPE_CHECKING:
    from playwright.sync_api import Page


_TEXT_LEAST: Final = 4.5
_GRAPHIC_LEAST: Final = 3
_FORMULA: Final = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const over = (front, back) => {
  const alpha = front[3];
  return [...[0, 1, 2].map((at) => front[at] * alpha + back[at] * (1 - alpha)), 1];
};
const parse = (text) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const luminance = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};
const behind = (element) => {
  const layers = [];
  for (let each = element; each; each = each.parentElement) {
    layers.push(parse(getComputedStyle(each).backgroundColor));
  }
  return layers.reverse().reduce((back, front) => over(front, back), parse("Canvas"));
};
const faded = (element) => {
  let opacity = 1;
  for (let each = element; each; each = each.parentElement) opacity *= Number(getComputedStyle(each).opacity);
  return opacity;
};
"""
_TEXTS: Final = """
(least) => {
  %s
  const faint = new Set();
  let count = 0;
  const note = (element, text, pseudo) => {
    const style = getComputedStyle(element, pseudo);
    const back = behind(element);
    const front = parse(element instanceof SVGElement ? style.fill : style.color);
    front[3] *= faded(element);
    const found = contrast(over(front, back), back);
    count += 1;
    const kind = element.className.baseVal ?? element.className;
    if (found < least) faint.add(`${found.toFixed(2)}: ${kind}: ${text}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent.trim();
    const isSeen = element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
    const isInButton = element.tagName !== "OPTION" && element.tagName !== "NOSCRIPT";
    if (text && isSeen && isInButton && !element.closest(".visually-hidden")) note(element, text);
  }
  for (const input of document.querySelectorAll("input[placeholder]")) {
    note(input, input.placeholder, "::placeholder");
  }
  return [count, [...faint]];
}
"""
_GRAPHICS: Final = """
([least, kinds]) => {
  %s
  const faint = new Set();
  for (const [selector, property] of kinds) {
    for (const element of document.querySelectorAll(selector)) {
      if (!element.checkVisibility()) continue;
      const style = getComputedStyle(element);
      const back = behind(element.parentElement);
      const front = over(parse(style[property]), back);
      const found = contrast(front, back);
      if (found < least) faint.add(`${found.toFixed(2)}: ${selector}`);
    }
  }
  return [...faint];
}
"""
_LABELS: Final = """
async (least) => {
  %s
  const { HeatMap } = await import("/heatmap.js");
  const map = new HeatMap(document.createElement("canvas"));
  const found = map.scale.map((colour, step) => contrast(parse(colour), parse(map.labels[step])));
  return found.filter((each) => each < least);
}
"""


def faint_texts(page: Page) -> tuple[int, list[str]]:
    """Return how many texts are shown, and those whose contrast is below 4.5 : 1."""
    count, faint = page.evaluate(_TEXTS % _FORMULA, _TEXT_LEAST)
    return count, faint


def faint_graphics(page: Page, *kinds: tuple[str, str]) -> list[str]:
    """Return which of the elements have a contrast below 3 : 1 to what is behind them.

    Args:
        page: Where they are shown.
        kinds: A selector, and the property that has the colour.
    """
    faint: list[str] = page.evaluate(_GRAPHICS % _FORMULA, [_GRAPHIC_LEAST, list(kinds)])
    return faint


def faint_labels(page: Page) -> list[float]:
    """Return the contrasts below 4.5 : 1 between a square of the heat map and the text in it."""
    faint: list[float] = page.evaluate(_LABELS % _FORMULA, _TEXT_LEAST)
    return faint


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
