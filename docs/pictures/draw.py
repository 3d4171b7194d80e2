"""Draw the picture of the README: the live page of a full cluster. Run by `make pictures`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from support.proxy.browsing import chromium, visiting
from support.proxy.page_cluster import fill, serving_page

from licorne import ResourceManager, Scheduler

HERE: Final = Path(__file__).parent


def draw_page() -> None:
    """Draw the applications of the cluster that tests of the page have, and why one of them waits."""
    with Scheduler() as scheduler, chromium() as browser:
        fill(scheduler, ResourceManager())
        with (
            serving_page(scheduler) as origin,
            visiting(browser, origin, width=1120, height=560) as visit,
        ):
            visit.open("applications/genome")
            visit.page.get_by_text("nodes are available").first.wait_for()
            visit.page.screenshot(path=HERE / "page.png")


if __name__ == "__main__":
    draw_page()
