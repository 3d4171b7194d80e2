"""The page in a real browser, on a scheduler that runs: its views, live changes, keys, three sizes."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from support.proxy.browsing import SCREENSHOTS, Visit, visiting
from support.proxy.listening import Listener
from support.proxy.page_cluster import GIB, ask, fill, node, serving_page, submit
from support.proxy.preempted_work import preempt, start_victim
from support.waiting import WAIT_SECONDS, wait_until

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.history.recorder import HistoryWriter
from licorne.proxy.views.history.store import HOUR_NS
from licorne.proxy.views.page.feed import LiveFeed, LiveTables

WAITING = """
async () => {
  const { store, waits } = await import("/store.js");
  const known = store.partitions[store.name];
  return [known.counts.waiting, Object.values(known.applications).filter(waits).length];
}
"""
LEAVES_LOCKS = """
() => new Promise(resolve => {
  addEventListener("hashchange", () => resolve(document.querySelector('#tabs [data-view="locks"]').hidden));
  location.hash = "#queues";
})
"""
"""Whether the tab of the locks is hidden as soon as the page has changed to another view."""
VIEWS = ("queues", "nodes", "applications", "timeline", "usage", "preempted", "events", "locks")
ANEW = "partitions: [{name: default, queues: [{name: root, queues: [{name: anew}]}]}]"
COLUMNS = """
cells => {
  const shown = cells.filter(cell => cell.offsetParent);
  return Object.fromEntries(shown.map(cell => {
    const style = getComputedStyle(cell);
    const line = style.gridRowStart;
    const end = style.textAlign === "right";
    const box = cell.getBoundingClientRect();
    return [cell.className, [line, end, Math.round(end ? box.right : box.left)]];
  }));
}
"""
"""Where each cell of a line stands: its line, whether it ends or begins there, and the pixel where."""
SIZES = {"phone": (390, 844), "desk": (1280, 800), "wall": (2560, 1440)}


@pytest.fixture
def scheduler(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    """One that runs, with a cluster in which something waits."""
    engine: EngineName = getattr(request, "param", "actors")
    with Scheduler(engine=engine) as made:
        fill(made, Listener())
        wait_until(lambda: made.explain("genome").waiting[0].blockers, "the ask was tried")
        yield made


def tree_row(visit: Visit, path: str) -> str:
    return visit.text(f'[data-path="{path}"]')


# ----------------------------------------------------------------------------------------------- the views


def test_the_queues_are_bars_with_what_they_use_want_and_are_guaranteed(visit: Visit) -> None:
    """The maximum is the whole bar; two types of resources are shown, the scarcest of each queue first."""
    visit.open("queues")
    figures = visit.page.locator('[data-path="root.production.billing"] .figures:visible')
    expect(figures).to_have_text([re.compile("memory .* of 256Gi"), re.compile("vcore .* of 384")])
    expect(visit.page.locator('[data-path="root.research.biology"] .figures').first).to_contain_text("vcore")
    visit.page.locator("#resource").select_option("memory")
    row = visit.page.locator('[data-path="root.production"] .measure').first

    expect(row).to_contain_text("of 900Gi")
    expect(row).to_contain_text("400Gi guaranteed")
    assert "0.4444" == row.locator(".bar").evaluate("bar => bar.style.getPropertyValue('--guaranteed')")
    assert "production" in tree_row(visit, "root.production")


def test_names_of_queues_keep_their_width_beside_the_panel(visit: Visit) -> None:
    """They stand above the bars there."""
    visit.open("queues")
    name = visit.page.locator('[data-path="root.production.billing"] .name')
    name.click()
    expect(visit.page.locator("#detail")).to_be_visible()

    bar = visit.page.locator('[data-path="root.production.billing"] .bar').first
    bottom = name.evaluate("name => name.getBoundingClientRect().bottom")
    assert bottom <= bar.evaluate("bar => bar.getBoundingClientRect().top")
    assert name.evaluate("name => name.scrollWidth <= name.clientWidth")


def test_a_node_is_opened_from_the_heat_map(visit: Visit) -> None:
    """With what runs on it."""
    visit.open("nodes")
    expect(visit.page.locator("#heat-says")).to_have_text("24 nodes")
    visit.page.locator("canvas.heat").click(position={"x": 10, "y": 40})

    expect(visit.page.locator("#detail h2")).to_have_text("node-0")
    expect(visit.page.locator("#detail .facts")).to_contain_text("takes work")
    expect(visit.page.locator("#heat-says")).to_contain_text("node-0")


def test_nodes_are_found_by_name(visit: Visit) -> None:
    """The others fade."""
    visit.open("nodes")
    visit.page.get_by_label("Find nodes").fill("node-1")

    expect(visit.page.locator("#heat-says")).to_have_text("11 nodes of 24")


def test_an_application_says_why_it_waits_with_the_lines_of_the_configuration(visit: Visit) -> None:
    """All reasons at once."""
    visit.open("applications")
    visit.page.get_by_label("Find applications").fill("genome")
    expect(visit.page.locator(".says")).to_have_text("1 of 31 applications")
    expect(visit.page.locator(".table-row .c-why")).to_have_text("queue max")
    visit.page.locator(".table-row").click()

    reasons = visit.page.locator("#detail .reason")
    expect(reasons.first).to_contain_text("0/24 nodes are available: 24 Insufficient vcore")
    queue = reasons.nth(1)
    expect(queue).to_contain_text("Queue root.research.biology has no room")
    expect(queue.locator(".setting").first).to_contain_text("line 28")
    expect(queue.locator(".setting code").first).to_contain_text("biology")
    expect(reasons.last).to_contain_text("No node has room")


def test_an_application_says_who_would_be_preempted_for_it(visit: Visit, scheduler: Scheduler) -> None:
    """Its queue is owed more than it has, and others use the room."""
    submit(scheduler, "urgent", "root.production.web")
    ask(scheduler, "urgent", "u1", memory=40 * GIB, vcore=500, preempts=True)
    visit.open("applications")
    visit.page.get_by_label("Find applications").fill("urgent")
    visit.page.locator(".table-row").click()

    expect(visit.page.locator("#detail")).to_contain_text("Who would be preempted for it")
    expect(visit.page.locator("#detail")).to_contain_text("u1 of urgent asks for memory 40Gi")


def test_ended_applications_have_their_reason(visit: Visit) -> None:
    """One was rejected."""
    visit.open("applications")
    visit.page.get_by_text("Ended", exact=True).click()

    expect(visit.page.locator(".table-row")).to_contain_text("no placement rule matched")


@pytest.mark.parametrize("width", [390, 1100, 1280, 2560])
@pytest.mark.parametrize("is_open", [False, True], ids=["table", "table and panel"])
def test_the_titles_of_the_applications_stand_above_what_they_name(
    browser: Browser, scheduler: Scheduler, width: int, *, is_open: bool
) -> None:
    """Also where a row takes two lines or three: a title is in the column and line of its cells."""
    with serving_page(scheduler) as origin, visiting(browser, origin, width=width) as visit:
        visit.open("applications")
        visit.page.get_by_label("Find applications").fill("genome")
        if is_open:
            visit.page.locator(".table-row").click()
            expect(visit.page.locator("#detail")).to_be_visible()
        titles = visit.page.locator(".table-head .cell").evaluate_all(COLUMNS)
        cells = visit.page.locator(".table-row").first.locator(".cell").evaluate_all(COLUMNS)

    assert titles == cells


def test_the_last_hour_has_a_chart_a_queue(visit: Visit) -> None:
    """Of the chosen parent."""
    visit.open("timeline")
    expect(visit.page.locator(".chart")).to_have_count(4)
    visit.page.get_by_label("Queues below").select_option("root.production")

    expect(visit.page.locator(".chart .name")).to_have_text(
        ["root.production", "root.production.billing", "root.production.web"]
    )


def test_a_history_gives_longer_ranges(visit: Visit, scheduler: Scheduler, tmp_path: Path) -> None:
    """Without one there is the last hour alone."""
    visit.open("timeline")
    expect(visit.page.get_by_label("Range").locator("option")).to_have_text(["Last hour"])
    writer = HistoryWriter(scheduler, tmp_path / "history.db", lambda *_: "")
    writer.write()
    writer.write()
    with sqlite3.connect(tmp_path / "history.db") as database:
        database.execute("INSERT INTO uses SELECT time_ns - ?, holder, type, 1, 1 FROM uses", (30 * HOUR_NS,))
    visit.page.get_by_label("Queues below").select_option("root.production")

    expect(visit.page.get_by_label("Range").locator("option")).to_have_text(
        ["Last hour", "Last day", "Last week"]
    )
    visit.page.get_by_label("Range").select_option("Last week")
    expect(visit.page.locator(".chart .name")).to_have_text(
        ["root.production", "root.production.billing", "root.production.web"]
    )


def test_nodes_that_are_out_are_listed_with_why_and_by_whom(visit: Visit, scheduler: Scheduler) -> None:
    """And how the free room is split."""
    request = si.NodeRequest(rmID="rm")
    request.nodes.add(nodeID="node-3", action=si.NodeInfo.DRAIN_NODE).attributes.update(
        {"licorne/drain-reason": "a disk fails", "licorne/drained-by": "eve"}
    )
    scheduler.update_node(request)
    visit.open("nodes")

    listed = visit.page.get_by_label("Nodes that take no work").locator("li")
    expect(listed.filter(has_text="node-3")).to_contain_text("by eve: a disk fails")
    expect(visit.page.locator("#free-room")).to_contain_text("on nodes with work")


def test_what_was_preempted_is_listed_with_both_sides(browser: Browser) -> None:
    """And nothing else; the tab says so."""
    with Scheduler(engine="direct") as scheduler:
        start_victim(scheduler)
        with serving_page(scheduler) as origin, visiting(browser, origin) as visit:
            visit.open("preempted")
            expect(visit.page.locator(".empty")).to_have_text("Nothing was preempted.")
            with scheduler.one_caller:
                preempt(scheduler, after_seconds=100)
            line = visit.page.get_by_label("Preempted allocations").locator("li")
            expect(line).to_contain_text("app · victim")
            expect(line).to_contain_text(
                "of bob in root.leaf on n1, for the guarantee of a queue: urgent in root.entitled"
            )


def test_users_and_groups_are_shown_against_their_limits(visit: Visit) -> None:
    """The group by its cores, ada by memory and applications."""
    visit.open("usage")

    expect(visit.page.get_by_text("vcore in root", exact=True)).to_have_count(1)
    expect(visit.page.get_by_text("applications in root.production.billing")).to_have_count(1)
    expect(visit.page.get_by_text("Users · 4")).to_be_visible()


def test_events_are_listed_and_found(visit: Visit) -> None:
    """Also what happened before the view was opened; a kind or a word leaves those that have it."""
    visit.open("events")
    listed = visit.page.locator("ol.events li")

    expect(listed.filter(has_text="node-1").filter(has_text="allocation added").first).to_be_visible()
    expect(listed.filter(has_text="undefined")).to_have_count(0)
    expect(listed.filter(has_text="use of the user changed").first).to_be_visible()
    expect(listed.filter(has_text="changed added")).to_have_count(0)
    visit.page.get_by_label("node", exact=True).check(force=True)
    expect(listed.first).to_be_visible()
    expect(listed.locator(".kind").filter(has_not_text="node")).to_have_count(0)
    visit.page.get_by_label("Find in events").fill("no event has this")
    expect(listed).to_have_count(0)


@pytest.mark.parametrize("scheduler", ["threads"], indirect=True)
def test_the_lock_graph_of_the_engine_threads_is_drawn(visit: Visit) -> None:
    """A box a class of locks."""
    visit.open("locks")

    expect(visit.page.locator("svg.graph .lock")).to_have_count(15)
    expect(visit.page.locator("svg.graph")).to_contain_text("node-order")


def test_another_engine_has_no_lock_graph(visit: Visit) -> None:
    """And says why; its tab goes with the view, also where no data comes any more."""
    visit.open("locks")

    expect(visit.page.locator("#view .empty")).to_contain_text("The engine actors has no locks")
    assert visit.page.evaluate(LEAVES_LOCKS)


# -------------------------------------------------------------------------------- panels and addresses


def test_what_is_shown_has_an_address_that_can_be_sent(visit: Visit) -> None:
    """Of a view, a thing in it, the partition and the resource; links lead from one thing to the next."""
    visit.open("applications/genome?type=memory")
    detail = visit.page.locator("#detail")
    expect(detail.locator("h2")).to_have_text("genome")
    expect(visit.page.locator("#resource")).to_have_value("memory")
    detail.locator(".facts a", has_text="root.").first.click()

    expect(detail.locator(".facts")).to_contain_text("Headroom")
    expect(visit.page).to_have_url(re.compile(r"#queues/root\.[^?]*\?partition=%5Brm%5Ddefault&type=memory$"))
    detail.locator("summary", has_text="application").click()
    detail.locator("details a", has_text="genome").click()
    expect(detail.locator("h2")).to_have_text("genome")
    visit.page.keyboard.press("Escape")
    expect(visit.page).to_have_url(re.compile(r"#applications\?partition="))
    expect(detail).to_be_hidden()


def test_an_application_shows_what_it_has_and_where(visit: Visit) -> None:
    """Its allocations lead to their nodes, and these back."""
    visit.open("applications")
    visit.page.get_by_label("Find applications").fill("root.production.web")
    visit.page.locator(".table-row").first.click()
    detail = visit.page.locator("#detail")
    expect(detail).to_contain_text("What it has")
    name = detail.locator("h2").inner_text()
    detail.locator("summary", has_text="Its states").click()
    expect(detail.locator("details", has_text="Its states")).to_contain_text("Running")
    detail.locator("summary", has_text="allocation").click()
    detail.locator('details[data-key="allocations"] a').first.click()

    expect(detail.locator(".facts")).to_contain_text("takes work")
    expect(detail.locator(".lines a", has_text=name).first).to_be_visible()


# --------------------------------------------------------------------------------------------- live changes


def test_the_summary_says_how_many_wait_for_which_reason(visit: Visit) -> None:
    """On the first screen, in the words of the list of applications."""
    visit.open("queues")
    applications = visit.page.locator("#summary .figure", has_text="Applications")

    expect(applications).to_contain_text(re.compile(r"wait: \d+ [a-z]"), timeout=1000 * WAIT_SECONDS)


def test_what_changes_is_shown_without_a_reload(visit: Visit, scheduler: Scheduler) -> None:
    """A node, an application, a queue that fills."""
    visit.open("queues")
    visit.page.locator("#resource").select_option("memory")
    before = visit.page.locator('[data-path="root"] .figures').first
    expect(before).to_contain_text("of 1.5Ti")
    scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node("late", memory=2048 * GIB)]))

    expect(before).to_contain_text("of 3.5Ti")
    expect(visit.page.locator("#summary")).to_contain_text("25")
    visit.page.get_by_role("link", name="Applications").click()
    submit(scheduler, "newcomer", "root.batch")
    ask(scheduler, "newcomer", "n1", memory=100 * GIB)
    visit.page.get_by_label("Find applications").fill("newcomer")
    expect(visit.page.locator(".table-row")).to_contain_text("memory 100Gi")


def test_the_summary_counts_nodes_and_what_waits_as_they_change(visit: Visit, scheduler: Scheduler) -> None:
    """A node that is cordoned, one that goes, and the last that waits."""
    visit.open("queues")
    summary = visit.page.locator("#summary")
    expect(summary).to_contain_text("2 cordoned")
    scheduler.update_node(
        si.NodeRequest(rmID="rm", nodes=[si.NodeInfo(nodeID="node-0", action=si.NodeInfo.DRAIN_NODE)])
    )
    expect(summary).to_contain_text("3 cordoned")
    scheduler.update_node(
        si.NodeRequest(rmID="rm", nodes=[si.NodeInfo(nodeID="node-5", action=si.NodeInfo.DECOMISSION)])
    )

    expect(summary).to_contain_text("2 cordoned")
    expect(summary.locator(".figure", has_text="Nodes").locator("strong")).to_have_text("23")
    scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node("huge", memory=8192 * GIB, vcore=900_000)]))
    expect(summary.locator(".figure", has_text="Nodes").locator("strong")).to_have_text("24")
    counted, recounted = visit.page.evaluate(WAITING)
    assert recounted == counted


def test_a_resource_manager_that_is_not_there_is_said_to_be_gone(visit: Visit, scheduler: Scheduler) -> None:
    """Since when and why; a stopped one is marked where partitions are chosen."""
    visit.open("queues")
    banner = visit.page.locator("#halted")
    expect(banner).to_be_hidden()
    scheduler.pause_manager("rm", "its connection was lost")
    expect(banner).to_contain_text("Resource manager rm is paused since")
    expect(banner).to_contain_text("its connection was lost; nothing new is placed for it.")
    scheduler.stop_manager("rm", "it did not come back")
    expect(banner).to_contain_text("Resource manager rm is stopped since")
    expect(visit.page.locator("#partition option")).to_have_text("default (stopped)")


def test_the_page_comes_back_when_the_server_does(browser: Browser, scheduler: Scheduler) -> None:
    """Its scheduler is another one then, and the page shows that."""
    with serving_page(scheduler) as origin:
        port = int(origin.rpartition(":")[2])
        context = browser.new_context()
        page = context.new_page()
        page.goto(origin)
        expect(page.locator('#connection[data-state="live"]')).to_be_visible()
    expect(page.locator('#connection[data-state="waiting"]')).to_be_visible()
    with Scheduler() as other:
        other.register("rm", Listener(), configuration=ANEW)
        with serving_page(other, port=port):
            expect(page.locator('[data-path="root.anew"]')).to_be_visible()
            context.close()


def test_the_page_is_live_with_the_first_document_only(
    browser: Browser, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connected to a server that has not read yet it shows nothing, and says so; then all at once."""
    may_read = threading.Event()
    read = LiveFeed._read

    def read_late(feed: LiveFeed, tables: LiveTables, *, needs_all: bool) -> tuple[str, str]:
        assert may_read.wait(timeout=WAIT_SECONDS)
        return read(feed, tables, needs_all=needs_all)

    monkeypatch.setattr(LiveFeed, "_read", read_late)
    with serving_page(scheduler) as origin, visiting(browser, origin) as visit:
        with visit.page.expect_response("**/licorne/v1/live"):
            visit.page.goto(f"{origin}/#nodes")
        visit.page.wait_for_timeout(200)
        assert "connecting" == visit.text("#connection")
        may_read.set()
        visit.page.wait_for_selector('#connection[data-state="live"]')

        assert "24 nodes" == visit.text("#heat-says")


# --------------------------------------------------------------------------------------------- the keyboard


def test_the_tree_is_walked_with_the_arrow_keys(visit: Visit) -> None:
    """Left closes and goes up, right opens and goes down."""
    visit.open("queues")
    visit.page.locator('[data-path="root"]').focus()
    press = visit.page.keyboard.press
    press("ArrowDown")
    press("ArrowDown")
    assert "root.production" == focused(visit, "dataset.path")
    press("ArrowLeft")
    expect(visit.page.locator('[data-path="root.production.web"]')).to_have_count(0)
    press("ArrowRight")
    press("ArrowRight")
    assert "root.production.billing" == focused(visit, "dataset.path")
    press("ArrowLeft")
    press("ArrowLeft")
    press("ArrowLeft")
    assert "root" == focused(visit, "dataset.path")


def test_the_table_is_used_with_keys_alone(visit: Visit) -> None:
    """Escape leads back from the panel to the row."""
    visit.open("applications")
    visit.page.locator(".table").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End", "Enter"):
        visit.page.keyboard.press(key)
    expect(visit.page.locator("#detail h2")).to_be_focused()
    expect(visit.page.locator('.table-row[aria-selected="true"]')).to_have_count(1)
    visit.page.keyboard.press("Escape")
    expect(visit.page.locator("#detail")).to_be_hidden()
    expect(visit.page.locator(".table")).to_be_focused()


def test_the_heat_map_is_used_with_keys_alone(visit: Visit) -> None:
    """What is chosen is said in words."""
    visit.open("nodes")
    visit.page.locator("canvas.heat").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        visit.page.keyboard.press(key)

    expect(visit.page.locator("#heat-says")).to_contain_text("node-1: ")
    expect(visit.page.locator("#detail h2")).to_have_text("node-1")


def test_the_first_key_leads_past_the_head(visit: Visit) -> None:
    """To the content."""
    visit.open("queues")
    visit.page.keyboard.press("Tab")
    assert "Skip to the content" == focused(visit, "textContent")
    visit.page.keyboard.press("Enter")

    assert "view" == focused(visit, "id")


def focused(visit: Visit, attribute: str) -> str:
    found: str = visit.page.evaluate(f"document.activeElement.{attribute}")
    return found


# --------------------------------------------------------------------------------------- themes and sizes


def test_the_theme_can_be_switched_and_is_kept(visit: Visit) -> None:
    """Over a reload."""
    visit.open("queues")
    assert "rgb(246, 246, 249)" == background(visit)
    visit.page.get_by_label("Use the dark theme").click()
    assert "rgb(17, 17, 23)" == background(visit)
    visit.page.reload()
    assert "rgb(17, 17, 23)" == background(visit)


def background(visit: Visit) -> str:
    found: str = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_each_view_fits_each_size(browser: Browser, scheduler: Scheduler, size: str, *, dark: bool) -> None:
    """Nothing is wider than the window; the pictures are kept for those who look."""
    width, height = SIZES[size]
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with (
        serving_page(scheduler) as origin,
        visiting(browser, origin, width=width, height=height, dark=dark) as visit,
    ):
        for view in VIEWS:
            visit.open(view)
            expect(visit.page.locator("#view h1")).to_have_count(1)
            if view == "events":
                expect(visit.page.locator("ol.events li").first).to_be_visible()
            if view == "applications":
                visit.page.get_by_label("Find applications").fill("genome")
                visit.page.locator(".table-row").click()
                expect(visit.page.locator("#detail .reason").first).to_be_visible()
            assert width >= visit.page.evaluate("document.documentElement.scrollWidth")
            theme = "dark" if dark else "light"
            visit.page.screenshot(path=SCREENSHOTS / f"{width}-{theme}-{view}.png")
