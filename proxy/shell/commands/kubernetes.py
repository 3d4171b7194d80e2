"""`licorne kubernetes`: schedule the pods of a cluster."""

from __future__ import annotations

import signal
import socket
import threading
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from ....model.errors import LicorneError
from ...base.process import prepare_process
from ...base.terminal.standard_output import ends_on, write_line
from .options import (
    EngineOption,
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
from .serve import check_installed, rest_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...core.explanation.text import TextLine
    from ...kubernetes.client.credentials import Credentials
    from ...kubernetes.running.coordinator import PodSchedulerOptions
    from ...kubernetes.running.picture import ClusterPicture
    from ...wire.server.watchdog import Watchdog

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


kubernetes = typer.Typer(name="kubernetes", invoke_without_command=True)
"""The command, and what it is asked besides."""


@kubernetes.callback()
@with_settings("policies", PolicyOptions)
@with_settings("cluster", ClusterOptions)
def schedule_pods(
    context: typer.Context,
    *,
    cluster: ClusterOptions,
    no_lease: Annotated[
        bool, typer.Option("--no-lease", help="Schedule without a lease: no other process may run.")
    ] = False,
    rest_address: RestAddressOption = "127.0.0.1:9080",
    no_rest: NoRestOption = False,
    rest_token: RestTokenOption = None,
    rest_host: RestHostOption = None,
    insecure_public: InsecurePublicOption = False,
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
    webhook: Annotated[
        bool, typer.Option("--webhook", help="Mark new pods and check queues for the API server, too.")
    ] = False,
    webhook_address: Annotated[
        str, value_option("--webhook-address", "HOST:PORT", "Where the webhook listens, with TLS.")
    ] = "0.0.0.0:8443",
    webhook_name: Annotated[
        list[str] | None,
        value_option(
            "--webhook-name",
            "NAME",
            "A further name or address that API servers call it by; may be repeated.",
        ),
    ] = None,
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
        from ...kubernetes.admission.server import AdmissionServer, AdmissionServerOptions
        from ...kubernetes.client.api_client import ApiClient
        from ...kubernetes.running.service import HealthServer, PodService
        from ...views.rest.running import RestServer
        from ...wire.server.access import read_address
        from ...wire.server.watchdog import Watchdog

        chosen_format = log_format_named(log_format)
        stack.enter_context(log_written(chosen_format, "licorne kubernetes"))
        credentials, options = cluster.read(has_lease=not no_lease)
        rest = (
            None
            if no_rest
            else rest_settings(
                rest_address, insecure_public=insecure_public, token=rest_token, hosts=rest_host
            )
        )
        if rest is not None and insecure_public and not rest.tokens:
            # What pods carry in their labels and annotations is for those alone who have a token.
            rest = replace(rest, closed=("/debug/",))
            options = replace(options, defaults=replace(options.defaults, shows_labels=False))
        health = None if health_address is None else read_address(health_address)
        prepare_process()
        watchdog = Watchdog()
        scheduler = stack.enter_context(Scheduler(engine=engine_named(engine), policies=policies.given()))
        client = stack.enter_context(ApiClient(credentials))
        ended = _ends_on_signals(watchdog)
        if webhook:
            where = read_address(webhook_address)
            marking = AdmissionServer(
                client,
                AdmissionServerOptions(
                    namespace=options.namespace,
                    scheduler_name=cluster.scheduler_name,
                    extra_names=tuple(webhook_name or ()),
                    host=where.host,
                    port=where.port,
                ),
                Log(logger="kubernetes"),
            )
            stack.enter_context(marking)
            write_line(f"webhook on {where.with_port(marking.port)}", flush=True)
            defaults = replace(options.defaults, signer=marking.signer)
            options = replace(options, defaults=defaults)
        service = PodService(
            scheduler, client, options, on_lost=ended.set, pod_name=pod_name, log=Log(logger="kubernetes")
        )
        if rest is not None:
            server = RestServer(scheduler, rest, more_metrics=service.metrics)
            stack.enter_context(server)
            write_line(f"REST on {rest.host}:{server.port}", flush=True)
        report = reporter(chosen_format, "licorne kubernetes")
        with service:
            if health is not None:
                probes = stack.enter_context(
                    HealthServer(
                        health,
                        why_stuck=service.why_stuck,
                        why_not_ready=service.why_not_ready,
                        ready_note=service.ready_note,
                    )
                )
                write_line(f"health on {health.with_port(probes.port)}", flush=True)
            report(f"scheduling pods of {cluster.scheduler_name!r} in {credentials.server}")
            ended.wait()
        if service.has_lost_lead:
            raise LicorneError("another process holds the lease now")


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
) -> None:
    """Say where a pod runs, or why it waits.

    The whole cluster is read once, and its pods are placed on a scheduler of the command's own.
    """
    with ends_on(LicorneError, "licorne kubernetes explain"):
        if name.count("/") != 1:
            raise LicorneError(f"expected NAMESPACE/NAME, not {name!r}")
        _print_picture(cluster, lambda picture: picture.explain(name))


@kubernetes.command("dry-run")
@with_settings("cluster", ClusterOptions)
def dry_run_pod(
    *,
    manifest: Annotated[
        Path, value_option("--filename", "FILE", "The manifest of a pod or of a workload.", short="-f")
    ],
    cluster: ClusterOptions,
) -> None:
    """Say where a pod would run, or why it would wait, if it were created now. Nothing changes.

    Of a workload, such as a Deployment or a Job, one pod is tried.
    """
    with ends_on(LicorneError, "licorne kubernetes dry-run"):
        check_installed("kubernetes", *_PACKAGES)
        from ...kubernetes.manifests import read_pod

        pod = read_pod(manifest, cluster.scheduler_name)
        _print_picture(cluster, lambda picture: picture.try_pod(pod))


def _print_picture(cluster: ClusterOptions, ask: Callable[[ClusterPicture], Iterable[TextLine]]) -> None:
    """Read the cluster, and print what it is asked."""
    credentials, options = cluster.read()
    from ...kubernetes.client.api_client import ApiClient
    from ...kubernetes.running.picture import ClusterPicture
    from .options import print_text_lines

    with ApiClient(credentials) as client:
        print_text_lines(ask(ClusterPicture(client, options)))
