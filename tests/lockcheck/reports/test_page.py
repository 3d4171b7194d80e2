"""The page: parsed everywhere, and shown by a real browser where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.lockcheck.lock_reports import summary_of_a_cycle
from support.proxy.browsing import chromium
from support.waiting import PROGRAM_SECONDS

from licorne.lockcheck.reports.page import BYTES_MAX, lines_of, to_html
from licorne.lockcheck.sessions.summaries import Summary

BROWSER = shutil.which("chromium")


class Parts(HTMLParser):
    """Collects tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def visible(self, tag: str) -> list[str]:
        """Return the classes of those that the filter leaves, in order."""
        return [
            attributes["data-classes"] or ""
            for name, attributes in self.found
            if name == tag and "data-classes" in attributes and "hidden" not in attributes
        ]


def test_the_page_holds_the_graph_the_findings_and_nothing_from_elsewhere() -> None:
    """Seven classes, seven edges of them, three findings; names are escaped."""
    page = to_html(summary_of_a_cycle())
    parts = Parts(page)

    assert 7 == sum(tag == "rect" for tag, _ in parts.found)
    assert 3 == sum(tag == "details" for tag, _ in parts.found)
    assert 7 == len(parts.visible("tr"))
    assert "root.&lt;a&gt;" in page
    assert "root.<a>" not in page
    assert not any({"src", "href"} & attributes.keys() for _, attributes in parts.found)
    assert "://" not in page


def test_a_page_of_very_much_stays_small_and_says_what_it_leaves_out() -> None:
    """The strongest evidence stays."""
    summary = summary_of_a_cycle()
    findings = [replace(summary.findings[0], fingerprint=f"f{at}") for at in range(1000)]
    class_edges = [
        replace(one, held=f"{one.held}{at}é" * 3) for at in range(1000) for one in summary.class_edges
    ]
    page = to_html(replace(summary, findings=tuple(findings), class_edges=tuple(class_edges)))

    assert len(page.encode()) <= BYTES_MAX
    assert 'id="f0"' in page
    assert "further findings do not fit into this page" in page
    assert "classes are too many to draw" in page


def test_a_page_of_nothing_says_so() -> None:
    """It is a page all the same."""
    page = to_html(Summary("full"))

    assert "No edges were learned." in page
    assert "found nothing" in page


def test_a_long_chain_of_classes_is_too_much_to_draw_but_no_error() -> None:
    """However long it is."""
    summary = summary_of_a_cycle()
    chain = [replace(summary.class_edges[0], held=f"c{at}", wanted=f"c{at + 1}") for at in range(2000)]

    assert "classes are too many to draw" in to_html(replace(summary, class_edges=tuple(chain)))


@pytest.mark.skipif(BROWSER is None and "CI" not in os.environ, reason="chromium is not installed")
def test_in_a_browser_the_address_filters_by_class(tmp_path: Path) -> None:
    """Only what speaks of the named classes alone stays; without names everything does."""
    path = tmp_path / "page.html"
    path.write_text(to_html(summary_of_a_cycle()), encoding="utf-8")

    everything = Parts(shown(path.as_uri(), tmp_path))
    filtered = Parts(shown(path.as_uri() + "#queue,application", tmp_path))

    assert (3, 7) == (len(everything.visible("details")), len(everything.visible("tr")))
    assert ['["application", "queue"]', '["queue", "application"]', '["queue", "application"]'] == (
        filtered.visible("tr")
    )
    assert 2 == len(filtered.visible("details"))


def shown(address: str, folder: Path) -> str:
    """Return the page as it stands after its script has run."""
    assert BROWSER is not None, "chromium is not installed: make chromium"
    ran = subprocess.run(  # noqa: S603 - Debian's browser on our own page
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            address,
        ],
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=True,
    )
    return ran.stdout


LONG_NAMES = (
    "licorne.applications.scheduling_partition.PartitionScheduler._reservations_by_node",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
    "キューのロックキューのロックキューのロックキューのロック",
    "short",
)
OUTSIDE = """texts => texts.filter(text => {
    const drawn = text.getBBox(), box = text.parentNode.querySelector("rect").getBBox();
    return drawn.x < box.x || drawn.y < box.y || drawn.width === 0
        || drawn.x + drawn.width > box.x + box.width || drawn.y + drawn.height > box.y + box.height;
}).map(text => text.textContent)"""
SIZES = """texts => texts.map(text => text.getScreenCTM().a)"""


def test_in_a_browser_long_names_are_drawn_whole_inside_of_their_boxes(tmp_path: Path) -> None:
    """They are as large as short ones, however many boxes are in a row, and the page is no wider."""
    summary = summary_of_a_cycle()
    first = summary.class_edges[0]
    edges = [replace(first, held="outer", wanted=f"{name}{at}") for name in LONG_NAMES for at in range(4)]
    path = tmp_path / "page.html"
    path.write_text(to_html(replace(summary, findings=(), class_edges=tuple(edges))), encoding="utf-8")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 800, "height": 600})
        page.goto(path.as_uri())
        texts = page.locator("svg text")
        names, outside, sizes = (
            texts.all_text_contents(),
            texts.evaluate_all(OUTSIDE),
            texts.evaluate_all(SIZES),
        )
        width = page.evaluate("document.documentElement.scrollWidth")

    assert {"outer", *(one.wanted for one in edges)} <= set(names)
    assert ([], {1}, True) == (outside, set(sizes), width <= 800)


@pytest.mark.parametrize("name", [*LONG_NAMES, "", "a" * 500, "one two  three" * 9])
def test_the_lines_of_a_name_are_the_name(name: str) -> None:
    """They end after a word where that is possible."""
    lines = lines_of(name)

    assert (name, True) == ("".join(lines), all(lines) or not name)
    assert ["queue_of_waiting_", "applications"] == lines_of("queue_of_waiting_applications")
