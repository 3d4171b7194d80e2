"""`licorne door`: one scheduler to resource managers, whose partitions run on workers."""

from __future__ import annotations

import os
import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast, final

from ....model.errors import LicorneError
from ...base.process import prepare_process
from ...base.terminal.standard_output import ends_on
from .options import (
    AddressAsJsonOption,
    HistoryOption,
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
    from ...wire.door.workers import Launcher

_BUILT_IN: Final = ("local", "fixed")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherOptions:
    """How workers are started: each field is an option."""

    launcher: Annotated[
        str,
        value_option(
            "--launcher",
            "NAME",
            "How workers are started: local, fixed, ray, or a launcher of another installed package.",
        ),
    ] = "local"
    workers: Annotated[
        str,
        value_option("--workers", "PARTITION=HOST:PORT,...", "Where the workers listen (launcher fixed)."),
    ] = ""
    worker_options: Annotated[
        str,
        value_option(
            "--worker-options",
            "OPTIONS",
            "Options of `licorne serve` for each worker that is started, such as '--engine threads'.",
        ),
    ] = ""
    launcher_address: Annotated[
        str,
        value_option(
            "--launcher-address",
            "HOST:PORT",
            "The cluster that starts the workers, such as the head of Ray; auto: that of this machine.",
            other="--ray-address",
        ),
    ] = "auto"

    def made(self, history: Path | None) -> Launcher:
        """Return the launcher: a built-in one, or that of an entry point of `licorne.launchers`.

        Args:
            history: The file that all workers write, `None` for none.

        Raises:
            LicorneError: There is no launcher of that name, or an option does not belong to it.
        """
        from ...base.files.plugins import installed_launcher
        from ...wire.door.launchers.fixed import FixedLauncher, read_worker_addresses
        from ...wire.door.launchers.local import LocalLauncher

        options = _split(self.worker_options)
        if history is not None:
            if self.launcher != "local":
                raise LicorneError(
                    "--history is for --launcher local, whose workers write one file: "
                    "give a file to each `licorne serve`"
                )
            from ...views.history.store import HistoryStore

            HistoryStore(history).close()  # It is refused here, or made for all of them.
            options += ["--history", str(history.resolve())]
        if self.launcher == "fixed":
            if options:
                raise LicorneError(
                    "--worker-options is for workers that are started: give it to `licorne serve`"
                )
            if not self.workers:
                raise LicorneError("--launcher fixed needs --workers PARTITION=HOST:PORT,...")
            return FixedLauncher(read_worker_addresses(self.workers))
        if self.workers:
            raise LicorneError("--workers is for --launcher fixed: others start the workers themselves")
        if self.launcher == "local":
            return LocalLauncher(options)
        installed = installed_launcher(self.launcher, _BUILT_IN)
        return cast("Launcher", installed(self.launcher_address, options))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAccessOptions:
    """What the door shows workers, and requires of them: each field is an option."""

    worker_token: Annotated[
        Path | None, value_option("--worker-token", "FILE", "The bearer token that workers require.")
    ] = None
    worker_ca: Annotated[
        Path | None,
        value_option(
            "--worker-ca", "FILE", "Certificates of the authorities for workers (PEM); turns TLS on."
        ),
    ] = None
    worker_cert: Annotated[
        Path | None, value_option("--worker-cert", "FILE", "The certificate that workers are shown (PEM).")
    ] = None
    worker_key: Annotated[
        Path | None, value_option("--worker-key", "FILE", "The key of that certificate (PEM).")
    ] = None

    def token(self) -> str | None:
        """Return the token, `None` without one.

        Raises:
            LicorneError: The file cannot be read, or contains no token.
        """
        from ...views.rest.requests import read_token

        return None if self.worker_token is None else read_token(self.worker_token)


@with_settings("policies", PolicyOptions)
@with_settings("listening", ListeningOptions)
@with_settings("access", WorkerAccessOptions)
@with_settings("launching", LauncherOptions)
def door(
    *,
    config: ServedConfigOption = None,
    launching: LauncherOptions,
    access: WorkerAccessOptions,
    listening: ListeningOptions,
    policies: PolicyOptions,
    usage_file: UsageFileOption = None,
    history: HistoryOption = None,
    as_json: AddressAsJsonOption = False,
    log_format: LogFormatOption = "text",
) -> None:
    """Serve resource managers whose partitions run on workers, one worker each; see docs/scaling.md.

    Prints the addresses when it listens. SIGHUP reads the configuration again; so does a change of the file.
    """
    with ends_on(LicorneError, "licorne door"), ExitStack() as stack:
        check_installed("server")
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # Our own messages contain what it would print.
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
        token = access.token()
        watchdog = Watchdog()
        scheduler = Door(
            launching.made(history),
            token=token,
            root_certificates=access.worker_ca,
            certificate=access.worker_cert,
            key=access.worker_key,
            on_error=lambda failure: report(f"RM {failure.rm_id!r}: {failure.callback}: {failure.error}"),
            kept_use=None if usage_file is None else usage_before(usage_file, report),
        )
        stack.callback(scheduler.stop)
        prepare_process()
        tls = worker_tls(access.worker_ca, access.worker_cert, access.worker_key)
        client = WorkerClient(token=token, tls=tls)
        run_server(
            scheduler,
            settings,
            None if rest is None else DoorRest(scheduler, rest, client),
            watchdog=watchdog,
            as_json=as_json,
            report=report,
            before_stop=use_writer(scheduler, usage_file, stack),
        )


def _split(worker_options: str) -> list[str]:
    """Return the options of workers, as a shell splits them.

    Raises:
        LicorneError: A quote does not end, or an option is for the door.
    """
    try:
        options = shlex.split(worker_options)
    except ValueError as error:
        raise LicorneError(f"--worker-options {worker_options!r}: {error}") from error
    names = {option.partition("=")[0] for option in options}
    if "--usage-file" in names:
        raise LicorneError("--worker-options: all workers would write one --usage-file: give it to the door")
    if "--history" in names:
        raise LicorneError("--worker-options: all workers write one --history: give it to the door")
    return options
