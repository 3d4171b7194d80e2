"""A browser, and the page of the scheduler of a test in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from support.proxy.browsing import Visit, chromium, visiting
from support.proxy.page_cluster import serving_page

from licorne import Scheduler


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(scheduler: Scheduler) -> Iterator[str]:
    """Serve the page; return its origin."""
    with serving_page(scheduler) as origin:
        yield origin


@pytest.fixture
def visit(browser: Browser, page: str) -> Iterator[Visit]:
    with visiting(browser, page) as opened:
        yield opened
