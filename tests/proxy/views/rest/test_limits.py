"""What readers may ask, over real sockets: each limit ends a request with a status, and others go on."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from support.proxy.processes import serving
from support.proxy.rest_servers import connected, received, rest, sent

from licorne import LicorneError
from licorne.proxy.views.rest.connections import ConnectionTimes
from licorne.proxy.views.rest.limits import LimitsSettings
from licorne.proxy.views.rest.requests import read_token

TOKEN = "sesame-open-sesame"  # noqa: S105 - of these tests alone
CLUSTERS = "/ws/v1/clusters"


# ---------------------------------------------------------------------------------------------- access


def test_a_token_is_wanted_where_there_is_one() -> None:
    """Each path of data wants it, also an unknown one; the refusal says how to send it."""
    with rest(tokens=(TOKEN, "another-token-of-ours")) as url:
        refused = httpx.get(url + CLUSTERS)
        wrong = httpx.get(url + "/ws/v1/nope", headers={"authorization": f"Bearer {TOKEN}x"})
        basic = httpx.get(url + CLUSTERS, headers={"authorization": f"Basic {TOKEN}"})
        known = httpx.get(url + CLUSTERS, headers={"authorization": f"bearer {TOKEN}"})

    assert [401, 401, 401, 200] == [answer.status_code for answer in (refused, wrong, basic, known)]
    assert ("Bearer", 401) == (refused.headers["www-authenticate"], refused.json()["status_code"])


def test_closed_paths_want_a_token() -> None:
    """Also where others do not; with a token they are open."""
    closed = {"closed": ("/debug/",)}
    dump = "/debug/fullstatedump"
    with rest(**closed) as url:
        found = [httpx.get(url + path).status_code for path in (dump, "/debug/nope", CLUSTERS)]
    with rest(**closed, tokens=(TOKEN,)) as url:
        found.append(httpx.get(url + dump, headers={"authorization": f"Bearer {TOKEN}"}).status_code)

    assert [403, 403, 200, 200] == found


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    """Newlines around it do not count; what is no token is refused and not quoted."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    assert TOKEN == read_token(file)
    for text in ("", "short", "with blanks in between"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(LicorneError, match="16 visible ASCII") as refused:
            read_token(file)
        assert not text or text not in str(refused.value)
    with pytest.raises(LicorneError, match="cannot be read: No such file"):
        read_token(tmp_path / "missing")


def test_tokens_of_resource_managers_let_readers_in(tmp_path: Path) -> None:
    """Unless readers have a token of their own."""
    rules, own = tmp_path / "access.yaml", tmp_path / "token"
    rules.write_text(f"tokens:\n  - token: {TOKEN}\n", encoding="utf-8")
    own.write_text("a-token-of-readers", encoding="utf-8")
    for arguments, token in ((), TOKEN), (("--rest-token", str(own)), "a-token-of-readers"):
        with serving("--access", str(rules), *arguments) as server:
            url = f"http://{server.rest}{CLUSTERS}"
            headers = {"authorization": f"Bearer {token}"}
            statuses = [httpx.get(url).status_code, httpx.get(url, headers=headers).status_code]
        assert [401, 200] == statuses


# ---------------------------------------------------------------------------------------------- limits


def test_a_body_that_is_too_large_is_refused() -> None:
    """Whether its size is said before or not."""
    with rest(limits=LimitsSettings(body_bytes_max=1_000)) as url:
        said = httpx.post(url + "/ws/v1/validate-conf", content=b"x" * 1_001)
        endless = httpx.post(url + "/ws/v1/validate-conf", content=iter([b"x" * 600] * 2))
        fitting = httpx.post(url + "/ws/v1/validate-conf", content=b"#" * 1_000)

    assert [413, 413, 200] == [answer.status_code for answer in (said, endless, fitting)]
    assert "the body of a request may have 1000 bytes at most" == said.json()["message"]


SLOW_HEAD = {"times": ConnectionTimes(head_seconds=0.05)}
SLOW_BODY = {"limits": LimitsSettings(body_seconds_max=0.05)}


@pytest.mark.parametrize(
    ("settings", "parts", "status"),
    [
        pytest.param(
            SLOW_BODY,
            [
                b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: a\r\nConnection: close\r\n",
                b"Content-Length: 9\r\n\r\nab",
            ],
            408,
            id="a body that is too slow",
        ),
        pytest.param(SLOW_HEAD, [], 408, id="no head at all"),
        pytest.param(SLOW_HEAD, [b"GET /ws/v1/clusters HT"], 408, id="a cut-off line"),
        pytest.param(
            SLOW_HEAD,
            [b"GET /ws/v1/clusters HTTP/1.1\r\nHost: a\r\n", b"X: y\r\n"],
            408,
            id="a head without end",
        ),
        pytest.param({}, [b"\x00\xff\x00\r\n\r\n"], 400, id="no HTTP"),
        pytest.param({}, [b"GET\r\n\r\n"], 400, id="no path"),
        pytest.param({}, [b"\x16\x03\x01\x02\x00\r\n\r\n"], 400, id="TLS"),
    ],
)
def test_what_is_too_slow_or_no_http_is_refused(
    settings: dict[str, object], parts: list[bytes], status: int
) -> None:
    """The client keeps the connection open, and sends nothing more."""
    with rest(**settings) as url:
        assert sent(url, *parts).startswith(f"HTTP/1.1 {status} ".encode())


def test_the_second_request_of_a_connection_is_watched_as_well() -> None:
    """Its time begins with its first byte."""
    with rest(times=ConnectionTimes(head_seconds=0.05)) as url, connected(url) as connection:
        connection.sendall(b"GET /ws/v1/clusters HTTP/1.1\r\nHost: a\r\n\r\n")
        first = connection.recv(65_536)
        while b"[]" not in first:
            first += connection.recv(65_536)
        connection.sendall(b"GET /ws")
        rest_of_it = received(connection)

    assert first.startswith(b"HTTP/1.1 200 ")
    assert rest_of_it.startswith(b"HTTP/1.1 408 ")


def test_too_many_requests_at_once_are_refused() -> None:
    """Others are served when one of them has ended."""
    limits = LimitsSettings(at_once_max=1)
    with rest(limits=limits) as url:
        with connected(url) as waiting:
            waiting.sendall(
                b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: a\r\n"
                b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
            )
            assert waiting.recv(100).startswith(b"HTTP/1.1 100 ")  # It is being answered.
            refused = httpx.get(url + CLUSTERS)
            waiting.sendall(b"# comment"[:9])
            assert b"200" in waiting.recv(1_000)
        served = httpx.get(url + CLUSTERS)

    assert (503, "1") == (refused.status_code, refused.headers["retry-after"])
    assert 200 == served.status_code


def test_too_many_requests_a_second_are_refused() -> None:
    """The status says so, and when to come again."""
    with rest(limits=LimitsSettings(per_second_max=3)) as url, httpx.Client() as client:
        answers = [client.get(url + CLUSTERS) for _ in range(20)]

    statuses = [answer.status_code for answer in answers]
    assert [200] * 3 == statuses[:3]
    assert 429 in statuses
    assert "more than 3 requests a second" == answers[statuses.index(429)].json()["message"]


def test_too_many_connections_are_refused() -> None:
    """Those that are there stay."""
    with rest(connections_max=2) as url, httpx.Client() as first:
        assert 200 == first.get(url + CLUSTERS).status_code
        assert 503 == httpx.get(url + CLUSTERS).status_code
        assert 200 == first.get(url + CLUSTERS).status_code
