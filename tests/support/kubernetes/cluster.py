"""A real control plane of Kubernetes for tests: etcd and the servers of `tests/cluster/`, on loopback.

Each cluster has its own folder and free ports, and authorization by roles is on. Its administrator has a
token of the group `system:masters`; other users are service accounts, whose tokens the API server makes on
request.
There are no nodes until a test adds them, and no kubelet but the one of `support.kubernetes.kubelet`.

    with running(folder, servers=EVERY_SERVER) as cluster:
        api = cluster.api()
        api.ok("POST", "/api/v1/namespaces/default/pods", pod("a"))

The processes die with the thread that started them: a run of tests that is killed leaves nothing behind.
"""

from __future__ import annotations

import http.client
import secrets
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme
import yaml
from support.kubernetes.api import Api
from support.kubernetes.building import UnbuiltError, built_servers
from support.proxy.directory_server import free_port
from support.waiting import WAIT_SECONDS, happens

API_SERVER_ALONE: Final = ()
EVERY_SERVER: Final = ("kube-controller-manager", "kube-scheduler")
_STARTS_MAX: Final = 5
_READY_SECONDS_MAX: Final = 90.0
_LINES_OF_LOG: Final = 30


@dataclass(frozen=True, slots=True)
class Programs:
    """What a cluster is started from."""

    setpriv: str
    etcd: str
    servers: Path


def installed_programs() -> Programs:
    """Return the programs of a cluster, for tests to be skipped where one is missing.

    Raises:
        UnbuiltError: The servers were not built, or etcd is not installed; the message says what provides it.
    """
    etcd = shutil.which("etcd")
    if etcd is None:
        raise UnbuiltError("etcd is not installed: `make etcd` installs it from Debian")
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise UnbuiltError(
            "setpriv of util-linux is not installed, without which servers may outlive the tests"
        )
    return Programs(setpriv, etcd, built_servers())


class Cluster:
    """A control plane that runs; `running` starts one.

    Its methods belong to the thread that started it: a process ends when the thread that started it does.
    """

    def __init__(self, folder: Path, programs: Programs) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        self.ca_file = folder / "authority.pem"
        self._programs = programs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd_port = 0
        self._port = 0

    @property
    def url(self) -> str:
        """Where the API server listens, without a slash at the end; the same after it was killed."""
        return f"https://127.0.0.1:{self._port}"

    def api(self, token: str | None = None) -> Api:
        """Return a client of its own connection; the administrator's if no token is given."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return Api("127.0.0.1", self._port, context=context, token=token or self.token)

    def kubeconfig(self, path: Path, token: str | None = None) -> Path:
        """Write a kubeconfig file for the user of a token, by default the administrator; return its path."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}
            ],
            "users": [{"name": "user", "user": {"token": token or self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
            "current-context": "test",
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def service_account_token(self, namespace: str, name: str) -> str:
        """Create a service account unless it is there; return a token for it, which is valid for an hour."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        with closing(self.api()) as api:
            status, answer = api.request("POST", accounts, {"metadata": {"name": name}})
            assert status in {201, 409}, answer
            answer = api.ok("POST", f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 3600}})
        token: str = answer["status"]["token"]
        return token

    def kill_api_server(self) -> None:
        """End the API server as a crash would, which cuts its connections. What it answered stays in etcd."""
        self._kill("kube-apiserver")

    def start_api_server(self) -> None:
        """Start the API server again after a kill, at the same address, and wait until it is ready.

        Controllers and scheduler of Kubernetes are started anew: they wait longer each time that they lose
        it, in the end for most of a minute, in which nothing would happen to workloads.

        Raises:
            AssertionError: It did not become ready; the end of its log is in the message.
        """
        assert "kube-apiserver" not in self._processes, "the API server runs already"
        self._start("kube-apiserver", *self._flags_of_api_server())
        assert self._becomes_ready("kube-apiserver"), self._end_of_log("kube-apiserver")
        for server in [name for name in EVERY_SERVER if name in self._processes]:
            self._kill(server)
            self._start(server, *self._flags_of(server))

    def stop(self) -> None:
        """Kill all processes; nobody needs what they would still write."""
        for name in reversed(list(self._processes)):
            self._kill(name)

    def start(self, servers: Sequence[str]) -> None:
        """Start etcd, the API server and other servers, by their names.

        Raises:
            AssertionError: One did not start; the end of its log is in the message.
        """
        self._write_secrets()
        self._start_on_afree_port("etcd")
        self._start_on_afree_port("kube-apiserver")
        for server in servers:
            self._start(server, *self._flags_of(server))

    def _write_secrets(self) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.ca_file)
        certificate = authority.issue_cert("127.0.0.1", "localhost")
        certificate.private_key_pem.write_to_path(self.folder / "server.key")
        for blob in certificate.cert_chain_pems:
            blob.write_to_path(self.folder / "server.pem", append=True)
        # Tokens of service accounts are signed with any key; the server takes the public part from it.
        authority.issue_cert("accounts").private_key_pem.write_to_path(self.folder / "accounts.key")
        (self.folder / "tokens.csv").write_text(f'{self.token},administrator,1,"system:masters"\n')

    def _start_on_afree_port(self, name: str) -> None:
        """Start etcd or the API server; who takes the port before it does causes another try."""
        for _ in range(_STARTS_MAX):
            port = free_port()
            if name == "etcd":
                self._etcd_port = port
                self._start(name, *self._flags_of_etcd())
            else:
                self._port = port
                self._start(name, *self._flags_of_api_server())
            if self._becomes_ready(name):
                return
            self._kill(name)
        raise AssertionError(self._end_of_log(name))

    def _start(self, name: str, *flags: str) -> None:
        program = self._programs.etcd if name == "etcd" else str(self._programs.servers / name)
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - no shell
                [self._programs.setpriv, "--pdeathsig", "KILL", program, *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,  # etcd puts the socket for its peers there
                start_new_session=True,  # Ctrl-C is for the tests, which then stop the cluster
            )

    def _flags_of_etcd(self) -> list[str]:
        url = f"http://127.0.0.1:{self._etcd_port}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls=unix://localhost:{self._etcd_port}",
            "--unsafe-no-fsync",
            "--logger=zap",
        ]

    def _flags_of_api_server(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={self.folder / 'server.pem'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://cluster.test",
            f"--service-account-key-file={self.folder / 'accounts.key'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            # With the first, pods need accounts that a controller makes; with the second, new nodes have a
            # taint until a controller sees them ready.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--endpoint-reconciler-type=none",
        ]

    def _flags_of(self, server: str) -> list[str]:
        kubeconfig = self.kubeconfig(self.folder / "kubeconfig.yaml")
        common = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]
        if server == "kube-scheduler":
            return common
        return [
            *common,
            "--use-service-account-credentials=false",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--root-ca-file={self.ca_file}",
            "--node-monitor-grace-period=24h",  # no kubelet renews leases of nodes
        ]

    def _becomes_ready(self, name: str) -> bool:
        """Wait until a server answers 200; return `False` when it has ended or takes too long."""

        def answers() -> bool:
            with suppress(OSError, http.client.HTTPException):  # nobody listens, or another program does
                return self._is_ready(name)
            return False

        process = self._processes[name]
        happens(lambda: process.poll() is not None or answers(), _READY_SECONDS_MAX)
        return process.poll() is None and answers()

    def _is_ready(self, name: str) -> bool:
        if name == "etcd":
            with closing(
                http.client.HTTPConnection("127.0.0.1", self._etcd_port, timeout=WAIT_SECONDS)
            ) as connection:
                connection.request("GET", "/health")
                return connection.getresponse().status == 200
        with closing(self.api()) as api:
            return api.request("GET", "/readyz")[0] == 200

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _end_of_log(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").splitlines()[-_LINES_OF_LOG:]
        return "\n".join([f"{name} did not start:", *lines])


@contextmanager
def running(folder: Path, servers: Sequence[str] = API_SERVER_ALONE) -> Iterator[Cluster]:
    """Run a cluster for as long as the block lasts.

    Args:
        folder: An empty folder for its data, its secrets and the log of each server (`kube-apiserver.log`).
        servers: What runs beside etcd and the API server, of `EVERY_SERVER`.

    Raises:
        UnbuiltError: A program of it is missing.
        AssertionError: A server did not start.
    """
    cluster = Cluster(folder, installed_programs())
    try:
        cluster.start(servers)
        yield cluster
    finally:
        cluster.stop()


def main() -> None:
    """Say what is missing for a cluster on this machine, as a failure; nothing if all is there."""
    try:
        installed_programs()
    except UnbuiltError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
