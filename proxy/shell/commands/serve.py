"""`licorne serve`: the scheduler for resource managers outside of this process."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Protocol, final

import typer

from ....model.errors import LicorneError
from ...base.process import prepare_process
from ...base.terminal.standard_output import ends_on, write_line
from .options import (
    AddressAsJsonOption,
    EngineOption,
    HistoryOption,
    InsecurePublicOption,
    LogFormatOption,
    NoRestOption,
    PolicyOptions,
    RestAddressOption,
    RestHostOption,
    RestTokenOption,
    ServedConfigOption,
    ThreadsOption,
    UsageFileOption,
    log_format_named,
    log_written,
    reporter,
    value_option,
    with_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ....model.queues.use_order import KeptUse
    from ...core.recording.recording import Recording
    from ...core.scheduler.answering.questions import QuestionSide
    from ...core.scheduler.scheduler import Scheduler
    from ...views.rest.running import RestSettings
    from ...wire.server.access import AccessRules, Address
    from ...wire.server.core import ConfigurationFile
    from ...wire.server.served_scheduler import ServedScheduler
    from ...wire.server.server import ServerSettings
    from ...wire.server.watchdog import Watchdog


class Readers(AbstractContextManager[object], Protocol):
    """A REST server; `with` starts and stops it."""

    settings: RestSettings

    @property
    def port(self) -> int:
        """The port that it listens on."""

    def begin_stop(self) -> None:
        """Take no new connections, and let requests that are under way end; returns at once."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningOptions:
    """Where a server listens, and who may use it: each field is an option."""

    address: Annotated[
        str, value_option("--address", "HOST:PORT", "Where to listen; port 0: one that is free.")
    ] = "127.0.0.1:3333"
    rest_address: RestAddressOption = "127.0.0.1:9080"
    rest_token: RestTokenOption = None
    rest_host: RestHostOption = None
    no_rest: NoRestOption = False
    tls_cert: Annotated[
        Path | None, value_option("--tls-cert", "FILE", "The certificate of the server (PEM).")
    ] = None
    tls_key: Annotated[
        Path | None, value_option("--tls-key", "FILE", "The key of that certificate (PEM).")
    ] = None
    client_ca: Annotated[
        Path | None,
        value_option(
            "--client-ca",
            "FILE",
            "Certificates of the authorities for clients (PEM); each client needs a certificate.",
        ),
    ] = None
    access: Annotated[
        Path | None, value_option("--access", "FILE", "Tokens and certificates that are let in (.yaml).")
    ] = None
    insecure_public: InsecurePublicOption = False
    stop_after: Annotated[
        str, value_option("--stop-after", "DURATION", "How long a resource manager may be away, such as 5m.")
    ] = "5m"
    forget_after: Annotated[
        str | None,
        value_option(
            "--forget-after",
            "DURATION",
            "How much later a stopped resource manager is forgotten; never unless given.",
        ),
    ] = None

    def server(self, config: Path | None) -> ServerSettings:
        """Return how to listen for resource managers; those that send no queues get those of the file.

        Raises:
            LicorneError: An option cannot be used; the text quotes it.
        """
        from ...wire.server.access import AccessRules, read_access_rules, read_address, server_credentials
        from ...wire.server.core import ConfigurationFile
        from ...wire.server.server import ServerSettings

        stop_after_seconds = _seconds("--stop-after", self.stop_after)
        forget_after_seconds = (
            None if self.forget_after is None else _seconds("--forget-after", self.forget_after)
        )
        where = read_address(self.address)
        credentials = server_credentials(self.tls_cert, self.tls_key, self.client_ca)
        _check_reach(where, protected=credentials is not None or self.insecure_public)
        rules = AccessRules() if self.access is None else read_access_rules(self.access)
        if rules.has_certificates and self.client_ca is None:
            raise LicorneError(
                f"{self.access}: its certificates need --client-ca: nothing else vouches for them"
            )
        return ServerSettings(
            address=where,
            credentials=credentials,
            access=rules,
            configuration=None if config is None else ConfigurationFile(config),
            stop_after_seconds=stop_after_seconds,
            forget_after_seconds=forget_after_seconds,
        )

    def rest(self, access: AccessRules, ui_dir: Path | None = None) -> RestSettings | None:
        """Return how the REST interface listens, `None` if there is none; see `rest_settings`."""
        if self.no_rest:
            return None
        return rest_settings(
            self.rest_address,
            tls=(self.tls_cert, self.tls_key, self.client_ca),
            insecure_public=self.insecure_public,
            token=self.rest_token,
            hosts=self.rest_host,
            access=access,
            ui_dir=ui_dir,
        )


@with_settings("policies", PolicyOptions)
@with_settings("listening", ListeningOptions)
def serve(
    *,
    config: ServedConfigOption = None,
    listening: ListeningOptions,
    ui_dir: Annotated[
        Path | None, value_option("--ui-dir", "DIR", "A build of yunikorn-web, instead of the page.")
    ] = None,
    record: Annotated[
        Path | None, value_option("--record", "DIR", "Record all that happens, in a new folder below.")
    ] = None,
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Record pseudonyms in the place of names.")
    ] = False,
    outcomes: Annotated[
        bool, typer.Option("--outcomes", help="Record also what follows, for `licorne verify`.")
    ] = False,
    state_dumps: Annotated[
        Path | None, value_option("--state-dumps", "DIR", "Write state dumps there, the last ten are kept.")
    ] = None,
    state_dump_interval: Annotated[
        str, value_option("--state-dump-interval", "DURATION", "From one state dump to the next.")
    ] = "10m",
    usage_file: UsageFileOption = None,
    history: HistoryOption = None,
    engine: EngineOption = "actors",
    threads: ThreadsOption = None,
    policies: PolicyOptions,
    as_json: AddressAsJsonOption = False,
    log_format: LogFormatOption = "text",
    until_stdin_closes: Annotated[bool, typer.Option("--until-stdin-closes", hidden=True)] = False,
) -> None:
    """Serve resource managers over gRPC, and readers over REST, until SIGTERM or Ctrl-C.

    Prints the addresses when it listens. SIGHUP reads the configuration again; so does a change of the file.
    """
    with ends_on(LicorneError, "licorne serve"), ExitStack() as stack:
        check_installed("server")
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # Our own messages contain what it would print.
        from ....model.configuration.durations import parse_duration_ns
        from ...core.scheduler.engine_names import engine_named
        from ...core.scheduler.scheduler import Scheduler
        from ...views.dumps import PeriodicDumps
        from ...wire.server.watchdog import Watchdog, end_with_parent, read_orders

        chosen_format = log_format_named(log_format)
        stack.enter_context(log_written(chosen_format, "licorne serve"))
        settings = listening.server(config)
        rest = listening.rest(settings.access, ui_dir)
        if until_stdin_closes:
            token = read_orders()
            settings = replace(settings, access=settings.access.with_token(token))
            rest = None if rest is None else replace(rest, tokens=(*rest.tokens, token))
        recording = _recording(record, anonymize=anonymize, outcomes=outcomes)
        interval_seconds = parse_duration_ns(state_dump_interval) / 1e9
        report = reporter(chosen_format, "licorne serve")
        watchdog = Watchdog(reads_input=until_stdin_closes)
        scheduler = Scheduler(
            engine=engine_named(engine),
            threads=threads,
            record=recording,
            kept_use=_kept_use(usage_file, report, is_recorded=recording is not None),
            policies=policies.given(),
        )
        if scheduler.recorded_in is not None:
            report(f"recording in {scheduler.recorded_in}")
        prepare_process()

        stack.callback(scheduler.stop)  # A gRPC server does it otherwise.
        if until_stdin_closes:
            end_with_parent(scheduler, watchdog)
        if state_dumps is not None:
            stack.enter_context(PeriodicDumps(scheduler, state_dumps, interval_seconds))
        from ...views.rest.running import RestServer

        writers = (
            use_writer(scheduler, usage_file, stack),
            history_writer(scheduler, history, stack, settings.configuration),
        )
        readers = None if rest is None else RestServer(scheduler, rest)
        run_server(
            scheduler,
            settings,
            readers,
            watchdog=watchdog,
            as_json=as_json,
            report=report,
            before_stop=lambda: [write() for write in writers],
        )


def nothing() -> None:
    """Do nothing before the end."""


def use_writer(scheduler: QuestionSide, path: Path | None, stack: ExitStack) -> Callable[[], None]:
    """Write what queues use to a file from now on, if there is one; return what writes it before the end."""
    if path is None:
        return nothing
    from ...views.dumps import UsageFile

    return stack.enter_context(UsageFile(scheduler, path)).write


def history_writer(
    scheduler: Scheduler, path: Path | None, stack: ExitStack, configuration: ConfigurationFile | None = None
) -> Callable[[], None]:
    """Write a history to a file from now on, if there is one; return what writes it before the end.

    Args:
        scheduler: The scheduler.
        path: The file, `None` for none.
        stack: Ends the writing.
        configuration: The configuration of the server: a change to its text is made by its file.
    """
    if path is None:
        return nothing
    from ...views.history.recorder import HistoryWriter, connection_of

    def who(rm_id: str, text: str) -> str:
        if configuration is not None and text == configuration.text:
            return configuration.owned()
        return connection_of(scheduler, rm_id)

    return stack.enter_context(HistoryWriter(scheduler, path, who)).write


def _kept_use(
    path: Path | None, report: Callable[[str], None], *, is_recorded: bool
) -> Mapping[str, KeptUse]:
    """Return what queues have used before, nothing from a file that is not there yet or that is refused.

    Raises:
        LicorneError: All that happens is to be recorded, which would be replayed without this.
    """
    if path is not None and is_recorded:
        raise LicorneError("--usage-file cannot be used with --record: a replay would not have what it gives")
    return {} if path is None else usage_before(path, report)


def usage_before(path: Path, report: Callable[[str], None]) -> Mapping[str, KeptUse]:
    """Return what a usage file has, nothing from one that is not there yet or that is refused.

    A file that is refused gets another name, so that the one that is written later does not replace it.

    Args:
        path: The file.
        report: Gets a line for the operator when the file is refused.

    Raises:
        UnwritableFileError: The file cannot be written, or not be renamed.
    """
    from ...base.files.output_files import check_writable, set_aside
    from ...views.dumps import usage_from

    check_writable(path)
    if not path.exists():
        return {}
    try:
        return usage_from(path, time_ns())
    except LicorneError as error:
        kept = f"{error}; it is kept as {set_aside(path)}, and fair share begins without past use"
        report(kept)
        return {}


def run_server(
    scheduler: ServedScheduler,
    settings: ServerSettings,
    readers: Readers | None,
    *,
    watchdog: Watchdog,
    as_json: bool,
    report: Callable[[str], None],
    before_stop: Callable[[], object] = nothing,
) -> None:
    """Serve until a signal comes.

    Args:
        scheduler: The scheduler to serve; it is stopped, too.
        settings: How to listen.
        readers: The REST server, if there is one.
        watchdog: Ends this process if the signal has no effect.
        as_json: Whether the addresses are printed as JSON.
        report: Gets lines for the operator.
        before_stop: Called when the signal has come, while the scheduler still runs.

    Raises:
        LicorneError: An address cannot be listened on.
    """
    import asyncio
    from contextlib import nullcontext

    from ...wire.server.access import Address
    from ...wire.server.server import serve_until_signal

    def on_stopping() -> None:
        before_stop()
        if readers is not None:
            readers.begin_stop()

    with readers or nullcontext():
        reading = None if readers is None else str(Address(readers.settings.host, readers.port))

        def on_listening(listening: Address) -> None:
            document = {"address": str(listening), "tls": settings.credentials is not None, "rest": reading}
            if as_json:
                write_line(json.dumps(document), flush=True)
                return
            write_line(f"listening on {listening}", flush=True)
            if readers is not None:
                scheme = "http" if readers.settings.certificate is None else "https"
                write_line(f"REST on {reading}", flush=True)
                write_line(f"page on {scheme}://{reading}/", flush=True)

        asyncio.run(
            serve_until_signal(
                scheduler,
                replace(settings, rest_address=reading or ""),
                watchdog=watchdog,
                on_listening=on_listening,
                report=report,
                on_stopping=on_stopping,
            )
        )


def _recording(folder: Path | None, *, anonymize: bool, outcomes: bool) -> Recording | None:
    """Return where to record, `None` for nowhere.

    Raises:
        LicorneError: There are to be pseudonyms or outcomes, and no recording.
    """
    from ...core.recording.recording import Recording

    if folder is None and anonymize:
        raise LicorneError("--anonymize is for a recording: give --record DIR, too")
    if folder is None and outcomes:
        raise LicorneError("--outcomes is for a recording: give --record DIR, too")
    return None if folder is None else Recording(folder, anonymize=anonymize, outcomes=outcomes)


def check_installed(extra: str, *names: str) -> None:
    """Refuse to continue without the packages of the extra `server`, and of another one that builds on it.

    Args:
        extra: The extra that has them all.
        names: Its packages besides those of `server`.

    Raises:
        LicorneError: One is missing.
    """
    from importlib.util import find_spec

    of_server = ("grpc", "grpc_health", "grpc_reflection", "prometheus_client", "starlette", "uvicorn")
    missing = [name for name in (*of_server, *names) if find_spec(name) is None]
    if missing:
        raise LicorneError(f"{', '.join(missing)} is not installed: pip install 'licorne[{extra}]'")


def _seconds(option: str, text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        LicorneError: The text is not a duration, or it is negative.
    """
    from ....model.configuration.durations import parse_duration_ns

    seconds = parse_duration_ns(text) / 1e9
    if seconds < 0:
        raise LicorneError(f"{option}: expected a time that is not negative, not {text!r}")
    return seconds


def rest_settings(
    address: str,
    *,
    tls: tuple[Path | None, Path | None, Path | None] = (None, None, None),
    insecure_public: bool,
    token: Path | None,
    hosts: list[str] | None,
    access: AccessRules | None = None,
    ui_dir: Path | None = None,
) -> RestSettings:
    """Return how the REST interface listens; its certificate is that of the server.

    Its tokens are those of its file, else those of resource managers.

    Raises:
        LicorneError: An option cannot be used; the text quotes it.
    """
    from ...views.rest.requests import read_token
    from ...views.rest.running import RestSettings
    from ...wire.server.access import read_address

    tokens = () if access is None else access.tokens
    if token is not None:
        tokens = (read_token(token),)
    if access is not None and access.has_certificates and not tokens:
        raise LicorneError(
            "--access has rules for certificates alone, which REST does not know: "
            "give --rest-token FILE, or --no-rest"
        )
    where = read_address(address)
    certificate, key, authorities = tls
    _check_reach(where, protected=certificate is not None or insecure_public)
    return RestSettings(
        host=where.host,
        port=where.port,
        certificate=certificate,
        key=key,
        client_authorities=authorities,
        tokens=tokens,
        hosts=tuple(hosts or ()),
        ui_dir=ui_dir,
    )


def _check_reach(where: Address, *, protected: bool) -> None:
    """Refuse an address that others can reach without TLS.

    Raises:
        LicorneError: It is open, and no option allows that.
    """
    if not where.is_loopback and not protected:
        raise LicorneError(
            f"{where} can be reached from other machines: give --tls-cert and --tls-key, "
            "or --insecure-public if that is intended"
        )
