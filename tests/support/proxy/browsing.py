"""Debian's chromium without a window, driven by tests: what it says and what it loads is noted."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from support.waiting import WAIT_SECONDS

SCREENSHOTS: Final = Path(__file__).parents[3] / "build" / "screenshots"
_PROGRAM: Final = shutil.which("chromium")


class Visit:
    """A page in the browser, and what it complained about and asked of whom."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.asked.add(request.url))

    def open(self, view: str) -> None:
        """Open a view, or an address in one, and wait until its data is live."""
        self.page.goto(f"{self.origin}/#{view}")
        self.page.wait_for_selector('#connection[data-state="live"]')
        self.page.wait_for_selector(f'#view[data-view="{re.split("[/?]", view)[0]}"]')

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def check(self) -> None:
        """Assert that the page complained about nothing and asked nobody but its own server."""
        assert not self.complaints, self.complaints
        foreign = sorted(url for url in self.asked if not url.startswith(f"{self.origin}/"))
        assert [] == foreign


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser; without it the test is skipped, but in CI it fails."""
    if _PROGRAM is None:
        if "CI" in os.environ:
            pytest.fail("chromium is not installed: make chromium")
        pytest.skip("chromium is not installed")
    expect.set_options(timeout=1000 * WAIT_SECONDS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_PROGRAM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visiting(
    browser: Browser, origin: str, *, width: int = 1280, height: int = 800, dark: bool = False
) -> Iterator[Visit]:
    """Open a window of a size, and check what the page did when it is closed."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(1000 * WAIT_SECONDS)
    try:
        visit = Visit(context.new_page(), origin)
        yield visit
        visit.check()
    finally:
        context.close()
