"""`licorne door`: one scheduler to resource managers, whose partitions run on workers."""

from __future__ import annotations

import os
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from ....model.errors import LicorneError
from ...base.process import prepare_process
from ...base.terminal.standard_output import ends_on
from .options import (
    AddressAsJsonOption,
    LogFormatOption,
    PolicyOptions,
    ServedConfigOption,
    UsageFileOption,
    log_format_named,
    log_written,
    reporter,
    value_option,
    with_settings,
)
from .serve import ListeningOptions, check_installed, run_server, usage_before, use_writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...wire.door.workers import Launcher

LAUNCHERS: Final = ("local", "fixed", "ray")


@with_settings("policies", PolicyOptions)
@with_settings("listening", ListeningOptions)
def door(
    *,
    config: ServedConfigOption = None,
    launcher: Annotated[
        str, value_option("--launcher", "NAME", f"How workers are started: {', '.join(LAUNCHERS)}.")
    ] = "local",
    workers: Annotated[
        str,
        value_option("--workers", "PARTITION=HOST:PORT,...", "Where the workers listen (launcher fixed)."),
    ] = "",
    worker_options: Annotated[
        str,
        value_option(
            "--worker-options",
            "TEXT",
            "Options of `licorne serve` for each worker that is started, such as '--engine threads'.",
        ),
    ] = "",
    ray_address: Annotated[
        str, value_option("--ray-address", "HOST:PORT", "The head of Ray; auto: that of this machine.")
    ] = "auto",
    worker_token: Annotated[
        Path | None, value_option("--worker-token", "FILE", "The bearer token that workers want.")
    ] = None,
    worker_ca: Annotated[
        Path | None,
        value_option(
            "--worker-ca", "FILE", "Certificates of the authorities for workers (PEM); turns TLS on."
        ),
    ] = None,
    worker_cert: Annotated[
        Path | None, value_option("--worker-cert", "FILE", "The certificate that workers are shown (PEM).")
    ] = None,
    worker_key: Annotated[
        Path | None, value_option("--worker-key", "FILE", "The key of that certificate (PEM).")
    ] = None,
    listening: ListeningOptions,
    policies: PolicyOptions,
    usage_file: UsageFileOption = None,
    as_json: AddressAsJsonOption = False,
    log_format: LogFormatOption = "text",
) -> None:
    """Serve resource managers whose partitions run on workers, one worker each; see docs/scaling.md.

    Prints the addresses when it listens. SIGHUP reads the configuration again; so does a change of the file.
    """
    with ends_on(LicorneError, "licorne door"), ExitStack() as stack:
        check_installed("server")
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # Our own messages contain what it would print.
        from ...views.rest.requests import read_token
        from ...wire.door.door import Door
        from ...wire.door.view.application import DoorRest
        from ...wire.door.view.worker_client import WorkerClient, worker_tls
        from ...wire.server.watchdog import Watchdog

        chosen_format = log_format_named(log_format)
        stack.enter_context(log_written(chosen_format, "licorne door"))
        settings = listening.server(config)
        rest = listening.rest(settings.access)
        report = reporter(chosen_format, "licorne door")
        if policies.policy or policies.policy_package:
            raise LicorneError(
                "--policy: a door asks no policies, its workers do: "
                "--worker-options '--policy NAME=module:Class', or `licorne serve --policy` for each"
            )
        token = None if worker_token is None else read_token(worker_token)
        watchdog = Watchdog()
        scheduler = Door(
            _launcher(launcher, workers, _split(worker_options), ray_address),
            token=token,
            root_certificates=worker_ca,
            certificate=worker_cert,
            key=worker_key,
            on_error=lambda failure: report(f"RM {failure.rm_id!r}: {failure.callback}: {failure.error}"),
            kept_use=None if usage_file is None else usage_before(usage_file, report),
        )
        stack.callback(scheduler.stop)
        prepare_process()
        client = WorkerClient(token=token, tls=worker_tls(worker_ca, worker_cert, worker_key))
        readers = None if rest is None else DoorRest(scheduler, rest, client)
        run_server(
            scheduler,
            settings,
            readers,
            watchdog=watchdog,
            as_json=as_json,
            report=report,
            before_stop=use_writer(scheduler, usage_file, stack),
        )


def _split(worker_options: str) -> list[str]:
    """Return the options of workers, as a shell splits them.

    Raises:
        LicorneError: A quote does not end, or all workers would write one usage file.
    """
    try:
        options = shlex.split(worker_options)
    except ValueError as error:
        raise LicorneError(f"--worker-options {worker_options!r}: {error}") from error
    if any(option.partition("=")[0] == "--usage-file" for option in options):
        raise LicorneError("--worker-options: all workers would write one --usage-file: give it to the door")
    return options


def _launcher(name: str, workers: str, worker_options: Sequence[str], ray_address: str) -> Launcher:
    """Return what starts workers.

    Raises:
        LicorneError: There is no launcher of that name, or an option does not belong to it.
    """
    from ...wire.door.launchers.fixed import FixedLauncher, read_worker_addresses
    from ...wire.door.launchers.local import LocalLauncher

    if name == "fixed":
        if worker_options:
            raise LicorneError("--worker-options is for workers that are started: give it to `licorne serve`")
        if not workers:
            raise LicorneError("--launcher fixed needs --workers PARTITION=HOST:PORT,...")
        return FixedLauncher(read_worker_addresses(workers))
    if workers:
        raise LicorneError("--workers is for --launcher fixed: others start the workers themselves")
    if name == "local":
        return LocalLauncher(worker_options)
    if name == "ray":
        from ...wire.door.launchers.ray import RayLauncher

        return RayLauncher(ray_address, worker_options)
    raise LicorneError(f"--launcher {name!r}: there are {', '.join(LAUNCHERS)}")
