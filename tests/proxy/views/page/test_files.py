"""The files of the page, and those of another user interface in a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.proxy.page_cluster import fetch, serving_page

import licorne.proxy.views.page
from licorne import LicorneError, Scheduler
from licorne.proxy.core.documents.monitoring import CHANGE_WORDS, DETAIL_WORDS, TYPE_WORDS
from licorne.proxy.views.page.application import Page

STATIC = Path(licorne.proxy.views.page.__file__).parent / "static"
LINES_MAX = 400


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(engine="direct") as made:
        yield made


@pytest.fixture
def theirs(scheduler: Scheduler, build: Path) -> Iterator[str]:
    with serving_page(scheduler, ui_dir=build) as origin:
        yield origin


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build as the tools of a user interface make it, with a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    folder = tmp_path / "ui"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>theirs</title>", encoding="utf-8")
    (folder / "main.4f1c2d3e9a.js").write_text("1", encoding="utf-8")
    (folder / "assets" / "logo.svg").write_text("<svg/>", encoding="utf-8")
    return folder


def test_the_page_is_at_the_root(page: str) -> None:
    """Nothing of another origin may be loaded by it."""
    answer = fetch(page, "/")

    assert 200 == answer.status
    assert "text/html; charset=utf-8" == answer.headers["content-type"]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert "<title>Licorne</title>" in answer.text


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_each_file_is_served_and_asks_for_nothing_from_elsewhere(path: Path, page: str) -> None:
    """An address in it is the name of a standard, which is not loaded."""
    text = path.read_text(encoding="utf-8")
    answer = fetch(page, f"/{path.name}")

    assert text == answer.text
    assert "nosniff" == answer.headers["x-content-type-options"]
    assert {"http://www.w3.org/2000/svg"}.issuperset(re.findall(r"https?://[^\s\"')]+", text))
    assert len(text.splitlines()) <= LINES_MAX


def test_a_browser_that_has_a_file_is_told_so(page: str) -> None:
    """It asks each time, and loads what has changed."""
    first = fetch(page, "/app.js")
    second = fetch(page, "/app.js", If_None_Match=first.headers["etag"])

    assert "no-cache" == first.headers["cache-control"]
    assert (304, "") == (second.status, second.text)


@pytest.mark.parametrize(
    "path", ["/nothing.js", "/ws/v1/nothing", "/%2e%2e/application.py", "/..%2fapplication.py"]
)
def test_an_unknown_path_is_answered_as_the_interface_does(path: str, page: str) -> None:
    """By the same text."""
    answer = fetch(page, path)

    assert (404, "404 page not found\n") == (answer.status, answer.text)


def test_a_folder_is_served_in_place_of_the_page(theirs: str) -> None:
    """Its routes are those of its script: each is the index."""
    assert {"<title>theirs</title>"} == {
        fetch(theirs, path).text for path in ("/", "/index.html", "/queues", "/a/b")
    }
    script = fetch(theirs, "/main.4f1c2d3e9a.js")
    assert ("1", "text/javascript; charset=utf-8") == (script.text, script.headers["content-type"])
    assert "image/svg+xml" == fetch(theirs, "/assets/logo.svg").headers["content-type"]


def test_files_whose_names_change_with_their_content_are_kept_by_a_browser(theirs: str) -> None:
    """Others are asked for each time."""
    assert "immutable" in fetch(theirs, "/main.4f1c2d3e9a.js").headers["cache-control"]
    assert "no-cache" == fetch(theirs, "/").headers["cache-control"]
    tag = fetch(theirs, "/").headers["etag"]
    assert 304 == fetch(theirs, "/", If_None_Match=tag).status


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/x.js",
        "/ws/v1/x",
    ],
)
def test_nothing_outside_of_the_folder_is_served(path: str, theirs: str) -> None:
    """Nor the index in the place of a file, or of the interface."""
    answer = fetch(theirs, path)

    assert 404 == answer.status


def test_a_link_out_of_the_folder_is_not_followed(theirs: str, build: Path) -> None:
    """Although it is in it."""
    (build / "link.txt").symlink_to(build.parent / "secret.txt")

    assert 404 == fetch(theirs, "/link.txt").status


def test_a_folder_without_an_index_is_refused(scheduler: Scheduler, tmp_path: Path) -> None:
    """When the server starts."""
    with pytest.raises(LicorneError, match=r"there is no index\.html in it"):
        Page(scheduler, ui_dir=tmp_path)


def test_the_live_data_is_there_with_another_user_interface_too(theirs: str) -> None:
    """It is below a path of its own."""
    assert [] == fetch(theirs, "/licorne/v1/page/timeline?partition=default").document["times"]


def test_the_page_has_the_words_for_events_from_the_server(page: str) -> None:
    """In a script of its own: nothing else has them."""
    script = fetch(page, "/event_words.js").text
    exported = dict(re.findall(r"export const (\w+) = (\{.*\});\n", script))

    for name, words in {"TYPES": TYPE_WORDS, "CHANGES": CHANGE_WORDS, "DETAILS": DETAIL_WORDS}.items():
        assert {str(int(number)): text for number, text in words.items()} == json.loads(exported[name])
