"""The scheduler of pods with an election, the label of its pod, and an orderly end.

The label states whether this process leads. The service of the REST interface selects by it, since only the
leading process knows the cluster. A pod keeps its labels when its container restarts, so every process begins
by writing its label.

The health server is separate from the REST interface, which may ask for a token, and which a standby serves
too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, Self, TypeAlias, final

import msgspec

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ...wire.server.access import Address
from ..client.api_calls import ApiCalls
from ..client.api_client import ApiClient
from ..client.errors import ApiError
from ..objects import Lease, LeaseSpec, ObjectMeta
from .coordinator import PodSchedulerOptions
from .figures import pod_metrics
from .left_out import left_out_line
from .pod_scheduler import PodScheduler

if TYPE_CHECKING:
    from prometheus_client import Metric

    from ...core.scheduler.scheduler import Scheduler
    from ...wire.client.remote_scheduler import RemoteScheduler

_Text: TypeAlias = "Callable[[], str]"
_LEASE_NAME: Final = "licorne"
_ANSWER_SECONDS: Final = 3.0
ROLE_LABEL: Final = "licorne.io/role"
_PAUSE_SECONDS: Final = 2.0
"""The pause after a failed write of a label."""
LEASE_SECONDS: Final = 10
"""After how long without a renewal another process may take the lease."""
_RENEWED_WITHIN_SECONDS: Final = 7.0
"""How long the holder acts after its last renewal: shorter than the lease lasts for others."""
_ELECTION_PAUSE_SECONDS: Final = 2.0
_READ_SECONDS: Final = 5.0


class PodRole(Enum):
    """The role of the process in a pod; the value is the value of the label."""

    LEADER = "leader"
    STANDBY = "standby"


def lease_name(scheduler_name: str) -> str:
    """Return the name of the lease for the scheduler with this name."""
    return _LEASE_NAME if scheduler_name == _LEASE_NAME else f"{_LEASE_NAME}-{scheduler_name}"


@final
class OwnPod:
    """Keeps the label of a pod current, from `start` to `stop`; failed writes are repeated.

    Args:
        calls: The API server.
        namespace: The namespace of the pod.
        name: Its name.
        role: The first role of the process.
        log: The log for failures.
    """

    def __init__(
        self, calls: ApiCalls, namespace: str, name: str, role: PodRole, log: Log | None = None
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._name = name
        self._role = role
        self._written: PodRole | None = None
        self._log = log if log is not None else Log()
        self._is_stopped = False
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-kubernetes-own-pod", daemon=True)

    @property
    def is_marked(self) -> bool:
        """Whether the label has the role of the process; from any thread."""
        return self._written is self._role

    def start(self) -> None:
        """Begin to write the label."""
        self._thread.start()

    def become(self, role: PodRole) -> None:
        """Set another role; from any thread."""
        self._role = role
        self._changed.set()

    def stop(self) -> None:
        """End; the label stays, as the pod ends with the process."""
        self._is_stopped = True
        self._changed.set()
        self._thread.join(_PAUSE_SECONDS)

    def _run(self) -> None:
        while not self._is_stopped:
            self._changed.clear()
            role = self._role
            if role is not self._written:
                try:
                    self._calls.patch_pod_labels(self._namespace, self._name, {ROLE_LABEL: role.value})
                    self._written = role
                except LicorneError as error:
                    self._log.warning("the label of pod {}/{}: {}", self._namespace, self._name, error)
            self._changed.wait(None if self.is_marked else _PAUSE_SECONDS)


@final
class PodService:
    """Schedules the pods of a cluster inside of a `with` block.

    Args:
        scheduler: The scheduler that places the pods; it is not stopped at the end.
        client: The API server.
        options: The options of the command line.
        on_lost: Is called when another process takes over: this one has to end.
        pod_name: The pod of this process, which gets a label with its role; `None` outside a pod.
        log: The log for failures.
    """

    def __init__(
        self,
        scheduler: Scheduler | RemoteScheduler,
        client: ApiClient,
        options: PodSchedulerOptions,
        *,
        on_lost: Callable[[], None],
        pod_name: str | None = None,
        log: Log | None = None,
    ) -> None:
        self.pods = PodScheduler(scheduler, client, options, log)
        self._client = client
        self.has_lost_lead = False
        self._on_lost = on_lost
        self._election = (
            LeaderElection(
                ApiCalls(client),
                namespace=options.namespace,
                name=lease_name(options.defaults.scheduler_name),
                identity=options.identity,
                on_lead=self._take_lead,
                on_lost=self._lose_lead,
                log=log,
            )
            if options.waits_for_lead
            else None
        )
        self._own_pod = (
            None
            if pod_name is None
            else OwnPod(
                ApiCalls(client),
                options.namespace,
                pod_name,
                PodRole.STANDBY if options.waits_for_lead else PodRole.LEADER,
                log,
            )
        )

    @property
    def leads(self) -> bool:
        """Whether this process schedules."""
        return self._election is None or self._election.leads()

    def why_stuck(self) -> str:
        """Return why this process has to be restarted, empty if it works; waits some seconds at most."""
        if self._election is not None and not self.has_lost_lead and not self._election.is_alive():
            return "the thread of the lease has ended"
        if not self.pods.answers_within(_ANSWER_SECONDS):
            return f"the scheduler of pods has carried out nothing for {_ANSWER_SECONDS:g} s"
        return ""

    def why_not_ready(self) -> str:
        """Return why this process is not ready, empty if it schedules or could take over at once."""
        if self._own_pod is not None and not self._own_pod.is_marked:
            return "the label of the pod is not written yet"
        if self.leads and self.pods.start_failure:
            return "the start has failed, and is tried again: the log gives the reason"
        if self.leads and not self.pods.is_ready:
            return "the scheduler does not have the nodes and pods of the cluster yet"
        return "" if self.pods.is_listed else "the objects of the cluster are not listed yet"

    def ready_note(self) -> str:
        """Return a note for people although this process is ready, empty for none."""
        return left_out_line(self.pods.left_out)

    def metrics(self) -> Iterable[Metric]:
        """Return the metrics of the scheduler of pods, which the scheduler below does not have."""
        return pod_metrics(self.pods, self._client, leads=self.leads)

    def __enter__(self) -> Self:
        if self._own_pod is not None:
            self._own_pod.start()
        self.pods.start()
        if self._election is not None:
            self._election.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pods.stop()
        if self._election is not None:
            self._election.stop()
        if self._own_pod is not None:
            self._own_pod.stop()

    def _take_lead(self) -> None:
        self.pods.lead()
        if self._own_pod is not None:
            self._own_pod.become(PodRole.LEADER)

    def _lose_lead(self) -> None:
        self.has_lost_lead = True
        self.pods.stop_acting()
        self._on_lost()


@final
class LeaderElection:
    """Takes part in the election until it is stopped.

    Every process measures by its own clock for how long the lease has not changed, so that clocks need not
    agree. At the end the lease is released, and another process takes it within seconds.

    Args:
        calls: The API server.
        namespace: The namespace of the lease.
        name: Its name.
        identity: The unique name of this process.
        on_lead: Is called once, when this process holds the lease.
        on_lost: Is called once, when it may no longer act. It cannot lead again: its knowledge is outdated.
        log: The log for changes of the leader.
        clock: Returns seconds, and never goes back.
    """

    def __init__(
        self,
        calls: ApiCalls,
        *,
        namespace: str,
        name: str,
        identity: str,
        on_lead: Callable[[], None],
        on_lost: Callable[[], None],
        log: Log | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._on_lead = on_lead
        self._on_lost = on_lost
        self._log = log if log is not None else Log()
        self._clock = clock
        self._observed: tuple[str, str | None, int] | None = None
        """Holder, renewal and transitions of the lease at the last reading."""
        self._observed_at = 0.0
        self._renewed_at: float | None = None
        """When this process last renewed the lease; `None` while it does not hold it."""
        self._has_lost = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-kubernetes-lease", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and release the lease if this process holds it."""
        self._stopped.set()
        self._thread.join()
        if self.leads():
            self._renewed_at = None
            try:
                self._write(self._calls.get_lease(self._namespace, self._name), holder="")
            except LicorneError as error:
                self._log.warning("the lease was not given back: {}", error)

    def is_alive(self) -> bool:
        """Return whether it takes part: its thread runs; from any thread."""
        return self._thread.is_alive()

    def leads(self) -> bool:
        """Return whether this process may act now; from any thread."""
        renewed_at = self._renewed_at
        return renewed_at is not None and self._clock() - renewed_at < _RENEWED_WITHIN_SECONDS

    def _run(self) -> None:
        while not (self._stopped.is_set() or self._has_lost):
            self.step()
            self._stopped.wait(_ELECTION_PAUSE_SECONDS)

    def step(self) -> None:
        """Take or renew the lease if possible, and report the outcome."""
        was_leading = self._renewed_at is not None
        try:
            self._try(self._clock())
        except Exception as error:  # noqa: BLE001 - after any failure the lease was not renewed
            self._log.warning("the lease {}/{}: {}", self._namespace, self._name, error)
        if was_leading and not self.leads():
            self._renewed_at = None
            self._has_lost = True
            self._log.error("the lease is lost: another process schedules from now on")
            self._on_lost()
        elif not was_leading and self.leads():
            self._log.info("{} holds the lease {}/{}", self._identity, self._namespace, self._name)
            self._on_lead()

    def _try(self, began: float) -> None:
        """Take or renew the lease, if possible.

        Raises:
            LicorneError: The API server does not answer, or another process was faster.
        """
        try:
            lease = self._calls.get_lease(self._namespace, self._name)
        except ApiError as error:
            if error.status != 404:
                raise
            self._calls.create_lease(self._lease(ObjectMeta(name=self._name, namespace=self._namespace), 0))
            self._renewed_at = began
            return
        spec = lease.spec
        is_own = spec.holder_identity == self._identity
        if is_own and self._renewed_at is None and self._has_not_expired(spec):
            return  # of an earlier process with this name, which may still run
        if not is_own:
            if self._renewed_at is not None:
                self._renewed_at = float("-inf")
                return
            if spec.holder_identity and self._has_not_expired(spec):
                return
        self._write(lease, holder=self._identity)
        self._renewed_at = began

    def _has_not_expired(self, spec: LeaseSpec) -> bool:
        """Return whether a lease has changed within its time, by the clock of this process."""
        seen = (spec.holder_identity, spec.renew_time, spec.lease_transitions)
        now = self._clock()
        if seen != self._observed:
            self._observed, self._observed_at = seen, now
        return now - self._observed_at < (spec.lease_duration_seconds or LEASE_SECONDS)

    def _write(self, lease: Lease, *, holder: str) -> None:
        """Replace a lease that was read; the API server refuses if it has changed since."""
        is_new = lease.spec.holder_identity != holder
        transitions = lease.spec.lease_transitions + (is_new and bool(holder))
        new = self._lease(lease.metadata, transitions, holder=holder)
        if not is_new:
            spec = msgspec.structs.replace(new.spec, acquire_time=lease.spec.acquire_time)
            new = msgspec.structs.replace(new, spec=spec)
        self._calls.update_lease(new)

    def _lease(self, metadata: ObjectMeta, transitions: int, holder: str | None = None) -> Lease:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        return Lease(
            metadata=metadata,
            spec=LeaseSpec(
                holder_identity=self._identity if holder is None else holder,
                lease_duration_seconds=LEASE_SECONDS,
                acquire_time=now,
                renew_time=now,
                lease_transitions=transitions,
            ),
        )


@final
class HealthServer:
    """Answers `GET /livez` and `GET /readyz` inside of a `with` block: 200, or 503 with the reason.

    Args:
        address: The address on which it listens.
        why_stuck: Returns why the process has to be restarted, empty if it works.
        why_not_ready: Returns why the process is not ready, empty if it is.
        ready_note: Returns an additional line for `/readyz`, empty for none.

    Raises:
        LicorneError: It cannot listen on the address.
    """

    def __init__(
        self,
        address: Address,
        *,
        why_stuck: Callable[[], str],
        why_not_ready: Callable[[], str],
        ready_note: Callable[[], str] = str,
    ) -> None:
        checks: dict[str, tuple[_Text, _Text]] = {
            "/livez": (why_stuck, str),
            "/readyz": (why_not_ready, ready_note),
        }
        try:
            self._server = ThreadingHTTPServer((address.host, address.port), _handler(checks))
        except OSError as error:
            raise LicorneError(f"cannot listen on {address}: {error.strerror or error}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="licorne-kubernetes-health", daemon=True
        )

    @property
    def port(self) -> int:
        """The port of the server."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(checks: Mapping[str, tuple[_Text, _Text]]) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers a connection."""

    class Probe(BaseHTTPRequestHandler):
        timeout = _READ_SECONDS
        wbufsize = -1  # head and body are one packet: an end in between cannot leave half an answer

        def do_GET(self) -> None:
            if self.path not in checks:
                self._answer(HTTPStatus.NOT_FOUND, f"there is {' and '.join(checks)}")
                return
            check, note = checks[self.path]
            reason = check()
            text = "\n".join(filter(None, (reason or "ok", note())))
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK, text)

        def _answer(self, status: HTTPStatus, text: str) -> None:
            body = f"{text}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Log nothing: a kubelet asks every few seconds."""

    return Probe
