"""The page of a server that wants a token, in a real browser: it is asked for, refused, and taken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from support.proxy.browsing import chromium
from support.proxy.listening import Listener
from support.proxy.page_cluster import GIB, fill, node, serving

from licorne import Scheduler, rest_app
from licorne.proxy.si import si_pb2 as si

TOKEN = "a-token-that-is-known"  # noqa: S105 - of this test alone


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler() as made:
        fill(made, Listener())
        yield made


@pytest.fixture
def page(scheduler: Scheduler) -> Iterator[Page]:
    """A page that asks for a token."""
    with serving(rest_app(scheduler, tokens=[TOKEN])) as origin, chromium() as browser:
        opened = browser.new_page()
        opened.goto(origin)
        expect(opened.get_by_role("dialog")).to_be_visible()
        yield opened


def test_the_token_is_given_by_keys_alone_and_the_page_is_live_then(page: Page, scheduler: Scheduler) -> None:
    """Also after a reload: the token stays in the tab."""
    expect(page.get_by_label("Token", exact=True)).to_be_focused()
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#summary")).to_contain_text("24")
    scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node("late", memory=8 * GIB)]))
    expect(page.locator("#summary")).to_contain_text("25")
    page.reload()

    expect(page.locator("#summary")).to_contain_text("25")


def test_all_that_the_page_asks_for_has_the_token(page: Page) -> None:
    """Events, and why an application waits."""
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Events").click()
    expect(page.locator("ol.events li").first).to_be_visible()
    page.get_by_role("link", name="Applications").click()
    page.locator(".table-row").first.click()

    expect(page.locator("#detail .headline")).to_be_visible()


def test_a_wrong_token_is_asked_for_again(page: Page) -> None:
    """The page says so, and shows nothing."""
    page.keyboard.type("a-token-that-is-unknown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This server does not know that token.")
    expect(page.get_by_label("Token", exact=True)).to_be_focused()
    expect(page.get_by_label("Token", exact=True)).to_have_value("")
    expect(page.locator("#connection")).to_have_text("token required")
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")

    expect(page.locator('#connection[data-state="live"]')).to_be_visible()


def test_the_dialog_stays_until_there_is_a_token(page: Page) -> None:
    """Neither Escape nor an empty field closes it."""
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_visible()
