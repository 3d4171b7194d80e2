"""What holds for all paths of the REST interface: statuses, headers, redirects, compression."""

from __future__ import annotations

import gzip
import json

import pytest
from starlette.requests import Request
from starlette.routing import Route
from support.proxy.rest_clients import Reader, reader, status_of_path

from licorne import ResourceManager
from licorne.proxy.views.rest.application import takes_gzip
from licorne.proxy.views.rest.responses import json_bytes

CROSS_ORIGIN = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS",
    "access-control-allow-headers": "X-Requested-With,Content-Type,Accept,Origin",
}


def test_a_document_has_the_headers_that_pages_of_other_origins_need(served: Reader) -> None:
    """With its type, and a newline at its end."""
    answer = served.client.get("/ws/v1/clusters")

    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert CROSS_ORIGIN == {name: answer.headers[name] for name in CROSS_ORIGIN}
    assert answer.text.endswith("]\n")


def test_an_unknown_path_is_answered_by_a_text(served: Reader) -> None:
    """Without the headers of a document."""
    answer = served.client.get("/ws/v1/nope")

    assert (404, "404 page not found\n") == (answer.status_code, answer.text)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH", "HEAD", "BREW"])
def test_another_method_is_refused_with_those_that_there_are(served: Reader, method: str) -> None:
    """HEAD is refused as the others are; its answer has no body."""
    answer = served.client.request(method, "/ws/v1/clusters")

    assert (405, "GET, OPTIONS") == (answer.status_code, answer.headers["allow"])
    assert answer.text in ("Method Not Allowed\n", "")


def test_options_are_answered_for_known_paths_alone(served: Reader) -> None:
    """By the methods, without a body and without the headers of a document."""
    answer = served.client.options("/ws/v1/clusters")

    assert (200, "GET, OPTIONS", "") == (answer.status_code, answer.headers["allow"], answer.text)
    assert "access-control-allow-origin" not in answer.headers
    assert 404 == served.client.options("/ws/v1/nope").status_code


def test_a_page_of_another_origin_may_send_a_token() -> None:
    """A browser asks first, without the token; what follows has it."""
    asks = {"Origin": "http://elsewhere", "Access-Control-Request-Method": "GET"}
    with reader(tokens=["a-token-of-16-and-more"]) as guarded:
        answer = guarded.client.options("/ws/v1/clusters", headers=asks)

        allowed = f"{CROSS_ORIGIN['access-control-allow-headers']},Authorization"
        wanted = CROSS_ORIGIN | {"access-control-allow-headers": allowed}
        assert (200, wanted) == (answer.status_code, {name: answer.headers[name] for name in wanted})
        assert 401 == guarded.client.get("/ws/v1/clusters", headers=asks).status_code


@pytest.mark.parametrize("path", ["/licorne/v1/next-asks", "/debug/stack"])
def test_other_paths_are_not_for_pages_of_other_origins(served: Reader, path: str) -> None:
    """Neither the answer, nor what a browser asks beforehand."""
    asks = {"Origin": "http://elsewhere", "Access-Control-Request-Method": "GET"}
    for answer in (served.client.get(path), served.client.options(path, headers=asks)):
        assert 200 == answer.status_code
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/ws/v1/clusters/", "/ws/v1/clusters"),
        ("/ws//v1/clusters", "/ws/v1/clusters"),
        ("/WS/v1/Clusters", "/ws/v1/clusters"),
        ("/ws/v1/clusters/?a=1&b", "/ws/v1/clusters?a=1&b"),
        ("http://testserver//ws/v1/clusters", "/ws/v1/clusters"),  # Two slashes would name another server.
    ],
)
def test_a_path_that_is_nearly_right_is_redirected(served: Reader, path: str, location: str) -> None:
    """By slashes and case; the query stays. The body is a link for people."""
    answer = served.client.get(path)

    assert (301, location) == (answer.status_code, answer.headers["location"])
    shown = location.replace("&", "&amp;")
    assert f'<a href="{shown}">Moved Permanently</a>.\n\n' == answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


BELOW = "/ws/v1/partition/default"


@pytest.mark.parametrize(
    "path",
    [
        "/ws/v1/../v1/clusters",
        "/ws/v1/./clusters",
        "/../../etc/passwd",
        "/ws/v1/cluster\u017f",
        "/ws/v1/clusters\x00",
        "/ws/v1/clusters\n",
        "/ws/v1/{partition}",
        "/ünïcödé/\U0001f984",
        "/\udc80",
        "//",
        f"{BELOW}/node/a/b",
        f"{BELOW}/queue/../queues",
        f"{BELOW}/queue/",
        "/ws/v1/partition/a/b/queues",
        "/ws/v1/partition/\u00fc\u0308/queues",
        f"{BELOW}/application/\u202e",
        f"{BELOW}/application/..",
        "/ws/v1/partition/{rm}/nodes",
    ],
)
def test_a_strange_path_is_an_ordinary_unknown_path(served: Reader, path: str) -> None:
    """Nothing of it is a path of files, and nothing in a name makes another path of it."""
    assert 404 == status_of_path(served.application, path)


def test_the_cluster_names_the_programs_of_its_resource_managers(served: Reader) -> None:
    """And when the scheduler started."""
    assert [
        {
            "clusterName": "kubernetes",
            "partition": "default",
            "rmBuildInformation": [{"rmId": "rm"}],
            "startTime": served.scheduler.views.started_at_ns,
        }
    ] == served.document("/ws/v1/clusters")


def test_partitions_are_those_of_the_snapshot(served: Reader) -> None:
    """Both make one document of the same values, but for the total of applications, which is always there."""
    partitions = served.scheduler.snapshot()["partitions"]
    assert isinstance(partitions, list)
    (shown,) = partitions
    assert isinstance(shown, dict)

    assert [shown | {"applications": {"total": 0}}] == served.document("/ws/v1/partitions")


def test_a_scheduler_that_was_stopped_is_not_available(served: Reader) -> None:
    """The error is a document, as all errors are."""
    served.scheduler.stop()
    answer = served.client.get("/ws/v1/clusters")

    text = "the scheduler has been stopped"
    assert {"status_code": 503, "message": text, "description": text} == answer.json()
    assert 503 == answer.status_code


def test_a_bug_of_ours_is_an_error_without_a_traceback(served: Reader) -> None:
    """The answer names its kind alone."""

    def broken(_: Request) -> None:
        raise ZeroDivisionError("secret")

    served.application.router.routes.append(Route("/broken", broken))
    answer = served.client.get("/broken")

    assert (500, 500) == (answer.status_code, answer.json()["status_code"])
    assert "internal error (ZeroDivisionError): please report it" == answer.json()["message"]


def test_a_long_answer_is_compressed_for_those_that_take_it(served: Reader) -> None:
    """Nobody gets what they did not ask for; what comes is gzip, which is read without knowing HTTP."""
    for number in range(20):
        served.scheduler.register(f"rm-{number}", ResourceManager())
    headers = {"accept-encoding": "br, GZIP;q=0.5"}
    with served.client.stream("GET", "/ws/v1/partitions", headers=headers) as packed:
        content = b"".join(packed.iter_raw())
    plain = served.client.get("/ws/v1/partitions", headers={"accept-encoding": "gzip;q=0"})

    assert ("gzip", "Accept-Encoding") == (packed.headers["content-encoding"], packed.headers["vary"])
    assert "content-encoding" not in plain.headers
    assert 21 == len(plain.json())
    assert plain.json() == json.loads(gzip.decompress(content))
    assert len(content) < len(plain.content)


def test_a_short_answer_is_not_compressed(served: Reader) -> None:
    """Below 1,400 bytes it would hardly be smaller."""
    answer = served.client.get("/ws/v1/clusters", headers={"accept-encoding": "gzip"})

    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        *((header, True) for header in ("deflate, gzip", "GZip", "gzip; q=0.0")),
        *((header, False) for header in ("gzip; q=0", "gzippy, identity", "")),
    ],
)
def test_only_gzip_that_is_wanted_is_used(header: str, *, takes: bool) -> None:
    """Only `q=0` as such says that it is not."""
    assert takes == takes_gzip(header)


def test_the_characters_of_html_are_escaped() -> None:
    """Those of other scripts are not; half a character is replaced."""
    written = json_bytes({"<a>": "&\u2028ü\ud800"})

    assert b'{"\\u003ca\\u003e":"\\u0026\\u2028\xc3\xbc?"}' == written
    assert {"<a>": "&\u2028ü?"} == json.loads(written)
