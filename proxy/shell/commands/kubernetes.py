"""`licorne kubernetes`: schedule the pods of a cluster."""

from __future__ import annotations

import signal
import socket
import threading
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from ....model.errors import LicorneError
from ...base.process import prepare_process
from ...base.terminal.standard_output import ends_on, write_line
from .options import (
    AsJsonOption,
    CommandGroup,
    EngineOption,
    HistoryOption,
    InsecurePublicOption,
    LogFormatOption,
    NoRestOption,
    PolicyOptions,
    RestAddressOption,
    RestHostOption,
    RestTokenOption,
    log_format_named,
    log_written,
    reporter,
    value_option,
    with_settings,
)
from .serve import check_installed, history_writer, rest_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import Metric

    from ...core.explanation.text import TextLine
    from ...core.scheduler.scheduler import Scheduler
    from ...kubernetes.admission.server import AdmissionServer
    from ...kubernetes.client.api_client import ApiClient
    from ...kubernetes.client.credentials import Credentials
    from ...kubernetes.running.coordinator import PodSchedulerOptions
    from ...kubernetes.running.picture import ClusterPicture
    from ...kubernetes.running.service import PodService
    from ...views.rest.running import RestSettings
    from ...wire.server.access import Address
    from ...wire.server.watchdog import Watchdog

_INSTALLED_IN: Final = "licorne"
"""The namespace of the manifests in `deploy/kubernetes`."""
_PACKAGES: Final = ("msgspec", "urllib3")
"""Packages that the extra `kubernetes` adds to those of `server`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The cluster, and how its pods are scheduled: each field is an option."""

    kubeconfig: Annotated[
        Path | None,
        value_option("--kubeconfig", "FILE", "How to reach the cluster; inside of one it is not needed."),
    ] = None
    cluster_context: Annotated[str | None, value_option("--context", "NAME", "The context in that file.")] = (
        None
    )
    namespace: Annotated[
        str | None,
        value_option(
            "--namespace",
            "NAME",
            "Where the configuration and the lease are; that of the credentials if not given.",
            envvar="NAMESPACE",
        ),
    ] = None
    scheduler_name: Annotated[
        str, value_option("--scheduler-name", "NAME", "The pods whose schedulerName is this are scheduled.")
    ] = "licorne"
    config: Annotated[
        Path | None, value_option("--config", "FILE", "The queues if the cluster has no configuration.")
    ] = None

    def read(self, *, has_lease: bool = False) -> tuple[Credentials, PodSchedulerOptions]:
        """Return how to reach the cluster, and how its pods are scheduled.

        Raises:
            LicorneError: There are no credentials, or a file cannot be read.
        """
        check_installed("kubernetes", *_PACKAGES)
        from ...base.files.input_files import read_text
        from ...kubernetes.client.kubeconfig import find_credentials
        from ...kubernetes.mapping.settings import KubernetesSettings
        from ...kubernetes.running.coordinator import PodSchedulerOptions

        credentials = find_credentials(self.kubeconfig, self.cluster_context)
        options = PodSchedulerOptions(
            namespace=self.namespace or credentials.namespace,
            defaults=KubernetesSettings(scheduler_name=self.scheduler_name),
            queues="" if self.config is None else read_text(self.config),
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            waits_for_lead=has_lease,
        )
        return credentials, options


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """The REST interface: each field is an option."""

    rest_address: RestAddressOption = "127.0.0.1:9080"
    no_rest: NoRestOption = False
    history: HistoryOption = None
    rest_token: RestTokenOption = None
    rest_host: RestHostOption = None
    insecure_public: InsecurePublicOption = False

    def read(self, options: PodSchedulerOptions) -> tuple[RestSettings | None, PodSchedulerOptions]:
        """Return how the interface listens, and the options of a scheduler whose pods it shows.

        Raises:
            LicorneError: An option cannot be used.
        """
        if self.no_rest:
            return None, options
        rest = rest_settings(
            self.rest_address,
            insecure_public=self.insecure_public,
            token=self.rest_token,
            hosts=self.rest_host,
        )
        if self.insecure_public and not rest.tokens:
            # Labels and annotations of pods are only for readers with a token.
            rest = replace(rest, closed=("/debug/",))
            options = replace(options, defaults=replace(options.defaults, shows_labels=False))
        return rest, options


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """The webhook: each field is an option."""

    webhook: Annotated[
        bool, typer.Option("--webhook", help="Mark new pods and check queues for the API server, too.")
    ] = False
    webhook_address: Annotated[
        str, value_option("--webhook-address", "HOST:PORT", "Where the webhook listens, with TLS.")
    ] = "0.0.0.0:8443"
    webhook_name: Annotated[
        list[str] | None,
        value_option(
            "--webhook-name",
            "NAME",
            "A further name or address that API servers call it by; may be repeated.",
        ),
    ] = None

    def start(
        self, client: ApiClient, options: PodSchedulerOptions, stack: ExitStack
    ) -> AdmissionServer | None:
        """Start the webhook and print its address; the stack stops it. `None`: it is not configured.

        Raises:
            LicorneError: It cannot listen, or does not get what it needs from the API server.
        """
        if not self.webhook:
            return None
        from ....actors.services.log import Log
        from ...kubernetes.admission.server import AdmissionServer, AdmissionServerOptions
        from ...wire.server.access import read_address

        where = read_address(self.webhook_address)
        admission = AdmissionServerOptions(
            namespace=options.namespace,
            scheduler_name=options.defaults.scheduler_name,
            extra_names=tuple(self.webhook_name or ()),
            host=where.host,
            port=where.port,
        )
        server = stack.enter_context(AdmissionServer(client, admission, Log(logger="kubernetes")))
        write_line(f"webhook on {where.with_port(server.port)}", flush=True)
        return server


kubernetes = typer.Typer(name="kubernetes", cls=CommandGroup, invoke_without_command=True)
"""The command, and what it is asked besides."""


@kubernetes.callback()
@with_settings("policies", PolicyOptions)
@with_settings("webhook", WebhookOptions)
@with_settings("readers", ReaderOptions)
@with_settings("cluster", ClusterOptions)
def schedule_pods(
    context: typer.Context,
    *,
    cluster: ClusterOptions,
    no_lease: Annotated[
        bool, typer.Option("--no-lease", help="Schedule without a lease: no other process may run.")
    ] = False,
    readers: ReaderOptions,
    health_address: Annotated[
        str | None,
        value_option("--health-address", "HOST:PORT", "Where /livez and /readyz are answered, if at all."),
    ] = None,
    pod_name: Annotated[
        str | None,
        value_option(
            "--pod-name",
            "NAME",
            "The pod that this process runs in: its label licorne.io/role becomes leader or standby.",
            envvar="POD_NAME",
        ),
    ] = None,
    webhook: WebhookOptions,
    engine: EngineOption = "actors",
    policies: PolicyOptions,
    log_format: LogFormatOption = "text",
) -> None:
    """Schedule the pods of a Kubernetes cluster until SIGTERM or Ctrl-C.

    Of several processes the one schedules that holds the lease.
    """
    if context.invoked_subcommand is not None:
        return
    with ends_on(LicorneError, "licorne kubernetes"), ExitStack() as stack:
        check_installed("kubernetes", *_PACKAGES)
        from ....actors.services.log import Log
        from ...core.scheduler.engine_names import engine_named
        from ...core.scheduler.scheduler import Scheduler
        from ...kubernetes.client.api_client import ApiClient
        from ...kubernetes.running.service import PodService
        from ...wire.server.access import read_address
        from ...wire.server.watchdog import Watchdog

        chosen_format = log_format_named(log_format)
        stack.enter_context(log_written(chosen_format, "licorne kubernetes"))
        credentials, options = cluster.read(has_lease=not no_lease)
        rest, options = readers.read(options)
        health = None if health_address is None else read_address(health_address)
        prepare_process()
        watchdog = Watchdog()
        given = {**options.policies, **policies.given()}
        scheduler = stack.enter_context(Scheduler(engine=engine_named(engine), policies=given))
        history_writer(scheduler, readers.history, stack)
        client = stack.enter_context(ApiClient(credentials))
        ended = _ends_on_signals(watchdog)
        marking = webhook.start(client, options, stack)
        if marking is not None:
            options = replace(options, defaults=replace(options.defaults, signer=marking.signer))
        service = PodService(
            scheduler, client, options, on_lost=ended.set, pod_name=pod_name, log=Log(logger="kubernetes")
        )
        if rest is not None:
            parts = (service,) if marking is None else (service, marking)
            _serve_readers(
                scheduler, rest, lambda: chain.from_iterable(each.metrics() for each in parts), stack
            )
        with service:
            if health is not None:
                _serve_health(service, health, stack)
            reporter(chosen_format, "licorne kubernetes")(
                f"scheduling pods of {cluster.scheduler_name!r} in {credentials.server}"
            )
            ended.wait()
        if service.has_lost_lead:
            raise LicorneError("another process holds the lease now")


def _serve_readers(
    scheduler: Scheduler, rest: RestSettings, metrics: Callable[[], Iterable[Metric]], stack: ExitStack
) -> None:
    """Start the REST interface and print its address; the stack stops it."""
    from ...views.rest.running import RestServer

    server = stack.enter_context(RestServer(scheduler, rest, more_metrics=metrics))
    write_line(f"REST on {rest.host}:{server.port}", flush=True)


def _serve_health(service: PodService, where: Address, stack: ExitStack) -> None:
    """Start the probes of the process and print their address; the stack stops them."""
    from ...kubernetes.running.service import HealthServer

    probes = stack.enter_context(
        HealthServer(
            where,
            why_stuck=service.why_stuck,
            why_not_ready=service.why_not_ready,
            ready_note=service.ready_note,
        )
    )
    write_line(f"health on {where.with_port(probes.port)}", flush=True)


def _ends_on_signals(watchdog: Watchdog) -> threading.Event:
    """Return an event that SIGTERM and Ctrl-C set; a second one ends the process at once."""
    ended = threading.Event()

    def end(*_: object) -> None:
        watchdog.stopping()
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    watchdog.watch(signal.SIGTERM, signal.SIGINT)
    return ended


@kubernetes.command("explain")
@with_settings("cluster", ClusterOptions)
def explain_pod(
    name: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="A pod.")],
    *,
    cluster: ClusterOptions,
    as_json: AsJsonOption = False,
) -> None:
    """Say where a pod runs, or why it waits.

    The whole cluster is read once, and its pods are placed on a scheduler of the command's own.
    """
    with ends_on(LicorneError, "licorne kubernetes explain"):
        if name.count("/") != 1:
            raise LicorneError(f"expected NAMESPACE/NAME, not {name!r}")
        _print_picture(cluster, lambda picture: picture.explain(name), as_json=as_json)


@kubernetes.command("dry-run")
@with_settings("cluster", ClusterOptions)
def dry_run_pod(
    *,
    manifest: Annotated[
        Path, value_option("--filename", "FILE", "The manifest of a pod or of a workload.", other="-f")
    ],
    cluster: ClusterOptions,
    as_json: AsJsonOption = False,
) -> None:
    """Say where a pod would run, or why it would wait, if it were created now. Nothing changes.

    The API server completes the pod by its own dry run. Of a workload, such as a Deployment or a Job, one pod
    is tried.
    """
    with ends_on(LicorneError, "licorne kubernetes dry-run"):
        check_installed("kubernetes", *_PACKAGES)
        from ...kubernetes.client.kubeconfig import find_credentials
        from ...kubernetes.manifests import read_pods

        namespace = find_credentials(cluster.kubeconfig, cluster.cluster_context).namespace
        pods = read_pods(manifest, cluster.scheduler_name, namespace)
        _print_picture(
            cluster, lambda picture: chain.from_iterable(map(picture.try_pod, pods)), as_json=as_json
        )


def _print_picture(
    cluster: ClusterOptions, ask: Callable[[ClusterPicture], Iterable[TextLine]], *, as_json: bool
) -> None:
    """Read the cluster, and print what it is asked."""
    # The user's own namespace rarely has the queues.
    credentials, options = replace(cluster, namespace=cluster.namespace or _INSTALLED_IN).read()
    from ...kubernetes.client.api_client import ApiClient
    from ...kubernetes.running.picture import ClusterPicture
    from .options import print_document, print_text_lines

    with ApiClient(credentials) as client:
        lines = ask(ClusterPicture(client, options))
        if as_json:
            print_document({"lines": [{"depth": line.depth, "text": line.text} for line in lines]})
        else:
            print_text_lines(lines)
