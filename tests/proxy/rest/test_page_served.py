"""The page at `/` of the REST interface, or the build of another user interface in its place."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from support.proxy.listening import Listener
from support.proxy.rest_clients import reader
from support.proxy.running_scheduler import begin, running

from licorne import LicorneError
from licorne.proxy.rest.running import RestServer, RestSettings

TOKEN = "a-token-of-the-tests"  # noqa: S105 - no secret


def test_the_page_and_its_live_data_come_from_the_same_server_as_the_documents() -> None:
    """And what neither knows is answered as an unknown path, whatever the method."""
    with running() as scheduler, RestServer(scheduler) as server:
        begin(scheduler, Listener())
        at = f"http://127.0.0.1:{server.port}"
        page = httpx.get(f"{at}/")
        with httpx.stream("GET", f"{at}/licorne/v1/live") as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data:"))
            first = json.loads(next(lines).removeprefix("data:"))

        assert (200, "text/html; charset=utf-8") == (page.status_code, page.headers["Content-Type"])
        assert first
        for path in ("/nothing.js", "/ws/v1/nothing", "/licorne/v1/nothing"):
            answer = httpx.get(at + path)
            assert (404, "404 page not found\n") == (answer.status_code, answer.text)
        assert 404 == httpx.post(f"{at}/nothing").status_code


def test_the_files_of_the_page_need_no_token_and_its_data_does() -> None:
    """A browser asks for the page before anybody could give it a token."""
    with running() as scheduler, RestServer(scheduler, RestSettings(tokens=(TOKEN,))) as server:
        at = f"http://127.0.0.1:{server.port}"

        assert 200 == httpx.get(f"{at}/").status_code
        for path in ("/licorne/v1/live", "/licorne/v1/page/timeline", "/ws/v1/partitions"):
            assert 401 == httpx.get(at + path).status_code
        known = {"Authorization": f"Bearer {TOKEN}"}
        assert 400 == httpx.get(f"{at}/licorne/v1/explain", headers=known).status_code


def test_the_build_of_another_user_interface_stands_in_place_of_the_page(tmp_path: Path) -> None:
    """Its own routes are its `index.html`; the documents stay where they are."""
    (tmp_path / "index.html").write_text("<title>another</title>", "utf-8")
    with running() as scheduler, RestServer(scheduler, RestSettings(ui_dir=tmp_path)) as server:
        at = f"http://127.0.0.1:{server.port}"

        assert "another" in httpx.get(f"{at}/").text
        assert "another" in httpx.get(f"{at}/applications").text
        assert 200 == httpx.get(f"{at}/ws/v1/partitions").status_code
        assert 404 == httpx.get(f"{at}/ws/v1/nothing").status_code


def test_a_folder_without_a_user_interface_is_refused_before_anything_listens(tmp_path: Path) -> None:
    """The text names the folder."""
    with running() as scheduler, pytest.raises(LicorneError, match=r"--ui-dir .*index\.html"):
        RestServer(scheduler, RestSettings(ui_dir=tmp_path)).__enter__()


@pytest.mark.parametrize("path", ["live", "page/node", "page/reasons", "page/timeline"])
def test_the_data_of_the_page_is_refused_as_documents_are_and_not_shared(path: str) -> None:
    """Another method is refused with those that there are, also HEAD, which would open a stream."""
    with reader() as served:
        for method in ("HEAD", "POST"):
            answer = served.client.request(method, f"/licorne/v1/{path}")
            assert (405, "GET, OPTIONS") == (answer.status_code, answer.headers["allow"])
        if path != "live":
            assert "access-control-allow-origin" not in served.client.get(f"/licorne/v1/{path}").headers
