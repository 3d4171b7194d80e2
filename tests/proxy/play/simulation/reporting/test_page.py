"""The page: parsed everywhere, and shown by a real browser where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from support.proxy.fake_core import FakeCore
from support.proxy.figure_runs import simulated_figures
from support.proxy.simulation_builders import a_task, an_application
from support.waiting import PROGRAM_SECONDS

from licorne.proxy.play.simulation.reporting.figures import RunFigures
from licorne.proxy.play.simulation.reporting.page_parts import amount, change_of
from licorne.proxy.play.simulation.reporting.report_files import to_html
from licorne.proxy.play.simulation.reporting.run_series import QueueBounds

BROWSER: Final = shutil.which("chromium")
_EMPTY_TAGS: Final = {"meta", "br"}


class Parts(HTMLParser):
    """Reads a page, and checks that every element is closed in its place."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in _EMPTY_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop(), f"{tag} closes another element"

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.found)


def _figures(duration: int = 4, queue: str = "root.x.b") -> RunFigures:
    """Simulate two queues on ten cores, one of which has a guarantee."""
    core = FakeCore(limits={queue: QueueBounds({"vcore": 5}, {"vcore": 8})})
    return simulated_figures(
        core,
        an_application(a_task("t1", cores=10, duration=duration), name="a", queue="root.a"),
        an_application(a_task("t2", cores=5, at=2, duration=4), name="b", queue=queue, at=2),
    )


def test_the_page_is_complete_and_needs_nothing_else() -> None:
    """Each chart has a title, a description and a table; ids are unique; there is no script or address."""
    page = to_html(_figures())
    parts = Parts(page)
    ids = [attributes["id"] for _, attributes in parts.found if "id" in attributes]
    named = " ".join(attributes.get("aria-labelledby") or "" for _, attributes in parts.found).split()

    assert [] == parts.open
    assert 4 + 3 + 1 + 2 == parts.count("svg") == parts.count("desc")
    assert parts.count("svg") <= parts.count("details")
    assert len(ids) == len(set(ids))
    assert set(ids) == set(named)
    assert 0 == parts.count("script") == parts.count("link") == parts.count("img")
    assert not any({"src", "href", "style"} & attributes.keys() for _, attributes in parts.found)
    assert not re.search(r"//|url\(|@import|@[a-z_]+@", page)


def test_the_chart_of_a_queue_shows_use_need_and_limits() -> None:
    """Ten cores over eight seconds: five wait in seconds 2 and 3 and run from second 4 on."""
    page = to_html(_figures())
    chart = page[page.rindex("<strong>root.x.b</strong>") :]

    assert "guaranteed 0.005 cores" in chart
    assert "maximum 0.008 cores" in chart
    (used,) = re.findall(r'class="area used" d="([^"]*)"', chart[: chart.index("</figure>")])
    (pending,) = re.findall(r'class="area pending" d="([^"]*)"', chart[: chart.index("</figure>")])
    # The scale ends at 10, which another queue uses of the same resource.
    assert used.startswith("M0 240H500V120H1000L1000 240")
    assert pending.startswith("M0 240H250V120H1000L1000 120H500V240H0")


def test_queues_and_users_are_compared_also_where_placement_differs() -> None:
    """One line each, with what either run has; waits come before what is used over time."""
    page = to_html(_figures(), _figures(queue="root.y.c"))

    queues = page[page.index("Queue by queue") : page.index("User by user")]
    users = page[page.index("User by user") : page.index("How many tasks waited how long")]
    for name in ("all queues", "root.a", "root.x.b", "root.y.c"):
        assert f'<th scope="row">{name}</th>' in queues
    assert 1 == users.count('<th scope="row">')
    assert page.index("Waiting times") < page.index("Queues over time")
    assert "bounded slowdown" in page
    assert "makespan" in page


def test_names_are_escaped() -> None:
    """Those of queues, users and tasks come from others."""
    figures = _figures(queue="root.<script>alert(1)</script>&\"'")
    page = to_html(figures.model_copy(update={"workload": "</title><b>"}))

    assert 0 == Parts(page).count("script") == Parts(page).count("b")
    assert "root.&lt;script&gt;" in page


def test_two_runs_stand_beside_each_other_with_their_differences() -> None:
    """The other one waits two seconds less, and takes the place of the second column."""
    page = to_html(_figures(), _figures(duration=2))
    parts = Parts(page)

    assert [] == parts.open
    assert 2 * (4 + 3 + 1 + 2) == parts.count("svg")
    assert "this run: test" in page
    assert "compared with: test" in page
    assert "0s in the other run: +2s" in page


def test_two_runs_have_a_table_of_queues_each() -> None:
    page = to_html(_figures(), _figures(queue="root.y.c"))

    this, other = (
        re.search(rf'aria-label="All queues and resources, {label}".*?</table>', page, re.DOTALL)
        for label in ("this run", "compared with")
    )
    assert this is not None
    assert other is not None
    assert ("root.x.b" in this[0], "root.y.c" in this[0]) == (True, False)
    assert ("root.x.b" in other[0], "root.y.c" in other[0]) == (False, True)


def test_a_queue_that_only_one_run_has_is_drawn_once() -> None:
    """The other has nothing there."""
    page = to_html(_figures(), _figures(queue="root.other"))

    assert 1 == len(re.findall(r"<strong>root\.x\.b</strong> <span>vcore", page))
    assert 1 == len(re.findall(r"<strong>root\.other</strong> <span>vcore", page))
    assert 2 == len(re.findall(r"<strong>root\.a</strong> <span>vcore", page))


def test_a_page_of_nothing_is_a_page() -> None:
    """A workload with one application that is rejected at once."""
    page = to_html(simulated_figures(FakeCore(refused_queues={"root.q"}), an_application(a_task())))

    assert [] == Parts(page).open
    assert "No work was preempted." in page


def test_amounts_and_differences_are_written_for_people() -> None:
    """With units, signs and few digits."""
    assert ("16 cores", "0.25 cores", "1,650 cores") == (
        amount("vcore", 16_000),
        amount("vcore", 250),
        amount("vcore", 1_650_000),
    )
    assert ("1.5 GiB", "640 GiB", "0 B") == (
        amount("memory", 3 * 2**29),
        amount("memory", 640 * 2**30),
        amount("memory", 0),
    )
    assert "16" == amount("gpu", 16)
    assert ("+1m30s", "same", "–") == (  # noqa: RUF001 - a dash for no value
        change_of(100 * 10**9, 10**10, "time"),
        change_of(5, 5, "count"),
        change_of(None, 5, "count"),
    )
    assert "−1.5 pp" == change_of(10, 25, "percent")  # noqa: RUF001 - the sign for minus


@pytest.mark.skipif(BROWSER is None and "CI" not in os.environ, reason="chromium is not installed")
@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_in_a_browser_the_page_fits_its_width_without_errors(width: int, tmp_path: Path) -> None:
    """Nothing but tables may be scrolled sideways, and the console stays empty."""
    page = to_html(_figures(), _figures(duration=2))
    path = tmp_path / "report.html"
    # A window is at least 500 pixels wide, a frame may be smaller; a script of the test measures in it.
    measure = "document.title = 'wide ' + this.contentDocument.documentElement.scrollWidth"
    frame = (
        f'<iframe style="width: {width}px; border: 0" onload="{measure}" srcdoc="{escape(page)}"></iframe>'
    )
    path.write_text(f"<!DOCTYPE html><title>none</title>{frame}", encoding="utf-8")
    ran = _shown(path, width, tmp_path, "--dump-dom")
    path.write_text(page, encoding="utf-8")
    picture = tmp_path / "report.png"
    errors = _shown(path, width, tmp_path, f"--screenshot={picture}").stderr

    (wide,) = re.findall(r"<title>wide (\d+)</title>", ran.stdout)
    assert width - 20 <= int(wide) <= width  # A bar to scroll downwards takes the rest.
    assert "CONSOLE" not in errors
    assert picture.read_bytes().startswith(b"\x89PNG")


def _shown(path: Path, width: int, folder: Path, what: str) -> subprocess.CompletedProcess[str]:
    """Let a browser without a window show a page."""
    assert BROWSER is not None, "chromium is not installed: make chromium"
    return subprocess.run(  # noqa: S603 - Debian's browser on our own page
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},900",
            what,
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=True,
    )
