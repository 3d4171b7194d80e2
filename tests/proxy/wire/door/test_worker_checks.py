"""Addresses that do not lead to a worker that can be used: each has one clear line."""

from __future__ import annotations

import re
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest
from support.proxy.certificates import Certificates
from support.waiting import WAIT_SECONDS

import licorne
from licorne import ConnectionLostError, LicorneError, RemoteScheduler, Scheduler, __version__
from licorne.proxy.base.process import build_hash, hash_of_sources
from licorne.proxy.wire.client.connection import Transport
from licorne.proxy.wire.door.session import check_build, unusable_worker
from licorne.proxy.wire.door.workers import LaunchedWorker
from licorne.proxy.wire.server.access import AccessRules, read_access_rules, server_credentials
from licorne.proxy.wire.server.server import ServerSettings, ServerThread


def said_of(address: str, *, root_certificates: Path | None = None, seconds: float = WAIT_SECONDS) -> str:
    """Return what is said of a worker that cannot be connected with; its address is written as `HERE`."""
    worker = LaunchedWorker("batch", address, 1)
    transport = Transport(address, None, root_certificates, None, None)
    with pytest.raises(ConnectionLostError) as caught:
        transport.connect(lambda _: None, lambda _: None, seconds)
    error = unusable_worker(worker, caught.value, with_tls=root_certificates is not None)
    return re.sub(r"\S+:[0-9]+", "HERE", str(error))


@contextmanager
def bound(*, listens: bool) -> Iterator[str]:
    """Hold a port to which nobody answers."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        if listens:
            holder.listen()
        yield f"127.0.0.1:{holder.getsockname()[1]}"


@contextmanager
def http_server() -> Iterator[str]:
    """Serve HTTP/1.1, which is silent about requests that it does not understand."""

    class Silent(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base has it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def other_grpc_server() -> Iterator[str]:
    """Serve gRPC without any service."""
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()


@contextmanager
def worker(
    certificates: Certificates | None = None, access: AccessRules | None = None, *, asks_clients: bool = False
) -> Iterator[str]:
    """Run a worker."""
    credentials = None
    if certificates is not None:
        authority = certificates.authority if asks_clients else None
        credentials = server_credentials(certificates.server, certificates.server_key, authority)
    settings = ServerSettings(credentials=credentials, access=access or AccessRules())
    with ServerThread(Scheduler(), settings) as server:
        yield server.address


THE_WORKER = "the worker of partition 'batch' at HERE cannot be used: "


def test_nothing_listens() -> None:
    """The port is closed."""
    with bound(listens=False) as address:
        assert said_of(address) == f"{THE_WORKER}nothing listens there"


def test_nobody_answers() -> None:
    """Connections are taken, and that is all."""
    with bound(listens=True) as address:
        assert said_of(address, seconds=0.2) == f"{THE_WORKER}something listens there, and does not answer"


def test_another_server_answers() -> None:
    """One for HTTP, as the REST interface of a worker is, and one for gRPC."""
    with http_server() as http, other_grpc_server() as other:
        found = [said_of(http), said_of(other)]

    assert found == [
        f"{THE_WORKER}the server there is not a `licorne serve`, but perhaps one for HTTP/1.1",
        f"{THE_WORKER}the gRPC server there is not a `licorne serve`",
    ]


def test_there_is_no_such_host() -> None:
    """The name ends on a top-level domain that is reserved for that."""
    assert said_of("no-such-host.invalid:3333") == f"{THE_WORKER}there is no host of that name"


def test_only_one_side_uses_tls(tmp_path: Path) -> None:
    """The line names the options of the door that decide it."""
    certificates = Certificates(tmp_path)
    with worker(certificates) as secure, worker() as plain:
        found = [said_of(secure), said_of(plain, root_certificates=certificates.authority)]

    assert found == [
        f"{THE_WORKER}it closes connections without TLS; with TLS, give its authority as --worker-ca",
        f"{THE_WORKER}the server there does not use TLS, which --worker-ca and --worker-cert require",
    ]


def test_a_certificate_is_not_trusted(tmp_path: Path) -> None:
    """That of the worker by the door, and that of the door by the worker."""
    (tmp_path / "other").mkdir()
    certificates, others = Certificates(tmp_path), Certificates(tmp_path / "other")
    with worker(certificates) as one, worker(certificates, asks_clients=True) as two:
        found = [
            said_of(one, root_certificates=others.authority),
            said_of(two, root_certificates=certificates.authority),
        ]

    assert found == [
        f"{THE_WORKER}the authority in --worker-ca does not vouch for its certificate",
        f"{THE_WORKER}it closes connections of who has no certificate that it trusts, see --worker-cert",
    ]


def test_a_token_is_missing(tmp_path: Path) -> None:
    """The option that has it is named."""
    rules, token = tmp_path / "access.yaml", tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n", encoding="ascii")
    rules.write_text(f"tokens:\n  - token: {token}\n", encoding="ascii")
    with worker(access=read_access_rules(rules)) as address:
        assert (
            said_of(address) == f"{THE_WORKER}it refuses whoever does not send its token, see --worker-token"
        )


def test_another_failure_is_said_in_its_own_words() -> None:
    """Whether it may pass is kept."""
    said = unusable_worker(
        LaunchedWorker("a", "h:1", 1), ConnectionLostError("the moon", is_passing=False), with_tls=False
    )

    text = "the worker of partition 'a' at h:1 cannot be used: the moon"
    assert (str(said), said.is_passing) == (text, False)


def test_an_attempt_that_was_cut_short_does_not_hide_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine the last attempt has too little time to hear anything."""
    attempts: list[float] = []

    def connect(self: Transport, _: object, __: object, seconds: float) -> None:
        attempts.append(seconds)
        if len(attempts) > 1:
            raise ConnectionLostError(f"{self.address} did not answer") from TimeoutError()
        raise ConnectionLostError("Connection refused")

    monkeypatch.setattr(Transport, "connect", connect)
    with pytest.raises(ConnectionLostError, match="Connection refused"):
        RemoteScheduler("127.0.0.1:1", timeout=0.1)
    assert len(attempts) > 1


def test_a_certificate_that_is_not_trusted_is_said_at_once(tmp_path: Path) -> None:
    """It is no better a moment later, so that nobody waits for the end of the time-out."""
    (tmp_path / "other").mkdir()
    certificates, others = Certificates(tmp_path), Certificates(tmp_path / "other")
    with (
        worker(certificates) as address,
        pytest.raises(ConnectionLostError, match="CERTIFICATE_VERIFY_FAILED") as caught,
    ):
        RemoteScheduler(address, root_certificates=others.authority, timeout=10 * WAIT_SECONDS)
    assert not caught.value.is_passing


def test_a_worker_says_its_version_and_its_build() -> None:
    """Those of the door are the same here."""
    with worker() as address, RemoteScheduler(address) as client:
        version, build = client.server_version, client.server_build
        check_build(LaunchedWorker("a", address, 1), version, build, build_hash())

    assert (version, build) == (__version__, build_hash())


OTHERS = {"newer": ("9.9", "Licorne 9.9"), "so old that it does not say it": ("", "an older Licorne")}


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS)
def test_a_worker_of_another_version_is_refused(case: tuple[str, str]) -> None:
    """The text says both versions."""
    version, said = case
    text = f"the worker of partition 'a' at h:1 cannot be used: it is {said}, and this door is {__version__}"

    with pytest.raises(LicorneError, match=f"^{re.escape(text)}$"):
        check_build(LaunchedWorker("a", "h:1", 1), version, build_hash(), build_hash())


@pytest.mark.parametrize("build", ["0123", ""])
def test_a_worker_of_another_build_is_refused_whatever_its_version_says(build: str) -> None:
    """So is one that does not say its build: it may be any."""
    text = (
        f"the worker of partition 'a' at h:1 cannot be used: it is build {build or 'unknown'} of Licorne "
        f"{__version__}, and this door is build {build_hash()}"
    )

    with pytest.raises(LicorneError, match=f"^{re.escape(text)}$"):
        check_build(LaunchedWorker("a", "h:1", 1), __version__, build, build_hash())


def test_the_build_is_that_of_the_sources(tmp_path: Path) -> None:
    """One line of a module that decides makes another build; ends of lines do not, nor other files."""
    package = Path(licorne.__file__).parent
    for room in ("model", "actors", "proxy/si"):
        shutil.copytree(package / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    hashes = [hash_of_sources(tmp_path)]
    (tmp_path / "model" / "notes.txt").write_text("nothing")
    text = (tmp_path / "model" / "errors.py").read_bytes()
    (tmp_path / "model" / "errors.py").write_bytes(text.replace(b"\n", b"\r\n"))
    hashes.append(hash_of_sources(tmp_path))
    (tmp_path / "model" / "errors.py").write_bytes(text + b"# changed\n")
    hashes.append(hash_of_sources(tmp_path))

    assert [build_hash(), build_hash()] == hashes[:2]
    assert build_hash() != hashes[2]
    assert "" == hash_of_sources(tmp_path / "nowhere")
