"""What the page shows of policies, in a real browser: promised starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from support.proxy.browsing import chromium, visiting
from support.proxy.page_cluster import serving_page
from support.proxy.promised_starts import promise_starts

from licorne import Scheduler


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def test_an_application_says_when_it_is_expected_to_start(browser: Browser) -> None:
    """Or why that cannot be said; what runs has no such line."""
    starts = {
        "big": ["Promised a start on n1 in 1h."],
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
