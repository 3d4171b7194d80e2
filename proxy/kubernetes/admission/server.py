"""The admission webhook as a whole: its view of the cluster, its certificate, its port, and its paths.

An unreadable question, or one that meets a bug of ours, is answered with an error status of HTTP: the failure
policy of the registration then decides about the write.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Self, final

import uvicorn
from anyio.to_thread import run_sync
from loguru import logger
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ...views.rest.connections import ConnectionTimes, bounded_connections
from ...views.rest.limits import LimitsSettings, RequestLimits
from ...views.rest.running import BACKLOG, AsgiServer, ServingThread
from ..client.api_client import ApiClient
from ..mapping.user_signatures import UserSigner
from .certificates import CertificateKeeper, ServingCertificate
from .cluster_objects import AdmissionObjects, configuration_verdict
from .marking import Marking
from .reviews import AdmissionRequest, AdmissionVerdict, UnreadableReviewError, encoded_review, request_of

if TYPE_CHECKING:
    from prometheus_client import Metric

MUTATE_PATH: Final = "/mutate"
VALIDATE_PATH: Final = "/validate-conf"
_LIMITS: Final = LimitsSettings(
    body_bytes_max=16 << 20,  # Twice an object, before and after: each has less than 3 MiB.
    per_second_max=100_000.0,  # All questions of a cluster come from the host of the API server.
)

Judge = Callable[[AdmissionRequest], AdmissionVerdict]
"""Returns the answer; may wait for the API server."""


def admission_app(mutate: Judge, validate: Judge) -> Starlette:
    """Return the application.

    Args:
        mutate: Answers questions about pods and workloads.
        validate: Answers questions about the configuration.
    """
    return Starlette(
        routes=[
            Route(MUTATE_PATH, _endpoint(mutate), methods=["POST"]),
            Route(VALIDATE_PATH, _endpoint(validate), methods=["POST"]),
            Route("/health", _health),
        ],
        middleware=[Middleware(RequestLimits, settings=_LIMITS)],
        exception_handlers={UnreadableReviewError: _unreadable, Exception: _broken},
    )


def _endpoint(judge: Judge) -> Callable[[Request], object]:
    def answer(body: bytes) -> bytes:
        request = request_of(body)
        verdict = judge(request)
        if not verdict.is_allowed:
            logger.info(
                "denied {} {} in namespace {} by {}: {}",
                request.operation,
                request.kind.kind,
                request.namespace,
                request.user_info.username,
                verdict.reason,
            )
        return encoded_review(request.uid, verdict)

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        return Response(await run_sync(answer, body), media_type="application/json")

    return endpoint


def _health(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _unreadable(_: Request, error: Exception) -> Response:
    logger.warning("a question of the API server cannot be answered: {}", error)
    return PlainTextResponse(f"{error}\n", HTTPStatus.BAD_REQUEST)


def _broken(_: Request, error: Exception) -> Response:
    """Return the answer to a question that met a bug of ours, and log that."""
    logger.opt(exception=error).error("a question of the API server met an internal error, please report")
    return PlainTextResponse(f"internal error: {error!r}\n", HTTPStatus.INTERNAL_SERVER_ERROR)


_NAME: Final = "admission"
_LISTED_SECONDS: Final = 30.0
"""How long the API server may take to list the required objects."""
_CHECK_SECONDS: Final = 60.0
"""How often the certificate is checked."""
_TRUST_TIME: Final = timedelta(seconds=45)
"""The time between making a certificate and presenting it: API servers learn of its authority meanwhile."""
_IDLE_SECONDS: Final = 120
"""How long a connection may be idle: longer than an API server keeps it, so that no question is lost."""
_DRAIN_SECONDS: Final = 10
"""How long questions in progress may take when the server stops: the same as their limit in general."""
_CONNECTIONS_MAX: Final = 1_000


def _utc_now() -> datetime:
    return datetime.now(UTC)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionServerOptions:
    """The options of the command line."""

    namespace: str = "default"
    """The namespace of the configuration, the secret and the service."""
    scheduler_name: str = "yunikorn"
    """The name of the scheduler for pods."""
    service: str = "licorne-admission"
    """The name of the service by which API servers reach the webhook."""
    secret: str = "licorne-admission"  # noqa: S105 - the name of an object
    """The name of the secret that keeps the certificate."""
    registration: str = "licorne-admission"
    """The name of the configurations of mutating and validating webhooks."""
    extra_names: tuple[str, ...] = ()
    """Further names and addresses by which API servers reach the webhook."""
    host: str = "0.0.0.0"  # noqa: S104 - API servers are on other machines
    port: int = 8443
    """The port; 0 stands for any free one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names and addresses in the certificate."""
        service = f"{self.service}.{self.namespace}"
        return (f"{service}.svc", service, *self.extra_names)


@final
class AdmissionServer:
    """Answers API servers, from `start` to `stop`; `with` does both.

    It needs the API server to start. Afterwards it answers from its view of the cluster, also while the API
    server cannot be reached.

    Args:
        client: The API server; it is not closed at the end.
        options: The options of the command line.
        log: The log for failures.
        now: Returns the time, with a time zone.
    """

    def __init__(
        self,
        client: ApiClient,
        options: AdmissionServerOptions,
        log: Log | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._options = options
        self._log = log if log is not None else Log()
        self._now = now
        self._objects = AdmissionObjects(client, options.namespace, self._log)
        self._keeper = CertificateKeeper(
            client,
            namespace=options.namespace,
            secret=options.secret,
            registration=options.registration,
            names=options.names,
            log=self._log,
            now=now,
        )
        self._presented: ServingCertificate | None = None
        self._results = dict.fromkeys(("allowed", "changed", "denied"), 0)
        self._lock = threading.Lock()
        self._signer: UserSigner | None = None
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serving = ServingThread(_NAME, self._made)
        self._stopping = threading.Event()
        self._is_running = False
        self._checks = threading.Thread(target=self._check_always, name="licorne-certificate", daemon=True)

    def start(self) -> None:
        """List the cluster, get the certificate, and return when the server answers.

        Raises:
            ConfigMapError: A value of the configuration cannot be read.
            UnlistedError: The API server has not listed the required objects in time. ApiError,
            ApiUnreachable: The certificate cannot be read or stored. LicorneError: The address cannot be
            listened on.
        """
        try:
            self._objects.start(_LISTED_SECONDS)
            self.check_certificate()
            self._signer = UserSigner(self._keeper.signing_key())
            self._serving.start(self._options.host, self._options.port)
        except LicorneError:
            self._objects.stop()
            raise
        self._checks.start()
        self._is_running = True

    def stop(self) -> None:
        """Answer the questions in progress, and end; without effect if it does not run."""
        if not self._is_running:
            return
        self._is_running = False
        self._stopping.set()
        self._serving.end()
        self._checks.join(_DRAIN_SECONDS)
        self._objects.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def signer(self) -> UserSigner:
        """Tells which users the webhook has written; available after the start."""
        assert self._signer is not None, "the webhook has not been started"
        return self._signer

    @property
    def port(self) -> int:
        """The port of the server."""
        return self._serving.port

    def metrics(self) -> Iterator[Metric]:
        """Return the metrics of the webhook."""
        from ...core.metrics.families import counter, single  # noqa: PLC0415 - loads `prometheus_client`

        with self._lock:
            results = dict(self._results)
        name = "licorne_kubernetes_admission_reviews_total"
        yield counter(name, "Questions of API servers", "result", results)
        if self._presented is not None:
            name = "licorne_kubernetes_certificate_end_seconds"
            text = "When the certificate ends, in seconds since 1970"
            yield single(name, text, self._presented.ends_at.timestamp())

    def check_certificate(self) -> None:
        """Use the certificate that all replicas share, or make one if it is due; called each minute.

        A new one is presented some time after its authority was published, so that no question of an API
        server is lost.

        Raises:
            ApiError, ApiUnreachable: The certificate cannot be read or stored.
        """
        kept = self._keeper.certificate()
        is_trusted = self._keeper.publish(kept.bundle)
        presented = self._presented
        if presented == kept:
            return
        is_known = is_trusted and self._now() >= kept.made_at + _TRUST_TIME
        if presented is None or is_known or self._now() >= presented.ends_at:
            self._presented = kept
            self._serving.call(lambda: kept.load_into(self._tls))

    def _check_always(self) -> None:
        while not self._stopping.wait(_CHECK_SECONDS):
            try:
                self.check_certificate()
            except LicorneError as error:
                self._log.error("the certificate of the admission webhook cannot be checked: {}", error)

    # ---------------------------------------------------------------------------------------------- answers

    def _made(self) -> AsgiServer:
        application = admission_app(self._mutated, self._validated)
        config = uvicorn.Config(
            application,
            http=bounded_connections(ConnectionTimes()),
            h11_max_incomplete_event_size=LimitsSettings().head_bytes_max,
            limit_concurrency=_CONNECTIONS_MAX,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
        return AsgiServer(_NAME, config, tls=self._tls)

    def _mutated(self, request: AdmissionRequest) -> AdmissionVerdict:
        marking = Marking(self._options.scheduler_name, self._objects.settings, self._objects, self.signer)
        return self._counted(marking.verdict(request))

    def _validated(self, request: AdmissionRequest) -> AdmissionVerdict:
        maps = self._objects.config_maps
        return self._counted(configuration_verdict(request, maps, self._options.namespace))

    def _counted(self, verdict: AdmissionVerdict) -> AdmissionVerdict:
        result = "changed" if verdict.patch else "allowed"
        with self._lock:
            self._results[result if verdict.is_allowed else "denied"] += 1
        return verdict
